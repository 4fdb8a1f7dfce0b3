//! Where the engine is, and whether there is one.
//!
//! ```text
//! NEW ─► STARTING ─► RUNNING ─► OFF (this is a forked child)
//!           ▲  └───► OFF         │
//!           └────────────────────┘  where children are followed
//! ```
//!
//! Who moves the state to STARTING, by compare-and-swap, makes the engine; all others
//! pass through meanwhile. An engine, once made, is never written and never given
//! back: who holds one may go on with it. So the engine of a child lies in a place of
//! its own, and its parent's is left as the fork found it.
//!
//! A child is followed from its first stop on, or from the program's own call. Then
//! the filter, which the child has inherited, is emptied: what the parent sampled is
//! in the parent's books, and its free in the child is that of an unknown block.

use super::region;
use super::sync::{
    AtomicPtr, AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    shared,
};
use super::{Engine, floats, sampled_set, unwind};
use crate::config::Builder;

const NEW: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const OFF: u8 = 3;

shared! {
    /// Where the engine stands.
    static STATE: AtomicU8 = AtomicU8::new(NEW);
    static WHY_OFF: AtomicU8 = AtomicU8::new(0);
    /// The last engine that was made. Stored by a Release, after it was written; the
    /// Acquire loads are its partners.
    static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
}

/// Why there is no engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WhyOff {
    /// The program has no `Heaptop` as its global allocator, or has not used it.
    NotInstalled = 0,
    /// `HEAPTOP=off`.
    Asked = 1,
    /// The system refused the memory.
    NoMemory = 2,
    /// The kernel cannot tell forked children apart.
    NoForkMark = 3,
    /// This is a forked child.
    Forked = 4,
    /// The program has rights that who started it has not.
    Privileged = 5,
}

/// The engine that was made last, running or not.
#[inline]
fn last() -> Option<&'static Engine> {
    // SAFETY: null, or an engine that was written before and is never given back.
    unsafe { ENGINE.load(Acquire).as_ref() }
}

impl Engine {
    /// The running engine.
    #[inline]
    pub fn running() -> Option<&'static Self> {
        if STATE.load(Acquire) != RUNNING {
            return None;
        }
        let engine = last()?;
        if engine.is_here() {
            return Some(engine);
        }
        WHY_OFF.store(WhyOff::Forked as u8, Relaxed);
        STATE.store(OFF, Relaxed);
        None
    }

    /// The running engine; starts it if this is the first call of all, or the first in
    /// a child that is followed. Whether it was started here.
    pub fn running_or_start(builder: &Builder) -> (Option<&'static Self>, bool) {
        let started = match STATE.load(Relaxed) {
            NEW => Self::start(NEW, || Self::new(builder)),
            RUNNING => match Self::running() {
                Some(engine) => return (Some(engine), false),
                None => last().is_some_and(|e| e.settings.follow) && Self::start_in_child(),
            },
            OFF if Self::is_child() => {
                last().is_some_and(|e| e.settings.follow) && Self::start_in_child()
            }
            _ => false,
        };
        (Self::running(), started)
    }

    /// Starts an engine of its own in a forked child. False if this is none, or the
    /// system refuses.
    pub fn start_in_child() -> bool {
        // Has the state follow the fork mark.
        let _ = Self::running();
        let Some(parents) = last().filter(|_| Self::is_child()) else { return false };
        Self::start(OFF, || {
            sampled_set::forget_filter();
            unwind::after_fork();
            parents.child()
        })
    }

    fn start(from: u8, make: impl FnOnce() -> Result<Self, WhyOff>) -> bool {
        if STATE.compare_exchange(from, STARTING, AcqRel, Relaxed).is_err() {
            return false;
        }
        match floats::apart(make).and_then(|engine| region::place(engine).ok_or(WhyOff::NoMemory)) {
            Ok(engine) => {
                ENGINE.store(engine, Release);
                STATE.store(RUNNING, Release);
                true
            }
            Err(why) => {
                WHY_OFF.store(why as u8, Relaxed);
                STATE.store(OFF, Relaxed);
                false
            }
        }
    }

    /// Whether there is no engine, and will be none unless the program asks for it.
    pub fn is_off() -> bool {
        STATE.load(Relaxed) == OFF
    }

    /// Whether this is a forked child that is not followed.
    pub fn is_child() -> bool {
        Self::is_off() && Self::why_off() == WhyOff::Forked
    }

    /// Why there is none.
    pub fn why_off() -> WhyOff {
        match WHY_OFF.load(Relaxed) {
            1 => WhyOff::Asked,
            2 => WhyOff::NoMemory,
            3 => WhyOff::NoForkMark,
            4 => WhyOff::Forked,
            5 => WhyOff::Privileged,
            _ => WhyOff::NotInstalled,
        }
    }
}
