//! Where the numbers of an answer come from: the present as the session keeps it, or
//! another moment, made when it is asked for. The one place that knows the difference.

use super::sums::{Sums, born_lately};
use crate::session::Session;
use crate::session::estimate::Sight;
use crate::session::estimate::survival::Table;
use crate::session::figures::Lifetime;
use crate::session::then::Then;
use crate::session::when::When;
use heaptop_protocol::totals::{Total, Totals};
use std::sync::Arc;

/// The numbers at one moment, or over a stretch of time.
#[derive(Debug, Clone)]
pub struct Numbers<'a> {
    session: &'a Session,
    /// Of the present there are none.
    then: Option<Arc<Then>>,
}

/// What an estimate speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What lives.
    InUse,
    /// What was allocated, was born young, was promoted.
    Allocated,
    /// What was allocated in the window of rates.
    Rates,
    /// What a range gained and lost.
    Growth,
}

impl<'a> Numbers<'a> {
    pub fn of(session: &'a Session, when: When) -> Self {
        Self { session, then: session.then(when) }
    }

    pub const fn session(&self) -> &'a Session {
        self.session
    }

    /// The totals of a callstack.
    pub fn stack(&self, stack: u32) -> &Totals {
        match &self.then {
            None => &self.session.numbers()[stack as usize].totals,
            Some(then) => then.stack_totals(stack),
        }
    }

    /// The totals of a group.
    pub fn group(&self, group: u32) -> &Totals {
        match &self.then {
            None => self.session.group_totals(group),
            Some(then) => then.group_totals(group),
        }
    }

    /// How the blocks of a sum were sampled; `None` where nothing is known of it.
    pub fn sight(&self, part: Part) -> Option<Sight> {
        let course = self.session.course();
        let (known, sight) = match (&self.then, part) {
            (None, Part::Growth) => (false, Sight::default()),
            (None, Part::Rates) => (true, course.rate_sight()),
            (None, _) => (true, course.sight()),
            (Some(then), Part::InUse) => (then.knows_in_use(), then.sight_of_in_use()),
            (Some(then), Part::Allocated) => (then.knows_allocated(), then.sight_of_allocated()),
            (Some(then), Part::Rates) => (then.knows_in_use(), then.sight_of_rates()),
            (Some(then), Part::Growth) => (then.growth().is_some(), then.sight_of_growth()),
        };
        known.then_some(sight)
    }

    /// Seconds that rates are over; `None` where none are known.
    pub fn rate_seconds(&self) -> Option<f64> {
        match &self.then {
            None => self.session.course().rate_seconds(),
            Some(then) => then.rate_seconds(),
        }
    }

    /// The sums of everything.
    pub fn whole(&self) -> Sums {
        match &self.then {
            None => Sums::live_whole(self.session),
            Some(then) => {
                self.sums_then(then, None, then.whole(), then.windows(None), then.growth())
            }
        }
    }

    /// Of some groups: by number, whether it is one of them.
    pub fn of_groups(&self, taken: &[bool]) -> Sums {
        let Some(then) = &self.then else { return Sums::live_of_groups(self.session, taken) };
        let mut sums = Sums::default();
        for (group, _) in taken.iter().enumerate().filter(|(_, taken)| **taken) {
            sums.merge(&self.of_group_then(then, group as u32));
        }
        sums
    }

    /// Of one group.
    pub fn of_group(&self, group: u32) -> Sums {
        match &self.then {
            None => Sums::live_of_group(self.session, group),
            Some(then) => self.of_group_then(then, group),
        }
    }

    fn of_group_then(&self, then: &Then, group: u32) -> Sums {
        let (totals, windows) = (then.group_totals(group), then.windows(Some(group)));
        self.sums_then(then, Some(group), totals, windows, then.group_growth(group))
    }

    fn sums_then(
        &self,
        then: &Then,
        group: Option<u32>,
        totals: &Totals,
        (window, promoted): (Total, Total),
        grown: Option<(&Total, &Total)>,
    ) -> Sums {
        Sums {
            totals: *totals,
            window,
            promoted,
            steps: then.trend(self.session, group),
            gained: grown.map(|(gained, _)| *gained).unwrap_or_default(),
            lost: grown.map(|(_, lost)| *lost).unwrap_or_default(),
        }
    }

    /// By group, what was allocated in the window of rates.
    pub fn windows(&self) -> Vec<Total> {
        let groups = self.session.book().groups().numbers();
        if let Some(then) = &self.then {
            return (0..groups as u32).map(|group| *then.group_window(group)).collect();
        }
        let mut windows = vec![Total::default(); groups];
        let (everything, course) = (self.session.everything(), self.session.course());
        for stack in everything.allocated.within(course.rate_steps()) {
            windows[self.group_of(stack)].merge(&born_lately(self.session, stack));
        }
        windows
    }

    /// By group, by how much more is in use than when the trend begins; `None` where
    /// there is no trend.
    pub fn trends(&self) -> Option<Vec<f64>> {
        let groups = self.session.book().groups().numbers();
        if let Some(then) = &self.then {
            let grown = |group| then.trend(self.session, Some(group)).iter().sum();
            return (then.trend_steps(self.session) > 0)
                .then(|| (0..groups as u32).map(grown).collect());
        }
        let (everything, course) = (self.session.everything(), self.session.course());
        let steps = course.trend_steps();
        let mut trends = vec![0.0; groups];
        for stack in everything.in_use.within(steps) {
            let numbers = &self.session.numbers()[stack as usize];
            let now = numbers.totals.in_use.bytes.sum;
            trends[self.group_of(stack)] += now - numbers.in_use.at(steps.oldest(), now);
        }
        (steps.count() > 0).then_some(trends)
    }

    fn group_of(&self, stack: u32) -> usize {
        self.session.book().stacks()[stack as usize].group() as usize
    }

    /// The median lifetime of a group; `table` is room to work in.
    pub fn lifetime(&self, group: u32, table: &mut Table) -> Lifetime {
        match &self.then {
            None => self.session.group_lifetime(group, table),
            Some(then) => then.lifetime(self.session, std::iter::once(group), table),
        }
    }

    /// The median lifetime of some groups together, or of all.
    pub fn lifetime_of(&self, groups: Option<&mut dyn Iterator<Item = u32>>) -> Lifetime {
        let mut table = Table::default();
        let (session, all) = (self.session, self.session.book().groups());
        match (&self.then, groups) {
            (None, None) => {
                session.everything().lifetimes.add_to(&mut table, session.now_ns());
                table.median()
            }
            (None, Some(groups)) => {
                for &stack in groups.flat_map(|group| all.group(group).stacks()) {
                    let lifetimes = &session.numbers()[stack as usize].lifetimes;
                    lifetimes.add_to(&mut table, session.now_ns());
                }
                table.median()
            }
            (Some(then), None) => then.lifetime(session, 0..all.numbers() as u32, &mut table),
            (Some(then), Some(groups)) => then.lifetime(session, groups, &mut table),
        }
    }
}
