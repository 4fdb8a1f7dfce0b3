//! The books over an engine of their own, driven as the hook would.

use super::*;
use crate::config::{Builder, Settings};
use crate::engine::tracker::{Birth, Death};
use crate::engine::unwind::{Captured, End};

/// Books over an engine of their own, N = 1000, φ = 0, exact.
struct Bench {
    ledger: Ledger,
    engine: &'static Engine,
    stack: u32,
}

fn bench() -> Bench {
    bench_of(Track::All)
}

fn bench_of(track: Track) -> Bench {
    let settings = Settings::from_builder(&Builder {
        interval_bytes: Some(1),
        nursery_bytes: 1000,
        phase_bytes: Some(0),
        memory_bytes: 2 << 20,
        track,
        ..Builder::DEFAULT
    });
    let engine: &'static Engine = Box::leak(Box::new(Engine::with(&settings).unwrap()));
    // SAFETY: the engine is this test's own.
    let ledger = Ledger::new(engine, unsafe { engine.take_rest() }.unwrap()).unwrap();
    Bench { ledger, engine, stack: engine.callstacks.intern(&Captured::of(&[1, 2], End::Complete)) }
}

impl Bench {
    /// A block of 100 bytes at `address`, as the hook would do it.
    fn alloc(&self, address: usize, size: u64) -> u64 {
        let clock = self.engine.header.clock.fetch_add(size, Relaxed);
        let id = self.engine.next_seq();
        assert!(self.engine.tracker.birth(&Birth {
            id,
            address,
            size,
            n_samples: size.max(1),
            ns: self.engine.started_ns + id,
            clock,
            stack: self.stack,
            interval: 1,
            thread: 0,
            cause: Cause::Malloc,
            young: self.engine.nursery.is_young(size),
            replaces: 0,
        }));
        id
    }

    fn free(&self, address: usize) {
        let taken = self.engine.tracker.take(address).unwrap();
        self.engine.tracker.death(taken, || Death {
            seq: self.engine.next_seq(),
            ns: self.engine.started_ns,
            clock: self.engine.header.clock.load(Relaxed),
            thread: 1,
            stack: None,
        });
    }

    fn spend(&self, bytes: u64) {
        self.engine.header.clock.fetch_add(bytes, Relaxed);
    }

    /// Objects in use, allocated, minor and promoted, by stack and over all.
    fn counts(&mut self) -> [u64; 4] {
        self.ledger.pass();
        let n = |t: &Totals| [t.in_use.n, t.allocated.n, t.minor.n, t.promoted.n];
        let mut by_stack = Totals::default();
        self.ledger.changed_since(0).for_each(|s| by_stack.merge(&s.totals));
        assert_eq!(n(&by_stack), n(self.ledger.totals()));
        n(self.ledger.totals())
    }
}

#[test]
fn who_dies_in_its_cycle_dies_young() {
    let mut b = bench();
    b.alloc(0x10, 100);
    b.free(0x10);
    assert_eq!(b.counts(), [0, 1, 0, 0], "its cycle has not ended: it is in no rate");
    b.spend(1000);
    assert_eq!(b.counts(), [0, 1, 1, 0]);
}

#[test]
fn who_lives_when_its_cycle_ends_is_promoted_once() {
    let mut b = bench();
    b.alloc(0x10, 100);
    assert_eq!(b.counts(), [1, 1, 0, 0]);
    b.spend(1000);
    assert_eq!(b.counts(), [1, 1, 1, 1]);
    assert!(matches!(b.ledger.events(), [Event::Promote(_)]));
    b.spend(1000);
    assert_eq!(b.counts(), [1, 1, 1, 1]);
    b.free(0x10);
    assert_eq!(b.counts(), [0, 1, 1, 1]);
    assert!(matches!(b.ledger.events(), [Event::Dealloc(d)] if !d.young));
}

#[test]
fn a_death_after_the_turn_and_before_the_visit_was_promoted_too() {
    let mut b = bench();
    b.alloc(0x10, 100);
    b.ledger.pass();
    b.spend(1000);
    b.free(0x10);
    assert_eq!(b.counts(), [0, 1, 1, 1]);
    assert!(matches!(b.ledger.events(), [Event::Promote(_), Event::Dealloc(d)] if !d.young));
    // And with birth, turn and death between two passes.
    b.alloc(0x20, 100);
    b.spend(1000);
    b.free(0x20);
    assert_eq!(b.counts(), [0, 2, 2, 2]);
}

