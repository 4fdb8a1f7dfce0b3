//! The demo's own counters: what an exact profiler would have to show.
//!
//! A block is counted with the size that was asked for, where it is asked for.
//! Promotion depends on where in a nursery cycle a block was born, which the
//! demo cannot know; but a block that lived while the demo allocated `a` bytes
//! was met by a turn of the cycle with probability min(1, a/N). The sum of
//! size × that is printed as `promoted_expected_bytes`, over the blocks that are
//! dead and, with their age so far, those that live. It knows only the bytes
//! that are counted here: nearly all the demo allocates.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// N, in bytes: given to the agent.
pub const NURSERY_BYTES: u64 = 2 << 20;

/// Bytes allocated by all counted functions.
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// One function's counters. Relaxed all over: loops add, and who prints them
/// has stopped the loops by a lock or by joining their threads.
pub struct Counters {
    name: &'static str,
    allocated_bytes: AtomicU64,
    allocated_objects: AtomicU64,
    freed_bytes: AtomicU64,
    freed_objects: AtomicU64,
    /// Σ size × min(1, age/N) over the dead, in 1/1024 bytes.
    promoted_dead: AtomicU64,
    /// Ages of the dead, in nanoseconds.
    ages_ns: AtomicU64,
    /// Blocks that came by realloc.
    reallocs: AtomicU64,
    /// Bytes that blocks held which lay elsewhere after that.
    copied_bytes: AtomicU64,
    /// Whether blocks that live must be thought of as older than N.
    keeps: bool,
}

/// A block and what is known of it.
pub struct Block {
    bytes: Box<[u8]>,
    born: u64,
    born_at: Instant,
}

impl Block {
    /// Counts a block that was just allocated. `bytes` is its only content.
    pub fn counted(bytes: Box<[u8]>, counters: &Counters) -> Self {
        let size = bytes.len() as u64;
        counters.allocated_bytes.fetch_add(size, Relaxed);
        counters.allocated_objects.fetch_add(1, Relaxed);
        Self { bytes, born: CLOCK.fetch_add(size, Relaxed), born_at: Instant::now() }
    }

    /// Frees it.
    pub fn free(self, counters: &Counters) {
        let size = self.bytes.len() as u64;
        // Other threads' bytes count as well, its own do not.
        let age = CLOCK.load(Relaxed) - self.born - size;
        drop(self.bytes);
        counters.ages_ns.fetch_add(self.born_at.elapsed().as_nanos() as u64, Relaxed);
        counters.freed_bytes.fetch_add(size, Relaxed);
        counters.freed_objects.fetch_add(1, Relaxed);
        counters
            .promoted_dead
            .fetch_add(size * age.min(NURSERY_BYTES) * 1024 / NURSERY_BYTES, Relaxed);
    }

    /// Loses it, for ever.
    pub fn forget(self) {
        std::mem::forget(self.bytes);
    }
}

impl Counters {
    /// Those of `name`; `keeps`: what of it lives counts as older than N.
    pub const fn new(name: &'static str, keeps: bool) -> Self {
        Self {
            name,
            allocated_bytes: AtomicU64::new(0),
            allocated_objects: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
            freed_objects: AtomicU64::new(0),
            promoted_dead: AtomicU64::new(0),
            ages_ns: AtomicU64::new(0),
            reallocs: AtomicU64::new(0),
            copied_bytes: AtomicU64::new(0),
            keeps,
        }
    }

    /// A buffer of `bytes` was made, which [`Self::grown`] and [`Self::dropped`] go on with.
    pub fn made(&self, bytes: usize) {
        self.allocated_bytes.fetch_add(bytes as u64, Relaxed);
        self.allocated_objects.fetch_add(1, Relaxed);
        CLOCK.fetch_add(bytes as u64, Relaxed);
    }

    /// It was reallocated from so many bytes, of that age, to others, and lies elsewhere since
    /// or not.
    pub fn grown(&self, from: usize, to: usize, moved: bool, age: Duration) {
        self.dropped(from, age);
        self.made(to);
        self.reallocs.fetch_add(1, Relaxed);
        if moved {
            self.copied_bytes.fetch_add(from.min(to) as u64, Relaxed);
        }
    }

    /// It is gone: young, as far as that is counted.
    pub fn dropped(&self, bytes: usize, age: Duration) {
        self.ages_ns.fetch_add(age.as_nanos() as u64, Relaxed);
        self.freed_bytes.fetch_add(bytes as u64, Relaxed);
        self.freed_objects.fetch_add(1, Relaxed);
    }

    fn line(&self) -> String {
        let [allocated, allocated_n, freed, freed_n, promoted, ages, reallocs, copied] = [
            &self.allocated_bytes,
            &self.allocated_objects,
            &self.freed_bytes,
            &self.freed_objects,
            &self.promoted_dead,
            &self.ages_ns,
            &self.reallocs,
            &self.copied_bytes,
        ]
        .map(|counter| counter.load(Relaxed));
        let in_use = allocated - freed;
        let promoted = promoted / 1024 + if self.keeps { in_use } else { 0 };
        format!(
            "{{\"function\":\"{}\",\"allocated_bytes\":{allocated},\"allocated_objects\":{allocated_n},\
             \"freed_bytes\":{freed},\"freed_objects\":{freed_n},\"in_use_bytes\":{in_use},\
             \"in_use_objects\":{},\"promoted_expected_bytes\":{promoted},\
             \"ages_ns\":{ages},\
             \"reallocs\":{reallocs},\"copied_bytes\":{copied}}}",
            self.name,
            allocated_n - freed_n,
        )
    }
}

/// Prints the truth: a line that announces it, and a line for each function.
pub fn print(why: &str, at: Duration, functions: &[&Counters]) {
    let mut text = format!(
        "{{\"truth\":\"{why}\",\"at_s\":{:.3},\"functions\":{}}}",
        at.as_secs_f64(),
        functions.len()
    );
    for counters in functions {
        text.push('\n');
        text.push_str(&counters.line());
    }
    say(&text);
}

/// Prints lines. A reader that went away is no reason to stop.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
