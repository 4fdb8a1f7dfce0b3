//! The real viewer in a pseudo-terminal, on real targets.

use crate::{demo, httpd};
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::http;
use heaptop_tests::target::{Target, make_old, socket_directory};
use heaptop_tests::terminal::{Terminal, key};
use heaptop_tests::truth::Truths;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Waits for the row of a function in the table of callsites: the first that
/// names it and shows all of `figures`.
fn row_with(terminal: &Terminal, function: &str, figures: &[&str]) -> String {
    terminal.until(&format!("a row of {function} with {figures:?}"), |screen| {
        let named = |line: &&str| {
            let name = line.trim_start_matches(['▸', ' ']).split("  ").next().unwrap_or_default();
            name == function || name.ends_with(&format!(":{function}"))
        };
        let shows = |line: &&str| figures.iter().all(|figure| line.contains(figure));
        screen.lines().filter(named).find(shows).map(str::to_owned)
    })
}

/// Waits for the row of a function, whatever it shows.
fn row(terminal: &Terminal, function: &str) -> String {
    row_with(terminal, function, &[])
}

fn exact() -> Target {
    let mut target = Target::start("fixture-exact", &["1"], &[]);
    target.wait_for("ready");
    target
}

#[test]
fn a_viewer_that_comes_late_sees_what_was_allocated_before() {
    let mut target = Target::start("fixture-late", &[], &[]);
    target.wait_for("quiet");
    let terminal = Terminal::viewer(target.directory(), &[]);
    let row = row_with(&terminal, "build_heap", &["late.rs:", " 500 KiB ", " 500 "]);
    // R = 1: without an interval.
    assert!(!row.contains('±'), "{row}");
    assert!(terminal.contents().contains("every byte"), "{}", terminal.contents());
}

#[test]
fn totals_go_on_between_two_viewers() {
    let mut target = exact();
    let mut first = Terminal::viewer(target.directory(), &[]);
    first.wait_for("fixture-exact");
    first.wait_for("all callsites");
    first.press("q");
    assert_eq!(first.wait(), 0);
    assert!(!first.in_alternate_screen() && !first.cursor_hidden());

    target.say("work");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    let second = Terminal::viewer(target.directory(), &[]);
    assert_eq!(truths["leak"].in_use_bytes, 1600);
    row_with(&second, "leak", &[" 1.56 KiB ", " 25 "]);
    assert_eq!(truths["keep"].in_use_bytes, 9000);
    row_with(&second, "keep", &[" 8.79 KiB ", " 100 %"]);
}

/// What was sampled up to the last instruction is there after the end, however it
/// came, and the viewer says how it came.
fn ends(how: &str, sentence: &str) {
    let mut target = Target::start("fixture-ends", &[how], &[]);
    target.wait_for("ready");
    let terminal = Terminal::viewer(target.directory(), &[]);
    row_with(&terminal, "hold_first", &[" 64.0 KiB "]);
    target.say("go");
    terminal.wait_for("ENDED");
    terminal.wait_for(sentence);
    // In use, objects in use, promoted.
    row_with(&terminal, "hold_first", &[" 32.0 KiB ", " 32 "]);
    row_with(&terminal, "born_last", &[" 58.6 KiB ", " 200 ", " 100 %"]);
}

#[test]
fn what_exit_left_is_read() {
    ends("exit", "the target has exited with code 3");
}

#[test]
fn what_an_exit_without_handlers_left_is_read() {
    ends("_exit", "the target has exited with code 4");
}

#[test]
fn what_abort_left_is_read() {
    ends("abort", "the target was killed by SIGABRT");
}

#[test]
fn what_an_exec_left_is_read() {
    ends("exec", "the target has become another program");
}

#[test]
fn what_a_kill_left_is_read() {
    ends("kill", "the target was killed by SIGKILL");
}

