//! What is added up over callstacks before intervals are made.

use super::numbers::{Lived, Numbers, Part};
use super::{Figures, Metric, NodeKey};
use crate::session::estimate::change;
use crate::session::estimate::precision::{self, Finer};
use crate::session::figures::{Change, Estimate, Ratio};
use crate::session::{Session, estimate};
use heaptop_protocol::totals::{Total, Totals};

/// With more members a group's are found among all that changed lately: most have
/// not, and those that have stand side by side there.
const SCATTERED: usize = 1000;

/// What figures of callstacks are made of, but for lifetimes.
#[derive(Debug, Default)]
pub struct Sums {
    pub totals: Totals,
    /// Allocated in the rate window.
    pub window: Total,
    /// Promoted in it.
    pub promoted: Total,
    /// How much more is in use than before, by trend step.
    pub steps: Vec<f64>,
    /// Of a range: born in it and alive at its end,
    pub gained: Total,
    /// alive at its beginning and dead by its end.
    pub lost: Total,
    /// Whether that is growth with evidence.
    pub grew: bool,
    /// Of functions: in use by them and all that they call.
    pub cum: Option<Total>,
}

impl Sums {
    /// Of everything, at present.
    pub fn live_whole(session: &Session) -> Self {
        let (everything, course) = (session.everything(), session.course());
        let mut sums = Self {
            totals: session.whole(),
            steps: everything.growth.iter(course.trend_steps()).collect(),
            ..Self::default()
        };
        for born in everything.born.iter(course.rate_steps()) {
            sums.window.merge(&born);
        }
        for survived in everything.survived.iter(course.rate_steps()) {
            sums.promoted.merge(&survived);
        }
        sums
    }

    /// Of some groups, at present: by number, whether it is one of them.
    pub fn live_of_groups(session: &Session, taken: &[bool]) -> Self {
        let mut sums = Self::default();
        for (group, _) in taken.iter().enumerate().filter(|(_, taken)| **taken) {
            sums.totals.merge(session.group_totals(group as u32));
        }
        sums.look_back(session, |group| taken[group as usize]);
        sums
    }

    /// Of rows of several groups each, at present: by group, its row, and how many rows
    /// there are.
    pub fn live_of_rows(session: &Session, row_of: &[Option<u32>], rows: usize) -> Vec<Self> {
        let steps = session.course().trend_steps().count();
        let mut sums: Vec<Self> = Vec::new();
        sums.resize_with(rows, || Self { steps: vec![0.0; steps], ..Self::default() });
        if row_of.iter().all(Option::is_none) {
            return sums;
        }
        for (group, row) in row_of.iter().enumerate() {
            if let Some(row) = row {
                sums[*row as usize].totals.merge(session.group_totals(group as u32));
            }
        }
        session.born_by_group(|group, born| {
            if let Some(row) = row_of[group as usize] {
                sums[row as usize].window.merge(born);
            }
        });
        session.grown_by_group(|step, group, by| {
            if let Some(row) = row_of[group as usize] {
                sums[row as usize].steps[step] += by;
            }
        });
        sums
    }

    /// Of one group, at present.
    pub fn live_of_group(session: &Session, group: u32) -> Self {
        let mut sums = Self { totals: *session.group_totals(group), ..Self::default() };
        let members = session.book().groups().group(group).stacks();
        if members.len() > SCATTERED {
            sums.look_back(session, |other| other == group);
        } else {
            sums.steps.resize(session.course().trend_steps().count(), 0.0);
            for &stack in members {
                sums.window.merge(&born_lately(session, stack));
                sums.promoted.merge(&promoted_lately(session, stack));
                sums.grow(session, stack);
            }
        }
        sums
    }

    /// Of some callstacks, at present.
    pub fn live_of_stacks(session: &Session, stacks: &[u32]) -> Self {
        let mut sums = Self::default();
        sums.steps.resize(session.course().trend_steps().count(), 0.0);
        for &stack in stacks {
            sums.totals.merge(&session.numbers()[stack as usize].totals);
            sums.window.merge(&born_lately(session, stack));
            sums.promoted.merge(&promoted_lately(session, stack));
            sums.grow(session, stack);
        }
        sums
    }

