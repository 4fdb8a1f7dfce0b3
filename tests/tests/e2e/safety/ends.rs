//! Ends of all kinds, with a viewer attached: the same exit status.

use super::{act, ends_as_unprofiled, started};
use heaptop_tests::client::Client;
use std::os::unix::process::ExitStatusExt;

/// The exit code, or the signal as a negative number.
fn ends(act_name: &str, with: i32) {
    let run = act(&[act_name]);
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    client.until_end();
    let status = ends_as_unprofiled(target, &run).status;
    assert_eq!(status.code().or(status.signal().map(|s| -s)), Some(with), "{act_name}");
}

#[test]
fn exit_is_exit() {
    ends("exit", 7);
}

#[test]
fn exit_at_once_is_exit() {
    ends("_exit", 8);
}

#[test]
fn an_abort_is_an_abort() {
    ends("abort", -libc::SIGABRT);
}

#[test]
fn a_kill_is_a_kill() {
    ends("kill", -libc::SIGKILL);
}

#[test]
fn a_fault_is_a_fault() {
    ends("segfault", -libc::SIGSEGV);
}

#[test]
fn an_overflow_of_the_stack_is_what_the_runtime_makes_of_it() {
    ends("overflow", -libc::SIGABRT);
}

#[test]
fn the_last_threads_return_is_the_end() {
    ends("last-thread", 0);
}
