//! The survival curve Ŝ(x), and what lies under it.
//!
//! A [`Table`] of entries and exits by age gives the steps of the weighted
//! Kaplan–Meier curve; ages are nanoseconds or bytes on the allocation clock, as the
//! table's. Inside a bucket of age deaths are spread evenly, between buckets the curve
//! is level.
//!
//! **The restricted mean** to τ is the area ∫₀^τ Ŝ(x) dx. Its variance is Greenwood's,
//!
//! ```text
//! V = Σ (∫ₓ^τ Ŝ)² · Δ Var ln Ŝ(x)        over the deaths at x < τ
//! ```
//!
//! **Intervals.** Ŝ(x), and the mean over τ of what is between 0 and τ, are means of
//! numbers between 0 and 1. With q the estimate, n = q(1 − q)/V is the number of yes/no
//! trials that would tell as much, and the interval is that of a share seen in n
//! trials. They are at least as many as blocks, (Σw)²/Σw²: no numbers between 0 and 1
//! vary more than zeros and ones. How many more, V says, which is guesswork while few
//! die or few are left: n is smaller by (t/z)², Student's t with eight degrees of
//! freedom for each of the fewer of both. Where there are none of one kind nothing is left but
//! the blocks.
//!
//! **Beyond the longest follow-up** nothing is known but that the curve does not rise:
//! bounds, from a curve that falls to 0 there to one that stays level.

use super::survival::{Mass, Step, Table};
use super::{Z, share_interval};
use crate::session::figures::Followed;

/// Ŝ, ready to be asked at many places.
#[derive(Debug, Clone)]
pub struct Curve {
    steps: Vec<Step>,
    /// ∫ Ŝ from 0 to where each step begins.
    areas: Vec<f64>,
    /// Longest age that somebody was followed to.
    followed: f64,
    n_blocks: u64,
    /// Blocks, effectively, from their weights.
    effective: f64,
}

/// The area under the curve from 0 to some age.
#[derive(Debug, Clone, Copy)]
struct Area {
    value: f64,
    variance: f64,
    /// Effective deaths in it, or survivors, whichever are fewer.
    fewer: f64,
}