#[test]
fn the_end_of_the_target_is_told_and_its_figures_stay() {
    let mut target = Target::start("fixture-exits", &["0"], &[]);
    target.wait_for("ready");
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    row(&terminal, "hold_until_exit");
    target.say("go");
    assert!(target.wait().success());
    terminal.wait_for("ENDED");
    row_with(&terminal, "hold_until_exit", &[" 64.0 KiB ", " 64 "]);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn a_killed_target_is_told_as_well() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 1 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    row(&terminal, "fill_cache");
    let socket = demo.socket();
    // One that is younger may be another's by now: it stays until targets are listed.
    make_old(&socket);
    demo.signal(libc::SIGKILL);
    demo.wait();
    terminal.wait_for("ENDED");
    assert!(!socket.exists(), "its socket is left");
    row(&terminal, "fill_cache");
    assert!(!terminal.contents().contains("(other stacks)"), "nothing is in it");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn two_viewers_at_once() {
    let mut demo = demo::start(&["--leak", "1048576"]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut first = Terminal::viewer(demo.directory(), &[]);
    let mut second = Terminal::start("heaptop", demo.directory(), &[], (24, 80));
    for terminal in [&first, &second] {
        row(terminal, "fill_cache");
        row(terminal, "forget_session");
    }
    second.press("q");
    assert_eq!(second.wait(), 0);
    // The other one goes on: what leaks grows.
    let before = row(&first, "forget_session");
    first.until("another figure of the leak", |screen| {
        let now = screen.lines().find(|line| line.contains("forget_session"))?;
        (now != before).then_some(())
    });
    first.press("q");
    assert_eq!(first.wait(), 0);
}

#[test]
fn enter_leads_from_a_callsite_up_to_main() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 8 << 20, 256 << 10);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    row(&terminal, "forget_session");
    terminal.press("/forget_session");
    terminal.press(key::ENTER);
    terminal.wait_for("1 of ");
    terminal.press(key::ENTER);
    // The focus is the tree's first row; below it is who calls it.
    let focus = |screen: &str| {
        let mut lines = screen.lines().skip_while(|line| !line.starts_with(" callers  "));
        // Without the marks of the selected row and of an open branch.
        let line = lines.nth(1)?.trim_start_matches(['▸', ' ', '-']);
        line.split("  ").next().map(str::to_owned)
    };
    let mut seen = vec![terminal.until("the callers of the callsite", |screen| {
        focus(screen).filter(|f| f.ends_with("forget_session"))
    })];
    while !seen.last().is_some_and(|f| f.ends_with("heaptop_demo::main")) {
        assert!(seen.len() < 40, "no end: {seen:#?}");
        terminal.press(key::DOWN);
        terminal.press(key::ENTER);
        let last = seen.last().cloned();
        seen.push(
            terminal.until("another focus", |screen| {
                focus(screen).filter(|f| Some(f) != last.as_ref())
            }),
        );
    }
    for function in ["log_in", "worker_loop", "run"] {
        let on_the_way = seen.iter().any(|f| f.ends_with(&format!("::{function}")));
        assert!(on_the_way, "no {function} in {seen:#?}");
    }
    // And back down, to the callsites.
    for _ in 1..=seen.len() {
        terminal.press(key::ESC);
        terminal.until("a step back", |screen| {
            let now = focus(screen);
            (now.as_ref() != seen.last()).then_some(())
        });
        seen.pop();
    }
    terminal.wait_for("matching callsites");
}

#[test]
fn an_export_is_a_flamegraph_of_what_is_shown() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 8 << 20, 256 << 10);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    for function in ["fill_cache", "forget_session"] {
        row(&terminal, function);
    }
    terminal.press("e");
    terminal.wait_for("Enter writes");
    terminal.press(key::ENTER);
    terminal.wait_for("written: ");
    let files = std::fs::read_dir(demo.directory()).unwrap().map(|f| f.unwrap().path());
    let file = files.into_iter().find(|f| f.extension().is_some_and(|e| e == "svg"));
    let svg = std::fs::read_to_string(file.expect("an SVG file where the viewer runs")).unwrap();
    assert!(svg.contains("<svg") && svg.trim_end().ends_with("</svg>"));
    for function in ["fill_cache", "forget_session", "worker_loop", "heaptop_demo::main"] {
        assert!(svg.contains(function), "no {function} in the flamegraph");
    }
}

