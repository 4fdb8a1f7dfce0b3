//! Every interval on every screen is made here, by pure functions over totals.
//!
//! A total holds, of a set of sampled blocks, y = Σw (w = s/p for bytes, 1/p
//! for objects), v = Σw²(1 − p), Σw², the largest w and n. v is the variance of
//! y given which blocks exist (Horvitz & Thompson).
//!
//! **Sums.** Let u be the weight of one sample of blocks ≪ R: R for bytes,
//! R/size for objects. v/u² is then about the number of samples that chance had
//! a say in: a block of x·R adds x²e⁻ˣ/(1 − e⁻ˣ)², which is 1 for x → 0 and
//! vanishes for x ≫ 1. From 30 of them on the normal interval y ± 1.96 √v holds.
//! Below, Fay & Feuer's gamma interval for weighted Poisson sums (1997), both ends
//! half a sample further in where there are more than a few ([`halfway`]), with
//! two things bent so that it also holds where blocks ≫ R, which are certain,
//! stand beside blocks ≪ R, which are few:
//!
//! - lower end: the gamma quantile with mean y and variance v. A certain part
//!   only makes it more normal, which errs to the safe side;
//! - upper end: only the uncertain part yᵣ = min(y, v/u) gets Fay & Feuer's
//!   upper limit, with one more sample of weight u; the rest is added. At v = 0
//!   this is y + 3.69 u: what was seen is certain, yet 3.69 R in small blocks
//!   can hide from sampling with 2.5 % chance, whatever their sizes.
//!
//! So a sum is exact at R = 1 alone. Where not all was seen less is known: see
//! [`Sight`].
//!
//! **Shares.** The part and the whole are sampled alike; n' = (Σw)²/Σw² · Σw²/v
//! is the effective number of blocks, enlarged where p → 1 (finite population).
//! Wilson's interval where both outcomes have ten of them, and Clopper &
//! Pearson's on n' elsewhere, likewise half a trial further in where they have a few:
//! Wilson's covers 86 % near 0 and 1.
//!
//! **Growth** and differences are in [`change`], **lifetimes** in [`survival`] and
//! [`curve`], other nurseries in [`what_if`], many rows at once in [`family`], and
//! what a finer R would give in [`precision`].

// Formulas keep the letters they have in the literature.
#![allow(clippy::many_single_char_names)]

pub mod beta;
pub mod change;
pub mod curve;
pub mod family;
pub mod forecast;
pub mod gamma;
pub mod precision;
mod sight;
pub mod survival;
pub mod what_if;

use super::figures::{Estimate, Ratio};
use gamma::Quantile;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::totals::{Moments, Total};
pub use sight::{GrowthSight, Sight};
use std::sync::LazyLock;

/// The normal quantile of 97.5 %.
const Z: f64 = 1.959_963_984_540_054;
/// From so many effective samples on the normal interval is used.
const NORMAL_FROM: f64 = 30.0;
/// Sizes further apart than this leave object counts one-sided.
const SIZE_RATIO: f64 = 16.0;
/// The same while there are fewer than [`NORMAL_FROM`] samples.
const SIZE_RATIO_OF_FEW: f64 = 2.0;
/// With fewer samples nothing is known of how mixed the sizes are.
const LEAST_SAMPLES: u64 = 5;

static LOW: LazyLock<Quantile> = LazyLock::new(|| Quantile::new(0.025));
static HIGH: LazyLock<Quantile> = LazyLock::new(|| Quantile::new(0.975));
static ONE_SIDED: LazyLock<Quantile> = LazyLock::new(|| Quantile::new(0.05));

/// The standard normal quantile (Acklam's rational approximation, 10⁻⁹).
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p < 0.024_25 {
        let q = (-2.0 * p.ln()).sqrt();
        return horner(&C, q) / (horner(&D, q) * q + 1.0);
    }
    let q = p - 0.5;
    let r = q * q;
    horner(&A, r) * q / (horner(&B, r) * r + 1.0)
}

/// Bytes of a set of blocks. (An R alone, as `sight`, means that all was seen.)
#[must_use]
pub fn bytes(total: &Total, sight: impl Into<Sight>) -> Estimate {
    let sight = sight.into();
    let unit = sight.interval.map(|r| f64::from(r.bytes()));
    sight.limit(sum(&total.bytes, total.n, unit, sight.interval), total.n)
}

