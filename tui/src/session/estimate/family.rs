//! Many rows at once: how many labels may be wrong.
//!
//! "Grew" on each of 10,000 callsites at 95 % would be wrong on 250 of them by
//! chance. Whoever puts a verdict on rows, be it a label, a rule of `check` or a
//! diff, takes a p-value a row and lets [`holm`] say which hold: the chance that even
//! one of them is wrong is then at most 5 %, whatever the rows have to do with each
//! other (Holm 1979).
//!
//! **The p-value of growth.** Given as many samples in both sets as there are, each
//! of them falls to `gained` or `lost` with chance ½ while nothing grew
//! (Przyborowski & Wilenski 1940). With weights, u = (v₁ + v₂)/(y₁ + y₂) is that of
//! one effective sample, and kᵢ = yᵢ/u their number; the binomial tail goes on
//! between whole numbers as Iₓ does:
//!
//! ```text
//! p = I½(k₁, k₂ + 1)  ≥  e^−(y₁ − y₂)/R
//! ```
//!
//! Blocks ≫ R vary not at all and would make u small. But beside them a loss may
//! have stayed unseen: one of x·R has chance e⁻ˣ, which is the floor on the right.

use super::{Sight, beta, change};
use crate::session::figures::Change;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::totals::Total;

/// The share of families in which any verdict may be wrong.
pub const ERROR: f64 = 0.05;
/// Times that [`holm`] looks at all rows before it sorts those that are left.
const UNSORTED: usize = 8;

/// The p-value, one-sided, of growth in bytes: how easily chance alone would gain so
/// much more than was lost. 1 where nothing can be said.
#[must_use]
pub fn p_of_growth(gained: &Total, lost: &Total, sight: impl Into<Sight>) -> f64 {
    p_value(&gained.into(), &lost.into(), sight.into())
}

fn p_value(gained: &Set, lost: &Set, sight: Sight) -> f64 {
    let Some(interval) = sight.interval.filter(|_| !sight.lost && !sight.off) else { return 1.0 };
    let (y1, v1, y2, v2) = (gained.sum, gained.variance, lost.sum, lost.variance);
    if y1 <= y2 {
        return 1.0;
    }
    let unit = (v1 + v2) / (y1 + y2);
    let of_samples = if unit <= 0.0 {
        0.0
    } else if y2 == 0.0 {
        // I½(k, 1).
        (-y1 / unit).exp2()
    } else {
        beta::lower(y1 / unit, y2 / unit + 1.0, 0.5)
    };
    let hidden = if interval == Interval::EXACT {
        0.0
    } else {
        (-(y1 - y2) / f64::from(interval.bytes())).exp()
    };
    of_samples.max(hidden).min(1.0)
}

/// The p-value, two-sided, of a difference in bytes of two recordings.
#[must_use]
pub fn p_of_difference(a: &Total, b: &Total, sight: impl Into<Sight>) -> f64 {
    let sight = sight.into();
    (2.0 * p_of_growth(a, b, sight).min(p_of_growth(b, a, sight))).min(1.0)
}

/// Which of the rows with these p-values hold, the chance that any is wrong being at
/// most `error`: Holm's step-down. A p-value that is no number holds nothing.
#[must_use]
pub fn holm(p_values: &[f64], error: f64) -> Vec<bool> {
    let all = p_values.len();
    // Nothing larger holds, and what is no number is no less than that.
    let mut rest: Vec<usize> = (0..all).filter(|&row| p_values[row] <= error).collect();
    let mut holds = vec![false; all];
    let mut before = 0;
    // Steps only become easier. So all that take the step of the first of them hold, in
    // whatever order, and then those that take the step behind these. Mostly nothing is left
    // to be sorted after a few.
    for _ in 0..UNSORTED {
        let step = error / (all - before) as f64;
        let left = rest.len();
        rest.retain(|&row| {
            holds[row] = p_values[row] <= step;
            !holds[row]
        });
        if rest.len() == left || rest.is_empty() {
            return holds;
        }
        before += left - rest.len();
    }
    rest.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    for (before, row) in (before..).zip(rest) {
        if p_values[row] > error / (all - before) as f64 {
            break;
        }
        holds[row] = true;
    }
    holds
}

/// What a p-value of growth needs to know of a set of blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Set {
    n: u64,
    sum: f64,
    variance: f64,
}

impl Set {
    /// Another, disjoint set joins.
    pub fn merge(&mut self, other: &Total) {
        if other.n > 0 {
            self.n += other.n;
            self.sum += other.bytes.sum;
            self.variance += other.bytes.variance;
        }
    }
}

impl From<&Total> for Set {
    fn from(total: &Total) -> Self {
        let mut set = Self::default();
        set.merge(total);
        set
    }
}

