//! The target as a whole, over time.

use super::book::MOST_STACKS;
use super::estimate::{self, Sight};
use super::window::Steps;
use super::{PeakView, sane};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{History, HistoryPoint, Peak, Sampling, Status};
use heaptop_protocol::totals::Total;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;
/// Rates look back so far.
const RATE_WINDOW_NS: u64 = 10 * SECOND_NS;
/// Trends look back so far, in 60 steps.
const TREND_WINDOW_NS: u64 = 120 * SECOND_NS;
const TREND_STEP_NS: u64 = 2 * SECOND_NS;
/// Most points of the curve; the agent keeps far fewer, and at this every second one goes.
const MOST_POINTS: usize = 1 << 16;

/// Most changes of R that are remembered: two a second.
const MOST_INTERVALS: usize = 40;
/// Most changes of R, and most times without sampling, that are remembered of all the
/// past; then neighbours become one.
const MOST_CHANGES: usize = 4096;

/// What a former status said.
#[derive(Debug, Clone, Copy)]
struct Former {
    time_ns: u64,
    samples: u64,
    agent_cpu_ns: u64,
}

/// When births went unseen, as far as that is told from one status to the next.
#[derive(Debug, Default)]
struct Unseen {
    /// Whether any did before the first status.
    before: bool,
    /// From when to when. In order of time.
    stretches: Vec<(u64, u64)>,
}

impl Unseen {
    /// Some did between two statuses, and in a moment at least.
    fn add(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = from_ns.min(to_ns.saturating_sub(1));
        let full = self.stretches.len() >= MOST_CHANGES;
        match self.stretches.last_mut() {
            Some((_, to)) if *to >= from_ns || full => *to = to_ns.max(*to),
            _ => self.stretches.push((from_ns, to_ns)),
        }
    }

    /// Whether any did in a stretch of time.
    fn within(&self, from_ns: u64, to_ns: u64) -> bool {
        self.stretches.iter().any(|&(from, to)| from < to_ns && from_ns < to)
    }

    /// Whether any did until a moment.
    fn until(&self, to_ns: u64) -> bool {
        self.before || self.within(0, to_ns)
    }
}

/// Status over time.
#[derive(Debug)]
pub struct Course {
    status: Option<Status>,
    former: VecDeque<Former>,
    rate_steps: Steps,
    trend_steps: Steps,
    /// The coarsest R that any block was sampled with: what the agent says, and what
    /// was in force while this model watched.
    coarsest: Option<Interval>,
    /// When each R came into force, as far back as rates look.
    intervals: VecDeque<(u64, Interval)>,
    /// When sampling was last known to be off.
    off_ns: Option<u64>,
    /// What R was until when: in force, and the coarsest of any block. In order of time.
    former_intervals: Vec<(u64, Interval, Interval)>,
    /// When sampling was off.
    off: Unseen,
    /// When births were lost.
    lost: Unseen,
    history: Vec<HistoryPoint>,
    peak: Option<(u64, Total)>,
    /// What callstacks had in use then.
    peak_table: Vec<(u32, Total)>,
    /// A table that has not come as a whole: of when, and what came.
    coming_peak: (u64, Vec<(u32, Total)>),
}

impl Course {
    pub(super) fn new() -> Self {
        Self {
            status: None,
            former: VecDeque::new(),
            rate_steps: Steps::new(SECOND_NS, RATE_WINDOW_NS),
            trend_steps: Steps::new(TREND_STEP_NS, TREND_WINDOW_NS),
            coarsest: None,
            intervals: VecDeque::new(),
            off_ns: None,
            former_intervals: Vec::new(),
            off: Unseen::default(),
            lost: Unseen::default(),
            history: Vec::new(),
            peak: None,
            peak_table: Vec::new(),
            coming_peak: (0, Vec::new()),
        }
    }

    pub(super) fn advance(&mut self, time_ns: u64) {
        self.rate_steps.advance(time_ns);
        self.trend_steps.advance(time_ns);
    }

