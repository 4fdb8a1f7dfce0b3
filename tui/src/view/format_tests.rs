//! Known figures and what they look like.

use super::*;
use Rounding::{Down, Nearest, Up};

const MIB: f64 = 1_048_576.0;

fn about(value: f64, half: f64, samples: u64) -> Estimate {
    Estimate::Interval { value, low: value - half, high: value + half, samples }
}

#[test]
fn bytes_have_three_digits() {
    let three = |v| bytes(v, 3, Nearest);
    assert_eq!(three(0.0), "0 B");
    assert_eq!(three(7.0), "7 B");
    assert_eq!(three(999.4), "999 B");
    assert_eq!(three(1000.0), "0.98 KiB");
    assert_eq!(three(1024.0), "1.00 KiB");
    assert_eq!(three(1.234 * MIB), "1.23 MiB");
    assert_eq!(three(12.34 * MIB), "12.3 MiB");
    assert_eq!(three(123.4 * MIB), "123 MiB");
    assert_eq!(three(999.6 * MIB), "0.98 GiB");
    assert_eq!(three(f64::NAN), "0 B");
    assert_eq!(three(1e24), "867000 EiB");
}

#[test]
fn what_would_be_finer_is_a_sentence() {
    let interval = heaptop_protocol::estimate::Interval::new(64 << 10).unwrap();
    let hint = Finer { interval, seconds: 39.7, within: 0.1 };
    assert_eq!(finer(&hint), "finer: R 64 KiB, ~40 s to ±10 %");
}

#[test]
fn counts_are_whole_and_si() {
    let three = |v| count(v, 3, Nearest);
    assert_eq!(three(355.0), "355");
    assert_eq!(three(1000.0), "1.00 k");
    assert_eq!(three(12_345.0), "12.3 k");
    assert_eq!(three(999_999.0), "1.00 M");
}

#[test]
fn intervals_take_digits_away() {
    let shown = |v, h| estimate(&about(v * MIB, h * MIB, 50), Unit::Bytes).to_string();
    assert_eq!(shown(231.4, 9.0), "231 MiB ±4 %");
    assert_eq!(shown(9.41, 2.05), "9.4 MiB ±22 %");
    assert_eq!(shown(38.4, 4.1), "38 MiB ±11 %");
    assert_eq!(shown(118.2, 30.0), "120 MiB ±26 %");
    assert_eq!(shown(9.41, 12.0), "9 MiB ±128 %");
    assert_eq!(shown(500.0, 1.0), "500 MiB ±0.2 %");
    assert_eq!(shown(5.0, 500.0), "5 MiB ±>999 %");
}

#[test]
fn the_larger_half_of_an_interval_is_shown() {
    let e = Estimate::Interval { value: 100.0, low: 95.0, high: 120.0, samples: 9 };
    assert_eq!(estimate(&e, Unit::Objects).to_string(), "100 ±20 %");
}

#[test]
fn bounds_lie_on_the_safe_side() {
    let below = Estimate::Below { high: 1.5 * MIB };
    assert_eq!(estimate(&below, Unit::Bytes).to_string(), "< 1.5 MiB");
    let below = Estimate::Below { high: 1.51 * MIB };
    assert_eq!(estimate(&below, Unit::BytesPerSecond).to_string(), "< 1.6 MiB/s");
    let least = Estimate::AtLeast { low: 1290.0, samples: 20 };
    assert_eq!(estimate(&least, Unit::ObjectsPerSecond).to_string(), "≥ 1.2 k/s");
    let least = Estimate::AtLeast { low: 0.05, samples: 1 };
    assert_eq!(estimate(&least, Unit::Objects).to_string(), "≥ 1");
    assert_eq!(estimate(&least, Unit::ObjectsPerSecond).to_string(), "> 0/s");
    assert_eq!(estimate(&about(0.44, 0.01, 9), Unit::ObjectsPerSecond).to_string(), "0.44/s ±3 %");
    assert_eq!(amount(0.0, Unit::BytesPerSecond, 3, Nearest), "0 B/s");
}

#[test]
fn unknown_is_a_dash_and_exact_has_no_interval() {
    assert_eq!(estimate(&Estimate::Unknown, Unit::Bytes).to_string(), "–");
    assert_eq!(estimate(&Estimate::Exact { value: 0.0 }, Unit::Bytes).to_string(), "0 B");
    assert_eq!(ratio(&Ratio::Unknown).to_string(), "–");
    assert_eq!(lifetime(&Lifetime::Unknown).to_string(), "–");
    let open = Lifetime::Median { ns: 5.0, low_ns: 0.0, high_ns: f64::INFINITY, samples: 1 };
    assert_eq!(lifetime(&open).to_string(), "–");
    assert_eq!(lifetime(&Lifetime::Beyond { ns: 0.0, samples: 9 }).to_string(), "–");
    assert_eq!(duration(4.4e5, 1, Nearest), "400 µs");
    assert_eq!(duration(4.4e5, 2, Nearest), "0.4 ms");
}

