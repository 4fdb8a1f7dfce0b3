//! Memory outside the heap, as the program reports it: maps, pools, what lies on a GPU.
//!
//! [`alloc`] is sampled like an allocation of so many bytes, by the calling thread's
//! countdown; what is sampled gets a [`Token`], and is freed when that is dropped. The
//! viewer, reports and profiles see it as a block whose innermost frame is its kind:
//! `[external: gpu]`.
//!
//! ```
//! use heaptop_agent::external;
//!
//! struct Texture {
//!     bytes: u64,
//!     // Dropped with the texture. `None` for those that are not sampled.
//!     seen: Option<external::Token>,
//! }
//!
//! impl Texture {
//!     fn new(bytes: u64) -> Self {
//!         Self { bytes, seen: external::alloc(bytes, "gpu") }
//!     }
//! }
//! # let texture = Texture::new(1 << 20);
//! # assert!(texture.seen.is_none() || texture.bytes > 0);
//! ```
//!
//! A token has an address of its own, from a range that no program's memory lies in: so
//! it takes the way of every block. Kinds are numbered as they come up, at most 64 of
//! them; what comes after is `[external: other]`.

use crate::engine::hook;
use crate::engine::sync::Ordering::Relaxed;
use crate::engine::{Engine, domain, kinds, unwind};

/// A sampled piece of memory outside the heap: it is freed when this is dropped.
#[derive(Debug)]
#[must_use = "memory whose token is dropped is freed"]
pub struct Token {
    address: usize,
}

/// The program has got `bytes` bytes outside the heap, of this kind. `None` if they are
/// not sampled: then there is nothing to be freed either.
///
/// Kinds are few: `"gpu"`, `"arena"`, `"mmap"`. `None` too for more than `isize::MAX` bytes,
/// which nobody has got.
#[inline(never)]
pub fn alloc(bytes: u64, kind: &str) -> Option<Token> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| isize::try_from(*bytes).is_ok())?;
    let _holding = domain::Holding::begin();
    let engine = Engine::running()?;
    // A name that is new is kept for ever: that is no block of the program's.
    let kind = domain::here(|d| d.outside(engine, || kinds::number(kind)));
    let address = kinds::ADDRESSES + 16 * kinds::NEXT.fetch_add(1, Relaxed) as usize;
    hook::external(engine, bytes, kind, address).then_some(Token { address })
}

impl Drop for Token {
    // As the allocator's own: its frame is where the callstack of the free begins.
    #[inline(never)]
    fn drop(&mut self) {
        let _holding = domain::Holding::begin();
        if hook::may_hold(self.address)
            && let Some(taken) = hook::take(self.address)
        {
            let stack = hook::freed_at(&unwind::mark());
            hook::freed(taken, stack);
        }
    }
}
