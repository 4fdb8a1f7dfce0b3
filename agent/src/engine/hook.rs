//! The one entry: what happens at an allocation, a reallocation and a free.
//!
//! Order on the slow path, which all safety rests on:
//!
//! 1. The guard: a thread that is in the engine already (an allocator that
//!    allocates, a signal handler) passes straight through.
//! 2. The fork mark: in a forked child everything passes through. The engine's memory
//!    is shared with the parent there, so it is looked at again before it is written.
//! 3. The countdown, the clock, the decision.
//! 4. The real allocation. Nothing of ours is held.
//! 5. Callstack, interning, entry; then the guard is left.
//!
//! A free takes the block out of the set *before* the memory goes back to the
//! allocator, since another thread may be given the address at once.
//!
//! Deliberately absent: locks, allocation, formatting, anything that panics, and
//! system calls, but for a thread's number, once, and to know whether a page of a
//! stack can be read, in general once a page.

use super::domain::{self, Domain, Hit};
use super::sync::Ordering::Relaxed;
use super::tracker::{Birth, Cause, Death, Taken};
use super::unwind;
use super::{Engine, sys};

pub use super::domain::spend;
pub use super::sampled_set::may_hold;

/// An allocation at a stop, before the real allocator was asked.
pub struct Stop {
    engine: Option<&'static Engine>,
    size: usize,
    hit: Option<Hit>,
    /// G before the block.
    clock: u64,
    entered_ns: u64,
}

/// Begins an allocation of `size` bytes for which [`spend`] was true. Must be
/// followed by [`Stop::end`]. `in_child` is given the engine of a forked child that
/// has just been made here.
pub fn stop(size: usize, settings: &crate::config::Builder, in_child: fn(&'static Engine)) -> Stop {
    let passed = Stop { engine: None, size, hit: None, clock: 0, entered_ns: 0 };
    domain::here(|d| {
        if !d.enter() {
            d.refund(size);
            return passed;
        }
        let _errno = sys::Errno::keep();
        let (engine, started) = Engine::running_or_start(settings);
        let Some(engine) = engine else {
            // Off, or another thread is just starting it.
            if Engine::is_child() {
                d.stop_rarely();
            } else if Engine::is_off() {
                d.never_stop();
            } else {
                d.refund(size);
            }
            d.leave();
            return passed;
        };
        if started && engine.is_childs() {
            in_child(engine);
        }
        let (clock, hit) = reach(engine, d, size);
        let entered_ns = if hit.is_some() { sys::monotonic_ns() } else { 0 };
        Stop { engine: Some(engine), size, hit, clock, entered_ns }
    })
}

/// Domain `d` reaches a stop with a block of `size` bytes: G before the block, and
/// whether it is sampled. Whoever then has the block books its bytes.
pub fn reach(engine: &Engine, d: &Domain, size: usize) -> (u64, Option<Hit>) {
    let used = if engine.begin_domain(d) { 0 } else { d.used_before(size) };
    // The block's own bytes are booked once there is a block: a request that no
    // memory can meet must not move the clock of the other threads, even for
    // the moment until it fails.
    let clock = engine.header.clock.fetch_add(used, Relaxed);
    (clock.wrapping_add(used), d.stop(size, engine.rate()))
}

impl Stop {
    /// The real allocator has given `block`, or null. `mark` is that of
    /// the hook's own function, see [`unwind::mark`].
    pub fn end(self, block: *mut u8, cause: Cause, replaces: u64, mark: usize) {
        let Some(engine) = self.engine else { return };
        // Without a block the countdown need not be set back: gaps are memoryless.
        if !block.is_null() && engine.is_here() {
            engine.header.clock.fetch_add(self.size as u64, Relaxed);
            if let Some(hit) = self.hit {
                self.born(engine, hit, block as usize, cause, replaces, mark);
            }
        }
        domain::here(Domain::leave);
    }

    fn born(
        &self,
        engine: &Engine,
        hit: Hit,
        address: usize,
        cause: Cause,
        replaces: u64,
        mark: usize,
    ) {
        let _errno = sys::Errno::keep();
        let mut stack = unwind::Stack::new();
        unwind::capture(&mut stack, mark, engine.depth);
        // The longest part is over. A signal handler that forked in it has brought the
        // child here too, and what follows is the parent's.
        if !engine.is_here() {
            return;
        }
        engine.tracker.birth(&Birth {
            stack: engine.callstacks.intern(stack.frames(), stack.truncated()),
            id: engine.next_seq(),
            address,
            size: self.size as u64,
            n_samples: hit.n_samples,
            ns: self.entered_ns,
            clock: self.clock,
            interval: hit.interval.bytes(),
            thread: domain::here(Domain::id).unwrap_or(0),
            cause,
            young: engine.nursery.is_young(self.size as u64),
            replaces,
        });
        engine.took(self.entered_ns);
    }
}

/// A free of, or a reallocation from, an address for which [`may_hold`] was
/// true: takes the block out if it is sampled. What comes back must be given to
/// [`freed`] or [`kept`].
pub fn take(address: usize) -> Option<Taken> {
    Engine::running()?.tracker.take(address)
}

/// A death by the hand of domain `d`, at `ns` on the monotonic clock.
pub fn death(engine: &Engine, d: &Domain, ns: u64) -> Death {
    // Inside the engine the countdown is not ours to touch: a signal handler
    // has interrupted it. Then the death is exact to a stop.
    let own = if d.enter() {
        engine.begin_domain(d);
        let used = if d.is_new() { 0 } else { d.settle() };
        d.leave();
        used
    } else {
        0
    };
    Death {
        clock: engine.header.clock.fetch_add(own, Relaxed).wrapping_add(own),
        seq: engine.next_seq(),
        ns,
        thread: d.id().unwrap_or(0),
    }
}

fn death_here(engine: &Engine) -> Death {
    domain::here(|d| death(engine, d, sys::monotonic_ns()))
}

/// The block is about to go back to the allocator, or has been reallocated.
pub fn freed(taken: Taken) {
    if let Some(engine) = Engine::running() {
        let _errno = sys::Errno::keep();
        engine.tracker.death(taken, || death_here(engine));
    }
}

/// The reallocation failed: the block lives on.
pub fn kept(taken: Taken) {
    if let Some(engine) = Engine::running() {
        engine.tracker.put_back(taken, || death_here(engine));
    }
}
