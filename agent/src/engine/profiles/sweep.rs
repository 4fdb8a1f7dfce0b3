//! Promotion of a profile's blocks.
//!
//! Young claims are pushed on `young`. When the cycle has turned, the list is put in the
//! place of `old`, from which each stop takes some. What is dead is taken off, what is of
//! a former cycle is promoted, what is of this one goes back to `young`. The dead wait on
//! a list for that, and hold their entries; so the lists are looked through too when
//! most of them are dead, which is paid for by as many deaths.

use super::Profiles;
use super::claim::{CLOSED, DYING, PROMOTE, PROMOTED, YOUNG};
use super::core::Core;
use crate::engine::Engine;
use crate::engine::domain::Domain;
use crate::engine::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// So many are looked at in one stop: more than can be born until the next.
pub const A_STOP: usize = 64;
/// As many dead are left alone.
const FEW_DEAD: u32 = 256;

impl Profiles {
    pub(super) fn push_young(&self, core: &Core, index: u32) {
        core.young_len.fetch_add(1, Relaxed);
        core.young.push(index, |i| self.claim(i).map(|c| &c.next_young));
    }

    /// Claim `index` was taken off a list of young ones for good.
    pub(super) fn off_young(&self, engine: &Engine, core: &Core, index: u32) {
        let Some(claim) = self.claim(index) else { return };
        core.young_len.fetch_sub(1, Relaxed);
        if claim.state.fetch_and(!YOUNG, AcqRel) & DYING != 0 {
            // May be a moment early: the count only says when it is time to look.
            let _ = core.young_dead.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_sub(1)));
        }
        self.settle(engine, index);
    }

    /// Looks at young claims of a profile that the caller holds, at most so many of them.
    pub(super) fn sweep(&self, engine: &Engine, d: &Domain, core: &Core, most: usize) {
        let cycle = engine.nursery.cycle(super::super::hook::clock(engine, d));
        let dead = core.young_dead.load(Relaxed);
        let crowded = dead > FEW_DEAD && dead > core.young_len.load(Relaxed) / 2;
        if (core.cycle.load(Relaxed) < cycle || crowded)
            && core.old.is_empty()
            && !core.turning.swap(true, Acquire)
        {
            // Only who turns puts something there, so empty it stays.
            if core.old.is_empty() {
                core.old.put(core.young.take());
                core.cycle.store(cycle, Relaxed);
            }
            core.turning.store(false, Release);
        }
        for _ in 0..most {
            if !engine.is_here() {
                return;
            }
            let next = core.old.pop(|i| self.claim(i).map(|c| &c.next_young));
            let Some(index) = next else { return };
            self.look_at(engine, d, core, index, cycle);
        }
    }

    fn look_at(&self, engine: &Engine, d: &Domain, core: &Core, index: u32, cycle: u64) {
        let Some(claim) = self.claim(index) else { return };
        core.counts.looked_at.fetch_add(1, Relaxed);
        let born = engine.tracker.birth_of(index).map_or(0, |b| engine.nursery.cycle(b.clock));
        if born >= cycle && claim.state.load(Acquire) & (DYING | CLOSED) == 0 {
            core.young.push(index, |i| self.claim(i).map(|c| &c.next_young));
            return;
        }
        // A free that comes first decides by the clock: see `death`.
        let promoted = self.raise(engine, d, index, claim, core.terms().prompt, |state| {
            let young = state & (DYING | CLOSED) == 0;
            young.then_some((state | PROMOTE | PROMOTED) & !YOUNG)
        });
        if promoted {
            core.young_len.fetch_sub(1, Relaxed);
        } else {
            self.off_young(engine, core, index);
        }
    }
}
