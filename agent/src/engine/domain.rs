//! What each thread keeps: the countdown to its next stop, and its generator.
//!
//! A **stop** is an allocation at which the thread does more than subtract. The
//! contract between the fast path and the slow one:
//!
//! - The fast path subtracts each block's size from `left`. If that borrows, the
//!   block reaches beyond the stop and the slow path runs, with `left` wrapped.
//!   A block of 0 bytes never borrows.
//! - The slow path finds the rest before the block again as `left + size`, books
//!   the bytes on the allocation clock, decides whether the block is sampled,
//!   and sets `left` anew.
//!
//! ```text
//!      ◄──────── granted ────────►◄── beyond ──►
//!      │ used ...... │◄─ left ───►│             s   s: the next sampled byte
//!  last stop        now       next stop
//! ```
//!
//! `granted` is at most 64 KiB, so that the clock, a change of R and a start or
//! stop are late by no more than that. It begins at 1 KiB and doubles, so that
//! threads which allocate little are on the clock too; what a thread has not
//! booked when it ends is not on it.
//!
//! **A signal handler that allocates** may strike between any two steps. On the
//! slow path it finds `busy`, and leaves the rest alone but for `left`, which
//! [`Domain::leave_stop`] looks at once more. Before
//! that it may have run its own way through: a handler's block on a `left` that
//! has just borrowed does not borrow again, and a fast path that was interrupted
//! between its load and its store puts back a `left` from before the handler's
//! stop. Both leave a rest that is not between 0 and `granted`. Then the stop is
//! taken for one that was reached at this very block, as it was but for some of
//! its bytes; what the handler allocated goes unsampled.
//!
//! Nothing here has a destructor: frees that come after all destructors of a
//! thread, and threads that only free, work as any others.

use super::floats;
use super::sampler::Rng;
use super::sync::{StartsAsZeros, per_thread};
use heaptop_protocol::estimate::Interval;
use std::cell::Cell;

/// Most bytes between two stops of a thread.
pub const STOP_BYTES: u64 = 64 << 10;
const RARE_STOP_BYTES: usize = 1 << 20;
const FIRST_STOP_BYTES: u64 = 1 << 10;

/// One sampled path in this many is timed.
pub const TIMED: u8 = 16;

/// No sampled byte ahead.
const NEVER: u64 = u64::MAX;

/// One thread's record. Only its own thread touches it; a signal handler that
/// interrupts the slow path finds `busy` set and leaves the rest alone.
///
/// All zeros are a domain that has not started: see [`per_thread`].
#[repr(C)]
pub struct Domain {
    left: Cell<usize>,
    granted: Cell<u64>,
    beyond: Cell<u64>,
    /// Most that is granted next; 0 before the first stop.
    stop_bytes: Cell<u64>,
    rng: Cell<Rng>,
    /// The profile's word as of the last stop; 0 before the first.
    word: Cell<u64>,
    lambda: Cell<f64>,
    ln_miss: Cell<f64>,
    /// Its number plus one; 0 before it has one.
    id: Cell<u32>,
    /// The generation of the engine that gave it.
    generation: Cell<u32>,
    busy: Cell<bool>,
    agents: Cell<bool>,
    /// Sampled paths until one is timed.
    untimed: Cell<u8>,
    /// Of the profile that this thread samples for of its own; 0: none. Set, as `apart`
    /// is, once the thread has its number: they are of the same engine.
    token: Cell<u64>,
    /// Of the process's profile that it does not sample for; 0: none.
    apart: Cell<u64>,
    /// Whether no profile samples here at the moment.
    suspended: Cell<bool>,
    /// How many [`Holding`]s this thread has.
    holds: Cell<u32>,
    /// Whether an allocation here is the agent's, made to see whose allocator it reaches.
    probes: Cell<bool>,
}

// SAFETY: cells of numbers, for which all zeros are a value.
unsafe impl StartsAsZeros for Domain {}

per_thread! { static DOMAIN: Domain = Domain::new(); }

/// The fast path of every allocation: true if the slow path must run.
#[cfg(not(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux")))]
#[inline(always)]
pub fn spend(bytes: usize) -> bool {
    DOMAIN.with(|d| d.spend(bytes))
}

/// The same for a shared object: three instructions, of which the linker makes the
/// first a constant where the object turns out to be an executable.
#[cfg(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
pub fn spend(bytes: usize) -> bool {
    // SAFETY: subtracts from the first field of the calling thread's own domain, as
    // `Domain::spend` does; the label's block only returns.
    unsafe {
        std::arch::asm!(
            "mov {at}, qword ptr [rip + heaptop_DOMAIN@GOTTPOFF]",
            "sub qword ptr fs:[{at} + {left}], {bytes}",
            "jb {slow}",
            at = out(reg) _,
            bytes = in(reg) bytes,
            left = const std::mem::offset_of!(Domain, left),
            slow = label { return true },
            options(nostack),
        );
    }
    false
}

