//! What happened since the viewer came: what lives are known of.

use super::{Session, Then};
use heaptop_protocol::totals::Totals;

impl Session {
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
        Totals {
            allocated: now.allocated.since(&base.allocated),
            minor: now.minor.since(&base.minor),
            promoted: now.promoted.since(&base.promoted),
            ..Totals::default()
        }
    }
}
