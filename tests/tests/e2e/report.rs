//! `heaptop report` and `heaptop export` of a running target: the figures hold the
//! demo's own counters, and what cannot be is a sentence.

use crate::{demo, recordings};
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::run::{Ended, Run};
use heaptop_tests::target::Target;
use heaptop_tests::truth::Truths;
use std::fmt::Write as _;

fn heaptop(demo: &Target, args: &[&str]) -> Ended {
    Run::of("heaptop", args).directory(demo.directory()).to_end()
}

fn succeeds(demo: &Target, args: &[&str]) -> String {
    let ended = heaptop(demo, args);
    assert!(ended.status.success(), "{args:?}: {}", ended.stderr);
    ended.stdout
}

/// The row of the leak in a report as JSON.
fn leak_in(json: &str) -> serde_json::Value {
    let json: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    let rows = json["rows"].as_array().expect("there are rows");
    let is = |row: &&serde_json::Value| {
        row["function"].as_str().is_some_and(|f| f.ends_with("forget_session"))
    };
    rows.iter().find(is).expect("the leak has a row, with its name").clone()
}

#[test]
fn a_report_of_a_running_target_is_exact_where_all_is_sampled() {
    let mut demo = demo::start_with(&["--leak", "1048576"], &[("HEAPTOP_INTERVAL", "1")]);
    demo::warm_up(&mut demo, 1 << 20, 1 << 20);
    let pid = demo.pid().to_string();
    let before = Truths::ask(&mut demo);
    let json = succeeds(&demo, &["report", &pid, "--format", "json"]);
    let after = Truths::ask(&mut demo);
    let leak = leak_in(&json);
    let allocated = &leak["allocated_bytes"];
    assert!(allocated["samples"].is_null(), "nothing was left to chance: {allocated}");
    let (least, most) = (
        before["forget_session"].allocated_bytes as f64,
        after["forget_session"].allocated_bytes as f64,
    );
    let value = allocated["value"].as_f64().expect("it is known");
    assert!((least..=most).contains(&value), "{value} is not in {least}..{most}");
    // The same by the other formats and views.
    let name = "heaptop-demo";
    let mut all = String::new();
    for view in ["callsites", "callers", "promotion", "threads", "peak", "leaks"] {
        for format in ["text", "csv"] {
            all += &succeeds(&demo, &["report", name, "--view", view, "--format", format]);
        }
    }
    for text in ["forget_session", "sampled every byte", "function,location,in_use_bytes"] {
        assert!(all.contains(text), "no {text} in {all}");
    }
    let folded = succeeds(&demo, &["export", &pid, "--format", "folded", "-o", "-"]);
    assert!(folded.lines().any(|line| line.contains("forget_session")), "{folded}");
    let svg = succeeds(&demo, &["export", &pid, "--format", "svg", "-o", "-"]);
    assert!(svg.contains("<svg") && svg.contains("forget_session"));
}

#[test]
fn what_is_not_tracked_is_not_told() {
    for (track, in_use, allocated) in [("promoted", true, false), ("allocations", false, true)] {
        let settings = [("HEAPTOP_INTERVAL", "1"), ("HEAPTOP_TRACK", track)];
        let mut demo = demo::start_with(&["--leak", "1048576"], &settings);
        demo::warm_up(&mut demo, 8 << 20, 1 << 20);
        let pid = demo.pid().to_string();
        let before = Truths::ask(&mut demo);
        let json = succeeds(&demo, &["report", &pid, "--format", "json"]);
        let after = Truths::ask(&mut demo);
        let leak = leak_in(&json);
        let value = |of: &str| leak[of]["value"].as_f64();
        let (before, after) = (&before["forget_session"], &after["forget_session"]);
        // Of what lives the blocks of the running cycle are missing, if anything is.
        let lived = value("in_use_bytes").map(|v| v > 0.0 && v <= after.in_use_bytes as f64);
        assert_eq!(lived, in_use.then_some(true), "{track}: {leak}");
        let born = value("allocated_bytes")
            .map(|v| (before.allocated_bytes as f64..=after.allocated_bytes as f64).contains(&v));
        assert_eq!(born, allocated.then_some(true), "{track}: {leak}");
        let text = succeeds(&demo, &["report", &pid]);
        assert!(text.contains("tracked"), "it is said: {text}");
    }
}

#[test]
fn what_cannot_be_reported_is_a_sentence() {
    let demo = demo::start(&[]);
    let pid = demo.pid().to_string();
    let mut seen = String::new();
    for (args, sentence) in [
        (&["report", "nobody-of-this-name"][..], "no target is called nobody-of-this-name"),
        (&["report", "missing.heaptop"], "missing.heaptop"),
        (&["report", &pid, "--at", "no-such-mark"], "there are no marks: write a time"),
        (&["report", &pid, "--range", "1s"], "a range is two moments"),
        (&["report", &pid, "--view", "callers", "--focus", "nope"], "no function is called nope"),
        (&["export", &pid, "--format", "svg", "--filter", "nope"], "nothing to export"),
        (&["export", &pid, "--format", "ctf", "-o", "-"], "is a target that runs"),
        (&["export", "heaptop-demo", "--format", "ctf"], "`heaptop record heaptop-demo -o"),
        (&["report", &pid, "--at", "9000h"], "is after the end"),
        (&["report", "missing.heaptop", "--for", "1s"], "--for is for targets that run"),
    ] {
        let ended = heaptop(&demo, args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(sentence), "{args:?}: {}", ended.stderr);
        writeln!(seen, "{}", ended.stderr).expect("a string takes all");
    }
    assert!(!seen.contains("panicked"), "{seen}");
}

