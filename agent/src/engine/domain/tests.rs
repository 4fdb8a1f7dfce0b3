//! Samples come with the rate of the bytes, whatever comes between.

use super::*;
use crate::config::{Builder, Settings};
use crate::engine::sync::Ordering::Relaxed;
use crate::engine::{Engine, MAX_DOMAINS};

fn fresh() -> Domain {
    let d = Domain::new();
    d.begin(1, 0, 42);
    d
}

/// Runs blocks through the domain as the hook does; gives the hits and G.
fn run(d: &Domain, rate: Rate, sizes: impl Iterator<Item = usize>) -> (Vec<u64>, u64) {
    let (mut hits, mut clock) = (vec![], 0);
    for size in sizes {
        if d.spend(size) {
            clock += d.used_before(size) + size as u64;
            hits.extend(d.stop(size, rate).map(|h| h.n_samples));
        }
    }
    (hits, clock + d.used())
}

fn rate(r: u64) -> Rate {
    Rate::first(Interval::new(r).unwrap(), true)
}

/// Two handlers strike a thread that is at a stop, the one within the other, before that has
/// given back what its block took: the rest is far beyond what was granted.
#[test]
fn handlers_within_each_other_do_not_stop_the_countdown() {
    for r in [1, 5_000] {
        let d = fresh();
        assert_eq!(run(&d, rate(r), std::iter::once(8)).0.len(), usize::from(r == 1));
        assert!(d.enter() && !d.enter());
        let mut spent = 0;
        while !d.spend(48) {
            spent += 48;
        }
        assert!(!d.spend(48), "the inner one's block borrows no more");
        d.refund(48);
        d.leave_stop();
        let (hits, _) = run(&d, rate(r), std::iter::repeat_n(1000, 400));
        assert!(hits.len() as u64 >= 400 * 500 / r.max(500), "{r}, {spent}: {}", hits.len());
    }
}

#[test]
fn at_one_every_block_is_hit_by_all_its_bytes() {
    let (hits, clock) = run(&fresh(), rate(1), [3, 0, 100_000, 1].into_iter());
    assert_eq!(hits, [3, 100_000, 1]);
    assert_eq!(clock, 100_004);
}

#[test]
fn the_clock_is_exact_whatever_the_stops() {
    for r in [1, 50, 5_000, 1 << 20, 1 << 30] {
        let d = fresh();
        let sizes = (0..50_000usize).map(|i| (i * 7919) % 3000);
        let truth: u64 = sizes.clone().map(|s| s as u64).sum();
        assert_eq!(run(&d, rate(r), sizes).1, truth, "R {r}");
    }
}

#[test]
fn samples_come_with_the_rate_of_the_bytes() {
    for (r, block) in [(1000, 16), (1000, 900), (1000, 70_000), (200_000, 64)] {
        let n = 40_000_000 / block;
        let (hits, clock) = run(&fresh(), rate(r), std::iter::repeat_n(block, n));
        let expected = clock as f64 / r as f64;
        let samples: u64 = hits.iter().sum();
        assert!(
            (samples as f64 - expected).abs() < 5.0 * expected.sqrt(),
            "{samples} samples, {expected} expected, R {r}, blocks of {block}"
        );
        let p = Interval::new(r).unwrap().inclusion(block as u64);
        let blocks = n as f64 * p;
        let sigma = (n as f64 * p * (1.0 - p)).sqrt().max(1.0);
        assert!((hits.len() as f64 - blocks).abs() < 5.0 * sigma, "{} {blocks}", hits.len());
    }
}

