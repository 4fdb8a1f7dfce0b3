//! Truth beside estimate: who is right. Pure.

use crate::query::{self, Figures, Question, Row};
use crate::session::Session;
use crate::session::figures::{Estimate, Ratio};

use super::truth::Truth;

/// What is compared, for each callsite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Bytes that live.
    InUse,
    /// Blocks that live.
    Objects,
    /// Bytes ever allocated.
    Allocated,
    /// Blocks ever allocated.
    Births,
    /// Promoted share of the bytes born young, in thousandths of percent.
    Promoted,
}

impl Quantity {
    pub(super) const ALL: [Self; 5] =
        [Self::InUse, Self::Objects, Self::Allocated, Self::Births, Self::Promoted];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::InUse => "in use",
            Self::Objects => "objects",
            Self::Allocated => "allocated",
            Self::Births => "births",
            Self::Promoted => "promoted",
        }
    }

    /// What the number is multiplied by, to be printed and compared as a whole one.
    const fn scale(self) -> f64 {
        match self {
            Self::Promoted => 100.0 * 1000.0,
            _ => 1.0,
        }
    }

    fn of_truth(self, truth: &Truth) -> Option<f64> {
        Some(match self {
            Self::InUse => truth.in_use_bytes as f64,
            Self::Objects => truth.in_use_objects as f64,
            Self::Allocated => truth.allocated_bytes as f64,
            Self::Births => truth.allocated_objects as f64,
            Self::Promoted => return truth.promoted,
        })
    }

    fn of_figures(self, f: &Figures) -> Claim {
        match self {
            Self::InUse => Claim::of(f.in_use_bytes),
            Self::Objects => Claim::of(f.in_use_objects),
            Self::Allocated => Claim::of(f.allocated_bytes),
            Self::Births => Claim::of(f.allocated_objects),
            Self::Promoted => match f.promoted {
                Ratio::Unknown => Claim::default(),
                Ratio::Interval { value, low, high, .. } => {
                    Claim { value: Some(value), low: Some(low), high: Some(high) }
                }
            },
        }
    }
}

/// What an estimate says: without an end on both sides it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Claim {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl Claim {
    const fn of(estimate: Estimate) -> Self {
        let (value, low, high) = match estimate {
            Estimate::Unknown => (None, None, None),
            Estimate::Exact { value } => (Some(value), Some(value), Some(value)),
            Estimate::Interval { value, low, high, .. } => (Some(value), Some(low), Some(high)),
            Estimate::Below { high } => (None, Some(0.0), Some(high)),
            Estimate::AtLeast { low, .. } => (None, Some(low), None),
        };
        Self { value, low, high }
    }
}

/// Whether an interval holds the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It does.
    Hit,
    /// It does not.
    Miss,
    /// There is no truth, or nothing was claimed.
    Nothing,
}

/// One line of the table: whole numbers, as they are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub callsite: String,
    pub quantity: Quantity,
    pub truth: Option<i64>,
    pub value: Option<i64>,
    pub low: Option<i64>,
    pub high: Option<i64>,
}

impl Outcome {
    fn new(callsite: &str, quantity: Quantity, truth: Option<f64>, claim: Claim) -> Self {
        // Far below 2⁵³, or cut off there.
        let whole = |v: f64| (v * quantity.scale()).round() as i64;
        Self {
            callsite: callsite.into(),
            quantity,
            truth: truth.map(whole),
            value: claim.value.map(whole),
            low: claim.low.map(whole),
            high: claim.high.map(whole),
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let (Some(truth), true) = (self.truth, self.low.is_some() || self.high.is_some()) else {
            return Verdict::Nothing;
        };
        let above = self.low.is_none_or(|low| low <= truth);
        let below = self.high.is_none_or(|high| truth <= high);
        if above && below { Verdict::Hit } else { Verdict::Miss }
    }

    /// Whether the figure is the truth and claims to be nothing less.
    pub(super) fn is_exact(&self) -> bool {
        self.truth.is_some() && [self.value, self.low, self.high].iter().all(|v| *v == self.truth)
    }
}

/// A session's callsites, as the screen has them.
pub(super) struct Rows(Vec<Row>);

impl Rows {
    pub(super) fn of(session: &Session) -> Self {
        Self(query::callsites(session, &Question::default()).rows)
    }

    /// The figures of the function of this name.
    pub(super) fn get(&self, function: &str) -> Option<&Figures> {
        let named = |row: &&Row| {
            let name = row.label.function.strip_suffix(function);
            name.is_some_and(|path| path.is_empty() || path.ends_with("::"))
        };
        self.0.iter().find(named).map(|row| &row.figures)
    }

    /// Its promoted share.
    pub(super) fn promoted(&self, function: &str) -> Option<f64> {
        Quantity::Promoted.of_figures(self.get(function)?).value
    }
}

/// A line for each callsite and quantity; of a callsite that was never sampled
/// nothing is claimed.
pub(super) fn outcomes(truths: &[Truth], rows: &Rows) -> Vec<Outcome> {
    let of = |truth: &Truth, quantity: Quantity| {
        let figures = rows.get(&truth.function);
        let claim = figures.map_or_else(Claim::default, |f| quantity.of_figures(f));
        Outcome::new(&truth.function, quantity, quantity.of_truth(truth), claim)
    };
    truths.iter().flat_map(|truth| Quantity::ALL.map(|quantity| of(truth, quantity))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::proof) fn outcome(truth: Option<f64>, estimate: Estimate) -> Outcome {
        Outcome::new("f", Quantity::InUse, truth, Claim::of(estimate))
    }

    fn interval(low: f64, high: f64) -> Estimate {
        Estimate::Interval { value: low.midpoint(high), low, high, samples: 3 }
    }

    #[test]
    fn verdicts_are_those_of_the_printed_numbers() {
        let verdict = |truth, estimate| outcome(Some(truth), estimate).verdict();
        assert_eq!(verdict(10.0, interval(10.4, 20.0)), Verdict::Hit);
        assert_eq!(verdict(10.0, interval(10.6, 20.0)), Verdict::Miss);
        assert_eq!(verdict(21.0, interval(10.6, 20.0)), Verdict::Miss);
        assert_eq!(verdict(21.0, Estimate::AtLeast { low: 20.0, samples: 9 }), Verdict::Hit);
        assert_eq!(verdict(19.0, Estimate::AtLeast { low: 20.0, samples: 9 }), Verdict::Miss);
        assert_eq!(verdict(0.0, Estimate::Below { high: 30.0 }), Verdict::Hit);
        assert_eq!(verdict(31.0, Estimate::Below { high: 30.0 }), Verdict::Miss);
        assert_eq!(verdict(5.0, Estimate::Unknown), Verdict::Nothing);
        assert_eq!(outcome(None, interval(1.0, 2.0)).verdict(), Verdict::Nothing);
    }

    #[test]
    fn exact_is_neither_near_nor_a_bound() {
        assert!(outcome(Some(7.0), Estimate::Exact { value: 7.0 }).is_exact());
        assert!(!outcome(Some(7.0), Estimate::Exact { value: 8.0 }).is_exact());
        assert!(!outcome(Some(7.0), interval(6.0, 8.0)).is_exact());
        assert!(!outcome(Some(7.0), Estimate::AtLeast { low: 7.0, samples: 9 }).is_exact());
    }
}
