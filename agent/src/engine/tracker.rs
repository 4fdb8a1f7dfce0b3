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

use super::header::Header;
use super::region::{Region, Zeroable};
use super::sampled_set::{MAX_ENTRIES, SampledSet};
use super::sys;
use std::mem::offset_of;

use super::sync::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const FREE: u64 = 0;
const YOUNG: u64 = 1;
const MAJOR: u64 = 2;
const DYING: u64 = 3;
const STATE_BITS: u32 = 2;

/// A tracked block. What the books need of every block is in its first cache
/// line: at R = 1 the agent's thread is busy with waiting for these lines.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Entry {
    state: AtomicU64,
    born_clock: AtomicU64,
    /// 0 while the block lives, and while its death is being written.
    died_seq: AtomicU64,
    died_clock: AtomicU64,
    size: AtomicU64,
    stack: AtomicU32,
    interval: AtomicU32,
    /// `cause | YOUNG_BIT | WAS_MAJOR_BIT`.
    flags: AtomicU32,
    next_birth: AtomicU32,
    /// Next on `deaths`, or on the free list.
    next: AtomicU32,
    /// For the agent's thread: [`KNOWN`] once it has taken up the birth, [`HELD`] where that
    /// is in its books from the promotion on only.
    known: AtomicU32,
    address: AtomicU64,
    n_samples: AtomicU64,
    born_ns: AtomicU64,
    died_ns: AtomicU64,
    replaces: AtomicU64,
    thread: AtomicU32,
    died_thread: AtomicU32,
    /// The callstack of the free plus one; 0 for none.
    died_stack: AtomicU32,
}

// SAFETY: atomics only, for which zero bytes are 0.
unsafe impl Zeroable for Entry {}

const YOUNG_BIT: u32 = 1 << 8;
const WAS_MAJOR_BIT: u32 = 1 << 9;
const KNOWN: u32 = 1;
const HELD: u32 = 2;

/// The layout of an entry, for who holds it to what is promised of it: bytes of an
/// entry, then offsets.
pub const LAYOUT: [usize; 17] = [
    size_of::<Entry>(),
    offset_of!(Entry, state),
    offset_of!(Entry, born_clock),
    offset_of!(Entry, died_seq),
    offset_of!(Entry, died_clock),
    offset_of!(Entry, size),
    offset_of!(Entry, stack),
    offset_of!(Entry, interval),
    offset_of!(Entry, flags),
    offset_of!(Entry, known),
    offset_of!(Entry, address),
    offset_of!(Entry, n_samples),
    offset_of!(Entry, born_ns),
    offset_of!(Entry, died_ns),
    offset_of!(Entry, replaces),
    offset_of!(Entry, thread),
    offset_of!(Entry, died_thread),
];
/// The same for the values of states and flags.
pub const VALUES: [u64; 6] = [FREE, YOUNG, MAJOR, DYING, YOUNG_BIT as u64, WAS_MAJOR_BIT as u64];

/// How a block came to be; the numbers stand in [`Entry::flags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// `alloc`.
    Malloc = 0,
    /// `alloc_zeroed`.
    Calloc = 1,
    /// `realloc`.
    Realloc = 2,
    /// An alignment above 16.
    Aligned = 3,
    /// Outside the heap, as the program reports.
    External = 4,
}

/// A birth as the tracker keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// Birth number: the block's identity. At least 1.
    pub id: u64,
    /// Where it lies.
    pub address: usize,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in it.
    pub n_samples: u64,
    /// Monotonic time.
    pub ns: u64,
    /// G before it.
    pub clock: u64,
    /// Callstack id.
    pub stack: u32,
    /// R in bytes.
    pub interval: u32,
    /// Domain.
    pub thread: u32,
    /// How.
    pub cause: Cause,
    /// Whether it was born young.
    pub young: bool,
    /// Id of the sampled block that it replaces; 0 for none.
    pub replaces: u64,
}

/// A death as the tracker keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// Its number.
    pub seq: u64,
    /// Monotonic time.
    pub ns: u64,
    /// G, exact for the thread that frees.
    pub clock: u64,
    /// That thread's domain.
    pub thread: u32,
    /// The callstack of the free, where it was wanted.
    pub stack: Option<u32>,
}

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
}

