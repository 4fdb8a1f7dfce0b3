//! What lives say of other nurseries is what a run with them measures.

use heaptop::query::{NodeKey, Survival, When, survival};
use heaptop::session::figures::{Followed, Ratio};
use heaptop_tests::client::Client;
use heaptop_tests::target::Target;

const FUNCTIONS: [&str; 3] = ["waits_briefly", "waits_long", "dies_at_once"];
/// An age is known to a sixteenth of itself.
const COARSE: f64 = 1.0 / 16.0;

/// Lets the fixture do ten slices, 320 MiB and more, with a viewer that sees it all.
fn run(args: &[&str], nursery: &str) -> (Target, Client) {
    let env = [
        ("HEAPTOP_NURSERY", nursery),
        ("HEAPTOP_PHASE", "0"),
        ("HEAPTOP_INTERVAL", "16K"),
        ("HEAPTOP_SEED", "7"),
    ];
    let mut target = Target::start("fixture-nurseries", args, &env);
    target.wait_for("ready");
    let mut client = Client::attach(&target.socket());
    for _ in 0..10 {
        target.say("go");
        target.wait_for("quiet");
        client.snapshot();
    }
    (target, client)
}

/// The lives of a function's blocks.
fn lives(client: &mut Client, function: &str) -> Survival {
    let table = client.table();
    let named = |name: &str| name == function || name.ends_with(&format!("::{function}"));
    let key: NodeKey = table
        .rows
        .iter()
        .find(|row| named(&row.label.function))
        .unwrap_or_else(|| panic!("no row {function}"))
        .key;
    survival(&client.session, Some(key), When::Now, "").expect("it is known")
}

/// Value, low and high.
fn by_lives(followed: Followed) -> (f64, f64, f64) {
    match followed {
        Followed::Interval { value, low, high, .. } => (value, low, high),
        other => panic!("followed far enough, not {other:?}"),
    }
}

fn measured(ratio: Ratio) -> (f64, f64, f64) {
    match ratio {
        Ratio::Interval { value, low, high, .. } => (value, low, high),
        Ratio::Unknown => panic!("cycles are over"),
    }
}

/// Whether two intervals of the same truth meet, ages being known as they are.
fn meet(what: &str, a: (f64, f64, f64), b: (f64, f64, f64)) {
    let apart = (a.1 - b.2).max(b.1 - a.2);
    // Two intervals of 95 % that each miss by as much again as they are wide.
    let slack = COARSE * a.0.max(b.0) + (a.2 - a.1 + b.2 - b.1) / 2.0 + 0.002;
    assert!(apart <= slack, "{what}: {a:?} and {b:?}");
}

#[test]
fn other_nurseries_promote_what_lives_say() {
    let (_target, mut client) = run(&[], "2M");
    let here = FUNCTIONS.map(|function| lives(&mut client, function));
    for (nursery, bytes) in [("256K", 256 << 10), ("2M", 2 << 20), ("16M", 16 << 20)] {
        let (_target, mut other) = run(&[], nursery);
        for (function, here) in FUNCTIONS.iter().zip(&here) {
            let there = measured(lives(&mut other, function).own);
            meet(&format!("{function} at {nursery}"), by_lives(here.at(bytes)), there);
        }
    }
    // And both are what the program does.
    let rate = |of: usize, bytes| by_lives(here[of].at(bytes)).0;
    assert!((rate(0, 256 << 10) - 0.5).abs() < 0.06, "{}", rate(0, 256 << 10));
    assert!((rate(1, 16 << 20) - 0.5).abs() < 0.06, "{}", rate(1, 16 << 20));
    assert!(rate(2, 256 << 10) < 0.02, "{}", rate(2, 256 << 10));
}

#[test]
fn at_the_configured_nursery_lives_say_what_was_measured() {
    let (_target, mut client) = run(&["threads"], "2M");
    for function in ["waits_briefly", "waits_long", "dies_at_once", "beside"] {
        let lives = lives(&mut client, function);
        assert_eq!(lives.own_bytes, 2 << 20);
        meet(function, by_lives(lives.at(2 << 20)), measured(lives.own));
    }
    let all = survival(&client.session, None, When::Now, "").expect("all are known");
    meet("all", by_lives(all.at(2 << 20)), measured(all.own));
}
