//! Children of all kinds end well, and the parent's numbers stay the parent's.

use super::{act, ends_as_unprofiled, exact_as_unprofiled, same, started, usual_act};
use crate::exact::{assert_exact, nothing_lost};
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::run::{Plain, Run};
use heaptop_tests::truth::Truths;

#[test]
fn a_thousand_forks_amid_four_threads_that_allocate() {
    let run = act(&["forks", "1000"]);
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    target.wait_for("1000 of 1000 children were well");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    client.snapshot();
    nothing_lost(&client.told);
    assert_exact(&client.told, &truths);
    let entries = std::fs::read_dir(target.directory()).unwrap();
    let sockets: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sockets, [target.socket()], "children have left something");
    ends_as_unprofiled(target, &run);
}

#[test]
fn clones_that_no_handler_sees() {
    let ended = exact_as_unprofiled(&["clones"]);
    assert!(ended.stdout.contains("100 children were well"), "{}", ended.stdout);
}

#[test]
fn what_a_vforked_child_allocates_is_the_parents() {
    let ended = exact_as_unprofiled(&["vforks"]);
    assert!(ended.stdout.contains("100 children were well, 1000 blocks kept"), "{}", ended.stdout);
}

#[test]
fn programs_that_are_started_inherit_nothing() {
    same(&act(&["spawns"]));
}

#[test]
fn a_program_that_becomes_itself_again_has_an_agent_again() {
    let run = act(&["exec", "3"]);
    let mut target = started(&run);
    for left in (0..3).rev() {
        let mut client = Client::attach(&target.socket());
        target.say("go");
        client.until_end();
        target.wait_for("ready");
        assert_eq!(Client::attach(&target.socket()).hello.pid, target.pid(), "{left}");
    }
    target.say("go");
    target.wait_for("quiet");
    let ended = target.finish();
    ended.assert_same(&run.input("\n\n\n\n").unprofiled(Plain::Twin).to_end());
}

#[test]
fn a_daemon_outlives_its_parents() {
    let directory = tempfile::tempdir().unwrap();
    let daemonise = |name: &str, of: &dyn Fn(&Run) -> Run| {
        let path = directory.path().join(name);
        let ended = of(&act(&["daemon", path.to_str().unwrap()])).to_end();
        let result = poll(Deadline::default(), || std::fs::read_to_string(&path).ok());
        (ended, result.expect("the daemon leaves its result"))
    };
    let (plain, plain_result) = daemonise("plain", &|run| run.unprofiled(Plain::Twin));
    let (profiled, result) = daemonise("profiled", &Run::clone);
    profiled.assert_same(&plain);
    assert_eq!(result, plain_result);
}

#[test]
fn generations_that_are_followed_take_the_room_of_one() {
    for run in [act(&["generations"]), usual_act(&["generations"])] {
        let ended = same(&run.env("HEAPTOP_MEMORY", "64M").env("HEAPTOP_FOLLOW", "1"));
        assert!(ended.stdout.contains("generations ended with 0x700"), "{}", ended.stdout);
    }
}
