//! Values of the past, for rates and trends, at a cost that follows changes
//! instead of callstacks.
//!
//! Time is cut into steps of equal length, shared by all callstacks. A step begins
//! with the last values that were known before it. Of each value only changes are kept: with the number of a step, what the value
//! was when the step began. The value at the start of step k is then that of the
//! first change in step k or later, and the present one where there is none: a
//! callstack at rest costs nothing.

use std::collections::VecDeque;

/// The steps of time that are remembered.
#[derive(Debug, Clone)]
pub struct Steps {
    length_ns: u64,
    window_ns: u64,
    /// Number of the oldest step.
    oldest: u32,
    /// When each began: the values of the step's changes are as of then.
    starts_ns: VecDeque<u64>,
    as_of_ns: u64,
}

impl Steps {
    /// Steps of `length_ns` > 0, remembered as far as they reach into the last
    /// `window_ns`.
    #[must_use]
    pub fn new(length_ns: u64, window_ns: u64) -> Self {
        Self { length_ns, window_ns, oldest: 0, starts_ns: VecDeque::new(), as_of_ns: 0 }
    }

    /// Values as of `time_ns` are about to replace those as of the call before.
    pub fn advance(&mut self, time_ns: u64) {
        match self.starts_ns.back() {
            None => self.starts_ns.push_back(time_ns),
            Some(_) if time_ns / self.length_ns > self.as_of_ns / self.length_ns => {
                self.starts_ns.push_back(self.as_of_ns);
            }
            Some(_) => {}
        }
        self.as_of_ns = self.as_of_ns.max(time_ns);
        let from = self.as_of_ns.saturating_sub(self.window_ns);
        // Steps are rarely shorter than half their length: the bound on their
        // number is for clocks that jump.
        let most = (self.window_ns / self.length_ns.max(1)) as usize * 2 + 2;
        while self.starts_ns.get(1).is_some_and(|&next| next <= from) || self.starts_ns.len() > most
        {
            self.starts_ns.pop_front();
            self.oldest += 1;
        }
    }

    /// The step that changes fall into now.
    #[must_use]
    pub fn current(&self) -> u32 {
        self.oldest + (self.starts_ns.len() as u32).saturating_sub(1)
    }

    /// The oldest step that is remembered.
    #[must_use]
    pub const fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Steps remembered.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts_ns.len()
    }

    /// When the oldest step began.
    #[must_use]
    pub fn since_ns(&self) -> Option<u64> {
        self.starts_ns.front().copied()
    }

    /// As of when the present values are.
    #[must_use]
    pub const fn as_of_ns(&self) -> u64 {
        self.as_of_ns
    }

    /// Seconds from the start of the oldest step to now.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.since_ns().map_or(0.0, |start| self.as_of_ns.saturating_sub(start) as f64 / 1e9)
    }
}

/// The changes of one value.
#[derive(Debug, Clone)]
pub struct Changes<T>(Vec<(u32, T)>);

impl<T> Default for Changes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Changes<T> {
    /// The value, until now `old`, is about to change.
    pub fn record(&mut self, steps: &Steps, old: T) {
        let step = steps.current();
        if self.0.last().is_none_or(|(last, _)| *last != step) {
            let gone = self.0.partition_point(|(step, _)| *step < steps.oldest());
            self.0.drain(..gone);
            self.0.push((step, old));
        }
    }

    /// The value when step `step` began, if it is `now` by now.
    #[must_use]
    pub fn at(&self, step: u32, now: T) -> T {
        let later = self.0.partition_point(|(s, _)| *s < step);
        self.0.get(later).map_or(now, |(_, old)| *old)
    }

    /// The changes: the value when the step began, oldest first.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, T)> + '_ {
        self.0.iter().copied()
    }

    /// Whether it changed in this step or later.
    #[must_use]
    pub fn any_since(&self, step: u32) -> bool {
        self.0.last().is_some_and(|(last, _)| *last >= step)
    }
}

/// In which step values of many callstacks last changed, side by side: looked
/// through at once, where their changes are scattered over the memory.
#[derive(Debug, Default)]
pub struct Lately(Vec<u32>);

