//! Whether intervals hold the truth as often as they say: seeded simulation.

use super::*;
use crate::session::estimate::survival::{Mass, Table, bucket};
use crate::session::figures::Lifetime;
use heaptop_protocol::totals::Totals;

const R: u64 = 512 << 10;
const RUNS: u32 = 2_000;

/// splitmix64: seeded, small, good enough for counting.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform().clamp(1e-12, 1.0 - 1e-12))
    }

    /// How many of `n` are hit, each with `p`: by jumps between hits.
    fn binomial(&mut self, n: u64, p: f64) -> u64 {
        let (mut at, mut hits) = (0.0, 0);
        loop {
            at += (self.uniform().max(1e-300).ln() / (-p).ln_1p()).floor() + 1.0;
            if at > n as f64 {
                return hits;
            }
            hits += 1;
        }
    }
}

/// Classes of equal blocks: how many, of which size.
type Mix = Vec<(u64, u64)>;

fn truth(mix: &Mix) -> (f64, f64) {
    let sum = |f: fn(u64, u64) -> f64| mix.iter().map(|&(n, s)| f(n, s)).sum();
    (sum(|n, s| (n * s) as f64), sum(|n, _| n as f64))
}

fn sample(mix: &Mix, r: Interval, random: &mut Random) -> Total {
    let mut total = Total::default();
    for &(n, size) in mix {
        for _ in 0..random.binomial(n, r.inclusion(size)) {
            total.add(&r.weight(size));
        }
    }
    total
}

/// Blocks of about `size`, of `spread` powers of e, until `expected` samples.
fn log_normal(size: f64, spread: f64, expected: f64, random: &mut Random) -> Mix {
    let (mut mix, mut sum) = (Mix::new(), 0.0);
    let share = expected / 40.0;
    while sum < expected {
        let s = (size * (spread * random.normal()).exp()).max(1.0) as u64;
        let n = (share * R as f64 / s as f64).ceil() as u64;
        sum += (n * s) as f64 / R as f64;
        mix.push((n, s));
    }
    mix
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    // Sums of floats: the truth itself carries rounding.
    let slack = truth * 1e-9;
    match estimate {
        Estimate::Unknown => false,
        Estimate::Exact { value } => (value - truth).abs() <= slack,
        Estimate::Interval { low, high, .. } => low <= truth + slack && truth - slack <= high,
        Estimate::Below { high } => truth <= high,
        Estimate::AtLeast { low, .. } => low <= truth + slack,
    }
}

fn mixes() -> Vec<(String, f64, Mix)> {
    let mut random = Random(7);
    let mut mixes = Vec::new();
    for expected in [3.0, 10.0, 30.0, 100.0, 300.0] {
        let samples = |x: f64| (x * R as f64) as u64;
        let mut add =
            |name: &str, mix: Mix| mixes.push((format!("{name} {expected}"), expected, mix));
        add("64 B", vec![(samples(expected) / 64, 64)]);
        add("R/2", vec![((expected * 2.0) as u64, R / 2)]);
        add("R", vec![(expected as u64, R)]);
        add("3R", vec![((expected / 3.0) as u64, 3 * R)]);
        add("64 B and 4R", vec![(samples(expected) / 64, 64), (20, 4 * R)]);
        add("64 B and 100R", vec![(samples(expected) / 64, 64), (2, 100 * R)]);
        add("log-normal", log_normal(4096.0, 1.0, expected, &mut random));
        add("wide log-normal", log_normal(65536.0, 2.0, expected, &mut random));
    }
    mixes
}

