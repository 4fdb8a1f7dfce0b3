//! The engine: what runs on the target's own threads, inside malloc.
//!
//! ```text
//! hook ─► domain ─► sampler            which block is sampled
//!   │       └─────► nursery            (pure)
//!   ├───► unwind ─► callstack          where it came from
//!   └───► tracker ─► sampled_set       that it lives, and that it died
//! ```
//!
//! 1. **Data.** All of it lies in one [`region`] of bounded size, plus one
//!    thread-local record a thread ([`domain`]) and the filter of
//!    [`sampled_set`]. The only other globals are those of [`state`].
//! 2. **Who may touch it.** Target threads through [`hook`]; the agent's own
//!    thread through the second half of [`tracker`], [`callstack`]'s reader, and
//!    one word: the [`domain::Rate`] in force.
//! 3. **Synchronisation.** No locks. Each structure says which orderings it
//!    needs and why.
//! 4. **Clients.** The stream, and profiles of the program's own: [`profiles`].
//! 5. **Start.** The first stop of the first thread, or the constructor before
//!    `main`, sets the engine up; who comes meanwhile passes through.
//! 6. **After a fork** the child passes through, or gets an engine of its own, if it
//!    is to be followed: [`region::ForkMark`], [`state`].

// The fast paths must be part of their callers, whatever the optimiser thinks.
#![allow(clippy::inline_always)]
// A `Taken` and a `Stop` are given up by being passed: that is their meaning.
#![allow(clippy::needless_pass_by_value)]

pub mod callstack;
pub mod domain;
pub mod floats;
pub mod header;
pub mod hook;
pub mod kinds;
#[cfg(all(test, loom))]
mod models;
pub mod nursery;
pub mod own;
pub mod profiles;
pub mod region;
pub mod sampled_set;
pub mod sampler;
mod state;
pub mod sync;
pub mod sys;
pub mod tracker;
pub mod unwind;

use crate::config::{Builder, Notices, Settings};
use callstack::Callstacks;
use domain::{Domain, Rate};
use header::Header;
use heaptop_protocol::estimate::Interval;
use nursery::Nursery;
use region::{ForkMark, Region};
pub use state::WhyOff;
use sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed, scaled};
use tracker::{Returned, Tracker};

/// Numbers of threads: each that begins gets the next, those that ended keep theirs.
pub const MAX_DOMAINS: usize = scaled(1 << 14, 2);
/// The last of them, which all threads beyond share.
pub const OTHER_THREADS: u32 = MAX_DOMAINS as u32 - 1;

/// Under a limit on address space the region is at most this part of it.
const SHARE_OF_LIMIT: u64 = 16;
/// With less than this share in bytes there is no profile.
const LEAST_SHARE: u64 = 2 << 20;

/// What takes longer was not on the CPU meanwhile.
const MOST_TIMED_NS: u64 = 50_000;

// SAFETY: all fields are shared by atomics or never written, but `rest`, which
// only the one thread that serves the agent takes: `take_rest` says so.
unsafe impl Sync for Engine {}

/// The engine's data.
pub struct Engine {
    /// At the beginning of the region: the clock and the numbers.
    pub header: &'static Header,
    /// The descriptor of the region, where it is a file.
    pub file: Option<i32>,
    /// See [`Rate`].
    word: AtomicU64,
    /// The coarsest R that was in force since the profile began, in bytes.
    coarsest: AtomicU32,
    /// 1 once nothing was sampled for a time in this profile.
    gap: AtomicU32,
    /// The kernel's numbers of the domains, by domain.
    tids: &'static [AtomicU32],
    domains: AtomicU32,
    /// Nanoseconds in sampled paths, estimated.
    cost_ns: AtomicU64,
    /// 1 while callstacks of frees are wanted.
    wants_frees: AtomicU32,
    fork_mark: ForkMark,
    /// Forks between the first engine of the program and this one.
    generation: u32,
    /// As it was made by, for the engine of a child.
    settings: Settings,
    seed: u64,
    /// When it started, on the monotonic clock.
    pub started_ns: u64,
    /// Most frames of a callstack.
    pub depth: usize,
    /// See [`nursery`].
    pub nursery: Nursery,
    /// See [`tracker`].
    pub tracker: Tracker,
    /// See [`callstack`].
    pub callstacks: Callstacks,
    /// What was wrong with the environment.
    pub notices: Notices,
    /// What of the region is left, for the agent's thread to take.
    rest: std::cell::Cell<Option<Region>>,
    /// The bound that was set, in bytes.
    pub memory_bytes: usize,
    /// Whether R is the governor's.
    pub governed: bool,
    /// Which blocks the stream's books are of.
    pub track: heaptop_protocol::message::Track,
    /// See [`profiles`]; null until the first.
    profiles: AtomicPtr<profiles::Profiles>,
    /// What the program wants to be called; empty for its executable's name.
    pub name: &'static str,
}

