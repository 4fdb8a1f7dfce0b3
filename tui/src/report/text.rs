//! A report for people: aligned to the terminal's width.

use super::{Cell, Heading, Report};
use crate::calendar::Utc;
use crate::query::When;
use crate::view::format::{self, Unit};
use crate::view::text;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Columns where there is no terminal.
pub const WIDTH: usize = 100;
/// The name's column is never narrower.
const NARROWEST: usize = 20;
/// A place takes no more than this.
const LOCATION: usize = 32;
/// What is left out where there is no room for all, first things first.
const LEAST: [&str; 7] = [
    "allocated_objects",
    "short_lived_share",
    "location",
    "in_use_objects",
    "allocated_bytes_per_second",
    "median_lifetime_ns",
    "promoted_share",
];

/// Writes it, `width` columns wide as far as that can be.
pub fn write(report: &Report, width: usize, out: &mut dyn Write) -> io::Result<()> {
    for line in heading(&report.heading) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let cells: Vec<Vec<String>> =
        report.rows.iter().chain(&report.total).map(|row| row.iter().map(cell).collect()).collect();
    // A column in which nothing stands takes no room.
    let mut columns: Vec<usize> = (0..report.columns.len())
        .filter(|&at| at == 0 || cells.iter().any(|row| !row[at].is_empty()))
        .collect();
    let title = |at: usize| report.columns[at].title;
    let place = report.columns.iter().position(|column| column.id == "location");
    let widest = |at: usize| {
        let cells = cells.iter().map(|row| text::width(&row[at])).max().unwrap_or(0);
        let most = if Some(at) == place { LOCATION } else { usize::MAX };
        cells.max(text::width(title(at))).min(most)
    };
    let mut widths: Vec<usize> = (0..report.columns.len()).map(widest).collect();
    let rest = |columns: &[usize]| columns.iter().skip(1).map(|&at| widths[at] + 2).sum::<usize>();
    let mut left_out = Vec::new();
    for least in LEAST {
        if rest(&columns) + NARROWEST.min(widths[0]) <= width {
            break;
        }
        columns.retain(|&at| {
            let kept = report.columns[at].id != least;
            if !kept && !title(at).is_empty() {
                left_out.push(title(at));
            }
            kept
        });
    }
    widths[0] = widths[0].min(width.saturating_sub(rest(&columns)).max(NARROWEST));
    let line = |of: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for &at in &columns {
            let content = of(at);
            let room = widths[at].saturating_sub(text::width(&content));
            // Names stand to the left, figures to the right.
            if at == 0 || Some(at) == place {
                line.push_str(&content);
                line.extend(std::iter::repeat_n(' ', room));
            } else {
                line.extend(std::iter::repeat_n(' ', room));
                line.push_str(&content);
            }
            line.push_str("  ");
        }
        line.trim_end().to_owned()
    };
    if cells.len() > usize::from(report.total.is_some()) {
        writeln!(out, "{}", line(&|at| title(at).to_owned()))?;
        let rows = report.rows.iter().chain(&report.total);
        for (row, cells) in rows.zip(&cells) {
            let fitted = |at: usize| match &row[at] {
                Cell::Function(_, depth) if at == 0 => {
                    let indent =
                        "  ".repeat(*depth).chars().take(widths[0] / 2).collect::<String>();
                    let room = widths[0].saturating_sub(indent.len());
                    indent + &text::keep_name(cells[0].trim_start(), room)
                }
                _ if at == 0 => text::keep_start(&cells[0], widths[0]).into_owned(),
                _ if Some(at) == place => text::keep_path(&cells[at], widths[at]).into_owned(),
                _ => cells[at].clone(),
            };
            writeln!(out, "{}", line(&fitted))?;
        }
    } else {
        let why = if report.heading.filter.is_empty() {
            "nothing is known here"
        } else {
            "no row fits this filter"
        };
        writeln!(out, "{why}")?;
    }
    if report.len > report.rows.len() {
        let (shown, len) = (format::grouped(report.rows.len()), format::grouped(report.len));
        writeln!(out, "{shown} of {len} rows")?;
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        writeln!(out, "left out for want of room: {names}; --format json and csv have all")?;
    }
    for note in &report.notes {
        writeln!(out, "{}", text::clean(note))?;
    }
    Ok(())
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Function(label, depth) => "  ".repeat(*depth) + &text::name(&label.function),
        Cell::Text(text) => text::clean(text).into_owned(),
        Cell::Estimate(estimate, unit) => format::estimate(estimate, *unit).to_string(),
        Cell::Share(ratio) => format::ratio(ratio).to_string(),
        Cell::Part(share) => format::cost(*share),
        Cell::Lifetime(lifetime) => format::lifetime(lifetime).to_string(),
        Cell::Change(change) => format::change(*change).to_string(),
        Cell::Followed(mean) => format::mean_life(mean).to_string(),
        Cell::Number(number) => {
            number.map_or_else(|| format::UNKNOWN.to_owned(), |number| number.to_string())
        }
        Cell::Mark(true, word) => (*word).into(),
        Cell::Mark(false, _) => String::new(),
    }
}

fn heading(heading: &Heading) -> Vec<String> {
    let mut line = text::name(&heading.target).into_owned();
    if let Some(pid) = heading.pid {
        let _ = write!(line, " · pid {pid}");
    }
    match heading.when {
        When::Now => {
            let _ = write!(line, " · now, up {}", elapsed(heading.at_ns));
        }
        When::At(at) => {
            let _ = write!(line, " · at {}", elapsed(at));
        }
        When::Range { from_ns, to_ns } => {
            let _ = write!(line, " · from {} to {}", elapsed(from_ns), elapsed(to_ns));
        }
        When::Peak => {
            let _ = write!(line, " · peak, at {}", elapsed(heading.at_ns));
        }
    }
    if heading.started_unix_ns > 0 {
        let at = heading.started_unix_ns.saturating_add(heading.at_ns);
        let _ = write!(line, " ({})", Utc::of_ns(at));
    }
    if let Some(r) = heading.interval_bytes {
        let _ = write!(line, " · sampled {}", format::interval(r));
    }
    let mut lines = vec![line];
    let lost = [
        (heading.lost_births, "births lost in the target"),
        (heading.lost_stacks, "births without a callstack"),
        (heading.lost_events, "events did not arrive"),
        (u64::from(heading.thinned), "times thinned at the memory bound"),
    ];
    let lost: Vec<String> =
        lost.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !lost.is_empty() {
        lines.push(format!("lost: {}", lost.join(", ")));
    }
    if let Some((in_use, allocated)) = &heading.unattributed {
        lines.push(format!(
            "unattributed: in use {}, allocated {}",
            format::estimate(in_use, Unit::Bytes),
            format::estimate(allocated, Unit::Bytes)
        ));
    }
    if !heading.filter.is_empty() {
        lines.push(format!("filter: {}", text::clean(&heading.filter)));
    }
    if let Some(how) = &heading.ended {
        lines.push(format!("ended: {}", text::clean(how)));
    }
    lines
}

/// Time since the target's start, to the tenth of a second.
#[must_use]
pub fn elapsed(ns: u64) -> String {
    let tenths = ns / 100_000_000;
    let (h, m, s) = (tenths / 36_000, tenths / 600 % 60, tenths % 600);
    let seconds = if s.is_multiple_of(10) {
        format!("{} s", s / 10)
    } else {
        format!("{}.{} s", s / 10, s % 10)
    };
    match (h, m) {
        (0, 0) => seconds,
        (0, m) => format!("{m} min {seconds}"),
        (h, m) => format!("{h} h {m} min {seconds}"),
    }
}
