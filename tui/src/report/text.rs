//! A report for people: aligned to the terminal's width.

use super::{Cell, Column, Heading, Report};
use crate::calendar::Utc;
use crate::query::When;
use crate::view::format::{self, Rounding, Unit};
use crate::view::text;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Columns where there is no terminal.
pub const WIDTH: usize = 100;
/// The name's column is never narrower.
const NARROWEST: usize = 20;
/// A place takes no more than this,
const LOCATION: usize = 32;
/// and as much as its file and line, but no more than this, while anything is left out for it.
const FILE: usize = 24;
/// Damaged places that are named.
const DAMAGES: usize = 5;
/// What is left out where there is no room for all, first things first. Where something is
/// comes last: a name without it may be anybody's.
const LEAST: [&str; 25] = [
    "allocated_objects",
    "mean_lifetime_ns",
    "short_lived_share",
    "old_objects",
    "born_1_bytes",
    "born_2_bytes",
    "born_3_bytes",
    "born_4_bytes",
    "born_5_bytes",
    "born_6_bytes",
    "born_7_bytes",
    "born_before_bytes",
    "tid",
    "in_use_objects",
    "freed_elsewhere_share",
    "freed_elsewhere_bytes",
    "allocated_bytes_per_second",
    "promoted_bytes_per_second",
    "promoted_share",
    "median_lifetime_ns",
    "median_age_ns",
    "allocated_bytes",
    "cum_in_use_bytes",
    "promoted_bytes",
    "location",
];

/// Writes it, `width` columns wide as far as that can be.
pub fn write(report: &Report, width: usize, out: &mut dyn Write) -> io::Result<()> {
    for line in heading(&report.heading) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let cells = cells(report);
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
    let widest_place = place.map_or(0, |place| widths[place]);
    if let Some(place) = place {
        let file = |row: &Vec<String>| text::width(row[place].rsplit('/').next().unwrap_or(""));
        // With a sign for what is left out in front of it.
        widths[place] = cells.iter().map(|row| file(row) + 2).max().unwrap_or(0).min(FILE);
        widths[place] = widths[place].min(widest_place);
    }
    let rest = |columns: &[usize], widths: &[usize]| {
        columns.iter().skip(1).map(|&at| widths[at] + 2).sum::<usize>()
    };
    let mut left_out = Vec::new();
    for least in LEAST.into_iter().filter(|least| *least != report.sorted) {
        if rest(&columns, &widths) + NARROWEST.min(widths[0]) <= width {
            break;
        }
        columns.retain(|&at| {
            let kept = report.columns[at].id != least;
            if !kept && !title(at).is_empty() {
                left_out.push(in_full(&report.columns[at]));
            }
            kept
        });
    }
    widths[0] = widths[0].min(width.saturating_sub(rest(&columns, &widths)).max(NARROWEST));
    let left = width.saturating_sub(rest(&columns, &widths) + widths[0]);
    if let Some(place) = place {
        widths[place] = (widths[place] + left).min(widest_place);
    }
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
                    indent + &text::keep_label(cells[0].trim_start(), room)
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
        writeln!(
            out,
            "columns left out for want of room: {names}; --format json and csv have all"
        )?;
    }
    for note in &report.notes {
        writeln!(out, "{}", text::clean(note))?;
    }
    Ok(())
}

/// What a column is called away from its neighbours, where several may have one title.
fn in_full(column: &Column) -> &'static str {
    match column.id {
        "in_use_objects" => "objects in use",
        "allocated_objects" => "objects allocated",
        "old_objects" => "old objects",
        _ => column.title,
    }
}

/// What stands in all rows, and in the sum.
fn cells(report: &Report) -> Vec<Vec<String>> {
    let cell = |of: &Cell| cell(of, report.heading.span);
    report.rows.iter().chain(&report.total).map(|row| row.iter().map(cell).collect()).collect()
}

fn cell(cell: &Cell, span: Option<(u64, u64)>) -> String {
    match cell {
        Cell::Function(label, depth) => "  ".repeat(*depth) + &text::name(&label.function),
        Cell::Text(text) => text::clean(text).into_owned(),
        Cell::Estimate(estimate, unit) => format::estimate(estimate, *unit).to_string(),
        Cell::Share(ratio) => format::ratio(ratio).to_string(),
        Cell::Part(share) => format::cost(*share),
        Cell::Lifetime(lifetime) => format::lifetime(lifetime).to_string(),
        Cell::Change(change) => format::change(*change).to_string(),
        Cell::Followed(mean) => format::mean_life(mean).to_string(),
        Cell::Time(ns) => ns.map_or_else(|| format::UNKNOWN.to_owned(), |ns| moment(ns, span)),
        Cell::Bytes(bytes) => format::bytes(*bytes as f64, 3, Rounding::Nearest),
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
    let elapsed = |ns| moment(ns, heading.span);
    match heading.when {
        When::Now => {
            // How long it runs, whenever anybody came.
            let up = moment(heading.at_ns, Some((0, heading.at_ns)));
            let _ = write!(line, " · now, up {up}");
        }
        When::At(at) => {
            let _ = write!(line, " · at {}", elapsed(at));
        }
        When::Range { from_ns, to_ns } => {
            let _ = write!(line, " · from {} to {}", elapsed(from_ns), elapsed(to_ns));
        }
        When::Peak => {
            let _ = write!(line, " · at {}", elapsed(heading.at_ns));
        }
    }
    if heading.is_peak {
        line += ", the peak";
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
    for how in heading.damage.iter().take(DAMAGES) {
        lines.push(format!("damaged: {}", text::clean(how)));
    }
    if heading.damage.len() > DAMAGES {
        lines.push(format!("damaged: and in {} more places", heading.damage.len() - DAMAGES));
    }
    if let Some(how) = &heading.ended {
        lines.push(format!("ended: {}", text::clean(how)));
    }
    lines
}

/// Time since the target's start in the words of the screens, where moments of `span` can be
/// asked about.
#[must_use]
pub fn moment(ns: u64, span: Option<(u64, u64)>) -> String {
    format::moment(ns, span.map_or(u64::MAX, |(from, to)| to.saturating_sub(from)))
}
