//! What replaces what was said before, and is told several times a second: of it only
//! the last of each second is recorded. Values are absolute, so nothing is lost but how
//! they came about within the second; a session looks back in whole seconds
//! ([`Course`](crate::session::course::Course)). Of the peak, a table that grows all the
//! time while a program starts, it is the last of ten.

use heaptop_protocol::event::Moment;
use heaptop_protocol::message::{FromAgent, Peak, Status, TotalsUpdate};
use heaptop_protocol::totals::StackTotals;
use rustc_hash::FxHashMap;

/// By the clock of the target.
const SECOND_NS: u64 = 1_000_000_000;
/// A peak waits so many seconds for a higher one.
const PEAK_SECONDS: u64 = 10;
/// Callstacks in one update; more would make too large a message.
const MOST: usize = 1000;

/// What is held back.
#[derive(Debug, Default)]
pub(super) struct Thin {
    /// The second that it is of.
    second: Option<u64>,
    at: Option<Moment>,
    order: Vec<StackTotals>,
    place: FxHashMap<u32, usize>,
    status: Option<Status>,
    /// The peak's table in parts, and the second in which one came first.
    peak: Vec<Peak>,
    peak_second: Option<u64>,
}

impl Thin {
    /// Takes a message; what is to be recorded now comes out, in order.
    pub(super) fn pass(&mut self, message: FromAgent, mut record: impl FnMut(FromAgent)) {
        match message {
            FromAgent::Totals(update) => {
                self.turn(update.at, &mut record);
                self.at = Some(update.at);
                for totals in update.stacks {
                    let next = self.order.len();
                    let place = *self.place.entry(totals.stack.0).or_insert(next);
                    match self.order.get_mut(place) {
                        Some(known) => *known = totals,
                        None => self.order.push(totals),
                    }
                }
            }
            FromAgent::Status(status) => {
                self.turn(status.at, &mut record);
                self.status = Some(status);
            }
            FromAgent::Peak(peak) => {
                // The first part of another table.
                if self.peak.last().is_some_and(|last| !last.more) {
                    self.peak.clear();
                }
                self.peak.push(peak);
                self.peak_second = self.peak_second.or(self.second);
            }
            // Events lie between, and have a time of their own; ids are defined before
            // they are used.
            FromAgent::Events(_)
            | FromAgent::History(_)
            | FromAgent::Module(_)
            | FromAgent::Thread(_)
            | FromAgent::Stack(_) => record(message),
            other => {
                self.all(&mut record);
                record(other);
            }
        }
    }

    /// All that is held back.
    pub(super) fn all(&mut self, mut record: impl FnMut(FromAgent)) {
        self.figures(&mut record);
        self.peak_second = None;
        self.peak.drain(..).for_each(|peak| record(peak.into()));
    }

    fn figures(&mut self, record: &mut impl FnMut(FromAgent)) {
        self.totals(record);
        if let Some(status) = self.status.take() {
            record(status.into());
        }
    }

    /// Another second may begin.
    fn turn(&mut self, at: Moment, record: &mut impl FnMut(FromAgent)) {
        let second = at.time_ns / SECOND_NS;
        if self.second.replace(second).is_some_and(|before| before != second) {
            self.figures(record);
        }
        let waited = self.peak_second.is_some_and(|since| second >= since + PEAK_SECONDS);
        // A table of which parts are still to come waits on.
        if waited && self.peak.last().is_some_and(|last| !last.more) {
            self.peak_second = None;
            self.peak.drain(..).for_each(|peak| record(peak.into()));
        }
    }

    fn totals(&mut self, record: &mut impl FnMut(FromAgent)) {
        let Some(at) = self.at.take() else { return };
        self.place.clear();
        let mut stacks = std::mem::take(&mut self.order);
        while !stacks.is_empty() {
            let rest = stacks.split_off(stacks.len().min(MOST));
            record(TotalsUpdate { at, stacks }.into());
            stacks = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;
    use heaptop_protocol::ids::StackId;
    use heaptop_protocol::message::SnapshotBegin;
    use heaptop_protocol::totals::Totals;

    fn at(ms: u64) -> Moment {
        Moment { seq: ms, time_ns: ms * 1_000_000, clock: 0 }
    }

    fn totals(ms: u64, stacks: &[(u32, u64)]) -> FromAgent {
        let stacks = stacks.iter().map(|&(stack, n)| {
            let mut totals = Totals::default();
            totals.allocated.n = n;
            StackTotals { stack: StackId(stack), totals }
        });
        TotalsUpdate { at: at(ms), stacks: stacks.collect() }.into()
    }

    #[test]
    fn of_each_second_the_last_is_kept() {
        let mut thin = Thin::default();
        let mut out = Vec::new();
        for message in [
            totals(100, &[(1, 1), (2, 1)]),
            totals(400, &[(1, 2)]),
            totals(900, &[(3, 1), (1, 3)]),
            totals(1100, &[(2, 9)]),
            totals(1200, &[]),
            SnapshotBegin { at: at(1300) }.into(),
        ] {
            thin.pass(message, |message| out.push(message));
        }
        thin.all(|message| out.push(message));
        let kept = totals(900, &[(1, 3), (2, 1), (3, 1)]);
        let begin = SnapshotBegin { at: at(1300) }.into();
        assert_eq!(out, [kept, totals(1200, &[(2, 9)]), begin]);
    }

    #[test]
    fn a_peak_waits_for_a_higher_one() {
        let peak = |time_ns, more| {
            let in_use = heaptop_protocol::totals::Total::default();
            FromAgent::from(Peak { time_ns, in_use, stacks: vec![], more })
        };
        let (mut thin, mut out) = (Thin::default(), Vec::new());
        for second in 1..=25 {
            thin.pass(totals(second * 1000, &[]), |message| out.push(message));
            thin.pass(peak(second, true), |message| out.push(message));
            thin.pass(peak(second, false), |message| out.push(message));
        }
        thin.all(|message| out.push(message));
        out.retain(|message| matches!(message, FromAgent::Peak(_)));
        let kept = [10, 20, 25].map(|second| [peak(second, true), peak(second, false)]);
        assert_eq!(out, kept.concat());
    }

    #[test]
    fn a_status_follows_its_totals() {
        let f = Fixture::new(1);
        let status =
            |ms: u64| FromAgent::from(Status { at: at(ms), ..*f.session.status().unwrap() });
        let (mut thin, mut out) = (Thin::default(), Vec::new());
        for ms in [100, 300, 990, 1000, 1200, 2900] {
            thin.pass(totals(ms, &[(1, ms)]), |message| out.push(message));
            thin.pass(status(ms), |message| out.push(message));
        }
        thin.all(|message| out.push(message));
        let kept = [990, 1200, 2900].map(|ms| [totals(ms, &[(1, ms)]), status(ms)]);
        assert_eq!(out, kept.concat());
    }
}
