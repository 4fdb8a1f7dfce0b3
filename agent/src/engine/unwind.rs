//! Callstacks of the running thread: the portable way, by the unwinder that
//! every Rust program carries (libgcc's).
//!
//! It reads `.eh_frame`, so stacks are whole through code without frame
//! pointers. With glibc 2.35 and later and libgcc 12 and later it finds its
//! tables by `_dl_find_object`: no loader lock, no allocation. It is primed in
//! the constructor, so that what it sets up once is not set up inside malloc.

use std::ffi::{c_int, c_void};

/// Most frames that can be captured.
pub const MAX_DEPTH: usize = 128;

/// Return addresses, innermost first.
pub struct Stack {
    frames: [u64; MAX_DEPTH],
    len: usize,
    truncated: bool,
}

impl Stack {
    /// Innermost first.
    pub fn frames(&self) -> &[u64] {
        self.frames.get(..self.len).unwrap_or(&[])
    }

    /// Whether the thread's first function lies beyond.
    pub const fn truncated(&self) -> bool {
        self.truncated
    }
}

#[repr(C)]
struct Context {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
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
    // SAFETY: `context` is the unwinder's own and valid during this call.
    // What it calls a frame's CFA is the stack pointer in it: that of its callee.
    let (pc, sp) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    if sp <= state.inner || pc == 0 {
        return GO_ON;
    }
    if state.stack.len >= state.depth {
        state.stack.truncated = true;
        return ENOUGH;
    }
    if let Some(slot) = state.stack.frames.get_mut(state.stack.len) {
        *slot = pc as u64;
        state.stack.len += 1;
    }
    GO_ON
}

/// The calling thread's return addresses, innermost first, at most `depth` of
/// them. The frame that holds `marker`, a local variable of a function that
/// must not be inlined, and those below it are left out.
#[inline(never)]
pub fn capture(marker: *const u8, depth: usize) -> Stack {
    let mut stack = Stack { frames: [0; MAX_DEPTH], len: 0, truncated: false };
    let mut state =
        State { stack: &mut stack, depth: depth.min(MAX_DEPTH), inner: marker as usize };
    // SAFETY: the callback has the type that is asked for, and `state` outlives
    // the call.
    unsafe { _Unwind_Backtrace(frame, (&raw mut state).cast()) };
    stack
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    fn at(depth: u32, limit: usize) -> Stack {
        if depth == 0 {
            let marker = 0u8;
            return capture(&raw const *black_box(&marker), limit);
        }
        black_box(at(black_box(depth) - 1, limit))
    }

    #[test]
    fn frames_go_outward_and_the_agents_own_are_left_out() {
        let (shallow, deep) = (at(1, MAX_DEPTH), at(11, MAX_DEPTH));
        assert_eq!(deep.frames().len(), shallow.frames().len() + 10);
        assert!(!deep.truncated());
        // The innermost eleven are the callers of the function with the marker: one
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