/// Objects of a set of blocks. Two-sided only where sizes are known to be
/// alike: within 1:16, within 1:2 of fewer than 30 samples, not at all of fewer
/// than 5. Even so it speaks of sizes like those seen: a kind of block so small
/// or rare that no sample hit it is in no count of objects.
#[must_use]
pub fn objects(total: &Total, sight: impl Into<Sight>) -> Estimate {
    let sight = sight.into();
    sight.limit(objects_seen(total, sight.interval), total.n)
}

fn objects_seen(total: &Total, interval: Option<Interval>) -> Estimate {
    let exact = interval == Some(Interval::EXACT);
    if total.n == 0 {
        // Any number of small blocks can hide: no bound is known.
        return if exact { Estimate::Exact { value: 0.0 } } else { Estimate::Unknown };
    }
    let m = &total.objects;
    let smallest = total.smallest_size.max(1) as f64;
    let ratio = total.largest_size as f64 / smallest;
    let few = (total.n as f64) < NORMAL_FROM;
    let most = if few { SIZE_RATIO_OF_FEW } else { SIZE_RATIO };
    if !exact && (ratio > most || total.n < LEAST_SAMPLES) {
        let low = gamma_limit(&ONE_SIDED, m.sum, m.variance).max(0.0).min(m.sum);
        return Estimate::AtLeast { low, samples: total.n };
    }
    let unit = interval.map(|r| 1.0_f64.max(f64::from(r.bytes()) / smallest));
    sum(m, total.n, unit, interval)
}

fn sum(m: &Moments, n: u64, unit: Option<f64>, interval: Option<Interval>) -> Estimate {
    let (y, v) = (m.sum, m.variance);
    if interval == Some(Interval::EXACT) && v == 0.0 {
        return Estimate::Exact { value: y };
    }
    if n == 0 {
        // e⁻³ is 5 %: the chance that 3R bytes stay unseen.
        return unit.map_or(Estimate::Unknown, |u| Estimate::Below { high: 3.0 * u });
    }
    let u = unit.unwrap_or(m.largest).max(1.0);
    let (low, high) = limits(m, n, u, halfway(v / (u * u)));
    Estimate::Interval { value: y, low, high, samples: n }
}

/// Both ends of the 95 % interval of a sum over `n` blocks, `h` samples of weight `u`
/// further in than the safe ones. Without a block the upper one is what stays unseen
/// with 2.5 % chance.
fn limits(m: &Moments, n: u64, u: f64, h: f64) -> (f64, f64) {
    let (y, v) = if n == 0 { (0.0, 0.0) } else { (m.sum, m.variance) };
    let (low, high) = if v / (u * u) >= NORMAL_FROM {
        let half = Z * v.sqrt();
        (y - half, y + half)
    } else {
        let chancy = y.min(v / u);
        // What is added stands for the unseen: where there are more than a few it is not
        // all of the largest weight, but also of the average one (Tiwari, Clegg & Zou
        // 2006). They differ where R changed.
        let unseen = (1.0 - h) * if y > 0.0 { u - h * (u - v / y) } else { u };
        let low = if y > 0.0 { gamma_limit(&LOW, y + h * u, v + h * u * u) } else { 0.0 };
        (low, y - chancy + gamma_limit(&HIGH, chancy + unseen, v + unseen * u))
    };
    // `max` and `min` also turn away what totals that cannot be make of it.
    (low.max(0.0).min(y), high.max(y))
}

/// How much of a sample each end moves inwards, with so many effective samples.
///
/// Intervals that hold in at least 95 % of cases whatever the truth, such as Garwood's
/// for counts and Clopper & Pearson's for shares, hold in 97 to 99 % on average, since
/// counts are whole. The same with half a sample less at the upper end, and half a one
/// more at the lower, holds in 95 % on average and seldom in less than 93 (Jeffreys'
/// interval; Brown, Cai and coauthors 2001, 2003). Of very few the safe ones are kept.
pub(crate) fn halfway(samples: f64) -> f64 {
    (samples - 6.0).clamp(0.0, 6.0) / 12.0
}

/// A quantile of the gamma distribution with this mean and variance.
fn gamma_limit(quantile: &Quantile, mean: f64, variance: f64) -> f64 {
    let shape = mean * mean / variance;
    if shape < 1e6 {
        variance / mean * quantile.at(shape)
    } else {
        // Normal by then; also where nothing varies.
        mean + quantile.normal() * variance.sqrt()
    }
}

/// A sum of which much may be unseen, over `n` parts that are seen by chance: a bound from
/// below, of 95 %, unless all is seen.
#[must_use]
pub fn at_least(m: &Moments, n: u64, exact: bool) -> Estimate {
    match n {
        _ if exact => Estimate::Exact { value: m.sum },
        0 => Estimate::Unknown,
        _ => {
            let low = gamma_limit(&ONE_SIDED, m.sum, m.variance).max(0.0).min(m.sum);
            Estimate::AtLeast { low, samples: n }
        }
    }
}

