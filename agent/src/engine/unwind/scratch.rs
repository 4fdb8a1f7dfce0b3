//! Stacks of our own, to look things up on.
//!
//! Evaluating an unwind table takes some kibibytes of stack, and a sample can be
//! taken where a program has few left: in a coroutine, on a signal's alternate
//! stack, in a thread with a small one. So it is done elsewhere. Who needs a stack
//! takes a free one by compare-and-swap, and maps it if nobody had it before: most
//! programs ever need one, and address space is not free where memory is locked. If
//! all are taken, or the system gives none, it is done on the stack at hand.

use crate::engine::sync::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    scaled, shared,
};
use crate::engine::sys;
use std::ffi::c_void;

const STACKS: usize = scaled(16, 1);
/// Enough for a table, which takes a third of it in code that is not optimised. Touched only as far as it is used.
const BYTES: usize = 28 << 10;
/// Below it, a page that nobody may touch.
const GUARD: usize = 4 << 10;

shared! {
    /// Where each lies; 0 before its first use. Only who has taken it looks.
    static AT: [AtomicUsize; STACKS] = AtomicUsize::new(0);
    static TAKEN: [AtomicBool; STACKS] = AtomicBool::new(false);
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
    // Partner of the Release below: the next owner comes after the last one's use.
    let free = |t: &&AtomicBool| t.compare_exchange(false, true, Acquire, Relaxed).is_ok();
    let Some((i, taken)) = TAKEN.iter().enumerate().find(|(_, t)| free(t)) else {
        return f();
    };
    let Some(base) = mapped(&AT[i]) else {
        taken.store(false, Release);
        return f();
    };
    // No handler of the program's may run here: it was promised another stack, with more room.
    let Some(undisturbed) = sys::Undisturbed::begin() else {
        taken.store(false, Release);
        return f();
    };
    let mut job = Job { f: &f, result: initial };
    // SAFETY: the stack is ours while `taken` is set, its end is aligned to 16
    // bytes, and `job` outlives the call, which returns here as any call does.
    unsafe { on_stack((&raw mut job).cast(), work::<T>, base + BYTES) };
    drop(undisturbed);
    taken.store(false, Release);
    job.result
}

/// Where a stack lies that the caller has taken.
fn mapped(at: &AtomicUsize) -> Option<usize> {
    let base = at.load(Relaxed);
    if base != 0 {
        return Some(base);
    }
    // Whatever goes beyond it is to end there, and not in what lies below.
    let all = sys::map(GUARD + BYTES)?;
    // SAFETY: the lowest page of what was just mapped.
    unsafe { libc::mprotect(all as *mut c_void, GUARD, libc::PROT_NONE) };
    let base = all + GUARD;
    at.store(base, Relaxed);
    Some(base)
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
        // All may be taken for a moment, by the other tests.
        let elsewhere = (0..1000).any(|_| {
            std::thread::yield_now();
            let there = run(0, || mark().sp);
            AT.iter().any(|at| {
                let base = at.load(Relaxed);
                base != 0 && (base..base + BYTES).contains(&there)
            })
        });
        assert!(elsewhere);
    }

    /// How much of the stacks was ever used, at most.
    pub fn used() -> usize {
        let of = |at: &AtomicUsize| match at.load(Relaxed) {
            0 => 0,
            // SAFETY: a mapping that stays, of bytes that a lookup may be changing.
            base => (0..BYTES)
                .find(|&offset| unsafe { *((base + offset) as *const u8) } != 0)
                .map_or(0, |first| BYTES - first),
        };
        AT.iter().map(of).max().unwrap_or(0)
    }

    #[test]
    fn tables_take_little_of_a_stack() {
        crate::engine::unwind::prime();
        crate::engine::unwind::forget();
        crate::engine::unwind::prime();
        let used = used();
        assert!((512..BYTES / 2).contains(&used), "{used}");
    }

    #[test]
    fn threads_do_not_share_one() {
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
