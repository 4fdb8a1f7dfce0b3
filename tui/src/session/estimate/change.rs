//! Growth between two times of one target, and differences of two recordings.
//!
//! **Growth.** Blocks that live at both times are the same blocks: they cancel, and
//! with them their uncertainty. What remains are two disjoint sets,
//!
//! ```text
//! growth = Σw (born between, alive at t₁)  −  Σw (alive at t₀, dead by t₁)
//!               gained                           lost
//! ```
//!
//! independent as all inclusions are, so variances add. (A least-squares line
//! through the in-use series covers the truth in 16–31 % of cases, since its points
//! share their blocks.)
//!
//! **Differences** of two recordings are of independent estimates: variances add.
//!
//! **Interval** of a − b from those of a and b: MOVER, the method of variance
//! estimates recovery (Zou & Donner 2008):
//!
//! ```text
//! low  = a − b − √((a − lₐ)² + (u_b − b)²)
//! high = a − b + √((uₐ − a)² + (b − l_b)²)
//! ```
//!
//! Where both are normal, from 30 samples on, this is the normal interval with
//! variances added; below, each side brings its own gamma limits, so that the
//! lop-sidedness of few samples stays on its side. (How far in those lie, see
//! [`halfway`], goes by the samples of both.) A set without a block brings
//! 3.69 R upwards: with 2.5 % chance so much stays unseen.

use super::{GrowthSight, Interval, Sight, halfway, limits};
use crate::session::figures::{Change, Estimate};
use heaptop_protocol::totals::{Moments, Total};

/// Growth in bytes, from what was gained and what was lost: see the module.
#[must_use]
pub fn growth(gained: &Total, lost: &Total, sight: impl Into<GrowthSight>) -> Change {
    let sight = sight.into();
    difference((gained, sight.gained), (lost, sight.lost))
}

/// By how many bytes `a` is more than `b`, two sets that were sampled independently.
#[must_use]
pub fn difference(a: (&Total, Sight), b: (&Total, Sight)) -> Change {
    // Both sides err independently, so that counts of their difference are as even as
    // those of twice as many samples.
    let effective = |(total, sight): (&Total, Sight)| {
        let variance = if total.n == 0 { 0.0 } else { total.bytes.variance };
        unit(total, sight).map_or(0.0, |u| variance / (u * u))
    };
    let h = halfway(2.0 * (effective(a) + effective(b)));
    minus(&Side::of(a.0, a.1, h), &Side::of(b.0, b.1, h), a.0.n + b.0.n)
}

/// The difference of two estimates that were made independently, for figures that
/// come without their totals. Where one has no sample, its 3 R stand for 3.69 R.
#[must_use]
pub fn difference_of(a: Estimate, b: Estimate) -> Change {
    minus(&Side::from(a), &Side::from(b), samples(a) + samples(b))
}

/// One of the two: its value and its limits, as far as there are any.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Unknown,
    Known { value: f64, low: f64, high: f64 },
    AtLeast { low: f64 },
}

/// ln 40 ÷ 3: from the bound that holds with 95 % to that with 97.5 %.
const UNSEEN: f64 = 1.229_626_488_478_9;

/// The weight of one sample of small blocks; `None` where nothing is known of it.
fn unit(total: &Total, sight: Sight) -> Option<f64> {
    match sight.interval {
        Some(r) => Some(f64::from(r.bytes())),
        None if total.n > 0 => Some(total.bytes.largest.max(1.0)),
        None => None,
    }
}

impl Side {
    fn of(total: &Total, sight: Sight, h: f64) -> Self {
        let Total { n, bytes: m, .. } = total;
        // Of what was born while sampling was off nothing is here.
        let unseen = sight.lost || sight.off;
        if *n == 0 && unseen {
            return Self::Unknown;
        }
        let none = Moments::default();
        let m = if *n == 0 { &none } else { m };
        if sight.interval == Some(Interval::EXACT) && m.variance == 0.0 {
            return Self::exactly(m.sum, unseen);
        }
        let Some(unit) = unit(total, sight) else { return Self::Unknown };
        let (low, high) = limits(m, *n, unit, h);
        if unseen { Self::AtLeast { low } } else { Self::Known { value: m.sum, low, high } }
    }

    const fn exactly(value: f64, lost: bool) -> Self {
        if lost {
            Self::AtLeast { low: value }
        } else {
            Self::Known { value, low: value, high: value }
        }
    }
}

impl From<Estimate> for Side {
    fn from(estimate: Estimate) -> Self {
        match estimate {
            Estimate::Unknown => Self::Unknown,
            Estimate::Exact { value } => Self::exactly(value, false),
            Estimate::Interval { value, low, high, .. } => Self::Known { value, low, high },
            Estimate::Below { high } => Self::Known { value: 0.0, low: 0.0, high: high * UNSEEN },
            Estimate::AtLeast { low, .. } => Self::AtLeast { low },
        }
    }
}

const fn samples(estimate: Estimate) -> u64 {
    match estimate {
        Estimate::Interval { samples, .. } | Estimate::AtLeast { samples, .. } => samples,
        Estimate::Unknown | Estimate::Exact { .. } | Estimate::Below { .. } => 0,
    }
}

