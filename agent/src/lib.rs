//! heaptop's agent: samples the allocations of the program it is linked into,
//! and streams them to the viewer.
//!
//! ```
//! #[global_allocator]
//! static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();
//!
//! fn main() {
//!     // The program. Then, in another terminal: heaptop
//! }
//! ```
//!
//! That is all. The agent starts by itself before `main`; one thread of its own
//! serves viewers on a socket of the user's. The wrapper goes around any
//! allocator, `Heaptop::new(other)`.
//!
//! What it does to the program: it adds a subtraction to each allocation and a
//! look-up to each free, and at each sampled block, one in 512 KiB to begin with,
//! records a callstack. It never blocks the program, ends it, or signals it; in
//! forked children it is silent, unless they are to be followed. Sampled blocks stay
//! where the wrapped allocator put them.
//!
//! # Configuration
//!
//! By the wrapper's methods, or from outside by the environment, which wins:
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `HEAPTOP` | `on`; `off`: the agent does nothing at all; `dormant`: it is there, and samples nothing until a viewer's command (`SetSampling`) has it start | `on` |
//! | `HEAPTOP_INTERVAL` | R: mean bytes between samples; 1 records every block exactly; `auto`: from 16 KiB to 4 MiB, as fine as half a percent of the CPU and 2,000 samples a second allow | `auto` |
//! | `HEAPTOP_NURSERY` | N: size of the virtual minor heap | `2M` |
//! | `HEAPTOP_MAX_YOUNG` | largest block that is born young | `2K` |
//! | `HEAPTOP_PHASE` | φ: where in the first minor cycle the clock begins | random |
//! | `HEAPTOP_DEPTH` | most frames of a callstack, up to 128 | `128` |
//! | `HEAPTOP_MEMORY` | bound of the agent's memory, from 1 MiB on | `64M` |
//! | `HEAPTOP_SEED` | seed of the random numbers | random |
//! | `HEAPTOP_NAME` | what the viewer calls the program | its executable |
//! | `HEAPTOP_RECORD` | a file: all of it is recorded there, without a viewer. `%p` is the pid | none |
//! | `HEAPTOP_FOLLOW` | `1`: forked children get an agent and a socket of their own, with what they allocate themselves; see also [`after_fork`] | `0` |
//! | `HEAPTOP_UNWIND` | `tables`: callstacks by the unwind tables, whole through all code; `frame-pointers`: by rbp, right only where the whole program was built with `-C force-frame-pointers=yes` | `tables` |
//! | `HEAPTOP_TRACK` | `all` blocks, from birth to death; `promoted`: major ones, and young ones once they are promoted; `allocations`: births alone. What is not known then is shown as `–` | `all` |
//! | `HEAPTOP_DIR` | directory of the socket | `$XDG_RUNTIME_DIR/heaptop`, else `heaptop-UID` in the temporary directory |
//!
//! A program that has rights which whoever started it has not, as one that is setuid has,
//! reads none of them: there the agent does nothing at all.
//!
//! Sizes are bytes, or have a suffix: `K`, `KB`, `KiB`, and likewise M and G, all
//! binary. A value that makes no sense is told in a sentence on standard error
//! and to the viewer, and is as none. A `HEAPTOP_DIR` that will not do is told
//! there too: no viewer can connect then.
//!
//! # Layout
//!
//! ```text
//! engine   on the program's threads, inside malloc
//! stream   on the agent's own thread: books, socket
//! ```

/// What the README shows compiles, and runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

mod config;
mod engine;
pub mod external;
pub mod memprof;
mod names;
mod notes;
#[cfg(feature = "simulate")]
#[doc(hidden)]
pub mod simulate;
mod snapshot;
mod stream;
pub mod testing;

#[cfg(fuzzing)]
pub mod fuzzing;

use config::Builder;
use engine::hook;
use engine::tracker::Cause;
use engine::{Engine, WhyOff, domain, floats, own, sys, unwind};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::time::{Duration, Instant};

pub use memprof::spawn;
pub use snapshot::{SnapshotError, snapshot};

/// Why the program is not being profiled. The program is none the worse for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off(String);

