//! Generations: blocks that live, by when they were born.

use super::bounds::Bounds;
use super::weights::Weights;
use super::{Session, When};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::Total;

/// By group, the blocks alive at the end by the stretch of time that they were born in: the
/// first until `ends_us[0]`, the next from then until `ends_us[1]`, the last after all. Of
/// groups without blocks there is none.
pub fn of(session: &Session, bounds: &Bounds, ends_us: &[u64]) -> Vec<Vec<Total>> {
    let mut groups: Vec<Vec<Total>> = vec![Vec::new(); session.book.groups().numbers()];
    if bounds.when == When::Peak || !bounds.in_use {
        return groups;
    }
    let stacks = session.book.stacks();
    let mut weights = Weights::new();
    let mut take = |stack: u32, born_us: u64, weight: &Weight| {
        let group = stacks.get(stack as usize).and_then(|s| groups.get_mut(s.group() as usize));
        if let Some(group) = group {
            if group.is_empty() {
                group.resize(ends_us.len() + 1, Total::default());
            }
            group[ends_us.partition_point(|&end| end < born_us)].add(weight);
        }
    };
    for life in session.lives.within(0, bounds.end_us, bounds.end_us) {
        take(life.stack, life.born_us, weights.of(life.interval, life.size));
    }
    for (_, block) in session.blocks.iter() {
        if block.born_ns / 1000 <= bounds.end_us {
            take(block.stack, block.born_ns / 1000, weights.of(block.interval, block.size));
        }
    }
    groups
}