impl Lately {
    /// Value number `at` changes.
    pub fn mark(&mut self, steps: &Steps, at: u32) {
        let at = at as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        // 0 is for those that never changed.
        self.0[at] = steps.current() + 1;
    }

    /// The values that changed in this step or later.
    pub fn since(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let all = (0..).zip(&self.0);
        all.filter(move |(_, step)| **step > first).map(|(at, _)| at)
    }

    /// The values that changed since the oldest step that is remembered.
    pub fn within(&self, steps: &Steps) -> impl Iterator<Item = u32> + '_ {
        self.since(steps.oldest())
    }
}

/// Something that is kept of each step.
#[derive(Debug, Default)]
pub struct BySteps<T> {
    oldest: u32,
    kept: VecDeque<T>,
}

impl<T: Copy + Default> BySteps<T> {
    /// What is kept of the current step.
    pub fn current(&mut self, steps: &Steps) -> Option<&mut T> {
        while self.oldest < steps.oldest() && self.kept.pop_front().is_some() {
            self.oldest += 1;
        }
        self.oldest = steps.oldest();
        self.kept.resize(steps.count(), T::default());
        self.kept.back_mut()
    }

    /// What is kept of each step that is remembered, oldest first.
    pub fn iter(&self, steps: &Steps) -> impl Iterator<Item = T> + '_ {
        let gone = steps.oldest().saturating_sub(self.oldest) as usize;
        let kept = self.kept.iter().skip(gone).copied();
        kept.chain(std::iter::repeat(T::default())).take(steps.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_at_the_start_of_each_step() {
        let mut steps = Steps::new(10, 50);
        let mut changes = Changes::default();
        let mut value = 0;
        for (time, new) in [(0, 1), (4, 2), (12, 3), (14, 4), (30, 4), (31, 5), (60, 5)] {
            steps.advance(time);
            if new != value {
                changes.record(&steps, value);
                value = new;
            }
        }
        // Steps begin at 0, 4, 14 and 31; the first ends before the window.
        assert_eq!((steps.oldest(), steps.current(), steps.count()), (1, 3, 3));
        assert_eq!(steps.since_ns(), Some(4));
        assert_eq!((1..=3).map(|step| changes.at(step, value)).collect::<Vec<_>>(), [2, 4, 5]);
        assert!((steps.seconds() - 56e-9).abs() < 1e-15);
    }

    #[test]
    fn what_is_kept_of_a_step_is_forgotten_with_it() {
        let mut steps = Steps::new(10, 50);
        let (mut growth, mut lately) = (BySteps::<f64>::default(), Lately::default());
        let mut add = |steps: &Steps, change: Option<f64>| {
            if let Some(change) = change {
                *growth.current(steps).unwrap() += change;
            }
            growth.iter(steps).collect::<Vec<_>>()
        };
        assert!(add(&steps, None).is_empty());
        for (time, change) in [(0, 1.0), (4, 2.0), (12, 3.0), (14, -4.0), (31, 5.0)] {
            steps.advance(time);
            add(&steps, Some(change));
            lately.mark(&steps, (time / 10) as u32);
        }
        assert_eq!(add(&steps, None), [3.0, -1.0, 5.0]);
        assert_eq!(lately.within(&steps).collect::<Vec<_>>(), [0, 1, 3]);
        steps.advance(60);
        assert_eq!(add(&steps, None), [-1.0, 5.0, 0.0]);
        assert_eq!(lately.within(&steps).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(add(&steps, Some(7.0)), [-1.0, 5.0, 7.0]);
        steps.advance(1000);
        assert_eq!(lately.within(&steps).count(), 0);
        assert_eq!(add(&steps, Some(9.0)), [9.0]);
    }

    #[test]
    fn time_that_runs_backwards_is_ignored() {
        let mut steps = Steps::new(10, 50);
        for time in [50, 40, u64::MAX, 3, u64::MAX] {
            steps.advance(time);
        }
        assert_eq!(steps.count(), 1);
        assert!(steps.seconds() > 0.0);
    }
}