#[test]
fn a_handler_that_strikes_before_the_slow_path_spoils_nothing() {
    let d = fresh();
    let spend = |size: usize| {
        let (left, reached) = d.left.get().overflowing_sub(size);
        d.left.set(left);
        reached
    };
    for r in [Interval::EXACT, Interval::new(1000).unwrap()] {
        let rate = Rate::following(d.word.get(), r, true);
        let (mut hits, mut clock) = (0, 0);
        for _ in 0..100_000 {
            if spend(8) {
                // Here the handler strikes: what it allocates borrows no more.
                assert!(!spend(48));
                let used = d.used_before(8);
                assert!(used <= STOP_BYTES, "{used}");
                clock += used + 8;
                hits += u64::from(d.stop(8, rate).is_some());
            }
        }
        let expected = 100_000.0 * r.inclusion(8);
        assert!((hits as f64 - expected).abs() <= 1.0 + 5.0 * expected.sqrt(), "{hits} {r:?}");
        assert!(clock.abs_diff(800_000) <= STOP_BYTES, "{clock}");
    }
    // A left from before a handler's stop, put back behind it.
    d.granted.set(10);
    d.left.set(1000usize.wrapping_sub(8));
    assert_eq!(d.used_before(8), 10);
}

#[test]
fn a_new_rate_is_taken_up_within_a_stop() {
    let d = fresh();
    let off = Rate::first(Interval::DEFAULT, false);
    assert_eq!(run(&d, off, std::iter::repeat_n(100, 10_000)).0, []);
    let on = Rate::following(off.word, Interval::EXACT, true);
    let (hits, _) = run(&d, on, std::iter::repeat_n(100, 2_000));
    assert!(hits.len() >= 2_000 - STOP_BYTES as usize / 100 - 1, "{}", hits.len());
    let off = Rate::following(on.word, Interval::EXACT, false);
    let (hits, _) = run(&d, off, std::iter::repeat_n(100, 2_000));
    assert_eq!(hits, [100], "the block at the stop still has the old rate");
}

#[test]
fn a_thread_has_no_number_before_it_is_given_one() {
    assert_eq!(Domain::new().id(), None, "nor is it that of the first thread");
    let d = fresh();
    assert_eq!((d.id(), d.is_new()), (Some(1), true));
}

#[test]
fn who_frees_or_is_at_a_stop_is_not_outside() {
    assert!(here(Domain::is_outside));
    let outer = Holding::begin();
    drop(Holding::begin());
    assert!(!here(Domain::is_outside), "a handler's free is over, the one it struck is not");
    drop(outer);
    assert!(here(Domain::enter) && !here(Domain::is_outside));
    here(Domain::leave);
    assert!(here(Domain::is_outside));
}

#[test]
fn words_always_change() {
    let mut word = Rate::first(Interval::DEFAULT, true).word;
    for _ in 0..100 {
        let next = Rate::following(word, Interval::DEFAULT, true);
        assert!(next.word != word && next.word != 0);
        assert_eq!(next.interval, Some(Interval::DEFAULT));
        word = next.word;
    }
    assert_ne!(Rate::following(u64::MAX, Interval::EXACT, false).word, 0);
}

#[test]
fn small_threads_are_on_the_clock() {
    let d = fresh();
    let mut booked = 0;
    for _ in 0..40 {
        if d.spend(100) {
            booked += d.used_before(100) + 100;
            d.stop(100, rate(1 << 30));
        }
    }
    assert!(booked >= 1000, "{booked} of 4000 bytes");
}

#[test]
fn threads_that_share_the_last_number_draw_differently() {
    let settings = Settings::from_builder(&Builder { seed: Some(7), ..Builder::DEFAULT });
    let engine = Engine::with(&settings).unwrap();
    engine.domains.store(MAX_DOMAINS as u32 - 1, Relaxed);
    let draw = || {
        let d = Domain::new();
        assert!(engine.begin_domain(&d));
        assert_eq!(d.id(), Some(MAX_DOMAINS as u32 - 1));
        d.rng.get().gap(-1e-12)
    };
    let (first, second, third) = (draw(), draw(), draw());
    assert!(first != second && second != third && first != third, "{first} {second} {third}");
}
