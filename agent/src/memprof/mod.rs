//! What OCaml's statmemprof means, for Rust: callbacks at the birth, the promotion and
//! the death of sampled blocks.
//!
//! **Start here.** A [`Tracker`] says what to do; [`start`] has it do so; the
//! [`Profile`] that comes back stops it again.
//!
//! ```no_run
//! use heaptop_agent::memprof::{self, Allocation, Config, Tracker};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! #[global_allocator]
//! static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();
//!
//! static LIVE: AtomicU64 = AtomicU64::new(0);
//!
//! /// Estimates the bytes in use by blocks of 4 KiB and more.
//! struct Large;
//!
//! impl Tracker for Large {
//!     /// What is kept of a young block, and of a major one: its weight in bytes.
//!     type Minor = u64;
//!     type Major = u64;
//!
//!     fn alloc_major(&self, block: &Allocation<'_>) -> Option<u64> {
//!         let weight = block.weight_bytes() as u64;
//!         (block.size >= 4096).then(|| {
//!             LIVE.fetch_add(weight, Relaxed);
//!             weight
//!         })
//!     }
//!     fn dealloc_major(&self, weight: u64) {
//!         LIVE.fetch_sub(weight, Relaxed);
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let profile = memprof::start(Config::interval_bytes(64 << 10)?, Large)?;
//!     let kept: Vec<Vec<u8>> = (0..1000).map(|_| vec![0; 10_000]).collect();
//!     profile.poll(); // callbacks run here
//!     println!("about {} bytes in {} blocks", LIVE.load(Relaxed), kept.len());
//!     profile.stop()?; // nothing more is sampled; deaths are still told
//!     drop(kept);
//!     profile.poll();
//!     profile.discard()?; // nothing more is told
//!     Ok(())
//! }
//! ```
//!
//! # The five callbacks
//!
//! | callback | argument | result |
//! |---|---|---|
//! | [`Tracker::alloc_minor`] | the allocation | `Option<Minor>`: `None` stops tracking this block |
//! | [`Tracker::alloc_major`] | the allocation | `Option<Major>` |
//! | [`Tracker::promote`] | `Minor` | `Option<Major>` |
//! | [`Tracker::dealloc_minor`] | `Minor` | nothing |
//! | [`Tracker::dealloc_major`] | `Major` | nothing |
//!
//! A native program has no minor heap; heaptop gives it a virtual one: a block of up to
//! 2 KiB is born young, and is promoted if it lives when the process has filled the
//! nursery, 2 MiB by default. Larger blocks are major from birth.
//!
//! # What it means
//!
//! | | |
//! |---|---|
//! | 1 | Every byte of allocation is sampled with the same probability λ, from 0 to 1; anything else, NaN too, is an error |
//! | 2 | λ = 1 samples every block; λ = 0 none, and costs nothing |
//! | 3 | Each block sees alloc, perhaps promote, dealloc, each at most once, in this order |
//! | 4 | `None` from alloc or promote stops tracking that block |
//! | 5 | What a callback allocates is never sampled |
//! | 6 | A callback may panic: that block is not tracked any more, the payload is kept ([`Profile::take_panics`]), the program goes on. With `panic = "abort"` nothing can be caught: the program ends |
//! | 7 | [`Delivery`] says where callbacks run. The callstack is always that of the allocation |
//! | 8 | With [`Delivery::Prompt`] the allocation callback runs on the thread that allocates; promote and dealloc may run on any |
//! | 9 | A callback may stop, start, discard or drop a profile, its own too: give the tracker a handle, which it lets go of in the end, for the profile's place is taken as long as there is one. Blocks whose allocation callback has not run when a profile is discarded are dropped |
//! | 10 | A callback that blocks holds up no other block's |
//! | 11 | What is looked at when a minor cycle turns is the young blocks, never all |
//! | 12 | One profile samples in a thread at a time; a second start there is an error. The live stream is no profile: it goes on beside them |
//! | 13 | [`Profile::stop`] ends the sampling; promotions and deaths are told on, also while another profile samples |
//! | 14 | Stopping twice, discarding what samples, and discarding twice are errors |
//! | 15 | [`Scope::Thread`]: the calling thread, and those that it starts by [`crate::spawn`] or [`inherit`]. [`Scope::Process`]: all threads, present and future |
//! | 16 | A thread's end loses nothing: its blocks are told of by others |
//! | 17 | After [`Profile::discard`] no callback runs; what they returned is dropped |
//! | 18 | A block whose allocation callback cannot run in the allocation, for its thread is unwinding: with Prompt it is dropped and counted, with Deferred it is told later |
//! | 19 | [`Profile::join`], [`leave`], [`current`], [`suspended`], [`Profile::status`], [`Profile::stats`] |
//! | 20 | Each thread has a random generator of its own; `HEAPTOP_SEED` fixes them |
//! | 21 | What is left of a gap carries over to the next allocation; starting anew does no harm |
//! | 24 | Threads may sample at once with different λ and callstack sizes |
//! | 25 | A callstack size of 0 is legal; longer stacks are cut at the root end |
//! | 26 | Memory outside the heap: [`crate::external`] |
//! | 27 | Phases and marks: [`crate::phase`], [`crate::mark`], [`crate::context`] |
//! | 28 | What is tracked: [`Track`], for the live stream too: [`crate::Heaptop::track`], `HEAPTOP_TRACK` |
//! | 29 | [`Allocation::id`] is a block's identity; it is the viewer's too |
//!
//! Numbers are those of heaptop's `MEMPROF` page.
//!
//! # Threads that are started elsewhere
//!
//! [`Scope::Thread`] goes over to threads that are started by [`crate::spawn`] or run what
//! [`inherit`] has wrapped, as builders, scoped threads and pools can. (Who counts exactly
//! joins them: at the end of a [`std::thread::scope`] std has not yet freed what it keeps
//! of a thread.) A thread that
//! `std::thread::spawn`, a library or C code starts inherits nothing: only who puts a
//! function in the place of `pthread_create` sees those, which a library that is linked in
//! cannot do without taking that place from whoever else has it, a sanitizer say. Such a
//! thread can [`Profile::join`]; [`Scope::Process`] has them all.
//!
//! # Callbacks and locks
//!
//! With `Prompt` a callback runs inside `malloc` or `free`. It must not take a lock that
//! the program may hold while it allocates or frees: the thread would wait for itself.
//! That is why [`Delivery::Deferred`] is the default. std has such locks: a prompt callback
//! neither starts threads nor prints.
//!
//! # Forks
//!
//! A profile belongs to its process, and its callbacks run there. In a forked child it is
//! over, also where the child is followed: methods answer [`StopError::Forked`] and the
//! like, the status is [`Status::Discarded`], what the child frees is told to nobody, and
//! what the callbacks returned is kept, and not dropped, like the tracker itself. A
//! callback that forks comes back in the child as in the parent; what it returns there is
//! kept too, and no other callback follows it. A thread of the profile's own is not there.
//!
//! A child that is followed ([`crate::after_fork`], `HEAPTOP_FOLLOW=1`) has an engine of
//! its own and can start profiles of its own; in another one [`start`] is an error.

mod config;
mod erased;
mod profile;
mod stats;

pub use crate::names::Names;
pub use config::{Config, ConfigError, Delivery, Scope, StartError, Track};
pub use erased::{Allocation, Cause, Tracker};
pub use profile::{
    DiscardError, JoinError, LeaveError, Profile, Status, StopError, current, inherit, leave,
    spawn, start, suspended,
};
pub use stats::Stats;

pub(crate) use profile::is_in_callback;
