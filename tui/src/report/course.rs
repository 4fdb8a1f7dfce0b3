//! What the program said of its own course: phases, marks, memory outside the heap.

use super::views::{callsites, column, made};
use super::{Asked, Cell, Column, Report};
use crate::session::Session;

const COLUMNS: [Column; 5] = [
    column("name", "name"),
    column("kind", ""),
    column("from_ns", "from"),
    column("to_ns", "to"),
    column("clock_bytes", "allocated before"),
];

/// Phases and marks, in order of time; what the program says of itself stands below.
pub fn course(session: &Session, asked: &Asked) -> Report {
    let kept = |name: &str| asked.filter.is_empty() || name.contains(&asked.filter);
    let phases = session
        .phases()
        .into_iter()
        .map(|stretch| (stretch.from_ns, stretch.name, "phase", stretch.to_ns, stretch.from_clock));
    let marks = session.marks().iter().map(|mark| {
        (mark.at.time_ns, mark.label.clone(), "mark", Some(mark.at.time_ns), mark.at.clock)
    });
    let mut rows: Vec<_> = phases.chain(marks).filter(|row| kept(&row.1)).collect();
    rows.sort_by_key(|row| row.0);
    let len = rows.len();
    let rows = rows.into_iter().rev().take(asked.top).rev();
    let rows = rows
        .map(|(from_ns, name, kind, to_ns, clock)| {
            vec![
                Cell::Text(name),
                Cell::Text(kind.into()),
                Cell::Time(Some(from_ns)),
                Cell::Time(to_ns),
                Cell::Bytes(clock),
            ]
        })
        .collect();
    let mut report = made(session, asked, COLUMNS.to_vec(), rows, None, len);
    report.notes.extend(session.context().map(|label| format!("the program says it is: {label}")));
    report
}

/// Memory outside the heap, by what the program calls it: a callsite each.
pub fn external(session: &Session, asked: &Asked) -> Report {
    let all = Asked { filter: format!("cause:external {}", asked.filter), ..asked.clone() };
    let mut report = callsites(session, &all);
    report.heading.filter.clone_from(&asked.filter);
    report
}
