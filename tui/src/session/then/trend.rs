//! Bytes in use over time, by group.

use super::bounds::Bounds;
use super::by::{Classes, Cut};
use super::only::Seen;
use super::present::grid::{self, Grid};
use super::weights::Weights;
use super::{Session, When};
use std::sync::OnceLock;

/// Steps of a trend.
const STEPS: usize = 60;
/// Most numbers that are kept; of more groups there are fewer steps.
const MOST: usize = 1 << 22;

/// Growth by group and step.
#[derive(Debug)]
pub struct Trend {
    steps: usize,
    /// The number of the first step, of those that lie on a grid.
    first: u64,
    growth: Vec<f64>,
    /// Of all groups together, made when somebody asks.
    whole: OnceLock<Vec<f64>>,
}

/// Which of `steps` equal parts of `length` a moment after its beginning falls into. Long
/// division costs more than all else here, and is for lengths that hardly any session has.
fn part(since: u64, steps: usize, length: u64) -> usize {
    match since.checked_mul(steps as u64) {
        Some(parts) => (parts / length) as usize,
        None => (u128::from(since) * steps as u128 / u128::from(length)) as usize,
    }
}

/// Bytes in use of all together at `steps` equal steps from after `from_ns` until
/// `to_ns`.
pub fn over_time(session: &Session, from_ns: u64, to_ns: u64, steps: usize) -> Vec<f64> {
    let [begin, end] = [from_ns, to_ns].map(|ns| ns / 1000);
    let length = end.saturating_sub(begin);
    if steps == 0 || length == 0 {
        return Vec::new();
    }
    // What changes in a step is seen at its end; before the first step all is as of then.
    let mut changes = vec![0.0; steps + 1];
    let mut weights = Weights::new();
    let mut change = |us: u64, by: f64| {
        let step = match us.checked_sub(begin + 1) {
            _ if us > end => return,
            Some(since) => part(since, steps, length) + 1,
            None => 0,
        };
        changes[step.min(steps)] += by;
    };
    for life in session.lives.within(0, begin, end) {
        let w = weights.of(life.interval, life.size).bytes;
        change(life.born_us, w);
        change(life.ended_us, -w);
    }
    for (_, block) in session.blocks.iter() {
        change(block.born_ns / 1000, weights.of(block.interval, block.size).bytes);
    }
    let mut sum = changes[0];
    changes[1..]
        .iter()
        .map(|change| {
            sum += change;
            sum.max(0.0)
        })
        .collect()
}

impl Trend {
    pub fn of(session: &Session, bounds: &Bounds, cut: &Cut) -> Self {
        let classes = Classes::of(session, cut, bounds);
        let mut trend = Self::begin(bounds, classes.count(session));
        if trend.steps == 0 {
            return trend;
        }
        let mut weights = Weights::new();
        for life in session.lives.within(0, bounds.trend_us, bounds.end_us) {
            let w = weights.of(life.interval, life.size).bytes;
            let class = classes.class(&Seen::life(&life));
            trend.change(bounds, life.born_us, class, w);
            trend.change(bounds, life.ended_us, class, -w);
        }
        for (_, block) in session.blocks.iter() {
            let w = weights.of(block.interval, block.size).bytes;
            let class = classes.class(&Seen::living(block, bounds));
            trend.change(bounds, block.born_ns / 1000, class, w);
        }
        trend
    }

    /// Nothing yet.
    pub fn begin(bounds: &Bounds, groups: usize) -> Self {
        if bounds.grid {
            return Self::on_grid(bounds, groups);
        }
        let length = bounds.end_us.saturating_sub(bounds.trend_us);
        let known = bounds.in_use && bounds.when != When::Peak && length > 0;
        let steps = if known { STEPS.min(MOST / groups.max(1)).max(1) } else { 0 };
        Self::empty(steps, 0, groups)
    }

    /// Room for classes that have come: there are as many steps as at the beginning.
    pub fn fit(&mut self, groups: usize) {
        if groups * self.steps > self.growth.len() {
            self.growth.resize(groups * self.steps, 0.0);
        }
    }

    /// So much more, or less, of a class is in use from a moment on.
    #[inline]
    pub fn change(&mut self, bounds: &Bounds, us: u64, class: Option<u32>, by: f64) {
        let within = bounds.trend_us < us && us <= bounds.end_us;
        let Some(class) = class.filter(|_| within && self.steps > 0) else { return };
        let step = if bounds.grid {
            (grid::step(us) - self.first) as usize
        } else {
            let length = bounds.end_us - bounds.trend_us;
            part(us - bounds.trend_us - 1, self.steps, length)
        };
        if let Some(growth) = self.growth.get_mut(class as usize * self.steps + step) {
            *growth += by;
        }
    }

    fn empty(steps: usize, first: u64, groups: usize) -> Self {
        Self { steps, first, growth: vec![0.0; steps * groups], whole: OnceLock::new() }
    }

    /// Nothing yet, of the steps of a grid that [`Bounds::on_grid`] begins with.
    pub fn on_grid(bounds: &Bounds, groups: usize) -> Self {
        let (first, last) = (grid::step(bounds.trend_us + 1), grid::step(bounds.end_us));
        let known = bounds.in_use && bounds.trend_us < bounds.end_us;
        let steps = if known { (last - first + 1) as usize } else { 0 };
        Self::empty(steps, first, groups)
    }

    /// What a grid holds of these steps; `groups` are those of its classes.
    pub fn add(&mut self, grid: &Grid, groups: &[u32]) {
        for (step, class, by) in grid.iter() {
            let Some(place) = step.checked_sub(self.first).map(|place| place as usize) else {
                continue;
            };
            if place < self.steps {
                self.growth[groups[class] as usize * self.steps + place] += by;
            }
        }
    }

    /// Of one group, oldest first.
    pub fn group(&self, group: u32) -> &[f64] {
        let at = group as usize * self.steps;
        self.growth.get(at..at + self.steps).unwrap_or(&[])
    }

    /// Of all together.
    pub fn whole(&self) -> &[f64] {
        self.whole.get_or_init(|| {
            let mut whole = vec![0.0; self.steps];
            for group in self.growth.chunks(self.steps.max(1)) {
                for (sum, step) in whole.iter_mut().zip(group) {
                    *sum += step;
                }
            }
            whole
        })
    }

    pub const fn steps(&self) -> usize {
        self.steps
    }
}