/// Runs `f` on the calling thread's domain. Never fails: it has no destructor.
#[inline(always)]
pub fn here<T>(f: impl FnOnce(&Domain) -> T) -> T {
    DOMAIN.with(f)
}

/// While it lives the calling thread may be at the engine's data without being in the
/// engine: it frees. A thread that leaves by `longjmp` is taken to be there for ever.
pub struct Holding(());

impl Holding {
    /// From here on.
    #[inline(always)]
    pub fn begin() -> Self {
        here(|d| d.holds.set(d.holds.get().wrapping_add(1)));
        Self(())
    }
}

impl Drop for Holding {
    #[inline(always)]
    fn drop(&mut self) {
        here(|d| d.holds.set(d.holds.get().wrapping_sub(1)));
    }
}

/// What a stop found out about the block at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Samples in the block, at least 1.
    pub n_samples: u64,
    /// R that was in force.
    pub interval: Interval,
}

/// What the profile's word says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The word itself, never 0.
    pub word: u64,
    /// R, or `None` while nothing is sampled.
    pub interval: Option<Interval>,
}

impl Domain {
    /// A domain that has not started.
    pub const fn new() -> Self {
        Self {
            left: Cell::new(0),
            granted: Cell::new(0),
            beyond: Cell::new(0),
            stop_bytes: Cell::new(0),
            rng: Cell::new(Rng::UNSEEDED),
            word: Cell::new(0),
            lambda: Cell::new(0.0),
            ln_miss: Cell::new(0.0),
            id: Cell::new(0),
            generation: Cell::new(0),
            busy: Cell::new(false),
            agents: Cell::new(false),
            untimed: Cell::new(0),
            token: Cell::new(0),
            apart: Cell::new(0),
            suspended: Cell::new(false),
            holds: Cell::new(0),
            probes: Cell::new(false),
        }
    }

