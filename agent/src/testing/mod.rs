//! What a piece of a program allocates, exactly: for `cargo test`.
//!
//! ```no_run
//! #[global_allocator]
//! static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();
//!
//! #[test]
//! fn parsing_does_not_copy() {
//!     let (parsed, m) = heaptop_agent::testing::measure(|| "a,b,c".split(',').count());
//!     assert_eq!(parsed, 3);
//!     m.assert_allocations(0..=0);
//!     m.assert_no_leak();
//! }
//! ```
//!
//! [`measure`] runs a closure with a prompt profile of thread scope at R = 1. So it counts
//! every block of the calling thread, and of threads that are started inside by
//! [`crate::spawn`] or [`crate::memprof::inherit`], and no other's: tests that run side by
//! side in one binary do not disturb each other. What is freed counts as freed whoever
//! frees it.
//!
//! Join such threads: at the end of a [`std::thread::scope`] they have not yet given back
//! what std keeps of a thread, which may then count as leaked.
//!
//! It is exact as long as all blocks that live at once have a place: half of what
//! `HEAPTOP_MEMORY` holds, some 90,000 at the default of 64 MiB; [`Measured::missed`]
//! counts what had none, and assertions fail if any had.

use crate::memprof::{
    self, Allocation, Config, Delivery, Names, Profile, Scope, StartError, Tracker,
};
use crate::names::NO_CALLSTACK;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, PoisonError};

/// Callsites that a failed assertion names.
const SHOWN: usize = 10;
/// And callers of each.
const CALLERS: usize = 3;

/// Counts of blocks of one callsite, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Blocks allocated; a reallocation is one too.
    pub allocations: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// Blocks that were not freed.
    pub leaked_blocks: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
}

impl Sums {
    const fn add(&mut self, other: &Self) {
        self.allocations += other.allocations;
        self.bytes += other.bytes;
        self.leaked_blocks += other.leaked_blocks;
        self.leaked_bytes += other.leaked_bytes;
    }
}

/// A callsite: the innermost function that is neither the allocator's nor the standard
/// library's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callsite {
    /// Its function; an address where it has no name.
    pub function: String,
    /// Who calls it, innermost first: the next functions of the program's, at most three, on
    /// the callstack that allocates the most bytes here.
    pub callers: Vec<String>,
    /// What it allocated.
    pub sums: Sums,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// All together.
    pub sums: Sums,
    /// The most bytes that were in use at once, of what was allocated inside. A reallocation
    /// is a new block beside the old one for a moment, whose bytes both count, as where the
    /// allocator has to copy: a `Vec` that doubles up to 1 MB peaks at 1.5 MB.
    pub peak_bytes: u64,
    /// Blocks that had no place, and are in no figure.
    pub missed: u64,
    /// By callstack, root first.
    stacks: Vec<(Vec<usize>, Sums)>,
}

#[derive(Default)]
struct Books {
    stacks: HashMap<Vec<usize>, Sums>,
    /// Bytes in use now, and at the most.
    in_use: u64,
    peak: u64,
}

/// What is kept of a block.
struct Block {
    stack: Vec<usize>,
    bytes: u64,
}

/// Books under a lock that callbacks alone take, and who started them at the end: nobody
/// who holds it allocates anything that is sampled.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Books>>);

impl Counting {
    fn with<T>(&self, f: impl FnOnce(&mut Books) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn born(&self, b: &Allocation<'_>) -> Block {
        let stack = b.callstack.to_vec();
        self.with(|books| {
            let sums = books.stacks.entry(stack.clone()).or_default();
            sums.allocations += 1;
            sums.bytes += b.size;
            sums.leaked_blocks += 1;
            sums.leaked_bytes += b.size;
            books.in_use += b.size;
            books.peak = books.peak.max(books.in_use);
        });
        Block { stack, bytes: b.size }
    }

    fn died(&self, block: &Block) {
        self.with(|books| {
            if let Some(sums) = books.stacks.get_mut(&block.stack) {
                sums.leaked_blocks -= 1;
                sums.leaked_bytes -= block.bytes;
            }
            // Of a block that dies when the books are closed nothing is there.
            books.in_use = books.in_use.saturating_sub(block.bytes);
        });
    }
}

impl Tracker for Counting {
    type Minor = Block;
    type Major = Block;

    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<Block> {
        Some(self.born(b))
    }
    fn alloc_major(&self, b: &Allocation<'_>) -> Option<Block> {
        Some(self.born(b))
    }
    fn promote(&self, block: Block) -> Option<Block> {
        Some(block)
    }
    fn dealloc_minor(&self, block: Block) {
        self.died(&block);
    }
    fn dealloc_major(&self, block: Block) {
        self.died(&block);
    }
}

/// Runs `f` and tells what it allocated. What it returns lives on, and so counts as
/// leaked: return what is to be looked at, and keep what is to be freed inside.
///
/// # Panics
///
/// If no profile can be started: `Heaptop` is not the global allocator, a profile samples on
/// this thread already, or this is a tracker's callback, of which nothing is sampled. And if
/// `f` does.
#[track_caller]
pub fn measure<T>(f: impl FnOnce() -> T) -> (T, Measured) {
    match try_measure(f) {
        Ok(measured) => measured,
        Err(why) => panic!("nothing can be measured: {why}"),
    }
}

/// As [`measure`]; an error where no profile can be started, and `f` is not run.
pub fn try_measure<T>(f: impl FnOnce() -> T) -> Result<(T, Measured), StartError> {
    if memprof::is_in_callback() {
        return Err(StartError::InCallback);
    }
    let counting = Counting::default();
    let config = Config::exact().callstack_size(64).scope(Scope::Thread);
    let config = config.delivery(Delivery::Prompt).unwinding();
    let profile = memprof::start(config, counting.clone())?;
    let result = f();
    let _ = profile.stop();
    settle(&profile);
    let missed = profile.stats().dropped;
    let books = counting.with(std::mem::take);
    let _ = profile.discard();
    Ok((result, Measured::of(books, missed)))
}

/// Deaths that could not be told where they were: in another callback, as a thread unwound,
/// or by a thread that is just promoting the block.
fn settle(profile: &Profile) {
    while profile.poll() > 0 {}
}

/// Names are read once for all tests of a binary.
static NAMES: Mutex<Option<Names>> = Mutex::new(None);

impl Measured {
    fn of(books: Books, missed: u64) -> Self {
        let mut sums = Sums::default();
        for of in books.stacks.values() {
            sums.add(of);
        }
        let mut stacks: Vec<_> = books.stacks.into_iter().collect();
        stacks.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self { sums, peak_bytes: books.peak, missed, stacks }
    }

