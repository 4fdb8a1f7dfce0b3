//! The time bar: which moment, or which range, the screens show.
//!
//! The cursor moves in steps, or ten of them, `{` and `}` set the ends of a range to where it stands,
//! and it plays forward by itself. **All screens obey**, and exports too. Without a
//! cursor and a range it is now, which moves on.
//!
//! Times are nanoseconds since the agent's start. What can be asked is the session's
//! span: the cursor never leaves it.

use super::keys::TimeKey;
use crate::query::When;

/// A step is this part of what can be asked.
const STEPS: u64 = 100;
/// So many of them at once.
const MANY: u64 = 10;
/// To play all of it takes so many seconds at most.
const PLAYED_IN: u64 = 30;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    cursor: Option<u64>,
    from: Option<u64>,
    to: Option<u64>,
    playing: bool,
    /// The highest moment, which the agent kept, and which may be before the span.
    peak: bool,
}

/// What came of setting an end of a range, in nanoseconds since the agent's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// It is set, and so is the other end as far as it was.
    Whole,
    /// It is set at the second of these; the other end, at the first, is gone.
    Without(u64, u64),
    /// Nothing: the other end is at this very moment.
    Nothing(u64),
}

/// From and to when any moment can be asked, in nanoseconds since the agent's start.
pub type Span = (u64, u64);

impl Times {
    /// What is to be asked.
    #[must_use]
    pub fn when(&self, span: Option<Span>) -> When {
        if self.peak {
            return When::Peak;
        }
        let Some((first, last)) = span else { return When::Now };
        if self.from.is_none() && self.to.is_none() {
            return self.cursor.map_or(When::Now, |at| When::At(at.clamp(first, last)));
        }
        // An end that is not set yet is where the cursor stands, or the end of all.
        let from = self.from.unwrap_or(first);
        let to = self.to.or(self.cursor).unwrap_or(last);
        let (from, to) = (from.clamp(first, last), to.clamp(first, last));
        if from == to {
            return When::At(from);
        }
        When::Range { from_ns: from.min(to), to_ns: from.max(to) }
    }

    /// Where the cursor stands; `None`: it is now.
    #[must_use]
    pub const fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Whether the range that is set ends where time does.
    #[must_use]
    pub const fn ends_now(&self) -> bool {
        self.to.is_none() && self.cursor.is_none()
    }

