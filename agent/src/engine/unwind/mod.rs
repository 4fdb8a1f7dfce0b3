//! Callstacks of the running thread.
//!
//! Two ways, which read the same tables (`.eh_frame`), so stacks are whole through
//! code without frame pointers either way:
//!
//! - [`cfi`], ours, for what compilers make of ordinary functions: a rule for each
//!   return address, kept in a cache for the whole process;
//! - [`portable`], libgcc's, ten to twenty times slower, for all else. Where the
//!   first meets something that it does not handle, the stack is captured anew by
//!   the second.

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod cfi;
/// Elsewhere the portable way does it all.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod cfi {
    pub fn walk(_: &mut super::Stack, _: usize, _: usize) -> bool {
        false
    }
    pub fn prime() {}
    pub fn forget() {}
}
mod portable;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod readable;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod scratch;

/// Most frames that can be captured.
pub const MAX_DEPTH: usize = 128;

/// Return addresses, innermost first.
pub struct Stack {
    frames: [u64; MAX_DEPTH],
    len: usize,
    truncated: bool,
}

impl Stack {
    /// An empty one. A kibibyte: kept in one place and lent from there.
    pub const fn new() -> Self {
        Self { frames: [0; MAX_DEPTH], len: 0, truncated: false }
    }

    const fn clear(&mut self) {
        self.len = 0;
        self.truncated = false;
    }

    /// Innermost first.
    pub fn frames(&self) -> &[u64] {
        self.frames.get(..self.len).unwrap_or(&[])
    }

    /// Whether the thread's first function lies beyond.
    pub const fn truncated(&self) -> bool {
        self.truncated
    }

    /// What lies beyond cannot be read: the stack is as whole as it will be.
    const fn cut(&mut self) -> bool {
        self.truncated = true;
        true
    }

    /// Adds a frame; false if there are `depth` already.
    #[inline]
    fn push(&mut self, pc: usize, depth: usize) -> bool {
        match self.frames.get_mut(self.len) {
            Some(slot) if self.len < depth => {
                *slot = pc as u64;
                self.len += 1;
                true
            }
            _ => {
                self.truncated = true;
                false
            }
        }
    }
}

/// Marks the frame of the calling function, which must not be inlined: by the stack
/// pointer. The address of a variable would do, if it were always on the stack: a
/// sanitizer may keep it elsewhere.
#[inline(always)]
pub fn mark() -> usize {
    let mark: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) mark, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) mark, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let local = 0u8;
        mark = &raw const *std::hint::black_box(&local) as usize;
    }
    mark
}

/// Puts the calling thread's return addresses into `stack`, innermost first, at
/// most `depth` of them. The frame that was marked, and those below it, are left out.
#[inline(never)]
pub fn capture(stack: &mut Stack, mark: usize, depth: usize) {
    stack.clear();
    if !cfi::walk(stack, mark, depth) {
        stack.clear();
        portable::walk(stack, mark, depth);
    }
}

/// Prepares both ways, outside of any allocation: once, before `main`.
pub fn prime() {
    cfi::prime();
    let mut stack = Stack::new();
    portable::walk(&mut stack, mark(), MAX_DEPTH);
    capture(&mut stack, mark(), MAX_DEPTH);
}

/// In a forked child: what other threads of the parent were at is free again.
pub fn after_fork() {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    scratch::after_fork();
}

/// Code may have been unloaded: what is known of addresses is forgotten.
pub fn forget() {
    cfi::forget();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    fn at(depth: u32, limit: usize) -> Stack {
        if depth == 0 {
            let mut stack = Stack::new();
            capture(&mut stack, mark(), limit);
            return stack;
        }
        black_box(at(black_box(depth) - 1, limit))
    }

    /// The same thread by both ways.
    #[inline(never)]
    fn both(depth: usize) -> (Stack, bool, Stack) {
        cfi::prime();
        let inner = mark();
        let (mut ours, mut theirs) = (Stack::new(), Stack::new());
        let done = cfi::walk(&mut ours, inner, depth);
        portable::walk(&mut theirs, inner, depth);
        (ours, done, theirs)
    }

    #[inline(never)]
    fn deep(n: u32, f: &mut dyn FnMut()) {
        if n == 0 {
            f();
        } else {
            deep(black_box(n) - 1, f);
        }
        black_box(n);
    }

    extern "C" fn compare(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
        SEEN.with_borrow_mut(|seen| {
            let (ours, done, theirs) = both(MAX_DEPTH);
            assert!(done, "there is nothing here that is not ordinary");
            assert_eq!(ours.frames(), theirs.frames());
            seen.push(ours.frames().len());
        });
        // SAFETY: qsort passes pointers to the elements of the array below.
        unsafe { *a.cast::<i32>() - *b.cast::<i32>() }
    }

    thread_local! {
        static SEEN: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(vec![]) };
    }

    #[test]
    fn both_ways_see_the_same() {
        for depth in [0, 1, 5, 40] {
            deep(depth, &mut || {
                for limit in [MAX_DEPTH, 7, 0] {
                    let (ours, done, theirs) = both(limit);
                    assert!(done);
                    assert_eq!(ours.frames(), theirs.frames());
                    assert_eq!(ours.truncated(), theirs.truncated());
                    forget();
                }
            });
        }
        // On another thread, and through C code.
        std::thread::spawn(|| {
            let mut numbers = [5, 3, 9, 1];
            // SAFETY: four elements of four bytes, and a comparison of them.
            unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 4, 4, Some(compare)) };
            assert_eq!(numbers, [1, 3, 5, 9]);
            assert!(SEEN.take().iter().all(|&n| n > 5));
        })
        .join()
        .unwrap();
    }

    extern "C" fn handler(_: i32) {
        let (ours, done, theirs) = both(MAX_DEPTH);
        assert!(done);
        assert_eq!(ours.frames(), theirs.frames());
        let mut whole = Stack::new();
        capture(&mut whole, mark(), MAX_DEPTH);
        assert!(whole.frames().len() + 2 >= theirs.frames().len());
        assert!(whole.frames().len() > 8, "it goes through the signal frame");
    }

    #[test]
    fn a_signal_frame_does_not_end_a_stack() {
        // SAFETY: the handler touches its own stack and asserts.
        unsafe {
            let h = handler as extern "C" fn(i32) as usize;
            libc::signal(libc::SIGUSR2, h);
            deep(6, &mut || {
                libc::raise(libc::SIGUSR2);
            });
        }
    }

    #[test]
    fn frames_go_outward_and_the_agents_own_are_left_out() {
        let (shallow, deep) = (at(1, MAX_DEPTH), at(11, MAX_DEPTH));
        assert_eq!(deep.frames().len(), shallow.frames().len() + 10);
        assert!(!deep.truncated());
        // The innermost eleven are the callers of the function with the mark: one
        // return address, repeated. Not one less: it is who allocated.
        let same = deep.frames().iter().take_while(|&&pc| pc == deep.frames()[0]).count();
        assert_eq!(same, 11, "{:x?}", deep.frames());
        // And the next is this test.
        let here = frames_go_outward_and_the_agents_own_are_left_out as fn() as usize as u64;
        assert!((here..here + 4096).contains(&deep.frames()[11]));
    }

    #[test]
    fn deep_stacks_are_cut_at_the_root() {
        let (whole, cut) = (at(40, MAX_DEPTH), at(40, 20));
        assert!(cut.truncated());
        assert_eq!(cut.frames(), &whole.frames()[..20]);
        let none = at(3, 0);
        assert_eq!((none.frames().len(), none.truncated()), (0, true));
    }
}