    /// The fast path: true if the slow path must run.
    #[cfg(any(
        test,
        feature = "simulate",
        not(all(
            feature = "initial-exec",
            not(loom),
            target_arch = "x86_64",
            target_os = "linux"
        ))
    ))]
    #[inline(always)]
    pub fn spend(&self, bytes: usize) -> bool {
        let (left, reached) = self.left.get().overflowing_sub(bytes);
        self.left.set(left);
        reached
    }

    /// Enters the engine: false if this thread is in it already.
    pub fn enter(&self) -> bool {
        !self.busy.replace(true)
    }

    /// Leaves it again.
    pub fn leave(&self) {
        self.busy.set(false);
    }

    /// The same behind a stop, which has set the countdown. A handler that struck within
    /// another one, before that had given back what it spent, has left one that never ends:
    /// then it begins anew.
    pub fn leave_stop(&self) {
        self.leave();
        if self.left.get().cast_signed() < 0 {
            self.word.set(0);
            self.stop_soon();
        }
    }

    /// From here on, or until it is unset, what this thread allocates is the
    /// agent's: every allocation reaches a stop, where that is seen.
    pub fn set_agents(&self, agents: bool) {
        self.agents.set(agents);
        self.stop_soon();
    }

    /// Whether it is.
    pub fn is_agents(&self) -> bool {
        self.agents.get()
    }

    /// Whether the thread is not at the engine's data, however deep: nobody who comes back
    /// to what it was at will go on with them.
    pub fn is_outside(&self) -> bool {
        !self.busy.get() && self.holds.get() == 0
    }

    /// What this thread allocates next is asked for by the agent before there is an engine:
    /// it starts one, where it reaches us, and is no stop.
    pub fn probe(&self) {
        self.probes.set(true);
    }

    /// Whether that was so; it is no more.
    pub fn takes_probe(&self) -> bool {
        self.probes.replace(false)
    }

    /// The thread's number, once [`Self::begin`] gave it one.
    pub fn id(&self) -> Option<u32> {
        self.id.get().checked_sub(1)
    }

    /// Whether the thread has not stopped yet.
    pub fn is_new(&self) -> bool {
        self.word.get() == 0
    }

    /// Whether its number is of the engine of this generation.
    pub fn is_of(&self, generation: u32) -> bool {
        self.id.get() != 0 && self.generation.get() == generation
    }

    /// Gives the domain its number and its generator, before its first stop or free,
    /// or the first that an engine of another generation sees.
    pub fn begin(&self, id: u32, generation: u32, seed: u64) {
        if self.generation.replace(generation) != generation {
            // What it samples for is its parent's.
            self.token.set(0);
            self.apart.set(0);
        }
        self.id.set(id.wrapping_add(1));
        self.word.set(0);
        self.rng.set(Rng::seeded(seed, id));
    }

    /// Takes back what the fast path subtracted, for a block that does not count.
    pub fn refund(&self, bytes: usize) {
        self.left.set(self.left.get().wrapping_add(bytes));
    }

    /// The next stop is far, but not for ever: a child that is not followed now may be
    /// later.
    pub fn stop_rarely(&self) {
        self.left.set(RARE_STOP_BYTES);
        self.granted.set(0);
    }

    /// The next stop is the next allocation.
    pub fn stop_soon(&self) {
        self.left.set(0);
        self.granted.set(0);
    }

    /// No stop in any foreseeable time.
    pub fn never_stop(&self) {
        self.left.set(usize::MAX >> 1);
        self.granted.set(0);
    }

    /// Bytes spent since the last stop: for a free.
    pub fn used(&self) -> u64 {
        self.granted.get().wrapping_sub(self.left.get() as u64)
    }

    /// Whether the sampled path at hand is one of those that are timed: one in
    /// [`TIMED`].
    pub fn is_timed(&self) -> bool {
        let untimed = self.untimed.get();
        self.untimed.set(if untimed == 0 { TIMED - 1 } else { untimed - 1 });
        untimed == 0
    }

    /// Bytes spent since the last stop, before the block of `size` bytes that
    /// reached it.
    pub fn used_before(&self, size: usize) -> u64 {
        self.granted.get().wrapping_sub(self.left_before(size).unwrap_or(0))
    }

    /// What was left before that block; `None` where a signal handler has made it
    /// meaningless.
    fn left_before(&self, size: usize) -> Option<u64> {
        let before = self.left.get().wrapping_add(size) as u64;
        (before <= self.granted.get()).then_some(before)
    }

    /// The stop itself: decides on the block of `size` bytes by the rate of the
    /// last stop, then takes up `rate` and sets the countdown.
    pub fn stop(&self, size: usize, rate: Rate) -> Option<Hit> {
        let size = size as u64;
        let before = self.left_before(size as usize);
        let mut to_sample = before.unwrap_or(0).saturating_add(self.beyond.get());
        if self.is_new() {
            // The first gap of the thread begins at this very block.
            self.adopt(rate);
            to_sample = self.fresh_gap();
        }
        let (hit, mut gap) = match self.interval() {
            Some(interval) if size > to_sample => {
                let (n_samples, gap) = self.samples(size - to_sample - 1, interval);
                (Some(Hit { n_samples, interval }), gap)
            }
            Some(_) => (None, to_sample - size),
            None => (None, NEVER),
        };
        if rate.word != self.word.get() {
            self.adopt(rate);
            gap = self.fresh_gap();
        }
        self.grant(gap);
        hit
    }

    fn interval(&self) -> Option<Interval> {
        Rate::from_word(self.word.get()).interval
    }

    fn adopt(&self, rate: Rate) {
        self.word.set(rate.word);
        if let Some(interval) = rate.interval {
            floats::apart(|| {
                self.lambda.set(interval.lambda());
                self.ln_miss.set(interval.ln_miss());
            });
        }
    }

    fn fresh_gap(&self) -> u64 {
        let sampled = self.interval().is_some();
        if sampled { self.draw(|rng| rng.gap(self.ln_miss.get())) } else { NEVER }
    }

    /// Samples in a block behind its first, that one included, and the gap that follows.
    /// At R = 1 each byte is one, and nothing is drawn.
    fn samples(&self, behind: u64, interval: Interval) -> (u64, u64) {
        if interval == Interval::EXACT {
            return (behind.saturating_add(1), 0);
        }
        self.draw(|rng| rng.samples(behind, self.lambda.get(), self.ln_miss.get()))
    }

    /// Draws from the generator: all that a domain calculates is in here and in
    /// [`Self::adopt`].
    fn draw<T>(&self, f: impl FnOnce(&mut Rng) -> T) -> T {
        floats::apart(|| {
            let mut rng = self.rng.get();
            let drawn = f(&mut rng);
            self.rng.set(rng);
            drawn
        })
    }

    fn grant(&self, gap: u64) {
        let stop = self.stop_bytes.get().max(FIRST_STOP_BYTES);
        self.stop_bytes.set((stop * 2).min(STOP_BYTES));
        let granted = gap.min(stop);
        self.granted.set(granted);
        self.left.set(granted as usize);
        self.beyond.set(if gap == NEVER { NEVER } else { gap - granted });
    }
}

mod profiled;
mod rate;
#[cfg(test)]
mod tests;
