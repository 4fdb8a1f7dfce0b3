//! The figures that screens, reports and exports show: values with their
//! uncertainty. Made by [`super::estimate`] alone.

/// An estimate of bytes, objects, or either per second, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// Nothing is known: shown as `–`, never as 0.
    Unknown,
    /// Known without error: every byte was sampled.
    Exact {
        /// The value.
        value: f64,
    },
    /// A value within an interval.
    Interval {
        /// The unbiased estimate.
        value: f64,
        /// Lower end of the 95 % interval, at least 0.
        low: f64,
        /// Upper end of the 95 % interval.
        high: f64,
        /// Sampled blocks behind it, at least 1; below 5 the figure is dimmed.
        samples: u64,
    },
    /// No sample: the truth is below this, with 95 % confidence (3R).
    Below {
        /// The bound.
        high: f64,
    },
    /// Too mixed for two sides (objects of sizes over 16:1), or births were lost: a
    /// one-sided bound.
    AtLeast {
        /// The bound, with 95 % confidence.
        low: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
}

impl Estimate {
    /// The number that stands for it in an order: without a sample 0.
    #[must_use]
    pub const fn point(self) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Exact { value } | Self::Interval { value, .. } => Some(value),
            Self::Below { .. } => Some(0.0),
            Self::AtLeast { low, .. } => Some(low),
        }
    }
}

/// A share between 0 and 1 with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ratio {
    /// Nothing is known.
    Unknown,
    /// A value within an interval; `low == high` when it is exact.
    Interval {
        /// The weighted share.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
}

/// How long blocks live, from a weighted Kaplan–Meier curve, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lifetime {
    /// Nothing is known.
    Unknown,
    /// Half of the blocks are dead by this age.
    Median {
        /// The median in nanoseconds.
        ns: f64,
        /// Lower end of its 95 % interval.
        low_ns: f64,
        /// Upper end of its 95 % interval; infinite when the curve does not come down to it.
        high_ns: f64,
        /// Deaths behind it.
        samples: u64,
    },
    /// Over half of the blocks lived at every age that was followed.
    Beyond {
        /// The age up to which that is sure, with 97.5 % confidence, in nanoseconds.
        ns: f64,
        /// Blocks behind it.
        samples: u64,
    },
}

impl Lifetime {
    /// The time that is shown, in nanoseconds: rows are put in order by it. `None` where what
    /// is known says nothing: a bound of less than a nanosecond.
    #[must_use]
    pub fn shown_ns(&self) -> Option<f64> {
        match *self {
            Self::Unknown => None,
            Self::Median { low_ns, high_ns, .. } if !high_ns.is_finite() => Some(low_ns),
            Self::Median { ns, .. } => return Some(ns),
            Self::Beyond { ns, .. } => Some(ns),
        }
        .filter(|bound| *bound >= 1.0)
    }
}

/// A signed change in bytes or objects with its 95 % interval: growth between two
/// times, or the difference of two recordings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Nothing is known.
    Unknown,
    /// Known without error.
    Exact {
        /// The value.
        value: f64,
    },
    /// A value within an interval.
    Interval {
        /// The unbiased estimate.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Sampled blocks behind it; 0 where none was seen on either side.
        samples: u64,
    },
    /// One side is known from below alone.
    AtLeast {
        /// The bound, with 95 % confidence.
        low: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
    /// The other side is known from below alone.
    AtMost {
        /// The bound, with 95 % confidence.
        high: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
}

impl Change {
    /// The number that stands for it in an order.
    #[must_use]
    pub const fn point(self) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Exact { value } | Self::Interval { value, .. } => Some(value),
            Self::AtLeast { low, .. } => Some(low),
            Self::AtMost { high, .. } => Some(high),
        }
    }
}

/// A figure that rests on how long blocks could be followed: a share that
/// survives, a mean life in bytes, a promotion rate at another nursery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Followed {
    /// Nothing is known.
    Unknown,
    /// A value within its 95 % interval.
    Interval {
        /// The estimate.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
    /// No block was followed so far: the truth is between these with 95 %
    /// confidence, and no value in between is better than another.
    Bounds {
        /// The least it can be.
        low: f64,
        /// The most it can be.
        high: f64,
        /// Sampled blocks behind it.
        samples: u64,
    },
}
