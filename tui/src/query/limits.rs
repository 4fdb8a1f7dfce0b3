//! What limits growth, and when that is reached if growth goes on.

use super::Leaks;
use crate::session::estimate::forecast::{Forecast, forecast};
use crate::session::figures::Change;
use crate::system::Memory;

/// Which limit growth comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// One that the user has set, of bytes in use.
    Set,
    /// The control group's, of the resident memory of all in it.
    Group,
    /// `RLIMIT_AS`, of address space.
    Space,
    /// `RLIMIT_DATA`, of data.
    Data,
    /// What the machine can still give.
    Machine,
}

impl Bound {
    /// What it is, and what it speaks of.
    #[must_use]
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Set => ["the limit that was set", "in use"],
            Self::Group => ["cgroup memory.max", "RSS"],
            Self::Space => ["RLIMIT_AS", "address space"],
            Self::Data => ["RLIMIT_DATA", "data"],
            Self::Machine => ["the machine's RAM", "RSS"],
        }
    }
}

/// A limit, what is left below it, and when it is reached if growth goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Which.
    pub bound: Bound,
    /// It, in bytes.
    pub most: u64,
    /// `None` without evidence of growth that goes on.
    pub forecast: Option<Forecast>,
    /// The pace that it is by.
    pub pace: Option<Pace>,
}

/// How fast all grew, and in which time until the moment that is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Nanoseconds.
    pub last_ns: u64,
}

/// What limits the growth of all, the nearest first: `set`, bytes in use, where that is a
/// limit, and what the system knows of the target, where that is of now. A forecast is by the
/// later part of the time: a cache that has filled by then goes on no more.
#[must_use]
pub fn limits(leaks: &Leaks, set: Option<u64>, system: Option<Memory>) -> Vec<Reached> {
    let mut found: Vec<(Bound, u64, f64)> = Vec::new();
    if let (Some(limit), Some(in_use)) = (set, leaks.total.in_use_bytes.point()) {
        found.push((Bound::Set, limit, limit as f64 - in_use));
    }
    if let Some(memory) = system {
        let limits = [
            (Bound::Group, memory.group),
            (Bound::Space, memory.space),
            (Bound::Data, memory.data),
        ];
        for (bound, limit) in limits {
            found.extend(limit.map(|limit| (bound, limit.most, limit.left() as f64)));
        }
        if let (Some(left), Some(all)) = (memory.available, memory.machine) {
            found.push((Bound::Machine, all, left as f64));
        }
    }
    found.sort_by(|a, b| a.2.total_cmp(&b.2));
    let (growth, from_ns) = match leaks.later {
        Some(later) => (later.growth, later.from_ns),
        None => (leaks.total.growth, leaks.from_ns),
    };
    let last_ns = leaks.to_ns.saturating_sub(from_ns);
    let over = last_ns as f64 / 1e9;
    let told = leaks.no_forecast().is_none();
    let pace = match growth {
        Change::Exact { value } | Change::Interval { value, .. } if last_ns > 0 => {
            Some(Pace { bytes_per_s: value / over, last_ns })
        }
        _ => None,
    };
    let of = |(bound, most, left)| {
        let forecast = if told { forecast(growth, over, left) } else { None };
        Reached { bound, most, forecast, pace: pace.filter(|_| forecast.is_some()) }
    };
    found.into_iter().map(of).collect()
}
