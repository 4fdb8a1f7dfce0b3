//! Screen 5: who survives the nursery, and who dies young.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;

use super::callsites::name_columns;
use super::format::{self, Figure, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names, survival};
use crate::app::App;
use crate::app::promotion::Promotion;
use crate::query::{Promotion as Figures, PromotionColumn, When};

/// A column of figures.
struct Spec {
    column: PromotionColumn,
    title: &'static str,
    wanted: Wanted,
    cell: fn(&Figures) -> Figure,
}

const BYTES: (Fields, Fields) = (Fields(8, 5), Fields(9, 6));
const SPEED: (Fields, Fields) = (Fields(10, 5), Fields(11, 6));
const SHARE: (Fields, Fields) = (Fields(6, 5), Fields(6, 6));
const TIME: (Fields, Fields) = (Fields(8, 0), Fields(8, 6));

const fn spec(
    column: PromotionColumn,
    title: &'static str,
    (tight, roomy): (Fields, Fields),
    worth: u8,
    cell: fn(&Figures) -> Figure,
) -> Spec {
    Spec { column, title, wanted: Wanted { tight, roomy, worth }, cell }
}

const COLUMNS: [Spec; 6] = [
    spec(PromotionColumn::Minor, "born young", BYTES, 85, |f| {
        format::estimate(&f.minor_bytes, Unit::Bytes)
    }),
    spec(PromotionColumn::Promoted, "promoted", BYTES, 65, |f| {
        format::estimate(&f.promoted_bytes, Unit::Bytes)
    }),
    spec(PromotionColumn::PerSecond, "promoted/s", SPEED, 95, |f| {
        format::estimate(&f.promoted_rate, Unit::BytesPerSecond)
    }),
    spec(PromotionColumn::Rate, "rate", SHARE, 100, |f| format::ratio(&f.promoted)),
    spec(PromotionColumn::ShortLived, "dies young", SHARE, 40, |f| format::ratio(&f.short_lived)),
    spec(PromotionColumn::Lifetime, "lifetime", TIME, 60, |f| format::lifetime(&f.lifetime)),
];

fn place(width: u16) -> (u16, Vec<Placed>) {
    let wanted: Vec<Wanted> = COLUMNS.iter().map(|spec| spec.wanted).collect();
    layout::place(width, &wanted)
}

/// The column at `x`, names among them.
#[must_use]
pub fn column_at(x: u16, width: u16) -> Option<PromotionColumn> {
    let (name, placed) = place(width);
    if x <= name {
        return Some(PromotionColumn::Name);
    }
    layout::at(&placed, x).map(|index| COLUMNS[index].column)
}

/// The columns that are seen on so many of the terminal's, names last.
#[must_use]
pub fn columns_seen(width: u16) -> Vec<PromotionColumn> {
    let (_, placed) = place(width);
    placed.iter().map(|p| COLUMNS[p.index].column).chain([PromotionColumn::Name]).collect()
}

fn name_mark(mark: &str) -> String {
    if mark.is_empty() { String::new() } else { format!(" {mark}") }
}

/// Draws heading, rows and total.
pub(super) fn draw(app: &App, promotion: &Promotion, parts: &Parts, frame: &mut Frame) {
    let (name, placed) = place(parts.body.width);
    let order = promotion.order;
    let mark = |column| layout::mark(order.column == column, order.first);
    // Lives, below, are of another stretch: see `survival`.
    let of = match app.question().when {
        When::Now => "callsite, since start",
        When::At(_) | When::Peak => "callsite, start to then",
        When::Range { .. } => "callsite, in the range",
    };
    let mut heading =
        names::plain(&format!("{of}{}", name_mark(mark(PromotionColumn::Name))), name);
    for p in &placed {
        let spec = &COLUMNS[p.index];
        layout::put_heading(&mut heading, p.x, spec.title, mark(spec.column), p.fields);
    }
    frame.render_widget(heading.dim(), parts.heading);
    let Some(answer) = promotion.answer.as_ref().filter(|answer| answer.len > 0) else {
        return super::empty(app, parts.body, frame);
    };
    let cursor = &promotion.cursor;
    let places = cursor.offset()..cursor.offset() + usize::from(parts.body.height);
    let shown: Vec<_> = places.filter_map(|place| Some((place, answer.row(place)?))).collect();
    let names =
        names::callsites(shown.iter().map(|(_, row)| &row.label), name, name_columns(app, name));
    for ((y, mut line), &(place, row)) in (parts.body.y..).zip(names).zip(&shown) {
        cells(&row.figures, &placed, &mut line);
        let area = Rect { y, height: 1, ..parts.body };
        list_row(line, place == cursor.index(), area, frame);
    }
    let mut line = names::plain("all of them", name);
    cells(&answer.total, &placed, &mut line);
    frame.render_widget(line.bold(), parts.total);
    survival::draw(app, promotion, parts.panel, frame);
}

fn cells(figures: &Figures, placed: &[Placed], line: &mut Line<'static>) {
    for p in placed {
        layout::pad_to(line, p.x);
        let figure = (COLUMNS[p.index].cell)(figures);
        let text = layout::figure(&figure, p.fields);
        line.push_span(if figure.dim { text.dim() } else { text.into() });
    }
}
