//! Memory of the agent itself, whatever the program wraps. The program's allocator
//! may be capped, or fail at random to see what the program does about it, and what
//! the agent keeps is none of the program's.
//!
//! An allocation of the agent's is known by its thread, which reaches a stop with
//! each one; a free is known by the filter, into which each of these blocks is
//! entered, and by the thread.
//!
//! **A heap of its own.** Not malloc's: a second thread's first malloc takes an
//! arena of 64 MiB of address space, which a program under a limit may not have to
//! spare. Blocks up to [`LARGEST`] are powers of two, recycled by class and never
//! given back; they are cut from chunks, or, from [`CUT`] on, mapped each by
//! itself. What is larger is mapped, moved as it grows, and unmapped.
//!
//! **Who may touch it.** One thread at a time: the first, in the constructor, and
//! then the agent's, which the first one starts. So nothing here is contended, and
//! the atomics only spare a lock. A forked child that has a use for it finds it
//! whole: each step leaves at worst a block that nobody has.
//!
//! **Memory may run out**, under a limit on address space for one, and a `Vec` that
//! finds none aborts the program. So the agent's thread waits until there is some:
//! it may, since nobody waits for it. Births that find no room meanwhile are
//! counted as lost.

use super::sampled_set::{filter_add, filter_sub};
use super::{domain, sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{null_mut, with_exposed_provenance_mut};
// Not modelled: no two threads meet here.
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The least and the largest block that is recycled, as powers of two.
const SMALLEST_BITS: u32 = 4;
const LARGEST_BITS: u32 = 17;
const LARGEST: usize = 1 << LARGEST_BITS;
/// From this size on blocks are mapped each by itself.
const CUT: usize = 32 << 10;
/// What is mapped to cut the others from.
const CHUNK: usize = 128 << 10;
/// Blocks are aligned to their size, and to this at most.
const PAGE: usize = 4096;
/// Between two attempts to get memory.
const AGAIN_MS: u32 = 10;

const CLASSES: usize = (LARGEST_BITS - SMALLEST_BITS + 1) as usize;
/// By class, the first of the free blocks, each of which begins with the next one's
/// address; 0: none.
static FREE: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
/// What is left of the chunk.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Whether this thread allocates for the agent.
pub fn here() -> bool {
    domain::here(domain::Domain::is_agents)
}

/// Asks until there is memory; once, where the program would have to wait: in the
/// constructor, on its first thread.
fn insist(ask: impl Fn() -> *mut u8) -> *mut u8 {
    loop {
        let block = ask();
        if !block.is_null() || sys::is_first_thread() {
            return block;
        }
        sys::sleep_ms(AGAIN_MS);
    }
}

/// Whether the system has so many bytes now.
pub fn there_are(bytes: usize) -> bool {
    let block = map(bytes.max(1));
    if !block.is_null() {
        unmap(block, bytes.max(1));
    }
    !block.is_null()
}

fn map(bytes: usize) -> *mut u8 {
    sys::map(bytes).map_or(null_mut(), with_exposed_provenance_mut)
}

fn unmap(block: *mut u8, bytes: usize) {
    // SAFETY: a mapping of ours, of this size, that nobody uses any more.
    unsafe { libc::munmap(block.cast(), bytes) };
}

/// A block's size, and its class if it has one. `None` for alignments that nothing
/// here has: those are the system's allocator's.
fn shape(layout: Layout) -> Option<(usize, Option<usize>)> {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST_BITS);
    if layout.align() > PAGE {
        return None;
    }
    if bytes > LARGEST {
        return Some((bytes, None));
    }
    let bytes = bytes.next_power_of_two();
    Some((bytes, Some((bytes.trailing_zeros() - SMALLEST_BITS) as usize)))
}

/// A block of the system's, or recycled: then it is not zero.
fn take(bytes: usize, class: Option<usize>) -> (*mut u8, bool) {
    let Some(free) = class.and_then(|class| FREE.get(class)) else { return (map(bytes), true) };
    let first = free.load(Relaxed);
    if first != 0 {
        let block = with_exposed_provenance_mut::<usize>(first);
        // SAFETY: a free block is ours, aligned, and begins with the next one's address.
        free.store(unsafe { block.read() }, Relaxed);
        return (block.cast(), false);
    }
    if bytes >= CUT {
        return (map(bytes), true);
    }
    let mut at = NEXT.load(Relaxed).next_multiple_of(bytes.min(PAGE));
    if at + bytes > END.load(Relaxed) {
        at = map(CHUNK).addr();
        if at == 0 {
            return (null_mut(), true);
        }
        END.store(at + CHUNK, Relaxed);
    }
    NEXT.store(at + bytes, Relaxed);
    (with_exposed_provenance_mut(at), true)
}

fn give(block: *mut u8, bytes: usize, class: Option<usize>) {
    let Some(free) = class.and_then(|class| FREE.get(class)) else { return unmap(block, bytes) };
    let word = with_exposed_provenance_mut::<usize>(block.addr());
    // SAFETY: the block is ours again, aligned, and holds a word.
    unsafe { word.write(free.load(Relaxed)) };
    free.store(block.addr(), Relaxed);
}

/// A mapping of `old` bytes, with all that is in it, at its new size; null if there
/// is no room for that.
fn moved(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: the mapping is ours and of the old size.
    let at = unsafe { libc::mremap(block.cast(), old, new, libc::MREMAP_MAYMOVE) };
    let at = if at == libc::MAP_FAILED { copied(block, old, new) } else { at.cast() };
    if !at.is_null() {
        filter_sub(block.addr());
        filter_add(at.addr());
    }
    at
}