#[test]
fn sums_of_bytes_hold_the_truth() {
    let r = Interval::new(R).unwrap();
    let mut random = Random(1);
    let mut bad = Vec::new();
    for (name, expected, mix) in mixes() {
        let (bytes, _) = truth(&mix);
        let hits = (0..RUNS)
            .filter(|_| holds(super::bytes(&sample(&mix, r, &mut random), Some(r)), bytes))
            .count();
        let coverage = hits as f64 / f64::from(RUNS);
        println!("bytes {name}: {coverage}");
        // Few samples may be covered too well, many may not.
        let most = if expected >= 100.0 { 0.98 } else { 1.0 };
        if !(0.93..=most).contains(&coverage) {
            bad.push(format!("{name}: {coverage}"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// R changes tenfold while the blocks are born: the larger one is what is known.
#[test]
fn sums_over_changing_intervals_hold_the_truth() {
    let (coarse, fine) = (Interval::new(R).unwrap(), Interval::new(R / 10).unwrap());
    let mut random = Random(6);
    let mut bad = Vec::new();
    for (name, _, mix) in mixes() {
        let bytes = truth(&mix).0 * 2.0;
        let hits = (0..RUNS)
            .filter(|_| {
                let mut total = sample(&mix, coarse, &mut random);
                total.merge(&sample(&mix, fine, &mut random));
                holds(super::bytes(&total, Some(coarse)), bytes)
            })
            .count();
        let coverage = hits as f64 / f64::from(RUNS);
        println!("changing {name}: {coverage}");
        if coverage < 0.93 {
            bad.push(format!("{name}: {coverage}"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn counts_of_objects_hold_the_truth() {
    let r = Interval::new(R).unwrap();
    let mut random = Random(2);
    let mut bad = Vec::new();
    for expected in [3.0, 10.0, 30.0, 100.0, 300.0] {
        let of = |share: f64, size: u64| ((expected * share * R as f64 / size as f64) as u64, size);
        for (name, mix) in [
            ("64 B", vec![of(1.0, 64)]),
            ("64 B … 1 KiB", vec![of(0.25, 64), of(0.25, 256), of(0.5, 1024)]),
            ("R/2", vec![of(1.0, R / 2)]),
            ("16 B and 64 KiB", vec![of(0.5, 16), of(0.5, 64 << 10)]),
            ("64 KiB and 2R", vec![of(0.5, 64 << 10), of(0.5, 2 * R)]),
        ] {
            let (_, objects) = truth(&mix);
            let hits = (0..RUNS)
                .filter(|_| {
                    let total = sample(&mix, r, &mut random);
                    let estimate = super::objects(&total, Some(r));
                    // Without a sample no count is claimed.
                    estimate == Estimate::Unknown || holds(estimate, objects)
                })
                .count();
            let coverage = hits as f64 / f64::from(RUNS);
            println!("objects {name} {expected}: {coverage}");
            if coverage < 0.93 {
                bad.push(format!("{name} {expected}: {coverage}"));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn shares_hold_the_truth() {
    let r = Interval::new(R).unwrap();
    let mut random = Random(3);
    let mut bad = Vec::new();
    for interval in [r, Interval::new(1024).unwrap()] {
        for expected in [3.0, 10.0, 30.0, 100.0, 300.0] {
            for share in [0.0, 0.01, 0.1, 0.5, 1.0] {
                let per_size = |size: u64| {
                    let n = (expected / 2.0 / interval.inclusion(size)) as u64;
                    let promoted = (n as f64 * share).round() as u64;
                    (n, promoted, size)
                };
                let classes = [per_size(64), per_size(1500)];
                let bytes = |f: fn((u64, u64, u64)) -> u64| classes.map(f).iter().sum::<u64>();
                let truth = bytes(|(_, p, s)| p * s) as f64 / bytes(|(n, _, s)| n * s) as f64;
                let mut hits = 0;
                for _ in 0..RUNS {
                    let mut totals = Totals::default();
                    for (n, promoted, size) in classes {
                        let w = interval.weight(size);
                        let p = interval.inclusion(size);
                        for _ in 0..random.binomial(promoted, p) {
                            totals.promoted.add(&w);
                            totals.minor.add(&w);
                        }
                        for _ in 0..random.binomial(n - promoted, p) {
                            totals.minor.add(&w);
                        }
                    }
                    hits += u32::from(match share_of(&totals) {
                        Ratio::Unknown => true,
                        Ratio::Interval { low, high, .. } => {
                            low <= truth + 1e-9 && truth - 1e-9 <= high
                        }
                    });
                }
                let coverage = f64::from(hits) / f64::from(RUNS);
                println!("share {share} of {expected} at {}: {coverage}", interval.bytes());
                if coverage < 0.93 {
                    bad.push(format!("{share} of {expected} at {}: {coverage}", interval.bytes()));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

fn share_of(totals: &Totals) -> Ratio {
    share(&totals.promoted, &totals.minor)
}

/// Exponential lives of mean 1 s, watched from 10 s before to the end, births
/// spread over `window` seconds; half of them of another weight.
#[test]
fn medians_hold_the_truth() {
    let mut random = Random(4);
    let mut bad = Vec::new();
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    for blocks in [3u32, 10, 30, 100, 300] {
        for (name, window) in [("all dead", 1e6), ("many censored", 2.0)] {
            let mut hits = 0;
            for _ in 0..RUNS {
                let mut table = Table::default();
                for i in 0..blocks {
                    let w = if i % 2 == 0 { 1.0 } else { 3.0 };
                    let mass = Mass { w, w2: w * w };
                    let life = -random.uniform().max(1e-300).ln();
                    // Seen from time 0 on: some were born before it.
                    let born = random.uniform() * (window + 1.0) - 1.0;
                    if born + life < 0.0 {
                        continue;
                    }
                    if born < 0.0 {
                        table.entered(bucket(ns(-born)), mass);
                    }
                    table.n_blocks += 1;
                    if born + life < window {
                        table.died(bucket(ns(life)), mass);
                        table.n_deaths += 1;
                    } else {
                        table.censored(bucket(ns(window - born)), mass);
                    }
                }
                let median = std::f64::consts::LN_2 * 1e9;
                hits += u32::from(match table.median() {
                    Lifetime::Unknown | Lifetime::Beyond { .. } => true,
                    Lifetime::Median { low_ns, high_ns, .. } => {
                        low_ns <= median && median <= high_ns
                    }
                });
            }
            let coverage = f64::from(hits) / f64::from(RUNS);
            println!("median of {blocks} {name}: {coverage}");
            let most = if blocks >= 100 { 0.975 } else { 1.0 };
            if !(0.93..=most).contains(&coverage) {
                bad.push(format!("median of {blocks} {name}: {coverage}"));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn at_one_everything_is_exact() {
    let mut random = Random(5);
    let mix = vec![(10, 64), (3, 4096)];
    let total = sample(&mix, Interval::EXACT, &mut random);
    let exact = |value| Estimate::Exact { value };
    assert_eq!(bytes(&total, Some(Interval::EXACT)), exact(12928.0));
    assert_eq!(objects(&total, Some(Interval::EXACT)), exact(13.0));
    assert_eq!(bytes(&Total::default(), Some(Interval::EXACT)), exact(0.0));
}

#[test]
fn nothing_sampled_is_below_three_intervals() {
    let r = Interval::new(R);
    assert_eq!(bytes(&Total::default(), r), Estimate::Below { high: 3.0 * R as f64 });
    assert_eq!(bytes(&Total::default(), None), Estimate::Unknown);
    assert_eq!(objects(&Total::default(), r), Estimate::Unknown);
}

#[test]
fn shares_of_nothing_and_of_everything() {
    let mut total = Total::default();
    assert_eq!(share(&total, &total), Ratio::Unknown);
    total.add(&Interval::new(R).unwrap().weight(64));
    let Ratio::Interval { value, low, high, .. } = share(&total, &total) else {
        panic!("one block is something");
    };
    assert_eq!((value, high), (1.0, 1.0));
    assert!((low - 0.025).abs() < 1e-3, "one of one: {low}");
    let mut exact = Total::default();
    exact.add(&Interval::EXACT.weight(64));
    let all = Ratio::Interval { value: 1.0, low: 1.0, high: 1.0, samples: 1 };
    assert_eq!(share(&exact, &exact), all);
}

#[test]
fn broken_totals_make_no_broken_intervals() {
    let bad = [0.0, 1.0, 1e30, 1e-300];
    for sum in bad {
        for v in bad {
            for largest in bad {
                let m = Moments { sum, sum_sq: sum * sum, variance: v.min(sum * sum), largest };
                let total =
                    Total { n: 1, bytes: m, objects: m, smallest_size: 0, largest_size: u64::MAX };
                for r in [None, Some(Interval::EXACT), Interval::new(R)] {
                    for e in [bytes(&total, r), objects(&total, r)] {
                        if let Estimate::Interval { value, low, high, .. } = e {
                            assert!(low <= value && value <= high, "{total:?}: {e:?}");
                        }
                    }
                }
            }
        }
    }
}
