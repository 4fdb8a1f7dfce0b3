//! What the system knows of the target's memory: resident by kind, and what limits it.
//!
//! Read from `/proc` by the viewer, about once a second, while somebody looks. Only files
//! whose making takes nothing from the target are read: `status` is a few counters.
//! `smaps` and `smaps_rollup` walk the target's page tables under the lock that its own
//! `mmap` and `munmap` need, so they are not.
//!
//! **What the allocator holds back is not asked for.** glibc tells it by `mallinfo2`, which
//! takes each arena's lock and walks its free chunks: measured, 21 ms with 48,000 of them
//! and 645 ms with 1.6 million. The target's `malloc` would wait for as long. So it stands
//! as unknown, within what is unexplained.

use std::fs;
use std::path::{Path, PathBuf};

/// See the module. Bytes; `None` where it is not to be had, or there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Resident memory that no file stands behind.
    pub anonymous: Option<u64>,
    /// Resident memory of files: code, libraries, what is mapped.
    pub files: Option<u64>,
    /// Resident memory that may be shared; the agent's own is.
    pub shared: Option<u64>,
    /// The nearest limit of a control group, and what all in it take.
    pub group: Option<Limit>,
    /// `RLIMIT_AS`, and the address space in use.
    pub space: Option<Limit>,
    /// `RLIMIT_DATA`, and the data in use.
    pub data: Option<Limit>,
    /// Memory that the machine could still give.
    pub available: Option<u64>,
    /// All that it has.
    pub machine: Option<u64>,
}

/// A limit in bytes, and how much of it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// It cannot be more.
    pub most: u64,
    /// It is so much.
    pub taken: u64,
}

impl Limit {
    /// What is left.
    #[must_use]
    pub const fn left(self) -> u64 {
        self.most.saturating_sub(self.taken)
    }
}

impl Memory {
    /// Reads it all; what cannot be read is unknown.
    #[must_use]
    pub fn read(pid: u32) -> Self {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let status = text(&proc.join("status"));
        let limits = text(&proc.join("limits"));
        let machine = text(Path::new("/proc/meminfo"));
        let limit = |name: &str, taken: &str| {
            let most = in_limits(&limits, name)?;
            Some(Limit { most, taken: in_kib(&status, taken)? })
        };
        Self {
            anonymous: in_kib(&status, "RssAnon"),
            files: in_kib(&status, "RssFile"),
            shared: in_kib(&status, "RssShmem"),
            group: group(Path::new("/sys/fs/cgroup"), &text(&proc.join("cgroup"))),
            space: limit("Max address space", "VmSize"),
            data: limit("Max data size", "VmData"),
            available: in_kib(&machine, "MemAvailable"),
            machine: in_kib(&machine, "MemTotal"),
        }
    }
}

/// A line `Name:   123 kB`, in bytes.
fn in_kib(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit in a line of `/proc/PID/limits`.
fn in_limits(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The limit of the control groups of version 2 that leaves least, from the process' own to
/// the root: those above hold as well. `lines` are of `/proc/PID/cgroup`.
fn group(root: &Path, lines: &str) -> Option<Limit> {
    let own = lines.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // What it says is the target's: it must not lead elsewhere.
    if own.split('/').any(|part| part == "..") {
        return None;
    }
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let here = root.join(own);
    here.ancestors()
        .take_while(|path| path.starts_with(root))
        .filter_map(|path| {
            let most = number(path.join("memory.max"))?;
            Some(Limit { most, taken: number(path.join("memory.current"))? })
        })
        .min_by_key(|limit| limit.left())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let status = "Name:\tx\nVmSize:\t  2048 kB\nRssAnon:\t     512 kB\nRssFile:\t1 kB\n";
        assert_eq!(in_kib(status, "RssAnon"), Some(512 << 10));
        assert_eq!(in_kib(status, "Rss"), None, "a whole name");
        assert_eq!(in_kib("RssAnon: many kB", "RssAnon"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         1048576              unlimited            bytes\n";
        assert_eq!(in_limits(limits, "Max address space"), Some(1 << 20));
        assert_eq!(in_limits(limits, "Max data size"), None, "there is none");
    }

    #[test]
    fn the_control_group_that_leaves_least_counts() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("a/b");
        fs::create_dir_all(&own).unwrap();
        let put = |path: &str, most: &str, taken: &str| {
            fs::write(root.path().join(path).join("memory.max"), most).unwrap();
            fs::write(root.path().join(path).join("memory.current"), taken).unwrap();
        };
        put("a/b", "max\n", "10\n");
        assert_eq!(group(root.path(), "0::/a/b\n"), None, "no limit");
        put("a", "100\n", "40\n");
        assert_eq!(group(root.path(), "0::/a/b\n"), Some(Limit { most: 100, taken: 40 }));
        put("a/b", "30\n", "10\n");
        assert_eq!(group(root.path(), "1:x:/\n0::/a/b\n"), Some(Limit { most: 30, taken: 10 }));
        assert_eq!(group(root.path(), "0::/../a\n"), None);
    }

    #[test]
    fn our_own_memory_is_known() {
        let memory = Memory::read(std::process::id());
        assert!(memory.anonymous.is_some_and(|bytes| bytes > 0), "{memory:?}");
        assert!(memory.machine >= memory.available, "{memory:?}");
        assert_eq!(Memory::read(u32::MAX).anonymous, None);
    }
}
