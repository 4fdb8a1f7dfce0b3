//! The target is never harmed: whatever a program does to itself, and whatever
//! is done to its agent, its output and its end are those of the same program
//! unprofiled, and at R = 1 its numbers are its own counters'.
//!
//! The programs are the acts of `fixtures/nasty`, and its twin without the agent.

mod allocators;
mod descriptors;
mod ends;
mod exactness;
mod forks;
mod memory;
mod panics;
mod peers;
mod signals;
mod sockets;
mod threads;
mod viewers;

use crate::exact::{assert_exact, nothing_lost};
use heaptop_tests::client::Client;
use heaptop_tests::run::{Ended, PATIENCE, Plain, Run, same_as_unprofiled};
use heaptop_tests::target::{Target, socket_directory};
use heaptop_tests::truth::Truths;
use std::sync::Arc;

/// An act at R = 1, with room for all it does.
fn act(args: &[&str]) -> Run {
    Run::of("fixture-nasty", args).env("HEAPTOP_INTERVAL", "1").env("HEAPTOP_MEMORY", "512M")
}

/// An act at the usual R.
fn usual_act(args: &[&str]) -> Run {
    Run::of("fixture-nasty", args)
}

/// Starts an act and waits until it and its agent are ready.
fn started(run: &Run) -> Target {
    let mut target = Target::of(run, Arc::new(socket_directory())).with_patience(PATIENCE);
    target.wait_for("ready");
    target
}

/// Lets a target end, and compares what it wrote, but for its truths, and how it
/// ended with the act unprofiled.
fn ends_as_unprofiled(mut target: Target, run: &Run) -> Ended {
    let profiled = target.finish().without_truths();
    profiled.assert_same(&run.unprofiled(Plain::Twin).to_end().without_truths());
    profiled
}

/// Runs an act that prints its truths, with a client attached, up to where it is quiet.
fn worked(run: &Run) -> (Target, Client, Truths) {
    let mut target = started(run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    client.snapshot();
    nothing_lost(&client.told);
    (target, client, truths)
}

/// Runs an act at R = 1 with a client attached, and compares each function's
/// numbers with the act's own counters, and its end with the act unprofiled.
fn exact_as_unprofiled(args: &[&str]) -> Ended {
    let run = act(args);
    let (target, client, truths) = worked(&run);
    assert_exact(&client.told, &truths);
    ends_as_unprofiled(target, &run)
}

/// Runs an act to its end profiled and unprofiled, and compares.
fn same(run: &Run) -> Ended {
    same_as_unprofiled(run, Plain::Twin)
}

/// The resident memory of a process, in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line =
        status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has memory");
    line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Whether the tests run as root, which some need. CI does; elsewhere those say
/// so and do nothing.
fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("this test needs root: nothing was tested");
    }
    root
}

/// The user and group `nobody`.
const NOBODY: u32 = 65534;
