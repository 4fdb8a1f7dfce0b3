//! The one queue that the drawing thread waits at.
//!
//! Two lanes. Input and signals are few and go first: a key is never behind a
//! flood of events. What comes from the target is bounded by its bytes: who
//! brings more waits until some is taken.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::SourceEvent;

/// Bytes of messages that may wait. A message larger than that may wait alone.
const BOUND: usize = 8 << 20;

/// What wakes the drawing thread.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few wait at a time; a box for each would cost more")]
pub enum Event {
    /// From the target, or about it.
    Source(SourceEvent),
    /// Keys, mouse, paste, new size.
    Input(crossterm::event::Event),
    /// From the system.
    Signal(Signal),
    /// Work that the drawing thread gave away is done: see [`crate::terminal::Ui::wake`].
    Wake,
}

/// What the system wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To end, by this signal.
    Quit(i32),
    /// To stop until continued.
    Suspend,
    /// To go on: the screen may hold anything.
    Continue,
    /// The terminal has another size.
    Resize,
    /// The terminal is gone.
    TerminalGone,
}

#[derive(Default)]
struct Lanes {
    urgent: VecDeque<Event>,
    /// With the bytes each stands for.
    source: VecDeque<(usize, SourceEvent)>,
    bytes: usize,
    closed: bool,
}

/// See the module.
#[derive(Default)]
pub struct Inbox {
    lanes: Mutex<Lanes>,
    /// Something came.
    came: Condvar,
    /// Something was taken.
    taken: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what must not wait.
    pub fn put_urgent(&self, event: Event) {
        self.lock().urgent.push_back(event);
        self.came.notify_one();
    }

    /// Puts what came from the target, `bytes` long, once there is room. `false`:
    /// nobody takes any more.
    pub fn put(&self, bytes: usize, event: SourceEvent) -> bool {
        let mut lanes = self.lock();
        while !lanes.closed && lanes.bytes > 0 && lanes.bytes + bytes > BOUND {
            lanes = self.taken.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
        if lanes.closed {
            return false;
        }
        lanes.bytes += bytes;
        lanes.source.push_back((bytes, event));
        self.came.notify_one();
        true
    }

    /// Takes the next event, waiting for it until `deadline`; without one, as
    /// long as it takes. A deadline in the past does not wait.
    pub fn take(&self, deadline: Option<Instant>) -> Option<Event> {
        let mut lanes = self.lock();
        loop {
            if let Some(event) = lanes.urgent.pop_front() {
                return Some(event);
            }
            if let Some((bytes, event)) = lanes.source.pop_front() {
                lanes.bytes -= bytes;
                self.taken.notify_all();
                return Some(Event::Source(event));
            }
            lanes = match deadline {
                None => self.came.wait(lanes).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    self.came.wait_timeout(lanes, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Takes all that must not wait.
    pub(crate) fn take_urgent(&self) -> VecDeque<Event> {
        std::mem::take(&mut self.lock().urgent)
    }

    /// Nobody will take any more: who waits for room is let go.
    pub fn close(&self) {
        self.lock().closed = true;
        self.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: SourceEvent = SourceEvent::UnknownMessage { kind: 999, payload: Vec::new() };
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn keys_overtake_messages() {
        let inbox = Inbox::default();
        inbox.put(1, UNKNOWN);
        inbox.put_urgent(Event::Signal(Signal::Resize));
        assert!(matches!(inbox.take(None), Some(Event::Signal(Signal::Resize))));
        assert!(matches!(inbox.take(None), Some(Event::Source(_))));
        assert!(inbox.take(Some(Instant::now())).is_none());
    }

    #[test]
    fn whoever_brings_too_much_waits_and_is_let_go_at_the_end() {
        let inbox = Arc::new(Inbox::default());
        let (put, shared) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&inbox));
        let count = Arc::clone(&put);
        let thread = std::thread::spawn(move || {
            while shared.put(BOUND / 4, UNKNOWN) {
                count.fetch_add(1, SeqCst);
            }
        });
        let until = |wanted: usize| {
            while put.load(SeqCst) < wanted {
                std::thread::yield_now();
            }
        };
        until(4);
        for taken in 1..=20 {
            assert!(put.load(SeqCst) < taken + 4, "never more than the bound waits");
            inbox.take(None);
            until(4 + taken);
        }
        inbox.close();
        thread.join().unwrap();
        assert_eq!(put.load(SeqCst), 24);
    }

    #[test]
    fn one_message_above_the_bound_passes() {
        let inbox = Inbox::default();
        assert!(inbox.put(BOUND * 2, UNKNOWN));
        assert!(inbox.take(None).is_some());
    }
}