impl Curve {
    /// The curve of a table.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let steps = table.steps();
        let (mut areas, mut area, mut at, mut survival) = (Vec::new(), 0.0, 0.0, 1.0);
        for step in &steps {
            area += survival * (step.begin - at);
            areas.push(area);
            area +=
                f64::midpoint(step.before.survival, step.after.survival) * (step.end - step.begin);
            (at, survival) = (step.end, step.after.survival);
        }
        let followed = steps.last().map_or(0.0, |last| {
            if last.after.survival <= 0.0 {
                f64::INFINITY
            } else if last.deaths.w > 0.0 {
                last.end
            } else {
                last.begin
            }
        });
        let kish = |mass: Mass| mass.w * mass.w / mass.w2;
        let effective = steps.iter().map(|step| kish(step.risk)).fold(0.0, f64::max);
        Self { steps, areas, followed, n_blocks: table.n_blocks, effective }
    }

    /// The longest age that any block was followed to; infinite when all are dead.
    #[must_use]
    pub const fn followed(&self) -> f64 {
        self.followed
    }

    /// Ŝ(x): the share that lives at age `x` and longer.
    #[must_use]
    pub fn survival(&self, x: f64) -> Followed {
        let samples = self.n_blocks;
        if self.steps.is_empty() || x.is_nan() {
            return Followed::Unknown;
        }
        let (value, n) = self.at(x.min(self.followed));
        let (low, high) = ends(value, n);
        if x > self.followed {
            return Followed::Bounds { low: 0.0, high, samples };
        }
        Followed::Interval { value, low, high, samples }
    }

    /// The mean of how long a block lives, or `to` where it lives longer.
    #[must_use]
    pub fn restricted_mean(&self, to: f64) -> Followed {
        let times = |share: f64| share * to;
        match self.mean_share(to) {
            Followed::Unknown => Followed::Unknown,
            Followed::Interval { value, low, high, samples } => Followed::Interval {
                value: times(value),
                low: times(low),
                high: times(high),
                samples,
            },
            Followed::Bounds { low, high, samples } => {
                Followed::Bounds { low: times(low), high: times(high), samples }
            }
        }
    }

    /// The mean life. While somebody lives it is known from below alone: by the mean that
    /// is cut at the longest age that anybody was followed to.
    #[must_use]
    pub fn mean(&self) -> Followed {
        let Some(last) = self.steps.last() else { return Followed::Unknown };
        if self.followed.is_infinite() {
            return self.restricted_mean(last.end);
        }
        match self.restricted_mean(self.followed) {
            Followed::Interval { low, samples, .. } | Followed::Bounds { low, samples, .. } => {
                Followed::Bounds { low, high: f64::INFINITY, samples }
            }
            Followed::Unknown => Followed::Unknown,
        }
    }

    /// The same over `to`: (1/τ) ∫₀^τ Ŝ, a share.
    #[must_use]
    pub fn mean_share(&self, to: f64) -> Followed {
        let samples = self.n_blocks;
        if self.steps.is_empty() || !(to > 0.0 && to.is_finite()) {
            return Followed::Unknown;
        }
        let upto = to.min(self.followed);
        if upto <= 0.0 {
            return Followed::Bounds { low: 0.0, high: 1.0, samples };
        }
        let Area { value, variance, fewer } = self.area(upto);
        let value = (value / upto).clamp(0.0, 1.0);
        let by_variance = value * (1.0 - value) / (variance / (upto * upto));
        let n = self.effective.max(by_variance / student(8.0 * fewer).powi(2));
        let (low, high) = ends(value, n);
        if to <= self.followed {
            return Followed::Interval { value, low, high, samples };
        }
        let (level, n) = self.at(upto);
        let (_, level) = ends(level, n);
        let (inside, beyond) = (upto / to, 1.0 - upto / to);
        Followed::Bounds { low: low * inside, high: high * inside + level * beyond, samples }
    }

    /// Ŝ and its effective trials at an age up to the longest.
    fn at(&self, x: f64) -> (f64, f64) {
        let next = self.steps.partition_point(|step| step.end <= x);
        let Some(step) = self.steps.get(next) else {
            let last = self.steps[self.steps.len() - 1].after;
            return (last.survival, last.n_eff);
        };
        let part = ((x - step.begin) / (step.end - step.begin)).clamp(0.0, 1.0);
        let between = |a: f64, b: f64| if a == b { a } else { a + (b - a) * part };
        (
            between(step.before.survival, step.after.survival),
            between(step.before.n_eff, step.after.n_eff),
        )
    }

    /// ∫₀ˣ Ŝ, up to the longest age.
    fn area_to(&self, x: f64) -> f64 {
        let next = self.steps.partition_point(|step| step.begin <= x);
        let Some(i) = next.checked_sub(1) else { return x };
        let step = self.steps[i];
        let inside = x.min(step.end) - step.begin;
        let part = inside / (step.end - step.begin);
        let end = step.before.survival + (step.after.survival - step.before.survival) * part;
        self.areas[i]
            + f64::midpoint(step.before.survival, end) * inside
            + step.after.survival * (x - step.end).max(0.0)
    }

    fn area(&self, to: f64) -> Area {
        let area = self.area_to(to);
        let (mut variance, mut dead) = (0.0, Mass::default());
        for (step, before) in self.steps.iter().zip(&self.areas) {
            if step.begin >= to {
                break;
            }
            // Deaths spread evenly: the mean of the square of what is still to come,
            // from a at the begin of the step to b at its end.
            let end = step.end.min(to);
            let part = (end - step.begin) / (step.end - step.begin);
            let (a, b) = (area - before, (area - self.area_to(end)).max(0.0));
            variance += step.hazard_variance * part * (a * a + a * b + b * b) / 3.0;
            dead.w += step.deaths.w * part;
            dead.w2 += step.deaths.w2 * part;
        }
        let dead = if dead.w > 0.0 { dead.w * dead.w / dead.w2 } else { 0.0 };
        let (survival, n) = self.at(to);
        Area { value: area, variance, fewer: dead.min(survival * n) }
    }
}

/// t/z, the quantiles of 97.5 % of Student's t with `n` degrees of freedom and of the
/// normal distribution: the first terms of its series in 1/n (Abramowitz & Stegun
/// 26.7.5), two percent short at 4.
fn student(n: f64) -> f64 {
    let z2 = Z * Z;
    let at = 1.0 / n;
    1.0 + at * (z2 + 1.0) / 4.0 + at * at * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0
}

