//! What a finer R would give: "finer: R 64 KiB, ~40 s to ±10 %".
//!
//! A figure of n effective samples, n = y²/v, is known to ±1.96/√n. So ±10 % needs
//! n = 384, of any R: what a finer one changes is how soon they come. A figure that
//! gets f of them a second at R gets f·R/R′ at R′.
//!
//! Of the powers of two from 16 KiB on the coarsest is named that gets there within a
//! minute; or else the finest that costs no more than 2,000 samples a second in all,
//! the budget of the agent's governor, with the time it takes.

use super::Z;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::totals::Moments;

/// ±10 %.
pub const WITHIN: f64 = 0.1;
/// No finer R is named, in bytes.
const FINEST_BYTES: u32 = 16 << 10;
/// Nobody wants to wait longer, in seconds, while a finer R can be had.
const PATIENCE_SECONDS: f64 = 60.0;
/// Samples a second that the whole target may cost.
const BUDGET: f64 = 2000.0;

/// What would make a figure finer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finer {
    /// The R to set; the one in force where waiting is enough.
    pub interval: Interval,
    /// Seconds from then on.
    pub seconds: f64,
    /// What is reached then: half the width of the 95 % interval over the value.
    pub within: f64,
}

/// Effective samples behind a sum: those that chance had a say in.
#[must_use]
pub fn effective(m: &Moments) -> f64 {
    if m.variance > 0.0 { m.sum * m.sum / m.variance } else { f64::INFINITY }
}

/// Half the width of the 95 % interval of `effective` samples, over the value.
#[must_use]
pub fn half_width(effective: f64) -> f64 {
    Z / effective.sqrt()
}

/// What would bring a figure to ±10 %, that gets `figure` effective samples a second
/// while the target takes `all` samples a second at `now`. `None` where it has
/// `WITHIN` already, or gets no samples at all. For figures that grow with time: what
/// is in use already keeps the R that it was born with.
#[must_use]
pub fn finer(have: f64, figure: f64, all: f64, now: Interval) -> Option<Finer> {
    if half_width(have) <= WITHIN || !(figure > 0.0 && figure.is_finite()) {
        return None;
    }
    let need = (Z / WITHIN).powi(2);
    let at = |interval: Interval| {
        let faster = f64::from(now.bytes()) / f64::from(interval.bytes());
        // Samples that are there already count: they are of the same figure.
        Finer { interval, seconds: (need - have) / (figure * faster), within: WITHIN }
    };
    let mut best = at(now);
    // The powers of two below R, coarsest first.
    let mut bytes = now.bytes().next_power_of_two() / 2;
    while best.seconds > PATIENCE_SECONDS && bytes >= FINEST_BYTES {
        let interval = Interval::new(u64::from(bytes))?;
        if all * f64::from(now.bytes()) / f64::from(bytes) > BUDGET {
            break;
        }
        best = at(interval);
        bytes /= 2;
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::totals::Total;

    fn r(kib: u64) -> Interval {
        Interval::new(kib << 10).unwrap()
    }

    /// The table of STATS: 10, 30, 100, 300 … small samples.
    #[test]
    fn widths_are_those_of_the_table() {
        for (n, percent) in [(10.0, 62.0), (30.0, 36.0), (100.0, 20.0), (300.0, 11.0), (1e4, 2.0)] {
            assert!((half_width(n) * 100.0 - percent).abs() < 0.5, "{n}");
        }
        let mut total = Total::default();
        for _ in 0..100 {
            total.add(&r(512).weight(1));
        }
        assert!((effective(&total.bytes) - 100.0).abs() < 0.01);
    }

    /// 1.2 samples a second need 384/1.2 = 320 s; at an eighth of R, 40 s.
    #[test]
    fn the_coarsest_that_is_soon_enough_is_named() {
        let finer = finer(0.0, 1.2, 30.0, r(512)).unwrap();
        assert_eq!(finer.interval, r(64));
        assert!((finer.seconds - 40.0).abs() < 0.1, "{}", finer.seconds);
    }

    #[test]
    fn what_is_known_or_unseen_has_no_hint() {
        assert_eq!(finer(400.0, 1.0, 30.0, r(512)), None);
        assert_eq!(finer(f64::INFINITY, 1.0, 30.0, r(512)), None);
        assert_eq!(finer(3.0, 0.0, 30.0, r(512)), None);
        assert_eq!(finer(3.0, f64::NAN, 30.0, r(512)), None);
    }

    #[test]
    fn waiting_may_be_enough_and_the_budget_holds() {
        let wait = finer(300.0, 2.0, 30.0, r(512)).unwrap();
        assert_eq!(wait.interval, r(512));
        assert!((wait.seconds - 42.1).abs() < 0.2, "{}", wait.seconds);
        // 900 a second at R leave room for one halving.
        assert_eq!(finer(1.0, 0.01, 900.0, r(512)).unwrap().interval, r(256));
        // However little comes, nothing below 16 KiB is named.
        assert_eq!(finer(1.0, 1e-4, 0.1, r(512)).unwrap().interval, r(16));
        // From an odd R on, the powers of two below it.
        assert_eq!(
            finer(0.0, 4.0, 30.0, Interval::new(700_000).unwrap()).unwrap().interval,
            r(256)
        );
    }
}
