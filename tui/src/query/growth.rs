//! Which callsites grew over a stretch of time, and which of them with evidence.

use super::filter::Selection;
use super::{Label, NodeKey, When};
use crate::session::figures::{Change, Estimate};
use crate::session::{Session, estimate};
use heaptop_protocol::totals::Total;

/// A callsite in a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// By how many bytes it grew.
    pub change: Change,
    /// Bytes in use at the end.
    pub in_use_bytes: Estimate,
    /// Whether it grew with evidence: of all callsites of the target that are said to
    /// have grown, the chance that even one has not is 5 % at most.
    pub grew: bool,
}

/// Growth over a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Those that grew with evidence first, then by how much.
    pub rows: Vec<Grown>,
    /// Of all rows together.
    pub total: Change,
    /// The range, in nanoseconds since the agent's start.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// Growth from one time to another, in nanoseconds since the agent's start, of the
/// callsites that `filter` takes. `None` where the range begins before the viewer came.
#[must_use]
pub fn growth(session: &Session, from_ns: u64, to_ns: u64, filter: &str) -> Option<Growth> {
    let range = When::Range { from_ns, to_ns }.until(session.now_ns());
    let When::Range { from_ns, to_ns } = range else { return None };
    let selection = Selection::of(session, filter);
    let then = session.then_by(range, &selection.by_group())?;
    let sight = then.sight_of_growth();
    let book = session.book();
    // A callsite without a sample in either set says nothing, and needs no share of the
    // error.
    let changed: Vec<u32> = book
        .groups()
        .iter()
        .map(|(group, _)| group)
        .filter(|&group| then.group_growth(group).is_some_and(|(g, l)| g.n + l.n > 0))
        .collect();
    let sets = |group: u32| then.group_growth(group);
    let grew = then.grew();
    let (mut gains, mut losses) = (Total::default(), Total::default());
    then.growth()?;
    let mut rows = Vec::new();
    for &group in &changed {
        let grew = grew.get(group as usize).is_some_and(|grew| *grew);
        let of = book.groups().group(group);
        if !selection.takes_any_of(group) {
            continue;
        }
        let Some((gained, lost)) = sets(group) else { continue };
        gains.merge(gained);
        losses.merge(lost);
        let node = &book.nodes()[of.callsite() as usize];
        let in_use = &then.group_totals(group).in_use;
        rows.push(Grown {
            key: node.key,
            label: node.label.clone(),
            change: estimate::change::growth(gained, lost, sight),
            in_use_bytes: estimate::bytes(in_use, then.sight_of_in_use()),
            grew,
        });
    }
    rows.sort_by(|a, b| {
        let by = |row: &Grown| (row.grew, row.change.point().unwrap_or(f64::NEG_INFINITY));
        let ((a_grew, a_by), (b_grew, b_by)) = (by(a), by(b));
        b_grew
            .cmp(&a_grew)
            .then(b_by.total_cmp(&a_by))
            .then_with(|| a.label.function.cmp(&b.label.function))
            .then(a.key.cmp(&b.key))
    });
    let total = estimate::change::growth(&gains, &losses, sight);
    Some(Growth { rows, total, from_ns, to_ns })
}