    pub(super) fn status_is(&mut self, status: &Status) {
        let time_ns = status.at.time_ns;
        self.advance(time_ns);
        self.coarsest = self.coarsest.max(Some(status.coarsest.max(status.interval)));
        if self.intervals.back().is_none_or(|(_, last)| *last != status.interval) {
            self.intervals.push_back((time_ns, status.interval));
        }
        // The window may reach a status further back than its length.
        let from = time_ns.saturating_sub(2 * RATE_WINDOW_NS);
        while self.intervals.get(1).is_some_and(|(since, _)| *since <= from)
            || self.intervals.len() > MOST_INTERVALS
        {
            self.intervals.pop_front();
        }
        if status.sampling != Sampling::On {
            self.off_ns = Some(time_ns);
        }
        self.remember(status);
        let spaced = |last: &Former| time_ns >= last.time_ns.saturating_add(SECOND_NS / 2);
        if self.former.back().is_none_or(spaced) {
            let from = time_ns.saturating_sub(RATE_WINDOW_NS);
            while self.former.get(1).is_some_and(|next| next.time_ns <= from) {
                self.former.pop_front();
            }
            self.former.push_back(Former {
                time_ns,
                samples: status.samples,
                agent_cpu_ns: status.agent_cpu_ns,
            });
        }
        self.status = Some(*status);
    }

    /// For questions about the past.
    fn remember(&mut self, status: &Status) {
        let time_ns = status.at.time_ns;
        let (now, all) = (status.interval, status.coarsest.max(status.interval));
        match self.former_intervals.last_mut() {
            Some((until, r, coarsest)) if (*r, *coarsest) == (now, all) => *until = time_ns,
            _ => self.former_intervals.push((time_ns, now, all)),
        }
        if self.former_intervals.len() > MOST_CHANGES {
            let mut pairs = Vec::with_capacity(MOST_CHANGES);
            for pair in self.former_intervals.chunks(2) {
                let both = pair.iter().copied().reduce(|a, b| (b.0, a.1.max(b.1), a.2.max(b.2)));
                pairs.extend(both);
            }
            self.former_intervals = pairs;
        }
        let Some(before) = self.status else {
            self.off.before = status.gap || status.sampling != Sampling::On;
            self.lost.before = status.losses.births > 0;
            return;
        };
        let from_ns = before.at.time_ns;
        let between = before.sampling == Sampling::On && !before.gap && status.gap;
        // On at both, it was off and on again between the two.
        if between || before.sampling != Sampling::On || status.sampling != Sampling::On {
            self.off.add(from_ns, time_ns);
        }
        if status.losses.births > before.losses.births {
            self.lost.add(from_ns, time_ns);
        }
    }

    /// Whether sampling was off for a part of the time.
    pub(super) fn was_off(&self, from_ns: u64, to_ns: u64) -> bool {
        self.off.within(from_ns, to_ns)
    }

    /// How blocks born in a stretch of time were sampled, but for the interval.
    pub(super) fn sight_between(&self, from_ns: u64, to_ns: u64) -> Sight {
        let (lost, off) = (self.lost.within(from_ns, to_ns), self.off.within(from_ns, to_ns));
        Sight { interval: self.coarsest, lost, off }
    }

    /// How all blocks born until a moment were sampled, but for the interval: what was
    /// unseen later takes nothing from what was known then.
    pub(super) fn sight_until(&self, to_ns: u64) -> Sight {
        match &self.status {
            Some(status) if to_ns < status.at.time_ns => Sight {
                interval: self.coarsest,
                lost: self.lost.until(to_ns),
                off: self.off.until(to_ns),
            },
            _ => self.sight(),
        }
    }

    /// The coarsest R that a block born in a stretch of time may have been sampled with;
    /// of all that lived by its end where it begins with 0. `None` before any status.
    pub(super) fn coarsest_between(&self, from_ns: u64, to_ns: u64) -> Option<Interval> {
        let first = self.former_intervals.partition_point(|(until, ..)| *until < from_ns);
        let after = self.former_intervals.partition_point(|(until, ..)| *until < to_ns);
        let within =
            self.former_intervals.get(first..=after).or(self.former_intervals.get(first..));
        let all = |(_, r, coarsest): &(u64, Interval, Interval)| {
            if from_ns == 0 { *coarsest } else { *r }
        };
        within?.iter().map(all).max()
    }

    pub(super) fn history_is(&mut self, history: History) {
        if history.whole {
            self.history.clear();
        }
        for point in history.points {
            if self.history.last().is_some_and(|last| last.time_ns >= point.time_ns) {
                continue;
            }
            if self.history.len() >= MOST_POINTS {
                let mut keep = false;
                self.history.retain(|_| {
                    keep = !keep;
                    keep
                });
            }
            self.history.push(HistoryPoint {
                in_use_bytes: sane::number(point.in_use_bytes),
                allocated_bytes: sane::number(point.allocated_bytes),
                promoted_bytes: sane::number(point.promoted_bytes),
                ..point
            });
        }
    }

