//! All memory of the engine: one mapping, made once, never given back.
//!
//! It is a file without a name where the system allows, so that a viewer which
//! holds a descriptor of it can read it when the target is dead. The file can be
//! neither resized nor written to from outside. Memory that is nobody's else is
//! taken where a file would be a danger: under a limit on the size of files, which
//! is enforced by a signal, and where memory is never overcommitted, so that a page
//! which cannot be had is a signal too.
//!
//! Its size is the bound that the user set. Pages are touched as they are
//! needed, so what is not used costs address space only. Everything in it is
//! found by offset and linked by index, never by pointer.
//!
//! A forked child must not touch the file: the hook looks at the fork mark before
//! it writes, and who has entered it already, where a signal handler forked, finds
//! zeros in the file's place: [`Region::leave_in_children`]. The region of a child that is
//! followed lies where its parent's did, if the fork found nobody at that: a program
//! that forks generation by generation has one region, not one for each. Were somebody
//! at it after all he would find memory there: [`Region::of_child`].
//!
//! Beside it lies one page that the kernel empties in a forked child: that is
//! how a child notices that it is one, also after `clone` and `_Fork`, where no
//! atfork handler runs, and how a `vfork` child, which shares our memory,
//! rightly does not. A child that is followed writes another word there than its parent
//! had.

use super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use super::{domain, sys};
// The kernel empties it: no atomic of a model.
use std::sync::atomic::{AtomicU64 as Mark, AtomicUsize};

/// Where the file of the one region lies that forked children leave.
static LIES_AT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// In a forked child: where a region lies that nobody in this process is at; 0: none.
static LEFT_AT: AtomicUsize = AtomicUsize::new(0);

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
    file: Option<i32>,
}

/// Descriptors below this are left to the program, which may count on theirs.
const LEAST_FD: i32 = 100;

/// Maps a file of `bytes` without a name: where it lies, and its descriptor. In the place
/// of what lies at `place`, if that is not 0.
fn map_file(bytes: usize, place: usize) -> Option<(usize, i32)> {
    if !file_is_safe(bytes) {
        return None;
    }
    // SAFETY: a descriptor of our own, which is closed on every way out but the
    // last; the mapping is fresh, or in the place of one that is ours and nobody's any more.
    unsafe {
        let low =
            libc::memfd_create(c"heaptop".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if low < 0 {
            return None;
        }
        let mut fd = libc::fcntl(low, libc::F_DUPFD_CLOEXEC, LEAST_FD);
        if fd < 0 {
            // Under a low limit on descriptors.
            fd = libc::fcntl(low, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1);
        }
        libc::close(low);
        if fd < 0 {
            return None;
        }
        let sized = libc::off_t::try_from(bytes).is_ok_and(|n| libc::ftruncate(fd, n) == 0);
        let fixed = if place == 0 { 0 } else { libc::MAP_FIXED };
        let at = if sized {
            libc::mmap(
                place as *mut _,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | fixed,
                fd,
                0,
            )
        } else {
            libc::MAP_FAILED
        };
        if at == libc::MAP_FAILED {
            libc::close(fd);
            return None;
        }
        // What one kernel does not know another does; the file is for reading anyway.
        let resize = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        libc::fcntl(fd, libc::F_ADD_SEALS, resize | libc::F_SEAL_FUTURE_WRITE);
        libc::fcntl(fd, libc::F_ADD_SEALS, resize | libc::F_SEAL_SEAL);
        Some((at as usize, fd))
    }
}

/// Whether a file of `bytes` can be had, and its pages later, without a signal.
fn file_is_safe(bytes: usize) -> bool {
    let mut overcommit = [0u8; 1];
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the path ends with a zero byte, the buffer has the length given, and
    // `limit` is valid for writing.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) != 0 {
            return false;
        }
        let path = c"/proc/sys/vm/overcommit_memory";
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return false;
        }
        let read = libc::read(fd, overcommit.as_mut_ptr().cast(), 1);
        libc::close(fd);
        read == 1 && overcommit != *b"2" && limit.rlim_cur >= bytes as libc::rlim_t
    }
}

/// Puts a value where it stays for ever; `None` when the system refuses the memory.
pub fn place<T>(value: T) -> Option<*mut T> {
    if cfg!(loom) {
        return Some(Box::into_raw(Box::new(value)));
    }
    let at = sys::map(size_of::<T>())? as *mut T;
    // SAFETY: the mapping is fresh, large enough and aligned to a page.
    unsafe { at.write(value) };
    Some(at)
}

impl Region {
    /// Maps `bytes`; `None` when the system refuses.
    pub fn new(bytes: usize) -> Option<Self> {
        if cfg!(loom) {
            return Some(Self { base: 0, bytes, cut: 0, file: None });
        }
        Self::at(bytes, 0)
    }

