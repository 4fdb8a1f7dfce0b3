//! heaptop's agent.

pub mod config;
mod engine;

use config::Builder;
use engine::hook;
use engine::tracker::Cause;
use std::alloc::{GlobalAlloc, Layout, System};

/// A global allocator that samples what passes through it.
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
}

/// Alignments up to this are every allocator's own.
const PLAIN_ALIGN: usize = 16;

impl<A: GlobalAlloc> Heaptop<A> {
    /// An allocation that reaches a stop. Kept out of line: its frame is the
    /// mark at which callstacks begin.
    #[cold]
    #[inline(never)]
    fn at_stop(
        &self,
        size: usize,
        cause: Cause,
        replaces: u64,
        real: &mut dyn FnMut(&A) -> *mut u8,
    ) -> *mut u8 {
        let marker = 0u8;
        let stop = hook::stop(size, &self.settings);
        let block = real(&self.inner);
        if block.is_null() {
            stop.failed();
        } else {
            stop.born(block as usize, cause, replaces, &raw const marker);
        }
        block
    }

    fn cause(layout: Layout, plain: Cause) -> Cause {
        if layout.align() > PLAIN_ALIGN { Cause::Aligned } else { plain }
    }

    /// A reallocation that reaches a stop, or may be of a sampled block.
    #[cold]
    #[inline(never)]
    unsafe fn realloc_slow(
        &self,
        ptr: *mut u8,
        layout: Layout,
        new_size: usize,
        reached: bool,
    ) -> *mut u8 {
        let taken = if hook::may_hold(ptr as usize) { hook::take(ptr as usize) } else { None };
        // SAFETY: the caller's contract is passed on as it is.
        let mut real = |inner: &A| unsafe { inner.realloc(ptr, layout, new_size) };
        // The death comes first, so that its number is below the birth's.
        let block = if reached {
            let mut taken = taken;
            let replaces = taken.as_ref().map_or(0, |t| t.id);
            self.at_stop(new_size, Cause::Realloc, replaces, &mut |inner| {
                let block = real(inner);
                if let Some(taken) = taken.take() {
                    if block.is_null() { hook::kept(taken) } else { hook::freed(taken) }
                }
                block
            })
        } else {
            let block = real(&self.inner);
            if let Some(taken) = taken {
                if block.is_null() { hook::kept(taken) } else { hook::freed(taken) }
            }
            block
        };
        block
    }
}

// SAFETY: every request goes to the inner allocator as it came, and every
// result comes back as it is.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Heaptop<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed on as it is.
        let mut real = |inner: &A| unsafe { inner.alloc(layout) };
        if hook::spend(layout.size()) {
            return self.at_stop(layout.size(), Self::cause(layout, Cause::Malloc), 0, &mut real);
        }
        real(&self.inner)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let mut real = |inner: &A| unsafe { inner.alloc_zeroed(layout) };
        if hook::spend(layout.size()) {
            return self.at_stop(layout.size(), Self::cause(layout, Cause::Calloc), 0, &mut real);
        }
        real(&self.inner)
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if hook::may_hold(ptr as usize)
            && let Some(taken) = hook::take(ptr as usize)
        {
            hook::freed(taken);
        }
        // SAFETY: as above.
        unsafe { self.inner.dealloc(ptr, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let reached = hook::spend(new_size);
        if reached || hook::may_hold(ptr as usize) {
            // SAFETY: as above.
            return unsafe { self.realloc_slow(ptr, layout, new_size, reached) };
        }
        // SAFETY: as above.
        unsafe { self.inner.realloc(ptr, layout, new_size) }
    }
}
