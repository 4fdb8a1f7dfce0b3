//! The service itself: requests, a cache, and sessions that are forgotten.
//!
//! Sizes come from a fixed sequence per thread: each run allocates the same
//! mix. Every function to look for is kept whole (`inline(never)`), and what it
//! allocates is what [`crate::truth`] counts. It asks for its blocks by itself: a
//! helper of ours in between, inlined or not, would be their callsite.

use crate::pace::{Owed, Running};
use crate::truth::{Block, Counters};
use std::hint::black_box;
use std::time::Instant;

static SERVE_REQUEST: Counters = Counters::new("serve_request", false);
static FILL_CACHE: Counters = Counters::new("fill_cache", true);
static FORGET_SESSION: Counters = Counters::new("forget_session", true);
static WRITE_REPORT: Counters = Counters::new("write_report", false);

/// All that it counts.
pub const CALLSITES: &[&Counters] = &[&SERVE_REQUEST, &FILL_CACHE, &FORGET_SESSION, &WRITE_REPORT];

/// Requests per second and worker. 24 buffers of 500 bytes each: 5 MiB/s.
const REQUESTS_PER_SECOND: f64 = 400.0;
const BUFFERS: usize = 24;
/// Pages per second, 1,088 bytes in the mean: 1 MiB/s.
const PAGES_PER_SECOND: f64 = 1000.0;
/// Reports per second, of 1,150 bytes in the mean, for which 3,000 are allocated: 290 KiB/s.
const REPORTS_PER_SECOND: f64 = 100.0;
/// A line of a report.
type ReportRow = [u8; 32];
/// Where the leak ends, so that a demo that is left alone does no harm.
const MOST_LEAKED: u64 = 1 << 30;

/// A linear congruential generator (Knuth's MMIX): sizes need no better one.
pub struct Sizes(u64);

impl Sizes {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A size between `low` and `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) as usize % (high - low + 1)
    }
}

/// Serves requests until the end; `leak` bytes per second are lost on the way.
#[inline(never)]
pub fn worker_loop(running: &Running, worker: u64, leak: u64) {
    let mut sizes = Sizes::new(worker);
    let mut requests = Owed::new(REQUESTS_PER_SECOND);
    let mut leaks = Owed::new(leak as f64);
    let mut to_leak = 0;
    let mut leaked = 0;
    let mut served = 0u64;
    running.each_tick(|time| {
        to_leak += leaks.after(time);
        for _ in 0..requests.after(time) {
            let owed = leaked < to_leak.min(MOST_LEAKED);
            leaked += handle_connection(&mut sizes, served, owed);
            served += 1;
        }
        // More sessions than requests, at high speeds.
        while leaked < to_leak.min(MOST_LEAKED) {
            leaked += log_in(&mut sizes);
        }
    });
}

/// Bytes that it lost.
#[inline(never)]
fn handle_connection(sizes: &mut Sizes, number: u64, with_log_in: bool) -> u64 {
    if number.is_multiple_of(4) {
        list_orders(sizes);
    } else {
        get_order(sizes);
    }
    if with_log_in { log_in(sizes) } else { 0 }
}

#[inline(never)]
fn list_orders(sizes: &mut Sizes) {
    black_box(serve_request(sizes, BUFFERS * 2));
}

#[inline(never)]
fn get_order(sizes: &mut Sizes) {
    black_box(serve_request(sizes, BUFFERS * 2 / 3));
}

#[inline(never)]
fn log_in(sizes: &mut Sizes) -> u64 {
    black_box(forget_session(sizes))
}

/// Dies young: all its buffers are freed before it returns.
#[inline(never)]
fn serve_request(sizes: &mut Sizes, buffers: usize) -> usize {
    let mut answer = [const { None::<Block> }; 2 * BUFFERS];
    for slot in answer.iter_mut().take(buffers) {
        let size = sizes.between(64, 1000);
        *slot = Some(Block::counted(black_box(vec![0; size].into_boxed_slice()), &SERVE_REQUEST));
    }
    answer.into_iter().flatten().map(|block| block.free(&SERVE_REQUEST)).count()
}

/// Leaks: the block stays for as long as the process. Returns its size.
#[inline(never)]
fn forget_session(sizes: &mut Sizes) -> u64 {
    let size = sizes.between(128, 896);
    Block::counted(black_box(vec![0; size].into_boxed_slice()), &FORGET_SESSION).forget();
    size as u64
}

/// Keeps the cache full, until the end: of 8,000 pages, 8 MiB, each stays for eight seconds.
/// It stays for the last count.
#[inline(never)]
pub fn cache_loop(running: &Running, most: usize) {
    let mut sizes = Sizes::new(77);
    let mut pages = Vec::with_capacity(most);
    pages.resize_with(most, || None);
    let mut next = 0;
    let mut due = Owed::new(PAGES_PER_SECOND);
    let mut reports = Owed::new(REPORTS_PER_SECOND);
    let mut to_warm = most as u64;
    running.each_tick(|time| {
        for _ in 0..due.after(time) + std::mem::take(&mut to_warm) {
            refresh_page(&mut sizes, &mut pages[next]);
            next = (next + 1) % most;
        }
        for _ in 0..reports.after(time) {
            write_report(&mut sizes);
        }
    });
    std::mem::forget(pages);
}

#[inline(never)]
fn refresh_page(sizes: &mut Sizes, slot: &mut Option<Block>) {
    let page = fill_cache(sizes);
    if let Some(old) = slot.replace(page) {
        old.free(&FILL_CACHE);
    }
}

/// Stays: a page lives until the cache has come round to it again.
#[inline(never)]
fn fill_cache(sizes: &mut Sizes) -> Block {
    let size = sizes.between(128, 2048);
    black_box(Block::counted(black_box(vec![0; size].into_boxed_slice()), &FILL_CACHE))
}

/// Grows: nobody says how many rows there will be, so their buffer doubles step by step,
/// from four of them to 2 KiB.
#[inline(never)]
fn write_report(sizes: &mut Sizes) {
    let rows = sizes.between(8, 2048 / size_of::<ReportRow>());
    let mut report: Vec<ReportRow> = Vec::new();
    let (mut was, mut born) = ((report.as_ptr(), 0), Instant::now());
    for row in 0..rows {
        report.push(black_box([row as u8; 32]));
        let is = (report.as_ptr(), report.capacity() * size_of::<ReportRow>());
        if was.1 == 0 {
            WRITE_REPORT.made(is.1);
        } else if is.1 != was.1 {
            WRITE_REPORT.grown(was.1, is.1, is.0 != was.0, born.elapsed());
        }
        if is.1 != was.1 {
            born = Instant::now();
        }
        was = is;
    }
    drop(black_box(report));
    WRITE_REPORT.dropped(was.1, born.elapsed());
}
