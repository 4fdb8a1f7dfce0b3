//! Interned callstacks: each distinct one is stored once and then named by a
//! number.
//!
//! A table of fingerprints, open addressing, nothing ever removed. A thread
//! that finds its stack's 64-bit fingerprint has its id. One that finds an empty
//! slot takes it by compare-and-swap, copies its frames into the arena and then
//! publishes where they lie. Others with the same stack need not wait for that:
//! the id is the slot's number. The reader on the agent's thread takes up a
//! stack when it is published.
//!
//! Two stacks with one fingerprint would be taken for one: with 2¹⁶ stacks the
//! chance that this happens at all is 10⁻¹⁰.
//!
//! A stack that finds no slot, or whose frames find no room, is number 0,
//! `(other stacks)`.

use super::header::Header;
use super::region::Region;
use super::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use super::unwind::{Captured, End};

/// `(other stacks)`.
pub const OTHER: u32 = 0;

/// Slots looked at before the table counts as full.
const REACH: usize = 64;

/// What is published of a stack: 0 is nothing yet.
const NO_ROOM: u64 = 1;
const PUBLISHED: u64 = 2;
const TRUNCATED: u64 = 4;
const BLIND: u64 = 8;
const LEN_SHIFT: u32 = 8;
const OFFSET_SHIFT: u32 = 24;

/// The layout of a place, for who holds it to what is promised of it.
pub const LAYOUT: [u64; 5] = [PUBLISHED, TRUNCATED, BLIND, LEN_SHIFT as u64, OFFSET_SHIFT as u64];

/// The table.
pub struct Callstacks {
    fingerprints: &'static [AtomicU64],
    /// Partner of `fingerprints`, by slot: flags, length and place of the frames.
    places: &'static [AtomicU64],
    arena: &'static [AtomicU64],
    /// First free word of the arena; may run beyond its end.
    arena_used: AtomicU64,
}

/// A stack as the reader sees it.
pub enum Published {
    /// Its frames are still being written.
    NotYet,
    /// It found no room: charge it to [`OTHER`].
    NoRoom,
    /// Return addresses, innermost first.
    Whole {
        /// The addresses.
        frames: Vec<u64>,
        /// Why it ends at the root end.
        end: End,
    },
}

impl Callstacks {
    /// An empty table of `slots` slots, a power of two, with room for `words`
    /// frames altogether.
    pub fn new(region: &mut Region, slots: usize, words: usize) -> Option<Self> {
        Some(Self {
            fingerprints: region.slice(slots)?,
            places: region.slice(slots)?,
            arena: region.slice(words)?,
            arena_used: AtomicU64::new(0),
        })
    }

    /// Says in `header` where the callstacks lie.
    pub fn describe(&self, region: &Region, header: &Header) {
        header.places.set(region, self.places);
        header.frames.set(region, self.arena);
    }

    /// Slots; ids are below this plus one.
    pub const fn slots(&self) -> usize {
        self.fingerprints.len()
    }

    /// Words of the arena in use.
    pub fn arena_words_used(&self) -> usize {
        (self.arena_used.load(Relaxed) as usize).min(self.arena.len())
    }

    /// The id of this stack.
    pub fn intern(&self, stack: &Captured<'_>) -> u32 {
        let print = stack.print;
        let mask = self.fingerprints.len() - 1;
        for step in 0..REACH.min(self.fingerprints.len()) {
            let at = (print as usize).wrapping_add(step) & mask;
            let slot = &self.fingerprints[at];
            let mut seen = slot.load(Relaxed);
            if seen == 0 {
                match slot.compare_exchange(0, print, Relaxed, Relaxed) {
                    Ok(_) => {
                        self.publish(at, stack);
                        seen = print;
                    }
                    Err(other) => seen = other,
                }
            }
            if seen == print {
                // Relaxed: NO_ROOM carries no data with it.
                if self.places[at].load(Relaxed) == NO_ROOM {
                    return OTHER;
                }
                return at as u32 + 1;
            }
        }
        OTHER
    }

    #[cold]
    #[inline(never)]
    fn publish(&self, at: usize, stack: &Captured<'_>) {
        let len = stack.len();
        let start = self.arena_used.fetch_add(len as u64, Relaxed) as usize;
        let place = match self.arena.get(start..start.wrapping_add(len)) {
            Some(room) => {
                for (word, frame) in room.iter().zip(stack.frames()) {
                    word.store(frame, Relaxed);
                }
                let end = match stack.end {
                    End::Complete => 0,
                    End::Truncated => TRUNCATED,
                    End::NoUnwindInfo => BLIND,
                };
                PUBLISHED | end | (len as u64) << LEN_SHIFT | (start as u64) << OFFSET_SHIFT
            }
            None => NO_ROOM,
        };
        // Partner: the Acquire in `read`, so that who sees the place sees the frames.
        self.places[at].store(place, Release);
    }

