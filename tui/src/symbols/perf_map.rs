//! Names of code that lies in no file: a JIT may write them to
//! `/tmp/perf-PID.map`, with the pid and the `/tmp` of its own namespaces. One
//! line each: `START SIZE NAME`, the numbers hexadecimal.
//!
//! The file grows while the target runs, and code is replaced: of entries that
//! overlap the later one is right. It is read again when its size changes.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use super::demangle::demangle;

/// Bytes read at most.
const MOST: u64 = 64 << 20;

/// The map of one process.
#[derive(Default)]
pub(super) struct PerfMap {
    length: u64,
    /// `(start, end, name)` by start; a later line comes after an earlier one of
    /// the same start.
    entries: Vec<(u64, u64, Box<str>)>,
}

impl PerfMap {
    /// Reads what process `pid` has written, if that is more than was known.
    pub(super) fn refresh(&mut self, pid: u32) {
        let inner = inner_pid(pid).unwrap_or(pid);
        let path = PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner}.map"));
        // A fifo or a device in its place must not stop the worker.
        let Ok(metadata) = std::fs::metadata(&path) else { return };
        if !metadata.is_file() || metadata.len() == self.length {
            return;
        }
        let Ok(file) = File::open(&path) else { return };
        let mut bytes = Vec::new();
        if file.take(MOST).read_to_end(&mut bytes).is_ok() {
            self.length = metadata.len();
            self.entries = parse(&String::from_utf8_lossy(&bytes));
        }
    }

    /// The demangled name of the code at `address`.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        let behind = self.entries.partition_point(|&(start, _, _)| start <= address);
        let (_, end, name) = self.entries.get(behind.checked_sub(1)?)?;
        (address < *end).then(|| demangle(name))
    }
}

pub(super) fn parse(text: &str) -> Vec<(u64, u64, Box<str>)> {
    let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
    let mut entries: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let start = hex(fields.next()?)?;
            let size = hex(fields.next()?)?;
            let name = fields.next()?.trim();
            (!name.is_empty()).then(|| (start, start.saturating_add(size), name.into()))
        })
        .collect();
    entries.sort_by_key(|&(start, _, _)| start);
    entries
}

/// The pid of process `pid` in its innermost namespace.
pub(crate) fn inner_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_address_and_the_later_wins() {
        let map = PerfMap {
            length: 0,
            entries: parse("2000 10 old\n1000 20 fib(int) [tier 1]\nbad\n2000 10 new\n3000 x y\n"),
        };
        assert_eq!(map.find(0x1000).as_deref(), Some("fib(int) [tier 1]"));
        assert_eq!(map.find(0x101f).as_deref(), Some("fib(int) [tier 1]"));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0xfff), None);
        assert_eq!(map.find(0x2001).as_deref(), Some("new"));
    }

    #[test]
    fn the_map_of_a_process_is_read_when_it_grows() {
        let pid = std::process::id();
        let path = format!("/tmp/perf-{pid}.map");
        std::fs::write(&path, "10 10 a\n").unwrap();
        let mut map = PerfMap::default();
        map.refresh(pid);
        assert_eq!(map.find(0x18).as_deref(), Some("a"));
        std::fs::write(&path, "10 10 a\n20 10 b\n").unwrap();
        map.refresh(pid);
        assert_eq!(map.find(0x28).as_deref(), Some("b"));
        std::fs::remove_file(&path).unwrap();
    }
}
