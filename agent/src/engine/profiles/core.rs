//! One profile: its terms, its state, its counts, and how long its place is taken.
//!
//! `holders` is `generation << 32 | count`. Handles together are one holder, each claim
//! is one, and so is whoever is just about to make a claim; at 0 the place is given
//! back. A place never ceases to be a core, so a token that is out of date does no harm:
//! its generation is another.

use super::super::sync::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use super::super::tracker::Cause;
use super::super::{Engine, floats};
use super::list::List;
use heaptop_protocol::estimate::Interval;
use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// Payloads of panics that are kept; further ones are counted.
const MOST_PANICS: usize = 64;

/// What the program returned for a block: a pointer that only its tracker understands.
pub type Data = NonNull<()>;

/// A block as the engine saw it born.
#[derive(Debug, Clone)]
pub struct Birth<'a> {
    /// Identity.
    pub id: u64,
    /// Samples that fell to the profile.
    pub n_samples: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Where it lies.
    pub address: usize,
    /// How.
    pub cause: Cause,
    /// λ.
    pub lambda: f64,
    /// Domain.
    pub domain: u32,
    /// The kernel's number of its thread.
    pub thread: u32,
    /// G before it.
    pub clock: u64,
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// Id of the sampled block that it replaces; 0 for none.
    pub replaces: u64,
    /// Whether it was born young.
    pub born_young: bool,
    /// Return addresses, root first.
    pub frames: &'a [usize],
    /// Whether they were cut at the root end.
    pub is_cut: bool,
}

/// What came of a callback.
pub enum Answer {
    /// The block is tracked.
    Track(Data),
    /// It is not.
    Refuse,
    /// There is no memory for what was returned.
    NoRoom,
}

/// The program's callbacks, of whatever types.
pub trait Callbacks: Send + Sync {
    /// A birth; major or minor.
    fn alloc(&self, birth: &Birth<'_>, major: bool) -> Answer;
    /// A promotion: takes the minor block's data.
    fn promote(&self, data: Data) -> Answer;
    /// A death: takes the data.
    fn dealloc(&self, data: Data, major: bool);
    /// Nothing more is told of the block: drops the data.
    fn forget(&self, data: Data, major: bool);
}

/// Of which blocks the profile is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Of all.
    All,
    /// Of those that are promoted, when they are, and of major ones.
    Major,
    /// Of births alone.
    Births,
}

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// λ, from 0 to 1.
    pub lambda: f64,
    /// Most frames of a callstack.
    pub depth: usize,
    /// Callbacks run where and when things happen.
    pub prompt: bool,
    /// Prompt ones also where a panic is under way: they never panic themselves.
    pub unwinding: bool,
    /// See [`What`].
    pub what: What,
}

impl Terms {
    /// All but λ: `what << 34 | unwinding << 33 | prompt << 32 | depth`.
    fn shape(&self) -> u64 {
        let what = match self.what {
            What::All => 0,
            What::Major => 1,
            What::Births => 2,
        };
        let how = u64::from(self.unwinding) << 1 | u64::from(self.prompt);
        what << 34 | how << 32 | self.depth as u64
    }

    const fn of(lambda: f64, shape: u64) -> Self {
        let what = match shape >> 34 {
            0 => What::All,
            1 => What::Major,
            _ => What::Births,
        };
        let (prompt, unwinding) = (shape >> 32 & 1 == 1, shape >> 33 & 1 == 1);
        Self { lambda, depth: shape as u32 as usize, prompt, unwinding, what }
    }

    /// The R at which a countdown finds at least λ; `None` for λ = 0.
    pub fn interval(&self) -> Option<Interval> {
        floats::apart(|| {
            if self.lambda <= 0.0 {
                return None;
            }
            let r = (1.0 / self.lambda).floor().clamp(1.0, f64::from(u32::MAX));
            Interval::new(r as u64)
        })
    }
}

/// How far a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// No profile.
    Free = 0,
    /// Is being made, or given back.
    Making = 1,
    /// Samples.
    Sampling = 2,
    /// Samples no more; promotions and deaths are told.
    Stopped = 3,
    /// Nothing is told any more.
    Discarded = 4,
}

