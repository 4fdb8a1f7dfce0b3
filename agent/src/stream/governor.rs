//! The governor moves R so that sampling stays within a budget: a share of the
//! CPU, and a number of samples a second.
//!
//! R is a power of two between [`FINEST`] and [`COARSEST`]. What a sample costs is
//! measured: the CPU time of sampled paths and of the books, over the samples of the
//! same time. From it follows how many samples a second the budget allows, and from
//! that the R which gives so many at the speed at which the program allocates now.
//! What the agent costs without a sample, by serving viewers for one, no R can change:
//! it is taken out of the budget first, of which samples keep half in any case.
//!
//! - **Coarser** at once and as far as needed: after a second, or as soon as the
//!   samples allowed for [`BURST_SECONDS`] have been spent in less.
//! - **Finer** by halves, one a second, and only where half the R would stay well
//!   within the budget, so that R does not swing between two values.
//!
//! No estimate is biased by any of this: each block bears the R it was sampled
//! with, and R depends on the past alone.
//!
//! Pure: readings come in, an R goes out.

use heaptop_protocol::estimate::Interval;

/// The finest R, in bytes.
const FINEST: u64 = 16 << 10;
/// The coarsest R, in bytes.
const COARSEST: u64 = 4 << 20;
/// Most samples a second.
const SAMPLES_A_SECOND: f64 = 2_000.0;
/// So many a second are taken whatever they cost: fewer say too little of any program, and
/// coarser R saves little of what a few cost.
const LEAST_A_SECOND: f64 = 100.0;
/// The agent's share of one core, or of the program's CPU time where that is more.
const CPU_SHARE: f64 = 0.005;
/// Time between two decisions.
const PERIOD_NS: u64 = 1_000_000_000;
/// Samples for so long may be spent at once.
const BURST_SECONDS: f64 = 2.0;
/// R is halved where the samples that then come are below this part of the allowed.
const WELL_WITHIN: f64 = 0.7;

/// What the governor goes by: all of it since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Monotonic time.
    pub ns: u64,
    /// Samples taken.
    pub samples: u64,
    /// CPU time that samples took: on the program's threads, and in the books.
    pub sampling_ns: u64,
    /// CPU time of the agent, all in all.
    pub agent_ns: u64,
    /// CPU time of the process, in nanoseconds.
    pub process_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Governor {
    last: Reading,
    finest: u64,
}

impl Governor {
    /// One that begins now.
    pub const fn new(now: Reading) -> Self {
        Self { last: now, finest: FINEST }
    }

    /// R must not be finer than this from now on: the memory does not hold it.
    pub fn limit(&mut self, interval: Interval) {
        self.finest = u64::from(interval.bytes()).next_power_of_two().clamp(FINEST, COARSEST);
    }

    /// Whether a decision is due, `samples` having been taken until `ns`. Cheap, where a
    /// whole reading is not: the CPU time of a process is the sum over its threads.
    pub fn is_due(&self, ns: u64, samples: u64) -> bool {
        let ns = ns.saturating_sub(self.last.ns);
        let samples = samples.saturating_sub(self.last.samples) as f64;
        ns >= PERIOD_NS || samples >= SAMPLES_A_SECOND * BURST_SECONDS && ns > 0
    }