/// The same where a sandbox forbids to move it, for which nobody must wait.
fn copied(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    let at = map(new);
    if !at.is_null() {
        // SAFETY: both mappings are ours, as large as that, and not the same.
        unsafe { at.copy_from_nonoverlapping(block, old.min(new)) };
        unmap(block, old);
    }
    at
}

/// # Safety
///
/// As [`GlobalAlloc::alloc`]; `zeroed` as [`GlobalAlloc::alloc_zeroed`].
pub unsafe fn alloc(layout: Layout, zeroed: bool) -> *mut u8 {
    domain::here(|d| d.refund(layout.size()));
    let block = insist(|| {
        let Some((bytes, class)) = shape(layout) else {
            // SAFETY: the caller's contract is passed on.
            return unsafe { System.alloc_zeroed(layout) };
        };
        let (block, fresh) = take(bytes, class);
        if zeroed && !fresh {
            // SAFETY: the block is ours, and as large.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    });
    if !block.is_null() {
        filter_add(block.addr());
    }
    block
}

/// # Safety
///
/// As [`GlobalAlloc::dealloc`], for a block of ours.
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    filter_sub(block.addr());
    match shape(layout) {
        Some((bytes, class)) => give(block, bytes, class),
        // SAFETY: the caller's contract is passed on.
        None => unsafe { System.dealloc(block, layout) },
    }
}

/// # Safety
///
/// As [`GlobalAlloc::realloc`], for a block of ours.
pub unsafe fn realloc(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let Ok(new_layout) = Layout::from_size_align(new_size, layout.align()) else {
        return null_mut();
    };
    if shape(layout).is_some() && shape(layout) == shape(new_layout) {
        domain::here(|d| d.refund(new_size));
        return block;
    }
    if let (Some((old, None)), Some((new, None))) = (shape(layout), shape(new_layout)) {
        domain::here(|d| d.refund(new_size));
        return insist(|| moved(block, old, new));
    }
    // SAFETY: the caller's contract is passed on; the new block is as large as what
    // is copied, and another one.
    unsafe {
        let new = alloc(new_layout, false);
        if !new.is_null() {
            new.copy_from_nonoverlapping(block, layout.size().min(new_size));
            dealloc(block, layout);
        }
        new
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// In a child of its own, where each `mremap` is refused.
    fn grows_without_mremap() -> bool {
        let filter = [
            libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
            libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_mremap as u32 },
            libc::sock_filter {
                code: 0x06,
                jt: 0,
                jf: 0,
                k: libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            },
            libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the filter is live; the block is used as large as it is.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let mode = libc::SECCOMP_MODE_FILTER;
            if libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) != 0 {
                return false;
            }
            let block = map(1 << 20);
            block.write_bytes(7, 1 << 20);
            let larger = moved(block, 1 << 20, 3 << 20);
            if larger.is_null() || (0..1 << 20).any(|i| larger.add(i).read() != 7) {
                return false;
            }
            let smaller = moved(larger, 3 << 20, 1 << 18);
            !smaller.is_null() && (0..1 << 18).all(|i| smaller.add(i).read() == 7)
        }
    }

    #[test]
    fn what_may_not_be_moved_is_copied() {
        // SAFETY: the child makes system calls, and leaves.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::_exit(i32::from(!grows_without_mremap()));
            }
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        assert_eq!(status, 0);
    }

    /// All in one, since one thread at a time may touch the heap.
    #[test]
    fn blocks_are_whole_aligned_and_recycled() {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        let mut live: Vec<(*mut u8, Layout, u8)> = Vec::new();
        // SAFETY: each block is used with the layout that it was made with.
        unsafe {
            let check = |&(block, layout, stamp): &(*mut u8, Layout, u8)| {
                assert!((0..layout.size()).all(|i| block.add(i).read() == stamp), "{layout:?}");
            };
            for round in 0..3 {
                for (i, size) in
                    [1, 16, 17, 100, 4000, 5000, 40_000, 1 << 20, (1 << 20) + 1, 3 << 20]
                        .into_iter()
                        .cycle()
                        .take(60)
                        .enumerate()
                {
                    let layout = layout(size, 1 << (i % 13));
                    let block = alloc(layout, i % 2 == 0);
                    assert!(block.addr().is_multiple_of(layout.align()), "{layout:?}");
                    if i % 2 == 0 {
                        check(&(block, layout, 0));
                    }
                    let stamp = (round * 60 + i) as u8;
                    block.write_bytes(stamp, size);
                    live.push((block, layout, stamp));
                }
                live.iter().for_each(check);
                for (block, old, stamp) in &mut live {
                    let size = old.size() * 3 / 2 + 1;
                    let grown = realloc(*block, *old, size);
                    check(&(grown, *old, *stamp));
                    grown.write_bytes(*stamp, size);
                    (*block, *old) = (grown, layout(size, old.align()));
                }
                live.iter().for_each(check);
                live.drain(..).for_each(|(block, layout, _)| dealloc(block, layout));
            }
            let one = alloc(layout(100, 8), false);
            dealloc(one, layout(100, 8));
            assert_eq!(alloc(layout(120, 8), false), one, "of the same class");
            let wide = layout(10, 1 << 16);
            let block = alloc(wide, true);
            assert!(block.addr().is_multiple_of(1 << 16));
            dealloc(block, wide);
        }
    }
}
