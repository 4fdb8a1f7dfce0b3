use super::*;
use proptest::prelude::*;

fn life(number: u64, size: u64, r: u64) -> Life {
    Life {
        born_us: 0,
        ended_us: number,
        age: bucket(number * 1000),
        born_clock: 0,
        clock_age: 0,
        size,
        n_samples: 1 + size / r,
        interval: Interval::new(r).unwrap(),
        stack: 0,
        thread: ThreadId(1),
        cause: Cause::Malloc,
        born_young: true,
        promoted: false,
        listed: false,
        end: End::Freed,
    }
}

fn store(most: usize) -> Lives {
    let mut lives = Lives::with_room(most);
    lives.begin(Moment { seq: 0, time_ns: 0, clock: 0 });
    lives
}

/// 100,000 small lives in a store for 4,096: what is left still stands for all.
#[test]
fn thinned_lives_stand_for_those_that_went() {
    let mut lives = store(1 << 12);
    let (n, r) = (100_000u64, 1 << 16);
    for number in 0..n {
        lives.add(&life(number, 64, r));
    }
    assert!(lives.len() <= 1 << 12 && lives.len() > 1 << 10);
    assert!(lives.halvings() >= 5);
    assert_eq!(lives.iter().count(), lives.len());
    assert_eq!(lives.coarsest(), Interval::new(r << lives.halvings()));
    assert_eq!(lives.since().unwrap().time_ns, 0, "nothing was forgotten");
    let sum: f64 = lives.iter().map(|life| life.weight().bytes).sum();
    let truth = n as f64 * Interval::new(r).unwrap().weight(64).bytes;
    let sigma = truth / (lives.len() as f64).sqrt();
    assert!((sum - truth).abs() < 4.0 * sigma, "{sum} is not {truth}");
    // Early and late ones are left alike.
    let early = lives.iter().filter(|life| life.ended_us < n / 2).count() as f64;
    let all = lives.len() as f64;
    assert!((early - all / 2.0).abs() < 4.0 * (all / 4.0).sqrt(), "{early} of {all}");
}

/// Whether lives come before or after a thinning, the same are left.
#[test]
fn the_coins_are_of_the_life() {
    let mut early = store(1 << 10);
    for number in 0..1500 {
        early.add(&life(number, 64, 1 << 16));
    }
    assert_eq!(early.halvings(), 1);
    let mut late = store(1 << 10);
    late.halvings = 1;
    for number in 0..1500 {
        late.add(&life(number, 64, 1 << 16));
    }
    assert_eq!(late.halvings(), 1);
    assert!(early.iter().eq(late.iter()));
}

#[test]
fn lives_of_many_samples_stay() {
    let mut lives = store(1 << 8);
    for number in 0..1000 {
        lives.add(&life(number, 64, 1 << 16));
    }
    let mut large = store(1 << 8);
    large.halvings = lives.halvings;
    large.add(&life(7, 1 << 26, 1 << 16));
    let kept: Vec<Life> = large.iter().collect();
    let [life] = &kept[..] else { panic!("1,025 samples cannot all go") };
    assert!(u64::from(life.interval.bytes()) == (1 << 16) << lives.halvings);
}

/// Lives that were all but sure to be seen, thinned until they are not: more samples
/// than are counted do not make them stay too often.
#[test]
fn uncounted_samples_are_thinned_rightly() {
    let mut lives = store(1 << 10);
    let (n, r, size) = (40_000u64, 64u64, 64 << 9);
    for number in 0..n {
        lives.add(&Life { n_samples: 512, ..life(number, size, r) });
    }
    assert!(lives.halvings() >= 12, "{}", lives.halvings());
    let sum: f64 = lives.iter().map(|life| life.weight().objects).sum();
    let sigma = n as f64 / (lives.len() as f64).sqrt();
    assert!((sum - n as f64).abs() < 4.0 * sigma, "{sum} is not {n}");
}