    /// By callsite, most bytes first. The first question reads the executable's symbol
    /// table.
    #[must_use]
    pub fn callsites(&self) -> Vec<Callsite> {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let names = names.get_or_insert_with(Names::default);
        // By function: sums, and the bytes of the callstack that the callers are of.
        let mut by_name: HashMap<String, (Callsite, u64)> = HashMap::new();
        for (stack, sums) in &self.stacks {
            // From the callsite outward.
            let mut path = names.path(stack, 1 + CALLERS).into_iter();
            let function = path.next().unwrap_or_else(|| NO_CALLSTACK.into());
            let callers: Vec<String> = path.collect();
            let site = |function| Callsite { function, callers: vec![], sums: Sums::default() };
            let (site, most) =
                by_name.entry(function).or_insert_with_key(|function| (site(function.clone()), 0));
            // Of two callstacks that are equal one is as good, but always the same.
            if sums.bytes > *most || sums.bytes == *most && callers < site.callers {
                (site.callers, *most) = (callers, sums.bytes);
            }
            site.sums.add(sums);
        }
        let mut callsites: Vec<_> = by_name.into_values().map(|(site, _)| site).collect();
        callsites.sort_by(|a, b| {
            b.sums.bytes.cmp(&a.sums.bytes).then_with(|| a.function.cmp(&b.function))
        });
        callsites
    }

    /// Fails unless so many blocks were allocated.
    ///
    /// # Panics
    ///
    /// Then, with the callsites.
    #[track_caller]
    pub fn assert_allocations(&self, wanted: impl RangeBounds<u64> + fmt::Debug) {
        self.hold(&wanted, self.sums.allocations, "blocks were allocated");
    }

    /// Fails unless so many bytes were allocated.
    ///
    /// # Panics
    ///
    /// As above.
    #[track_caller]
    pub fn assert_bytes(&self, wanted: impl RangeBounds<u64> + fmt::Debug) {
        self.hold(&wanted, self.sums.bytes, "bytes were allocated");
    }

    /// Fails unless at most so many bytes were in use at once.
    ///
    /// # Panics
    ///
    /// As above.
    #[track_caller]
    pub fn assert_peak(&self, most_bytes: u64) {
        self.hold(&(..=most_bytes), self.peak_bytes, "bytes were in use at once");
    }

    /// Fails if something was not freed. What is made once and kept counts too: the buffer
    /// of standard output, a thread-local, a `OnceLock`. Run such code once before.
    ///
    /// # Panics
    ///
    /// As above.
    #[track_caller]
    pub fn assert_no_leak(&self) {
        self.hold(&(..=0), self.sums.leaked_blocks, "blocks were not freed");
    }

    #[track_caller]
    fn hold(&self, wanted: &(impl RangeBounds<u64> + fmt::Debug), is: u64, what: &str) {
        assert!(
            self.missed == 0,
            "more blocks at once than have a place: raise HEAPTOP_MEMORY\n{self}"
        );
        assert!(wanted.contains(&is), "{is} {what}, not {wanted:?}\n{self}");
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |s: &Sums| {
            let mut line = format!("{:>8} blocks {:>12} bytes", s.allocations, s.bytes);
            if s.leaked_blocks > 0 {
                let _ = write!(line, ", not freed {} ({} bytes)", s.leaked_blocks, s.leaked_bytes);
            }
            line
        };
        writeln!(f, "{}  in all, at most {} bytes at once", line(&self.sums), self.peak_bytes)?;
        if self.missed > 0 {
            writeln!(f, "{:>8} blocks had no place, and are in no figure", self.missed)?;
        }
        let callsites = self.callsites();
        for site in callsites.iter().take(SHOWN) {
            write!(f, "{}  {}", line(&site.sums), site.function)?;
            for caller in &site.callers {
                write!(f, " < {caller}")?;
            }
            writeln!(f)?;
        }
        match callsites.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "and {more} callsites more"),
        }
    }
}