/// The interval of a share that was seen in `n` effective trials, any number of them.
fn ends(value: f64, n: f64) -> (f64, f64) {
    if n.is_finite() {
        share_interval(value, n.max(0.0))
    } else if n.is_nan() {
        (0.0, 1.0)
    } else {
        (value, value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::survival::bucket;
    use super::*;

    /// A table of deaths and of living by age, each with weight 1.
    fn table(deaths: &[u64], living: &[u64]) -> Table {
        let mut table = Table::default();
        let one = Mass { w: 1.0, w2: 1.0 };
        for age in deaths {
            table.died(bucket(*age), one);
        }
        for age in living {
            table.censored(bucket(*age), one);
        }
        table.n_blocks = (deaths.len() + living.len()) as u64;
        table.n_deaths = deaths.len() as u64;
        table
    }

    fn value(followed: Followed) -> (f64, f64, f64) {
        let Followed::Interval { value, low, high, .. } = followed else { panic!("{followed:?}") };
        (value, low, high)
    }

    /// Ages that fall to the middle of wide buckets are known to a sixteenth.
    #[test]
    fn lives_known_to_the_end_have_their_mean() {
        let deaths: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
        let curve = Curve::of(&table(&deaths, &[]));
        assert_eq!(curve.followed(), f64::INFINITY);
        // Uniform from 0 to 10⁶: S(x) = 1 − x/10⁶, ∫₀^τ = τ − τ²/2·10⁶.
        for to in [1e5, 4e5, 9e5] {
            let (survival, low, high) = value(curve.survival(to));
            assert!((survival - (1.0 - to / 1e6)).abs() < 0.01, "{to}: {survival}");
            assert!(low < survival && survival < high && high - low < 0.08);
            let (mean, low, high) = value(curve.restricted_mean(to));
            let want = to - to * to / 2e6;
            assert!((mean / want - 1.0).abs() < 0.01, "{to}: {mean} {want}");
            assert!(low < mean && mean < high);
        }
    }

    /// With all lives known, the variance of the restricted mean is that of the mean
    /// of min(life, τ): Greenwood's sum and it agree.
    #[test]
    fn the_variance_is_that_of_a_mean() {
        let deaths: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
        let curve = Curve::of(&table(&deaths, &[]));
        for to in [3e5, 8e5] {
            let lives: Vec<f64> = deaths.iter().map(|age| (*age as f64).min(to)).collect();
            let mean = lives.iter().sum::<f64>() / 1000.0;
            let variance = lives.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1000.0 / 1000.0;
            let got = curve.area(to).variance;
            assert!((got / variance - 1.0).abs() < 0.03, "{to}: {got} {variance}");
        }
    }

    #[test]
    fn beyond_the_longest_there_are_bounds() {
        let curve = Curve::of(&table(&[1000; 40], &[100_000; 60]));
        let followed = curve.followed();
        assert!((90_000.0..=100_000.0).contains(&followed), "{followed}");
        assert!(matches!(curve.survival(50_000.0), Followed::Interval { .. }));
        let Followed::Bounds { low, high, samples: 100 } = curve.survival(200_000.0) else {
            panic!("nobody was followed so far");
        };
        assert!(low == 0.0 && high > 0.6 && high < 0.75, "{high}");
        // 0.6 of the first half; of the second nothing, or all of them.
        let Followed::Bounds { low, high, .. } = curve.mean_share(2.0 * followed) else {
            panic!("nobody was followed so far");
        };
        assert!(low > 0.2 && low < 0.3 && high > 0.6 && high < 0.75, "{low} {high}");
    }

    #[test]
    fn few_deaths_claim_no_more_than_so_many_trials() {
        // All three died at once: their spread says nothing, three trials do.
        let (mean, low, high) = value(Curve::of(&table(&[10; 3], &[])).mean_share(1e6));
        assert!(mean < 1e-4 && low <= mean);
        assert!((high - 0.708).abs() < 0.01, "3 of 3: {high}");
        // None died: the rule of three for the other end.
        let (mean, low, high) = value(Curve::of(&table(&[], &[1 << 30; 20])).mean_share(1e6));
        assert!(mean == 1.0 && high == 1.0 && (low - 0.832).abs() < 0.01, "{low}");
    }

    #[test]
    fn weights_without_variance_leave_none() {
        let mut all_seen = Table::default();
        for age in [1u64 << 10, 1 << 12, 1 << 14, 1 << 16] {
            all_seen.died(bucket(age), Mass { w: 64.0, w2: 0.0 });
        }
        all_seen.n_blocks = 4;
        let curve = Curve::of(&all_seen);
        let (survival, low, high) = value(curve.survival(8192.0));
        assert_eq!((survival, low, high), (0.5, 0.5, 0.5));
        let (mean, low, high) = value(curve.mean_share(8192.0));
        assert!(low == mean && high == mean, "{low} {mean} {high}");
    }

    #[test]
    fn student_is_wider_than_normal() {
        for (n, t) in [(4.0, 2.776), (10.0, 2.228), (30.0, 2.042), (1e6, 1.960)] {
            assert!((student(n) * Z / t - 1.0).abs() < 0.02, "{n}");
        }
        assert_eq!(student(0.0), f64::INFINITY);
    }

    #[test]
    fn nothing_is_unknown() {
        let curve = Curve::of(&Table::default());
        assert_eq!(curve.survival(1.0), Followed::Unknown);
        assert_eq!(curve.mean_share(1.0), Followed::Unknown);
        let curve = Curve::of(&table(&[5], &[]));
        for to in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(curve.mean_share(to), Followed::Unknown);
        }
        assert_eq!(curve.survival(f64::NAN), Followed::Unknown);
    }
}
