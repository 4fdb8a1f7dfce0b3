//! What is old and alive, what grew, and when a limit is reached.

use super::text::moment;
use super::views::{FUNCTION, LOCATION, came, column, made, names, recorded, sum};
use super::{Asked, Cell, Column, Report};
use crate::query::{self, LeakColumn, LeakFigures, LeakList, LeakRow, Leaks, MOST_GENERATIONS};
use crate::query::{Sorted, When};
use crate::session::Session;
use crate::view::format::{self, Rounding, Unit};
use crate::view::leaks::{limit_of, no_forecast};

/// Bytes in use by when they were born, the oldest first.
const GENERATIONS: [Column; MOST_GENERATIONS] = [
    column("born_before_bytes", "born before"),
    column("born_1_bytes", "born 1"),
    column("born_2_bytes", "born 2"),
    column("born_3_bytes", "born 3"),
    column("born_4_bytes", "born 4"),
    column("born_5_bytes", "born 5"),
    column("born_6_bytes", "born 6"),
    column("born_7_bytes", "born 7"),
];

pub(super) fn leaks(session: &Session, asked: &Asked) -> Report {
    let mark = query::last_mark(session, asked.when.end_ns(session.now_ns()));
    let base = mark.map(|mark| (mark.at.time_ns, Some(&*mark.label)));
    as_shown(session, asked, base, Sorted::default())
}

/// As a screen asks for them: growth counted from this moment, which may be a mark's, in its
/// order.
#[must_use]
pub fn as_shown(
    session: &Session,
    asked: &Asked,
    base: Option<(u64, Option<&str>)>,
    order: Sorted<LeakColumn>,
) -> Report {
    let mut columns = vec![
        FUNCTION,
        LOCATION,
        column("old_bytes", "old"),
        column("old_objects", "objects"),
        column("median_age_ns", "age"),
        column("growth_bytes", "growth"),
        column("grew", ""),
        column("in_use_bytes", "in use"),
    ];
    let from = base.map(|(at, _)| at);
    let list = LeakList::sorted(session, asked.when, from, &asked.filter, order);
    let Some(leaks) = list.map(|list| list.rows(0..asked.top)) else {
        return made(session, asked, columns, Vec::new(), None, 0);
    };
    columns.extend(GENERATIONS.iter().take(leaks.generations.len()));
    let cells = |figures: &LeakFigures| {
        let mut cells = vec![
            Cell::Estimate(figures.old_bytes, Unit::Bytes),
            Cell::Estimate(figures.old_objects, Unit::Objects),
            Cell::Lifetime(figures.median_age),
            Cell::Change(figures.growth),
            Cell::Mark(figures.grew, "grew"),
            Cell::Estimate(figures.in_use_bytes, Unit::Bytes),
        ];
        cells.extend(figures.generations.iter().map(|of| Cell::Estimate(*of, Unit::Bytes)));
        cells
    };
    let row = |row: &LeakRow| [names(&row.label).to_vec(), cells(&row.figures)].concat();
    let rows = leaks.rows.iter().map(row).collect();
    let total = [sum().to_vec(), cells(&leaks.total)].concat();
    let mut report = made(session, asked, columns, rows, Some(total), leaks.len);
    let label = base.and_then(|(_, label)| label);
    report.notes.extend(about_leaks(session, asked, &leaks, label));
    if leaks.len > 1 && order == Sorted::default() {
        let said = "order: what grew with evidence, by how much; then the others, by old";
        report.notes.push(said.into());
    }
    report
}

/// Who has watched for less has seen nothing grow.
const SHORT_NS: u64 = 10_000_000_000;

/// What old, growth and generations are of, and the forecast.
fn about_leaks(session: &Session, asked: &Asked, leaks: &Leaks, mark: Option<&str>) -> Vec<String> {
    let elapsed = |ns| moment(ns, session.span());
    let long = |ns| format::duration(ns as f64, 2, Rounding::Nearest);
    let since = match (asked.when, mark) {
        (When::Range { .. }, _) => String::new(),
        (_, Some(mark)) => format!(" (since “{mark}”)"),
        (_, None) => format!(" (since {})", came(session)),
    };
    // Where no time has passed all that lives is old.
    let older = match leaks.older_than_ns {
        0 => "of any age".to_owned(),
        ns => format!("for more than {}", long(ns)),
    };
    let mut notes = vec![format!(
        "old: alive at {}, {older}; growth from {} to {}{since}, “grew” where it is more \
         than chance, of all callsites together in 95 % of cases",
        elapsed(leaks.to_ns),
        elapsed(leaks.from_ns),
        elapsed(leaks.to_ns),
    )];
    let watched_ns = leaks.to_ns.saturating_sub(leaks.from_ns);
    if !recorded(session) && asked.when == When::Now && watched_ns < SHORT_NS {
        let watched = match watched_ns {
            0 => "not watched yet".to_owned(),
            ns => format!("watched {}", long(ns)),
        };
        notes.push(format!("{watched}: growth needs longer: --for 10s, or a recording"));
    }
    let born = leaks.generations.iter().enumerate().skip(1).map(|(at, generation)| {
        let mark = generation.mark.as_ref().map(|mark| format!(" after “{mark}”"));
        let (from, to) = (elapsed(generation.from_ns), elapsed(generation.to_ns));
        format!("{at}{} from {from} to {to}", mark.unwrap_or_default())
    });
    let born: Vec<String> = born.collect();
    if !born.is_empty() {
        notes.push(format!("in use by when it was born: {}", born.join("; ")));
    }
    let system = asked.memory.filter(|_| asked.when == When::Now);
    let limits = query::limits(leaks, asked.limit, system);
    match leaks.no_forecast() {
        Some(why) => notes.push(format!("reaches: {}", no_forecast(why)[0])),
        None if limits.is_empty() => {
            notes.push("reaches: – no limit is known: --limit sets one".into());
        }
        None => {}
    }
    let reached = limits.iter().filter(|limit| limit.forecast.is_some()).take(2);
    notes.extend(reached.map(|limit| format!("reaches: {}", limit_of(limit, &asked.filter)[0])));
    notes
}