#[test]
fn large_blocks_are_major_from_birth() {
    let mut b = bench();
    b.alloc(0x10, 5000);
    b.free(0x10);
    assert_eq!(b.counts(), [0, 1, 0, 0]);
}

#[test]
fn the_peak_keeps_its_table() {
    let mut b = bench();
    b.alloc(0x10, 100);
    b.alloc(0x20, 200);
    b.stack = b.engine.callstacks.intern(&Captured::of(&[3], End::Complete));
    b.alloc(0x30, 300);
    b.free(0x20);
    b.alloc(0x40, 50);
    b.counts();
    let (_, peak, table) = b.ledger.peak();
    assert_eq!(peak.bytes.sum, 600.0);
    let by_stack: Vec<f64> = table.iter().map(|s| s.in_use.bytes.sum).collect();
    assert_eq!(by_stack, [300.0, 300.0]);
    b.alloc(0x50, 1000);
    b.counts();
    let (_, peak, table) = b.ledger.peak();
    assert_eq!(peak.bytes.sum, 1450.0);
    assert_eq!(table.iter().map(|s| s.in_use.bytes.sum).sum::<f64>(), 1450.0);
}

#[test]
fn what_is_discarded_is_forgotten_and_stays_so() {
    let mut b = bench();
    b.alloc(0x10, 100);
    b.alloc(0x20, 100);
    b.ledger.discard();
    b.spend(5000);
    b.free(0x10);
    let new = b.alloc(0x30, 100);
    assert_eq!(b.counts(), [1, 1, 0, 0]);
    let live: Vec<u64> = (0..3).filter_map(|i| b.ledger.block(i)).map(|l| l.id.0).collect();
    assert_eq!(live, [new]);
}

#[test]
fn stacks_beyond_the_table_are_charged_to_the_others() {
    let mut b = bench();
    let room = b.ledger.records.len();
    for i in 0..room + 5 {
        b.stack = b.engine.callstacks.intern(&Captured::of(&[7, i as u64], End::Complete));
        b.alloc(0x1000 + i * 16, 1);
    }
    b.ledger.pass();
    assert!(b.ledger.unplaced() > 0);
    let others = b.ledger.changed_since(0).find(|s| s.stack == StackId::OTHER).unwrap();
    assert_eq!(others.totals.in_use.n, b.ledger.unplaced());
    assert_eq!(b.ledger.totals().in_use.n as usize, room + 5);
}

#[test]
fn a_full_table_thins_without_bias() {
    let (mut truth, mut estimates) = (0.0, vec![]);
    for round in 0..20 {
        let mut b = bench();
        b.ledger.rng = Rng::seeded(round, 1);
        let (room, _) = b.engine.tracker.room();
        let blocks = room - room / 8;
        for i in 0..blocks {
            b.alloc(0x1000 + i * 16, 10 + (i % 7) as u64 * 300);
        }
        b.ledger.pass();
        truth = b.ledger.totals().in_use.bytes.sum;
        assert!(b.ledger.thin());
        assert!((b.engine.tracker.live() as usize) <= room - room / 4);
        assert!(b.ledger.thinned() > 0 && b.engine.interval().bytes() > 1);
        let in_use = b.ledger.totals().in_use;
        assert_eq!(in_use.n, u64::from(b.engine.tracker.live()));
        estimates.push(in_use.bytes.sum);
        // What remains can die, and what was dropped is unknown.
        for i in 0..blocks {
            if let Some(taken) = b.engine.tracker.take(0x1000 + i * 16) {
                b.engine.tracker.death(taken, || Death {
                    seq: 0,
                    ns: 0,
                    clock: 0,
                    thread: 0,
                    stack: None,
                });
            }
        }
        b.ledger.pass();
        assert_eq!(b.ledger.totals().in_use, Total::default());
    }
    let mean = estimates.iter().sum::<f64>() / estimates.len() as f64;
    assert!((mean / truth - 1.0).abs() < 0.01, "{mean} for {truth}");
}

#[test]
fn stale_waiters_are_swept_out() {
    let mut b = bench();
    for i in 0..5000u64 {
        b.alloc(0x10, 0);
        b.free(0x10);
        if i % 100 == 0 {
            b.ledger.pass();
        }
    }
    b.ledger.pass();
    assert!(b.ledger.waiting.len() <= 1200, "{}", b.ledger.waiting.len());
}

