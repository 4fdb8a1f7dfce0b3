//! Callstacks of the running thread.
//!
//! Two ways, which read the same tables (`.eh_frame`), so stacks are whole through
//! code without frame pointers either way:
//!
//! - [`cfi`], ours, for what compilers make of ordinary functions: a rule for each
//!   return address, kept in a cache for the whole process; and [`memo`], which does
//!   the same where nothing is out of the ordinary, and remembers the last stack;
//! - [`portable`], libgcc's, ten to twenty times slower, where there is no such way: on
//!   other machines, and before glibc 2.35.
//!
//! Where the program asks for it there is a third, [`frame_pointers`].

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod cfi;
/// Elsewhere the portable way does it all.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod cfi {
    pub fn walk(_: &mut super::Stack, _: &super::Mark, _: usize) -> bool {
        false
    }
    pub fn prime() {}
    pub fn forget() {}
}
pub mod fingerprint;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod frame_pointers;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod memo;
mod portable;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod readable;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod scratch;

// Not modelled: written before there is a second thread.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Most frames that can be captured.
pub const MAX_DEPTH: usize = 128;

/// Why a stack ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It reaches the thread's first function.
    Complete,
    /// There are more frames than were asked for.
    Truncated,
    /// What lies beyond has no tables, or cannot be read.
    NoUnwindInfo,
}

/// Return addresses, innermost first.
pub struct Stack {
    frames: [u64; MAX_DEPTH],
    len: usize,
    end: End,
}

impl Stack {
    /// An empty one. A kibibyte: kept in one place and lent from there.
    pub const fn new() -> Self {
        Self { frames: [0; MAX_DEPTH], len: 0, end: End::Complete }
    }

    const fn clear(&mut self) {
        self.len = 0;
        self.end = End::Complete;
    }

    /// Innermost first.
    pub fn frames(&self) -> &[u64] {
        self.frames.get(..self.len).unwrap_or(&[])
    }

    /// Why it ends.
    pub const fn end(&self) -> End {
        self.end
    }

    /// What lies beyond is not known: the stack is as whole as it will be.
    const fn ends_blind(&mut self) {
        self.end = End::NoUnwindInfo;
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
                self.end = End::Truncated;
                false
            }
        }
    }
}

/// A captured stack, as it is lent to who interns it.
pub struct Captured<'a> {
    frames: Frames<'a>,
    /// Its fingerprint: [`fingerprint`].
    pub print: u64,
    /// Why it ends.
    pub end: End,
}

enum Frames<'a> {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    RootFirst(&'a [memo::Step]),
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    InnerFirst(&'a [memo::Step]),
    Plain(&'a [u64]),
}

impl<'a> Captured<'a> {
    /// Of these frames, innermost first.
    pub fn of(frames: &'a [u64], end: End) -> Self {
        let print = fingerprint::of(frames.iter().rev().copied(), frames.len(), end);
        Self { frames: Frames::Plain(frames), print, end }
    }

    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    const fn root_first(steps: &'a [memo::Step], print: u64, end: End) -> Self {
        Self { frames: Frames::RootFirst(steps), print, end }
    }

    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    const fn inner_first(steps: &'a [memo::Step], print: u64, end: End) -> Self {
        Self { frames: Frames::InnerFirst(steps), print, end }
    }

    /// Its frames' number.
    pub const fn len(&self) -> usize {
        match self.frames {
            #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
            Frames::RootFirst(steps) | Frames::InnerFirst(steps) => steps.len(),
            Frames::Plain(frames) => frames.len(),
        }
    }

    /// The frames, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|at| match self.frames {
            #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
            Frames::RootFirst(steps) => steps.iter().nth_back(at).map(|step| step.frame),
            #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
            Frames::InnerFirst(steps) => steps.get(at).map(|step| step.frame),
            Frames::Plain(frames) => frames.get(at).copied(),
        })
    }
}

/// The frame of a function: where it was executing, with which registers.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// An address in it.
    pub pc: usize,
    /// Its stack pointer there.
    pub sp: usize,
    /// And its rbp; on other machines 0.
    pub rbp: usize,
}

