//! The chooser of columns: each with what it says.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::{Parts, callsites, list_row, text};
use crate::app::cursor::Cursor;
use crate::app::{App, Screen};
use crate::query::Column;

/// Columns of a column's heading.
const TITLE: usize = 12;

/// Columns of the box before it.
pub const BOX: u16 = 5;

/// What a column says.
const fn says(column: Column) -> &'static str {
    match column {
        Column::Callsite => "where it is allocated",
        Column::InUseBytes => "bytes that live now",
        Column::InUseObjects => "objects that live now",
        Column::AllocatedBytes => "bytes ever allocated",
        Column::AllocatedObjects => "objects ever allocated",
        Column::AllocatedRate => "bytes allocated per second, over ten seconds",
        Column::ObjectRate => "objects allocated per second, over ten seconds",
        Column::Promoted => "share of the bytes born young that outlived the nursery's cycle",
        Column::ShortLived => "share of the bytes born young that did not",
        Column::Lifetime => "half of the blocks are dead by then",
        Column::MeanLifetime => "mean life of a block; > while the last of them live",
        Column::Growth => "bytes in use now less those at the mark; in colour with evidence",
        Column::Cum => "bytes in use by a function and all it calls, grouped by function",
        Column::Trend => "bytes in use over the last minutes",
    }
}

/// Columns of the list, where the callsites have room beside it.
const LIST: u16 = 86;
/// The fewest that callsites are worth showing in.
const LEAST_BESIDE: u16 = 80;

/// Draws the list, and what it makes of the callsites where there is room.
pub(super) fn draw(app: &App, cursor: &Cursor, parts: &Parts, frame: &mut Frame) {
    let whole = parts.body;
    let beside = whole.width >= LIST + LEAST_BESIDE && whole.height > 4;
    let area = Rect { width: if beside { LIST } else { whole.width }, ..whole };
    if let (true, Some(Screen::Callsites(rows))) = (beside, app.screens().first()) {
        let right = Rect { x: whole.x + LIST, width: whole.width - LIST, ..whole };
        let line = |y: u16, height: u16| Rect { y: right.y + y, height, ..right };
        let parts = Parts {
            heading: line(0, 1),
            body: line(1, right.height - 2),
            total: line(right.height - 1, 1),
            ..*parts
        };
        callsites::draw(app, rows, &parts, frame);
    }
    let listed = app.columns_listed();
    let shown = listed.iter().enumerate().skip(cursor.offset());
    for (y, (at, (column, on))) in (area.y..area.bottom()).zip(shown) {
        let title = callsites::title(*column);
        let sign = if *on { " [x] " } else { " [ ] " };
        let room = usize::from(area.width).saturating_sub(TITLE + 7);
        let says = text::keep_start(says(*column), room).into_owned();
        let title = text::left(&text::keep_start(title, TITLE), TITLE);
        let title = if *on { title.bold() } else { Span::raw(title) };
        let line = Line::from(vec![Span::raw(sign), title, Span::raw("  "), says.dim()]);
        list_row(line, at == cursor.index(), Rect { y, height: 1, ..area }, frame);
    }
}
