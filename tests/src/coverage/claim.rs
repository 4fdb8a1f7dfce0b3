//! What a figure claims, whatever kind of figure it is.

use heaptop::session::estimate::forecast::Forecast;
use heaptop::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};

/// The truth is said to be from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// Lower end; −∞ where none is claimed.
    pub low: f64,
    /// Upper end; ∞ where none is claimed.
    pub high: f64,
    /// Whether it is a bound, from one side or from where nobody was followed to.
    pub bound: bool,
}

impl Claim {
    const fn between(low: f64, high: f64) -> Self {
        Self { low, high, bound: false }
    }

    const fn bound(low: f64, high: f64) -> Self {
        Self { low, high, bound: true }
    }

    /// Whether it is right.
    #[must_use]
    pub fn holds(&self, truth: f64) -> bool {
        // Truths are sums of floats too.
        let slack = truth.abs() * 1e-9;
        self.low <= truth + slack && truth - slack <= self.high
    }

    /// The same of a multiple.
    #[must_use]
    pub fn times(self, by: f64) -> Self {
        Self { low: self.low * by, high: self.high * by, ..self }
    }

    /// The same, so much narrower about its middle: what nobody should believe.
    #[must_use]
    pub fn narrowed(self, by: f64) -> Self {
        let (middle, half) = (f64::midpoint(self.low, self.high), (self.high - self.low) / 2.0);
        Self { low: middle - half * by, high: middle + half * by, ..self }
    }

    /// The claim of an estimate, if it makes one.
    #[must_use]
    pub fn of_estimate(estimate: Estimate) -> Option<Self> {
        match estimate {
            Estimate::Unknown => None,
            Estimate::Exact { value } => Some(Self::between(value, value)),
            Estimate::Interval { low, high, .. } => Some(Self::between(low, high)),
            Estimate::Below { high } => Some(Self::bound(f64::NEG_INFINITY, high)),
            Estimate::AtLeast { low, .. } => Some(Self::bound(low, f64::INFINITY)),
        }
    }

    /// Of a change.
    #[must_use]
    pub fn of_change(change: Change) -> Option<Self> {
        match change {
            Change::Unknown => None,
            Change::Exact { value } => Some(Self::between(value, value)),
            Change::Interval { low, high, .. } => Some(Self::between(low, high)),
            Change::AtLeast { low, .. } => Some(Self::bound(low, f64::INFINITY)),
            Change::AtMost { high, .. } => Some(Self::bound(f64::NEG_INFINITY, high)),
        }
    }

    /// Of a share.
    #[must_use]
    pub fn of_ratio(ratio: Ratio) -> Option<Self> {
        match ratio {
            Ratio::Unknown => None,
            Ratio::Interval { low, high, .. } => Some(Self::between(low, high)),
        }
    }

    /// Of a median lifetime, in nanoseconds.
    #[must_use]
    pub fn of_lifetime(lifetime: Lifetime) -> Option<Self> {
        match lifetime {
            Lifetime::Unknown => None,
            Lifetime::Median { low_ns, high_ns, .. } => Some(Self::between(low_ns, high_ns)),
            Lifetime::Beyond { ns, .. } => Some(Self::bound(ns, f64::INFINITY)),
        }
    }

    /// Of how long growth takes to a limit, in seconds; without a forecast it never comes.
    #[must_use]
    pub fn of_forecast(forecast: Option<Forecast>) -> Self {
        let never = Self::between(f64::INFINITY, f64::INFINITY);
        forecast.map_or(never, |forecast| Self::between(forecast.low, forecast.high))
    }

    /// Of what rests on how long blocks were followed.
    #[must_use]
    pub fn of_followed(followed: Followed) -> Option<Self> {
        match followed {
            Followed::Unknown => None,
            Followed::Interval { low, high, .. } => Some(Self::between(low, high)),
            Followed::Bounds { low, high, .. } => Some(Self::bound(low, high)),
        }
    }
}
