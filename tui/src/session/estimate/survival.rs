//! How long blocks live: a weighted Kaplan–Meier curve over log-spaced ages.
//!
//! A block is followed from its entry (age 0 where its birth was seen, else its
//! age when it was first listed) to its exit: its death, or the present, where
//! it is right-censored. Ages fall into buckets, eight an octave, so the curve
//! is a life table: in bucket b the risk set is what entered before it and did
//! not leave, half of what enters or is censored inside of it counted.
//!
//! S(t) = Π (1 − d/r), every block counted with its Horvitz–Thompson weight.
//! Var ln S is Greenwood's sum with the effective number at risk r²/R, R = Σw² over
//! those at risk: the hazard h = d/r adds h/(1 − h) · R/r². (The linearised variance
//! puts the weights of the dead where this has the average one. Of few dead that is
//! too erratic: where R changes tenfold it covered 77 % at 10 samples.)
//! Of few deaths the sum says too little: effective trials are never more than the
//! effective number at risk, (Σw)²/Σw².
//!
//! The median's interval holds the ages at which a binomial test of S = ½ does
//! not reject: S(1 − S)/Var S effective trials (Dorey & Korn 1987), which is
//! the number of blocks while none is dead. It needs no normality.

use super::super::figures::Lifetime;
use super::beta;
use std::sync::LazyLock;

/// Buckets of age: all of u64 nanoseconds, eight an octave from 8 ns on.
pub const BUCKETS: usize = 61 * 8;

/// The bucket of an age in nanoseconds.
#[must_use]
pub const fn bucket(age_ns: u64) -> u16 {
    let age = if age_ns < 8 { 8 } else { age_ns };
    let exponent = age.ilog2();
    // 0 ≤ exponent − 3 ≤ 60, and three bits behind the first: below BUCKETS.
    ((exponent - 3) * 8) as u16 + ((age >> (exponent - 3)) & 7) as u16
}

/// Where a bucket begins, in nanoseconds; the end of the last for `BUCKETS`.
#[must_use]
pub fn begins(bucket: usize) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    (8 + bucket % 8) as f64 * ((bucket / 8) as f64).exp2()
}

/// Weights that meet in one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mass {
    /// Σw.
    pub w: f64,
    /// Σw².
    pub w2: f64,
}

impl Mass {
    /// Another block of weight `w`.
    pub fn add(&mut self, w: f64) {
        self.w += w;
        self.w2 += w * w;
    }
    /// Another mass.
    pub fn merge(&mut self, other: Self) {
        self.w += other.w;
        self.w2 += other.w2;
    }
}

/// Entries and exits by age, of one group of callstacks.
#[derive(Debug, Clone)]
pub struct Table {
    deaths: Vec<Mass>,
    entries: Vec<Mass>,
    censored: Vec<Mass>,
    /// The buckets in use.
    range: std::ops::Range<usize>,
    /// Deaths seen.
    pub n_deaths: u64,
    /// Blocks followed.
    pub n_blocks: u64,
}

impl Default for Table {
    fn default() -> Self {
        let empty = vec![Mass::default(); BUCKETS];
        Self {
            deaths: empty.clone(),
            entries: empty.clone(),
            censored: empty,
            range: 0..0,
            n_deaths: 0,
            n_blocks: 0,
        }
    }
}

