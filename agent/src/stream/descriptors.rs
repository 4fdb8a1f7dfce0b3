//! The agent's descriptors, for a forked child to close: a copy in a child would
//! keep a conversation open beyond the target's end, or a socket that nobody
//! answers.
//!
//! The list must never name a descriptor that is closed already: its number may
//! be the program's by then. So [`Listed`] stands before the descriptor's owner
//! in its struct, and is dropped first. A fork between an `accept` and the
//! listing leaves a copy in the child, which does no more harm than that.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The listening socket and the viewers'.
const ROOM: usize = super::MAX_PEERS + 1;
const NONE: i32 = -1;

static LIST: [AtomicI32; ROOM] = [const { AtomicI32::new(NONE) }; ROOM];

/// A descriptor is on the list while this lives.
pub struct Listed(Option<&'static AtomicI32>);

impl Listed {
    /// Puts a descriptor on the list, if there is room.
    pub fn new(of: &impl AsFd) -> Self {
        let fd = of.as_fd().as_raw_fd();
        Self(LIST.iter().find(|s| s.compare_exchange(NONE, fd, Relaxed, Relaxed).is_ok()))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.store(NONE, Relaxed);
        }
    }
}

/// Has forked children close what is on the list.
pub fn close_in_children() {
    extern "C" fn close() {
        for slot in &LIST {
            let fd = slot.swap(NONE, Relaxed);
            if fd != NONE {
                // SAFETY: this runs in `fork` itself, in a child with one thread,
                // whose descriptors are those of the parent at that moment.
                unsafe { libc::close(fd) };
            }
        }
    }
    // SAFETY: the handler has the type asked for and lives for ever.
    unsafe { libc::pthread_atfork(None, None, Some(close)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_closes_what_is_listed_and_nothing_else() {
        close_in_children();
        let open = || std::fs::File::open("/dev/null").unwrap();
        let (ours, theirs, gone) = (open(), open(), open());
        let _listed = Listed::new(&ours);
        drop(Listed::new(&gone));
        let is_open = |f: &std::fs::File| {
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
