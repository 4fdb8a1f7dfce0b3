//! What is born young, and what of it survives.

use super::numbers::{Numbers, Part};
use super::select::Filter;
use super::sums::Sums;
use super::{Label, NodeKey, When};
use crate::session::estimate::survival::Table;
use crate::session::figures::{Estimate, Lifetime, Ratio};
use crate::session::{Session, estimate};
use std::cmp::Reverse;

/// Figures of blocks that were born young, in cycles that are over.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotion {
    /// Bytes of them.
    pub minor_bytes: Estimate,
    /// Bytes of those that survived their cycle.
    pub promoted_bytes: Estimate,
    /// Their share.
    pub promoted: Ratio,
    /// The rest.
    pub short_lived: Ratio,
    /// Median lifetime, of all blocks.
    pub lifetime: Lifetime,
}

/// Callsites by what is born young.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotions {
    /// Most bytes born young first.
    pub rows: Vec<(NodeKey, Label, Promotion)>,
    /// Of all rows that there are.
    pub total: Promotion,
    /// How many rows there are.
    pub len: usize,
}

impl Promotion {
    fn of(sums: &Sums, numbers: &Numbers<'_>, lifetime: Lifetime) -> Self {
        let Some(sight) = numbers.sight(Part::Allocated) else {
            return Self {
                minor_bytes: Estimate::Unknown,
                promoted_bytes: Estimate::Unknown,
                promoted: Ratio::Unknown,
                short_lived: Ratio::Unknown,
                lifetime,
            };
        };
        let (minor, promoted) = (&sums.totals.minor, &sums.totals.promoted);
        let share = estimate::share(promoted, minor);
        Self {
            minor_bytes: estimate::bytes(minor, sight),
            promoted_bytes: estimate::bytes(promoted, sight),
            promoted: share,
            short_lived: estimate::complement(share),
            lifetime,
        }
    }
}

/// The first `most` of the callsites that `filter` takes and that have blocks born young.
#[must_use]
pub fn promotion(session: &Session, filter: &str, when: When, most: usize) -> Promotions {
    let numbers = Numbers::of(session, when);
    let (book, filter) = (session.book(), Filter::new(session.book(), filter));
    let mut taken = vec![false; book.groups().numbers()];
    let mut rows: Vec<(Reverse<u64>, &Label, u32)> = book
        .groups()
        .iter()
        .filter(|(_, group)| group.stacks().iter().any(|&stack| filter.takes(stack)))
        .filter_map(|(at, group)| {
            let minor = &numbers.group(at).minor;
            let label = &book.nodes()[group.callsite() as usize].label;
            // Sums are not negative: their bits are in their order.
            (minor.n > 0).then(|| (Reverse(minor.bytes.sum.to_bits()), label, at))
        })
        .collect();
    rows.sort_by(|a, b| (a.0, &a.1.function, a.2).cmp(&(b.0, &b.1.function, b.2)));
    for (_, _, group) in &rows {
        taken[*group as usize] = true;
    }
    let of_all = numbers.lifetime_of(Some(&mut rows.iter().map(|(_, _, group)| *group)));
    let total = Promotion::of(&numbers.of_groups(&taken), &numbers, of_all);
    let len = rows.len();
    let mut table = Table::default();
    let rows = rows.into_iter().take(most).map(|(_, label, group)| {
        let lifetime = numbers.lifetime(group, &mut table);
        let key = book.nodes()[book.groups().group(group).callsite() as usize].key;
        (key, label.clone(), Promotion::of(&numbers.of_group(group), &numbers, lifetime))
    });
    Promotions { rows: rows.collect(), total, len }
}
