//! The seeds' own benchmark, rebuilt: what tracking costs over sampling alone.
//!
//! ```text
//! cargo bench -p heaptop-agent --bench memprof
//! ```
//!
//! Untracked: the allocation callback returns nothing. Tracked: it returns something, and
//! promotion and death are told too. Short-lived: small garbage. Long-lived: a list that
//! grows, and is freed at the end. λ is per word of 8 bytes, as in the seeds. Both kinds
//! are run in turn, and the median of the ratios of neighbours is told, with the quartiles.
//! Time is the thread's on the CPU, so that what else the machine does weighs little.

use heaptop_agent::memprof::{self, Allocation, Config, Delivery, Scope, Tracker};
use std::hint::black_box;

#[global_allocator]
static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();

const ROUNDS: usize = 41;
const SHORT: usize = 4_000_000;
const LONG: usize = 1_000_000;

struct Tracks(bool);

impl Tracker for Tracks {
    type Minor = u64;
    type Major = u64;
    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<u64> {
        self.0.then_some(block.size)
    }
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<u64> {
        self.0.then_some(block.size)
    }
    fn promote(&self, size: u64) -> Option<u64> {
        Some(size)
    }
}

/// A list's node as the allocator sees it; nobody follows it.
type Node = (usize, [u64; 2]);

fn short_lived() {
    for i in 0..SHORT {
        black_box(Box::<Node>::new((0, [i as u64; 2])));
    }
}

fn long_lived() {
    let mut kept: Vec<Box<Node>> = Vec::new();
    for i in 0..LONG {
        kept.push(Box::<Node>::new((0, [i as u64; 2])));
    }
    black_box(&kept);
}

/// Seconds that the calling thread has had of a CPU.
fn cpu_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    assert_eq!(failed, 0, "a thread has a clock");
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// Seconds of a run with such a profile.
fn run(work: fn(), tracks: bool, lambda: f64) -> f64 {
    let config = Config::lambda(lambda).expect("λ is a probability");
    let config = config.scope(Scope::Process).delivery(Delivery::Prompt).callstack_size(10);
    let profile = memprof::start(config, Tracks(tracks)).expect("nothing else samples");
    let started = cpu_seconds();
    work();
    let took = cpu_seconds() - started;
    drop(profile);
    took
}

fn main() {
    println!("tracked ÷ untracked: median (quartiles) of {ROUNDS} pairs");
    println!("{:>12} {:>24} {:>24}", "λ per word", "short-lived", "long-lived");
    for per_word in [1e-4, 1e-3, 1e-2] {
        let ratios = [short_lived as fn(), long_lived].map(|work| {
            run(work, true, per_word / 8.0);
            let mut ratios: Vec<f64> = (0..ROUNDS)
                .map(|round| {
                    // The first of a pair in turn, so that what drifts weighs on both.
                    let first = run(work, round % 2 == 0, per_word / 8.0);
                    let second = run(work, round % 2 != 0, per_word / 8.0);
                    if round % 2 == 0 { first / second } else { second / first }
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let at = |part: usize| ratios[ROUNDS * part / 4];
            format!("{:.3} ({:.3}–{:.3})", at(2), at(1), at(3))
        });
        println!("{per_word:>12e} {:>24} {:>24}", ratios[0], ratios[1]);
    }
}
