//! What happened since the viewer came: what lives are known of.

use super::by::Cut;
use super::{Session, Then};
use heaptop_protocol::totals::Totals;

impl Session {
    /// What was allocated, born young and promoted since the viewer came, until now, by a
    /// group, or by all that `cut` takes: the agent's totals less those of the first snapshot.
    /// What is in use is not counted. `None` before there was one, and of single blocks, of
    /// which the agent has no totals.
    #[must_use]
    pub fn counted_since_came(&self, cut: &Cut, group: Option<u32>) -> Option<Totals> {
        let base = self.base.as_ref().filter(|_| !cut.has_tests())?;
        let of_stack = |stack: u32| {
            let before = base.totals.binary_search_by_key(&stack, |(stack, _)| *stack);
            let before = before.map_or_else(|_| Totals::default(), |at| base.totals[at].1);
            since(&self.numbers[stack as usize].totals, &before)
        };
        let sum = |stacks: &mut dyn Iterator<Item = u32>| {
            let mut sum = Totals::default();
            stacks.filter(|&stack| cut.takes_stack(stack)).for_each(|s| sum.merge(&of_stack(s)));
            sum
        };
        Some(match group {
            Some(group) => sum(&mut self.book.groups().group(group).stacks().iter().copied()),
            None if cut.only.is_none() => since(&self.whole(), &base.whole),
            None => sum(&mut (0..self.numbers.len() as u32)),
        })
    }

    /// What was allocated, born young and promoted since the viewer came, until the moment of
    /// `then`, by a group, or by all: the totals of the moment less those of the first
    /// snapshot. What is in use is not counted.
    #[must_use]
    pub fn since_came(&self, then: &Then, group: Option<u32>) -> Totals {
        let mut base = Totals::default();
        let stacks = self.book.stacks();
        let cut = then.cut();
        // Of single blocks the totals of a moment are of none from before.
        let known = self.base.iter().filter(|_| !cut.has_tests());
        for (stack, totals) in known.flat_map(|base| &base.totals) {
            if cut.takes_stack(*stack)
                && group.is_none_or(|group| stacks[*stack as usize].group() == group)
            {
                base.merge(totals);
            }
        }
        let now = group.map_or_else(|| then.whole(), |group| then.group_totals(group));
        since(now, &base)
    }
}

/// What of totals came after they were `before`.
fn since(now: &Totals, before: &Totals) -> Totals {
    Totals {
        allocated: now.allocated.since(&before.allocated),
        minor: now.minor.since(&before.minor),
        promoted: now.promoted.since(&before.promoted),
        ..Totals::default()
    }
}
