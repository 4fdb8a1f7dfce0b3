//! What is added up over the callstacks of a group before intervals are made.

use super::{Figures, Metric};
use crate::session::estimate::survival::Table;
use crate::session::figures::Estimate;
use crate::session::{Session, estimate};
use heaptop_protocol::totals::{Total, Totals};

/// The sums of one group. `clear` keeps the memory for the next one.
#[derive(Debug, Default)]
pub struct Sums {
    totals: Totals,
    /// Allocated in the rate window.
    window: Total,
    /// In use now, and how much more that is than before, by trend step.
    in_use: f64,
    growth: Vec<f64>,
    lives: Table,
}

impl Sums {
    pub fn clear(&mut self) {
        self.totals = Totals::default();
        self.window = Total::default();
        self.in_use = 0.0;
        self.growth.clear();
        self.lives.clear();
    }

    /// Adds callstack number `at`.
    pub fn add(&mut self, session: &Session, at: u32) {
        let numbers = &session.numbers()[at as usize];
        let course = session.course();
        self.totals.merge(&numbers.totals);

        let oldest = course.rate_steps().oldest();
        if numbers.allocated.any_since(oldest) {
            let now = numbers.totals.allocated;
            self.window.merge(&now.since(&numbers.allocated.at(oldest, now)));
        }

        let steps = course.trend_steps();
        self.growth.resize(steps.count(), 0.0);
        let mut later = numbers.totals.in_use.bytes.sum;
        self.in_use += later;
        for (step, before) in numbers.in_use.iter().rev() {
            let Some(place) = step.checked_sub(steps.oldest()) else { break };
            if let Some(growth) = self.growth.get_mut(place as usize) {
                *growth += later - before;
            }
            later = before;
        }

        numbers.lifetimes.add_to(&mut self.lives, session.now_ns());
    }

    /// Adds another, disjoint group.
    pub fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.window.merge(&other.window);
        self.in_use += other.in_use;
        self.growth.resize(self.growth.len().max(other.growth.len()), 0.0);
        for (mine, theirs) in self.growth.iter_mut().zip(&other.growth) {
            *mine += theirs;
        }
        self.lives.merge(&other.lives);
    }

    /// In use at the start of each trend step and now, oldest first.
    fn trend(&self) -> Vec<f64> {
        let mut value = self.in_use;
        let mut trend: Vec<f64> = vec![value];
        for growth in self.growth.iter().rev() {
            value -= growth;
            trend.push(value.max(0.0));
        }
        trend.reverse();
        // Before the first change of all it began at nothing to see.
        if self.growth.is_empty() { Vec::new() } else { trend }
    }

    pub fn figures(&self, session: &Session) -> Figures {
        let interval = session.course().interval();
        let lately = session.course().rate_interval();
        let rate = |estimate| match session.course().rate_seconds() {
            Some(seconds) => estimate::per_second(estimate, seconds),
            None => Estimate::Unknown,
        };
        let t = &self.totals;
        let promoted = estimate::share(&t.promoted, &t.minor);
        Figures {
            in_use_bytes: estimate::bytes(&t.in_use, interval),
            in_use_objects: estimate::objects(&t.in_use, interval),
            allocated_bytes: estimate::bytes(&t.allocated, interval),
            allocated_objects: estimate::objects(&t.allocated, interval),
            allocated_rate: rate(estimate::bytes(&self.window, lately)),
            object_rate: rate(estimate::objects(&self.window, lately)),
            promoted,
            short_lived: estimate::complement(promoted),
            lifetime: self.lives.median(),
            trend: self.trend(),
        }
    }
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
    let interval = session.course().interval();
    if counts_objects(metric) {
        estimate::objects(total, interval)
    } else {
        estimate::bytes(total, interval)
    }
}

const fn counts_objects(metric: Metric) -> bool {
    matches!(metric, Metric::InUseObjects | Metric::AllocatedObjects)
}