fn minus(a: &Side, b: &Side, samples: u64) -> Change {
    match (*a, *b) {
        (Side::Unknown, _) | (_, Side::Unknown) | (Side::AtLeast { .. }, Side::AtLeast { .. }) => {
            Change::Unknown
        }
        (
            Side::Known { value: a, low: la, high: ha },
            Side::Known { value: b, low: lb, high: hb },
        ) => {
            let value = a - b;
            if la == ha && lb == hb {
                return Change::Exact { value };
            }
            let low = value - (a - la).hypot(hb - b);
            let high = value + (ha - a).hypot(b - lb);
            Change::Interval { value, low, high, samples }
        }
        // At each limit the one that is known from one side stands at its bound: what
        // it is beyond that only makes the difference larger, or smaller.
        (Side::AtLeast { low: a }, Side::Known { high: b, .. }) => {
            Change::AtLeast { low: a - b, samples }
        }
        (Side::Known { high: a, .. }, Side::AtLeast { low: b }) => {
            Change::AtMost { high: a - b, samples }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: u64 = 512 << 10;

    fn blocks(n: u64, size: u64, r: u64) -> Total {
        let mut total = Total::default();
        for _ in 0..n {
            total.add(&Interval::new(r).unwrap().weight(size));
        }
        total
    }

    fn interval(change: Change) -> (f64, f64, f64) {
        let Change::Interval { value, low, high, .. } = change else { panic!("{change:?}") };
        (value, low, high)
    }

    #[test]
    fn at_one_growth_is_exact() {
        let (gained, lost) = (blocks(7, 100, 1), blocks(2, 50, 1));
        let r = Some(Interval::EXACT);
        assert_eq!(growth(&gained, &lost, r), Change::Exact { value: 600.0 });
        assert_eq!(growth(&lost, &gained, r), Change::Exact { value: -600.0 });
        let none = Total::default();
        assert_eq!(growth(&none, &none, r), Change::Exact { value: 0.0 });
    }

    /// 200 and 100 small blocks: ± 1.96 √300 weights.
    #[test]
    fn many_samples_add_their_variances() {
        let (gained, lost) = (blocks(200, 64, R), blocks(100, 64, R));
        let w = Interval::new(R).unwrap().weight(64);
        let (value, low, high) = interval(growth(&gained, &lost, Interval::new(R)));
        assert!((value - 100.0 * w.bytes).abs() < 1.0);
        let half = 1.959_964 * (300.0 * w.bytes_variance).sqrt();
        assert!((value - low - half).abs() < 1e-5 * half, "{low}");
        assert!((high - value - half).abs() < 1e-5 * half, "{high}");
    }

    /// Garwood's limits of 2 and of 1 counts, combined by hand.
    #[test]
    fn few_samples_combine_their_own_limits() {
        let (gained, lost) = (blocks(2, 1, R), blocks(1, 1, R));
        let (value, low, high) = interval(growth(&gained, &lost, Interval::new(R)));
        let r = R as f64;
        let (two, one) = ((0.242_209, 7.224_688), (0.025_318, 5.571_643));
        let want_low = 1.0 - f64::hypot(2.0 - two.0, one.1 - 1.0);
        let want_high = 1.0 + f64::hypot(two.1 - 2.0, 1.0 - one.0);
        assert!((value / r - 1.0).abs() < 1e-5);
        assert!((low / r - want_low).abs() < 2e-3, "{} {want_low}", low / r);
        assert!((high / r - want_high).abs() < 2e-3, "{} {want_high}", high / r);
    }

    #[test]
    fn nothing_seen_is_within_what_can_hide() {
        let none = Total::default();
        let (value, low, high) = interval(growth(&none, &none, Interval::new(R)));
        let hidden = 3.688_879 * R as f64;
        assert_eq!(value, 0.0);
        assert!((low + hidden).abs() < 1e-3 * hidden && (high - hidden).abs() < 1e-3 * hidden);
        assert_eq!(growth(&none, &none, None), Change::Unknown);
    }

    #[test]
    fn lost_births_leave_one_side_or_none() {
        let seen = Sight::from(Interval::new(R));
        let lost = Sight { lost: true, ..seen };
        let off = Sight { off: true, ..seen };
        let (many, few, none) = (blocks(300, 64, R), blocks(10, 64, R), Total::default());
        assert_eq!(growth(&many, &few, lost), Change::Unknown);
        let Change::AtLeast { low, samples: 310 } = difference((&many, lost), (&few, seen)) else {
            panic!("the first is known from below");
        };
        assert!(low > 200.0 * R as f64 && low < 290.0 * R as f64, "{low}");
        let Change::AtMost { high, .. } = difference((&few, seen), (&many, lost)) else {
            panic!("the second is known from below");
        };
        assert!(high < -200.0 * R as f64, "{high}");
        assert_eq!(difference((&none, off), (&few, seen)), Change::Unknown);
    }

    #[test]
    fn estimates_differ_as_their_totals_do() {
        let r = Interval::new(R);
        for (n, m) in [(200, 100), (2, 1), (3, 0), (0, 2)] {
            let (a, b) = (blocks(n, 64, R), blocks(m, 64, R));
            let by_total = interval(growth(&a, &b, r));
            let by_estimate = difference_of(super::super::bytes(&a, r), super::super::bytes(&b, r));
            let (value, low, high) = interval(by_estimate);
            assert!((value - by_total.0).abs() < 1.0);
            assert!((low - by_total.1).abs() < 1e-3 * R as f64, "{n} {m}: {low} {}", by_total.1);
            assert!((high - by_total.2).abs() < 1e-3 * R as f64, "{n} {m}: {high} {}", by_total.2);
        }
        let bound = Estimate::AtLeast { low: 5.0, samples: 3 };
        assert_eq!(
            difference_of(bound, Estimate::Exact { value: 2.0 }),
            Change::AtLeast { low: 3.0, samples: 3 }
        );
        assert_eq!(difference_of(bound, bound), Change::Unknown);
    }
}
