//! CPU time of processes.

use std::io;
use std::process::Child;
use std::time::Duration;

/// Waits for a child and gives its CPU time, user and system, and whether it
/// exited with 0. The child must not be waited for again.
pub fn wait_with_cpu(child: &Child) -> io::Result<(Duration, bool)> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: rusage is plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that wait4 writes.
    let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if got != pid {
        return Err(io::Error::last_os_error());
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    let ok = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    Ok((time(usage.ru_utime) + time(usage.ru_stime), ok))
}

/// CPU time of a running process so far, from `/proc`.
pub fn cpu_of(pid: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may hold anything, but nothing behind the last parenthesis does.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        behind.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    // SAFETY: sysconf reads no memory of ours.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs();
    Ok(Duration::from_millis(ticks * 1000 / per_second))
}

/// For a child before `exec`: keeps the program on the first core, so that what its threads pay for waking
/// each other across cores, which differs by half from run to run, is not in it.
pub fn on_one_core() -> io::Result<()> {
    // SAFETY: a set of cores is plain data, for which all zeros is the empty one.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: core 0 lies in the set.
    unsafe { libc::CPU_SET(0, &mut cores) };
    // SAFETY: the pointer is to a live set of the size stated.
    let set = unsafe { libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs a shell line to its end.
    #[expect(clippy::zombie_processes, reason = "wait_with_cpu waits for it")]
    fn run(line: &str) -> (Duration, bool) {
        let child = Command::new("sh").args(["-c", line]).spawn().unwrap();
        wait_with_cpu(&child).unwrap()
    }

    #[test]
    fn a_child_that_works_has_used_cpu() {
        let (time, ok) = run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
        assert!(ok && time > Duration::from_millis(1), "{time:?}");
        assert!(!run("exit 3").1);
    }

    #[test]
    fn our_own_time_can_be_read() {
        assert!(cpu_of(std::process::id()).is_ok());
    }
}