/// Counts of blocks, and of callbacks.
#[derive(Debug, Default)]
pub struct Counts {
    /// Sampled.
    pub sampled: AtomicU64,
    /// Whose allocation callback returned something.
    pub tracked: AtomicU64,
    /// Whose allocation callback returned nothing, or panicked.
    pub refused: AtomicU64,
    /// Whose allocation callback did not run.
    pub dropped: AtomicU64,
    /// Promotions that were told.
    pub promoted: AtomicU64,
    /// Whose promotion callback returned nothing, or panicked.
    pub refused_at_promotion: AtomicU64,
    /// Whose death was told.
    pub deallocated: AtomicU64,
    /// Tracked, and discarded.
    pub discarded: AtomicU64,
    /// Tracked, and lost from sight.
    pub lost: AtomicU64,
    /// Callbacks that ran.
    pub callbacks: AtomicU64,
    /// Of them, those that panicked.
    pub panics: AtomicU64,
    /// Young blocks that were looked at for promotion.
    pub looked_at: AtomicU64,
}

impl Counts {
    fn all(&self) -> [&AtomicU64; 12] {
        [
            &self.sampled,
            &self.tracked,
            &self.refused,
            &self.dropped,
            &self.promoted,
            &self.refused_at_promotion,
            &self.deallocated,
            &self.discarded,
            &self.lost,
            &self.callbacks,
            &self.panics,
            &self.looked_at,
        ]
    }
}

/// See the module.
pub struct Core {
    holders: AtomicU64,
    phase: AtomicU32,
    /// λ as the bits of a number, and the other terms: see [`Terms::shape`].
    lambda: AtomicU64,
    shape: AtomicU64,
    callbacks: UnsafeCell<Option<Arc<dyn Callbacks>>>,
    /// Handles that the program has.
    pub handles: AtomicU32,
    /// Young claims: of this cycle, and those that are being looked at.
    pub young: List,
    pub old: List,
    /// The cycle that `young` belongs to.
    pub cycle: AtomicU64,
    /// Claims on the two, and those of them that are dead.
    pub young_len: AtomicU32,
    pub young_dead: AtomicU32,
    /// Whether somebody puts `young` in the place of `old`.
    pub turning: AtomicBool,
    /// Claims with something due that could not be done where it came up.
    pub waiting: List,
    /// The same in order, for pollers.
    pub queue: Mutex<VecDeque<u32>>,
    panics: Mutex<Vec<Box<dyn Any + Send>>>,
    /// Counts.
    pub counts: Counts,
}

// SAFETY: `callbacks` is written while the phase is Making, by the thread that made it so,
// and read by holders only: see the module. All else is atomic or behind a lock.
unsafe impl Sync for Core {}
// SAFETY: what is in the cells may be sent: `Callbacks` are.
unsafe impl Send for Core {}

impl Core {
    /// A free place.
    pub fn new() -> Self {
        Self {
            holders: AtomicU64::new(0),
            phase: AtomicU32::new(Phase::Free as u32),
            lambda: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            callbacks: UnsafeCell::new(None),
            handles: AtomicU32::new(0),
            young: List::default(),
            old: List::default(),
            cycle: AtomicU64::new(0),
            young_len: AtomicU32::new(0),
            young_dead: AtomicU32::new(0),
            turning: AtomicBool::new(false),
            waiting: List::default(),
            queue: Mutex::new(VecDeque::new()),
            panics: Mutex::new(Vec::new()),
            counts: Counts::default(),
        }
    }

    /// Takes the place, if it is free.
    pub fn take(&self) -> bool {
        self.move_on(Phase::Free, Phase::Making)
    }

    /// Begins a profile in a place that was taken; its generation. One holder: the
    /// handles.
    pub fn begin(&self, terms: Terms, callbacks: Arc<dyn Callbacks>) -> u32 {
        // SAFETY: the phase is Making, by this thread: there are no holders.
        unsafe { *self.callbacks.get() = Some(callbacks) };
        self.lambda.store(terms.lambda.to_bits(), Relaxed);
        self.shape.store(terms.shape(), Relaxed);
        for count in self.counts.all() {
            count.store(0, Relaxed);
        }
        self.handles.store(1, Relaxed);
        self.cycle.store(0, Relaxed);
        let generation = (self.holders.load(Relaxed) >> 32) as u32;
        let generation = generation.wrapping_add(1);
        // In this order: a phase without holders is one that waits for its end.
        self.holders.store(u64::from(generation) << 32 | 1, Release);
        self.phase.store(Phase::Sampling as u32, Release);
        generation
    }

    /// Whether it is, and exists.
    pub fn is_of(&self, generation: u32) -> bool {
        let holders = self.holders.load(Acquire);
        holders as u32 > 0 && (holders >> 32) as u32 == generation
    }

