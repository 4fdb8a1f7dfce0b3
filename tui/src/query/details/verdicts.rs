//! What the figures of a callsite say: which factor moved, and what to do.

use super::super::Figures;
use super::super::grown::Grown;
use super::blocks::Sums;
use super::{Factor, Factors, Hint};
use crate::session::Session;
use crate::session::estimate::{self, Sight};
use crate::session::figures::{Change, Estimate, Ratio};
use heaptop_protocol::totals::Total;

pub fn factors(sums: &Sums, sight: Sight, [from, middle, to]: [u64; 3]) -> Option<Factors> {
    let seconds = [(middle - from) as f64 / 1e9, (to - middle) as f64 / 1e9];
    if seconds.iter().any(|s| *s <= 0.0) {
        return None;
    }
    let of = |half: usize| {
        let (born, in_use) = &sums.halves[half];
        let rate = estimate::per_second(estimate::objects(born, sight), seconds[half]);
        let living = estimate::objects(in_use, sight);
        let bytes = estimate::bytes(in_use, sight);
        let stay = match estimate::quotient(living, rate, in_use.n.min(born.n)) {
            Estimate::Interval { value, low, high, samples } => {
                Estimate::Interval { value: value * 1e9, low: low * 1e9, high: high * 1e9, samples }
            }
            Estimate::Exact { value } => Estimate::Exact { value: value * 1e9 },
            other => other,
        };
        (rate, stay, mean_size(in_use, bytes))
    };
    let (mut a, mut b) = (of(0), of(1));
    if sums.deaths == 0 {
        // Nobody knows how long they will stay.
        (a.1, b.1) = (Estimate::Unknown, Estimate::Unknown);
    }
    let mut moved: Vec<(Factor, f64)> =
        [(Factor::Rate, a.0, b.0), (Factor::Stay, a.1, b.1), (Factor::Size, a.2, b.2)]
            .into_iter()
            .filter_map(|(factor, a, b)| {
                let ((la, va, ha), (lb, vb, hb)) = (estimate::ends(a)?, estimate::ends(b)?);
                let apart = hb < la || ha < lb;
                (apart && va > 0.0 && vb > 0.0).then(|| (factor, (vb / va).ln().abs()))
            })
            .collect();
    moved.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some(Factors {
        rate: [a.0, b.0],
        stay_ns: [a.1, b.1],
        size: [a.2, b.2],
        moved: moved.into_iter().map(|(factor, _)| factor).collect(),
        middle_ns: middle,
    })
}

/// Bytes a block of what is in use. Both come from the same samples: the interval is that of
/// bytes at most.
fn mean_size(in_use: &Total, bytes: Estimate) -> Estimate {
    if in_use.n == 0 || in_use.objects.sum <= 0.0 {
        return Estimate::Unknown;
    }
    let value = in_use.bytes.sum / in_use.objects.sum;
    match bytes {
        Estimate::Exact { .. } => Estimate::Exact { value },
        Estimate::Interval { value: b, low, high, samples } if b > 0.0 => {
            Estimate::Interval { value, low: value * low / b, high: value * high / b, samples }
        }
        _ => Estimate::Unknown,
    }
}

/// From this share on that is sure a hint is given.
const MOST_DIE_YOUNG: f64 = 0.9;
const MUCH_REALLOC: f64 = 0.25;
const HALF: f64 = 0.5;
/// Of fewer samples nothing is said.
const LEAST_SAMPLES: u64 = 5;
/// Less churn than this part of the target's is not worth a word.
const WORTH: f64 = 0.02;

pub fn hints(
    session: &Session,
    (figures, goes_on): (&Figures, bool),
    sums: &Sums,
    grown: Option<&Grown>,
    sight: Sight,
) -> Vec<Hint> {
    let mut hints = Vec::new();
    if figures.grew {
        let growth = figures.growth;
        let samples = match growth {
            Change::Interval { samples, .. }
            | Change::AtLeast { samples, .. }
            | Change::AtMost { samples, .. } => samples,
            Change::Unknown | Change::Exact { .. } => sums.born.n,
        };
        hints.push(Hint::Grows { growth, goes_on, samples });
    }
    let of_all = session.allocated_rate().point().unwrap_or(0.0);
    let churns = figures.allocated_rate.point().is_some_and(|rate| rate > of_all * WORTH);
    if let Ratio::Interval { low, samples, .. } = figures.short_lived
        && low >= MOST_DIE_YOUNG
        && churns
    {
        let (share, rate) = (figures.short_lived, figures.allocated_rate);
        hints.push(Hint::DiesYoung { share, rate, samples });
    }
    let realloc = estimate::share(&sums.by_realloc, &sums.born);
    if let Ratio::Interval { low, samples, .. } = realloc
        && low >= MUCH_REALLOC
        && let Some(grown) = grown
        // Where blocks are seen to shrink, as by `shrink_to_fit`, there is nothing to ask for.
        && let [larger, others] = grown.seen
        && (larger > others || others == 0)
    {
        let (each, largest, seen) = (grown.each, grown.largest, larger > 0);
        hints.push(Hint::Ladder { share: realloc, each, largest, seen, samples });
    }
    let elsewhere = estimate::share(&sums.elsewhere, &sums.freed);
    if let Ratio::Interval { low, samples, .. } = elsewhere
        && low >= HALF
    {
        hints.push(Hint::FreedElsewhere { share: elsewhere, samples });
    }
    hints.retain(|hint| match *hint {
        Hint::Grows { samples, .. }
        | Hint::DiesYoung { samples, .. }
        | Hint::Ladder { samples, .. }
        | Hint::FreedElsewhere { samples, .. } => samples >= LEAST_SAMPLES,
    });
    // Births that were lost may have been others.
    if sight.lost { Vec::new() } else { hints }
}