#[test]
fn where_r_cannot_be_doubled_the_older_half_goes() {
    let mut lives = store(100);
    for number in 0..1000 {
        lives.add(&life(number, 64, (1 << 32) - 1));
    }
    assert!(lives.len() <= 100);
    let first = lives.iter().next().unwrap().ended_us;
    assert_eq!(lives.since().unwrap().time_ns, first * 1000);
    assert_eq!(lives.iter().last().unwrap().ended_us, 999);
}

/// What is promised of memory, counted: an hour at 2,000 samples a second is not even
/// thinned, and takes less than 200 MB.
#[test]
fn all_of_them_take_160_megabytes() {
    let mut lives = store(MOST);
    // Large ones take the most.
    for number in 0..3 * chunk::ROOM as u64 {
        lives.add(&Life { born_clock: number << 8, ..life(number * 500, 4096, 1 << 16) });
    }
    assert_eq!(lives.chunks.len(), 3);
    let a_life = lives.bytes() as f64 / lives.len() as f64;
    assert!(a_life < 27.1, "{a_life} bytes a life");
    assert!(a_life * MOST as f64 <= 160e6, "{a_life}");
}

#[test]
fn who_was_listed_was_seen_by_the_next_snapshot() {
    let mut lives = store(10);
    for time_ns in [5_000_000, 9_000_000] {
        lives.begin(Moment { seq: 0, time_ns, clock: 7 });
    }
    let seen = |listed, us| lives.first_seen(listed, us).map(|at| at.time_ns);
    assert_eq!(seen(true, 4_000), Some(5_000_000));
    assert_eq!(seen(true, 6_000), Some(9_000_000));
    assert_eq!(seen(false, 6_000), None);
    let mut many = Lives::with_room(10);
    for time_ns in 0..20_000 {
        many.begin(Moment { seq: 0, time_ns: time_ns * 1000, clock: 0 });
    }
    assert!(many.beginnings.len() <= MOST_BEGINNINGS);
    let seen = many.first_seen(true, 10_000).unwrap().time_ns;
    assert!((10_000_000..10_020_000).contains(&seen), "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// What goes in comes out, but for what is given up.
    #[test]
    fn packing_keeps_what_it_promises(
        times in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..40),
        numbers in any::<(u64, u64, u32, u32, u16, u16)>(),
        flags in any::<(bool, bool, bool)>(),
        r in 1u64..1 << 32,
    ) {
        let mut lives = store(100);
        let (size, clock, stack, thread, age, clock_age) = numbers;
        let mut given = Vec::new();
        for (i, (born, ended)) in times.iter().enumerate() {
            let (born_us, ended_us) = (born.min(ended) / 1000, born.max(ended) / 1000);
            let one = Life {
                born_us,
                ended_us,
                age: age % 488,
                born_clock: clock.rotate_left(i as u32),
                clock_age: clock_age % 488,
                size: size >> (i % 60),
                n_samples: 1 + u64::from(age),
                interval: Interval::new(r).unwrap(),
                stack: stack & 0x1f_ffff,
                thread: ThreadId(thread),
                cause: [Cause::Malloc, Cause::Calloc, Cause::Realloc, Cause::Aligned][i % 4],
                born_young: flags.0,
                promoted: flags.1,
                listed: flags.2,
                end: [End::Freed, End::FreedElsewhere, End::Unseen, End::Lost][i / 4 % 4],
            };
            lives.add(&one);
            given.push(one);
        }
        for (got, want) in lives.iter().zip(&given) {
            let oldest = want.ended_us.saturating_sub((1 << 40) - 1);
            // Very early births of a chunk are taken to be later.
            let clock = got.born_clock >= want.born_clock & !0xfff;
            prop_assert!(clock, "{} {}", got.born_clock, want.born_clock);
            let many = want.n_samples >= 255;
            prop_assert!(many && got.n_samples >= 255 || got.n_samples == want.n_samples);
            let want = Life {
                born_us: want.born_us.max(oldest),
                thread: ThreadId(want.thread.0.min(65_535)),
                born_clock: got.born_clock,
                n_samples: got.n_samples,
                ..*want
            };
            prop_assert_eq!(got, want);
        }
    }
}