    /// A peak, or a part of its table, by callstacks' places.
    pub(super) fn peak_is(&mut self, peak: &Peak, mut part: Vec<(u32, Total)>) {
        self.peak = Some((peak.time_ns, sane::total(&peak.in_use)));
        if self.coming_peak.0 != peak.time_ns {
            self.coming_peak = (peak.time_ns, Vec::new());
        }
        let coming = &mut self.coming_peak.1;
        let room = MOST_STACKS.saturating_sub(coming.len());
        part.truncate(room);
        coming.append(&mut part);
        if !peak.more {
            self.peak_table = std::mem::take(coming);
        }
    }

    /// What callstacks had in use at the peak, by their places.
    pub(super) fn peak_table(&self) -> &[(u32, Total)] {
        &self.peak_table
    }

    pub(super) const fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    pub(super) fn history(&self) -> &[HistoryPoint] {
        &self.history
    }

    /// Bytes in use at the highest moment that was told.
    pub(super) fn peak_bytes(&self) -> Option<f64> {
        self.peak.as_ref().map(|(_, in_use)| in_use.bytes.sum)
    }

    /// The highest moment that was told.
    pub(super) fn peak(&self) -> Option<PeakView> {
        self.peak_until(u64::MAX)
    }

    /// The highest moment until another one: where births went unseen by then, another may
    /// have been higher.
    pub(super) fn peak_until(&self, to_ns: u64) -> Option<PeakView> {
        let (time_ns, in_use) = self.peak.as_ref().filter(|(time_ns, _)| *time_ns <= to_ns)?;
        let in_use = estimate::bytes(in_use, self.sight_until(to_ns));
        Some(PeakView { time_ns: *time_ns, in_use })
    }

    /// How all blocks were sampled, as far as is known.
    #[must_use]
    pub fn sight(&self) -> Sight {
        Sight {
            interval: self.coarsest,
            lost: self.is_lost(),
            off: self.off_ns.is_some() || self.gap(),
        }
    }

    /// The same for blocks born in the window of rates, which is not asked for
    /// where sampling was off in it.
    #[must_use]
    pub fn rate_sight(&self) -> Sight {
        let interval = self.intervals.iter().map(|(_, interval)| *interval).max();
        let from_ns = self.rate_steps.since_ns().unwrap_or(0);
        Sight { interval, lost: self.lost.within(from_ns, u64::MAX), off: false }
    }

    fn gap(&self) -> bool {
        self.status.is_some_and(|status| status.gap)
    }

    fn is_lost(&self) -> bool {
        self.status.is_some_and(|status| status.losses.births > 0)
    }

    /// Steps of a second, for rates.
    #[must_use]
    pub const fn rate_steps(&self) -> &Steps {
        &self.rate_steps
    }

    /// Steps of two seconds, for trends.
    #[must_use]
    pub const fn trend_steps(&self) -> &Steps {
        &self.trend_steps
    }

    /// From when to when rates of the present are.
    pub(super) fn rate_window(&self) -> Option<(u64, u64)> {
        Some((self.rate_steps.since_ns()?, self.rate_steps.as_of_ns()))
    }

    /// Seconds that rates of the present are over; `None` while there are fewer than
    /// `least`, and while sampling was off for a part of them.
    pub(super) fn rate_seconds(&self, least: f64) -> Option<f64> {
        let seconds = self.rate_steps.seconds();
        let since = self.rate_steps.since_ns()?;
        let off = self.off_ns.is_some_and(|off| off > since);
        (seconds >= least && !off).then_some(seconds)
    }

    /// The last status beside the one ten seconds before it, and the seconds between.
    fn span(&self, least: f64) -> Option<(&Status, &Former, f64)> {
        let status = self.status.as_ref()?;
        let former = self.former.front()?;
        let seconds = status.at.time_ns.saturating_sub(former.time_ns) as f64 / 1e9;
        (seconds >= least).then_some((status, former, seconds))
    }

    pub(super) fn samples_per_second(&self, least: f64) -> Option<f64> {
        let (status, former, seconds) = self.span(least)?;
        Some(status.samples.saturating_sub(former.samples) as f64 / seconds)
    }

    pub(super) fn agent_cost(&self, least: f64) -> Option<f64> {
        let (status, former, seconds) = self.span(least)?;
        let agent = status.agent_cpu_ns.checked_sub(former.agent_cpu_ns)?;
        Some(agent as f64 / 1e9 / seconds)
    }
}