    /// Whether the range that is set has an end of its own.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.to.is_some()
    }

    /// Whether it moves by itself.
    #[must_use]
    pub const fn playing(&self) -> bool {
        self.playing
    }

    /// To the highest moment.
    pub fn to_peak(&mut self, when: When) {
        *self = match when {
            When::At(at) => Self { cursor: Some(at), ..Self::default() },
            When::Peak => Self { peak: true, ..Self::default() },
            When::Now | When::Range { .. } => Self::default(),
        };
    }

    /// To a moment; to the last one it is now.
    pub fn set(&mut self, at: u64, (first, last): Span) {
        *self = Self { cursor: Some(at.max(first)).filter(|&at| at < last), ..Self::default() };
    }

    /// A range between two moments; the cursor is at the second.
    pub fn set_range(&mut self, from: u64, to: u64, (first, last): Span) {
        let [from, to] = [from, to].map(|at| at.clamp(first, last));
        if from == to {
            return self.set(from, (first, last));
        }
        let (from, end) = (from.min(to), from.max(to));
        *self = Self { from: Some(from), to: Some(end), cursor: Some(to), ..Self::default() };
    }

    /// What a key does.
    pub fn act(&mut self, key: TimeKey, span: Span) {
        match key {
            TimeKey::Earlier => self.step(true, 1, span),
            TimeKey::Later => self.step(false, 1, span),
            TimeKey::MuchEarlier => self.step(true, MANY, span),
            TimeKey::MuchLater => self.step(false, MANY, span),
            TimeKey::Begin | TimeKey::End => {
                self.set_end(key == TimeKey::Begin, span);
            }
            TimeKey::Play => self.play(span),
            // It is the session that knows where it is: see `to_peak`.
            TimeKey::Peak => {}
            TimeKey::Now => *self = Self::default(),
        }
    }

    /// Steps back, or forward; forward from the last moment it is now again.
    fn step(&mut self, back: bool, steps: u64, (first, last): Span) {
        (self.playing, self.peak) = (false, false);
        let step = ((last - first) / STEPS).max(1) * steps;
        let at = self.cursor.unwrap_or(last).clamp(first, last);
        self.cursor = if back {
            Some(at.saturating_sub(step).max(first))
        } else {
            Some(at + step).filter(|&at| at < last)
        };
    }

    /// The range begins where the cursor stands, or ends there. An other end that it would
    /// not lie between with this one goes; where both are one moment all stays.
    pub fn set_end(&mut self, begins: bool, (first, last): Span) -> Set {
        let at = self.cursor.unwrap_or(last).clamp(first, last);
        let other = if begins { self.to } else { self.from };
        if other == Some(at) {
            return Set::Nothing(at);
        }
        self.peak = false;
        let lost = other.filter(|&other| if begins { other < at } else { other > at });
        let (this, that) =
            if begins { (&mut self.from, &mut self.to) } else { (&mut self.to, &mut self.from) };
        *this = Some(at);
        *that = that.filter(|_| lost.is_none());
        lost.map_or(Set::Whole, |other| Set::Without(other, at))
    }

    /// Plays, or stops to: from the cursor on, or all of it where that is at the end.
    fn play(&mut self, (first, _): Span) {
        self.playing = !self.playing;
        self.peak = false;
        if self.playing {
            self.cursor = self.cursor.or(Some(first));
            (self.from, self.to) = (None, None);
        }
    }

    /// It stands still where it is.
    pub const fn stop(&mut self) {
        self.playing = false;
    }

    /// While it plays: how much is still to come, and how long that takes, in nanoseconds.
    #[must_use]
    pub fn to_be_played(&self, span: Span) -> Option<(u64, u64)> {
        let at = self.cursor.filter(|_| self.playing)?;
        let left = span.1.saturating_sub(at);
        Some((left, left / speed(span)))
    }

    /// Time has passed while it plays; at the end it is now again.
    pub fn pass(&mut self, elapsed_ns: u64, span: Span) {
        let Some(at) = self.cursor.filter(|_| self.playing) else { return };
        self.cursor = Some(at.saturating_add(elapsed_ns.saturating_mul(speed(span))));
        if self.cursor >= Some(span.1) {
            *self = Self::default();
        }
    }
}