    /// The stack of an id that [`Self::intern`] gave. Allocates: for the agent's
    /// own thread.
    pub fn read(&self, id: u32) -> Published {
        let Some(place) = (id as usize).checked_sub(1).and_then(|at| self.places.get(at)) else {
            return Published::NoRoom;
        };
        let place = place.load(Acquire);
        if place == 0 {
            return Published::NotYet;
        }
        let len = (place >> LEN_SHIFT) as usize & 0xffff;
        let start = (place >> OFFSET_SHIFT) as usize;
        match self.arena.get(start..start + len) {
            Some(words) if place != NO_ROOM => Published::Whole {
                frames: words.iter().map(|w| w.load(Relaxed)).collect(),
                end: match place & (TRUNCATED | BLIND) {
                    0 => End::Complete,
                    TRUNCATED => End::Truncated,
                    _ => End::NoUnwindInfo,
                },
            },
            _ => Published::NoRoom,
        }
    }
}

impl Callstacks {
    /// Replaces each frame of a published stack by what `f` makes of it: the
    /// agent's thread turns addresses into places in modules while it knows
    /// them. Lookups go by fingerprint and do not see the frames.
    pub fn rewrite(&self, id: u32, mut f: impl FnMut(u64) -> u64) {
        let Some(place) = (id as usize).checked_sub(1).and_then(|at| self.places.get(at)) else {
            return;
        };
        let place = place.load(Acquire);
        let len = (place >> LEN_SHIFT) as usize & 0xffff;
        let start = (place >> OFFSET_SHIFT) as usize;
        if place & PUBLISHED != 0
            && let Some(words) = self.arena.get(start..start + len)
        {
            for w in words {
                w.store(f(w.load(Relaxed)), Relaxed);
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(slots: usize, words: usize) -> Callstacks {
        let mut region = Region::new((2 * slots + words) * 8 + 3 * 64).unwrap();
        Callstacks::new(&mut region, slots, words).unwrap()
    }

    fn intern(t: &Callstacks, frames: &[u64], truncated: bool) -> u32 {
        let end = if truncated { End::Truncated } else { End::Complete };
        t.intern(&Captured::of(frames, end))
    }

    fn frames(of: &Callstacks, id: u32) -> (Vec<u64>, bool) {
        match of.read(id) {
            Published::Whole { frames, end } => (frames, end == End::Truncated),
            _ => panic!("stack {id} has no frames"),
        }
    }

    #[test]
    fn one_stack_has_one_id() {
        let t = table(1 << 10, 1 << 14);
        let a = intern(&t, &[1, 2, 3], false);
        assert_eq!(intern(&t, &[1, 2, 3], false), a);
        let others = [
            intern(&t, &[1, 2], false),
            intern(&t, &[1, 2, 3], true),
            intern(&t, &[3, 2, 1], false),
            intern(&t, &[], false),
        ];
        for (i, &o) in others.iter().enumerate() {
            assert!(o != a && !others[..i].contains(&o) && o != OTHER);
        }
        assert_eq!(frames(&t, a), (vec![1, 2, 3], false));
        assert_eq!(frames(&t, others[1]), (vec![1, 2, 3], true));
        assert_eq!(frames(&t, others[3]), (vec![], false));
    }

    #[test]
    fn stacks_without_room_are_the_others() {
        let t = table(1 << 6, 1 << 14);
        let mut distinct = std::collections::HashSet::new();
        for i in 0..200u64 {
            distinct.insert(intern(&t, &[i], false));
        }
        assert!(distinct.contains(&OTHER));
        assert_eq!(distinct.len(), 65);

        let t = table(1 << 10, 10);
        assert_ne!(intern(&t, &[1; 8], false), OTHER);
        assert_eq!(intern(&t, &[2; 8], false), OTHER);
        assert_eq!(intern(&t, &[2; 8], false), OTHER, "and they stay it");
    }

    #[test]
    fn threads_agree() {
        let t = table(1 << 12, 1 << 16);
        let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let work: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..1000u64).map(|i| intern(&t, &[i, i ^ 7, 9], false)).collect::<Vec<_>>()
                    })
                })
                .collect();
            work.into_iter().map(|w| w.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|i| *i == ids[0]));
        for (i, &id) in ids[0].iter().enumerate() {
            assert_eq!(frames(&t, id).0, [i as u64, i as u64 ^ 7, 9]);
        }
    }
}