impl std::fmt::Display for Off {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Off {}

/// Tells whether the program is being profiled, and the path of the socket that
/// viewers connect to. Needs not be called: the agent starts by itself. Waits for
/// the agent's thread to open its socket, a second at the most.
pub fn start() -> Result<&'static Path, Off> {
    if Engine::running().is_none() {
        return Err(why_off());
    }
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match stream::endpoint() {
            Some(Ok(path)) => return Ok(path),
            Some(Err(why)) => return Err(Off(why.clone())),
            None => {}
        }
        if let Some(why) = stream::why_not_started() {
            return Err(Off(why.to_owned()));
        }
        if Instant::now() > deadline {
            return Err(Off("the agent's thread has not started yet".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn why_off() -> Off {
    Off(match Engine::why_off() {
        WhyOff::NotInstalled => {
            "Heaptop is not the program's global allocator: add #[global_allocator] \
             static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();"
        }
        WhyOff::Asked => "HEAPTOP=off is set",
        WhyOff::NoMemory => {
            "the system refused the agent's memory: lower HEAPTOP_MEMORY or raise the limit"
        }
        WhyOff::NoForkMark => "this kernel has no MADV_WIPEONFORK: Linux 4.14 is needed",
        WhyOff::Forked => {
            "this is a forked child: call heaptop_agent::after_fork() in it, or set HEAPTOP_FOLLOW=1"
        }
        WhyOff::Privileged => {
            "the program has rights that whoever started it has not (setuid, setgid or \
             capabilities): it is not profiled"
        }
    }
    .to_owned())
}

/// In a forked child: gives it an agent of its own, which begins with what the child
/// allocates from now on, and tells the path of its socket. Where `HEAPTOP_FOLLOW=1`
/// is set, each forked child does so by itself. Elsewhere it does nothing but what
/// [`start`] does. Call it where `fork` has returned, as a daemon does that forked
/// itself into the background.
pub fn after_fork() -> Result<&'static Path, Off> {
    if domain::here(domain::Domain::enter) {
        if Engine::start_in_child()
            && let Some(engine) = Engine::running()
        {
            start_agent(engine);
        }
        domain::here(domain::Domain::leave);
    }
    start()
}

/// A phase of the program begins, and the one before it ends: `"startup"`, `"serving"`.
/// The viewer shows them, and tables of one phase alone. An empty name is the end of the
/// last one. Names are cut at 200 bytes.
///
/// False if it is not noted: there is no agent, or dozens wait for it already. Never
/// blocks.
#[expect(clippy::must_use_candidate, reason = "most programs do not care")]
pub fn phase(name: &str) -> bool {
    notes::note(notes::Kind::Phase, name)
}

/// Gives this moment a name, for all viewers. As [`phase`].
#[expect(clippy::must_use_candidate, reason = "most programs do not care")]
pub fn mark(label: &str) -> bool {
    notes::note(notes::Kind::Mark, label)
}

/// Says what this process is, in a few words: its shard, its customer, its input.
/// Replaces what was said before. As [`phase`].
#[expect(clippy::must_use_candidate, reason = "most programs do not care")]
pub fn context(label: &str) -> bool {
    notes::note(notes::Kind::Context, label)
}

/// Starts the agent's thread. The calling thread is in the engine.
fn start_agent(engine: &'static Engine) {
    let _errno = sys::Errno::keep();
    let started = {
        // What a handler allocated here would be the agent's, and freed later by the
        // program; and it may strike within the agent's own heap.
        let _undisturbed = sys::Undisturbed::begin();
        domain::here(|d| d.set_agents(true));
        // Under a tight limit the program may have what there is. Nothing can wait for
        // memory here, as the agent's thread does.
        let room = own::there_are(SETUP_BYTES + engine.memory_bytes / SETUP_SHARE);
        // SAFETY: the constructor and those who have just made an engine come here, with
        // it, once.
        let started = floats::apart(|| unsafe { stream::start(engine, room) });
        domain::here(|d| d.set_agents(false));
        started
    };
    if started {
        stream::wait_until_begun(engine.is_childs());
    } else {
        engine.set_rate(engine.interval(), false);
    }
}

/// What the agent's thread and its books take from the system besides the region
/// when they are set up, at most: so much, and this share of the bound.
const SETUP_BYTES: usize = 1 << 20;
const SETUP_SHARE: usize = 128;

/// Runs before `main`: sets the engine up, if the program's allocator is ours,
/// and starts the agent's thread, neither of them inside an allocation.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn constructor() {
        // The atomics of a model exist in a model only.
        if cfg!(loom) {
            return;
        }
        // Inside an allocation it could not be done: stacks before end where they begin.
        unwind::prime();
        if Engine::running().is_none() {
            // An allocation that no compiler may leave out: whether we are the program's
            // allocator, and with which settings, only one can tell. It is not the program's.
            domain::here(domain::Domain::probe);
            drop(std::hint::black_box(Box::new(std::hint::black_box(0u8))));
            domain::here(domain::Domain::takes_probe);
        }
        let Some(engine) = Engine::running() else { return };
        // What the thread sets up once is none of the program's.
        let entered = domain::here(domain::Domain::enter);
        if entered {
            domain::here(|d| engine.begin_domain(d));
        }
        stream::loader::stay();
        start_agent(engine);
        if entered {
            domain::here(domain::Domain::leave);
        }
    }
    constructor
};

/// A global allocator that samples what passes through it and leaves the rest
/// to the allocator it is wrapped around.
#[derive(Debug)]
pub struct Heaptop<A = System> {
    inner: A,
    settings: Builder,
}

impl Heaptop<System> {
    /// Around the system's allocator.
    #[must_use]
    pub const fn system() -> Self {
        Self::new(System)
    }
}

impl<A> Heaptop<A> {
    /// Around any allocator.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner, settings: Builder::DEFAULT }
    }