#[test]
fn an_export_goes_where_it_is_typed_and_overwrites_nothing() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 8 << 20, 256 << 10);
    let here = demo.directory().to_owned();
    std::fs::create_dir(here.join("out")).unwrap();
    std::fs::write(here.join("out/heap.svg"), "mine").unwrap();
    std::fs::write(here.join("mine.toml"), "export-directory = \"out\"\n").unwrap();
    let mut terminal = Terminal::viewer(&here, &["--config", "mine.toml"]);
    row(&terminal, "fill_cache");
    terminal.press("e");
    terminal.wait_for("/out/heaptop-");
    // ^U takes what is there away.
    terminal.press("p\x15none/heap.svg\r");
    terminal.wait_for("there is no directory ");
    terminal.press("\x15out/heap.svg\r");
    terminal.wait_for("/out/heap-2.svg: heap.svg is there already");
    terminal.press(key::ENTER);
    terminal.wait_for("written: ");
    let text = |name| std::fs::read_to_string(here.join("out").join(name)).unwrap();
    assert_eq!(text("heap.svg"), "mine");
    assert!(text("heap-2.svg").contains("<svg"));
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn nothing_is_written_while_the_screen_is_paused() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    row(&terminal, "serve_request");
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    // By the demo's own clock: it goes on, and the stream with it.
    let since = Truths::ask(&mut demo).at_s;
    let wait = |demo: &mut Target, until: f64| while Truths::ask(demo).at_s < until {};
    wait(&mut demo, since + 0.5);
    let (screen, written) = (terminal.contents(), terminal.written());
    wait(&mut demo, since + 3.0);
    assert_eq!(terminal.written(), written, "the paused screen was written to");
    terminal.press(" ");
    terminal.until("a screen that goes on", |now| {
        (!now.contains("PAUSED") && now != screen).then_some(())
    });
}

#[test]
fn any_size_is_survived() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    row(&terminal, "fill_cache");
    for (rows, cols) in [(24, 80), (5, 20), (1, 1), (60, 300), (3, 200), (50, 12), (24, 80)] {
        terminal.resize(rows, cols);
        terminal.press("2");
        terminal.press("1");
    }
    row(&terminal, "fill_cache");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

/// A terminal that was small for a moment has lost what did not fit, and by the time its
/// signal is heard it has the size of the last drawing again.
#[test]
fn what_a_terminal_has_lost_is_drawn_again() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    row(&terminal, "fill_cache");
    // So that no row changes any more.
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    terminal.lose();
    assert!(!terminal.contents().contains("fill_cache"));
    let pid = i32::try_from(terminal.pid().expect("it runs")).unwrap();
    // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGWINCH) }, 0);
    row(&terminal, "fill_cache");
    terminal.wait_for("PAUSED");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let target = Target::start("fixture-exits", &["0"], &[]);
    let _ = target.socket();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut terminal = Terminal::viewer(target.directory(), &[]);
        terminal.wait_for("hold_until_exit");
        assert!(terminal.in_alternate_screen());
        let pid = i32::try_from(terminal.pid().expect("it runs")).unwrap();
        // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        terminal.wait();
        assert!(!terminal.in_alternate_screen(), "after signal {signal}");
        assert!(!terminal.cursor_hidden(), "after signal {signal}");
    }
}

#[test]
fn without_a_target_a_sentence_says_what_to_do() {
    let directory = socket_directory();
    // Without a terminal there is no screen; in one there is a list that waits.
    let output = std::process::Command::new(heaptop_tests::binaries::path("heaptop"))
        .env("HEAPTOP_DIR", directory.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("heaptop list") && error.lines().count() == 1, "{error}");

    let mut terminal = Terminal::viewer(directory.path(), &[]);
    terminal.wait_for("no target runs");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    assert!(!terminal.in_alternate_screen());
}

#[test]
fn what_cannot_be_done_is_a_sentence_and_exit_code_2() {
    let directory = socket_directory();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let long = directory.path().join("d".repeat(200));
    for directory in [directory.path(), &long] {
        let output = std::process::Command::new(heaptop_tests::binaries::path("heaptop"))
            .args(["list", "--json"])
            .env("HEAPTOP_DIR", directory)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with("heaptop: the ") && error.lines().count() == 1, "{error}");
        assert!(output.stdout.is_empty());
    }
    let mut terminal = Terminal::viewer(directory.path(), &["demo"]);
    terminal.wait_for("did not open its socket");
    assert_eq!(terminal.wait(), 2);
    let mut terminal = Terminal::viewer(directory.path(), &["attach", ""]);
    terminal.wait_for("what was given is empty");
    assert_eq!(terminal.wait(), 2);
}

#[test]
fn the_demo_is_one_command_and_ends_with_its_viewer() {
    let directory = socket_directory();
    let mut terminal = Terminal::viewer(directory.path(), &["demo"]);
    for function in ["serve_request", "fill_cache", "forget_session"] {
        row(&terminal, function);
    }
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The process that `parent` started, once there is one.
fn child_of(parent: u32) -> u32 {
    poll(Deadline::default(), || {
        let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        list.ok()?.split_whitespace().next()?.parse().ok()
    })
    .expect("it starts a process")
}

/// Waits for the end of a process that is not ours to reap.
fn until_ended(pid: u32) {
    poll(Deadline::default(), || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| &rest[..1]);
        ["", "Z", "X"].contains(&state).then_some(())
    })
    .expect("it ends");
}

