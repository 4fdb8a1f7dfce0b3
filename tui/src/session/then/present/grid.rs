//! Steps of time that stay where they are, for trends.

use std::collections::VecDeque;

/// A step, in microseconds: a sixtieth of the two minutes that trends look back over.
pub const STEP_US: u64 = 2_000_000;
/// Most steps that a trend touches: sixty, and the beginning of one more.
const MOST: u64 = 61;

/// The step that a moment falls into, in microseconds since the agent's start. A step holds
/// its end and not its beginning, as trends do.
#[must_use]
pub const fn step(us: u64) -> u64 {
    us.saturating_sub(1) / STEP_US
}

/// Where the step begins that a moment begins or falls into.
#[must_use]
pub const fn begin(us: u64) -> u64 {
    us / STEP_US * STEP_US
}

/// By step and class, by how much bytes in use grew; of the last steps.
#[derive(Debug, Default)]
pub struct Grid {
    /// What was until then is unknown.
    after_us: u64,
    /// Number of the first step.
    first: u64,
    steps: VecDeque<Vec<f64>>,
}

impl Grid {
    /// Of what is after a moment.
    pub fn after(us: u64) -> Self {
        Self { after_us: us, ..Self::default() }
    }

    /// Something changed at a moment. What is too long ago is forgotten.
    pub fn add(&mut self, us: u64, class: usize, by: f64) {
        if us <= self.after_us {
            return;
        }
        let step = step(us);
        let next = self.first + self.steps.len() as u64;
        if step >= next {
            let first = step.saturating_sub(MOST - 1);
            // Steps in which nothing happened are steps as well.
            if first >= next {
                self.steps.clear();
                self.first = first;
            }
            while self.first < first && self.steps.pop_front().is_some() {
                self.first += 1;
            }
            if self.steps.is_empty() {
                self.first = first;
            }
            let count = (step - self.first + 1) as usize;
            self.steps.resize_with(count, Vec::new);
        }
        let Some(place) = step.checked_sub(self.first) else { return };
        let classes = &mut self.steps[place as usize];
        if classes.len() <= class {
            classes.resize(class + 1, 0.0);
        }
        classes[class] += by;
    }

    /// What happened in each step that is remembered: its number, the class, and by how much
    /// it grew.
    pub fn iter(&self) -> impl Iterator<Item = (u64, usize, f64)> + '_ {
        (self.first..).zip(&self.steps).flat_map(|(step, classes)| {
            classes.iter().enumerate().map(move |(class, by)| (step, class, *by))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_are_remembered_wherever_time_goes() {
        let mut grid = Grid::default();
        let all = |grid: &Grid| {
            let changes = grid.iter().filter(|(.., by)| *by != 0.0);
            changes.map(|(step, class, by)| (step, class, by as i64)).collect::<Vec<_>>()
        };
        for (us, class, by) in [(1, 0, 1.0), (STEP_US, 1, 2.0), (STEP_US + 1, 0, 4.0)] {
            grid.add(us, class, by);
        }
        assert_eq!(all(&grid), [(0, 0, 1), (0, 1, 2), (1, 0, 4)]);
        grid.add(STEP_US * MOST, 0, 8.0);
        assert_eq!(all(&grid)[0], (0, 0, 1), "sixty steps before it");
        grid.add(STEP_US * MOST + 1, 0, 16.0);
        assert_eq!(all(&grid), [(1, 0, 4), (MOST - 1, 0, 8), (MOST, 0, 16)]);
        // What is long ago, and what is far ahead.
        grid.add(5, 0, 32.0);
        assert_eq!(all(&grid).len(), 3);
        grid.add(u64::MAX, 3, 64.0);
        grid.add(1, 3, 128.0);
        assert_eq!(all(&grid), [(step(u64::MAX), 3, 64)]);
        assert!(grid.steps.len() as u64 <= MOST);
        let mut grid = Grid::after(7);
        grid.add(7, 0, 1.0);
        grid.add(8, 0, 2.0);
        assert_eq!(all(&grid), [(0, 0, 2)], "before it nothing is known");
    }
}