#[test]
fn much_is_worked_off_in_several_passes() {
    let mut b = bench();
    b.ledger.most_a_pass = 100;
    for i in 0..500 {
        b.alloc(0x1000 + i * 16, 10);
        b.free(0x1000 + i * 16);
        b.alloc(0x9000 + i * 16, 10);
    }
    let now = b.ledger.up_to_now();
    b.ledger.pass();
    assert!(b.ledger.has_more() && b.ledger.done() < now);
    let told = |e: &&Event| !matches!(e, Event::Promote(_));
    assert_eq!(b.ledger.events().iter().filter(told).count(), 100);
    // What comes meanwhile waits for its turn.
    b.alloc(0x10, 1);
    let mut passes = 1;
    while b.ledger.done() < now {
        b.ledger.pass();
        passes += 1;
    }
    assert_eq!(passes, 15);
    assert_eq!(b.ledger.totals().allocated.n, 1000);
    b.ledger.pass();
    assert_eq!(b.ledger.totals().allocated.n, 1001);
    assert_eq!(b.ledger.totals().in_use.n, 501);
}

/// What is told of single blocks, in order: `a`, `p` or `d`, and the block.
fn told(b: &mut Bench) -> Vec<(char, u64)> {
    b.ledger.pass();
    let told = b.ledger.events().iter().map(|event| match event {
        Event::Alloc(e) => ('a', e.id().0),
        Event::Promote(e) => ('p', e.id.0),
        Event::Dealloc(e) => ('d', e.id.0),
    });
    told.collect()
}

#[test]
fn of_promoted_blocks_alone_nothing_is_told_before_they_are_promoted() {
    let mut b = bench_of(Track::Promoted);
    let ids = [0x10, 0x20, 0x30].map(|at| b.alloc(at, 100));
    b.free(0x10);
    let major = b.alloc(0x40, 5000);
    // The block that is major from birth has the cycle turn: two young ones survive.
    let young = b.alloc(0x50, 100);
    b.free(0x20);
    assert_eq!(
        told(&mut b),
        [('a', ids[2]), ('p', ids[2]), ('a', major), ('a', ids[1]), ('p', ids[1]), ('d', ids[1])],
        "what died young is nowhere, and what survived is whole"
    );
    // In use, allocated, minor, promoted.
    assert_eq!(b.counts(), [2, 0, 0, 2]);
    b.spend(1000);
    assert_eq!(told(&mut b), [('a', young), ('p', young)]);
    assert_eq!(b.counts(), [3, 0, 0, 3]);
    for at in [0x30, 0x40, 0x50] {
        b.free(at);
    }
    told(&mut b);
    assert_eq!(b.counts()[0], 0);
    assert_eq!(b.engine.tracker.live(), 0);
}

#[test]
fn blocks_that_are_held_are_in_no_snapshot_and_are_thinned() {
    let mut b = bench_of(Track::Promoted);
    b.alloc(0x10, 100);
    b.ledger.pass();
    assert!(b.ledger.block(0).is_none());
    let coarse = Interval::new(1 << 30).unwrap();
    b.ledger.thin_to(coarse);
    assert_eq!((b.engine.tracker.live(), b.counts()), (0, [0; 4]), "a hundred samples in 2³⁰");
    b.alloc(0x10, 100);
    b.ledger.pass();
    b.spend(1000);
    b.ledger.pass();
    assert!(b.ledger.block(0).is_some_and(|block| !block.young && block.born_young));
}

#[test]
fn of_allocations_alone_deaths_are_no_business() {
    let mut b = bench_of(Track::Allocations);
    let first = b.alloc(0x10, 100);
    let second = b.alloc(0x20, 100);
    // Before the books know of it, and after.
    b.free(0x20);
    assert_eq!(told(&mut b), [('a', first), ('d', first), ('a', second), ('d', second)]);
    assert!(b.engine.tracker.take(0x10).is_none(), "it is an unknown block from here on");
    b.spend(5000);
    assert_eq!(b.counts(), [0, 2, 0, 0]);
    assert_eq!(told(&mut b), []);
    assert_eq!(b.engine.tracker.live(), 0);
    // Their entries are free.
    for round in 0..b.engine.tracker.room().0 + 10 {
        b.alloc(0x10 + round * 16, 100);
        b.ledger.pass();
    }
    assert_eq!(b.engine.tracker.lost(), 0);
}
