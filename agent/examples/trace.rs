//! Writes a line for every event of sampled blocks: a text trace.
//!
//! ```text
//! cargo run -p heaptop-agent --example trace -- [FILE]
//!
//!      0.001234 alloc   #17 minor 48 B, 1 sample, thread 4711, 12 frames
//!      0.002345 promote #17
//!      0.003456 dealloc #17 major
//! ```
//!
//! Callbacks are deferred, on a thread of the profile's own, so they may write and lock as
//! they like.

use heaptop_agent::memprof::{self, Allocation, Config, Tracker};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();

/// Where lines go, and whether that failed.
struct Trace {
    out: Mutex<Box<dyn Write + Send>>,
    started: Instant,
}

impl Trace {
    fn line(&self, at: Duration, line: &str) {
        if let Ok(mut out) = self.out.lock() {
            // A trace that cannot be written ends; the program does not.
            let _ = writeln!(out, "{:12.6} {line}", at.as_secs_f64());
        }
    }

    fn born(&self, b: &Allocation<'_>, kind: &str) -> u64 {
        let (id, size, n, thread) = (b.id, b.size, b.n_samples, b.thread);
        let s = if n == 1 { "" } else { "s" };
        let frames = b.callstack.len();
        let line = format!(
            "alloc   #{id} {kind} {size} B, {n} sample{s}, thread {thread}, {frames} frames"
        );
        self.line(b.time, &line);
        id
    }
}

impl Tracker for Trace {
    type Minor = u64;
    type Major = u64;

    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<u64> {
        Some(self.born(block, "minor"))
    }
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<u64> {
        Some(self.born(block, "major"))
    }
    fn promote(&self, id: u64) -> Option<u64> {
        self.line(self.started.elapsed(), &format!("promote #{id}"));
        Some(id)
    }
    fn dealloc_minor(&self, id: u64) {
        self.line(self.started.elapsed(), &format!("dealloc #{id} minor"));
    }
    fn dealloc_major(&self, id: u64) {
        self.line(self.started.elapsed(), &format!("dealloc #{id} major"));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out: Box<dyn Write + Send> = match std::env::args_os().nth(1) {
        Some(file) => Box::new(BufWriter::new(File::create(file)?)),
        None => Box::new(io::stdout()),
    };
    let trace = Trace { out: Mutex::new(out), started: Instant::now() };
    let profile = memprof::start(Config::interval_bytes(16 << 10)?.own_thread(), trace)?;

    // The program: words of a text, counted.
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..20_000u64 {
        let word = format!("word {}", round * 7919 % 1000);
        *counts.entry(word).or_default() += 1;
    }
    profile.stop()?;
    drop(counts);
    profile.poll();
    let stats = profile.stats();
    eprintln!(
        "{} blocks sampled, {} promoted, {} freed, {} live",
        stats.sampled, stats.promoted, stats.deallocated, stats.live
    );
    Ok(())
}
