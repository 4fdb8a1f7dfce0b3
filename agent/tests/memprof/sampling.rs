//! What is sampled, and how much: rows 1, 2, 4, 5, 20, 21, 24, 25.

use crate::help::{Told, adds_up, block, exact, logged, prompt};
use heaptop_agent::memprof::{Allocation, Config, Scope, Tracker, start};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Sums of `n_samples` for two sizes.
#[derive(Default)]
struct Sums {
    small: AtomicU64,
    large: AtomicU64,
    wrong: AtomicU64,
}

const SMALL: u64 = 48;
const LARGE: u64 = 3000;

struct Summing(Arc<Sums>, f64);

impl Summing {
    fn born(&self, block: &Allocation<'_>) {
        let right = (block.lambda - self.1).abs() < 1e-12 && block.n_samples > 0;
        self.0.wrong.fetch_add(u64::from(!right), SeqCst);
        match block.size {
            SMALL => self.0.small.fetch_add(block.n_samples, SeqCst),
            LARGE => self.0.large.fetch_add(block.n_samples, SeqCst),
            _ => 0,
        };
    }
}

impl Tracker for Summing {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<()> {
        self.born(block);
        None
    }
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<()> {
        self.born(block);
        None
    }
}

/// Whether a count is what so many bytes have at this λ, within five standard errors.
fn fits(n: u64, bytes: u64, lambda: f64, what: &str) {
    let expected = bytes as f64 * lambda;
    let error = (expected * (1.0 - lambda)).sqrt();
    assert!((n as f64 - expected).abs() < 5.0 * error, "{what}: {n}, not {expected} ± {error}");
}

#[test]
fn row_1_every_byte_is_sampled_with_the_same_probability() {
    let _beside = crate::help::beside();
    // One that is no whole interval, one that the stream is coarser than, one that is
    // above the stream's.
    for lambda in [0.3, 1.0 / 1000.0, 1.0 / 300_000.0] {
        let sums = Arc::new(Sums::default());
        let config = Config::lambda(lambda).unwrap().scope(Scope::Thread).callstack_size(0);
        let profile = start(config, Summing(sums.clone(), lambda)).unwrap();
        let rounds = if lambda < 1e-4 { 60_000 } else { 5_000 };
        for i in 0..rounds {
            drop(block(SMALL as usize));
            drop(block(LARGE as usize));
            if i % 1000 == 0 {
                profile.poll();
            }
        }
        profile.poll();
        fits(sums.small.load(SeqCst), rounds * SMALL, lambda, "small blocks");
        fits(sums.large.load(SeqCst), rounds * LARGE, lambda, "large blocks");
        assert_eq!(sums.wrong.load(SeqCst), 0, "each event has its λ");
        adds_up(&profile.stats());
    }
    for bad in [-1e-9, 1.1, f64::NAN] {
        assert!(Config::lambda(bad).is_err(), "{bad}");
    }
}

#[test]
fn row_2_at_one_all_is_sampled_and_at_zero_nothing() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(exact(), &[777, 5555]);
    let blocks = [block(777), block(5555)];
    profile.poll();
    let told: Vec<_> = log
        .take_ends()
        .into_iter()
        .map(|t| match t {
            Told::Alloc { size, n, major, .. } => (size, n, major),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(777, 777, false), (5555, 5555, true)]);
    drop((profile, blocks));
    let config = Config::lambda(0.0).unwrap().scope(Scope::Thread);
    let (profile, log) = logged(config, &[]);
    (0..10_000).for_each(|_| drop(block(999)));
    profile.poll();
    assert_eq!((log.take_ends().len(), profile.stats().sampled), (0, 0));
}