    /// Other groups join.
    pub fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.window.merge(&other.window);
        self.promoted.merge(&other.promoted);
        self.gained.merge(&other.gained);
        self.lost.merge(&other.lost);
        self.steps.resize(other.steps.len().max(self.steps.len()), 0.0);
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            *mine += theirs;
        }
    }

    /// What was in the windows, of the groups that are wanted.
    fn look_back(&mut self, session: &Session, wanted: impl Fn(u32) -> bool) {
        let (everything, course) = (session.everything(), session.course());
        session.born_by_group(|group, born| {
            if wanted(group) {
                self.window.merge(born);
            }
        });
        let stacks = session.book().stacks();
        for stack in everything.promoted.within(course.rate_steps()) {
            if wanted(stacks[stack as usize].group()) {
                self.promoted.merge(&promoted_lately(session, stack));
            }
        }
        self.steps.resize(course.trend_steps().count(), 0.0);
        session.grown_by_group(|step, group, by| {
            if wanted(group) {
                self.steps[step] += by;
            }
        });
    }

    fn grow(&mut self, session: &Session, stack: u32) {
        let numbers = &session.numbers()[stack as usize];
        let oldest = session.course().trend_steps().oldest();
        let mut later = numbers.totals.in_use.bytes.sum;
        for (step, before) in numbers.in_use.iter().rev() {
            let Some(place) = step.checked_sub(oldest) else { break };
            if let Some(growth) = self.steps.get_mut(place as usize) {
                *growth += later - before;
            }
            later = before;
        }
    }

    /// In use at the start of each trend step and now, oldest first.
    fn trend(&self) -> Vec<f64> {
        let mut value = self.totals.in_use.bytes.sum;
        let mut trend: Vec<f64> = vec![value];
        for growth in self.steps.iter().rev() {
            value -= growth;
            trend.push(value.max(0.0));
        }
        trend.reverse();
        // Before the first change of all it began at nothing to see.
        if self.steps.is_empty() { Vec::new() } else { trend }
    }

    pub fn figures(&self, numbers: &Numbers<'_>, lived: Lived) -> Figures {
        type Made = fn(&Total, estimate::Sight) -> Estimate;
        let (bytes, objects): (Made, Made) = (estimate::bytes, estimate::objects);
        let of = |part, total: &Total, made: Made| {
            numbers.sight(part).map_or(Estimate::Unknown, |sight| made(total, sight))
        };
        let rate = |made| match numbers.rate_seconds() {
            Some(seconds) => estimate::per_second(of(Part::Rates, &self.window, made), seconds),
            None => Estimate::Unknown,
        };
        let t = &self.totals;
        let promoted = match numbers.sight(Part::Minor) {
            Some(_) => estimate::share(&t.promoted, &t.minor),
            None => Ratio::Unknown,
        };
        let growth = numbers.growth_sight();
        Figures {
            in_use_bytes: of(Part::InUse, &t.in_use, bytes),
            in_use_objects: of(Part::InUse, &t.in_use, objects),
            allocated_bytes: of(Part::Allocated, &t.allocated, bytes),
            allocated_objects: of(Part::Allocated, &t.allocated, objects),
            allocated_rate: rate(bytes),
            object_rate: rate(objects),
            promoted,
            short_lived: estimate::complement(promoted),
            lifetime: lived.median,
            mean: lived.mean,
            cum: self.cum.as_ref().map_or(Estimate::Unknown, |cum| of(Part::InUse, cum, bytes)),
            grew: self.grew,
            growth: growth
                .map_or(Change::Unknown, |sight| change::growth(&self.gained, &self.lost, sight)),
            trend: numbers.sight(Part::InUse).map_or_else(Vec::new, |_| self.trend()),
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
    let sums = Sums::live_of_group(session, group);
    let (have, lately) = (&sums.totals.allocated, &sums.window);
    let window = session.rate_seconds()?;
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
fn born_lately(session: &Session, stack: u32) -> Total {
    let numbers = &session.numbers()[stack as usize];
    let oldest = session.course().rate_steps().oldest();
    if !numbers.allocated.any_since(oldest) {
        return Total::default();
    }
    let now = &numbers.totals.allocated;
    now.since(&numbers.allocated.at(oldest, *now))
}

/// What a callstack had promoted in the window of rates.
fn promoted_lately(session: &Session, stack: u32) -> Total {
    let numbers = &session.numbers()[stack as usize];
    let now = numbers.totals.promoted;
    now.since(&numbers.promoted.at(session.course().rate_steps().oldest(), now))
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

/// What of the totals a metric speaks of.
pub const fn part_of(metric: Metric) -> Part {
    match metric {
        Metric::InUseBytes | Metric::InUseObjects => Part::InUse,
        Metric::AllocatedBytes | Metric::AllocatedObjects => Part::Allocated,
        Metric::PromotedBytes => Part::Promoted,
        Metric::ShortLivedBytes => Part::Minor,
    }
}

/// The estimate of a metric.
pub fn estimate_of(numbers: &Numbers<'_>, total: &Total, metric: Metric) -> Estimate {
    match numbers.sight(part_of(metric)) {
        None => Estimate::Unknown,
        Some(sight) if counts_objects(metric) => estimate::objects(total, sight),
        Some(sight) => estimate::bytes(total, sight),
    }
}

const fn counts_objects(metric: Metric) -> bool {
    matches!(metric, Metric::InUseObjects | Metric::AllocatedObjects)
}
