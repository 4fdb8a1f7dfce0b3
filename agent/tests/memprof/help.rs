//! A tracker that writes down what it is told, and blocks to be told of.

use heaptop_agent::memprof::{Allocation, Config, Delivery, Profile, Scope, Stats, Tracker, start};
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// N of this process.
pub const NURSERY: usize = 1 << 20;
/// A guard, not a bound: a machine under load takes its time.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What was told of a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Alloc { id: u64, size: u64, n: u64, major: bool, thread: ThreadId, frames: Vec<usize> },
    Promote { id: u64 },
    Dealloc { id: u64, major: bool, thread: ThreadId },
}

impl Told {
    pub fn id(&self) -> u64 {
        match self {
            Self::Alloc { id, .. } | Self::Promote { id } | Self::Dealloc { id, .. } => *id,
        }
    }
}

/// Writes down all of some sizes. What is tracked is dropped visibly.
#[derive(Clone, Default)]
pub struct Log {
    told: Arc<Mutex<Vec<Told>>>,
    /// Sizes that are tracked; others are refused. Empty: all.
    sizes: Arc<Vec<u64>>,
    dropped: Arc<std::sync::atomic::AtomicU64>,
}

/// What is kept of a block.
pub struct Kept {
    pub id: u64,
    dropped: Arc<std::sync::atomic::AtomicU64>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Log {
    pub fn of(sizes: &[usize]) -> Self {
        Self { sizes: Arc::new(sizes.iter().map(|s| *s as u64).collect()), ..Self::default() }
    }

    /// What was told so far; nothing is allocated while it cannot be added to.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.told())
    }

    /// How many of the values that the callbacks returned are gone.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// The same without promotions: the cycle is the process's, and others have it turn.
    pub fn take_ends(&self) -> Vec<Told> {
        let mut told = self.take();
        told.retain(|t| !matches!(t, Told::Promote { .. }));
        told
    }

    fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn born(&self, block: &Allocation<'_>, major: bool) -> Option<Kept> {
        if !self.sizes.is_empty() && !self.sizes.contains(&block.size) {
            return None;
        }
        self.told().push(Told::Alloc {
            id: block.id,
            size: block.size,
            n: block.n_samples,
            major,
            thread: std::thread::current().id(),
            frames: block.callstack.to_vec(),
        });
        Some(Kept { id: block.id, dropped: self.dropped.clone() })
    }

    fn died(&self, id: u64, major: bool) {
        self.told().push(Told::Dealloc { id, major, thread: std::thread::current().id() });
    }
}

impl Tracker for Log {
    type Minor = Kept;
    type Major = Kept;

    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<Kept> {
        self.born(block, false)
    }
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<Kept> {
        self.born(block, true)
    }
    fn promote(&self, block: Kept) -> Option<Kept> {
        self.told().push(Told::Promote { id: block.id });
        Some(block)
    }
    fn dealloc_minor(&self, block: Kept) {
        self.died(block.id, false);
    }
    fn dealloc_major(&self, block: Kept) {
        self.died(block.id, true);
    }
}

/// λ = 1, this thread's, deferred.
pub fn exact() -> Config {
    Config::lambda(1.0).unwrap().scope(Scope::Thread)
}

/// The same, prompt.
pub fn prompt() -> Config {
    exact().delivery(Delivery::Prompt)
}

/// Started with a log of blocks of this size.
pub fn logged(config: Config, sizes: &[usize]) -> (Profile, Log) {
    let log = Log::of(sizes);
    let profile = start(config, log.clone()).expect("a profile can be started");
    (profile, log)
}

/// A block that no compiler leaves out.
#[inline(never)]
pub fn block(bytes: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(bytes);
    block.push(1);
    black_box(block)
}

/// Has the minor cycle turn: what was born before has survived.
pub fn turn() {
    drop(block(2 * NURSERY));
    // And a stop that sees it.
    for _ in 0..3 {
        drop(block(70_000));
    }
}

/// Waits for something that another thread does.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::yield_now();
    }
}

static SCOPES: RwLock<()> = RwLock::new(());

/// Tests of the process's scope are alone: in their time no thread can start a profile
/// of its own.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    SCOPES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Tests of thread scope are beside each other.
pub fn beside() -> RwLockReadGuard<'static, ()> {
    SCOPES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until nothing of a profile is tracked: with Prompt another thread, at a stop of
/// its own, may just be in the callback of a block that dies here.
pub fn all_dead(profile: &Profile) {
    until("all blocks are told of", || {
        profile.poll();
        let s = profile.stats();
        s.live == 0 && s.waiting == 0
    });
}

/// What must be so of the counts of a profile that nobody is at.
pub fn adds_up(s: &Stats) {
    assert_eq!(s.sampled, s.tracked + s.refused + s.dropped + s.waiting, "{s:?}");
    let after = s.deallocated + s.refused_at_promotion + s.discarded + s.lost;
    assert_eq!(s.tracked, s.live + after, "{s:?}");
}
