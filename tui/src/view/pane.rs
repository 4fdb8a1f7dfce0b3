//! The details of the selected row beside the rows: what their own screen shows, as much of
//! it as fits, what tells most first. Each section is cut before the next one is left out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;

use super::{Parts, details, names, text};
use crate::app::App;
use crate::app::details::Details;
use crate::app::keys::Action;
use crate::query::details::Details as Answer;

/// Most frames of a callstack.
const MOST_FRAMES: usize = 6;

type Section = fn(&Answer, usize) -> Vec<Line<'static>>;

/// The sections, each with most of its lines: on a screen that is twice as high, twice as
/// many.
const SECTIONS: [(Section, usize); 9] = [
    (details::figures, 4),
    (details::hints, 5),
    (|answer, width| details::stacks(answer, MOST_FRAMES, width), 8),
    (details::moved, 9),
    (details::lives, 6),
    (details::sizes, 5),
    (details::threads, 4),
    (details::elsewhere, 2),
    (details::reallocs, 3),
];
/// Columns of its edge.
const EDGE: u16 = 2;
/// Lines that this is made for.
const USUAL: usize = 34;

/// Draws it, and leaves the rest of the screen to the rows.
pub(super) fn beside(app: &App, parts: &Parts, frame: &mut Frame) -> Parts {
    let columns = app.pane_columns().min(parts.body.width / 2);
    if columns == 0 {
        return *parts;
    }
    let narrow = |part: Rect| Rect { width: part.width.saturating_sub(columns), ..part };
    let top = if parts.heading.height > 0 { parts.heading.y } else { parts.body.y };
    let bottom = parts.body.bottom().max(parts.total.bottom());
    let x = parts.body.x + parts.body.width - columns;
    let area = Rect { x, y: top, width: columns, height: bottom.saturating_sub(top) };
    let lines = match app.pane() {
        Some(pane) => lines(app, pane, usize::from(columns - EDGE), usize::from(area.height)),
        None => Vec::new(),
    };
    let mut lines = lines.into_iter();
    for y in area.y..area.bottom() {
        frame.render_widget(Line::from(" │").dim(), Rect { x, y, width: EDGE, height: 1 });
        if let Some(line) = lines.next() {
            let width = area.width - EDGE;
            frame.render_widget(line, Rect { x: x + EDGE, y, width, height: 1 });
        }
    }
    Parts {
        heading: narrow(parts.heading),
        body: narrow(parts.body),
        total: narrow(parts.total),
        ..*parts
    }
}

fn lines(app: &App, pane: &Details, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(answer) = &pane.answer else {
        let mut title = Line::from(" ");
        for span in names::whole(&pane.label, width.saturating_sub(2)) {
            title.push_span(span.bold());
        }
        let why = if pane.is_asked() { "nothing is known of this moment" } else { "…" };
        return vec![title, Line::from(text::keep_start(&format!(" {why}"), width).into_owned())];
    };
    let mut lines = vec![details::title(answer, width), details::when(answer, width)];
    for (section, most) in SECTIONS {
        let most = (most * height / USUAL).max(2);
        lines.extend(cut(section(answer, width), most));
    }
    if lines.len() > height {
        lines.truncate(height.saturating_sub(1));
        lines.push(
            Line::from(format!(" {}", app.with_key("…", Action::Details, "shows all"))).dim(),
        );
    }
    lines
}

/// The first lines of a section, and that there are more.
fn cut(mut section: Vec<Line<'static>>, most: usize) -> Vec<Line<'static>> {
    if section.len() > most {
        let more = section.len() - (most - 1);
        section.truncate(most - 1);
        section.push(Line::from(format!("   … {more} more lines")).dim());
    }
    section
}