/// How the region is divided, as shares of the bound. The rest is for what the
/// agent's thread keeps: totals a callstack, history, buffers.
mod shares {
    /// Entries and the table over them.
    pub const TRACKER: (usize, usize) = (7, 16);
    /// Frames of callstacks.
    pub const FRAMES: (usize, usize) = (3, 16);
    /// A slot is 16 bytes; the agent keeps about 1 KiB a callstack that is used.
    pub const BYTES_A_SLOT: usize = 1 << 10;
}

impl Engine {
    /// Whether it is that of a forked child.
    pub const fn is_childs(&self) -> bool {
        self.generation > 0
    }

    /// Whether this process is the engine's own, and no forked child.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.fork_mark.is_here()
    }

    /// The first engine of the program.
    fn new(builder: &Builder) -> Result<Self, WhyOff> {
        // Who started it may not have it write files where he says, nor look into it.
        if sys::is_privileged() {
            return Err(WhyOff::Privileged);
        }
        let mut settings = Settings::from_environment(builder);
        if settings.frame_pointers {
            unwind::by_frame_pointers();
        }
        if cfg!(loom) {
            // Below the least that is of use: a model makes one for each interleaving.
            settings.memory_bytes = builder.memory_bytes;
        }
        if settings.off {
            return Err(WhyOff::Asked);
        }
        // Of little address space nothing is taken.
        let share = sys::most_address_space() / SHARE_OF_LIMIT;
        if share < LEAST_SHARE {
            return Err(WhyOff::NoMemory);
        }
        settings.memory_bytes = settings.memory_bytes.min(share as usize);
        Self::with(&settings)
    }

    /// The engine of a child of this one's process.
    fn child(&self) -> Result<Self, WhyOff> {
        let generation = self.generation.wrapping_add(1);
        // A child that had its parent's numbers would sample in step with it.
        let pid = u64::from(std::process::id());
        let seed = self.settings.seed.map(|seed| seed ^ pid << 32 ^ u64::from(generation));
        let region = Region::of_child(self.settings.memory_bytes).ok_or(WhyOff::NoMemory)?;
        let settings = Settings { seed, ..self.settings };
        let engine = Self::of_parts(&settings, region, self.fork_mark.of_child())?;
        Ok(Self { generation, ..engine })
    }

    /// An engine of these settings.
    pub fn with(settings: &Settings) -> Result<Self, WhyOff> {
        let fork_mark = ForkMark::new().ok_or(WhyOff::NoForkMark)?;
        let region = Region::new(settings.memory_bytes).ok_or(WhyOff::NoMemory)?;
        Self::of_parts(settings, region, fork_mark)
    }

    fn of_parts(
        settings: &Settings,
        mut region: Region,
        fork_mark: ForkMark,
    ) -> Result<Self, WhyOff> {
        let bound = settings.memory_bytes;
        let share = |(part, of): (usize, usize)| bound / of * part;
        let entries = Tracker::entries_in(share(shares::TRACKER));
        let slots = (bound / shares::BYTES_A_SLOT).next_power_of_two();
        let words = share(shares::FRAMES) / size_of::<AtomicU64>();
        let cut = |region: &mut Region| {
            Some((
                region.slice::<Header>(1)?.first()?,
                Tracker::new(region, entries)?,
                Callstacks::new(region, slots, words)?,
                region.slice(MAX_DOMAINS)?,
            ))
        };
        let (header, mut tracker, callstacks, tids) = cut(&mut region).ok_or(WhyOff::NoMemory)?;
        tracker.describe(&region, header);
        callstacks.describe(&region, header);
        let started_ns = sys::monotonic_ns();
        header.started_ns.store(started_ns, Relaxed);
        header.seq.store(1, Relaxed);
        let mut seed = settings.seed.unwrap_or_else(sys::random_seed);
        let nursery_bytes = settings.nursery_bytes.max(1);
        let phase = settings.phase_bytes.unwrap_or_else(|| {
            seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
            seed
        });
        Ok(Self {
            header,
            file: region.file(),
            word: AtomicU64::new(Rate::first(settings.interval, !settings.dormant).word),
            coarsest: AtomicU32::new(settings.interval.bytes()),
            gap: AtomicU32::new(u32::from(settings.dormant)),
            tids,
            domains: AtomicU32::new(0),
            cost_ns: AtomicU64::new(0),
            wants_frees: AtomicU32::new(0),
            fork_mark,
            generation: 0,
            settings: *settings,
            seed,
            started_ns,
            depth: settings.depth,
            nursery: Nursery {
                bytes: nursery_bytes,
                phase_bytes: phase % nursery_bytes,
                max_young_bytes: settings.max_young_bytes,
            },
            tracker,
            callstacks,
            notices: settings.notices,
            rest: std::cell::Cell::new(Some(region)),
            memory_bytes: bound,
            governed: settings.governed,
            track: settings.track,
            profiles: AtomicPtr::new(std::ptr::null_mut()),
            name: settings.name,
        })
    }

    /// The rate in force. Relaxed: it carries no data, and a stop that reads the
    /// one before is followed by another within 64 KiB.
    #[inline]
    pub fn rate(&self) -> Rate {
        Rate::from_word(self.word.load(Relaxed))
    }

    /// R as configured, also while nothing is sampled.
    pub fn interval(&self) -> Interval {
        Rate::configured(self.word.load(Relaxed))
    }

    /// Another rate, for all threads, each at its next stop. For the agent's
    /// thread.
    pub fn set_rate(&self, interval: Interval, on: bool) {
        self.coarsest.fetch_max(interval.bytes(), Relaxed);
        if !on {
            self.gap.store(1, Relaxed);
        }
        self.change_word(|word| Rate::following(word, interval, on));
    }

    /// Says whether there are profiles, to all threads, each at its next stop.
    fn set_profiled(&self, profiled: bool) {
        self.change_word(|word| Rate::following_profiled(word, profiled));
    }

    /// Threads of the program write it too, for their profiles.
    fn change_word(&self, next: impl Fn(u64) -> Rate) {
        let mut word = self.word.load(Relaxed);
        while let Err(now) =
            self.word.compare_exchange_weak(word, next(word).word, Relaxed, Relaxed)
        {
            word = now;
        }
    }

    /// The books are done with entry `index`, that of `born`, which is `returned` with
    /// others.
    pub fn release(&self, index: u32, born: &tracker::Born, returned: &mut Returned) {
        // One without samples is not counted among the living any more: `drop_block`.
        if born.interval > 0 {
            self.tracker.forget(index);
        }
        if self.profiles().is_none_or(|profiles| profiles.books_done(self, index)) {
            self.tracker.give_back_later(returned, index);
        }
    }

    /// The stream does without the block in entry `index`, if it is not being freed.
    pub fn drop_block(&self, index: u32) -> bool {
        if self.profiles().is_some_and(|profiles| profiles.has(index)) {
            // A profile goes on with it: its death is nothing to the books.
            self.tracker.unsample(index);
            self.tracker.forget(index);
            return true;
        }
        self.tracker.drop_block(index)
    }

    /// The coarsest R that blocks of this profile may have been sampled with.
    pub fn coarsest(&self) -> Interval {
        Interval::new(u64::from(self.coarsest.load(Relaxed))).unwrap_or(self.interval())
    }

    /// Whether sampling was off for a part of this profile's time.
    pub fn has_gap(&self) -> bool {
        self.gap.load(Relaxed) != 0
    }

    /// A new profile begins: [`Self::coarsest`] and [`Self::has_gap`] begin anew. For
    /// the agent's thread.
    pub fn begin_profile(&self) {
        self.gap.store(u32::from(self.rate().interval.is_none()), Relaxed);
        self.coarsest.store(self.interval().bytes(), Relaxed);
    }

    /// The next number of a birth or death.
    #[inline]
    pub fn next_seq(&self) -> u64 {
        self.header.seq.fetch_add(1, Relaxed)
    }

    /// The number that will be given next.
    pub fn seq(&self) -> u64 {
        self.header.seq.load(Relaxed)
    }

    /// A thread's first stop, or free of a sampled block: gives it its number. True if
    /// that was so: nothing that it allocated before is on the clock.
    #[inline]
    pub fn begin_domain(&self, domain: &Domain) -> bool {
        if domain.is_of(self.generation) {
            return false;
        }
        self.begin(domain);
        true
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, domain: &Domain) {
        let _errno = sys::Errno::keep();
        let nth = self.domains.fetch_add(1, Relaxed);
        let id = nth.min(OTHER_THREADS);
        // Threads that share the last number do not draw alike for that.
        let seed = self.seed ^ u64::from(nth - id) << 32;
        domain.begin(id, self.generation, seed);
        // The last number is many threads', and so none's.
        if let Some(slot) = self.tids.get(id as usize).filter(|_| id != OTHER_THREADS) {
            slot.store(sys::tid(), Relaxed);
        }
    }

    /// The kernel's numbers of all domains that have begun, by domain; 0 for one
    /// that is just beginning, and for [`OTHER_THREADS`].
    pub fn tids(&self) -> impl Iterator<Item = u32> {
        let begun = (self.domains.load(Relaxed) as usize).min(MAX_DOMAINS);
        self.tids.iter().take(begun).map(|t| t.load(Relaxed))
    }

    /// The kernel's number of one of them; 0 where it is not known.
    pub fn tid(&self, domain: u32) -> u32 {
        self.tids.get(domain as usize).map_or(0, |t| t.load(Relaxed))
    }

    /// A sampled path that began at `entered_ns`, or is not timed, is at its end.
    fn took(&self, entered_ns: u64) {
        if entered_ns != 0 {
            let ns = sys::monotonic_ns().wrapping_sub(entered_ns).min(MOST_TIMED_NS);
            self.cost_ns.fetch_add(ns.wrapping_mul(u64::from(domain::TIMED)), Relaxed);
        }
    }

    /// Blocks sampled, ever, as far as the agent's thread has taken them up.
    pub fn samples(&self) -> u64 {
        self.header.samples.load(Relaxed) + self.tracker.lost()
    }

    /// Time spent in sampled paths, in nanoseconds: one in sixteen is timed.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns.load(Relaxed)
    }

    /// Whether callstacks of frees are wanted.
    #[inline]
    pub fn wants_frees(&self) -> bool {
        self.wants_frees.load(Relaxed) != 0
    }

    /// They are from now on, or are not.
    pub fn want_frees(&self, wanted: bool) {
        self.wants_frees.store(u32::from(wanted), Relaxed);
    }

    /// Seed of all random numbers.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What of the region is left; once.
    ///
    /// # Safety
    ///
    /// Only one thread may ever call this.
    pub unsafe fn take_rest(&self) -> Option<Region> {
        self.rest.take()
    }

    /// Bytes of the region that were ever touched, about.
    pub fn bytes_touched(&self) -> usize {
        let (all, used) = self.tracker.room();
        let tracker = (Tracker::bytes(all) / all.max(1)) * used;
        tracker + self.callstacks.arena_words_used() * size_of::<u64>()
    }
}
