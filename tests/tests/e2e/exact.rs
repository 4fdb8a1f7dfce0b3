//! At R = 1 every count is exact: blocks and bytes, allocated, freed, in use,
//! born young and promoted, by callsite.

use heaptop_protocol::totals::{Total, Totals};
use heaptop_tests::client::{Client, Told};
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;
use heaptop_tests::truth::{Truth, Truths};

/// The set's count and sum, which must be without uncertainty.
fn figures(what: &str, total: &Total) -> (u64, u64) {
    assert_eq!((total.bytes.variance, total.objects.variance), (0.0, 0.0), "{what} has a variance");
    assert_eq!(total.objects.sum, total.n as f64, "objects of {what}");
    (total.n, total.bytes.sum as u64)
}

/// What of a function's totals is not its truth.
pub fn compare(truth: &Truth, got: &Totals) -> Vec<String> {
    let name = &truth.function;
    let known = |objects: Option<u64>, bytes: Option<u64>| objects.zip(bytes);
    let [allocated, in_use] =
        [("allocated", &got.allocated), ("in use", &got.in_use)].map(|(w, t)| figures(w, t));
    let [minor, promoted] =
        [("minor", &got.minor), ("promoted", &got.promoted)].map(|(w, t)| figures(w, t));
    let freed = (allocated.0 - in_use.0, allocated.1 - in_use.1);
    [
        ("allocated", Some((truth.allocated_objects, truth.allocated_bytes)), allocated),
        ("freed", Some((truth.freed_objects, truth.freed_bytes)), freed),
        ("in use", Some((truth.in_use_objects, truth.in_use_bytes)), in_use),
        ("minor", known(truth.minor_objects, truth.minor_bytes), minor),
        ("promoted", known(truth.promoted_objects, truth.promoted_bytes), promoted),
    ]
    .into_iter()
    .filter(|(_, truth, got)| truth.is_some_and(|truth| truth != *got))
    .map(|(what, truth, got)| format!("{name}: {what} (objects, bytes) {got:?}, truth {truth:?}"))
    .collect()
}

/// Compares all of a target's functions with what a client was told.
pub fn assert_exact(told: &Told, truths: &Truths) {
    let functions: Vec<&str> = truths.by_function.keys().map(String::as_str).collect();
    let names = Names::of(told);
    let totals = names.totals(told, &functions);
    let wrong: Vec<String> =
        functions.iter().flat_map(|f| compare(&truths[f], &totals[f])).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What the agent does to begin is none of the program's.
    let own = &names.totals(told, &["constructor"])["constructor"];
    assert_eq!(own.allocated.n, 0, "blocks of the agent's own");

    // The live blocks, one by one, are those of the totals.
    for function in functions {
        let mut live = (0, 0);
        for block in told.live.values() {
            let stack = told.stacks.get(&block.stack);
            if stack.is_some_and(|s| names.innermost(s, &[function]).is_some()) {
                live = (live.0 + 1, live.1 + block.size);
            }
        }
        let truth = &truths[function];
        assert_eq!(live, (truth.in_use_objects, truth.in_use_bytes), "live blocks of {function}");
    }
}

/// Asserts that the agent has every event, and goes on.
pub fn nothing_lost(told: &Told) {
    let losses = told.status.expect("a status came").losses;
    assert_eq!((losses.births, losses.stacks), (0, 0), "the agent lost something: {losses:?}");
    assert_eq!(told.stopped, None);
}

/// Runs the fixture on `threads` threads; attaches before or after its work.
fn exact(threads: &str, attach_early: bool) {
    let mut target = Target::start("fixture-exact", &[threads], &[]);
    target.wait_for("ready");
    let early = attach_early.then(|| Client::attach(&target.socket()));
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    let mut client = early.unwrap_or_else(|| Client::attach(&target.socket()));
    client.snapshot();
    nothing_lost(&client.told);
    assert_exact(&client.told, &truths);
}

#[test]
fn one_thread_seen_from_its_start() {
    exact("1", true);
}

#[test]
fn one_thread_seen_late() {
    exact("1", false);
}

#[test]
fn four_threads_seen_from_their_start() {
    exact("4", true);
}

#[test]
fn four_threads_seen_late() {
    exact("4", false);
}

#[test]
fn what_was_allocated_before_the_viewer_came_is_seen() {
    let mut target = Target::start("fixture-late", &[], &[]);
    target.wait_for("quiet");
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    nothing_lost(&client.told);
    let totals = Names::of(&client.told).totals(&client.told, &["build_heap", "burn"]);
    let of = |function: &str| {
        let t: &Totals = &totals[function];
        (figures("allocated", &t.allocated), figures("in use", &t.in_use))
    };
    assert_eq!(of("build_heap"), ((500, 500 << 10), (500, 500 << 10)));
    assert_eq!(of("burn"), ((3000, 3000 * 512), (0, 0)));
}

#[test]
fn two_clients_are_told_the_same() {
    let mut target = Target::start("fixture-exact", &["2"], &[]);
    target.wait_for("ready");
    let mut first = Client::attach(&target.socket());
    let mut second = Client::attach(&target.socket());
    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    for client in [&mut first, &mut second] {
        client.snapshot();
        assert_exact(&client.told, &truths);
    }
}
