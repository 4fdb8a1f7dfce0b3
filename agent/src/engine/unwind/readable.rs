//! Which memory a walk may read.
//!
//! A thread's own stack is mapped from where it is now to its end. But a program
//! can switch to a stack of its own making, whose end nobody knows and whose first
//! frame the tables may describe wrongly; a walk that trusts them there reads what
//! is not mapped, and ends the program. So no page is read that is not known:
//!
//! - the page that the thread runs on;
//! - a page that the kernel has said to be readable, by a call that does nothing
//!   else: `rt_sigprocmask` reads a mask and then refuses to do what it was not
//!   asked for;
//! - the thread's **own stack**: what has once been found readable from a page up
//!   to the end of the stack stays so as long as the thread lives. That is kept, so
//!   that in general nothing is asked.

use crate::engine::sync::{StartsAsZeros, per_thread};
use std::cell::Cell;

const PAGE: usize = 4096;
/// Pages in a row that are asked about: larger frames are jumped over.
const REACH: usize = 64 * PAGE;

/// From and to: a thread's own stack as far as it is known; empty at first. And how often a
/// walk looked beyond what was asked of it since it has become known.
struct Own(Cell<(usize, usize)>, Cell<u32>);

// SAFETY: two numbers.
unsafe impl StartsAsZeros for Own {}

per_thread! { static OWN: Own = Own(Cell::new((0, 0)), Cell::new(0)); }

/// So often in vain, and no more: the stack is too deep.
const ATTEMPTS: u32 = 4;

const fn page(at: usize) -> usize {
    at & !(PAGE - 1)
}

/// Whether the page of `at` can be read.
fn can_be_read(at: usize) -> bool {
    const NO_SUCH_CHANGE: libc::c_int = -1;
    if page(at) == 0 {
        // A mask that is not there need not be read.
        return false;
    }
    // SAFETY: the kernel reads eight bytes, or says that it cannot; it changes
    // nothing, since there is no such change.
    let asked = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_CHANGE, page(at), 0usize, 8usize)
    };
    // SAFETY: the location is the calling thread's own.
    // Anything else but "no such change" may come before it was read: a filter's refusal, say.
    asked == 0 || unsafe { *libc::__errno_location() } == libc::EINVAL
}

/// Where the calling thread's own stack ends, if `sp`, at which it is, lies in the part
/// that is known: all from there to the end can be read. A multiple of 8.
#[inline]
pub fn own_end(sp: usize) -> Option<usize> {
    let (from, to) = OWN.with(|own| own.0.get());
    (from..to).contains(&sp).then_some(to)
}

/// A row of readable pages, that of the frame at hand among them.
pub struct Readable {
    from: usize,
    to: usize,
}

impl Readable {
    /// Around the stack pointer of the calling thread.
    #[inline]
    pub fn around(sp: usize) -> Self {
        let (from, to) = OWN.with(|own| own.0.get());
        if (from..to).contains(&sp) {
            return Self { from, to };
        }
        Self { from: page(sp), to: page(sp).wrapping_add(PAGE) }
    }

    /// Whether a walk from `sp` that has all the frames it wants is to go on, to learn whether
    /// that is the thread's own stack: else the kernel would be asked with each sample.
    #[cold]
    #[inline(never)]
    pub fn may_look_beyond(sp: usize) -> bool {
        OWN.with(|own| {
            let known = own_end(sp).is_some() || own.1.get() == ATTEMPTS;
            own.1.set(own.1.get() + u32::from(!known));
            !known
        })
    }

    /// Whether `sp` is in the part of the thread's own stack that is known.
    pub fn is_own(sp: usize) -> bool {
        own_end(sp).is_some()
    }

    /// Whether the word at `at`, a multiple of 8, can be read. Changes `errno`.
    #[inline]
    pub fn has(&mut self, at: usize) -> bool {
        (self.from..self.to).contains(&at) || self.find(at)
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, at: usize) -> bool {
        let (from, to) = OWN.with(|own| own.0.get());
        while self.to <= at && at - self.to < REACH {
            if self.to == from {
                self.to = to;
            } else if can_be_read(self.to) {
                self.to += PAGE;
            } else {
                return false;
            }
        }
        if (self.from..self.to).contains(&at) {
            return true;
        }
        // Another stack, or far up this one.
        *self = Self::around(at);
        (from..to).contains(&at) || can_be_read(at)
    }

    /// The walk that began at `sp` is over, and went straight: if it has come to the thread's
    /// own stack from right below what is known of that, it is deeper than was known.
    #[inline]
    pub fn extend(&mut self, sp: usize) {
        let (from, to) = OWN.with(|own| own.0.get());
        if to > 0 && self.from == page(sp) && self.from < from && self.to == to {
            OWN.with(|own| {
                own.0.set((self.from, to));
                own.1.set(0);
            });
        }
    }

    /// The walk that began at `sp`, on a stack that ends at `end`, is over: if it
    /// has come near that end without a gap, this is the thread's own.
    #[inline]
    pub fn remember(&mut self, sp: usize, end: usize) {
        if self.from == page(sp) && end.saturating_sub(self.to) < REACH && self.has(end - 1) {
            OWN.with(|own| {
                own.0.set((self.from, self.to));
                own.1.set(0);
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn map(pages: usize) -> usize {
        crate::engine::sys::map(pages * PAGE).expect("memory")
    }

    fn forbid(at: usize) {
        // SAFETY: a page of a mapping that nobody uses.
        unsafe { libc::mprotect(at as *mut _, PAGE, libc::PROT_NONE) };
    }

    #[test]
    fn the_kernel_tells_what_can_be_read() {
        let at = map(3);
        forbid(at + PAGE);
        let can = [0, 8, PAGE, 2 * PAGE - 8, 2 * PAGE].map(|offset| can_be_read(at + offset));
        assert_eq!(can, [true, true, false, false, true]);
        assert!(!can_be_read(8) && !can_be_read(usize::MAX - 4095));
    }

    #[test]
    fn a_row_ends_where_nothing_can_be_read() {
        let at = map(8);
        forbid(at + 5 * PAGE);
        let mut row = Readable::around(at + 100);
        assert!(row.has(at + 2 * PAGE + 8));
        assert_eq!((row.from, row.to), (at, at + 3 * PAGE));
        assert!(row.has(at + 5 * PAGE - 8) && !row.has(at + 5 * PAGE) && !row.has(at + 6 * PAGE));
        // And nothing of it is remembered: it is no thread's own.
        row.remember(at + 100, at + 6 * PAGE);
        assert_eq!(Readable::around(at + PAGE).from, at + PAGE);
    }

    #[test]
    fn a_threads_own_stack_is_asked_about_once() {
        std::thread::spawn(|| {
            let local = 0u64;
            let sp = &raw const local as usize;
            let end = map(8) + 8 * PAGE - 8;
            // As if the stack were that mapping.
            let at = end - 3 * PAGE;
            let mut row = Readable::around(at);
            row.remember(at, end);
            let again = Readable::around(end - 16);
            assert_eq!((again.from, again.to), (page(at), page(end) + PAGE));
            // What lies deeper is joined to it.
            let mut deeper = Readable::around(at - 2 * PAGE);
            assert!(deeper.has(end - 8));
            deeper.remember(at - 2 * PAGE, end);
            assert_eq!(Readable::around(end - 16).from, page(at) - 2 * PAGE);
            assert_ne!(page(sp), page(at));
        })
        .join()
        .unwrap();
    }
}
