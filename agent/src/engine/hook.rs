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
use super::profiles::Shares;
use super::sync::Ordering::Relaxed;
use super::tracker::{Birth, Cause, Death, Taken};
use super::unwind::{self, Captured, Mark};
use super::{Engine, kinds, sys};

pub use super::domain::spend;
pub use super::sampled_set::may_hold;

/// An allocation at a stop, before the real allocator was asked.
pub struct Stop {
    engine: Option<&'static Engine>,
    size: usize,
    hit: Option<Hit>,
    /// Bytes of this thread before the block, that are not on the clock yet.
    used: u64,
    /// When it began, where it is timed; else 0.
    entered_ns: u64,
}

/// What a stop was for: a block of the allocator's, or memory outside the heap.
struct Place {
    /// 0: none.
    address: usize,
    /// Of what is outside.
    kind: Option<usize>,
}

/// Begins an allocation of `size` bytes for which [`spend`] was true. Must be
/// followed by [`Stop::end`]. `in_child` is given the engine of a forked child that
/// has just been made here.
pub fn stop(size: usize, settings: &crate::config::Builder, in_child: fn(&'static Engine)) -> Stop {
    let passed = Stop { engine: None, size, hit: None, used: 0, entered_ns: 0 };
    domain::here(|d| {
        if !d.enter() {
            d.refund(size);
            return passed;
        }
        let (engine, started) = match Engine::running() {
            Some(engine) => (Some(engine), false),
            None if d.takes_probe() => {
                start(settings);
                d.refund(size);
                d.leave();
                return passed;
            }
            None => start(settings),
        };
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
        let (used, hit) = reach(engine, d, size);
        let entered_ns = if hit.is_some() && d.is_timed() { sys::monotonic_ns() } else { 0 };
        Stop { engine: Some(engine), size, hit, used, entered_ns }
    })
}

#[cold]
#[inline(never)]
fn start(settings: &crate::config::Builder) -> (Option<&'static Engine>, bool) {
    let _errno = sys::Errno::keep();
    Engine::running_or_start(settings)
}

/// Domain `d` reaches a stop with a block of `size` bytes: its bytes before the block
/// that are not on the clock yet, and whether the block is sampled.
pub fn reach(engine: &Engine, d: &Domain, size: usize) -> (u64, Option<Hit>) {
    let used = if engine.begin_domain(d) { 0 } else { d.used_before(size) };
    (used, d.stop(size, engine.rate_of(d)))
}

/// G now, exact for domain `d`.
pub fn clock(engine: &Engine, d: &Domain) -> u64 {
    // Inside the engine the countdown is not ours to touch: a signal handler
    // has interrupted it, or a callback runs. Then it is exact to a stop.
    let own = if d.enter() {
        engine.begin_domain(d);
        let used = if d.is_new() { 0 } else { d.used() };
        d.leave();
        used
    } else {
        0
    };
    engine.header.clock.load(Relaxed).wrapping_add(own)
}

/// Puts `used` bytes on the clock, and a block of `size`; gives G before the block.
/// Once there is a block, both in one step: a request that no memory can meet must not
/// move the clock of the other threads, even for the moment until it fails.
pub fn book(engine: &Engine, used: u64, size: u64) -> u64 {
    engine.header.clock.fetch_add(used.wrapping_add(size), Relaxed).wrapping_add(used)
}

impl Stop {
    /// The real allocator has given `block`, or null. `mark` is that of
    /// the hook's own function, see [`unwind::mark`].
    pub fn end(self, block: *mut u8, cause: Cause, replaces: u64, mark: &Mark) {
        self.end_at(Place { address: block as usize, kind: None }, cause, replaces, mark);
    }

    fn end_at(self, place: Place, cause: Cause, replaces: u64, mark: &Mark) {
        let Some(engine) = self.engine else { return };
        if engine.is_here() {
            // Without a block the countdown need not be set back: gaps are memoryless.
            // What lies outside the heap fills no nursery.
            let inside = place.address != 0 && place.kind.is_none();
            let size = if inside { self.size as u64 } else { 0 };
            let clock = book(engine, self.used, size);
            if let Some(hit) = self.hit.filter(|_| place.address != 0) {
                self.born(engine, hit, place, clock, cause, replaces, mark);
            }
            if engine.rate().is_profiled()
                && engine.is_here()
                && let Some(profiles) = engine.profiles()
            {
                let _errno = sys::Errno::keep();
                domain::here(|d| profiles.at_stop(engine, d));
            }
        }
        domain::here(Domain::leave_stop);
    }

    #[allow(clippy::too_many_arguments)]
    fn born(
        &self,
        engine: &Engine,
        hit: Hit,
        Place { address, kind }: Place,
        clock: u64,
        cause: Cause,
        replaces: u64,
        mark: &Mark,
    ) {
        let _errno = sys::Errno::keep();
        let shares = if engine.rate().is_profiled() {
            domain::here(|d| Shares::of(engine, d, hit))
        } else {
            Shares::stream(hit)
        };
        let (stream, depth) = (shares.stream, shares.depth(engine.depth));
        if stream.is_none() && shares.profile.is_none() {
            return;
        }
        engine.tracker.will_track(address);
        let thread = domain::here(Domain::id).unwrap_or(0);
        let keep = |stack: &Captured<'_>| {
            domain::here(|d| shares.keep(engine, d, stack));
            // A signal handler that forked meanwhile has brought the child here too.
            if stream.is_some() && engine.is_here() { engine.callstacks.intern(stack) } else { 0 }
        };
        let stack = match kind {
            None => unwind::with_stack(mark, depth, thread, keep),
            Some(kind) => unwind::with_stack_below(kinds::address(kind), mark, depth, keep),
        };
        // The longest part is over. A signal handler that forked in it has brought the
        // child here too, and what follows is the parent's.
        if !engine.is_here() {
            return;
        }
        let (n_samples, interval) = stream.unwrap_or((0, hit.interval));
        let birth = Birth {
            stack,
            id: engine.next_seq(),
            address,
            size: self.size as u64,
            n_samples,
            ns: sys::monotonic_ns(),
            clock,
            interval: interval.bytes(),
            thread,
            cause,
            young: engine.nursery.is_young(self.size as u64),
            replaces,
        };
        match (&shares.profile, engine.profiles()) {
            (Some(share), Some(profiles)) => domain::here(|d| {
                profiles.birth(engine, d, share, &birth, stream.is_some());
            }),
            _ => {
                engine.tracker.birth(&birth);
            }
        }
        engine.took(self.entered_ns);
    }
}

