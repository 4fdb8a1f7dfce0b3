//! The entry of a tracked block, and how what is known of a block lies in it.

use super::super::region::Zeroable;
use super::super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::mem::offset_of;

pub(super) const FREE: u64 = 0;
pub(super) const YOUNG: u64 = 1;
pub(super) const MAJOR: u64 = 2;
pub(super) const DYING: u64 = 3;
pub(super) const STATE_BITS: u32 = 2;

/// A tracked block. What the books need of every block is in its first cache
/// line, [`Born`]: at R = 1 the agent's thread is busy with waiting for these lines, and
/// the target's threads with getting them back.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Entry {
    pub(super) state: AtomicU64,
    pub(super) born_clock: AtomicU64,
    /// 0 while the block lives, and while its death is being written.
    pub(super) died_seq: AtomicU64,
    pub(super) died_clock: AtomicU64,
    pub(super) size: AtomicU64,
    pub(super) stack: AtomicU32,
    /// R; 0 of a block that has no samples any more.
    pub(super) interval: AtomicU32,
    /// `cause | YOUNG_BIT | WAS_MAJOR_BIT`, and above them [`Self::near_death`]. Who makes the
    /// block writes this, then who frees it, and nobody else.
    pub(super) flags: AtomicU32,
    pub(super) next_birth: AtomicU32,
    /// Next on `deaths`, or on the free list.
    pub(super) next: AtomicU32,
    /// For the agent's thread: [`KNOWN`] once it has taken up the birth, [`HELD`] where that
    /// is in its books from the promotion on only. Until then [`Self::near_birth`].
    pub(super) known: AtomicU32,
    pub(super) address: AtomicU64,
    pub(super) n_samples: AtomicU64,
    pub(super) born_ns: AtomicU64,
    pub(super) died_ns: AtomicU64,
    pub(super) replaces: AtomicU64,
    pub(super) thread: AtomicU32,
    pub(super) died_thread: AtomicU32,
    /// The callstack of the free plus one; 0 for none.
    pub(super) died_stack: AtomicU32,
}

// SAFETY: atomics only, for which zero bytes are 0.
unsafe impl Zeroable for Entry {}

pub(super) const YOUNG_BIT: u32 = 1 << 8;
pub(super) const WAS_MAJOR_BIT: u32 = 1 << 9;
const DEATH_SHIFT: u32 = 10;
const BIRTH_SHIFT: u32 = 8;
pub(super) const KNOWN: u32 = 1;
pub(super) const HELD: u32 = 2;

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

/// What the books need of every block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Born {
    /// See [`Birth::id`].
    pub id: u64,
    /// Bytes asked for.
    pub size: u64,
    /// G before it.
    pub clock: u64,
    /// Callstack id.
    pub stack: u32,
    /// R in bytes; 0 of a block that was thinned out of the books, and that a profile has
    /// still.
    pub interval: u32,
    /// Whether it was born young.
    pub young: bool,
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

impl Entry {
    /// Puts a birth down, its state last; the entry is on no list yet.
    #[inline]
    pub(super) fn write_birth(&self, b: &Birth, near: u32) {
        self.address.store(b.address as u64, Relaxed);
        self.size.store(b.size, Relaxed);
        self.n_samples.store(b.n_samples, Relaxed);
        self.born_ns.store(b.ns, Relaxed);
        self.born_clock.store(b.clock, Relaxed);
        self.replaces.store(b.replaces, Relaxed);
        self.stack.store(b.stack, Relaxed);
        self.interval.store(b.interval, Relaxed);
        self.thread.store(b.thread, Relaxed);
        self.flags.store(b.cause as u32 | if b.young { YOUNG_BIT } else { 0 }, Relaxed);
        self.known.store(near << BIRTH_SHIFT, Relaxed);
        self.died_seq.store(0, Relaxed);
        let state = if b.young { YOUNG } else { MAJOR };
        self.state.store(b.id << STATE_BITS | state, Relaxed);
    }

    /// A link that comes some entries later on the list of births: a hint, 0 for none.
    #[inline]
    pub(super) fn near_birth(&self) -> u32 {
        self.known.load(Relaxed) >> BIRTH_SHIFT
    }

    /// The same for the list of deaths, cut to 22 bits.
    #[inline]
    pub(super) fn near_death(&self) -> u32 {
        self.flags.load(Relaxed) >> DEATH_SHIFT
    }

    /// Puts a death down; the block is marked as dying.
    #[inline]
    pub(super) fn write_death(&self, d: &Death, was_major: bool, near: u32) {
        let major = if was_major { WAS_MAJOR_BIT } else { 0 };
        self.flags.store(self.flags.load(Relaxed) | major | near << DEATH_SHIFT, Relaxed);
        self.died_seq.store(d.seq, Relaxed);
        self.died_ns.store(d.ns, Relaxed);
        self.died_clock.store(d.clock, Relaxed);
        self.died_thread.store(d.thread, Relaxed);
        self.died_stack.store(d.stack.map_or(0, |stack| stack.wrapping_add(1)), Relaxed);
    }

    /// What the books need of a birth.
    #[inline]
    pub(super) fn born(&self) -> Born {
        Born {
            id: self.state.load(Relaxed) >> STATE_BITS,
            size: self.size.load(Relaxed),
            clock: self.born_clock.load(Relaxed),
            stack: self.stack.load(Relaxed),
            interval: self.interval.load(Relaxed),
            young: self.flags.load(Relaxed) & YOUNG_BIT != 0,
        }
    }

    /// What [`Self::write_birth`] put down, with the samples as they are now.
    pub(super) fn birth(&self) -> Birth {
        let flags = self.flags.load(Relaxed);
        Birth {
            id: self.state.load(Relaxed) >> STATE_BITS,
            address: self.address.load(Relaxed) as usize,
            size: self.size.load(Relaxed),
            n_samples: self.n_samples.load(Relaxed),
            ns: self.born_ns.load(Relaxed),
            clock: self.born_clock.load(Relaxed),
            stack: self.stack.load(Relaxed),
            interval: self.interval.load(Relaxed),
            thread: self.thread.load(Relaxed),
            cause: match flags & 0xff {
                0 => Cause::Malloc,
                1 => Cause::Calloc,
                2 => Cause::Realloc,
                4 => Cause::External,
                _ => Cause::Aligned,
            },
            young: flags & YOUNG_BIT != 0,
            replaces: self.replaces.load(Relaxed),
        }
    }

    /// What [`Self::write_death`] put down.
    pub(super) fn death(&self) -> Death {
        Death {
            seq: self.died_seq.load(Relaxed),
            ns: self.died_ns.load(Relaxed),
            clock: self.died_clock.load(Relaxed),
            thread: self.died_thread.load(Relaxed),
            stack: self.died_stack.load(Relaxed).checked_sub(1),
        }
    }
}
