//! Profiles of the program's own: who, beside the live stream, wants to be told of
//! sampled blocks, and what it is told.
//!
//! 1. **Clients.** A domain's countdown runs at the largest λ of all that want its
//!    allocations: the stream, and one profile, its own (thread scope) or the
//!    process's. At a hit with n samples each takes n' ~ Binomial(n, its λ / the
//!    countdown's): what a countdown of its own would have found. 0: the block is not
//!    its. So a block may be the stream's, the profile's, or both's.
//! 2. **Data.** [`Core`]s, one a profile, in an array; [`Claim`]s, one an entry of the
//!    tracker, beside the entries. Both exist from the first `start` on, in the
//!    program's memory and not in the region: a forked child has copies that it never
//!    looks at. Without profiles the engine pays for one pointer that is null, at
//!    sampled blocks only; while none exists, a bit of the rate's word says so.
//! 3. **Who may touch it.** Any thread. A claim's events are bits of one word; who sets
//!    one tries to become the claim's runner, which is a bit too, and the runner runs
//!    the callbacks in their order, also of what happens meanwhile. So callbacks of one
//!    block never run at once, those of two blocks never wait for each other, and **no
//!    lock is held while one runs**. Locks there are two, around the pollers' queue
//!    and the list of panics: they are taken by threads that are in the engine, so no
//!    callback and no allocation can come between, and given back after a few
//!    instructions. A forked child takes none of them.
//! 4. **Promotion.** Young claims are on a list of their profile; when the cycle turns it
//!    is worked off, so many at each stop of any thread: O(young), never O(live). A
//!    free that comes first is told by the clock whether the block was promoted, as the
//!    stream is: see [`super::tracker`].
//! 5. **Orphans.** A claim belongs to a profile and to no domain. So a thread's end
//!    leaves nothing to adopt: whoever stops next works for all.
//! 6. **Entries** that only a profile wants are on no list of the books, and are given
//!    back when their callbacks are done. An entry that both want is given back by
//!    whoever is done last.
//!
//! Deliberately absent: callbacks on the agent's thread, and destructors of
//! thread-locals. What orders all of it is the claim's word: data is written before a bit
//! is set by a Release, and read after it was seen by an Acquire.

mod claim;
mod core;
mod list;
#[cfg(all(test, loom))]
mod models;
mod run;
mod share;
mod sweep;

pub use claim::Claim;
pub use core::{Answer, Birth, Callbacks, Core, Data, Phase, Terms, What};
pub use share::Shares;

use super::domain::{Domain, Rate};
use super::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    scaled,
};
use super::{Engine, sys};

/// Profiles that can exist at once.
pub const MOST: usize = scaled(256, 2);

/// Names a profile and the time that its place was taken: `generation << 32 | place + 1`.
/// Never 0, and never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u64);