impl Tracker {
    /// Bytes of a region that a tracker of `entries` entries takes.
    pub const fn bytes(entries: usize) -> usize {
        entries * size_of::<Entry>() + SampledSet::bytes(entries) + 3 * 64
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
        self.expect(index.wrapping_add(1));
    }

    /// The block at `address` is about to be tracked.
    #[inline]
    pub fn will_track(&self, address: usize) {
        self.set.will_insert(address);
    }

    /// The entry is nobody's any more.
    pub fn give_back(&self, index: u32) {
        let Some(entry) = self.entries.get(index as usize) else { return };
        entry.state.store(FREE, Relaxed);
        let mut head = self.free.load(Relaxed);
        loop {
            entry.next.store(head as u32, Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
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
        entry.address.store(b.address as u64, Relaxed);
        entry.size.store(b.size, Relaxed);
        entry.n_samples.store(b.n_samples, Relaxed);
        entry.born_ns.store(b.ns, Relaxed);
        entry.born_clock.store(b.clock, Relaxed);
        entry.replaces.store(b.replaces, Relaxed);
        entry.stack.store(b.stack, Relaxed);
        entry.interval.store(b.interval, Relaxed);
        entry.thread.store(b.thread, Relaxed);
        entry.flags.store(b.cause as u32 | if b.young { YOUNG_BIT } else { 0 }, Relaxed);
        entry.known.store(0, Relaxed);
        entry.died_seq.store(0, Relaxed);
        let state = if b.young { YOUNG } else { MAJOR };
        entry.state.store(b.id << STATE_BITS | state, Relaxed);
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
        if before & DYING == MAJOR {
            // Whoever frees is the only one to write it.
            entry.flags.store(entry.flags.load(Relaxed) | WAS_MAJOR_BIT, Relaxed);
        }
        let d = when();
        entry.died_seq.store(d.seq, Relaxed);
        entry.died_ns.store(d.ns, Relaxed);
        entry.died_clock.store(d.clock, Relaxed);
        entry.died_thread.store(d.thread, Relaxed);
        entry.died_stack.store(d.stack.map_or(0, |stack| stack.wrapping_add(1)), Relaxed);
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
            birth(index, entry.state.load(Relaxed) >> STATE_BITS);
        }
        while let Some((index, entry)) = self.linked(deaths).filter(|_| left > 0) {
            left -= 1;
            deaths = entry.next.load(Relaxed);
            death(index, entry.died_seq.load(Relaxed));
        }
    }

    fn linked(&self, link: u32) -> Option<(u32, &Entry)> {
        let index = link.checked_sub(1)?;
        Some((index, self.entries.get(index as usize)?))
    }

    fn read_birth(entry: &Entry) -> Birth {
        let flags = entry.flags.load(Relaxed);
        Birth {
            id: entry.state.load(Relaxed) >> STATE_BITS,
            address: entry.address.load(Relaxed) as usize,
            size: entry.size.load(Relaxed),
            n_samples: entry.n_samples.load(Relaxed),
            ns: entry.born_ns.load(Relaxed),
            clock: entry.born_clock.load(Relaxed),
            stack: entry.stack.load(Relaxed),
            interval: entry.interval.load(Relaxed),
            thread: entry.thread.load(Relaxed),
            cause: match flags & 0xff {
                0 => Cause::Malloc,
                1 => Cause::Calloc,
                2 => Cause::Realloc,
                4 => Cause::External,
                _ => Cause::Aligned,
            },
            young: flags & YOUNG_BIT != 0,
            replaces: entry.replaces.load(Relaxed),
        }
    }

    /// The birth of an entry that was collected and not yet released.
    pub fn birth_of(&self, index: u32) -> Option<Birth> {
        self.entries.get(index as usize).map(Self::read_birth)
    }

    /// The death of an entry that was collected and not yet released.
    pub fn death_of(&self, index: u32) -> Option<Death> {
        self.entries.get(index as usize).map(|entry| Death {
            seq: entry.died_seq.load(Relaxed),
            ns: entry.died_ns.load(Relaxed),
            clock: entry.died_clock.load(Relaxed),
            thread: entry.died_thread.load(Relaxed),
            stack: entry.died_stack.load(Relaxed).checked_sub(1),
        })
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
        let birth = Self::read_birth(entry);
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