#[test]
fn row_4_what_is_refused_is_not_told_of_again() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(prompt(), &[1001]);
    let kept: Vec<_> = (0..50).map(|i| block(1001 + i % 2)).collect();
    drop(kept);
    crate::help::all_dead(&profile);
    let told = log.take_ends();
    let of = |born: bool| told.iter().filter(|t| matches!(t, Told::Alloc { .. }) == born).count();
    assert_eq!((of(true), of(false)), (25, 25), "one birth, one death of each that was kept");
    let stats = profile.stats();
    assert!(stats.refused >= 25 && stats.tracked == 25, "{stats:?}");
    adds_up(&stats);

    /// Refuses at promotion.
    struct Once(AtomicU64);
    impl Tracker for Once {
        type Minor = ();
        type Major = ();
        fn alloc_minor(&self, _: &Allocation<'_>) -> Option<()> {
            Some(())
        }
        fn dealloc_major(&self, (): ()) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    drop(profile);
    let profile = start(exact(), Once(AtomicU64::new(0))).unwrap();
    let kept: Vec<_> = (0..50).map(|_| block(1001)).collect();
    crate::help::turn();
    profile.poll();
    drop(kept);
    profile.poll();
    let stats = profile.stats();
    assert!(stats.refused_at_promotion >= 50, "{stats:?}");
    adds_up(&stats);
}

/// Allocates in its callbacks.
struct Greedy(Arc<AtomicU64>, Arc<AtomicU64>);

const GREEDY: usize = 1234;

impl Tracker for Greedy {
    type Minor = Vec<u8>;
    type Major = Vec<u8>;
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<Vec<u8>> {
        self.0.fetch_add(u64::from(b.size == GREEDY as u64), SeqCst);
        self.1.fetch_add(b.n_samples, SeqCst);
        (0..20).for_each(|_| drop(block(GREEDY)));
        Some(block(GREEDY))
    }
    fn dealloc_minor(&self, _: Vec<u8>) {
        drop(block(GREEDY));
    }
}

#[test]
fn row_5_what_a_callback_allocates_is_not_sampled() {
    let _beside = crate::help::beside();
    for config in [prompt(), exact()] {
        let (own, all) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let profile = start(config, Greedy(own.clone(), all)).unwrap();
        (0..200).for_each(|_| drop(block(333)));
        profile.poll();
        let stats = profile.stats();
        assert!(stats.tracked >= 200, "{stats:?}");
        assert_eq!(own.load(SeqCst), 0, "none of the callbacks' own");
    }
    // Nor is the gap to the next sample shortened by it.
    let (own, all) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let lambda = 1.0 / 2000.0;
    let config = Config::lambda(lambda).unwrap().scope(Scope::Thread).callstack_size(0);
    let config = config.delivery(heaptop_agent::memprof::Delivery::Prompt);
    let profile = start(config, Greedy(own, all.clone())).unwrap();
    (0..100_000).for_each(|_| drop(block(100)));
    drop(profile);
    fits(all.load(SeqCst), 100_000 * 100, lambda, "between callbacks that allocate");
    // Nor by what the engine allocates for callstacks, of which each is as long as two gaps.
    let lambda = 1.0 / 100.0;
    let config = Config::lambda(lambda).unwrap().scope(Scope::Thread).callstack_size(25);
    let sums = Arc::new(Sums::default());
    let profile = start(config, Summing(sums.clone(), lambda)).unwrap();
    for _ in 0..30_000 {
        drop(deep(20, SMALL as usize));
        profile.poll();
    }
    drop(profile);
    fits(sums.small.load(SeqCst), 30_000 * SMALL, lambda, "beside callstacks");
}

#[test]
fn row_20_domains_draw_differently() {
    let _beside = crate::help::beside();
    let sampled = || {
        heaptop_agent::spawn(|| {
            let config = Config::interval_bytes(10_000).unwrap().scope(Scope::Thread);
            let (profile, log) = logged(config, &[640]);
            (0..2000).for_each(|_| drop(block(640)));
            profile.poll();
            let mut at: Vec<u64> = Vec::new();
            for told in log.take() {
                if let Told::Alloc { n, .. } = told {
                    at.push(n);
                }
            }
            (at.len(), profile.stats().sampled)
        })
        .join()
        .unwrap()
    };
    let counts: Vec<_> = (0..8).map(|_| sampled()).collect();
    assert!(counts.iter().any(|c| *c != counts[0]), "eight threads alike: {counts:?}");
}