impl Token {
    fn of(place: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | (place as u64 + 1))
    }

    fn place(self) -> Option<usize> {
        (self.0 as u32).checked_sub(1).map(|place| place as usize)
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// See the module.
pub struct Profiles {
    cores: Box<[Core]>,
    claims: &'static [Claim],
    /// The profile of the process: its token, or 0.
    process: AtomicU64,
    /// Places in use, and the first that was never used.
    exist: AtomicUsize,
    used: AtomicUsize,
    /// Whose turn it is to have its young looked at.
    turn: AtomicUsize,
    /// Whether a core waits for being given back.
    reap: AtomicBool,
    /// Entries that only profiles want, and the most of them.
    only: AtomicU32,
    most_only: u32,
}

impl Profiles {
    /// None; `None` where the system has no memory.
    fn new(engine: &Engine) -> Option<Self> {
        let (entries, _) = engine.tracker.room();
        Some(Self {
            cores: (0..MOST).map(|_| Core::new()).collect(),
            claims: Self::no_claims(entries)?,
            process: AtomicU64::new(0),
            exist: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            reap: AtomicBool::new(false),
            only: AtomicU32::new(0),
            most_only: (entries / 2) as u32,
        })
    }

    fn no_claims(n: usize) -> Option<&'static [Claim]> {
        if cfg!(loom) {
            // As in `region`: no atomic of a model is valid when zero.
            return Some(Box::leak((0..n).map(|_| Claim::default()).collect()));
        }
        let at = sys::map(n * size_of::<Claim>())?;
        let at = std::ptr::with_exposed_provenance::<Claim>(at);
        // SAFETY: a fresh mapping of this size that is never given back, aligned to a
        // page; claims are atomics, for which zero bytes are 0.
        Some(unsafe { std::slice::from_raw_parts(at, n) })
    }

    fn claim(&self, index: u32) -> Option<&Claim> {
        self.claims.get(index as usize)
    }

    fn core_at(&self, place: u32) -> Option<&Core> {
        self.cores.get(place as usize)
    }

    /// The profile of this token, while it exists.
    pub fn core(&self, token: Token) -> Option<&Core> {
        let core = self.cores.get(token.place()?)?;
        core.is_of(token.generation()).then_some(core)
    }

    /// The same, with one holder more: [`Self::let_go`] takes it away again.
    pub fn hold(&self, token: Token) -> Option<&Core> {
        self.cores.get(token.place()?).filter(|core| core.hold(token.generation()))
    }

    /// Bytes that the engine keeps for profiles.
    pub fn bytes(&self, engine: &Engine) -> usize {
        let (_, used) = engine.tracker.room();
        self.cores.len() * size_of::<Core>() + used * size_of::<Claim>()
    }

    /// The profile that domain `d` samples for, if any.
    pub fn of_domain(&self, d: &Domain) -> Option<Token> {
        let samples = |token: u64| {
            self.core(Token(token)).is_some_and(|core| core.phase() == Phase::Sampling)
        };
        let own = d.token();
        if own != 0 {
            if samples(own) {
                return Some(Token(own));
            }
            d.set_token(0);
        }
        let process = self.process.load(Acquire);
        (process != 0 && process != d.apart() && samples(process)).then_some(Token(process))
    }

    /// The rate at which domain `d` runs, where the stream's is `stream`.
    #[cold]
    #[inline(never)]
    pub fn rate(&self, d: &Domain, stream: Rate) -> Rate {
        let wanted = self
            .of_domain(d)
            .and_then(|token| self.core(token))
            .and_then(|core| core.terms().interval());
        match (stream.interval, wanted) {
            (Some(r), Some(wanted)) if wanted >= r => stream,
            (_, Some(wanted)) => stream.at(wanted),
            (_, None) => stream,
        }
    }

    /// Makes a profile and has it sample: the process, or nobody yet. `None` if there
    /// are too many.
    pub fn make(
        &self,
        engine: &Engine,
        terms: Terms,
        callbacks: std::sync::Arc<dyn Callbacks>,
    ) -> Option<Token> {
        self.reap(engine);
        let place = self.cores.iter().position(Core::take)?;
        self.used.fetch_max(place + 1, Relaxed);
        self.exist.fetch_add(1, Relaxed);
        let generation = self.cores.get(place)?.begin(terms, callbacks);
        Some(Token::of(place, generation))
    }

    /// Has the profile sample the process; false if another one does.
    pub fn take_process(&self, token: Token) -> bool {
        loop {
            let now = self.process.load(Acquire);
            let samples = self.core(Token(now)).is_some_and(|core| core.phase() == Phase::Sampling);
            if now != 0 && samples {
                return false;
            }
            if self.process.compare_exchange(now, token.0, AcqRel, Acquire).is_ok() {
                return true;
            }
        }
    }

    /// The profile does not sample the process any more.
    pub fn leave_process(&self, token: Token) {
        let _ = self.process.compare_exchange(token.0, 0, AcqRel, Relaxed);
    }

    /// Whether there are any.
    pub fn exist(&self) -> bool {
        self.exist.load(Acquire) > 0
    }

    /// One holder of the core in this place less. What is left to do when it was the last
    /// runs code of the program's: [`Self::reap`] does it, on a thread of the program's.
    fn release(&self, place: u32) {
        if let Some(core) = self.core_at(place)
            && core.release()
        {
            self.reap.store(true, Release);
        }
    }

    /// The last handle of a profile is gone.
    pub fn let_go(&self, engine: &Engine, token: Token) {
        if let Some(place) = token.place() {
            self.release(place as u32);
        }
        self.reap(engine);
    }

    /// Gives back the cores that nobody holds. Runs destructors of the program's: not
    /// for the agent's thread.
    pub fn reap(&self, engine: &Engine) {
        if !self.reap.swap(false, AcqRel) {
            return;
        }
        for core in self.cores.iter().take(self.used.load(Relaxed)) {
            // Such a destructor may have forked.
            if engine.is_here() && core.end() {
                self.exist.fetch_sub(1, Release);
            }
        }
    }
}

impl Engine {
    /// The profiles, if there ever was one.
    #[inline]
    pub fn profiles(&self) -> Option<&Profiles> {
        // SAFETY: null, or a box that is never given back.
        unsafe { self.profiles.load(Acquire).as_ref() }
    }

    /// The profiles; makes room for them at the first call.
    pub fn profiles_or_new(&self) -> Option<&Profiles> {
        if let Some(profiles) = self.profiles() {
            return Some(profiles);
        }
        let made = Box::into_raw(Box::new(Profiles::new(self)?));
        let null = std::ptr::null_mut();
        if self.profiles.compare_exchange(null, made, AcqRel, Acquire).is_err() {
            // Another thread was first. The mapping stays: it is not touched.
            // SAFETY: the box was made above, and nobody else knows it.
            drop(unsafe { Box::from_raw(made) });
        }
        self.profiles()
    }

    /// Has each thread look anew at its next stop, and says in the rate's word whether
    /// there are profiles at all.
    pub fn profiles_changed(&self) {
        loop {
            let exist = self.profiles().is_some_and(Profiles::exist);
            self.set_profiled(exist);
            if self.profiles().is_some_and(Profiles::exist) == exist {
                return;
            }
        }
    }

    /// The rate at which domain `d` runs: the stream's, or a finer one that a profile
    /// wants.
    #[inline]
    pub fn rate_of(&self, d: &Domain) -> Rate {
        let stream = self.rate();
        if stream.is_profiled()
            && let Some(profiles) = self.profiles()
        {
            return profiles.rate(d, stream);
        }
        stream
    }
}
