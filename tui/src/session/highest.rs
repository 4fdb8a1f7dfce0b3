//! The highest moment.
//!
//! The agent tells of it every few seconds, and of what is in use more often than that. What
//! was heard of block by block may have been higher than both: a target may end, or a recording
//! break off, before the agent has told of it. So the highest that the living come to is noted
//! with each birth, as the agent does it. That counts where it is above all that was told.

use super::when::When;
use super::{PeakView, Session, estimate};
use heaptop_protocol::totals::Total;

/// Sums of the same blocks in another order differ by less, as a share.
const ROUNDING: f64 = 1e-9;

impl Session {
    /// The highest moment that is known.
    #[must_use]
    pub fn peak(&self) -> Option<PeakView> {
        self.peak_until(u64::MAX)
    }

    /// The same as of another moment: `None` if it was later.
    #[must_use]
    pub fn peak_until(&self, to_ns: u64) -> Option<PeakView> {
        if !self.knows_in_use() {
            return None;
        }
        let heard = self.heard_peak().filter(|(time_ns, _)| *time_ns <= to_ns);
        let heard = heard.map(|(time_ns, in_use)| {
            let in_use = estimate::bytes(in_use, self.course.sight_until(to_ns));
            PeakView { time_ns, in_use }
        });
        heard.or_else(|| self.course.peak_until(to_ns))
    }

    /// The highest moment that the agent has told, which [`When::Peak`] is about.
    #[must_use]
    pub fn told_peak(&self) -> Option<PeakView> {
        self.course.peak().filter(|_| self.knows_in_use())
    }

    /// The highest moment, as a moment that can be asked about. The agent tells of it more
    /// seldom than of what is in use, which may be above the last that it told.
    #[must_use]
    pub fn peak_when(&self) -> When {
        let Some(peak) = self.peak() else { return When::Now };
        match self.span() {
            _ if self.in_use().point() > peak.in_use.point() => When::Now,
            Some((from, to)) if (from..=to).contains(&peak.time_ns) => When::At(peak.time_ns),
            _ => When::Peak,
        }
    }

    /// A block is heard of, or all that live: whether they come to more than ever.
    pub(super) fn note_highest(&mut self, time_ns: u64) {
        // Where deaths went unheard of, too many live.
        if self.base.is_none() || self.blind_from_ns.is_some() {
            return;
        }
        let in_use = self.blocks.total();
        if self.highest.is_none_or(|(_, highest)| highest.bytes.sum < in_use.bytes.sum) {
            self.highest = Some((time_ns, *in_use));
        }
    }

    /// The highest moment that was heard of, if it is above all that was told and can be
    /// asked about.
    fn heard_peak(&self) -> Option<(u64, &Total)> {
        let (time_ns, in_use) = self.highest.as_ref()?;
        let now = self.status().map_or(0.0, |status| status.totals.in_use.bytes.sum);
        let told = self.course.peak_bytes().unwrap_or_else(|| {
            // Before a peak is told its curve says how high it must be.
            let curve = self.history().iter().map(|point| point.in_use_bytes);
            curve.fold(0.0, f64::max)
        });
        let above = in_use.bytes.sum > now.max(told) * (1.0 + ROUNDING);
        let (from, to) = self.span().filter(|_| above)?;
        (from..=to).contains(time_ns).then_some((*time_ns, in_use))
    }
}

#[cfg(test)]
mod tests {
    use crate::query::{self, Question};
    use crate::session::figures::Estimate;
    use crate::session::fixture::Fixture;
    use crate::session::when::When;
    use heaptop_protocol::message::Dropped;

    const S: u64 = 1_000_000_000;

    fn peak(f: &Fixture) -> Option<(u64, Estimate)> {
        f.session.peak().map(|peak| (peak.time_ns, peak.in_use))
    }

    fn in_use_at(f: &Fixture, when: When) -> Estimate {
        let question = Question { when, ..Question::default() };
        query::callsites(&f.session, &question).total.in_use_bytes
    }

    /// No moment that can be asked about is above the peak, when the agent tells of it or not.
    #[test]
    fn no_moment_is_above_the_peak() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let exact = |value| Estimate::Exact { value };
        f.time_ns += S;
        f.alloc(stack, 1000);
        f.pass(1.0);
        assert_eq!(peak(&f), Some((3 * S, exact(1000.0))), "as it was told");
        f.hold_peak(true);
        f.time_ns += S;
        let more = f.alloc(stack, 500);
        f.time_ns += S / 2;
        f.free(more);
        f.pass(1.0);
        let highest = (4 * S, exact(1500.0));
        assert_eq!(peak(&f), Some(highest));
        assert_eq!(f.session.peak_when(), When::At(4 * S));
        assert_eq!(in_use_at(&f, f.session.peak_when()), exact(1500.0));
        let until = |to_ns| f.session.peak_until(to_ns).map(|peak| peak.time_ns);
        assert_eq!([3 * S, 4 * S - 1, 4 * S].map(until), [3 * S, 3 * S, 4 * S].map(Some));
        let told = f.session.told_peak().unwrap();
        assert_eq!((told.time_ns, in_use_at(&f, When::Peak)), (3 * S, exact(0.0)));
        let timeline = query::timeline(&f.session, "", When::Now, 60, 3);
        assert_eq!(timeline.in_use[timeline.column(4 * S)], 1500.0);
        // What is told and is higher is the peak, and now may be.
        f.alloc(stack, 800);
        f.pass(1.0);
        assert_eq!(f.session.peak_when(), When::Now);
        f.say_peak();
        assert_eq!(peak(&f), Some((f.time_ns, exact(1800.0))));
    }

    #[test]
    fn who_may_be_dead_is_in_no_peak() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let first = f.alloc(stack, 1000);
        f.pass(1.0);
        let told = peak(&f);
        f.death(first);
        f.say(Dropped { events: 1 });
        f.alloc(stack, 700);
        f.hold_peak(true);
        f.pass(1.0);
        assert_eq!(peak(&f), told);
        f.snapshot();
        f.time_ns += S;
        let id = f.alloc(stack, 400);
        f.free(id);
        assert_eq!(peak(&f).map(|peak| peak.1), Some(Estimate::Exact { value: 1100.0 }));
    }
}
