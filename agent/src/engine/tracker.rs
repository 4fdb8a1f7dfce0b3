//! The live sampled blocks, and the way they go to the agent's own thread.
//!
//! # Data
//!
//! 1. **Entries**, one a tracked block, in a slab. Free ones are a list.
//! 2. **Births and deaths**: two lists through the entries themselves. A birth
//!    puts its entry on the first, a death on the second. The entry *is* the
//!    event; nothing is copied, and there is no ring that could be full. What
//!    can run out are entries, and then it is a birth that is lost, and counted.
//!    A death always has its entry. So totals, which the agent's thread makes of
//!    these lists, lack the counted births and nothing else.
//! 3. The [`SampledSet`], from addresses to entries.
//!
//! # Who may touch it
//!
//! - Any thread: take a free entry, fill it, put it on `births`; mark it dying,
//!   fill in its death, put it on `deaths`.
//! - The agent's thread alone: take the lists whole, promote, give entries back.
//!
//! # The state word
//!
//! `id << 2 | state`, where the id, the block's birth number, is never used
//! twice. Two can want to change it at once, a free and the agent's thread that
//! promotes when a cycle has turned, and the word decides between them: if the
//! promotion comes first, the free reads the clock later and lands in a later
//! cycle too; if the free comes first, the promotion fails and the death tells
//! by its clock whether the block had survived. Either way each block is
//! promoted once or not at all, and the answer is the clock's.
//!
//! # Orderings
//!
//! Fields are relaxed: they are written before the entry is put on a list by a
//! Release, and read after the list is taken by an Acquire. An entry is given
//! back by a Release on the free list and taken by an Acquire, so the last
//! reader is done before the next writer begins. The free list's head carries a
//! count against ABA; the other lists are only pushed to and taken whole, where
//! ABA does no harm.

mod entry;
mod trail;

pub use entry::{Birth, Born, Cause, Death, Entry, LAYOUT, VALUES};

use super::header::Header;
use super::region::Region;
use super::sampled_set::{MAX_ENTRIES, SampledSet};
use super::sys;
use entry::{DYING, FREE, HELD, KNOWN, MAJOR, STATE_BITS, WAS_MAJOR_BIT, YOUNG};
use trail::Trails;

use super::sync::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    scaled,
};

/// What the agent's thread sees of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Lives, and is still young.
    Young,
    /// Lives, and is major.
    Major,
    /// Was freed.
    Dying,
    /// Is no entry of that id any more.
    Gone,
}

/// Entries given back at once: the head of the free list is a line that the target's
/// threads want for each birth, and each touch of the agent's thread takes it from them.
const BATCH: u32 = scaled(64, 2) as u32;

/// Entries that the agent's thread is about to give back, a list through themselves.
#[derive(Debug, Default)]
pub struct Returned {
    /// The last one that came, plus one; 0 for none.
    first: u32,
    /// The one that came first.
    last: u32,
    len: u32,
}

/// See the module.
pub struct Tracker {
    entries: &'static [Entry],
    set: SampledSet,
    /// `count << 32 | index + 1` of the first free entry that was used before.
    free: AtomicU64,
    /// Entries that were ever used; may run beyond the slab.
    used: AtomicU32,
    births: AtomicU32,
    deaths: AtomicU32,
    live: AtomicU32,
    lost: &'static AtomicU64,
    trails: Trails,
}

impl Tracker {
    /// Bytes of a region that a tracker of `entries` entries takes.
    pub const fn bytes(entries: usize) -> usize {
        entries * size_of::<Entry>() + SampledSet::bytes(entries) + Trails::BYTES + 3 * 64
    }

    /// The number of entries that fit into `bytes`.
    pub fn entries_in(bytes: usize) -> usize {
        // A bucket for every five entries, rounded up to a power of two: at most 26 bytes each.
        (bytes / (size_of::<Entry>() + 26)).min(MAX_ENTRIES)
    }

    /// Says in `header` where the entries lie, and keeps its count of losses there.
    pub fn describe(&mut self, region: &Region, header: &'static Header) {
        header.entries.set(region, self.entries);
        self.lost = &header.lost;
    }

