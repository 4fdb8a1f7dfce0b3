//! Ends of all kinds, with a viewer attached: the same exit status.

use super::{act, ends_as_unprofiled, is_root, same, started};
use heaptop_tests::client::Client;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The exit code, or the signal as a negative number.
fn ends(act_name: &str, with: i32) {
    let status = ends_alike(act_name);
    assert_eq!(status.code().or(status.signal().map(|s| -s)), Some(with), "{act_name}");
}

fn ends_alike(act_name: &str) -> ExitStatus {
    let run = act(&[act_name]);
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    client.until_end();
    ends_as_unprofiled(target, &run).status
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

#[test]
fn a_signal_that_nobody_took_does_not_end_what_is_over() {
    ends("last-thread-before-signal", 0);
    // Nor does the agent's own, which writes beyond a limit.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    let run = act(&["last-thread"])
        .input("go\n")
        .env("HEAPTOP_RECORD", path.to_str().unwrap())
        .limit(libc::RLIMIT_FSIZE, 2000);
    let ended = same(&run);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(std::fs::metadata(&path).unwrap().len() <= 2000, "it was not limited");
}

#[test]
fn the_only_threads_bare_status_is_the_programs() {
    ends("only-thread", 3);
}

/// Whose status it is, the first one's or the last one's, depends on the kernel.
#[test]
fn after_a_bare_end_of_the_first_thread_no_handlers_run() {
    ends_alike("last-thread-after-status");
}

#[test]
fn the_last_threads_return_is_the_end_where_there_is_no_proc() {
    if is_root() {
        ends("last-thread-confined", 0);
    }
}