impl Table {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        for column in [&mut self.deaths, &mut self.entries, &mut self.censored] {
            column[self.range.clone()].fill(Mass::default());
        }
        self.range = 0..0;
        self.n_deaths = 0;
        self.n_blocks = 0;
    }

    /// Another group's blocks.
    pub fn merge(&mut self, other: &Self) {
        if other.range.is_empty() {
            return;
        }
        self.touch(other.range.start as u16);
        self.touch((other.range.end - 1) as u16);
        for (mine, theirs) in [
            (&mut self.deaths, &other.deaths),
            (&mut self.entries, &other.entries),
            (&mut self.censored, &other.censored),
        ] {
            for b in other.range.clone() {
                mine[b].merge(theirs[b]);
            }
        }
        self.n_deaths += other.n_deaths;
        self.n_blocks += other.n_blocks;
    }

    fn touch(&mut self, bucket: u16) -> usize {
        let b = usize::from(bucket).min(BUCKETS - 1);
        if self.range.is_empty() {
            self.range = b..b + 1;
        } else {
            self.range = self.range.start.min(b)..self.range.end.max(b + 1);
        }
        b
    }

    /// Blocks that died at this age.
    pub fn died(&mut self, bucket: u16, mass: Mass) {
        let b = self.touch(bucket);
        self.deaths[b].merge(mass);
    }

    /// Blocks that were first seen at this age.
    pub fn entered(&mut self, bucket: u16, mass: Mass) {
        let b = self.touch(bucket);
        self.entries[b].merge(mass);
    }

    /// Blocks that were last seen alive at this age.
    pub fn censored(&mut self, bucket: u16, mass: Mass) {
        let b = self.touch(bucket);
        self.censored[b].merge(mass);
    }

    /// The median lifetime.
    #[must_use]
    pub fn median(&self) -> Lifetime {
        let steps = self.steps();
        let Some(last) = steps.last() else { return Lifetime::Unknown };
        let low_ns = match steps.iter().position(|s| s.after.could_be_half(true)) {
            // Too few at the outset to tell anything from one half.
            Some(0) if steps[0].before.could_be_half(true) => 0.0,
            Some(i) => steps[i].where_half_is(|curve| curve.could_be_half(true)),
            // All that is known of who was followed longest is the bucket.
            None => last.begin,
        };
        let Some(at) = steps.iter().position(|s| s.after.survival <= 0.5) else {
            // Above one half to the end; how far that is sure depends on how many.
            return if low_ns > 0.0 {
                Lifetime::Beyond { ns: low_ns, samples: self.n_blocks }
            } else {
                Lifetime::Unknown
            };
        };
        let high_ns = steps[at..]
            .iter()
            .find(|s| !s.after.could_be_half(false))
            .map_or(f64::INFINITY, |s| s.where_half_is(|curve| !curve.could_be_half(false)));
        let step = steps[at];
        let ns = step.at_survival(0.5);
        Lifetime::Median {
            ns,
            low_ns: low_ns.min(ns),
            high_ns: high_ns.max(ns),
            samples: self.n_deaths,
        }
    }

    /// The curve over each bucket where something happens to somebody.
    pub(super) fn steps(&self) -> Vec<Step> {
        let sum = |column: &[Mass]| {
            column[self.range.clone()].iter().fold(Mass::default(), |mut sum, m| {
                sum.merge(*m);
                sum
            })
        };
        let (d, e, c) = (sum(&self.deaths), sum(&self.entries), sum(&self.censored));
        // Everybody leaves once; who did not enter late was there from age 0.
        let mut risk = Mass { w: d.w + c.w - e.w, w2: d.w2 + c.w2 - e.w2 };
        let noise = 1e-9 * (d.w + c.w);
        let mut steps = Vec::with_capacity(self.range.len());
        let (mut point, mut variance) = (Point { survival: 1.0, n_eff: 0.0 }, 0.0);
        let mut most = 0.0_f64;
        for b in self.range.clone() {
            let (d, e, c) = (self.deaths[b], self.entries[b], self.censored[b]);
            if d.w + e.w + c.w == 0.0 {
                continue;
            }
            let r = (risk.w + (e.w - c.w) / 2.0).max(d.w);
            let r2 = (risk.w2 + (e.w2 - c.w2) / 2.0).max(d.w2);
            if r > noise {
                most = most.max(r * r / r2);
                if point.survival == 1.0 {
                    point.n_eff = r * r / r2;
                }
                let before = point;
                let mut hazard_variance = 0.0;
                if d.w > 0.0 {
                    let h = (d.w / r).min(1.0);
                    let miss = 1.0 - h;
                    point.survival *= miss;
                    if point.survival > 1e-12 {
                        hazard_variance = h / miss * r2 / (r * r);
                        variance += hazard_variance;
                        let told = (1.0 - point.survival) / (point.survival * variance);
                        point.n_eff = told.min(most);
                    } else {
                        // All dead: as many as before say so.
                        point.survival = 0.0;
                    }
                }
                steps.push(Step {
                    begin: begins(b),
                    end: begins(b + 1),
                    before,
                    after: point,
                    hazard_variance,
                    deaths: d,
                    risk: Mass { w: risk.w.max(r), w2: risk.w2.max(r2) },
                });
            }
            risk.w += e.w - d.w - c.w;
            risk.w2 += e.w2 - d.w2 - c.w2;
        }
        steps
    }
}

