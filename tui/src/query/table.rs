//! The callsites screen's rows.

use super::select::Filter;
use super::sums::Sums;
use super::{Column, Question, Row, Table};
use crate::session::Session;
use crate::session::figures::{Estimate, Lifetime, Ratio};
use std::cmp::Ordering;

/// A row for each callsite that the question's filter takes, in its order.
#[must_use]
pub fn callsites(session: &Session, question: &Question) -> Table {
    let book = session.book();
    let filter = Filter::new(book, &question.filter);
    let mut rows = Vec::new();
    let (mut sums, mut total) = (Sums::default(), Sums::default());
    for (&callsite, stacks) in book.groups() {
        if !stacks.iter().any(|&at| filter.takes(&book.stacks()[at as usize])) {
            continue;
        }
        sums.clear();
        for &at in stacks {
            sums.add(session, at);
        }
        total.merge(&sums);
        let node = &book.nodes()[callsite as usize];
        rows.push(Row { key: node.key, label: node.label.clone(), figures: sums.figures(session) });
    }
    sort(&mut rows, question.sort, question.descending);
    Table { rows, total: total.figures(session), of: book.groups().len() }
}

fn sort(rows: &mut [Row], column: Column, descending: bool) {
    let by_name = |a: &Row, b: &Row| {
        let name = |row: &Row| (row.label.function.clone(), row.label.location.clone(), row.key);
        name(a).cmp(&name(b))
    };
    let directed = |order: Ordering| if descending { order.reverse() } else { order };
    if column == Column::Callsite {
        rows.sort_by(|a, b| directed(by_name(a, b)));
        return;
    }
    rows.sort_by(|a, b| {
        let order = match (key(a, column), key(b, column)) {
            (Some(a), Some(b)) => directed(a.total_cmp(&b)),
            // What is unknown comes last in either direction.
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        order.then_with(|| by_name(a, b))
    });
}

/// What a row is ordered by; `None` for unknown.
fn key(row: &Row, column: Column) -> Option<f64> {
    let f = &row.figures;
    match column {
        Column::Callsite => None,
        Column::InUseBytes => of_estimate(f.in_use_bytes),
        Column::InUseObjects => of_estimate(f.in_use_objects),
        Column::AllocatedBytes => of_estimate(f.allocated_bytes),
        Column::AllocatedObjects => of_estimate(f.allocated_objects),
        Column::AllocatedRate => of_estimate(f.allocated_rate),
        Column::ObjectRate => of_estimate(f.object_rate),
        Column::Promoted => of_ratio(f.promoted),
        Column::ShortLived => of_ratio(f.short_lived),
        Column::Lifetime => match f.lifetime {
            Lifetime::Unknown => None,
            Lifetime::Median { ns, .. } | Lifetime::Beyond { ns, .. } => Some(ns),
        },
        // Growth over the time shown.
        Column::Trend => Some(f.trend.last()? - f.trend.first()?),
    }
}

fn of_estimate(estimate: Estimate) -> Option<f64> {
    match estimate {
        Estimate::Unknown => None,
        Estimate::Exact { value } | Estimate::Interval { value, .. } => Some(value),
        // No sample: below everything that has one.
        Estimate::Below { .. } => Some(0.0),
        Estimate::AtLeast { low, .. } => Some(low),
    }
}

fn of_ratio(ratio: Ratio) -> Option<f64> {
    match ratio {
        Ratio::Unknown => None,
        Ratio::Interval { value, .. } => Some(value),
    }
}
