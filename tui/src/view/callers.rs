//! Screen 2: who calls the focus, or what it calls, as a tree.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::callsites::name_columns;
use super::format::{self, Unit};
use super::layout::{self, Fields, MARKER, Placed, Wanted};
use super::{Parts, list_row, names, text};
use crate::app::tree::TreeRow;
use crate::app::{App, Callers};
use crate::export;
use crate::query::{Direction, Metric};
use crate::session::figures::Estimate;

/// A column of the tree.
struct Spec {
    title: &'static str,
    wanted: Wanted,
    cell: fn(&TreeRow, Unit, Fields) -> Span<'static>,
}

const AMOUNT: (Fields, Fields) = (Fields(8, 5), Fields(9, 6));

const fn spec(
    title: &'static str,
    (tight, roomy): (Fields, Fields),
    worth: u8,
    cell: fn(&TreeRow, Unit, Fields) -> Span<'static>,
) -> Spec {
    Spec { title, wanted: Wanted { tight, roomy, worth }, cell }
}

/// From so many columns on a third of them is for the bar.
const WIDE: u16 = 180;
/// Its place.
const BAR: usize = 2;

const COLUMNS: [Spec; 4] = [
    spec("cum", AMOUNT, 4, |row, unit, fields| figure(&row.cum, unit, fields)),
    spec("share", (Fields(7, 0), Fields(7, 0)), 3, |row, _, fields| {
        Span::raw(text::right(&share(row.share), usize::from(fields.0)))
    }),
    spec("", (Fields(10, 0), Fields(24, 0)), 2, |row, _, fields| {
        Span::raw(bar(row.share, fields.0))
    }),
    spec("flat", AMOUNT, 1, |row, unit, fields| figure(&row.flat, unit, fields)),
];

fn figure(estimate: &Estimate, unit: Unit, fields: Fields) -> Span<'static> {
    let figure = format::estimate(estimate, unit);
    let text = layout::figure(&figure, fields);
    if figure.dim { text.dim() } else { text.into() }
}

/// A share of the focus, of estimates that share their samples.
fn share(share: f64) -> String {
    if share.is_finite() { format::cost(share) } else { format::UNKNOWN.into() }
}

/// A bar of `share` of `columns`, to the eighth.
fn bar(share: f64, columns: u16) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * f64::from(columns) * 8.0).round() as usize;
    let text = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    text::left(&text, usize::from(columns))
}

fn place(width: u16) -> (u16, Vec<Placed>) {
    let mut wanted: Vec<Wanted> = COLUMNS.iter().map(|spec| spec.wanted).collect();
    if width >= WIDE {
        wanted[BAR].roomy = Fields(width / 3, 0);
    }
    layout::place(width, &wanted)
}

/// Whether names are at `x`.
#[must_use]
pub fn is_name(x: u16, width: u16) -> bool {
    x <= place(width).0
}

/// Draws crumbs, heading and rows.
pub(super) fn draw(app: &App, callers: &Callers, parts: &Parts, frame: &mut Frame) {
    let (name_width, placed) = place(parts.body.width);
    let usual = usize::from(name_columns(app, name_width));
    crumbs(callers, app.metric(), usual, parts.crumbs, frame);
    let title = match callers.direction {
        Direction::Callers => "callers",
        Direction::Callees => "callees",
    };
    let mut heading = names::plain(title, name_width);
    for p in &placed {
        layout::pad_to(&mut heading, p.x);
        heading.push_span(Span::raw(layout::heading(COLUMNS[p.index].title, "", p.fields)));
    }
    frame.render_widget(heading.dim(), parts.heading);

    if callers.rows.is_empty() {
        return super::empty(app, parts.body, frame);
    }
    let unit = export::unit(app.metric());
    let page = usize::from(parts.body.height);
    let shown = callers.rows.iter().enumerate().skip(callers.cursor.offset()).take(page);
    for (y, (index, row)) in (parts.body.y..).zip(shown) {
        let mut line = name(row, name_width, usual);
        cells(row, unit, &placed, &mut line);
        let area = Rect { y, height: 1, ..parts.body };
        list_row(line, index == callers.cursor.index(), area, frame);
    }
}

fn cells(row: &TreeRow, unit: Unit, placed: &[Placed], line: &mut Line<'static>) {
    for p in placed {
        layout::pad_to(line, p.x);
        line.push_span((COLUMNS[p.index].cell)(row, unit, p.fields));
    }
}

/// The branch's sign and the name, indented by depth. Indentation is bounded:
/// deep rows say their depth instead.
fn name(row: &TreeRow, width: u16, usual: usize) -> Line<'static> {
    let width = usize::from(width);
    let sign = match (row.branches, row.open) {
        (true, true) => "- ",
        (true, false) => "+ ",
        (false, _) => "  ",
    };
    let most = width / 3;
    let indent = if row.depth * 2 <= most {
        " ".repeat(row.depth * 2)
    } else {
        text::left(&text::keep_end(&format!("{} ", row.depth), most), most)
    };
    let lead = format!(" {indent}{sign}");
    let room = (width + usize::from(MARKER)).saturating_sub(text::width(&lead));
    let mut line = Line::from(lead);
    for span in names::spans(&row.label, room, usual) {
        line.push_span(span);
    }
    line
}

/// What is counted: a callsite's are less than what goes through its line on the screen of
/// the source, where others may be inlined into it.
fn counted(callers: &Callers, metric: Metric) -> [String; 2] {
    let metric = export::metric(metric);
    let of = match (&callers.tree, callers.focus.len()) {
        (None, _) | (_, 0) => "",
        (Some(_), 2..) => " along this path",
        (Some(tree), 1)
            if callers.direction == Direction::Callers && tree.flat != Estimate::Unknown =>
        {
            " at this callsite alone"
        }
        (Some(_), 1) => " through this frame",
    };
    [format!("{metric}{of} "), format!("{metric} ")]
}

/// Of what they are callers, and how one came to it; the last is the focus itself. Names are
/// whole where there is room for them and for what is counted, else as in lists.
fn crumbs(callers: &Callers, metric: Metric, usual: usize, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let path = |columns: usize| {
        let names = callers.crumbs.iter().map(|label| {
            let name = text::name(&label.function);
            text::keep_name(&name, columns).into_owned()
        });
        names.collect::<Vec<_>>().join(" › ")
    };
    let (whole, short) = (path(usize::MAX), path(usual));
    let [counted, metric] = counted(callers, metric);
    let of = match callers.direction {
        _ if width < 60 => "",
        Direction::Callers => "callers of ",
        Direction::Callees => "callees of ",
    };
    let forms = [(&whole, &counted), (&short, &counted), (&whole, &metric), (&short, &metric)];
    let room = |right: &str| width.saturating_sub(text::width(right) + of.len() + 3);
    let fits = |(path, right): &(&String, &String)| text::width(path) <= room(right);
    let (path, right) = match forms.into_iter().find(fits) {
        Some((path, right)) => (path, right.as_str()),
        None if text::width(&metric) + 30 <= width => (&short, metric.as_str()),
        None => (&short, ""),
    };
    let path = text::keep_end(path, room(right)).into_owned();
    let gap = width.saturating_sub(1 + of.len() + text::width(&path) + text::width(right));
    let right = right.to_owned();
    let parts = [" ".into(), of.dim(), path.bold(), " ".repeat(gap).into(), right.dim()];
    frame.render_widget(Line::from(parts.to_vec()), area);
}
