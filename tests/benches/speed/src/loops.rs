//! Loops that do little but allocate and free.
//!
//! What is counted by callgrind goes on in the functions named `measured_…`, which
//! the driver names to it. All blocks are touched once, as a program would.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::hint::black_box;
use std::ptr::null_mut;

/// Runs the loop of this name with `times` steps; `None` if there is none. A name
/// may end with `@depth`: so many more frames lie below it.
pub fn run(name: &str, times: u64) -> Option<u64> {
    let (name, depth) = name.split_once('@').unwrap_or((name, "0"));
    let depth = depth.parse().unwrap_or(0);
    let work: fn(u64) = match name {
        "nothing" => |_| (),
        "malloc" => mallocs,
        "free" => frees,
        "realloc" => reallocs,
        "pair" => measured_pairs,
        "w1" => w1,
        "w1t" => w1t,
        _ => return None,
    };
    below(depth, &mut || work(black_box(times)));
    Some(times)
}

/// Runs `work` so many frames further down.
#[inline(never)]
pub fn below(frames: u32, work: &mut dyn FnMut()) {
    if frames == 0 {
        work();
    } else {
        below(black_box(frames) - 1, work);
    }
    black_box(frames);
}

/// Bytes of each block that is counted: a usual size.
pub const BLOCK_BYTES: usize = 136;
const BLOCK: Layout = match Layout::from_size_align(BLOCK_BYTES, 8) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u64>(),
};

fn block(layout: Layout) -> *mut u8 {
    // SAFETY: no layout here is of size 0.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    block
}

#[inline(never)]
pub fn measured_pairs(times: u64) {
    for _ in 0..times {
        let block = black_box(block(BLOCK));
        // SAFETY: a block of that layout, freed once.
        unsafe { dealloc(block, BLOCK) };
    }
}

#[inline(never)]
pub fn measured_mallocs(into: &mut [*mut u8]) {
    for slot in into {
        *slot = block(BLOCK);
    }
}

#[inline(never)]
pub fn measured_frees(blocks: &mut [*mut u8]) {
    for slot in blocks {
        // SAFETY: each is a block of that layout, and not freed yet.
        unsafe { dealloc(*slot, BLOCK) };
    }
}

#[inline(never)]
pub fn measured_reallocs(blocks: &mut [*mut u8]) {
    for slot in blocks {
        // SAFETY: as above; the size stays, so that the layout does too.
        *slot = unsafe { realloc(*slot, BLOCK, BLOCK_BYTES) };
    }
}

fn mallocs(times: u64) {
    let mut slots = vec![null_mut(); times as usize];
    measured_mallocs(&mut slots);
    black_box(slots);
}

fn frees(times: u64) {
    let mut slots: Vec<_> = (0..times).map(|_| block(BLOCK)).collect();
    measured_frees(&mut slots);
}

fn reallocs(times: u64) {
    let mut slots: Vec<_> = (0..times).map(|_| block(BLOCK)).collect();
    measured_reallocs(&mut slots);
    black_box(slots);
}

/// Pairs over 1,024 live slots, 572 bytes in the mean, 26 frames deep: `times`
/// thousand of them.
fn w1(times: u64) {
    const SLOTS: usize = 1024;
    below(24, &mut || {
        let mut slots = [(null_mut::<u8>(), Layout::new::<u64>()); SLOTS];
        let mut x = 88_172_645_463_325_252u64;
        for _ in 0..times * 1000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let (old, layout) = slots[x as usize % SLOTS];
            if !old.is_null() {
                // SAFETY: what lies in a slot was made with the layout beside it.
                unsafe { dealloc(old, layout) };
            }
            let size = 8 + (x >> 32) as usize % 1129;
            let layout = Layout::from_size_align(size, 8).unwrap_or(BLOCK);
            let new = block(layout);
            // SAFETY: it has a byte.
            unsafe { new.write(1) };
            slots[x as usize % SLOTS] = (new, layout);
        }
        for (old, layout) in slots.into_iter().filter(|slot| !slot.0.is_null()) {
            // SAFETY: as above.
            unsafe { dealloc(old, layout) };
        }
    });
}

/// Pairs of 32 bytes: `times` thousand of them.
fn w1t(times: u64) {
    let layout = Layout::from_size_align(32, 8).unwrap_or(BLOCK);
    for _ in 0..times * 1000 {
        let block = black_box(block(layout));
        // SAFETY: a block of that layout, freed once.
        unsafe { dealloc(block, layout) };
    }
}
