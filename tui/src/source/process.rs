//! Whether a target lives, and how it ended.
//!
//! We are not its parent, so nobody tells us its status. It stands in `/proc` while
//! the process waits to be reaped, and from then on the kernel tells who holds a
//! descriptor of it, from Linux 6.15 on. Between the two, and before 6.15, it is
//! unknown.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::ioctl::{Updater, ioctl, opcode};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process, held by a descriptor where the kernel has such, so that its number
/// cannot come to mean another.
pub(super) struct Process {
    pid: u32,
    fd: Option<OwnedFd>,
    /// What ran in it at first.
    executable: Option<PathBuf>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Code(0) => f.write_str("has exited"),
            Self::Code(code) => write!(f, "has exited with code {code}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

/// The program of a process, if we may know it. It is the same when its file is
/// replaced.
fn executable(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    Some(replaced.map_or_else(|| path.clone(), PathBuf::from))
}

/// The wait status of a process that has ended and was not reaped yet.
fn zombie_status(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status_in(&stat)
}

/// The process that started another, or took it over when that one ended.
pub(super) fn parent(pid: u32) -> Option<u32> {
    parent_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The parent in a line of `/proc/PID/stat`: the fourth field.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// For how long a process has run; `None`: there is none, or it has ended and waits to be
/// reaped.
pub(super) fn running_for(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    running_in(&stat, &uptime)
}

/// The same from a line of `/proc/PID/stat`, whose 22nd field is when it began, and from
/// `/proc/uptime`; what cannot be read is taken for the oldest of all.
fn running_in(stat: &str, uptime: &str) -> Option<Duration> {
    /// What the kernel counts in, for programs.
    const TICKS_PER_SECOND: f64 = 100.0;
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return None;
    }
    let number = |text: Option<&str>| text?.parse::<f64>().ok();
    let began = number(fields.nth(18)).map(|ticks| ticks / TICKS_PER_SECOND);
    let now = number(uptime.split_ascii_whitespace().next());
    let ran = began.zip(now).map(|(began, now)| (now - began).max(0.0));
    Some(ran.and_then(|ran| Duration::try_from_secs_f64(ran).ok()).unwrap_or(Duration::MAX))
}

/// The wait status in a line of `/proc/PID/stat`. Behind the name, which may hold
/// anything, the state is the third field and the status the 52nd.
fn status_in(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if fields.next()? != "Z" {
        return None;
    }
    fields.nth(48)?.parse().ok()
}

/// What the kernel tells of a process by its descriptor: the first version of its
/// record, all later ones begin like it.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

impl PidfdInfo {
    /// In `mask`: the exit code is asked for, or told.
    const EXIT: u64 = 1 << 3;
    const OPCODE: rustix::ioctl::Opcode = opcode::read_write::<Self>(0xff, 11);
}

/// The wait status of a process that was reaped.
#[allow(unsafe_code)]
fn reaped_status(fd: &OwnedFd) -> Option<i32> {
    let mut info = PidfdInfo { mask: PidfdInfo::EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel reads and writes a record of the size that the opcode holds,
    // which is this one's; on other descriptors than a process' it fails.
    unsafe { ioctl(fd, Updater::<{ PidfdInfo::OPCODE }, PidfdInfo>::new(&mut info)) }.ok()?;
    (info.mask & PidfdInfo::EXIT != 0).then_some(info.exit_code)
}

impl Process {
    /// The process with this pid.
    pub(super) fn new(pid: u32) -> Self {
        let fd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, fd, executable: executable(pid) }
    }

    /// Whether another program runs in the process by now (`exec`), as far as can be
    /// seen.
    pub(super) fn is_another_program(&self) -> bool {
        let now = executable(self.pid);
        now.is_some() && self.executable.is_some() && now != self.executable
    }

    /// How the process, which has ended, did so; `None` where that is not known.
    pub(super) fn how_it_ended(&self) -> Option<How> {
        // It may be reaped between the two looks, and a look comes too early for the
        // second only while it is not.
        (0..20)
            .find_map(|_| {
                let status = zombie_status(self.pid).or_else(|| reaped_status(self.fd.as_ref()?));
                if status.is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                status
            })
            .map(|status| match status & 0x7f {
                0 => How::Code(status >> 8 & 0xff),
                signal => How::Signal(signal),
            })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn ended(script: &str, reap: bool) -> Option<How> {
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::new(child.id());
        drop(child.stdin.take());
        assert!(process.ends_within(Duration::from_secs(60)));
        if reap {
            child.wait().unwrap();
        }
        let how = process.how_it_ended();
        child.wait().unwrap();
        how
    }

    #[test]
    fn a_process_that_was_not_reaped_tells_its_status() {
        assert_eq!(ended("read x; exit 0", false), Some(How::Code(0)));
        assert_eq!(ended("read x; exit 7", false), Some(How::Code(7)));
        assert_eq!(ended("read x; kill -KILL $$", false), Some(How::Signal(9)));
    }

    /// Where the kernel cannot tell, it is not made up.
    #[test]
    fn a_process_that_was_reaped_tells_the_truth_or_nothing() {
        let how = ended("read x; exit 3", true);
        assert!(matches!(how, Some(How::Code(3)) | None), "{how:?}");
        let how = ended("read x; kill -ABRT $$", true);
        assert!(matches!(how, Some(How::Signal(6)) | None), "{how:?}");
    }

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "1 ".repeat(48);
        assert_eq!(status_in(&format!("42 (a) Z 9 (b)) Z {rest}2304 0")), Some(2304));
        assert_eq!(status_in(&format!("42 (Z) S {rest}2304 0")), None);
        assert_eq!(status_in("42 (x) Z 1"), None);
        assert_eq!(status_in(""), None);
        assert_eq!(parent_in(&format!("42 (a) Z 9 (b)) S 17 {rest}")), Some(17));
        assert_eq!(parent_in("42 (x) S"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn how_long_a_process_has_run() {
        let stat = |state| format!("42 (a) Z 9 (b)) {state} {}12345 7 8", "1 ".repeat(18));
        let ran = |state| running_in(&stat(state), "223.95 12.00");
        assert_eq!(ran("S"), Some(Duration::from_millis(100_500)));
        assert_eq!((ran("Z"), ran("X")), (None, None));
        assert_eq!(running_in(&stat("S"), "1.0 0"), Some(Duration::ZERO));
        for (stat, uptime) in [("", "223.95"), (stat("S").as_str(), ""), ("42 (x) S 1 2", "5")] {
            assert_eq!(running_in(stat, uptime), Some(Duration::MAX), "{stat:?} {uptime:?}");
        }
        assert!(running_for(std::process::id()).is_some_and(|ran| ran < Duration::MAX));
        assert_eq!(running_for(1 << 30), None);
        let mut child = Command::new("true").spawn().unwrap();
        assert!(Process::new(child.id()).ends_within(Duration::from_secs(60)));
        assert_eq!(running_for(child.id()), None, "it was not reaped yet");
        child.wait().unwrap();
    }

    #[test]
    fn a_child_knows_its_parent() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert_eq!(parent(child.id()), Some(std::process::id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(parent(child.id()), None);
    }

    #[test]
    fn ends_are_told_in_words() {
        assert_eq!(How::Code(0).to_string(), "has exited");
        assert_eq!(How::Code(2).to_string(), "has exited with code 2");
        assert_eq!(How::Signal(9).to_string(), "was killed by SIGKILL");
        assert_eq!(How::Signal(40).to_string(), "was killed by signal 40");
    }
}
