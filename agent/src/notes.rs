//! What the program says of its own course: phases, marks, a context.
//!
//! Any thread may say something at any time, also in a callback; the agent's thread
//! takes it up a moment later. What waits lies in one array of fixed size behind a lock
//! that is held to copy some bytes and nothing else: nothing is allocated or called
//! under it. **Nobody waits for it**: the agent's thread looks again at its next turn,
//! and a thread of the program gives up after a while, as it does where the array is
//! full; then what it said is lost, and it is told so. A signal handler or a fork that
//! comes at a bad moment costs a note, never more.

use crate::engine::{Engine, domain, hook, sys};
use std::sync::Mutex;

/// The longest label, in bytes; what is longer is cut.
pub const LABEL_BYTES: usize = 200;
/// Notes that wait for the agent's thread, which looks every 100 ms at the latest.
const WAITING: usize = 64;
/// Attempts at the lock, a turn of the scheduler apart.
const ATTEMPTS: usize = 1000;

/// What a note is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A phase begins.
    Phase,
    /// This moment has a name.
    Mark,
    /// The process is this.
    Context,
}

/// One of them.
#[derive(Clone, Copy)]
pub struct Note {
    /// What it is.
    pub kind: Kind,
    /// The number that was next.
    pub seq: u64,
    /// Monotonic time.
    pub ns: u64,
    /// G.
    pub clock: u64,
    /// Of which engine: a forked child must not tell what its parent's threads said.
    engine_ns: u64,
    len: usize,
    label: [u8; LABEL_BYTES],
}

impl Note {
    const NONE: Self = Self {
        kind: Kind::Mark,
        seq: 0,
        ns: 0,
        clock: 0,
        engine_ns: 0,
        len: 0,
        label: [0; LABEL_BYTES],
    };

    /// Its label.
    pub fn label(&self) -> &str {
        let bytes = self.label.get(..self.len).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

struct Waiting {
    len: usize,
    notes: [Note; WAITING],
}

static NOTES: Mutex<Waiting> = Mutex::new(Waiting { len: 0, notes: [Note::NONE; WAITING] });

/// Notes this moment; false if there is no agent, or no room.
pub fn note(kind: Kind, label: &str) -> bool {
    let Some(engine) = Engine::running() else { return false };
    let len = label.floor_char_boundary_at_most(LABEL_BYTES);
    let mut bytes = [0; LABEL_BYTES];
    let (Some(to), Some(from)) = (bytes.get_mut(..len), label.as_bytes().get(..len)) else {
        return false;
    };
    to.copy_from_slice(from);
    let clock = domain::here(|d| hook::clock(engine, d));
    let note = Note {
        kind,
        seq: engine.seq(),
        ns: sys::monotonic_ns(),
        clock,
        engine_ns: engine.started_ns,
        len,
        label: bytes,
    };
    for _ in 0..ATTEMPTS {
        if let Ok(mut waiting) = NOTES.try_lock() {
            let at = waiting.len;
            let Some(slot) = waiting.notes.get_mut(at) else { return false };
            *slot = note;
            waiting.len = at + 1;
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Takes up what waits, in the order in which it was said. For the agent's thread; none
/// while somebody is at it.
pub fn take(engine: &Engine) -> Vec<Note> {
    // Made before, so that nothing is allocated under the lock.
    let mut taken: Vec<Note> = Vec::with_capacity(WAITING);
    if let Ok(mut waiting) = NOTES.try_lock() {
        let len = std::mem::take(&mut waiting.len);
        taken.extend(waiting.notes.iter().take(len));
    }
    taken.retain(|note| note.engine_ns == engine.started_ns);
    taken.sort_by_key(|note| note.ns);
    taken
}

trait Cut {
    /// The most bytes up to `most` that end between two characters.
    fn floor_char_boundary_at_most(&self, most: usize) -> usize;
}

impl Cut for str {
    fn floor_char_boundary_at_most(&self, most: usize) -> usize {
        (0..=most.min(self.len())).rev().find(|&at| self.is_char_boundary(at)).unwrap_or(0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_between_characters() {
        assert_eq!("short".floor_char_boundary_at_most(200), 5);
        assert_eq!("ééé".floor_char_boundary_at_most(3), 2);
        assert_eq!("".floor_char_boundary_at_most(3), 0);
    }

    #[test]
    fn without_an_agent_nothing_is_noted() {
        assert!(!note(Kind::Mark, "x"), "the tests' allocator is not ours");
    }
}
