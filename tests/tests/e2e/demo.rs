//! The demo target keeps what its help promises.

use crate::near::assert_near;
use heaptop_protocol::totals::Totals;
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;
use heaptop_tests::truth::Truths;

const FUNCTIONS: [&str; 3] = ["serve_request", "fill_cache", "forget_session"];

/// Starts the demo, and waits until it takes signals.
pub fn start(args: &[&str]) -> Target {
    start_with(args, &[])
}

/// [`start`] with an environment.
pub fn start_with(args: &[&str], env: &[(&str, &str)]) -> Target {
    let mut demo = Target::start("heaptop-demo", args, env);
    demo.wait_for_line("what to look for", |line| line.starts_with("heaptop-demo, pid "));
    demo
}

/// Waits until the demo has allocated enough to judge, by its own counters.
pub fn warm_up(demo: &mut Target, churn_bytes: u64, leaked_bytes: u64) {
    poll(Deadline::default(), || {
        let truths = Truths::ask(demo);
        let warm = truths["serve_request"].allocated_bytes >= churn_bytes
            && truths["forget_session"].allocated_bytes >= leaked_bytes;
        warm.then_some(())
    })
    .expect("the demo allocates");
}

fn promotion(totals: &Totals) -> f64 {
    totals.promoted.bytes.sum / totals.minor.bytes.sum
}

#[test]
fn its_counters_lie_where_the_estimates_say() {
    let mut demo = start(&["--leak", "1048576"]);
    warm_up(&mut demo, 20 << 20, 4 << 20);
    let mut client = Client::attach(&demo.socket());
    let before = Truths::ask(&mut demo);
    client.snapshot();
    let after = Truths::ask(&mut demo);
    let got = Names::of(&client.told).totals(&client.told, &FUNCTIONS);
    for function in FUNCTIONS {
        let (low, high) = (&before[function], &after[function]);
        assert_near(
            &format!("allocated in {function}"),
            &got[function].allocated,
            (low.allocated_objects, low.allocated_bytes),
            (high.allocated_objects, high.allocated_bytes),
        );
    }
    for function in ["fill_cache", "forget_session"] {
        // The cache's use goes up and down by a page's size: by 1 % at most.
        let (low, high) = (&before[function], &after[function]);
        let (bytes, objects) =
            ([low.in_use_bytes, high.in_use_bytes], [low.in_use_objects, high.in_use_objects]);
        let below = |x: [u64; 2]| x[0].min(x[1]) / 100 * 99;
        let above = |x: [u64; 2]| x[0].max(x[1]) / 99 * 100;
        assert_near(
            &format!("in use in {function}"),
            &got[function].in_use,
            (below(objects), below(bytes)),
            (above(objects), above(bytes)),
        );
    }
    // Expected: 0.4 %, all, all. Only the youngest cycle is not yet judged.
    assert!(promotion(&got["serve_request"]) < 0.03, "{:?}", got["serve_request"]);
    assert!(promotion(&got["fill_cache"]) > 0.97, "{:?}", got["fill_cache"]);
    assert!(promotion(&got["forget_session"]) > 0.97, "{:?}", got["forget_session"]);
}

#[test]
fn its_stacks_reach_main() {
    let mut demo = start(&[]);
    warm_up(&mut demo, 4 << 20, 64 << 10);
    let mut client = Client::attach(&demo.socket());
    client.snapshot();
    let names = Names::of(&client.told);
    let path = ["main", "run", "worker_loop", "handle_connection", "list_orders", "serve_request"];
    let whole = client.told.stacks.values().any(|stack| {
        let functions = names.stack(stack);
        let mut rest = functions.iter();
        path.iter().all(|wanted| rest.any(|f| f == wanted))
    });
    let all: Vec<String> =
        client.told.stacks.values().map(|s| names.stack(s).join(" → ")).collect();
    assert!(whole, "no stack goes along {path:?}:\n{}", all.join("\n"));
}

#[test]
fn a_signal_ends_it_cleanly_with_its_last_counters() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut demo = start(&["--leak", "0"]);
        warm_up(&mut demo, 1 << 20, 0);
        demo.signal(signal);
        let last = Truths::read(&mut demo);
        assert!(demo.wait().success());
        assert_eq!(last["forget_session"].allocated_objects, 0);
        let served = &last["serve_request"];
        assert_eq!(served.allocated_bytes, served.freed_bytes);
        assert_eq!(last["fill_cache"].in_use_objects, 8000);
    }
}

#[test]
fn it_stops_when_its_input_ends_where_that_is_wanted() {
    let mut demo = start(&["--leak", "0", "--until-stdin-ends"]);
    warm_up(&mut demo, 1 << 20, 0);
    // Its input is closed by that.
    assert!(demo.wait().success());
    let last = Truths::read(&mut demo);
    assert_eq!(last["fill_cache"].in_use_objects, 8000);
}

#[test]
fn it_runs_for_as_long_as_it_is_told_and_leaks_as_fast() {
    let mut demo = start(&["--for", "2", "--leak", "100000"]);
    let last = Truths::read(&mut demo);
    assert!(demo.wait().success());
    // By its own clock; a busy machine may make it late, and then it leaks more
    // or, after a long pause, less: but never more than the clock allows.
    let leaked = last["forget_session"].in_use_bytes as f64;
    assert!(last.at_s >= 2.0);
    assert!(leaked <= 100_000.0 * last.at_s + 1000.0, "{leaked} in {} s", last.at_s);
    assert!(leaked > 0.0);
}

#[test]
fn a_bad_flag_is_a_sentence() {
    let demo = heaptop_tests::binaries::path("heaptop-demo");
    let output = std::process::Command::new(demo).args(["--for", "soon"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("it must be a number of seconds"), "{error}");
}