/// Lower end, value and upper end; `None` where an estimate has not all of them.
#[must_use]
pub fn ends(estimate: Estimate) -> Option<(f64, f64, f64)> {
    match estimate {
        Estimate::Exact { value } => Some((value, value, value)),
        Estimate::Interval { value, low, high, .. } => Some((low, value, high)),
        _ => None,
    }
}

/// a ÷ b of two estimates that were made independently, in parts: their relative errors add
/// as squares.
#[must_use]
pub fn quotient(a: Estimate, b: Estimate, samples: u64) -> Estimate {
    let (Some((la, va, ha)), Some((lb, vb, hb))) = (ends(a), ends(b)) else {
        return Estimate::Unknown;
    };
    if va <= 0.0 || vb <= 0.0 || la <= 0.0 || lb <= 0.0 {
        return Estimate::Unknown;
    }
    let value = va / vb;
    let down = (va / la).ln().hypot((hb / vb).ln());
    let up = (ha / va).ln().hypot((vb / lb).ln());
    if down == 0.0 && up == 0.0 {
        return Estimate::Exact { value };
    }
    Estimate::Interval { value, low: value * (-down).exp(), high: value * up.exp(), samples }
}

/// An estimate of something counted over `seconds`, per second.
#[must_use]
pub fn per_second(estimate: Estimate, seconds: f64) -> Estimate {
    if !(seconds > 0.0 && seconds.is_finite()) {
        return Estimate::Unknown;
    }
    match estimate {
        Estimate::Unknown => Estimate::Unknown,
        Estimate::Exact { value } => Estimate::Exact { value: value / seconds },
        Estimate::Interval { value, low, high, samples } => Estimate::Interval {
            value: value / seconds,
            low: low / seconds,
            high: high / seconds,
            samples,
        },
        Estimate::Below { high } => Estimate::Below { high: high / seconds },
        Estimate::AtLeast { low, samples } => Estimate::AtLeast { low: low / seconds, samples },
    }
}

/// The share in bytes of `part` in `whole`, of which it is a subset, without its
/// interval; `None` while nothing is known.
#[must_use]
pub fn share_alone(part: &Total, whole: &Total) -> Option<f64> {
    let m = &whole.bytes;
    if whole.n == 0 || m.sum <= 0.0 || m.sum_sq <= 0.0 {
        return None;
    }
    // Rounding may leave the part a little above the whole.
    Some((part.bytes.sum / m.sum).clamp(0.0, 1.0))
}

/// The share in bytes of `part` in `whole`, of which it is a subset.
#[must_use]
pub fn share(part: &Total, whole: &Total) -> Ratio {
    let m = &whole.bytes;
    let Some(value) = share_alone(part, whole) else { return Ratio::Unknown };
    if m.variance <= 0.0 {
        return Ratio::Interval { value, low: value, high: value, samples: whole.n };
    }
    let n = m.sum * m.sum / m.variance;
    let (low, high) = share_interval(value, n);
    Ratio::Interval { value, low, high, samples: whole.n }
}

/// The 95 % interval of a share seen in `n` effective trials.
#[must_use]
pub fn share_interval(value: f64, n: f64) -> (f64, f64) {
    let (hits, misses) = (value * n, (1.0 - value) * n);
    if hits >= 10.0 && misses >= 10.0 {
        let z2 = Z * Z / n;
        let middle = (value + z2 / 2.0) / (1.0 + z2);
        let half = Z / (1.0 + z2) * (value * (1.0 - value) / n + z2 / (4.0 * n)).sqrt();
        ((middle - half).clamp(0.0, value), (middle + half).clamp(value, 1.0))
    } else {
        // Counts of both kinds matter, and twice as many are needed as of a sum.
        let h = halfway(2.0 * hits.min(misses));
        let rest = 1.0 - h;
        (
            beta::quantile(0.025, hits + h, misses + rest).min(value),
            beta::quantile(0.975, hits + rest, misses + h).max(value),
        )
    }
}

/// The share of the rest.
#[must_use]
pub fn complement(ratio: Ratio) -> Ratio {
    match ratio {
        Ratio::Unknown => Ratio::Unknown,
        Ratio::Interval { value, low, high, samples } => {
            Ratio::Interval { value: 1.0 - value, low: 1.0 - high, high: 1.0 - low, samples }
        }
    }
}

#[cfg(test)]
mod coverage;