    /// An empty tracker.
    pub fn new(region: &mut Region, entries: usize) -> Option<Self> {
        let set = SampledSet::new(region, entries)?;
        Some(Self {
            entries: region.slice(entries)?,
            set,
            free: AtomicU64::new(0),
            used: AtomicU32::new(0),
            births: AtomicU32::new(0),
            deaths: AtomicU32::new(0),
            live: AtomicU32::new(0),
            lost: region.slice(1)?.first()?,
            trails: Trails::new(region)?,
        })
    }

    /// Births that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Tracked blocks whose births were taken up, and whose entries were not given back
    /// since. For the agent's thread, which alone counts: the others are spared a
    /// counter that all of them write.
    pub fn live(&self) -> u32 {
        self.live.load(Relaxed)
    }

    /// Entries that exist, and those that were ever touched.
    pub fn room(&self) -> (usize, usize) {
        let all = self.entries.len();
        (all, (self.used.load(Relaxed) as usize).min(all))
    }

    fn take_free(&self) -> Option<u32> {
        let mut head = self.free.load(Acquire);
        while let Some(index) = (head as u32).checked_sub(1) {
            let next = self.entries.get(index as usize)?.next.load(Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
            match self.free.compare_exchange_weak(head, new, AcqRel, Acquire) {
                Ok(_) => {
                    self.expect(next);
                    return Some(index);
                }
                Err(now) => head = now,
            }
        }
        // Checked first, so that a full slab does not count up for ever.
        if self.used.load(Relaxed) as usize >= self.entries.len() {
            return None;
        }
        let index = self.used.fetch_add(1, Relaxed);
        ((index as usize) < self.entries.len()).then_some(index)
    }

    /// The entry of this link is likely the next to be taken: the agent's thread had it
    /// last, on another core, and its lines take their time.
    #[inline]
    fn expect(&self, link: u32) {
        if let Some((_, entry)) = self.linked(link) {
            sys::prefetch(entry);
        }
    }

    /// The entry in `index` will be looked at soon.
    #[inline]
    pub fn will_read(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            sys::prefetch(&entry.state);
        }
    }

    /// The block at `address` is about to be tracked.
    #[inline]
    pub fn will_track(&self, address: usize) {
        self.set.will_insert(address);
    }

    /// The entry is nobody's any more.
    pub fn give_back(&self, index: u32) {
        let mut one = Returned::default();
        self.give_back_later(&mut one, index);
        self.give_back_all(&mut one);
    }

    /// The same with others, once they are enough. For the agent's thread.
    pub fn give_back_later(&self, returned: &mut Returned, index: u32) {
        let Some(entry) = self.entries.get(index as usize) else { return };
        entry.state.store(FREE, Relaxed);
        entry.next.store(returned.first, Relaxed);
        if returned.first == 0 {
            returned.last = index;
        }
        returned.first = index + 1;
        returned.len += 1;
        if returned.len >= BATCH {
            self.give_back_all(returned);
        }
    }