/// So many times as fast as it was.
fn speed((first, last): Span) -> u64 {
    (last - first).div_ceil(PLAYED_IN * 1_000_000_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const SPAN: Span = (10 * SECOND, 210 * SECOND);

    #[test]
    fn steps_stay_within_what_can_be_asked() {
        let mut times = Times::default();
        assert_eq!(times.when(Some(SPAN)), When::Now);
        let mut go = |key, often: usize| {
            (0..often).for_each(|_| times.act(key, SPAN));
            times.when(Some(SPAN))
        };
        assert_eq!(go(TimeKey::Earlier, 1), When::At(208 * SECOND));
        assert_eq!(go(TimeKey::Earlier, 200), When::At(10 * SECOND));
        assert_eq!(go(TimeKey::Later, 1), When::At(12 * SECOND));
        assert_eq!(go(TimeKey::Later, 99), When::Now);
        assert_eq!(go(TimeKey::MuchEarlier, 1), When::At(190 * SECOND));
        assert_eq!(go(TimeKey::MuchEarlier, 1), When::At(170 * SECOND));
        assert_eq!(go(TimeKey::MuchLater, 1), When::At(190 * SECOND));
        assert_eq!(go(TimeKey::MuchEarlier, 20), When::At(10 * SECOND));
        assert_eq!(go(TimeKey::MuchLater, 9), When::At(190 * SECOND));
        assert_eq!(go(TimeKey::MuchLater, 1), When::Now);
        assert_eq!(times.when(None), When::Now);
    }

    #[test]
    fn the_peak_is_a_moment_like_others_where_it_is_known() {
        let mut times = Times::default();
        times.to_peak(When::At(20 * SECOND));
        assert_eq!(times.when(Some(SPAN)), When::At(20 * SECOND));
        times.act(TimeKey::Later, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::At(22 * SECOND));
        times.to_peak(When::Peak);
        assert_eq!(times.when(Some(SPAN)), When::Peak);
        for key in [TimeKey::Earlier, TimeKey::Begin, TimeKey::Play, TimeKey::Now] {
            let mut times = Times { peak: true, ..Times::default() };
            times.act(key, SPAN);
            assert_ne!(times.when(Some(SPAN)), When::Peak, "{key:?}");
        }
        times.to_peak(When::Now);
        assert_eq!(times.when(Some(SPAN)), When::Now);
    }

    #[test]
    fn a_range_lies_between_its_ends_however_they_are_set() {
        let mut times = Times { cursor: Some(50 * SECOND), ..Times::default() };
        let range = |a: u64, b: u64| When::Range { from_ns: a * SECOND, to_ns: b * SECOND };
        times.set_end(true, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::At(50 * SECOND), "nothing is in it yet");
        let before = times;
        assert_eq!(times.set_end(false, SPAN), Set::Nothing(50 * SECOND));
        assert_eq!(times, before, "no range lies between a moment and itself");
        times.cursor = Some(80 * SECOND);
        assert_eq!(times.when(Some(SPAN)), range(50, 80), "it ends at the cursor so far");
        times.set_end(false, SPAN);
        times.cursor = None;
        assert_eq!(times.when(Some(SPAN)), range(50, 80));
        times.cursor = Some(90 * SECOND);
        times.set_end(true, SPAN);
        assert_eq!(
            times.when(Some(SPAN)),
            When::At(90 * SECOND),
            "a new one: the old end was before"
        );
        times.cursor = Some(20 * SECOND);
        assert_eq!(times.set_end(false, SPAN), Set::Without(90 * SECOND, 20 * SECOND));
        assert_eq!(times.when(Some(SPAN)), range(10, 20));
    }

    #[test]
    fn the_mouse_sets_a_moment_or_a_range() {
        let mut times = Times { playing: true, ..Times::default() };
        times.set(50 * SECOND, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::At(50 * SECOND));
        times.set_range(50 * SECOND, 30 * SECOND, SPAN);
        let range = When::Range { from_ns: 30 * SECOND, to_ns: 50 * SECOND };
        assert_eq!((times.when(Some(SPAN)), times.playing()), (range, false));
        times.set_range(50 * SECOND, 50 * SECOND, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::At(50 * SECOND));
        times.set(900 * SECOND, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::Now, "the last moment is now");
        times.set(0, SPAN);
        assert_eq!(times.when(Some(SPAN)), When::At(10 * SECOND), "what can be asked");
    }

    #[test]
    fn it_plays_all_in_half_a_minute_and_then_it_is_now() {
        let span = (0, 600 * SECOND);
        let mut times = Times::default();
        times.play(span);
        for tenth in 1..300 {
            times.pass(SECOND / 10, span);
            assert_eq!(times.when(Some(span)), When::At(tenth * 2 * SECOND));
        }
        times.pass(SECOND / 10, span);
        assert_eq!((times.when(Some(span)), times.playing()), (When::Now, false));
        times.play(span);
        times.play(span);
        times.pass(SECOND, span);
        assert_eq!(times.cursor(), Some(0), "stopped, it stands");
    }
}
