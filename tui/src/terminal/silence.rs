//! How long the target has said nothing. An agent speaks several times a second,
//! whatever its target does: one that does not is stopped, or gets no time.
//!
//! The clock is looked at once a second, and first after [`PATIENCE`]. Who comes
//! [`LATE`] to that was held up itself (stopped, or the machine is), and has not
//! heard what waits for it: it listens anew.

use std::time::{Duration, Instant};

/// No silence is shorter.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// How much later than meant a look may be.
const LATE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Silence {
    since: Instant,
    look: Instant,
}

impl Silence {
    /// It begins: something was said.
    pub(super) fn from(now: Instant) -> Self {
        Self { since: now, look: now + PATIENCE }
    }

    /// When to look at the clock.
    pub(super) fn look(&self) -> Instant {
        self.look
    }

    /// Whole seconds that it has lasted, looked at [`Self::look`]; `None` if nobody
    /// can say.
    pub(super) fn seconds(&mut self, now: Instant) -> Option<u64> {
        if now >= self.look + LATE {
            *self = Self::from(now);
            return None;
        }
        self.look += LOOK;
        let seconds = now.saturating_duration_since(self.since).as_secs();
        (seconds >= PATIENCE.as_secs()).then_some(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_by_the_second_and_not_by_who_slept() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut silence = Silence::from(start);
        assert_eq!(silence.look(), at(3000));
        assert_eq!(silence.seconds(at(3001)), Some(3));
        assert_eq!(silence.look(), at(4000));
        assert_eq!(silence.seconds(at(4900)), Some(4));
        assert_eq!(silence.look(), at(5000));
        assert_eq!(silence.seconds(at(6000)), None);
        assert_eq!(silence.look(), at(9000));
        assert_eq!(silence.seconds(at(9000)), Some(3));
    }
}
