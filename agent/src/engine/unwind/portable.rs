//! The portable way: the unwinder that every Rust program carries (libgcc's).
//!
//! It handles everything that `.eh_frame` can say. With glibc 2.35 and libgcc 12,
//! and later, it finds its tables by `_dl_find_object`: no loader lock, no
//! allocation. It is primed in the constructor, so that what it sets up once is
//! not set up inside malloc.

use super::{Mark, Stack};
use std::ffi::{c_int, c_void};

#[repr(C)]
struct Context {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut Context, before: *mut c_int) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
}

struct State<'a> {
    stack: &'a mut Stack,
    depth: usize,
    /// Frames whose stack pointer is not above this are the agent's own.
    inner: usize,
}

const GO_ON: c_int = 0;
const ENOUGH: c_int = 4;

extern "C" fn frame(context: *mut Context, state: *mut c_void) -> c_int {
    // SAFETY: `state` is the one that `capture` lent to this walk.
    let state = unsafe { &mut *state.cast::<State<'_>>() };
    let mut before = 0;
    // What it calls a frame's CFA is the stack pointer in it: that of its callee.
    // SAFETY: `context` is the unwinder's own and valid during this call.
    let (pc, sp) =
        unsafe { (_Unwind_GetIPInfo(context, &raw mut before), _Unwind_GetCFA(context)) };
    if sp <= state.inner || pc == 0 {
        return GO_ON;
    }
    // Behind a signal's frame the stack may be another one.
    state.inner = 0;
    // Where a signal interrupted: as if it were a return address.
    let pc = if before == 0 { pc } else { pc + 1 };
    if state.stack.push(pc, state.depth) { GO_ON } else { ENOUGH }
}

/// Adds the calling thread's return addresses to `stack`, as [`super::capture`]
/// says.
pub fn walk(stack: &mut Stack, mark: &Mark, depth: usize) {
    let mut state = State { stack, depth, inner: mark.sp };
    // SAFETY: the callback has the type that is asked for, and `state` outlives
    // the call.
    unsafe { _Unwind_Backtrace(frame, (&raw mut state).cast()) };
}
