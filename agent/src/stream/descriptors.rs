//! The agent's descriptors: which are still its own.
//!
//! A descriptor is a number in the program's table, and the program may close
//! them all, as daemons do, and open its own files under the same numbers. So
//! each is known by the device and inode of its socket, and is looked at before
//! every use: [`Listed::is_ours`]. One that is not ours any more is forgotten,
//! never used, never closed.
//!
//! A forked child closes those that are: a copy in a child would keep a
//! conversation open beyond the target's end, or a socket that nobody answers. A
//! fork between an `accept` and the listing leaves a copy in the child, which
//! does no more harm than that.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// The listening socket, the region's file, and the viewers'.
const ROOM: usize = super::MAX_PEERS + 2;
const NONE: i32 = -1;

struct Slot {
    fd: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static LIST: [Slot; ROOM] = [const {
    Slot { fd: AtomicI32::new(NONE), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
}; ROOM];

/// Before `main`: puts `/dev/null` where standard input, output or error is closed, as
/// Rust's runtime is about to do. Else one of ours could come to lie there, and the
/// program would read from it or write to it.
pub fn fill_standard_ones() {
    for fd in 0..=2 {
        // SAFETY: no memory but a path that ends with a zero byte. What is opened takes
        // the lowest free number, which is this one.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
}

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

    /// What it named at first: device and inode.
    pub const fn identity(&self) -> Option<(u64, u64)> {
        self.identity
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
