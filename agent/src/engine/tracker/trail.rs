//! Where a thread's births and deaths were lately: what lets the agent's thread look ahead
//! in lists.
//!
//! The lists of births and deaths go through entries that other cores have written. Who
//! walks such a list waits for each line, and cannot ask for the next one before the
//! present one has come. So each entry also tells the one that was put on the list
//! [`AHEAD`] turns before it: that many lines come at once.
//!
//! These are hints. They are kept for a few groups of threads, in plain atomics that
//! threads of one group write over each other's: what is lost is a line's early arrival.

use super::super::region::{Region, Zeroable};
// Not the engine's: no answer depends on these, and there is nothing in them to model.
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Entries between one and the one that it tells; a power of two, as the next one.
const AHEAD: usize = 8;
/// Groups of threads.
const GROUPS: usize = 16;

/// The links that came last, in a line of their own.
#[repr(C, align(64))]
#[derive(Default)]
struct Trail {
    turn: AtomicU32,
    links: [AtomicU32; AHEAD],
}

// SAFETY: atomics only, for which zero bytes are 0.
unsafe impl Zeroable for Trail {}

impl Trail {
    /// Puts a link down, and gives the one [`AHEAD`] turns ago; 0 for none.
    #[inline]
    fn step(&self, link: u32) -> u32 {
        let turn = self.turn.load(Relaxed);
        self.turn.store(turn.wrapping_add(1), Relaxed);
        let at = &self.links[turn as usize % AHEAD];
        let before = at.load(Relaxed);
        at.store(link, Relaxed);
        before
    }
}

/// See the module.
pub struct Trails(&'static [Trail]);

impl Trails {
    /// Bytes of a region that they take.
    pub const BYTES: usize = 2 * GROUPS * size_of::<Trail>();

    pub fn new(region: &mut Region) -> Option<Self> {
        Some(Self(region.slice(2 * GROUPS)?))
    }

    /// Thread `thread` puts this link on the list of births: the one it put there
    /// [`AHEAD`] turns ago.
    #[inline]
    pub fn birth(&self, thread: u32, link: u32) -> u32 {
        self.step(thread as usize % GROUPS, link)
    }

    /// The same for deaths.
    #[inline]
    pub fn death(&self, thread: u32, link: u32) -> u32 {
        self.step(GROUPS + thread as usize % GROUPS, link)
    }

    #[inline]
    fn step(&self, at: usize, link: u32) -> u32 {
        self.0.get(at).map_or(0, |trail| trail.step(link))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_link_tells_the_one_some_turns_before_of_its_own_list_and_group() {
        let mut region = Region::new(1 << 16).unwrap();
        let trails = Trails::new(&mut region).unwrap();
        let ahead = AHEAD as u32;
        for turn in 1..=3 * ahead {
            let before = turn.saturating_sub(ahead);
            assert_eq!(trails.birth(3, turn), before, "births, turn {turn}");
            assert_eq!(trails.death(3, 1000 + turn), if before == 0 { 0 } else { 1000 + before });
            assert_eq!(trails.birth(4, 2000 + turn), if before == 0 { 0 } else { 2000 + before });
        }
    }
}
