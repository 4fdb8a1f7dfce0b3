//! What is added up over callstacks before intervals are made.

use super::{Figures, Metric, NodeKey};
use crate::session::estimate::precision::{self, Finer};
use crate::session::figures::{Estimate, Lifetime};
use crate::session::{Session, estimate};
use heaptop_protocol::totals::{Total, Totals};

/// With more members a group's are found among all that changed lately: most have
/// not, and those that have stand side by side there.
const SCATTERED: usize = 1000;

/// What figures of callstacks are made of, but for lifetimes.
#[derive(Debug, Default)]
pub struct Sums {
    totals: Totals,
    /// Allocated in the rate window.
    window: Total,
    /// How much more is in use than before, by trend step.
    growth: Vec<f64>,
}

impl Sums {
    /// Of everything.
    pub fn whole(session: &Session) -> Self {
        let (everything, course) = (session.everything(), session.course());
        let mut sums = Self {
            totals: session.whole(),
            window: Total::default(),
            growth: everything.growth.iter(course.trend_steps()).collect(),
        };
        for born in everything.born.iter(course.rate_steps()) {
            sums.window.merge(&born);
        }
        sums
    }

    /// Of some groups: by number, whether it is one of them.
    pub fn of_groups(session: &Session, taken: &[bool]) -> Self {
        let mut sums = Self::default();
        for (group, _) in taken.iter().enumerate().filter(|(_, taken)| **taken) {
            sums.totals.merge(session.group_totals(group as u32));
        }
        let stacks = session.book().stacks();
        sums.look_back(session, |stack| taken[stacks[stack as usize].group() as usize]);
        sums
    }

    /// Of one group.
    pub fn of_group(session: &Session, group: u32) -> Self {
        let mut sums = Self { totals: *session.group_totals(group), ..Self::default() };
        let members = session.book().groups().group(group).stacks();
        if members.len() > SCATTERED {
            let stacks = session.book().stacks();
            sums.look_back(session, |stack| stacks[stack as usize].group() == group);
        } else {
            sums.growth.resize(session.course().trend_steps().count(), 0.0);
            for &stack in members {
                sums.window.merge(&born_lately(session, stack));
                sums.grow(session, stack);
            }
        }
        sums
    }

    /// What was in the windows, of the callstacks that are wanted.
    fn look_back(&mut self, session: &Session, wanted: impl Fn(u32) -> bool) {
        let (everything, course) = (session.everything(), session.course());
        for stack in everything.allocated.within(course.rate_steps()).filter(|s| wanted(*s)) {
            self.window.merge(&born_lately(session, stack));
        }
        self.growth.resize(course.trend_steps().count(), 0.0);
        for stack in everything.in_use.within(course.trend_steps()).filter(|s| wanted(*s)) {
            self.grow(session, stack);
        }
    }

    fn grow(&mut self, session: &Session, stack: u32) {
        let numbers = &session.numbers()[stack as usize];
        let oldest = session.course().trend_steps().oldest();
        let mut later = numbers.totals.in_use.bytes.sum;
        for (step, before) in numbers.in_use.iter().rev() {
            let Some(place) = step.checked_sub(oldest) else { break };
            if let Some(growth) = self.growth.get_mut(place as usize) {
                *growth += later - before;
            }
            later = before;
        }
    }

    /// In use at the start of each trend step and now, oldest first.
    fn trend(&self) -> Vec<f64> {
        let mut value = self.totals.in_use.bytes.sum;
        let mut trend: Vec<f64> = vec![value];
        for growth in self.growth.iter().rev() {
            value -= growth;
            trend.push(value.max(0.0));
        }
        trend.reverse();
        // Before the first change of all it began at nothing to see.
        if self.growth.is_empty() { Vec::new() } else { trend }
    }

    pub fn figures(&self, session: &Session, lifetime: Lifetime) -> Figures {
        let sight = session.course().sight();
        let lately = session.course().rate_sight();
        let rate = |estimate| match session.course().rate_seconds() {
            Some(seconds) => estimate::per_second(estimate, seconds),
            None => Estimate::Unknown,
        };
        let t = &self.totals;
        let promoted = estimate::share(&t.promoted, &t.minor);
        Figures {
            in_use_bytes: estimate::bytes(&t.in_use, sight),
            in_use_objects: estimate::objects(&t.in_use, sight),
            allocated_bytes: estimate::bytes(&t.allocated, sight),
            allocated_objects: estimate::objects(&t.allocated, sight),
            allocated_rate: rate(estimate::bytes(&self.window, lately)),
            object_rate: rate(estimate::objects(&self.window, lately)),
            promoted,
            short_lived: estimate::complement(promoted),
            lifetime,
            trend: self.trend(),
        }
    }
}

/// What would bring the bytes that a callsite allocates to ±10 %, if it goes on as in
/// the rate window; where that saw few samples, as in the mean so far. `None` where it
/// is so fine already, and where it seems to allocate no more.
#[must_use]
pub fn finer(session: &Session, key: NodeKey) -> Option<Finer> {
    /// With fewer samples the window says little of a speed.
    const FEW: u64 = 5;
    let book = session.book();
    let group = book.groups().at(book.node(key)?)?;
    let sums = Sums::of_group(session, group);
    let (have, lately) = (&sums.totals.allocated, &sums.window);
    let window = session.course().rate_seconds()?;
    let since_start = session.now_ns() as f64 / 1e9;
    let mean = precision::effective(&have.bytes) / since_start;
    let speed = if lately.n >= FEW {
        precision::effective(&lately.bytes) / window
    } else if lately.n == 0 && mean * window >= FEW as f64 {
        return None;
    } else {
        mean
    };
    let status = session.status()?;
    let all = session.samples_per_second()?;
    precision::finer(precision::effective(&have.bytes), speed, all, status.interval)
}

/// What a callstack allocated in the rate window.
pub fn born_lately(session: &Session, stack: u32) -> Total {
    let numbers = &session.numbers()[stack as usize];
    let oldest = session.course().rate_steps().oldest();
    if !numbers.allocated.any_since(oldest) {
        return Total::default();
    }
    let now = &numbers.totals.allocated;
    now.since(&numbers.allocated.at(oldest, *now))
}

/// The part of a callstack's totals that a metric speaks of.
pub fn of_metric(totals: &Totals, metric: Metric) -> Total {
    match metric {
        Metric::InUseBytes | Metric::InUseObjects => totals.in_use,
        Metric::AllocatedBytes | Metric::AllocatedObjects => totals.allocated,
        Metric::PromotedBytes => totals.promoted,
        // Promoted blocks are a subset of minor ones, so the rest is exact.
        Metric::ShortLivedBytes => totals.minor.since(&totals.promoted),
    }
}

/// The point estimate of a metric.
pub fn value(total: &Total, metric: Metric) -> f64 {
    if counts_objects(metric) { total.objects.sum } else { total.bytes.sum }
}

/// The estimate of a metric.
pub fn estimate_of(session: &Session, total: &Total, metric: Metric) -> Estimate {
    let sight = session.course().sight();
    if counts_objects(metric) {
        estimate::objects(total, sight)
    } else {
        estimate::bytes(total, sight)
    }
}

const fn counts_objects(metric: Metric) -> bool {
    matches!(metric, Metric::InUseObjects | Metric::AllocatedObjects)
}
