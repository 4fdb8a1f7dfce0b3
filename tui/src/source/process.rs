//! Whether a target lives.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process, held by a descriptor where the kernel has such, so that its number
/// cannot come to mean another.
pub(super) struct Process {
    pid: u32,
    fd: Option<OwnedFd>,
}

impl Process {
    /// The process with this pid.
    pub(super) fn new(pid: u32) -> Self {
        let fd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, fd }
    }

    /// Waits until it has ended, `time` at most, and says whether it has.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let Some(fd) = &self.fd else {
            return !std::path::Path::new(&format!("/proc/{}", self.pid)).exists();
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref()) {
                Ok(n) => return n > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}
