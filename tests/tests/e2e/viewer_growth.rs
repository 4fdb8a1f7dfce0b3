//! Leaks, details and groups on the demo, in a pseudo-terminal, by its own counters.

use crate::demo;
use heaptop_tests::run::Run;
use heaptop_tests::target::Target;
use heaptop_tests::terminal::{Terminal, key};
use heaptop_tests::truth::Truths;

/// A demo that leaks, every byte of which is seen.
fn leaking() -> Target {
    let mut demo = demo::start_with(&["--leak", "262144"], &[("HEAPTOP_INTERVAL", "1")]);
    demo::warm_up(&mut demo, 2 << 20, 256 << 10);
    demo
}

#[test]
fn leaks_are_told_from_what_stays() {
    let demo = leaking();
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("forget_session");
    terminal.press("7");
    // It grows, with evidence, and leads the list.
    let first = terminal.until("the leak in the first row, as growth", |screen| {
        let mut rows = screen.lines().skip_while(|line| !line.starts_with(" callsite"));
        rows.nth(1)
            .filter(|row| row.contains("forget_session") && row.contains("▲+"))
            .map(str::to_owned)
    });
    assert!(first.contains(" KiB") || first.contains(" MiB"), "{first}");
    terminal.until("growth of all, with evidence", |screen| {
        let line = screen.lines().find(|line| line.starts_with(" growth "))?;
        (line.contains("since heaptop came") && line.contains("with evidence")).then_some(())
    });
    // A limit is named with what it is of, and when it is reached.
    terminal.until("a forecast", |screen| {
        let line = screen.lines().find(|line| line.starts_with(" reaches "))?;
        (line.contains(" in ") && line.contains("if RSS grows as in use does")).then_some(())
    });
    terminal.until("what resident memory is made of", |screen| {
        let line = screen.lines().find(|line| line.starts_with(" RSS "))?;
        let known = line.contains("allocator slack –") && !line.contains("files –");
        (known && !line.contains("unexplained –")).then_some(())
    });
    terminal.press("L64M");
    terminal.press(key::ENTER);
    terminal.wait_for("the limit that was set, 64.0 MiB in use, in ");
    // From a mark on growth is counted anew; blocks born since then are of its generation.
    terminal.press("Mcut");
    terminal.press(key::ENTER);
    terminal.wait_for("since “cut”");
    terminal.wait_for("≥ cut");
    terminal.press("D");
    terminal.wait_for("growth is counted from when heaptop came");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn a_leak_is_looked_at_closely() {
    let demo = leaking();
    let mut terminal = Terminal::start("heaptop", demo.directory(), &[], (60, 170));
    terminal.wait_for("forget_session");
    terminal.press("7");
    terminal.until("the leak in the first row", |screen| {
        let mut rows = screen.lines().skip_while(|line| !line.starts_with(" callsite"));
        rows.nth(1).filter(|row| row.contains("forget_session") && row.contains("▲+")).map(|_| ())
    });
    terminal.press(key::ENTER);
    for text in [
        "it grows: look at",
        " samples over ",
        "in use = births/s × stay × size",
        "threads that allocate here",
        "live sampled blocks, the oldest first",
        "log_in",
        "0x",
    ] {
        terminal.wait_for(text);
    }
    terminal.press("\x1b");
    terminal.wait_for(" reaches ");
    // What dies young is told to be, from the callsites.
    terminal.press("1/serve_request");
    terminal.press(key::ENTER);
    terminal.wait_for("matching callsites");
    terminal.press("d");
    terminal.wait_for("reuse a buffer");
    // Who frees is captured while it is looked at.
    terminal.wait_for("of the bytes freed, by");
}

#[test]
fn rows_are_grouped_and_columns_chosen() {
    let demo = leaking();
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("forget_session");
    terminal.press("ts");
    // Who only calls has nothing of its own, and all that it calls.
    terminal.until("flat and cum of a caller", |screen| {
        let row = screen.lines().find(|line| line.contains("::log_in "))?;
        (screen.contains(" cum ") && row.contains(" 0 B")).then_some(())
    });
    for (key, row) in [
        ("t", "service.rs"),
        ("t", "heaptop_demo"),
        ("t", "> 256 B to 512 B"),
        ("t", "(other threads)"),
    ] {
        terminal.press(key);
        if row == "(other threads)" {
            terminal.wait_for("all threads");
        } else {
            terminal.wait_for(row);
        }
    }
    terminal.press("t");
    terminal.wait_for("all callsites");
    terminal.press("c");
    terminal.wait_for("[x] objects");
    terminal.press("jj ");
    terminal.wait_for("[ ] objects");
    terminal.press("\x1b");
    terminal.until("a table without objects", |screen| {
        let heading = screen.lines().find(|line| line.starts_with(" callsite "))?;
        (!heading.contains("objects") && heading.contains("allocated")).then_some(())
    });
}

/// However rows are put together, they are what the demo counts.
#[test]
fn groups_are_what_the_demo_counts() {
    let mut demo = leaking();
    let in_use = |row: &serde_json::Value| row["in_use_bytes"]["value"].as_f64().unwrap_or(0.0);
    let mut reports = Vec::new();
    let before = Truths::ask(&mut demo);
    for group in ["callsite", "function", "file", "crate", "size", "thread"] {
        let args =
            ["report", "heaptop-demo", "--format", "json", "--top", "1000", "--group", group];
        let ended = Run::of("heaptop", &args).directory(demo.directory()).to_end();
        assert!(ended.status.success(), "{group}: {}", ended.stderr);
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
        reports.push((group, json));
    }
    let after = Truths::ask(&mut demo);
    let kept = |truths: &Truths| {
        ["fill_cache", "forget_session"].map(|name| truths[name].in_use_bytes as f64)
    };
    let (least, most) = (kept(&before), kept(&after));
    for (group, report) in &reports {
        let rows = report["rows"].as_array().expect("rows");
        assert!(!rows.is_empty(), "{group}");
        let all: f64 = rows.iter().map(in_use).sum();
        let total = in_use(&report["total"]);
        assert!((all - total).abs() < 1.0, "{group}: rows add up to {all}, not {total}");
        // The cache swaps a page under our eyes, and workers hold some buffers.
        let some = 64.0 * 1024.0;
        let (low, high) = (least.iter().sum::<f64>() - some, most.iter().sum::<f64>() + some * 8.0);
        assert!((low..=high).contains(&total), "{group}: {total} is not in {low}..{high}");
        let of = |name: &str| rows.iter().find(|row| row.to_string().contains(name)).map(in_use);
        match *group {
            "callsite" | "function" => {
                let leak = of("forget_session").expect("the leak has a row");
                assert!((least[1]..=most[1]).contains(&leak), "{group}: {leak}");
            }
            "file" => assert!(of("service.rs").is_some_and(|bytes| bytes >= least[1])),
            "crate" => assert!(of("heaptop_demo").is_some_and(|bytes| bytes >= least[1])),
            "size" => assert!(of("256 B to 512 B").is_some_and(|bytes| bytes > 0.0)),
            _ => assert!(rows.len() > 2, "cache and workers: {rows:?}"),
        }
    }
}
