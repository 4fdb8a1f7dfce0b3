//! Memory of the agent itself: from the system's allocator, whatever the program
//! wraps. The program's may be capped, or fail at random to see what the program
//! does about it, and what the agent keeps is none of the program's.
//!
//! An allocation of the agent's is known by its thread, which reaches a stop with
//! each one; a free is known by the filter, into which each of these blocks is
//! entered, and by the thread.

use super::domain;
use super::sampled_set::{filter_add, filter_sub};
use std::alloc::{GlobalAlloc, Layout, System};

/// Whether this thread allocates for the agent.
pub fn here() -> bool {
    domain::here(domain::Domain::is_agents)
}

/// # Safety
///
/// As [`GlobalAlloc::alloc`]; `zeroed` as [`GlobalAlloc::alloc_zeroed`].
pub unsafe fn alloc(layout: Layout, zeroed: bool) -> *mut u8 {
    domain::here(|d| d.refund(layout.size()));
    // SAFETY: the caller's contract is passed on.
    let block = unsafe { if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) } };
    filter_add(block as usize);
    block
}

/// # Safety
///
/// As [`GlobalAlloc::dealloc`], for a block of ours.
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    filter_sub(block as usize);
    // SAFETY: the caller's contract is passed on.
    unsafe { System.dealloc(block, layout) }
}

/// # Safety
///
/// As [`GlobalAlloc::realloc`], for a block of ours.
pub unsafe fn realloc(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    domain::here(|d| d.refund(new_size));
    // SAFETY: the caller's contract is passed on.
    let new = unsafe { System.realloc(block, layout, new_size) };
    if !new.is_null() {
        filter_sub(block as usize);
        filter_add(new as usize);
    }
    new
}