/// Memory outside the heap: a block of `bytes` bytes and of this kind, known by
/// `address`. Whether it is sampled.
#[inline(never)]
pub fn external(engine: &'static Engine, bytes: usize, kind: usize, address: usize) -> bool {
    if !spend(bytes) {
        return false;
    }
    let mark = unwind::mark();
    domain::here(|d| {
        if !d.enter() {
            d.refund(bytes);
            return false;
        }
        let (used, hit) = reach(engine, d, bytes);
        let stop = Stop { engine: Some(engine), size: bytes, hit, used, entered_ns: 0 };
        let place = Place { address, kind: Some(kind) };
        stop.end_at(place, Cause::External, 0, &mark);
        // Left by `end_at`.
        hit.is_some()
    })
}

/// A free of, or a reallocation from, an address for which [`may_hold`] was
/// true: takes the block out if it is sampled. What comes back must be given to
/// [`freed`] or [`kept`].
pub fn take(address: usize) -> Option<Taken> {
    Engine::running()?.tracker.take(address)
}

/// A death by the hand of domain `d`, at `ns` on the monotonic clock.
pub fn death(engine: &Engine, d: &Domain, ns: u64) -> Death {
    // Read only: what this thread has not booked it books at its next stop. A birth
    // that came before this free, on whatever thread, is on the clock that is read
    // here, by the same order that brought the pointer.
    Death {
        clock: clock(engine, d),
        seq: engine.next_seq(),
        ns,
        thread: d.id().unwrap_or(0),
        stack: None,
    }
}

fn death_here(engine: &Engine) -> Death {
    domain::here(|d| death(engine, d, sys::monotonic_ns()))
}

/// The callstack of the free or the reallocation at hand, where somebody wants it;
/// `mark` as in [`Stop::end`]. To be asked outside of a [`Stop`]: where this thread is in
/// the engine, what a signal handler has interrupted may be a capture.
#[inline]
pub fn freed_at(mark: &Mark) -> Option<u32> {
    let engine = Engine::running().filter(|engine| engine.wants_frees())?;
    free_stack(engine, mark)
}

#[cold]
#[inline(never)]
fn free_stack(engine: &Engine, mark: &Mark) -> Option<u32> {
    let _errno = sys::Errno::keep();
    domain::here(|d| {
        if !d.enter() {
            return None;
        }
        let stack = unwind::with_stack(mark, engine.depth, d.id().unwrap_or(0), |stack| {
            engine.is_here().then(|| engine.callstacks.intern(stack))
        });
        d.leave();
        stack
    })
}

/// The block is about to go back to the allocator, or has been reallocated; `stack` is
/// what [`freed_at`] told.
pub fn freed(taken: Taken, stack: Option<u32>) {
    if let Some(engine) = Engine::running() {
        let _errno = sys::Errno::keep();
        died(engine, taken, stack, false);
    }
}

fn died(engine: &Engine, taken: Taken, stack: Option<u32>, lost: bool) {
    let when = || Death { stack, ..death_here(engine) };
    match engine.profiles() {
        None => engine.tracker.death(taken, when),
        Some(profiles) => domain::here(|d| profiles.death(engine, d, taken, lost, when)),
    }
}

/// The reallocation failed: the block lives on. Where its free would go unseen it dies
/// for us now.
pub fn kept(taken: Taken) {
    if let Some(engine) = Engine::running()
        && let Err(taken) = engine.tracker.put_back(taken)
    {
        let _errno = sys::Errno::keep();
        died(engine, taken, None, true);
    }
}
