//! The program's descriptors are the program's, byte for byte.

use super::{act, ends_as_unprofiled, same, started};
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::run::{Plain, Run};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Takes every number that the agent may have had, with viewers attached, and
/// works with them for a while.
fn taken_from_the_agent(how: &str) {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir(&path).unwrap();
        act(&["takes-descriptors", path.to_str().unwrap(), how])
    };
    let run = of("profiled");
    let mut target = started(&run);
    let clients = [0, 1, 2].map(|_| Client::attach(&target.socket()));
    target.say("go");
    target.wait_for("taken");
    target.say("go");
    target.wait_for("working");
    // The agent has a socket all the same, or another one, and serves.
    poll(Deadline::default(), || UnixStream::connect(target.socket()).ok())
        .expect("a socket again");
    Client::attach(&target.socket()).snapshot();
    target.say("go");
    target.wait_for("quiet");
    // Whoever was attached hears nothing more, or no more than an end.
    drop(clients);
    let ended = target.finish();
    ended.assert_same(&of("plain").unprofiled(Plain::Twin).to_end());
    assert!(ended.stdout.contains("untouched [20, 20, 40]"), "{}", ended.stdout);
}

#[test]
fn a_program_that_closes_all_and_opens_its_own() {
    taken_from_the_agent("close");
}

#[test]
fn a_program_that_puts_its_own_over_the_agents() {
    taken_from_the_agent("over");
}

#[test]
fn a_program_started_without_standard_streams_finds_what_it_would() {
    let directory = tempfile::tempdir().unwrap();
    let found = |run: &dyn Fn(&Path) -> Run, name: &str| {
        let path = directory.path().join(name);
        let closed = run(&path).setup(|| {
            for fd in 0..3 {
                // SAFETY: the new process has no further use for them.
                unsafe { libc::close(fd) };
            }
            Ok(())
        });
        assert!(closed.to_end().status.success());
        std::fs::read_to_string(path).unwrap()
    };
    let run = |path: &Path| act(&["standard-streams", path.to_str().unwrap()]);
    let plain = found(&|path| run(path).unprofiled(Plain::Twin), "plain");
    for i in 0..20 {
        assert_eq!(found(&run, &i.to_string()), plain);
    }
}

#[test]
fn a_program_without_a_free_descriptor_runs() {
    // What the loader needs, and no more than the three streams and one.
    same(&act(&["work"]).limit(libc::RLIMIT_NOFILE, 4));
    let run = act(&["work"]);
    ends_as_unprofiled(started(&run), &run);
}
