//! The promotion rate at another nursery: a query over lives, not a new run.
//!
//! A block of life L on the allocation clock G is promoted when a minor cycle of N
//! bytes turns while it lives. Where in its cycle a block is born is even, so that has
//! chance min(L/N, 1), and over blocks
//!
//! ```text
//! rate(N) = E min(L/N, 1) = (1/N) ∫₀ᴺ S(x) dx
//! ```
//!
//! with S over the minor blocks, in bytes: see [`Curve`] for its interval and for what
//! it says beyond the longest follow-up.
//!
//! **Blur.** G lacks what threads have not booked yet, up to 64 KiB each. Where the
//! thread that allocated a block also frees it, its own bytes are exact and those of
//! the others are missing at both ends alike. Where another one frees it, L is off by
//! up to 64 KiB a thread. min(L/N, 1) moves by no more than L/N does, so the interval
//! is widened by blur/N for the share of blocks that it concerns; below the blur
//! nothing is said.
//!
//! **OCaml.** A minor death is seen at the minor collection only: the life of a young
//! block is known to lie inside its cycle, no more. So nothing is said below the
//! actual minor heap N₀; at N₀ the runtime's own figure stands; above it there are
//! bounds. Whoever is promoted at N lives when a cycle of N turns. Of the turns of N₀
//! that blocks live through, N₀/N are turns of N. So a block that crossed k of them is
//! promoted with chance min(k · N₀/N, 1): the rate is the one at N₀ times the mean of that
//! over the blocks that were promoted there ([`Crossings`]). That is a bound from above,
//! because the runtime tells of a death at the end of a major cycle, after some more
//! crossings, and who still lives may cross any number. From below it is rate(N₀) · N₀/N,
//! one turn for each block that was promoted at N₀.

use super::curve::Curve;
use super::share_interval;
use super::survival::begins;
use crate::session::figures::{Followed, Ratio};

/// What frees by other threads make of lives on G.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Blur {
    /// By how many bytes a life may be off.
    pub bytes: f64,
    /// The share of blocks whose lives may, 0 to 1.
    pub share: f64,
}

/// The promotion rate that a nursery of `bytes` would give, from the curve of minor
/// blocks in bytes.
#[must_use]
pub fn what_if(curve: &Curve, bytes: u64, blur: Blur) -> Followed {
    let n = bytes as f64;
    if blur.share > 0.0 && n < blur.bytes {
        return Followed::Unknown;
    }
    let wider = blur.share * blur.bytes / n;
    match curve.mean_share(n) {
        Followed::Unknown => Followed::Unknown,
        Followed::Interval { value, low, high, samples } => Followed::Interval {
            value,
            low: (low - wider).max(0.0),
            high: (high + wider).min(1.0),
            samples,
        },
        Followed::Bounds { low, high, samples } => {
            Followed::Bounds { low: (low - wider).max(0.0), high: (high + wider).min(1.0), samples }
        }
    }
}

/// How many minor collections those lived through that were promoted, weighted in bytes.
#[derive(Debug, Clone, Default)]
pub struct Crossings {
    /// By bucket of the age at death, in bytes of allocation.
    dead: std::collections::BTreeMap<u16, f64>,
    /// Of those that live.
    alive: f64,
    w: f64,
    w2: f64,
}

impl Crossings {
    /// One that died at the end of this bucket of ages at the latest.
    pub fn died(&mut self, age: u16, weight: f64) {
        *self.dead.entry(age).or_default() += weight;
        self.count(weight);
    }

    /// One that still lived when it was last heard of.
    pub fn lives(&mut self, weight: f64) {
        self.alive += weight;
        self.count(weight);
    }

    fn count(&mut self, weight: f64) {
        self.w += weight;
        self.w2 += weight * weight;
    }

    /// Of what was promoted by a minor heap of `own_bytes`, the largest share that one of
    /// `bytes` can promote: the upper end of a 95 % interval.
    #[must_use]
    pub fn most(&self, own_bytes: u64, bytes: u64) -> f64 {
        if self.w <= 0.0 || own_bytes == 0 {
            return 1.0;
        }
        let (own, other) = (own_bytes as f64, bytes as f64);
        let dead = self.dead.iter().map(|(&age, weight)| {
            let crossed = (begins(usize::from(age) + 1) / own).ceil().max(1.0);
            weight * (crossed * own / other).min(1.0)
        });
        let share = (self.alive + dead.sum::<f64>()) / self.w;
        share_interval(share.clamp(0.0, 1.0), self.w * self.w / self.w2).1
    }
}