/// Which of the rows, each with what it gained and lost, grew with evidence. Rows
/// without a sample in either set say nothing and need no share of the error.
///
/// The interval that is shown beside a row is two-sided, and is told by its larger half:
/// where that holds 0, nobody could see the evidence, and nothing is said.
#[must_use]
pub fn grew<'a>(
    sets: impl Iterator<Item = (&'a Total, &'a Total)> + Clone,
    sight: impl Into<Sight>,
) -> Vec<bool> {
    let sight = sight.into();
    let holds = holding(sets.clone().map(|(gained, lost)| [gained.into(), lost.into()]), sight);
    let seen = |((gained, lost), holds)| holds && is_seen(gained, lost, sight);
    sets.zip(holds).map(seen).collect()
}

/// Of which rows evidence of growth holds among all of them, each with what it gained and
/// lost. Whether it is to be seen as well, says [`is_seen`]: that is work for each row, and
/// nobody needs it of rows that are not shown.
#[must_use]
pub fn holding(sets: impl Iterator<Item = [Set; 2]>, sight: impl Into<Sight>) -> Vec<bool> {
    let sight = sight.into();
    // What may have stayed unseen is the least that a p-value can be.
    let exact = sight.interval == Some(Interval::EXACT);
    let unit = sight.interval.map_or(f64::INFINITY, |r| f64::from(r.bytes()));
    let least = |gained: &Set, lost: &Set| {
        if exact { 0.0 } else { (-(gained.sum - lost.sum) / unit).exp() }
    };
    let (mut rows, mut floors, mut all) = (Vec::new(), Vec::new(), 0);
    for (row, [gained, lost]) in sets.enumerate() {
        all = row + 1;
        if gained.n + lost.n > 0 {
            rows.push((row, gained, lost));
            floors.push(least(&gained, &lost));
        }
    }
    let worth = worth(&floors, ERROR);
    let p_value = |((_, gained, lost), floor): (&(usize, Set, Set), &f64)| {
        if *floor <= worth { p_value(gained, lost, sight) } else { 1.0 }
    };
    let p_values: Vec<f64> = rows.iter().zip(&floors).map(p_value).collect();
    let mut grew = vec![false; all];
    for ((row, ..), holds) in rows.into_iter().zip(holm(&p_values, ERROR)) {
        grew[row] = holds;
    }
    grew
}

/// No p-value above this holds in a family of rows with these least ones: of m rows with at
/// most c that hold, none does above `error` ÷ (m − c), and c are those at most that may be
/// so small. Most rows are not worth the work for their p-value.
fn worth(least: &[f64], error: f64) -> f64 {
    let mut worth = error;
    let mut may = least.len();
    loop {
        let fewer = least.iter().filter(|p| **p <= worth).count();
        if fewer >= may {
            return worth;
        }
        may = fewer;
        worth = error / (least.len() - may) as f64;
    }
}

