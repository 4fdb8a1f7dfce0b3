//! The targets that can be attached to, children below their parents.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::format::{self, Figure, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names, text};
use crate::app::App;
use crate::app::keys::Action;
use crate::app::targets::{Candidate, Targets};

/// Columns that children stand to the right of their parents.
const STEP: usize = 2;
/// Deeper ones stand where the deepest do.
const DEEPEST: usize = 6;
/// What stands before a child.
const BRANCH: &str = "└ ";

struct Spec {
    title: &'static str,
    wanted: Wanted,
    cell: fn(&Candidate) -> Figure,
}

const fn spec(
    title: &'static str,
    fields: Fields,
    worth: u8,
    cell: fn(&Candidate) -> Figure,
) -> Spec {
    Spec { title, wanted: Wanted { tight: fields, roomy: fields, worth }, cell }
}

const COLUMNS: [Spec; 5] = [
    spec("pid", Fields(8, 0), 90, |t| plain(t.pid.to_string())),
    spec("in use", Fields(8, 6), 100, |t| format::estimate(&t.in_use, Unit::Bytes)),
    spec("kind", Fields(9, 0), 70, |t| plain(t.kind.into())),
    spec("up", Fields(10, 0), 80, |t| plain(format::uptime(t.uptime_ns / 60_000_000_000))),
    spec("interval", Fields(14, 0), 60, |t| {
        plain(t.interval_bytes.map_or_else(|| format::UNKNOWN.into(), format::interval))
    }),
];

fn plain(value: String) -> Figure {
    Figure { value, ..Figure::default() }
}

/// Draws heading and rows.
pub(super) fn draw(app: &App, targets: &Targets, parts: &Parts, frame: &mut Frame) {
    let wanted = COLUMNS.each_ref().map(|spec| spec.wanted);
    let (name, placed) = layout::place(parts.body.width, &wanted);
    let mut heading = names::plain("target", name);
    for p in &placed {
        layout::pad_to(&mut heading, p.x);
        heading.push_span(layout::heading(COLUMNS[p.index].title, "", p.fields));
    }
    frame.render_widget(heading.dim(), parts.heading);
    let rows = targets.rows();
    let Some(rows) = rows.as_ref().filter(|rows| !rows.is_empty()) else {
        return super::sentence(why_empty(app, targets), parts.body, frame);
    };
    let shown = rows.iter().enumerate().skip(targets.cursor.offset());
    for (y, (at, (target, depth))) in (parts.body.y..parts.body.bottom()).zip(shown) {
        let line = row(app, target, *depth, usize::from(name), &placed);
        let area = Rect { y, height: 1, ..parts.body };
        list_row(line, at == targets.cursor.index(), area, frame);
    }
}

fn row(
    app: &App,
    target: &Candidate,
    depth: usize,
    width: usize,
    placed: &[Placed],
) -> Line<'static> {
    let lead = match depth.min(DEEPEST) {
        0 => String::new(),
        depth => " ".repeat(STEP * (depth - 1)) + BRANCH,
    };
    let here = if app.is_attached(target) { "  shown" } else { "" };
    let room = width.saturating_sub(text::width(&lead) + here.len());
    let known = text::name(&target.name);
    let mut line = Line::from(" ");
    line.push_span(Span::raw(lead).dim());
    line.push_span(Span::raw(text::keep_start(&known, room).into_owned()).bold());
    line.push_span(here.dim());
    for p in placed {
        layout::pad_to(&mut line, p.x);
        let figure = (COLUMNS[p.index].cell)(target);
        let said = layout::figure(&figure, p.fields);
        line.push_span(if figure.dim { said.dim() } else { said.into() });
    }
    line
}

fn why_empty(app: &App, targets: &Targets) -> String {
    match targets.rows() {
        None => "looking for targets…".into(),
        Some(_) if targets.counts().1 > 0 => {
            let filter = text::clean(&targets.filter).into_owned();
            let said = format!("no target has “{filter}” in its name or pid");
            app.with_key(&said, Action::Back, "lists all")
        }
        Some(_) => {
            let said = "no target runs: link heaptop-agent into a program, and it is listed here \
                        once it is started";
            app.with_key(said, Action::Demo, "starts the demo")
        }
    }
}
