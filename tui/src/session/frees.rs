//! Who frees what: callstacks of frees, by the callstack that allocated.
//!
//! Agents tell them only while a viewer wants them, so they are those of a stretch of
//! time, and of sampled blocks; each stands for what its block stood for.

use super::Session;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::message::FreeStacks;
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;

/// Most pairs of callstacks that are told apart: some 20 MB. A program has few.
const MOST_PAIRS: usize = 1 << 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Frees {
    /// By allocating and by freeing callstack, places in the session.
    pairs: FxHashMap<(u32, u32), Total>,
    /// Of pairs that found no room.
    others: Total,
}

impl Frees {
    /// A block that stands for `weight` was allocated by one callstack and freed by
    /// another.
    pub fn add(&mut self, allocated: u32, freed: u32, weight: &Weight) {
        let full = self.pairs.len() >= MOST_PAIRS;
        match self.pairs.get_mut(&(allocated, freed)) {
            Some(total) => total.add(weight),
            None if full => self.others.add(weight),
            None => self.pairs.entry((allocated, freed)).or_default().add(weight),
        }
    }

    /// Callstacks that allocated and that freed, with what the blocks stood for.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, &Total)> + '_ {
        self.pairs.iter().map(|((allocated, freed), total)| (*allocated, *freed, total))
    }

    /// Of pairs that found no room.
    #[must_use]
    pub const fn others(&self) -> &Total {
        &self.others
    }

    /// Whether any was told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl Session {
    /// Who is about to free blocks that live.
    pub(super) fn freed_by(&mut self, told: &FreeStacks) {
        for free in &told.frees {
            let stack = self.stack(free.stack);
            if let Some(block) = self.blocks.get(free.id) {
                self.frees.add(block.stack, stack, &block.weight());
            }
        }
    }

    /// Who freed what, as far as it was told.
    #[must_use]
    pub const fn frees(&self) -> &Frees {
        &self.frees
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::estimate::Interval;

    #[test]
    fn beyond_the_bound_nothing_is_lost() {
        let mut frees = Frees::default();
        let weight = Interval::EXACT.weight(8);
        for freed in 0..MOST_PAIRS as u32 + 10 {
            frees.add(1, freed, &weight);
        }
        frees.add(1, 0, &weight);
        assert_eq!(frees.iter().count(), MOST_PAIRS);
        assert_eq!(frees.others().n, 10);
        let first = frees.iter().find(|(_, freed, _)| *freed == 0).map(|(.., total)| total.n);
        assert_eq!(first, Some(2));
    }
}