    /// The same in a forked child, whose parent's region had as many bytes: in its place,
    /// where the fork left nobody at it. Where no handler saw the fork, or it came in the midst
    /// of our own code, by a signal handler of the program's, that is not known, and the
    /// parent's stays. A region that is no file stays too.
    pub fn of_child(bytes: usize) -> Option<Self> {
        let left = LEFT_AT.swap(0, Relaxed);
        Self::at(bytes, if BYTES.load(Relaxed) == bytes { left } else { 0 })
    }

    fn at(bytes: usize, place: usize) -> Option<Self> {
        let (base, file) = match map_file(bytes, place) {
            Some((base, file)) => (base, Some(file)),
            // Not in that place, which may be another thread's by now.
            None => (sys::map(bytes)?, None),
        };
        Some(Self { base, bytes, cut: 0, file })
    }

    /// Has forked children map memory of their own in the file's place, and note whether
    /// somebody is at it.
    pub fn leave_in_children(&self) {
        extern "C" fn leave() {
            let (at, bytes) = (LIES_AT.load(Relaxed), BYTES.load(Relaxed));
            // This thread is the child's only one, and its agent's threads are gone.
            let outside = domain::here(domain::Domain::is_outside);
            LEFT_AT.store(if outside { at } else { 0 }, Relaxed);
            // SAFETY: the range is the engine's; it holds atomics and numbers, for which
            // zeros are values, and this child has no other thread. If it fails the
            // mapping is as it was.
            unsafe {
                libc::mmap(
                    at as *mut _,
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                    -1,
                    0,
                );
            }
        }
        if self.file.is_none() {
            return;
        }
        BYTES.store(self.bytes, Relaxed);
        // Once: children inherit the handler, and one that is followed may be within a
        // handler of the program's when it comes here, where none can be added.
        if LIES_AT.swap(self.base, Relaxed) == 0 {
            // SAFETY: the handler has the type asked for and lives for ever.
            unsafe { libc::pthread_atfork(None, None, Some(leave)) };
        }
    }

    /// The descriptor of the file that it is, if it is one.
    pub const fn file(&self) -> Option<i32> {
        self.file
    }

    /// Where a slice of this region begins, in bytes from the region's beginning.
    pub fn offset<T>(&self, slice: &[T]) -> u64 {
        (slice.as_ptr() as usize).wrapping_sub(self.base) as u64
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

/// The page that a fork empties, and the word that stands there while this process is the
/// one that set it up.
pub struct ForkMark {
    page: &'static Mark,
    word: u64,
}

impl ForkMark {
    const FIRST: u64 = 0x6865_6170_746F_7021;

    /// Sets up the page; `None` when the kernel cannot do that.
    pub fn new() -> Option<Self> {
        let bytes = 4096;
        let at = sys::map(bytes)?;
        // SAFETY: the range was just mapped and is ours.
        if unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_WIPEONFORK) } != 0 {
            return None;
        }
        // SAFETY: page-aligned, mapped for ever, zero, and only used as an atomic.
        let page = unsafe { &*(at as *const Mark) };
        page.store(Self::FIRST, Relaxed);
        Some(Self { page, word: Self::FIRST })
    }

    /// The mark of a forked child, on the page of its parent's, which stays one that this
    /// is not the process of.
    pub fn of_child(&self) -> Self {
        // Never 0 in any number of generations that a machine will see.
        let word = self.word.wrapping_add(1);
        self.page.store(word, Relaxed);
        Self { page: self.page, word }
    }

    /// Whether this is the process that set it up. Relaxed: the page is written before
    /// anyone can ask, once in a process, and emptied only in one with one thread.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.page.load(Relaxed) == self.word
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
    fn it_is_a_file_that_others_can_read_and_not_change() {
        let mut region = Region::new(1 << 20).unwrap();
        let words = region.slice::<AtomicU64>(8).unwrap();
        let more = region.slice::<AtomicU64>(8).unwrap();
        more[1].store(42, Relaxed);
        assert_eq!((region.offset(words), region.offset(more)), (0, 64));
        let fd = region.file().expect("a file");
        assert!(fd >= LEAST_FD);
        let path = format!("/proc/self/fd/{fd}");
        let seen = std::fs::read(&path).unwrap();
        assert_eq!((seen.len(), &seen[72..80]), (1 << 20, &42u64.to_le_bytes()[..]));
        let write = std::fs::OpenOptions::new().write(true).open(&path);
        if let Ok(file) = write {
            use std::io::Write;
            assert!((&file).write(&[1]).is_err());
            assert!(file.set_len(0).is_err());
        }
        words[0].store(7, Relaxed);
        assert_eq!(std::fs::read(&path).unwrap()[0], 7, "the agent itself writes on");
    }

    #[test]
    fn a_forked_child_is_noticed() {
        let mark = ForkMark::new().unwrap();
        assert!(mark.is_here());
        // SAFETY: the child does nothing but look and leave.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let noticed = !mark.is_here();
                let own = mark.of_child();
                libc::_exit(i32::from(!noticed || mark.is_here() || !own.is_here()));
            }
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        assert_eq!(status, 0, "the child took itself for the parent");
        assert!(mark.is_here());
    }
}