#[test]
fn row_21_a_gap_carries_over_and_restarts_do_no_harm() {
    let _beside = crate::help::beside();
    let lambda = 1.0 / 5000.0;
    let sums = Arc::new(Sums::default());
    let mut bytes = 0;
    // One profile whose blocks come one by one between others' stops, and many that are
    // started anew every few blocks.
    for _ in 0..3000 {
        let config = Config::lambda(lambda).unwrap().scope(Scope::Thread).callstack_size(0);
        let profile = start(config, Summing(sums.clone(), lambda)).unwrap();
        (0..20).for_each(|_| drop(block(SMALL as usize)));
        drop(block(LARGE as usize));
        bytes += 20 * SMALL + LARGE;
        profile.poll();
    }
    fits(sums.small.load(SeqCst) + sums.large.load(SeqCst), bytes, lambda, "with restarts");
}

#[test]
fn row_24_threads_sample_at_once_with_different_rates_and_depths() {
    let _beside = crate::help::beside();
    let threads: Vec<_> = [(1.0, 0), (0.5, 3), (0.01, 7)]
        .into_iter()
        .map(|(lambda, depth)| {
            std::thread::spawn(move || {
                let config = Config::lambda(lambda).unwrap().scope(Scope::Thread);
                let sums = Arc::new(Sums::default());
                let profile =
                    start(config.callstack_size(depth), Summing(sums.clone(), lambda)).unwrap();
                for _ in 0..3000 {
                    drop(block(LARGE as usize));
                    profile.poll();
                }
                if lambda == 1.0 {
                    assert_eq!(sums.large.load(SeqCst), 3000 * LARGE);
                } else {
                    fits(sums.large.load(SeqCst), 3000 * LARGE, lambda, "beside others");
                }
                assert_eq!(sums.wrong.load(SeqCst), 0);
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[inline(never)]
fn deep(steps: usize, bytes: usize) -> Vec<u8> {
    if steps == 0 {
        return block(bytes);
    }
    let block = deep(steps - 1, bytes);
    std::hint::black_box(block)
}

#[test]
fn row_25_callstacks_are_cut_at_the_root_end() {
    let _beside = crate::help::beside();
    let stack_at = |depth: usize| {
        let (profile, log) = logged(exact().callstack_size(depth), &[2021]);
        let block = deep(20, 2021);
        profile.poll();
        drop(block);
        let told = log.take_ends();
        match &told[..] {
            [Told::Alloc { frames, .. }] => frames.clone(),
            other => panic!("{other:?}"),
        }
    };
    let (none, few, many) = (stack_at(0), stack_at(5), stack_at(100));
    assert_eq!((none.len(), few.len()), (0, 5));
    assert!(many.len() > 20, "{}", many.len());
    // The innermost frames are kept, and stand last.
    assert_eq!(few[..], many[many.len() - 5..]);
}

/// A signal would end all of these tests.
#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_sampled_is_no_floating_point_exception_of_the_programs() {
    #[link(name = "m")]
    unsafe extern "C" {
        fn feenableexcept(which: i32) -> i32;
        fn fedisableexcept(which: i32) -> i32;
    }
    const ALL: i32 = 0x3d;
    let _beside = crate::help::beside();
    for lambda in [1.0, 0.9, 0.3, 1e-3] {
        let sums = Arc::new(Sums::default());
        let config = Config::lambda(lambda).unwrap().scope(Scope::Thread);
        // SAFETY: the thread's own word; nothing is calculated here until it is as before.
        unsafe { feenableexcept(ALL) };
        let profile = start(config, Summing(Arc::clone(&sums), lambda));
        for _ in 0..2000 {
            drop(block(LARGE as usize));
        }
        let stopped = profile.map(|profile| profile.stop());
        // SAFETY: as above.
        unsafe { fedisableexcept(ALL) };
        assert_eq!(stopped.ok(), Some(Ok(())));
    }
}
