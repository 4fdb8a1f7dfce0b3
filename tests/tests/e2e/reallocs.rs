//! How a buffer grows, against the demo's own counters: live, on a recording, and on the
//! screen. At R = 1 every step is seen.

use crate::{demo, recordings};
use heaptop::query::grown::Grown;
use heaptop::query::{self, Question, When};
use heaptop::session::Session;
use heaptop::session::figures::Estimate;
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::target::Target;
use heaptop_tests::terminal::{Terminal, key};
use heaptop_tests::truth::{Truth, Truths};

const FUNCTION: &str = "write_report";

fn growing() -> Target {
    demo::start_with(&["--leak", "0"], &[("HEAPTOP_INTERVAL", "1")])
}

fn counters(demo: &mut Target) -> Truth {
    Truths::ask(demo)[FUNCTION].clone()
}

/// Waits until so many reallocs have come, by the demo's counters.
fn after(demo: &mut Target, reallocs: u64) -> Truth {
    poll(Deadline::default(), || {
        let now = counters(demo);
        (now.reallocs >= Some(reallocs)).then_some(now)
    })
    .expect("it grows")
}

fn grown(session: &Session) -> Grown {
    let table = query::callsites(session, &Question::default());
    let row = table.rows.iter().find(|row| row.label.function.ends_with(FUNCTION));
    let key = row.unwrap_or_else(|| panic!("no row {FUNCTION} in {:#?}", table.rows)).key;
    let details = query::details(session, When::Now, key, "", None).expect("it is known");
    details.grown.expect("it grows")
}

fn exact(estimate: Estimate) -> f64 {
    let Estimate::Exact { value } = estimate else { panic!("not exact: {estimate:?}") };
    value
}

/// What is told is at least what happened while somebody looked for sure, and at most what
/// happened while somebody may have looked.
fn judge(grown: &Grown, least: [&Truth; 2], most: [&Truth; 2]) {
    let between = |of: fn(&Truth) -> u64, [a, b]: [&Truth; 2]| (of(b) - of(a)) as f64;
    let holds = |what: &str, told: f64, of: fn(&Truth) -> u64| {
        let (low, high) = (between(of, least), between(of, most));
        assert!((low..=high).contains(&told), "{what}: {told} is not in {low}..{high}");
        assert!(low > 0.0, "{what}: nothing happened");
    };
    holds("reallocs", exact(grown.steps), |truth| truth.reallocs.unwrap_or(0));
    holds("copied", exact(grown.copied), |truth| truth.copied_bytes.unwrap_or(0));
    // A chain is a buffer that is made, and its reallocs.
    let each = |[a, b]: [&Truth; 2]| {
        let reallocs = b.reallocs.unwrap_or(0) - a.reallocs.unwrap_or(0);
        let made = b.allocated_objects - a.allocated_objects - reallocs;
        reallocs as f64 / made as f64
    };
    let (told, truth) = (exact(grown.each), each(most));
    assert!((told / truth - 1.0).abs() < 0.1, "{told} steps a chain are not {truth}");
    // From 128 bytes on it doubles.
    let steps: Vec<(u64, u64)> = grown.sizes.iter().map(|step| (step.from, step.to)).collect();
    assert_eq!(steps, [(128, 256), (256, 512), (512, 1024), (1024, 2048)]);
    let counted: f64 = grown.sizes.iter().map(|step| exact(step.steps)).sum();
    let copied: f64 = grown.sizes.iter().map(|step| exact(step.copied)).sum();
    assert_eq!((counted, copied), (exact(grown.steps), exact(grown.copied)));
    assert_eq!(grown.largest, 2048);
}

#[test]
fn chains_are_what_the_demo_counts_live() {
    let mut demo = growing();
    let before = after(&mut demo, 20);
    let mut client = Client::attach(&demo.socket());
    client.snapshot();
    let came = counters(&mut demo);
    let went = after(&mut demo, came.reallocs.unwrap_or(0) + 300);
    client.snapshot();
    let last = counters(&mut demo);
    // Names, and what they put together.
    client.table();
    judge(&grown(&client.session), [&came, &went], [&before, &last]);
}

#[test]
fn chains_are_what_the_demo_counts_on_a_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("grows.heaptop");
    let mut demo = growing();
    let before = after(&mut demo, 20);
    let recorder = recordings::record(&demo, &path);
    recordings::synced(&path);
    let came = counters(&mut demo);
    let went = after(&mut demo, came.reallocs.unwrap_or(0) + 300);
    recordings::end(recorder, libc::SIGINT);
    let last = counters(&mut demo);
    let (_, session, _) = recordings::told(&path);
    judge(&grown(&session), [&came, &went], [&before, &last]);
}

#[test]
fn a_ladder_is_seen_in_the_details() {
    let mut demo = growing();
    after(&mut demo, 20);
    let mut terminal = Terminal::start("heaptop", demo.directory(), &[], (60, 120));
    terminal.wait_for("fill_cache");
    terminal.press(&format!("/{FUNCTION}"));
    terminal.press(key::ENTER);
    terminal.wait_for("matching callsites");
    terminal.press("d");
    terminal.wait_for("a ladder of reallocs: ask for the size at once");
    terminal.until("the hint says what it is based on", |screen| {
        let line = screen.lines().find(|line| line.contains("each grows "))?;
        (line.contains(" times, up to 2.00 KiB; ")
            && screen.contains("of its bytes come by realloc"))
        .then_some(())
    });
    terminal.press("G");
    terminal.until("steps with their sizes", |screen| {
        let chain = screen.lines().any(|line| line.contains("steps a chain"));
        let step = screen.lines().any(|line| line.contains("≤ 1 KiB → ≤ 2 KiB"));
        (chain && step).then_some(())
    });
}