    /// Those that wait for others wait no longer.
    pub fn give_back_all(&self, returned: &mut Returned) {
        let Returned { first, last, .. } = std::mem::take(returned);
        let Some(last) = self.entries.get(last as usize).filter(|_| first != 0) else { return };
        let mut head = self.free.load(Relaxed);
        loop {
            last.next.store(head as u32, Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(first);
            match self.free.compare_exchange_weak(head, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Tracks a block; false, and counted, if there is no room.
    pub fn birth(&self, b: &Birth) -> bool {
        self.birth_with(b, true, |_| {}, |_| {}).is_some()
    }

    /// The same, with a look at the entry's number before anybody else can have one, and
    /// another one if it finds no room after all. Unless it is `listed` the agent's
    /// thread never sees it.
    pub fn birth_with(
        &self,
        b: &Birth,
        listed: bool,
        look: impl FnOnce(u32),
        undo: impl FnOnce(u32),
    ) -> Option<u32> {
        let index = self.take_free();
        let Some((index, entry)) = index.and_then(|i| Some((i, self.entries.get(i as usize)?)))
        else {
            self.lost.fetch_add(u64::from(listed), Relaxed);
            return None;
        };
        entry.write_birth(b, if listed { self.trails.birth(b.thread, index + 1) } else { 0 });
        look(index);
        if !self.set.insert(b.address, index) {
            undo(index);
            self.give_back(index);
            self.lost.fetch_add(u64::from(listed), Relaxed);
            return None;
        }
        if !listed {
            return Some(index);
        }
        let mut head = self.births.load(Relaxed);
        loop {
            entry.next_birth.store(head, Relaxed);
            match self.births.compare_exchange_weak(head, index + 1, Release, Relaxed) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }

    /// Takes the block at `address` out of the set, if it is tracked. What comes
    /// back must be given to [`Self::death`] or [`Self::put_back`].
    pub fn take(&self, address: usize) -> Option<Taken> {
        let index = self.set.remove(address, |i| {
            self.entries.get(i as usize).is_some_and(|e| e.address.load(Relaxed) == address as u64)
        })?;
        let id = self.entries.get(index as usize)?.state.load(Relaxed) >> STATE_BITS;
        Some(Taken { index, id, address })
    }

    /// The block lives on after all, at the same address. Where its room was taken
    /// meanwhile it comes back: its free would go unseen, and it is counted as a birth
    /// that found no room is.
    pub fn put_back(&self, taken: Taken) -> Result<(), Taken> {
        if self.set.insert(taken.address, taken.index) {
            return Ok(());
        }
        self.lost.fetch_add(1, Relaxed);
        Err(taken)
    }

    /// The block is dead. `when` is asked after it is marked so: see the module.
    pub fn death(&self, taken: Taken, when: impl FnOnce() -> Death) {
        self.die(taken, true, when);
    }

    /// The same; the agent's thread hears of it only if the birth was `listed`.
    pub fn die(&self, taken: Taken, listed: bool, when: impl FnOnce() -> Death) -> Option<Death> {
        let entry = self.entries.get(taken.index as usize)?;
        // AcqRel, partner of `promote`: whoever comes second sees the first's clock.
        let before = entry.state.fetch_or(DYING, AcqRel);
        let d = when();
        let near = if listed { self.trails.death(d.thread, taken.index + 1) } else { 0 };
        entry.write_death(&d, before & DYING == MAJOR, near);
        if !listed {
            return Some(d);
        }
        let mut head = self.deaths.load(Relaxed);
        loop {
            entry.next.store(head, Relaxed);
            match self.deaths.compare_exchange_weak(head, taken.index + 1, Release, Relaxed) {
                Ok(_) => return Some(d),
                Err(now) => head = now,
            }
        }
    }

    // What follows is for the agent's thread alone.

    /// Takes both lists whole and hands out their entries in no particular order,
    /// births with their ids, deaths with their numbers.
    ///
    /// Deaths are taken first: a block's birth is on its list before its death
    /// can be, so the births taken afterwards hold those of all these deaths.
    pub fn collect(&self, mut birth: impl FnMut(u32, u64), mut death: impl FnMut(u32, u64)) {
        let mut deaths = self.deaths.swap(0, Acquire);
        let mut births = self.births.swap(0, Acquire);
        // Each entry is on a list once. Were one linked in a ring, by whatever has got at
        // our memory, this must end all the same.
        let mut left = 2 * self.entries.len();
        while let Some((index, entry)) = self.linked(births).filter(|_| left > 0) {
            left -= 1;
            self.live.store(self.live.load(Relaxed) + 1, Relaxed);
            births = entry.next_birth.load(Relaxed);
            self.expect_line(entry.near_birth());
            birth(index, entry.state.load(Relaxed) >> STATE_BITS);
        }
        while let Some((index, entry)) = self.linked(deaths).filter(|_| left > 0) {
            left -= 1;
            deaths = entry.next.load(Relaxed);
            self.expect_line(entry.near_death());
            death(index, entry.died_seq.load(Relaxed));
        }
    }

    /// The entry of this link comes some links later: see [`trail`].
    #[inline]
    fn expect_line(&self, link: u32) {
        if let Some((_, entry)) = self.linked(link) {
            sys::prefetch(&entry.state);
        }
    }

    fn linked(&self, link: u32) -> Option<(u32, &Entry)> {
        let index = link.checked_sub(1)?;
        Some((index, self.entries.get(index as usize)?))
    }

    /// What the books need of the birth of an entry that was collected and not yet
    /// released.
    #[inline]
    pub fn born(&self, index: u32) -> Option<Born> {
        self.entries.get(index as usize).map(Entry::born)
    }

    /// G at the death of such an entry.
    #[inline]
    pub fn died_clock(&self, index: u32) -> u64 {
        self.entries.get(index as usize).map_or(0, |entry| entry.died_clock.load(Relaxed))
    }

    /// When the block of such an entry was born, on the monotonic clock.
    pub fn born_ns(&self, index: u32) -> u64 {
        self.entries.get(index as usize).map_or(0, |entry| entry.born_ns.load(Relaxed))
    }

    /// The birth of an entry that was collected and not yet released.
    pub fn birth_of(&self, index: u32) -> Option<Birth> {
        self.entries.get(index as usize).map(Entry::birth)
    }

    /// The death of an entry that was collected and not yet released.
    pub fn death_of(&self, index: u32) -> Option<Death> {
        self.entries.get(index as usize).map(Entry::death)
    }

    /// Whether a dying entry had been promoted, or was major from birth.
    pub fn died_major(&self, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|e| e.flags.load(Relaxed) & WAS_MAJOR_BIT != 0)
    }

    /// Makes a young block major; false if it is dying or gone.
    pub fn promote(&self, index: u32, id: u64) -> bool {
        self.entries.get(index as usize).is_some_and(|entry| {
            let (young, major) = (id << STATE_BITS | YOUNG, id << STATE_BITS | MAJOR);
            entry.state.compare_exchange(young, major, AcqRel, Relaxed).is_ok()
        })
    }

    /// Where block `id`, once in entry `index`, stands.
    pub fn life(&self, index: u32, id: u64) -> Life {
        let state = self.entries.get(index as usize).map_or(FREE, |e| e.state.load(Relaxed));
        if state >> STATE_BITS != id {
            return Life::Gone;
        }
        match state & DYING {
            YOUNG => Life::Young,
            MAJOR => Life::Major,
            DYING => Life::Dying,
            _ => Life::Gone,
        }
    }

    /// Stops tracking the live block in entry `index`, if it is not being freed;
    /// its free will be that of an unknown block. True if it was dropped: then
    /// the entry is free again.
    pub fn drop_block(&self, index: u32) -> bool {
        let dropped = self.untrack(index);
        if dropped {
            self.release(index);
        }
        dropped
    }

    /// Takes the block in entry `index` out of the set, if it is not being freed.
    pub fn untrack(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else { return false };
        let address = entry.address.load(Relaxed) as usize;
        self.set.remove(address, |i| i == index).is_some()
    }

    /// Thins the samples of the block in entry `index`: see `Ledger::thin`.
    pub fn set_samples(&self, index: u32, n_samples: u64, interval: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.n_samples.store(n_samples, Relaxed);
            entry.interval.store(interval, Relaxed);
        }
    }

    /// The block in entry `index` has no samples any more.
    pub fn unsample(&self, index: u32) {
        self.set_samples(index, 0, 0);
    }

    /// Marks an entry as taken up.
    pub fn set_known(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.known.store(KNOWN, Relaxed);
        }
    }

    /// Marks an entry as taken up, and in no book before its promotion.
    pub fn set_held(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.known.store(HELD, Relaxed);
        }
    }

    /// The live block in entry `index`, if its birth was taken up, and whether
    /// it is still young.
    pub fn known_live(&self, index: u32) -> Option<(Birth, bool)> {
        self.live_as(index, KNOWN)
    }

    /// The same of a block that is held.
    pub fn held_live(&self, index: u32) -> Option<Birth> {
        self.live_as(index, HELD).map(|(birth, _)| birth)
    }

    fn live_as(&self, index: u32, known: u32) -> Option<(Birth, bool)> {
        let entry = self.entries.get(index as usize)?;
        if entry.known.load(Relaxed) != known || entry.n_samples.load(Relaxed) == 0 {
            return None;
        }
        let birth = entry.birth();
        match self.life(index, birth.id) {
            Life::Young => Some((birth, true)),
            Life::Major => Some((birth, false)),
            Life::Dying | Life::Gone => None,
        }
    }

    /// The death was taken up: the entry is free again.
    pub fn release(&self, index: u32) {
        self.forget(index);
        self.give_back(index);
    }

    /// The books are done with the entry, which somebody else has still.
    pub fn forget(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            entry.known.store(0, Relaxed);
        }
        self.live.store(self.live.load(Relaxed).wrapping_sub(1), Relaxed);
    }
}

/// A block that was taken out of the set: it is freed, or it comes back.
pub struct Taken {
    index: u32,
    /// The block's identity.
    pub id: u64,
    address: usize,
}

impl Taken {
    /// Its entry.
    pub const fn index(&self) -> u32 {
        self.index
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;