#[test]
fn the_demo_ends_however_its_viewer_ends() {
    for signal in [libc::SIGKILL, libc::SIGQUIT, libc::SIGTERM] {
        let directory = socket_directory();
        let mut terminal = Terminal::viewer(directory.path(), &["demo"]);
        row(&terminal, "fill_cache");
        let viewer = terminal.pid().expect("it runs");
        let demo = child_of(viewer);
        // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
        assert_eq!(unsafe { libc::kill(viewer.cast_signed(), signal) }, 0);
        terminal.wait();
        until_ended(demo);
    }
}

#[test]
fn the_demo_ends_with_a_viewer_that_still_waits_for_it() {
    let directory = socket_directory();
    // Where others may enter no agent opens a socket, and the viewer waits in vain.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let mut terminal = Terminal::viewer(directory.path(), &["demo"]);
    let viewer = terminal.pid().expect("it runs");
    let demo = child_of(viewer);
    // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
    assert_eq!(unsafe { libc::kill(viewer.cast_signed(), libc::SIGTERM) }, 0);
    terminal.wait();
    until_ended(demo);
}

#[test]
fn of_several_targets_one_is_chosen() {
    let directory = Arc::new(socket_directory());
    let start = |name| {
        let mut target = Target::start_in(
            Arc::clone(&directory),
            "fixture-exits",
            &["0"],
            &[("HEAPTOP_NAME", name)],
        );
        target.wait_for("ready");
        let _ = target.socket();
        target
    };
    let (first, second) = (start("first-one"), start("second-one"));
    let list = std::process::Command::new(heaptop_tests::binaries::path("heaptop"))
        .args(["list", "--json"])
        .env("HEAPTOP_DIR", directory.path())
        .output()
        .unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let pids: BTreeSet<u64> =
        list.as_array().expect("a list").iter().filter_map(|t| t["pid"].as_u64()).collect();
    assert_eq!(pids, [first.pid(), second.pid()].map(u64::from).into());

    let terminal = Terminal::viewer(directory.path(), &[]);
    terminal.wait_for("first-one");
    terminal.wait_for("second-one");
    drop(terminal);
    for which in [second.pid().to_string(), "second-one".to_owned()] {
        let terminal = Terminal::viewer(directory.path(), &["attach", &which]);
        row(&terminal, "hold_until_exit");
        assert!(terminal.line_with(&format!("pid {}", second.pid())).contains("second-one"));
    }
}

#[test]
fn the_table_of_a_real_server_names_its_functions() {
    let (server, port) = httpd::serve(&[("HEAPTOP_INTERVAL", "8K")]);
    // High enough for all rows: some hold nothing at the moment and come last.
    let viewer = || Terminal::start("heaptop", server.directory(), &[], (120, 140));
    let mut first = viewer();
    http::load(port, 2, 0, 8000);
    for function in httpd::FUNCTIONS {
        row(&first, function);
    }
    first.press("q");
    assert_eq!(first.wait(), 0);
    let second = viewer();
    http::load(port, 4, 8000, 12_000);
    for function in httpd::FUNCTIONS {
        row(&second, function);
    }
}

#[test]
fn a_stopped_target_is_told() {
    let target = exact();
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("fixture-exact");
    target.signal(libc::SIGSTOP);
    terminal.wait_for("no news for 3 s");
    terminal.wait_for("no news for 4 s");
    target.signal(libc::SIGCONT);
    terminal.until("a screen without it", |now| (!now.contains("no news")).then_some(()));
    terminal.press("9");
    let line = terminal.line_with("the target was stopped, or got no time");
    assert!(line.contains("no news for"), "{line}");
}

#[test]
fn a_stopped_viewer_holds_up_nobody() {
    let mut target = exact();
    let terminal = Terminal::viewer(target.directory(), &[]);
    terminal.wait_for("fixture-exact");
    let pid = i32::try_from(terminal.pid().expect("it runs")).unwrap();
    // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    target.say("work");
    target.wait_for("quiet");
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
    row_with(&terminal, "leak", &[" 1.56 KiB "]);
}