    /// The R to go on with, if it is another.
    pub fn decide(&mut self, now: Reading, interval: Interval) -> Option<Interval> {
        let ns = now.ns.saturating_sub(self.last.ns);
        let samples = now.samples.saturating_sub(self.last.samples) as f64;
        if !self.is_due(now.ns, now.samples) {
            return None;
        }
        let sampling_ns = now.sampling_ns.saturating_sub(self.last.sampling_ns) as f64;
        let agent_ns = now.agent_ns.saturating_sub(self.last.agent_ns) as f64;
        let process_ns = now.process_ns.saturating_sub(self.last.process_ns) as f64;
        self.last = now;

        let seconds = ns as f64 / 1e9;
        let all_ns = CPU_SHARE * process_ns.max(ns as f64);
        let budget_ns = (all_ns - (agent_ns - sampling_ns).max(0.0)).max(all_ns / 2.0);
        let by_cpu = if samples > 0.0 && sampling_ns > 0.0 {
            samples * budget_ns / sampling_ns
        } else {
            f64::INFINITY
        };
        let least = LEAST_A_SECOND * seconds;
        let allowed = by_cpu.max(least).min(SAMPLES_A_SECOND * seconds);

        let r = u64::from(interval.bytes());
        let wanted = if samples > allowed {
            // At most 2⁶⁴ / 2³²: the product stays a number.
            (r as f64 * (samples / allowed).min(1e6)) as u64
        } else if 2.0 * samples <= WELL_WITHIN * allowed {
            r / 2
        } else {
            r
        };
        let wanted = wanted.max(1).next_power_of_two().clamp(self.finest, COARSEST);
        Interval::new(wanted).filter(|i| *i != interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn interval(bytes: u64) -> Interval {
        Interval::new(bytes).unwrap()
    }

    /// A program that allocates `speed(t)` bytes a second and pays `cost` ns a
    /// sample, governed for `seconds`, looked at every 100 ms: R at each second.
    fn govern(seconds: u64, cost: u64, speed: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut governor = Governor::new(Reading::default());
        let (mut now, mut r) = (Reading::default(), interval(512 << 10));
        let (mut course, mut owed) = (vec![], 0);
        for tenth in 0..seconds * 10 {
            owed += speed(tenth / 10) / 10;
            let samples = owed / u64::from(r.bytes());
            owed %= u64::from(r.bytes());
            now.ns += SECOND / 10;
            now.samples += samples;
            now.sampling_ns += samples * cost;
            // And 0.1 % for itself.
            now.agent_ns += samples * cost + SECOND / 10_000;
            now.process_ns += SECOND / 10;
            r = governor.decide(now, r).unwrap_or(r);
            if tenth % 10 == 9 {
                course.push(u64::from(r.bytes()));
            }
        }
        course
    }

    #[test]
    fn a_slow_program_is_sampled_finely() {
        assert_eq!(govern(10, 1000, |_| 1 << 20).last(), Some(&FINEST));
        assert_eq!(govern(10, 1000, |_| 0).last(), Some(&FINEST), "an idle one too");
    }

    #[test]
    fn a_fast_program_gets_the_samples_allowed() {
        for speed in [1u64 << 28, 1 << 30, 3 << 30] {
            for cost in [300, 1_000, 4_000, 20_000] {
                let course = govern(30, cost, |_| speed);
                let samples = speed as f64 / course[29] as f64;
                let cpu = samples * cost as f64 / 1e9;
                assert!(samples <= SAMPLES_A_SECOND, "{speed} {cost}: {samples}");
                assert!(
                    cpu <= CPU_SHARE - 0.001 || course[29] == COARSEST,
                    "{speed} {cost}: {cpu}"
                );
                // And not far fewer: half of what is allowed is the least.
                let allowed = SAMPLES_A_SECOND.min((CPU_SHARE - 0.001) * 1e9 / cost as f64);
                assert!(samples > 0.3 * allowed, "{speed} {cost}: {samples} of {allowed}");
                assert!(course[20..].iter().all(|r| *r == course[29]), "it swings: {course:?}");
            }
        }
    }

    #[test]
    fn what_is_no_samples_doing_takes_half_the_budget_at_most() {
        let mut governor = Governor::new(Reading::default());
        let mut now = Reading::default();
        let mut r = interval(512 << 10);
        // 20 MB a second, 4 µs a sample, and a busy thread.
        for _ in 0..20 {
            let samples = 20_000_000 / u64::from(r.bytes());
            now.ns += SECOND;
            now.samples += samples;
            now.sampling_ns += samples * 4_000;
            now.agent_ns += samples * 4_000 + SECOND / 100;
            now.process_ns += SECOND / 10;
            r = governor.decide(now, r).unwrap_or(r);
        }
        // 2.5 ms a second are 625 samples.
        assert_eq!(r.bytes(), 64 << 10);
    }

    #[test]
    fn a_burst_is_met_within_a_look() {
        let mut governor = Governor::new(Reading::default());
        let now = Reading { ns: SECOND / 10, samples: 60_000, ..Reading::default() };
        let r = governor.decide(now, interval(FINEST)).unwrap();
        let then = 600_000.0 * FINEST as f64 / f64::from(r.bytes());
        assert!(then <= SAMPLES_A_SECOND * 4.0, "{then} samples a second");
    }

    #[test]
    fn a_change_of_pace_is_followed_both_ways() {
        let course = govern(60, 1_000, |s| if s / 20 == 1 { 8 << 30 } else { 1 << 20 });
        assert_eq!(course[18], FINEST);
        assert_eq!(course[25], COARSEST);
        assert_eq!(course[59], FINEST);
    }

    #[test]
    fn a_limit_holds() {
        let mut governor = Governor::new(Reading::default());
        governor.limit(interval(100_000));
        let mut r = interval(COARSEST);
        for s in 1..20 {
            let now = Reading { ns: s * SECOND, ..Reading::default() };
            r = governor.decide(now, r).unwrap_or(r);
        }
        assert_eq!(r.bytes(), 1 << 17);
    }
}
