//! Stacks of our own, to look things up on.
//!
//! Evaluating an unwind table takes some kibibytes of stack, and a sample can be
//! taken where a program has few left: in a coroutine, on a signal's alternate
//! stack, in a thread with a small one. So it is done elsewhere. A few stacks are
//! mapped once; who needs one takes a free one by compare-and-swap. If all are
//! taken, or there are none, it is done on the stack at hand.

use crate::engine::sync::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    scaled, shared,
};
use std::ffi::c_void;

const STACKS: usize = scaled(16, 1);
/// Enough for a table, and for a signal handler that comes meanwhile. Touched
/// only as far as it is used.
const BYTES: usize = 128 << 10;

shared! {
    /// Where they lie; 0 before [`prime`], and where they could not be had.
    static BASE: AtomicUsize = AtomicUsize::new(0);
    static TAKEN: [AtomicBool; STACKS] = AtomicBool::new(false);
}

/// Maps them: once, before `main`.
pub fn prime() {
    if BASE.load(Relaxed) != 0 {
        return;
    }
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            STACKS * BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at != libc::MAP_FAILED {
        BASE.store(at as usize, Release);
    }
}

/// In a forked child, where the threads that had taken the stacks are not.
pub fn after_fork() {
    for taken in &TAKEN[..] {
        taken.store(false, Relaxed);
    }
}

/// Runs `f` on another stack, if one is to be had. `f` must not unwind, and must
/// not use much of the stack if none is.
#[inline(never)]
pub fn run<T: Copy>(initial: T, f: impl Fn() -> T) -> T {
    let base = BASE.load(Acquire);
    // Partner of the Release below: the next owner comes after the last one's use.
    let free = |t: &&AtomicBool| t.compare_exchange(false, true, Acquire, Relaxed).is_ok();
    let Some((i, taken)) =
        (base != 0).then(|| TAKEN.iter().enumerate().find(|(_, t)| free(t))).flatten()
    else {
        return f();
    };
    let mut job = Job { f: &f, result: initial };
    // SAFETY: the stack is ours while `taken` is set, its end is aligned to 16
    // bytes, and `job` outlives the call, which returns here as any call does.
    unsafe { on_stack((&raw mut job).cast(), work::<T>, base + (i + 1) * BYTES) };
    taken.store(false, Release);
    job.result
}

struct Job<'a, T> {
    f: &'a dyn Fn() -> T,
    result: T,
}

extern "C" fn work<T>(job: *mut c_void) {
    // SAFETY: the pointer is to the job that `run` lent.
    let job = unsafe { &mut *job.cast::<Job<'_, T>>() };
    job.result = (job.f)();
}

/// Calls `f(argument)` with the stack pointer at `top`.
#[unsafe(naked)]
unsafe extern "C" fn on_stack(argument: *mut c_void, f: extern "C" fn(*mut c_void), top: usize) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::unwind::mark;
    use std::hint::black_box;

    #[test]
    fn work_is_done_on_another_stack() {
        prime();
        let (here, there) = (mark(), run(0, mark));
        assert!(here.abs_diff(there) > 1 << 20 || BASE.load(Relaxed) == 0);
        let base = BASE.load(Relaxed);
        assert!((base..base + STACKS * BYTES).contains(&there));
    }

    #[test]
    fn threads_do_not_share_one() {
        prime();
        std::thread::scope(|scope| {
            for t in 0..24u64 {
                scope.spawn(move || {
                    for i in 0..2000 {
                        let sum = run(0, || {
                            let numbers = black_box([t * 1000 + i; 200]);
                            numbers.iter().sum::<u64>()
                        });
                        assert_eq!(sum, (t * 1000 + i) * 200);
                    }
                });
            }
        });
        assert!(TAKEN.iter().all(|t| !t.load(Relaxed)));
    }
}
