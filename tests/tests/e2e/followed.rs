//! Forked children that are followed: sessions of their own.

use heaptop_protocol::endpoint;
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;

/// Blocks and bytes allocated and in use, by function.
fn counts(client: &mut Client) -> [(u64, u64, u64, u64); 2] {
    client.snapshot();
    let functions = ["before_fork", "in_child"];
    let totals = Names::of(&client.told).totals(&client.told, &functions);
    functions.map(|f| {
        let t = &totals[f];
        let bytes = |total: &heaptop_protocol::totals::Total| total.bytes.sum as u64;
        (t.allocated.n, bytes(&t.allocated), t.in_use.n, bytes(&t.in_use))
    })
}

fn follow(mode: &str, env: &[(&str, &str)]) {
    let mut target = Target::start("fixture-followed", &[mode], env);
    let quiet = target.wait_for_line("quiet", |line| line.starts_with("quiet "));
    let pid: u32 = quiet["quiet ".len()..].parse().unwrap();
    let socket = endpoint::socket(target.directory(), pid);
    poll(Deadline::default(), || socket.exists().then_some(())).expect("the child's socket");

    let mut child = Client::attach(&socket);
    let of_child = [(0, 0, 0, 0), (50, 50 * 2048, 40, 40 * 2048)];
    assert_eq!(counts(&mut child), of_child);
    assert_eq!(child.hello.pid, pid);

    let mut parent = Client::attach(&target.socket());
    assert_eq!(counts(&mut parent), [(100, 100 << 10, 100, 100 << 10), (0, 0, 0, 0)]);

    // Each goes on by itself.
    target.say("go");
    assert!(target.wait().success());
    child.until_end();
}

#[test]
fn a_child_is_followed_where_the_environment_says_so() {
    follow("", &[("HEAPTOP_FOLLOW", "1")]);
}

#[test]
fn a_child_is_followed_that_asks_for_it() {
    follow("call", &[]);
}

#[test]
fn a_childs_child_is_followed() {
    follow("grand", &[("HEAPTOP_FOLLOW", "1")]);
}
