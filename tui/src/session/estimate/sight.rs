//! How much of what happened was seen.
//!
//! Intervals speak of chance alone: they hold where every birth had its chance to
//! be sampled and every sample was kept. Where births were lost, an estimate is
//! too low by nobody knows how much, so only its lower end stands. Where sampling
//! was off for a time, the same holds of what was born then, and having seen nothing is
//! no bound on what there was.

use crate::session::figures::Estimate;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{Sampling, Status};

/// What is known of how the blocks of a total were sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sight {
    /// The largest R that they may have been sampled with; `None` where nothing is
    /// known of it.
    pub interval: Option<Interval>,
    /// Births were lost: they are in no total.
    pub lost: bool,
    /// Sampling was off for a part of the time.
    pub off: bool,
}

impl From<Option<Interval>> for Sight {
    /// All was seen.
    fn from(interval: Option<Interval>) -> Self {
        Self { interval, ..Self::default() }
    }
}

/// The same of growth: what was gained, and what was lost. Sampling may have been off before
/// it alone: then blocks go that nobody saw come, and nothing of what was gained is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrowthSight {
    /// How what was born in the time was sampled.
    pub gained: Sight,
    /// How what lived at its beginning was sampled.
    pub lost: Sight,
}

impl<S: Into<Sight>> From<S> for GrowthSight {
    fn from(both: S) -> Self {
        let both = both.into();
        Self { gained: both, lost: both }
    }
}

impl GrowthSight {
    /// What is known of both: verdicts need it of both.
    #[must_use]
    pub fn both(self) -> Sight {
        let Self { gained, lost } = self;
        Sight {
            interval: gained.interval.max(lost.interval),
            lost: gained.lost || lost.lost,
            off: gained.off || lost.off,
        }
    }
}

impl Sight {
    /// What one status tells.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        Self {
            interval: Some(status.coarsest.max(status.interval)),
            lost: status.losses.births > 0,
            off: status.sampling != Sampling::On || status.gap,
        }
    }

    /// What stands of an estimate of `n` blocks that was made as if all had been seen.
    pub(super) fn limit(self, estimate: Estimate, n: u64) -> Estimate {
        match estimate {
            _ if n == 0 && (self.lost || self.off) => Estimate::Unknown,
            Estimate::Exact { value: low } | Estimate::Interval { low, .. }
                if self.lost || self.off =>
            {
                Estimate::AtLeast { low, samples: n }
            }
            stands => stands,
        }
    }
}