/// Marks the frame of the calling function, which must not be inlined, and must not
/// have returned where the mark is used.
#[inline(always)]
pub fn mark() -> Mark {
    #[cfg(target_arch = "x86_64")]
    {
        let (pc, sp, rbp): (usize, usize, usize);
        // SAFETY: reads three registers.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                out(reg) pc, out(reg) sp, out(reg) rbp,
                options(nomem, nostack, preserves_flags));
        }
        Mark { pc, sp, rbp }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let sp: usize;
        // SAFETY: reads a register.
        unsafe {
            std::arch::asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags));
        }
        Mark { pc: 0, sp, rbp: 0 }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let local = 0u8;
        Mark { pc: 0, sp: &raw const *std::hint::black_box(&local) as usize, rbp: 0 }
    }
}

/// Puts the calling thread's return addresses into `stack`, innermost first, at
/// most `depth` of them, from the caller of the marked function on.
#[inline(never)]
pub fn capture(stack: &mut Stack, mark: &Mark, depth: usize) {
    stack.clear();
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if FRAME_POINTERS.load(Relaxed) {
        return frame_pointers::walk(stack, mark, depth);
    }
    if !cfi::walk(stack, mark, depth) {
        portable::walk(stack, mark, depth);
    }
}

/// Whether stacks are walked by frame pointers. Set once, before the first is.
static FRAME_POINTERS: AtomicBool = AtomicBool::new(false);

/// From now on stacks are walked by frame pointers, where there is that way.
pub fn by_frame_pointers() {
    FRAME_POINTERS.store(true, Relaxed);
}

/// Gives `then` the calling thread's stack from `mark` on, at most `depth` frames of
/// it. `thread` is the thread's number, or any other.
#[inline]
pub fn with_stack<T>(
    mark: &Mark,
    depth: usize,
    thread: u32,
    then: impl Fn(&Captured<'_>) -> T,
) -> T {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if !FRAME_POINTERS.load(Relaxed)
        && let Some(told) = memo::capture(mark, depth, thread, &then)
    {
        return told;
    }
    with_any_stack(mark, depth, then)
}

#[cold]
#[inline(never)]
fn with_any_stack<T>(mark: &Mark, depth: usize, then: impl Fn(&Captured<'_>) -> T) -> T {
    let mut stack = Stack::new();
    capture(&mut stack, mark, depth);
    then(&Captured::of(stack.frames(), stack.end()))
}

/// The same with an address that stands innermost, of no code.
#[cold]
#[inline(never)]
pub fn with_stack_below<T>(
    innermost: u64,
    mark: &Mark,
    depth: usize,
    then: impl Fn(&Captured<'_>) -> T,
) -> T {
    let mut stack = Stack::new();
    capture(&mut stack, mark, depth.min(MAX_DEPTH - 1));
    let (len, depth) = (stack.len, depth.min(MAX_DEPTH));
    stack.frames.copy_within(..len, 1);
    stack.frames[0] = innermost;
    stack.len = (len + 1).min(depth);
    if len + 1 > depth {
        stack.end = End::Truncated;
    }
    then(&Captured::of(stack.frames(), stack.end()))
}

/// Prepares the way that there is, outside of any allocation: once, before `main`.
pub fn prime() {
    cfi::prime();
    capture(&mut Stack::new(), &mark(), MAX_DEPTH);
}

/// The caller runs on a thread that glibc made, where nothing is in a hurry: how its stack
/// ends tells the stacks of others from those that a program makes for itself.
pub fn note_root() {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    {
        let mut stack = Stack::new();
        capture(&mut stack, &mark(), MAX_DEPTH);
        cfi::note_root(&stack);
    }
}

/// In a forked child: what other threads of the parent were at is free again.
pub fn after_fork() {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    {
        scratch::after_fork();
        memo::after_fork();
    }
}

/// Code may have been unloaded: what is known of addresses is forgotten.
pub fn forget() {
    cfi::forget();
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    memo::forget();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    fn at(depth: u32, limit: usize) -> Stack {
        if depth == 0 {
            let mut stack = Stack::new();
            capture(&mut stack, &mark(), limit);
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
        let done = cfi::walk(&mut ours, &inner, depth);
        portable::walk(&mut theirs, &inner, depth);
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
                    assert_eq!(ours.end(), theirs.end());
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
        capture(&mut whole, &mark(), MAX_DEPTH);
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
        assert_eq!(deep.end(), End::Complete);
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
        assert_eq!(cut.end(), End::Truncated);
        assert_eq!(cut.frames(), &whole.frames()[..20]);
        let none = at(3, 0);
        assert_eq!((none.frames().len(), none.end()), (0, End::Truncated));
    }
}