/// The curve at one age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub survival: f64,
    /// Effective trials behind it: S(1 − S)/Var S, or the number at risk.
    pub n_eff: f64,
}

impl Point {
    /// Whether a one-sided binomial test at 2.5 % lets S be ½: from above, or
    /// from below.
    fn could_be_half(self, from_above: bool) -> bool {
        let survival = if from_above { self.survival } else { 1.0 - self.survival };
        survival < LIMITS.at(self.n_eff)
    }
}

/// From this share of `n` trials on, a binomial test at 2.5 % tells it from ½:
/// tabulated over ln n. Above 1 where n trials can never tell.
struct Limits(Vec<f64>);

/// ½ⁿ = 2.5 %: with fewer even n out of n could be chance.
const FEWEST: f64 = 5.321_928_094_887_363;
const MANY: f64 = 1e4;
const LIMIT_STEPS: usize = 256;

static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
    let n = |i: usize| FEWEST * (MANY / FEWEST).powf(i as f64 / LIMIT_STEPS as f64);
    Limits((0..=LIMIT_STEPS).map(|i| limit(n(i))).collect())
});

fn limit(n: f64) -> f64 {
    let (mut low, mut high) = (0.5, 1.0);
    let h = super::halfway(1.5 * n);
    for _ in 0..40 {
        let share = f64::midpoint(low, high);
        if beta::lower(n * share + h, n * (1.0 - share) + 1.0 - h, 0.5) > 0.025 {
            low = share;
        } else {
            high = share;
        }
    }
    high
}

impl Limits {
    fn at(&self, n: f64) -> f64 {
        if n < FEWEST {
            return f64::INFINITY;
        }
        if n >= MANY {
            return 0.5 + 0.98 / n.sqrt();
        }
        let place = (n / FEWEST).ln() * (LIMIT_STEPS as f64 / (MANY / FEWEST).ln());
        let i = (place as usize).min(LIMIT_STEPS - 1);
        self.0[i] + (self.0[i + 1] - self.0[i]) * (place - i as f64)
    }
}

/// The curve over one bucket of age. Deaths are taken as spread evenly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub begin: f64,
    pub end: f64,
    pub before: Point,
    pub after: Point,
    /// What it adds to Var ln S.
    pub hazard_variance: f64,
    /// Who dies in it.
    pub deaths: Mass,
    /// Who is at risk when it begins.
    pub risk: Mass,
}

impl Step {
    /// The age at which the curve comes down to `survival`.
    fn at_survival(&self, survival: f64) -> f64 {
        let fall = self.before.survival - self.after.survival;
        let part = if fall > 0.0 { (self.before.survival - survival) / fall } else { 1.0 };
        self.begin + (self.end - self.begin) * part.clamp(0.0, 1.0)
    }

    /// The age at which `turned` becomes true, which it is at the end.
    fn where_half_is(&self, turned: impl Fn(Point) -> bool) -> f64 {
        let at = |part: f64| Point {
            survival: self.before.survival + (self.after.survival - self.before.survival) * part,
            n_eff: self.before.n_eff + (self.after.n_eff - self.before.n_eff) * part,
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..6 {
            let middle = f64::midpoint(low, high);
            if turned(at(middle)) {
                high = middle;
            } else {
                low = middle;
            }
        }
        self.begin + (self.end - self.begin) * f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests;
