//! Screen 6: threads, what each has in use, and who frees what it allocates.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;

use super::format::{self, Figure, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names};
use crate::app::App;
use crate::app::threads::{Sort, Threads};
use crate::query::{Label, ThreadRow, When, thread_name};

/// A column of figures.
struct Spec {
    title: &'static str,
    sort: Sort,
    wanted: Wanted,
    cell: fn(&ThreadRow) -> Figure,
}

const BYTES: (Fields, Fields) = (Fields(8, 6), Fields(9, 6));
const COUNT: (Fields, Fields) = (Fields(6, 5), Fields(7, 6));
const SPEED: (Fields, Fields) = (Fields(10, 6), Fields(11, 6));
const SHARE: (Fields, Fields) = (Fields(6, 5), Fields(8, 6));

const fn spec(
    title: &'static str,
    sort: Sort,
    (tight, roomy): (Fields, Fields),
    worth: u8,
    cell: fn(&ThreadRow) -> Figure,
) -> Spec {
    Spec { title, sort, wanted: Wanted { tight, roomy, worth }, cell }
}

const COLUMNS: [Spec; 6] = [
    spec("in use", Sort::InUse, BYTES, 100, |t| format::estimate(&t.in_use_bytes, Unit::Bytes)),
    spec("objects", Sort::Objects, COUNT, 40, |t| {
        format::estimate(&t.in_use_objects, Unit::Objects)
    }),
    spec("alloc/s", Sort::Rate, SPEED, 90, |t| {
        format::estimate(&t.allocated_rate, Unit::BytesPerSecond)
    }),
    spec("allocated", Sort::Allocated, BYTES, 60, |t| {
        format::estimate(&t.allocated_bytes, Unit::Bytes)
    }),
    spec("freed by others", Sort::FreedElsewhere, BYTES, 50, |t| {
        format::estimate(&t.freed_elsewhere_bytes, Unit::Bytes)
    }),
    spec("others free", Sort::Share, SHARE, 80, |t| format::ratio(&t.freed_elsewhere)),
];

/// A worth above all others: what rows are sorted by must be seen.
const SORTED_BY: u8 = 200;

fn placed(width: u16, sort: Sort) -> (u16, Vec<Placed>) {
    let wanted: Vec<Wanted> = COLUMNS
        .iter()
        .map(|spec| {
            let worth = if spec.sort == sort { SORTED_BY } else { spec.wanted.worth };
            let mark = layout::mark(spec.sort == sort, true);
            Wanted { worth, ..spec.wanted }.headed(spec.title, mark)
        })
        .collect();
    layout::place(width, &wanted)
}

/// What the heading at column `x` sorts by.
#[must_use]
pub fn sort_at(threads: &Threads, x: u16, width: u16) -> Option<Sort> {
    let (name, placed) = placed(width, threads.sort);
    if x <= name {
        return Some(Sort::Name);
    }
    let at = placed.iter().find(|p| (p.x..p.x + p.width()).contains(&x))?;
    Some(COLUMNS[at.index].sort)
}

/// Draws heading, rows, and what figures are of.
pub(super) fn draw(app: &App, threads: &Threads, parts: &Parts, frame: &mut Frame) {
    let (name, placed) = placed(parts.body.width, threads.sort);
    let mark = |sort: Sort| match (threads.sort == sort, sort == Sort::Name, threads.reversed) {
        (false, ..) => "",
        (true, true, false) | (true, false, true) => "▲",
        (true, ..) => "▼",
    };
    let title = match mark(Sort::Name) {
        "" => "thread".to_owned(),
        mark => format!("thread {mark}"),
    };
    let mut heading = names::plain(&title, name);
    for p in &placed {
        let spec = &COLUMNS[p.index];
        layout::put_heading(&mut heading, p.x, spec.title, mark(spec.sort), p.fields);
    }
    frame.render_widget(heading.dim(), parts.heading);
    let Some(rows) = threads.rows.as_ref().filter(|rows| !rows.is_empty()) else {
        return super::empty(app, parts.body, frame);
    };
    let cursor = &threads.cursor;
    let shown = rows.iter().enumerate().skip(cursor.offset());
    for (y, (place, row)) in (parts.body.y..parts.body.bottom()).zip(shown) {
        let tid = row.tid.map_or_else(String::new, |tid| format!("tid {tid}"));
        let label = Label { function: thread_name(row).into(), location: tid.into(), named: true };
        let mut line = names::one(&label, name);
        for p in &placed {
            layout::pad_to(&mut line, p.x);
            let figure = (COLUMNS[p.index].cell)(row);
            let text = layout::figure(&figure, p.fields);
            line.push_span(if figure.dim { text.dim() } else { text.into() });
        }
        list_row(line, place == cursor.index(), Rect { y, height: 1, ..parts.body }, frame);
    }
    let since = match app.summary().span {
        Some((from, _)) if app.question().when == When::Now => format!(
            " allocated and freed since {} after the start, when {}",
            format::moment(from, u64::MAX),
            app.came()
        ),
        _ => " allocated and freed in the time that is shown".into(),
    };
    let since = super::text::keep_start(&since, usize::from(parts.total.width)).into_owned();
    frame.render_widget(Line::from(since).dim(), parts.total);
}