    /// One holder more, while the profile exists.
    pub fn hold(&self, generation: u32) -> bool {
        let mut holders = self.holders.load(Acquire);
        while holders as u32 > 0 && (holders >> 32) as u32 == generation {
            match self.holders.compare_exchange_weak(holders, holders + 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => holders = now,
            }
        }
        false
    }

    /// How many there are, at this moment.
    pub fn holders(&self) -> u32 {
        self.holders.load(Acquire) as u32
    }

    /// One holder more of whatever profile is here; its generation.
    pub fn hold_any(&self) -> Option<u32> {
        let generation = (self.holders.load(Acquire) >> 32) as u32;
        self.hold(generation).then_some(generation)
    }

    /// One less; true for the last.
    pub fn release(&self) -> bool {
        self.holders.fetch_sub(1, AcqRel) as u32 == 1
    }

    /// Gives the place back if nobody holds it any more. Runs the tracker's destructor.
    pub fn end(&self) -> bool {
        // Its last handle has discarded it.
        if self.holders() != 0 || !self.move_on(Phase::Discarded, Phase::Making) {
            return false;
        }
        // Another thread may have ended it in between, and the place be taken anew.
        if self.holders() != 0 {
            self.move_on(Phase::Making, Phase::Discarded);
            return false;
        }
        // SAFETY: there are no holders, and the phase was made Making by this thread.
        let callbacks = unsafe { (*self.callbacks.get()).take() };
        // The program's destructor may panic: that is nobody's business here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(callbacks)));
        let panics = std::mem::take(&mut *lock(&self.panics));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panics)));
        self.phase.store(Phase::Free as u32, Release);
        true
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        Self::phase_of(self.phase.load(Acquire))
    }

    /// The same, and no phase that was: whoever moves it on from here sees all that this
    /// thread has done. A write of what stands there, since a load may be of what stood.
    pub fn phase_now(&self) -> Phase {
        Self::phase_of(self.phase.fetch_or(0, AcqRel))
    }

    const fn phase_of(phase: u32) -> Phase {
        match phase {
            2 => Phase::Sampling,
            3 => Phase::Stopped,
            4 => Phase::Discarded,
            0 => Phase::Free,
            _ => Phase::Making,
        }
    }

    /// From one phase to another; false if it is in none such.
    pub fn move_on(&self, from: Phase, to: Phase) -> bool {
        self.phase.compare_exchange(from as u32, to as u32, AcqRel, Acquire).is_ok()
    }

    /// What was asked for. Numbers: a token that is out of date may find another
    /// profile's, and notices by the generation.
    pub fn terms(&self) -> Terms {
        // Relaxed: written before the phase and the generation that the caller has seen.
        Terms::of(f64::from_bits(self.lambda.load(Relaxed)), self.shape.load(Relaxed))
    }

    /// Runs a callback, whatever it does; `None` if it panicked.
    pub fn call<T>(&self, engine: &Engine, f: impl FnOnce(&dyn Callbacks) -> T) -> Option<T> {
        self.counts.callbacks.fetch_add(1, Relaxed);
        self.guarded(engine, f)
    }

    /// The same for what is none of the five.
    pub fn guarded<T>(&self, engine: &Engine, f: impl FnOnce(&dyn Callbacks) -> T) -> Option<T> {
        // SAFETY: the caller is a holder.
        let callbacks = unsafe { (*self.callbacks.get()).as_deref() }?;
        match catch_unwind(AssertUnwindSafe(|| f(callbacks))) {
            Ok(result) => Some(result),
            // Who held the lock below when it forked is not in the child.
            Err(payload) if !engine.is_here() => {
                std::mem::forget(payload);
                None
            }
            Err(payload) => {
                self.counts.panics.fetch_add(1, Relaxed);
                let mut panics = lock(&self.panics);
                let full = panics.len() >= MOST_PANICS || panics.try_reserve(1).is_err();
                if full {
                    drop(panics);
                    // A payload may have a destructor, and that may panic.
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
                } else {
                    panics.push(payload);
                }
                None
            }
        }
    }

    /// What callbacks panicked with, oldest first; they are kept no longer.
    pub fn take_panics(&self) -> Vec<Box<dyn Any + Send>> {
        std::mem::take(&mut *lock(&self.panics))
    }
}

/// Nothing is left half done under these locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