/// Without being told to, a report of what runs is of what is there at once.
#[test]
fn a_running_target_is_watched_for_as_long_as_was_asked() {
    let demo = demo::start(&[]);
    let pid = demo.pid().to_string();
    let args = ["report", &pid, "--view", "leaks", "--format", "json", "--for"];
    for (time, least_ns) in [("1ms", 1_000_000), ("1500ms", 1_500_000_000)] {
        let json = succeeds(&demo, &[&args[..], &[time]].concat());
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let span = |end: &str| json["span"][end].as_u64().expect("a snapshot is complete");
        assert!(span("to_ns") - span("from_ns") >= least_ns, "{}", json["span"]);
        let notes = json["notes"].to_string();
        assert!(notes.contains("growth needs longer: --for 10s"), "{notes}");
    }
}

#[test]
fn a_reader_that_goes_is_no_error() {
    let demo = demo::start(&[]);
    let heaptop = heaptop_tests::binaries::path("heaptop");
    let script = format!(
        "{} report {} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}",
        heaptop.display(),
        demo.pid()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("HEAPTOP_DIR", demo.directory())
        .output()
        .expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// What the program tells of its course, of a recording: phases and marks in their order,
/// memory outside the heap, and any table of one phase alone.
#[test]
fn a_program_that_tells_of_its_course_is_reported_by_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("course.heaptop");
    let mut target = Target::start("fixture-course", &[], &[]);
    target.wait_for("ready");
    let recorder = recordings::record(&target, &path);
    recordings::synced(&path);
    for _ in 0..5 {
        target.say("go");
        target.wait_for("quiet");
    }
    let told = poll(Deadline::default(), || {
        let (_, session, _) = recordings::told(&path);
        let over = session.phases().last().is_some_and(|phase| phase.to_ns.is_some());
        (session.phases().len() == 2 && over).then_some(())
    });
    assert!(told.is_some(), "both phases are recorded");
    recordings::end(recorder, libc::SIGINT);
    let file = path.to_str().expect("a path in plain text");
    let json = |args: &[&str]| -> serde_json::Value {
        let args = [&["report", file, "--format", "json", "--top", "1000"], args].concat();
        serde_json::from_str(&succeeds(&target, &args)).expect("it is JSON")
    };
    let rows = |json: &serde_json::Value| json["rows"].as_array().expect("rows").clone();

    let course = json(&["--view", "course"]);
    let told: Vec<(String, String)> = rows(&course)
        .iter()
        .map(|row| ["name", "kind"].map(|of| row[of].as_str().unwrap_or("").to_owned()))
        .map(|[name, kind]| (name, kind))
        .collect();
    let want = [("load", "phase"), ("warm", "mark"), ("serve", "phase")];
    assert_eq!(told, want.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let ns = |row: usize, of: &str| rows(&course)[row][of].as_u64().expect("a time");
    assert!(ns(0, "from_ns") < ns(1, "from_ns") && ns(1, "from_ns") <= ns(2, "from_ns"));
    assert_eq!(ns(0, "to_ns"), ns(2, "from_ns"), "a phase lasts until the next one");
    assert!(ns(2, "clock_bytes") >= ns(0, "clock_bytes") + 100 * 1024);
    assert!(course["notes"].to_string().contains("the program says it is: shard 7"), "{course}");
    assert_eq!(rows(&json(&["--view", "course", "--filter", "war"])).len(), 1);

    let external = json(&["--view", "external"]);
    let of = |json: &serde_json::Value, name: &str, figure: &str| {
        let row = rows(json)
            .into_iter()
            .find(|row| row["function"].as_str().is_some_and(|function| function.ends_with(name)));
        row.and_then(|row| row[figure]["value"].as_f64())
    };
    assert_eq!(rows(&external).len(), 2, "{external}");
    assert_eq!(of(&external, "[external: gpu]", "in_use_bytes"), Some(1_048_576.0));
    assert_eq!(of(&external, "[external: pool]", "in_use_bytes"), Some(0.0));
    assert_eq!(of(&external, "[external: pool]", "allocated_bytes"), Some(65_536.0));
    let gpu = json(&["--view", "external", "--filter", "gpu"]);
    // What the filter takes is all that the sum is of.
    let total = gpu["total"]["in_use_bytes"]["value"].as_f64();
    assert_eq!((rows(&gpu).len(), total), (1, Some(1_048_576.0)));

    // Of one phase alone: what was born in it, and what is in use at its end.
    let [load, serve] = ["load", "serve"].map(|phase| json(&["--phase", phase]));
    assert_eq!(of(&load, "in_load", "allocated_bytes"), Some(102_400.0));
    assert_eq!(of(&load, "in_serve", "allocated_bytes").unwrap_or(0.0), 0.0);
    assert_eq!(of(&serve, "in_load", "allocated_bytes"), Some(0.0));
    assert_eq!(of(&serve, "in_load", "in_use_bytes"), Some(102_400.0));
    assert_eq!(of(&serve, "in_serve", "allocated_bytes"), Some(102_400.0));
    assert_eq!(of(&serve, "in_serve", "in_use_bytes"), Some(20_480.0));
    let grown = json(&["--view", "leaks", "--phase", "serve"]);
    assert_eq!(of(&grown, "in_serve", "growth_bytes"), Some(20_480.0));
    let folded = ["export", file, "--format", "folded", "--phase", "load", "--metric"];
    let folded = succeeds(&target, &[&folded[..], &["allocated-bytes", "-o", "-"]].concat());
    assert!(folded.contains("in_load") && !folded.contains("in_serve"), "{folded}");
    let ended = heaptop(&target, &["report", file, "--phase", "laod"]);
    assert_eq!(ended.status.code(), Some(2));
    let sentence = "laod is no phase of the program's: the last are serve, load";
    assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
}
