//! The agent's descriptors: out of the program's way, and which are still its own.
//!
//! The agent's thread has a table of descriptors to itself: see [`separate`]. So
//! the program finds its numbers free, may close them all, as daemons do, and put
//! its own files under any, and nothing is inherited by its children. Only the
//! region, which is made before there is a thread, has a number, a high one, in the
//! program's table too.
//!
//! Where the system has no such thing, a descriptor is a number in the program's
//! table. So each is known by the device and inode of its socket, and is looked at before
//! every use: [`Listed::is_ours`]. One that is not ours any more is forgotten,
//! never used, never closed.
//!
//! A forked child closes those that are: a copy in a child would keep a
//! conversation open beyond the target's end, or a socket that nobody answers. A
//! fork between an `accept` and the listing leaves a copy in the child, which
//! does no more harm than that.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// The listening socket, the region's file, the recording, and the viewers'.
const ROOM: usize = super::MAX_PEERS + 3;
const NONE: i32 = -1;

/// A descriptor with what it named when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    fd: i32,
    identity: (u64, u64),
}

impl Known {
    /// What `fd` names now.
    pub fn new(fd: i32) -> Option<Self> {
        identity(fd).map(|identity| Self { fd, identity })
    }

    /// Its number.
    pub const fn fd(self) -> i32 {
        self.fd
    }

    /// Device and inode.
    pub const fn identity(self) -> (u64, u64) {
        self.identity
    }

    /// Whether the number still names it.
    pub fn is_ours(self) -> bool {
        identity(self.fd) == Some(self.identity)
    }
}

/// Gives the calling thread a table of descriptors of its own, with `kept` in it and
/// nothing else of the program's, whose pipes must not be held open. False, and
/// nothing changed, before Linux 5.9 and where a sandbox forbids it.
pub fn separate(kept: Option<Known>) -> bool {
    let kept = kept.filter(|known| known.is_ours()).and_then(|k| u32::try_from(k.fd).ok());
    let close = |first: u32, last: u32, flags: u32| {
        // SAFETY: what is closed in this thread's own table is not in use by it.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
    };
    let below = kept.map_or(u32::MAX, |fd| fd.saturating_sub(1));
    if !close(0, below, libc::CLOSE_RANGE_UNSHARE) {
        return false;
    }
    if let Some(fd) = kept {
        close(fd + 1, u32::MAX, 0);
    }
    // The first three numbers are written to by whoever has a message for a person,
    // as the runtime has when it panics: no viewer's socket may have them.
    for _ in 0..3 {
        // SAFETY: no memory involved.
        unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    }
    true
}

/// Closes all of the calling thread's table but the first three numbers, of which it keeps
/// those that [`separate`] has put there.
pub fn close_all() {
    // SAFETY: the table is this thread's own, and it uses none of them any more.
    unsafe { libc::syscall(libc::SYS_close_range, libc::STDERR_FILENO + 1, u32::MAX, 0) };
}

struct Slot {
    fd: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static LIST: [Slot; ROOM] = [const {
    Slot { fd: AtomicI32::new(NONE), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
}; ROOM];

/// What a descriptor names: device and inode. Async-signal-safe.
fn identity(fd: i32) -> Option<(u64, u64)> {
    // SAFETY: zero bytes are a valid `stat`, and it is valid for writing.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

/// A descriptor is on the list while this lives.
pub struct Listed {
    slot: Option<&'static Slot>,
    fd: i32,
    identity: Option<(u64, u64)>,
}

impl Listed {
    /// Puts a descriptor on the list, if there is room.
    pub fn new(of: &impl AsFd) -> Self {
        let fd = of.as_fd().as_raw_fd();
        let identity = identity(fd);
        let free = |s: &&Slot| s.fd.compare_exchange(NONE, fd, Relaxed, Relaxed).is_ok();
        let slot = LIST.iter().find(free);
        if let (Some(slot), Some((device, inode))) = (slot, identity) {
            slot.device.store(device, Relaxed);
            slot.inode.store(inode, Relaxed);
        }
        Self { slot, fd, identity }
    }

    /// The same for one that was known before.
    pub fn known(known: Known) -> Self {
        if !known.is_ours() {
            return Self { slot: None, fd: known.fd, identity: Some(known.identity) };
        }
        // SAFETY: it is open, and nobody closes it while it is looked at.
        Self::new(&unsafe { BorrowedFd::borrow_raw(known.fd) })
    }

    /// Whether the number still names what it named.
    pub fn is_ours(&self) -> bool {
        self.identity.is_some() && identity(self.fd) == self.identity
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.inode.store(0, Relaxed);
            slot.fd.store(NONE, Relaxed);
        }
    }
}

/// In a forked child: closes what is on the list and still the parent's. Needed
/// where the handler did not run, as after `_Fork`.
pub extern "C" fn close() {
    for slot in &LIST {
        let fd = slot.fd.swap(NONE, Relaxed);
        let listed = (slot.device.load(Relaxed), slot.inode.load(Relaxed));
        if fd != NONE && identity(fd) == Some(listed) {
            // SAFETY: this runs in `fork` itself or right after it, in a child with one
            // thread, whose descriptors are those of the parent at that moment.
            unsafe { libc::close(fd) };
        }
    }
}

/// Has forked children close what is on the list and still ours. Once.
pub fn close_in_children() {
    // SAFETY: the handler has the type asked for and lives for ever.
    unsafe { libc::pthread_atfork(None, None, Some(close)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_names_something_else_is_not_ours() {
        let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        let listed = Listed::new(&a);
        assert!(listed.is_ours());
        // SAFETY: both are open; `a` is then another name of what `b` names.
        unsafe { libc::dup2(b.as_raw_fd(), a.as_raw_fd()) };
        assert!(!listed.is_ours());
        drop(a);
        assert!(!listed.is_ours());
    }

    #[test]
    fn a_table_of_its_own_leaves_the_programs_alone() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (ours, theirs) = (ours.as_raw_fd(), theirs.as_raw_fd());
        // SAFETY: asking for flags changes nothing.
        let is_open = |fd: i32| unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 };
        std::thread::spawn(move || {
            let before = identity(ours);
            assert!(separate(Known::new(ours)));
            assert_eq!(identity(ours), before);
            assert!(!is_open(theirs));
            // SAFETY: nobody else has this number here.
            let next = unsafe { libc::dup(ours) };
            assert!(next > 2, "standard streams are not to be written to");
        })
        .join()
        .unwrap();
        assert!(is_open(ours) && is_open(theirs));
    }

    #[test]
    fn a_child_closes_what_is_listed_and_nothing_else() {
        close_in_children();
        let open = || std::os::unix::net::UnixStream::pair().unwrap().0;
        let (ours, theirs, gone) = (open(), open(), open());
        let _listed = Listed::new(&ours);
        drop(Listed::new(&gone));
        let is_open = |f: &std::os::unix::net::UnixStream| {
            // SAFETY: asking for flags changes nothing.
            unsafe { libc::fcntl(f.as_raw_fd(), libc::F_GETFD) >= 0 }
        };
        // SAFETY: the child does nothing but look and leave.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                let right = !is_open(&ours) && is_open(&theirs) && is_open(&gone);
                libc::_exit(i32::from(!right));
            }
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        assert_eq!(status, 0);
        assert!(is_open(&ours) && is_open(&theirs));
    }
}