    /// A fixed R, the mean bytes between samples. 1 records every block exactly. 0,
    /// and 4 GiB and more, mean the default: R is moved as the program's pace and the
    /// agent's budget ask for.
    #[must_use]
    pub const fn interval_bytes(mut self, bytes: u64) -> Self {
        self.settings.interval_bytes = Some(bytes);
        self
    }

    /// N, the size of the virtual minor heap in bytes. 2 MiB by default.
    #[must_use]
    pub const fn nursery_bytes(mut self, bytes: u64) -> Self {
        self.settings.nursery_bytes = bytes;
        self
    }

    /// The largest block that is born young, in bytes. 2 KiB by default.
    #[must_use]
    pub const fn max_young_bytes(mut self, bytes: u64) -> Self {
        self.settings.max_young_bytes = bytes;
        self
    }

    /// φ, where in the first minor cycle the clock begins, in bytes. Random by
    /// default.
    #[must_use]
    pub const fn phase_bytes(mut self, bytes: u64) -> Self {
        self.settings.phase_bytes = Some(bytes);
        self
    }

    /// Most frames of a callstack, at most 128, which is the default.
    #[must_use]
    pub const fn depth(mut self, frames: usize) -> Self {
        self.settings.depth = frames;
        self
    }

    /// Callstacks by frame pointers instead of the unwind tables: right only where the
    /// whole program was built with them (`-C force-frame-pointers=yes`). What calls back
    /// through code without them, such as the C library's, loses what is above.
    #[must_use]
    pub const fn frame_pointers(mut self, on: bool) -> Self {
        self.settings.frame_pointers = on;
        self
    }

    /// Which sampled blocks are told to viewers and recordings: all by default. Profiles
    /// of the program's own choose by themselves ([`memprof::Config::track`]).
    #[must_use]
    pub const fn track(mut self, track: memprof::Track) -> Self {
        self.settings.track = track.of_stream();
        self
    }

    /// Bound of the agent's memory in bytes. 64 MiB by default.
    #[must_use]
    pub const fn memory_bytes(mut self, bytes: usize) -> Self {
        self.settings.memory_bytes = bytes;
        self
    }

    /// Seed of the random numbers. Random by default.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// What the viewer calls the program. Its executable's name by default.
    #[must_use]
    pub const fn name(mut self, name: &'static str) -> Self {
        self.settings.name = name;
        self
    }
}

