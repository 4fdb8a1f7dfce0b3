//! The head of the region: what a reader of the bare memory needs to find the
//! rest of it, and the counters that change with every sample.
//!
//! A viewer that was attached reads the region after the target's death, when
//! nobody is left to ask: see `stream::remains`, which holds the layout to what
//! the protocol promises.

use super::region::{Region, Zeroable};
use super::sync::{AtomicU64, Ordering::Relaxed};

/// Where an array lies: bytes from the region's beginning, and elements.
#[repr(C)]
#[derive(Default)]
pub struct Span {
    offset: AtomicU64,
    count: AtomicU64,
}

impl Span {
    /// Says where `slice`, of `region`, lies.
    pub fn set<T>(&self, region: &Region, slice: &[T]) {
        self.offset.store(region.offset(slice), Relaxed);
        self.count.store(slice.len() as u64, Relaxed);
    }
}

/// See the module. All is written by the agent's thread, or before there is one;
/// the third cache line by all threads.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Header {
    /// Says that this is one.
    pub magic: AtomicU64,
    /// Which layout.
    pub layout: AtomicU64,
    /// [`super::tracker`].
    pub entries: Span,
    /// [`super::callstack`].
    pub places: Span,
    /// The same.
    pub frames: Span,
    /// The ledger's.
    pub records: Span,
    /// Records in use.
    pub known: AtomicU64,
    /// The minor cycle up to which the books are done.
    pub cycle: AtomicU64,
    /// Blocks with ids below this were discarded.
    pub forget_before: AtomicU64,
    /// How the program ended, once it does.
    pub ended: AtomicU64,
    /// When the agent started, on the monotonic clock.
    pub started_ns: AtomicU64,
    /// Births that found no room. With the next ones, written by all threads.
    pub lost: AtomicU64,
    /// G: bytes allocated by the process, as far as booked.
    pub clock: AtomicU64,
    /// Births and deaths are numbered through: the next number.
    pub seq: AtomicU64,
    /// Births that the agent's thread has taken up.
    pub samples: AtomicU64,
}

// SAFETY: atomics only, for which zero bytes are 0.
unsafe impl Zeroable for Header {}
