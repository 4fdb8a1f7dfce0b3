//! A program that has floating-point exceptions sent as signals gets none of ours, and what
//! it is told of its own calculations is of its own alone.

use super::word::{read, write};
use crate::engine::domain::{Domain, Rate};
use crate::memprof::{Allocation, Cause, Config};
use heaptop_protocol::estimate::Interval;
use std::hint::black_box;

/// Nothing is a signal, nothing has come up or much has; all is a signal but what nearly each
/// operation brings up; all is.
const SIGNALS: [u32; 4] = [0x1f80, 0x1f80 | 0x35, 0x1000, 0];
/// To the nearest; downwards, with all that is very small taken for 0.
const ROUNDING: [u32; 2] = [0, 0x2000 | 0x8000 | 0x0040];

/// What a thread's stops find in blocks of many sizes, with the word as it is set; and the
/// word afterwards.
#[inline(never)]
fn stops(r: Interval, set: u32) -> (Vec<u64>, u32) {
    let mut hits: Vec<u64> = Vec::with_capacity(4000);
    let rate = [Rate::first(r, true), Rate::first(Interval::DEFAULT, true)];
    let d = Domain::new();
    d.begin(1, 0, 42);
    let before = read();
    write(set);
    for i in 0..2000usize {
        let size = 1 << (i % 31);
        if d.spend(size) {
            let rate = rate[usize::from(i > 1500)];
            let hit = black_box(d.stop(size, rate)).map_or(0, |hit| hit.n_samples);
            hits.push(hit);
            hits.push(d.thin(hit, keep(i)));
        }
    }
    let after = read();
    write(before);
    (hits, after)
}

fn keep(i: usize) -> f64 {
    f64::from_bits([0x3fb9_9999_9999_999a, 0x3fee_6666_6666_6666][i % 2])
}

/// In a process of its own, which a signal may end.
fn in_child(f: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child allocates, whose locks are sound behind a fork, and leaves.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(i32::from(!f()));
        }
        let mut status = -1;
        libc::waitpid(pid, &raw mut status, 0);
        status
    }
}

#[test]
fn stops_are_no_signals_and_leave_the_word_as_it_was() {
    for r in [1, 2, 64, 512 << 10].map(|r| Interval::new(r).unwrap()) {
        let usual = stops(r, 0x1f80).0;
        assert!(usual.iter().any(|n| *n > 0));
        for signals in SIGNALS {
            for rounding in ROUNDING {
                let set = signals | rounding;
                let status = in_child(|| stops(r, set) == (usual.clone(), set));
                assert_eq!(status, 0, "R {}, word {set:#x}", r.bytes());
            }
        }
    }
}

/// What a callback asks of its block is calculated in the midst of an allocation.
#[test]
fn what_a_block_stands_for_is_no_signal_and_leaves_the_word_as_it_was() {
    let weighed = |set: u32| {
        let block = Allocation {
            id: 1,
            n_samples: 1,
            size: black_box(1000),
            address: 16,
            cause: Cause::Malloc,
            replaces: None,
            lambda: black_box(1.0 / 3000.0),
            domain: 0,
            thread: 0,
            clock_bytes: 0,
            time: std::time::Duration::ZERO,
            born_young: true,
            callstack: &[],
            is_cut: false,
        };
        let before = read();
        write(set);
        let objects = black_box(block.weight_objects());
        let bytes = black_box(block.weight_bytes());
        let config = black_box(Config::interval_bytes(black_box(3000)));
        let after = read();
        write(before);
        (objects.to_bits(), bytes.to_bits(), config.is_ok(), after)
    };
    let (objects, bytes, ..) = weighed(0x1f80);
    for set in SIGNALS.iter().flat_map(|signals| ROUNDING.map(|rounding| signals | rounding)) {
        let status = in_child(|| weighed(set) == (objects, bytes, true, set));
        assert_eq!(status, 0, "word {set:#x}");
    }
}
