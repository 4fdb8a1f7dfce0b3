//! All memory of the engine: one mapping, made once, never given back.
//!
//! Its size is the bound that the user set. Pages are touched as they are
//! needed, so what is not used costs address space only. Everything in it is
//! found by offset and linked by index, never by pointer, so that the mapping
//! could be shared with another process as it stands.
//!
//! Beside it lies one page that the kernel empties in a forked child: that is
//! how a child notices that it is one, also after `clone` and `_Fork`, where no
//! atfork handler runs, and how a `vfork` child, which shares our memory,
//! rightly does not.

use super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
// The kernel empties it: no atomic of a model.
use std::sync::atomic::AtomicU64 as Mark;

/// Types that are valid when all their bytes are zero, which is their default, and
/// may be shared.
///
/// # Safety
///
/// The implementor vouches for it.
pub unsafe trait Zeroable: Default + Sync + 'static {}

// SAFETY: an atomic of zero bytes is 0.
unsafe impl Zeroable for AtomicU64 {}
// SAFETY: as above.
unsafe impl Zeroable for AtomicU32 {}

/// A mapping from which slices are cut.
pub struct Region {
    base: usize,
    bytes: usize,
    cut: usize,
}

fn map(bytes: usize) -> Option<usize> {
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (at != libc::MAP_FAILED).then_some(at as usize)
}

impl Region {
    /// Maps `bytes`; `None` when the system refuses.
    pub fn new(bytes: usize) -> Option<Self> {
        let base = if cfg!(loom) { 0 } else { map(bytes)? };
        Some(Self { base, bytes, cut: 0 })
    }

    /// Cuts a slice of `n` to be shared; `None` when the region is used up.
    pub fn slice<T: Zeroable>(&mut self, n: usize) -> Option<&'static [T]> {
        self.slice_mut(n).map(|s| &*s)
    }

    /// Bytes that are left to cut.
    pub const fn rest_bytes(&self) -> usize {
        self.bytes - self.cut
    }

    /// Cuts a slice of `n` for one owner; `None` when the region is used up.
    pub fn slice_mut<T: Zeroable>(&mut self, n: usize) -> Option<&'static mut [T]> {
        let start = self.cut.next_multiple_of(align_of::<T>().max(64));
        let end = start.checked_add(n.checked_mul(size_of::<T>())?)?;
        if end > self.bytes {
            return None;
        }
        self.cut = end;
        if cfg!(loom) {
            return Some(Box::leak((0..n).map(|_| T::default()).collect()));
        }
        // SAFETY: the range lies within the mapping, which is never unmapped, is
        // aligned (the base to a page), cut only once, so that nothing else
        // refers to it, and zero, which is valid for T.
        Some(unsafe { std::slice::from_raw_parts_mut((self.base + start) as *mut T, n) })
    }
}

/// The page that a fork empties.
pub struct ForkMark(&'static Mark);

impl ForkMark {
    const HERE: u64 = 0x6865_6170_746F_7021;

    /// Sets up the page; `None` when the kernel cannot do that.
    pub fn new() -> Option<Self> {
        let bytes = 4096;
        let at = map(bytes)?;
        // SAFETY: the range was just mapped and is ours.
        if unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_WIPEONFORK) } != 0 {
            return None;
        }
        // SAFETY: page-aligned, mapped for ever, zero, and only used as an atomic.
        let mark = unsafe { &*(at as *const Mark) };
        mark.store(Self::HERE, Relaxed);
        Some(Self(mark))
    }

    /// Whether this is the process that set it up. Relaxed: the page is written
    /// once before anyone can ask, and emptied only in a process with one thread.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.0.load(Relaxed) == Self::HERE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_do_not_overlap_and_end_with_the_region() {
        let mut region = Region::new(4096).unwrap();
        let a = region.slice::<AtomicU64>(10).unwrap();
        let b = region.slice::<AtomicU64>(10).unwrap();
        a[9].store(1, Relaxed);
        assert!(b.iter().all(|w| w.load(Relaxed) == 0));
        assert!(region.slice::<AtomicU64>(1000).is_none());
        assert!(region.slice::<AtomicU64>(usize::MAX).is_none());
    }

    #[test]
    fn a_forked_child_is_noticed() {
        let mark = ForkMark::new().unwrap();
        assert!(mark.is_here());
        // SAFETY: the child does nothing but look and leave.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::_exit(i32::from(mark.is_here()));
            }
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        assert_eq!(status, 0, "the child took itself for the parent");
        assert!(mark.is_here());
    }
}