// Two-speed functions: the fast path subtracts or loads, branches, and passes the
// request on; everything else is in cold functions, kept out of line so that the
// fast path needs no stack of its own, and because their frames are the marks at
// which callstacks begin.
impl<A: GlobalAlloc> Heaptop<A> {
    #[cold]
    #[inline(never)]
    unsafe fn alloc_slow(&self, layout: Layout) -> *mut u8 {
        if own::here() {
            // SAFETY: the caller's contract is passed on as it is.
            return unsafe { own::alloc(layout, false) };
        }
        let mark = unwind::mark();
        let stop = hook::stop(layout.size(), &self.settings, start_agent);
        // SAFETY: the caller's contract is passed on as it is.
        let block = unsafe { self.inner.alloc(layout) };
        stop.end(block, cause(layout, Cause::Malloc), 0, &mark);
        block
    }

    #[cold]
    #[inline(never)]
    unsafe fn alloc_zeroed_slow(&self, layout: Layout) -> *mut u8 {
        if own::here() {
            // SAFETY: as above.
            return unsafe { own::alloc(layout, true) };
        }
        let mark = unwind::mark();
        let stop = hook::stop(layout.size(), &self.settings, start_agent);
        // SAFETY: as above.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        stop.end(block, cause(layout, Cause::Calloc), 0, &mark);
        block
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_slow(&self, ptr: *mut u8, layout: Layout) {
        if own::here() {
            // SAFETY: as above; what the agent's thread frees it has allocated.
            return unsafe { own::dealloc(ptr, layout) };
        }
        let holding = domain::Holding::begin();
        if let Some(taken) = hook::take(ptr as usize) {
            let stack = hook::freed_at(&unwind::mark());
            hook::freed(taken, stack);
        }
        drop(holding);
        // SAFETY: as above.
        unsafe { self.inner.dealloc(ptr, layout) }
    }

    /// A reallocation that reaches a stop (`reached`), or may be of a sampled block.
    #[cold]
    #[inline(never)]
    unsafe fn realloc_slow(
        &self,
        ptr: *mut u8,
        layout: Layout,
        new_size: usize,
        reached: bool,
    ) -> *mut u8 {
        if own::here() {
            // SAFETY: as above.
            return unsafe { own::realloc(ptr, layout, new_size) };
        }
        let mark = unwind::mark();
        let holding = domain::Holding::begin();
        let taken = if hook::may_hold(ptr as usize) { hook::take(ptr as usize) } else { None };
        let replaces = taken.as_ref().map_or(0, |t| t.id);
        let stack = taken.as_ref().and_then(|_| hook::freed_at(&mark));
        let stop = reached.then(|| hook::stop(new_size, &self.settings, start_agent));
        // SAFETY: as above.
        let block = unsafe { self.inner.realloc(ptr, layout, new_size) };
        // The death first, so that its number is below the birth's.
        match taken {
            Some(taken) if block.is_null() => hook::kept(taken),
            Some(taken) => hook::freed(taken, stack),
            None => {}
        }
        drop(holding);
        if let Some(stop) = stop {
            stop.end(block, Cause::Realloc, replaces, &mark);
        }
        block
    }
}

/// Alignments up to this are every allocator's own.
const PLAIN_ALIGN: usize = 16;

const fn cause(layout: Layout, plain: Cause) -> Cause {
    if layout.align() > PLAIN_ALIGN { Cause::Aligned } else { plain }
}

// SAFETY: every request goes to the inner allocator as it came, and every
// result comes back as it is.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Heaptop<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if hook::spend(layout.size()) {
            // SAFETY: the caller's contract is passed on as it is.
            return unsafe { self.alloc_slow(layout) };
        }
        // SAFETY: as above.
        unsafe { self.inner.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if hook::spend(layout.size()) {
            // SAFETY: as above.
            return unsafe { self.alloc_zeroed_slow(layout) };
        }
        // SAFETY: as above.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if hook::may_hold(ptr as usize) {
            // SAFETY: as above.
            return unsafe { self.dealloc_slow(ptr, layout) };
        }
        // SAFETY: as above.
        unsafe { self.inner.dealloc(ptr, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Two branches: of one for both the compiler makes a sum of flags.
        if hook::spend(new_size) {
            // SAFETY: as above.
            return unsafe { self.realloc_slow(ptr, layout, new_size, true) };
        }
        if hook::may_hold(ptr as usize) {
            // SAFETY: as above.
            return unsafe { self.realloc_slow(ptr, layout, new_size, false) };
        }
        // SAFETY: as above.
        unsafe { self.inner.realloc(ptr, layout, new_size) }
    }
}
