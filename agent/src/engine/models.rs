//! Models of the whole engine, and what all models share: see [`super::sync`].
//!
//! The models of each structure stand beside it, in a file of this name. They are
//! run by `tests/loom`, and count their interleavings.

use super::hook;
use super::sync::Ordering::Relaxed;
use super::{Engine, domain};
use crate::config::Builder;
use crate::engine::tracker::Cause;
use heaptop_protocol::estimate::Interval;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;

/// Runs `model` through every interleaving with at most `preemptions` switches
/// away from a thread that could go on. Bugs of lock-free code show within two
/// or three.
pub fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let count = Arc::new(Count::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    let counted = count.clone();
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        model();
    });
    println!("{name}: {} interleavings", count.load(Relaxed));
}

/// Settings of a small engine whose first samples are at `interval`.
fn settings(interval: Interval) -> Builder {
    Builder {
        interval_bytes: Some(u64::from(interval.bytes())),
        memory_bytes: 8 << 10,
        depth: 1,
        seed: Some(1),
        phase_bytes: Some(0),
        ..Builder::DEFAULT
    }
}

/// What the hook does at an allocation of `size` bytes that is given `block`;
/// whether it was one for the engine, or passed through.
#[inline(never)]
fn allocate(settings: &Builder, size: usize, block: usize) -> bool {
    if hook::spend(size) {
        hook::stop(size, settings, |_| {}).end(
            block as *mut u8,
            Cause::Malloc,
            0,
            &super::unwind::mark(),
        );
    }
    domain::here(domain::Domain::id).is_some()
}

/// And at a free.
fn free(block: usize) {
    if hook::may_hold(block)
        && let Some(taken) = hook::take(block)
    {
        hook::freed(taken, None);
    }
}

#[test]
fn one_thread_starts_the_engine_and_the_others_pass_through() {
    explore("engine: the first stops of three threads", 2, || {
        // Nothing is sampled: this is about the start and the domains.
        let begun = || u64::from(allocate(&settings(Interval::new(1 << 31).unwrap()), 100, 0x10));
        let others = [thread::spawn(begun), thread::spawn(begun)];
        assert!(!Engine::is_off());
        let mut begun = begun();
        for other in others {
            begun += other.join().unwrap();
        }
        assert!(begun >= 1, "somebody has started it");
        let engine = Engine::running().expect("it runs now");
        // Who passed through is on no clock and has no number.
        assert_eq!(engine.header.clock.load(Relaxed), begun * 100);
        assert_eq!(engine.tids().count() as u64, begun.min(super::MAX_DOMAINS as u64));
        let own = super::OTHER_THREADS as usize;
        assert!(engine.tids().take(own).all(|tid| tid != 0));
    });
}

#[test]
fn a_thread_that_ends_leaves_nothing_behind() {
    explore("engine: sampled blocks of two threads that end", 2, || {
        let settings = settings(Interval::EXACT);
        // The agent's own thread has begun, as the constructor does.
        assert!(allocate(&settings, 1, 0x10));
        free(0x10);
        let engine = Engine::running().unwrap();
        let worker = thread::spawn(move || {
            assert!(allocate(&settings, 8, 0x20));
            0x20
        });
        let (mut births, mut deaths) = (vec![], vec![]);
        let mut pass = || {
            engine.tracker.collect(|_, id| births.push(id), |i, _| deaths.push(i));
        };
        pass();
        // Freed by another thread, when the one that made it is gone.
        free(worker.join().unwrap());
        pass();
        births.sort_unstable();
        births.dedup();
        assert_eq!((births.len(), deaths.len()), (2, 2));
        for index in deaths {
            let (birth, death) =
                (engine.tracker.birth_of(index).unwrap(), engine.tracker.death_of(index).unwrap());
            assert!(birth.id < death.seq && birth.clock + birth.size <= death.clock);
            assert_eq!(birth.n_samples, birth.size, "each byte is a sample");
            engine.tracker.release(index);
        }
        assert_eq!((engine.tracker.live(), engine.tracker.lost()), (0, 0));
        assert_eq!(engine.header.clock.load(Relaxed), 9);
        assert!(!hook::may_hold(0x10) && !hook::may_hold(0x20));
    });
}
