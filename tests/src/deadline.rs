//! Waiting for conditions.

use std::time::{Duration, Instant};

/// How long a condition may take to come true on a slow, busy machine. Reached
/// only by failures: no test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A moment after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Default for Deadline {
    fn default() -> Self {
        Self::after(PATIENCE)
    }
}

impl Deadline {
    /// That far from now.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// What is left; `None` when it has passed.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Asks `condition` until it gives a value; `None` at the deadline.
pub fn poll<T>(deadline: Deadline, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        let left = deadline.left()?;
        std::thread::sleep(left.min(Duration::from_millis(5)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_asked_until_it_holds() {
        let mut asked = 0;
        let got = poll(Deadline::default(), || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(got, Some(3));
    }

    #[test]
    fn a_condition_that_never_holds_ends_at_the_deadline() {
        assert_eq!(poll(Deadline::after(Duration::from_millis(20)), || None::<()>), None);
    }

    #[test]
    fn a_condition_is_asked_once_even_when_the_deadline_has_passed() {
        assert_eq!(poll(Deadline::after(Duration::ZERO), || Some(1)), Some(1));
    }
}