/// Whether growth is more than the larger half of its interval.
#[must_use]
pub fn is_seen(gained: &Total, lost: &Total, sight: impl Into<Sight>) -> bool {
    let sight = sight.into();
    match change::growth(gained, lost, sight) {
        Change::Unknown | Change::AtMost { .. } => false,
        Change::Exact { value } => value > 0.0,
        Change::AtLeast { low, .. } => low > 0.0,
        Change::Interval { value, low, high, .. } => value > (value - low).max(high - value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: u64 = 512 << 10;

    fn blocks(n: u64, size: u64) -> Total {
        let mut total = Total::default();
        for _ in 0..n {
            total.add(&Interval::new(R).unwrap().weight(size));
        }
        total
    }

    /// Holm's own example of thresholds: 0.05/4, 0.05/3, 0.05/2, 0.05.
    #[test]
    fn each_step_down_is_a_larger_share_of_the_error() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[0.01, 0.02, 0.02, 0.005], 0.05), [true, true, true, true]);
        assert_eq!(holm(&[0.013, 0.001], 0.05), [true, true]);
        // What fails stops all behind it.
        assert_eq!(holm(&[0.026, 0.026], 0.05), [false, false]);
        assert_eq!(holm(&[f64::NAN, 0.01], 0.05), [false, true]);
        assert_eq!(holm(&[], 0.05), [] as [bool; 0]);
    }

    #[test]
    fn p_values_are_those_of_the_binomial_test() {
        let r = Interval::new(R);
        // 5 of 5 is 1/32, 8 or more of 10 are 56/1024.
        let p = p_of_growth(&blocks(5, 1), &Total::default(), r);
        assert!((p - 1.0 / 32.0).abs() < 1e-4, "{p}");
        let p = p_of_growth(&blocks(8, 1), &blocks(2, 1), r);
        assert!((p - 56.0 / 1024.0).abs() < 1e-4, "{p}");
        assert!((p_of_difference(&blocks(2, 1), &blocks(8, 1), r) - 112.0 / 1024.0).abs() < 1e-4);
        assert_eq!(p_of_growth(&blocks(2, 1), &blocks(8, 1), r), 1.0);
    }

    /// One block of 5R is all but sure to be seen; as much of loss beside it stays
    /// unseen with e⁻⁵.
    #[test]
    fn certain_blocks_do_not_rule_out_an_unseen_loss() {
        let p = p_of_growth(&blocks(1, 5 * R), &Total::default(), Interval::new(R));
        assert!((p / (-5.0f64).exp() - 1.0).abs() < 0.05, "{p}");
    }

    /// 200 rows of which none grew, 20 samples each, half of them of tenfold weight:
    /// in at most 5 % of families is any row said to have grown.
    #[test]
    fn of_rows_that_stay_hardly_a_family_has_one_that_grew() {
        let sight = Sight::from(Interval::new(R));
        let fine = Interval::new(R / 10).unwrap();
        let mut state = 5u64;
        let mut coin = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 0
        };
        let (families, rows) = (400, 200);
        let mut wrong = 0;
        for _ in 0..families {
            let mut p_values = Vec::new();
            for _ in 0..rows {
                let (mut gained, mut lost) = (Total::default(), Total::default());
                for sample in 0..20 {
                    let r = if sample % 2 == 0 { fine } else { Interval::new(R).unwrap() };
                    let set = if coin() { &mut gained } else { &mut lost };
                    set.add(&r.weight(64));
                }
                p_values.push(p_of_growth(&gained, &lost, sight));
            }
            wrong += u32::from(holm(&p_values, ERROR).contains(&true));
        }
        assert!(wrong <= families / 20, "{wrong} of {families} families");
        let alone = holm(&[0.03; 1], ERROR)[0] && !holm(&[0.03; 200], ERROR).contains(&true);
        assert!(alone, "what holds for one row does not for many");
    }

    /// What is said to have grown has an interval without 0, by its larger half too.
    #[test]
    fn evidence_is_seen_in_the_interval() {
        let sight = Sight::from(Interval::new(R));
        for gained in 0..60 {
            for lost in 0..20 {
                let (g, l) = (blocks(gained, 64), blocks(lost, 64));
                if !grew([(&g, &l)].into_iter(), sight)[0] {
                    continue;
                }
                let Change::Interval { value, low, high, .. } = change::growth(&g, &l, sight)
                else {
                    panic!("it is sampled");
                };
                let half = (value - low).max(high - value);
                assert!(value > half, "{gained} {lost}: {value} ±{half}");
            }
        }
        let (g, l) = (blocks(40, 64), blocks(4, 64));
        assert!(grew([(&g, &l)].into_iter(), sight)[0]);
    }

    /// Rows whose p-value is not worth its work would not have held.
    #[test]
    fn what_is_not_worth_the_work_changes_no_verdict() {
        let sight = Sight::from(Interval::new(R));
        let mut state = 3u64;
        let mut roll = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut held = 0;
        for rows in [1, 2, 10, 100, 1000] {
            for _ in 0..20 {
                let sets: Vec<(Total, Total)> = (0..rows)
                    .map(|_| {
                        let many = if roll(5) == 0 { 40 } else { 9 };
                        (blocks(roll(many), 1 << roll(22)), blocks(roll(9), 64))
                    })
                    .collect();
                let pairs = || sets.iter().map(|(gained, lost)| (gained, lost));
                let mut p_values = Vec::new();
                let mut of = vec![None; rows];
                for (row, (gained, lost)) in pairs().enumerate() {
                    if gained.n + lost.n > 0 {
                        of[row] = Some(p_values.len());
                        p_values.push(p_of_growth(gained, lost, sight));
                    }
                }
                let holds = holm(&p_values, ERROR);
                let want: Vec<bool> = pairs()
                    .zip(&of)
                    .map(|((g, l), of)| of.is_some_and(|at| holds[at]) && is_seen(g, l, sight))
                    .collect();
                assert_eq!(grew(pairs(), sight), want);
                held += want.iter().filter(|held| **held).count();
            }
        }
        assert!(held > 100, "{held}");
    }

    /// Among many rows, a row of many samples that grew is found.
    #[test]
    fn growth_is_found_among_many_rows() {
        let r = Interval::new(R);
        let mut p_values = vec![0.5; 10_000];
        p_values[77] = p_of_growth(&blocks(40, 64), &blocks(4, 64), r);
        let holds = holm(&p_values, ERROR);
        assert_eq!(holds.iter().filter(|row| **row).count(), 1, "{}", p_values[77]);
        assert!(holds[77]);
    }

    #[test]
    fn what_was_not_seen_grew_nowhere() {
        let seen = Sight::from(Interval::new(R));
        let many = blocks(100, 1);
        for sight in [Sight { lost: true, ..seen }, Sight { off: true, ..seen }, Sight::default()] {
            assert_eq!(p_of_growth(&many, &Total::default(), sight), 1.0);
        }
        assert!(p_of_growth(&many, &Total::default(), seen) < 1e-20);
    }
}
