//! What a profile has counted.

use crate::engine::profiles::Core;
use crate::engine::sync::Ordering::Relaxed;

/// Counts of one profile. While nothing is under way,
///
/// ```text
/// sampled = tracked + refused + dropped + waiting
/// tracked = live + deallocated + refused_at_promotion + discarded + lost
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Blocks sampled.
    pub sampled: u64,
    /// Blocks whose allocation callback returned something.
    pub tracked: u64,
    /// Blocks whose allocation callback returned nothing, or panicked; all of them with
    /// [`Track::Allocations`](super::Track::Allocations), since nothing is kept.
    pub refused: u64,
    /// Blocks whose allocation callback did not run: there was no room, the thread was
    /// unwinding (Prompt), or the profile was discarded before.
    pub dropped: u64,
    /// Blocks whose allocation callback has yet to run.
    pub waiting: u64,
    /// Promotion callbacks.
    pub promoted: u64,
    /// Blocks whose promotion callback returned nothing, or panicked.
    pub refused_at_promotion: u64,
    /// Deallocation callbacks.
    pub deallocated: u64,
    /// Blocks that were tracked when the profile was discarded.
    pub discarded: u64,
    /// Tracked blocks that were lost from sight: the place in which their address was
    /// kept was taken while a reallocation that failed was under way.
    pub lost: u64,
    /// Blocks that are tracked now.
    pub live: u64,
    /// Callbacks that ran.
    pub callbacks: u64,
    /// Of them, and of destructors of what they returned, those that panicked.
    pub panics: u64,
    /// Young blocks that were looked at for promotion, each time that one was.
    pub looked_at: u64,
    /// Bytes that the engine keeps for all profiles together.
    pub engine_bytes: u64,
}

impl Stats {
    pub(super) fn of(core: &Core, engine_bytes: usize) -> Self {
        let c = &core.counts;
        let [tracked, refused, dropped] =
            [&c.tracked, &c.refused, &c.dropped].map(|n| n.load(Relaxed));
        let [deallocated, refused_at_promotion, discarded, lost] =
            [&c.deallocated, &c.refused_at_promotion, &c.discarded, &c.lost]
                .map(|n| n.load(Relaxed));
        // Read last: it is counted first.
        let sampled = c.sampled.load(Relaxed);
        Self {
            sampled,
            tracked,
            refused,
            dropped,
            waiting: sampled.saturating_sub(tracked + refused + dropped),
            promoted: c.promoted.load(Relaxed),
            refused_at_promotion,
            deallocated,
            discarded,
            lost,
            live: tracked.saturating_sub(deallocated + refused_at_promotion + discarded + lost),
            callbacks: c.callbacks.load(Relaxed),
            panics: c.panics.load(Relaxed),
            looked_at: c.looked_at.load(Relaxed),
            engine_bytes: engine_bytes as u64,
        }
    }
}
