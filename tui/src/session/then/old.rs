//! Blocks that are alive and not young any more: where leaks are.

use super::bounds::Bounds;
use super::weights::Weights;
use super::{Session, When};
use crate::session::estimate::survival::bucket;
use crate::session::lifetimes::{Ages, Turn};
use heaptop_protocol::totals::Total;

/// The old blocks of one group.
#[derive(Debug, Clone, Default)]
pub struct OfGroup {
    /// What they stand for.
    pub in_use: Total,
    /// How old they are.
    pub ages: Ages,
}

/// By group, the blocks alive at the end that were born until `born_until_us`.
pub fn of(session: &Session, bounds: &Bounds, born_until_us: u64) -> Vec<OfGroup> {
    let mut groups = vec![OfGroup::default(); session.book.groups().numbers()];
    if bounds.when == When::Peak || !bounds.in_use {
        return groups;
    }
    let stacks = session.book.stacks();
    let mut weights = Weights::new();
    let mut take = |stack: u32, born_us: u64, weight: &heaptop_protocol::estimate::Weight| {
        let group = stacks.get(stack as usize).and_then(|s| groups.get_mut(s.group() as usize));
        if let Some(group) = group {
            group.in_use.add(weight);
            let age = bucket((bounds.end_us - born_us).saturating_mul(1000));
            group.ages.add(None, (Turn::Death, age), weight.objects);
        }
    };
    let born = born_until_us.min(bounds.end_us);
    for life in session.lives.within(0, bounds.end_us, born) {
        take(life.stack, life.born_us, weights.of(life.interval, life.size));
    }
    for (_, block) in session.blocks.iter() {
        if block.born_ns / 1000 <= born {
            take(block.stack, block.born_ns / 1000, weights.of(block.interval, block.size));
        }
    }
    groups
}
