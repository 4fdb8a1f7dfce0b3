//! The table, and what is wrong with it.
//!
//! A row for each figure and size mix; under each condition the four numbers of
//! expected samples, in percent. `b` marks cells in which most claims are bounds, `w` those that are widened by the
//! blur of the allocation clock, `–`
//! those in which hardly anything was claimed, `!` those that miss the demand.

use super::cell::{Outcome, Tally};
use super::figures::Figure;
use super::program::{Condition, Mix};
use super::{EXPECTED, Shape};
use std::fmt::Write;

/// What is demanded of a cell's coverage.
#[must_use]
pub fn demand(shape: Shape, figure: Figure, tally: &Tally) -> (f64, f64) {
    let open = shape.expected < 30 || tally.is_bound() || is_widened(shape, figure);
    (0.93, if open { 1.0 } else { 0.97 })
}

/// Whether intervals are wider than chance alone asks for, and meant to be.
const fn is_widened(shape: Shape, figure: Figure) -> bool {
    figure.is_blurred() && shape.condition.is_blurred()
}

/// Whether a cell does as demanded, give or take `slack`.
#[must_use]
pub fn is_good(outcome: &Outcome, figure: Figure, slack: f64) -> bool {
    let tally = &outcome.tallies[figure as usize];
    let (least, most) = demand(outcome.shape, figure, tally);
    tally
        .coverage(outcome.runs)
        .is_none_or(|coverage| (least - slack..=most + slack).contains(&coverage))
}

const fn name(mix: Mix) -> &'static str {
    match mix {
        Mix::Fixed => "fixed",
        Mix::LogNormal => "log-normal",
        Mix::Pareto => "Pareto",
    }
}

const fn title(condition: Condition) -> &'static str {
    match condition {
        Condition::Plain => "one R, one thread",
        Condition::Changing => "R changes tenfold",
        Condition::Threads => "threads unequal",
        Condition::Both => "both",
    }
}

/// The whole table.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    let _ = write!(out, "{:<30}", "");
    for condition in Condition::ALL {
        let _ = write!(out, "| {:<23}", title(condition));
    }
    let _ = write!(out, "\n{:<30}", "expected samples");
    for _ in Condition::ALL {
        out.push('|');
        for expected in EXPECTED {
            let _ = write!(out, "{expected:>5} ");
        }
    }
    out.push('\n');
    for figure in Figure::ALL {
        for mix in Mix::ALL {
            let _ = write!(out, "{:<19}{:<11}", figure.name(), name(mix));
            for condition in Condition::ALL {
                out.push('|');
                for expected in EXPECTED {
                    let shape = Shape { mix, condition, expected };
                    let outcome = outcomes.iter().find(|outcome| outcome.shape == shape);
                    out.push_str(&outcome.map_or("      ".into(), |o| cell(o, figure)));
                }
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
    out
}

fn cell(outcome: &Outcome, figure: Figure) -> String {
    let tally = &outcome.tallies[figure as usize];
    let Some(coverage) = tally.coverage(outcome.runs) else { return "    – ".into() };
    let mark = if !is_good(outcome, figure, 0.0) {
        '!'
    } else if tally.is_bound() {
        'b'
    } else if is_widened(outcome.shape, figure) {
        'w'
    } else {
        ' '
    };
    format!("{:>5.1}{mark}", coverage * 100.0)
}

/// The cells that miss the demand by more than `slack`, a line each.
#[must_use]
pub fn misses(outcomes: &[Outcome], slack: f64) -> Vec<String> {
    let mut misses = Vec::new();
    for outcome in outcomes {
        for figure in Figure::ALL.into_iter().filter(|figure| !is_good(outcome, *figure, slack)) {
            let tally = outcome.tallies[figure as usize];
            let Shape { mix, condition, expected } = outcome.shape;
            misses.push(format!(
                "{}, {}, {}, {expected} samples: {} of {} right, {} times the truth was below, {} bounds",
                figure.name(),
                name(mix),
                title(condition),
                tally.right,
                tally.claims,
                tally.below,
                tally.bounds,
            ));
        }
    }
    misses
}
