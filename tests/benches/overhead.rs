//! What the agent costs a real program: CPU time with the wrapper at R = 512 KiB
//! over CPU time without it. It prints ratios and asserts nothing about them.
//!
//! `cargo bench -p heaptop-tests --bench overhead [-- RUNS]`
//!
//! The same source is compiled twice, with the plain system allocator and with
//! the wrapper around it; nobody is attached. Runs are interleaved, and the order
//! within a pair alternates, so that a machine that becomes slower slows both.
//! CPU time is user and system time of the whole process, by `wait4`; programs
//! run on one core.
//!
//! The agent's one thread has a price that is glibc's: a program of a single
//! thread gets the malloc of a threaded one. So the parser is measured twice, by
//! itself and beside an idle thread of its own, where that is paid already.

use heaptop_tests::ratio::{interval, median};
use heaptop_tests::target::socket_directory;
use heaptop_tests::{binaries, http, usage};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

const RUNS: usize = 15;
const REQUESTS: u64 = 60_000;
const PARSES: &str = "60";

/// Runs a program once: its CPU time in seconds.
fn run(program: &str, sockets: &Path, drive: fn(&mut Command) -> std::io::Result<f64>) -> f64 {
    let mut command = Command::new(binaries::path(program));
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("HEAPTOP") {
            command.env_remove(key);
        }
    }
    command.env("HEAPTOP_DIR", sockets).env("HEAPTOP_INTERVAL", "512K");
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(usage::on_one_core) };
    drive(&mut command).unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn parse(command: &mut Command) -> std::io::Result<f64> {
    let child = command.arg(PARSES).stdout(Stdio::null()).spawn()?;
    seconds(&child)
}

fn parse_threaded(command: &mut Command) -> std::io::Result<f64> {
    let child = command.args([PARSES, "threaded"]).stdout(Stdio::null()).spawn()?;
    seconds(&child)
}

fn serve(command: &mut Command) -> std::io::Result<f64> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?)
        .read_line(&mut line)?;
    let port = line.trim().strip_prefix("port ").and_then(|p| p.parse().ok());
    http::load(port.ok_or(std::io::ErrorKind::InvalidData)?, 4, 0, REQUESTS);
    child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?.write_all(b"stop\n")?;
    seconds(&child)
}

fn seconds(child: &std::process::Child) -> std::io::Result<f64> {
    let (cpu, ok) = usage::wait_with_cpu(child)?;
    if ok { Ok(cpu.as_secs_f64()) } else { Err(std::io::Error::other("it failed")) }
}

fn main() {
    // Cargo's own switches, such as `--bench`, are none of ours.
    let runs = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(RUNS).max(3);
    let sockets = socket_directory();
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(" unknown CPU");
    println!("CPU time with the agent at R = 512 KiB over without, {runs} runs each");
    println!("{}", cpu.trim_start_matches(['\t', ' ', ':']));
    println!("{:<34} {:>9} {:>9} {:>7}  95 % interval", "program", "without", "with", "ratio");
    let server = format!("axum, {REQUESTS} requests");
    let parser = format!("serde_json, {PARSES} parses");
    let threaded = format!("{parser}, 2 threads");
    for (title, name, drive) in [
        (&server, "fixture-httpd", serve as fn(&mut Command) -> std::io::Result<f64>),
        (&threaded, "fixture-parse", parse_threaded),
        (&parser, "fixture-parse", parse),
    ] {
        let (mut plain, mut with) = (vec![], vec![]);
        let without = format!("{name}-plain");
        // Once for warm caches.
        run(&without, sockets.path(), drive);
        for pair in 0..runs {
            let mut both = [(&without[..], &mut plain), (name, &mut with)];
            if pair % 2 == 1 {
                both.reverse();
            }
            for (program, times) in both {
                times.push(run(program, sockets.path(), drive));
            }
        }
        let (low, high) = interval(&plain, &with);
        let (plain, with) = (median(&mut plain), median(&mut with));
        println!(
            "{title:<34} {plain:>7.3} s {with:>7.3} s {:>7.4}  {low:.4}–{high:.4}",
            with / plain
        );
    }
}