#[test]
fn few_samples_are_dim() {
    assert!(estimate(&about(9.0, 1.0, 4), Unit::Bytes).dim);
    assert!(!estimate(&about(9.0, 1.0, 5), Unit::Bytes).dim);
    assert!(ratio(&Ratio::Interval { value: 0.5, low: 0.1, high: 0.9, samples: 4 }).dim);
    assert!(lifetime(&Lifetime::Beyond { ns: 1.0, samples: 4 }).dim);
}

#[test]
fn shares_have_at_most_one_decimal() {
    let shown = |value: f64, low: f64, high: f64| {
        ratio(&Ratio::Interval {
            value: value / 100.0,
            low: low / 100.0,
            high: high / 100.0,
            samples: 99,
        })
        .to_string()
    };
    assert_eq!(shown(98.7, 97.8, 99.4), "98.7 % ±0.9");
    assert_eq!(shown(98.7, 97.5, 99.4), "98.7 % ±2");
    assert_eq!(shown(4.1, 3.8, 4.5), "4.1 % ±0.4");
    assert_eq!(shown(42.0, 30.0, 55.0), "42 % ±13");
    assert_eq!(shown(100.0, 97.3, 100.0), "100 % ≥ 97");
    assert_eq!(shown(100.0, 99.47, 100.0), "100 % ≥ 99.4");
    assert_eq!(shown(0.0, 0.0, 2.1), "0 % ≤ 3");
    assert_eq!(shown(0.0, 0.0, 0.31), "0 % ≤ 0.4");
    assert_eq!(shown(25.0, 25.0, 25.0), "25.0 %");
    assert_eq!(shown(100.0, 100.0, 100.0), "100 %");
}

#[test]
fn lifetimes_choose_their_unit() {
    let median = |ns: f64| {
        let l = Lifetime::Median { ns, low_ns: ns * 0.95, high_ns: ns * 1.05, samples: 50 };
        lifetime(&l).to_string()
    };
    assert_eq!(median(420.0), "420 ns ±5 %");
    assert_eq!(median(42e3), "42 µs ±5 %");
    assert_eq!(median(0.38e6), "0.4 ms ±5 %");
    assert_eq!(median(1.93e9), "1.9 s ±5 %");
    assert_eq!(median(40.0 * 60e9), "40 min ±5 %");
    assert_eq!(median(50.0 * 3600e9), "2.1 d ±5 %");
    let beyond = Lifetime::Beyond { ns: 40.6 * 60e9, samples: 50 };
    assert_eq!(lifetime(&beyond).to_string(), "> 40 min");
    let open = Lifetime::Median { ns: 2e9, low_ns: 1.19e9, high_ns: f64::INFINITY, samples: 50 };
    assert_eq!(lifetime(&open).to_string(), "≥ 1.1 s");
}

#[test]
fn rounding_keeps_what_is_round() {
    assert_eq!(bytes(1.5 * MIB, 2, Up), "1.5 MiB");
    assert_eq!(bytes(1.5 * MIB, 2, Down), "1.5 MiB");
    assert_eq!(uptime(192), "3 h 12 m");
    assert_eq!(uptime(3), "3 m");
    assert_eq!(uptime(0), "< 1 m");
    assert_eq!(interval(64 << 10), "1 in 64 KiB");
    assert_eq!(interval(1536), "1 in 1.50 KiB");
    assert_eq!(uptime(3000), "2 d 2 h");
    assert_eq!(interval(524_288), "1 in 512 KiB");
    assert_eq!(interval(1), "every byte");
    assert_eq!(grouped(1_234_567), "1,234,567");
    assert_eq!(grouped(123), "123");
    assert_eq!(cost(0.000_1), "< 0.1 %");
    assert_eq!(cost(0.003), "0.3 %");
    assert_eq!(cost(0.123), "12 %");
}

#[test]
fn moments_are_as_fine_as_the_cursor_moves() {
    let moment = |ms: u64, span_s: u64| moment(ms * 1_000_000, span_s * 1_000_000_000);
    assert_eq!(moment(3_249, 0), "3.2490 s");
    assert_eq!(moment(3_249, 5), "3.24 s");
    assert_eq!(moment(63_249, 90), "1 m 03.2 s");
    let seconds = |ms| moment(ms, 100);
    assert_eq!(
        [0, 3_249, 59_999, 192_500, 3_600_000, 90_061_000].map(seconds),
        ["0 s", "3 s", "59 s", "3 m 12 s", "1 h 00 m 00 s", "25 h 01 m 01 s"]
    );
}
