//! When growth reaches a limit.
//!
//! Growth over a time is a speed; what is left below the limit, divided by it, is how long
//! it takes if it goes on so. The interval is that of growth, since nothing else is
//! estimated: the slowest speed that is not ruled out takes longest. Where the interval of
//! growth holds 0, no time is too long; where it holds nothing else there is no forecast.
//!
//! Whether there is evidence of growth is not asked here: who shows a forecast has it
//! ([`super::family`]).

use crate::session::figures::Change;

/// How long it takes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// At the estimated speed; infinite where that is none.
    pub seconds: f64,
    /// At the fastest.
    pub low: f64,
    /// At the slowest; infinite where that is none.
    pub high: f64,
}

/// The forecast for `left_bytes` more, from growth over `seconds`; `None` where nothing is
/// known, or nothing can have grown.
#[must_use]
pub fn forecast(change: Change, seconds: f64, left_bytes: f64) -> Option<Forecast> {
    let known = seconds > 0.0 && seconds.is_finite() && left_bytes.is_finite();
    if !known {
        return None;
    }
    // What is reached already takes no time.
    let left = left_bytes.max(0.0);
    let time = |bytes: f64| if bytes > 0.0 { left * seconds / bytes } else { f64::INFINITY };
    let (value, low, high) = match change {
        Change::Unknown => return None,
        Change::Exact { value } => (value, value, value),
        Change::Interval { value, low, high, .. } => (value, low, high),
        Change::AtLeast { low, .. } => (low, low, f64::INFINITY),
        Change::AtMost { high, .. } => (high, f64::NEG_INFINITY, high),
    };
    if high <= 0.0 {
        return None;
    }
    let fastest = if high.is_finite() { time(high) } else { 0.0 };
    Some(Forecast { seconds: time(value), low: fastest, high: time(low) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_speed_takes_longest() {
        let grown = Change::Interval { value: 100.0, low: 50.0, high: 200.0, samples: 40 };
        let f = forecast(grown, 10.0, 1000.0).unwrap();
        assert_eq!((f.seconds, f.low, f.high), (100.0, 50.0, 200.0));
        let flat = Change::Interval { value: 10.0, low: -50.0, high: 100.0, samples: 9 };
        let f = forecast(flat, 10.0, 1000.0).unwrap();
        assert_eq!((f.seconds, f.low, f.high), (1000.0, 100.0, f64::INFINITY));
        let f = forecast(Change::Exact { value: 5.0 }, 1.0, -3.0).unwrap();
        assert_eq!((f.seconds, f.low, f.high), (0.0, 0.0, 0.0), "reached already");
    }

    #[test]
    fn what_shrinks_or_is_not_known_has_none() {
        let shrunk = Change::Interval { value: -10.0, low: -50.0, high: -1.0, samples: 40 };
        assert_eq!(forecast(shrunk, 10.0, 1000.0), None);
        assert_eq!(forecast(Change::Unknown, 10.0, 1000.0), None);
        assert_eq!(forecast(Change::Exact { value: 5.0 }, 0.0, 1000.0), None);
        assert_eq!(forecast(Change::Exact { value: 5.0 }, f64::NAN, 1000.0), None);
    }
}