/// The same for an OCaml program with a minor heap of `own_bytes`: `own` is the
/// runtime's promotion rate there, `crossings` how long those lived that it promoted.
#[must_use]
pub fn what_if_ocaml(own: Ratio, own_bytes: u64, crossings: &Crossings, bytes: u64) -> Followed {
    let Ratio::Interval { value, low, high, samples } = own else { return Followed::Unknown };
    if bytes < own_bytes || own_bytes == 0 {
        return Followed::Unknown;
    }
    if bytes == own_bytes {
        return Followed::Interval { value, low, high, samples };
    }
    let part = own_bytes as f64 / bytes as f64;
    let most = high * crossings.most(own_bytes, bytes);
    Followed::Bounds { low: low * part, high: most.max(low * part).min(1.0), samples }
}

#[cfg(test)]
mod tests {
    use super::super::survival::{Mass, Table, bucket};
    use super::*;

    /// Half of the bytes live 1 MiB, half die at once.
    fn curve() -> Curve {
        let mut table = Table::default();
        for i in 0..1000u64 {
            let age = if i % 2 == 0 { 64 } else { (1 << 20) + (1 << 16) };
            table.died(bucket(age), Mass { w: 1.0, w2: 1.0 });
        }
        table.n_blocks = 1000;
        Curve::of(&table)
    }

    fn value(followed: Followed) -> (f64, f64, f64) {
        let Followed::Interval { value, low, high, .. } = followed else { panic!("{followed:?}") };
        (value, low, high)
    }

    #[test]
    fn a_life_of_l_is_promoted_with_l_over_n() {
        for (n, want) in [(1u64 << 19, 0.5), (1 << 20, 0.5), (2 << 20, 0.265), (16 << 20, 0.0332)] {
            let (rate, low, high) = value(what_if(&curve(), n, Blur::default()));
            assert!((rate - want).abs() < 0.02 * want, "{n}: {rate}");
            assert!(low < rate && rate < high);
        }
    }

    #[test]
    fn frees_by_other_threads_widen_and_then_hide() {
        let sharp = value(what_if(&curve(), 1 << 20, Blur::default()));
        let blur = Blur { bytes: f64::from(1 << 18), share: 0.4 };
        let (rate, low, high) = value(what_if(&curve(), 1 << 20, blur));
        assert_eq!(rate, sharp.0);
        assert!((sharp.1 - low - 0.1).abs() < 1e-9 && (high - sharp.2 - 0.1).abs() < 1e-9);
        assert_eq!(what_if(&curve(), (1 << 18) - 1, blur), Followed::Unknown);
        // Nobody frees what another allocated: there is no blur.
        let none = Blur { bytes: f64::from(1 << 18), share: 0.0 };
        assert!(matches!(what_if(&curve(), 1 << 10, none), Followed::Interval { .. }));
    }

    #[test]
    fn ocaml_knows_its_own_heap_and_bounds_above_it() {
        let own = Ratio::Interval { value: 0.2, low: 0.18, high: 0.22, samples: 900 };
        let mut crossings = Crossings::default();
        // Half of what is promoted dies within 2 cycles, a quarter within 8, the rest lives.
        for _ in 0..1000 {
            crossings.died(bucket((2 << 21) - 1), 2.0);
            crossings.died(bucket((8 << 21) - 1), 1.0);
            crossings.lives(1.0);
        }
        let at = |bytes| what_if_ocaml(own, 1 << 21, &crossings, bytes);
        assert_eq!(at(1 << 20), Followed::Unknown);
        let same = Followed::Interval { value: 0.2, low: 0.18, high: 0.22, samples: 900 };
        assert_eq!(at(1 << 21), same);
        // In twice the heap all of them may be promoted still, and no more.
        assert_eq!(at(1 << 22), Followed::Bounds { low: 0.09, high: 0.22, samples: 900 });
        // In four times half of the first kind at most, in sixteen times an eighth of them
        // and half of the second.
        for (n, share) in [(1u64 << 23, 0.75), (1 << 25, 0.0625 + 0.125 + 0.25)] {
            let Followed::Bounds { low, high, .. } = at(n) else { panic!("bounds") };
            assert!((low - 0.18 * f64::from(1 << 21) / n as f64).abs() < 1e-9);
            assert!((0.22 * share..0.22 * (share + 0.02)).contains(&high), "{n}: {high}");
        }
        // Nobody knows of whom nothing was heard.
        let nobody = Crossings::default();
        assert_eq!(nobody.most(1 << 21, 1 << 30), 1.0);
        assert_eq!(what_if_ocaml(Ratio::Unknown, 1 << 21, &nobody, 1 << 22), Followed::Unknown);
    }
}
