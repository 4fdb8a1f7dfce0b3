//! What the viewer tells the agent, by its keys, and what comes of it.

use crate::demo;
use heaptop_tests::binaries;
use heaptop_tests::terminal::{Terminal, key};
use std::process::Command;

#[test]
fn keys_change_the_interval_and_stop_and_start_sampling() {
    let mut demo = demo::start_with(&[], &[("HEAPTOP_INTERVAL", "64K")]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut first = Terminal::start("heaptop", demo.directory(), &[], (24, 80));
    let second = Terminal::viewer(demo.directory(), &[]);
    for terminal in [&first, &second] {
        terminal.wait_for("1 in 64 KiB");
    }
    first.press("+");
    first.wait_for("sample 1 in 32 KiB?");
    first.press("n");
    first.wait_for("nothing was changed");
    first.press("++");
    first.wait_for("sample 1 in 16 KiB?");
    first.press("y");
    // It is the target's, and so the other viewer's.
    for terminal in [&first, &second] {
        // In the header it stands by itself, or is the last of its line.
        terminal.until("another R in the header", |screen| {
            let mut lines = screen.lines().take(4).map(|line| format!("{}  ", line.trim_end()));
            lines.any(|line| line.contains("1 in 16 KiB  ")).then_some(())
        });
    }
    first.wait_for("R is 1 in 16 KiB now");
    first.press("x");
    first.wait_for("stop sampling, for all viewers?");
    // Enter is no yes to that.
    first.press(key::ENTER);
    first.wait_for("nothing was changed");
    first.press("xy");
    for terminal in [&first, &second] {
        terminal.wait_for("x starts it again");
    }
    first.press("xy");
    for terminal in [&first, &second] {
        terminal.until("sampling again", |screen| {
            (screen.contains("1 in 16 KiB") && !screen.contains("x starts it again")).then_some(())
        });
    }
    first.wait_for("sampling is on now");
    first.press("9");
    for outcome in ["R is 1 in 16 KiB now", "sampling is off now", "sampling is on now"] {
        first.wait_for(outcome);
    }
    first.press("q");
    assert_eq!(first.wait(), 0);
}

#[test]
fn a_target_that_does_not_answer_is_told_and_so_is_a_late_answer() {
    let mut demo = demo::start_with(&[], &[("HEAPTOP_INTERVAL", "64K")]);
    demo::warm_up(&mut demo, 1 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("1 in 64 KiB");
    demo.signal(libc::SIGSTOP);
    terminal.press("+y");
    terminal.wait_for("the target has not answered: R shall be 1 in 32 KiB");
    demo.signal(libc::SIGCONT);
    terminal.wait_for("R is 1 in 32 KiB now");
    terminal.press("9");
    terminal.wait_for("the target has not answered: R shall be 1 in 32 KiB");
}

#[test]
fn a_snapshot_is_a_recording_of_one_moment() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("fill_cache");
    terminal.press("W");
    let line = terminal.line_with("snapshot written: ");
    let path = line.split("snapshot written: ").nth(1).and_then(|rest| rest.split(", ").next());
    let name = path.and_then(|path| path.rsplit('/').next()).expect("a path").to_owned();
    assert!(name.ends_with(".snapshot.heaptop"), "{line}");
    // It is whole, has names, and the target went on.
    let output = Command::new(binaries::path("heaptop"))
        .args(["report", &name])
        .current_dir(demo.directory())
        .output()
        .expect("the viewer runs");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && report.contains("fill_cache"), "{report}");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn a_mark_is_told_to_all_viewers() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 1 << 20, 0);
    let mut first = Terminal::viewer(demo.directory(), &[]);
    let second = Terminal::viewer(demo.directory(), &[]);
    for terminal in [&first, &second] {
        terminal.wait_for("fill_cache");
    }
    first.press("Mafter the warm-up q");
    first.wait_for("mark as after the warm-up q");
    first.press(key::ENTER);
    for terminal in [&first, &second] {
        terminal.wait_for("marked “after the warm-up q”, up ");
    }
}

#[test]
fn a_thin_row_is_told_what_would_make_it_finer() {
    let mut demo = demo::start_with(&[], &[("HEAPTOP_INTERVAL", "512K")]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let mut terminal = Terminal::start("heaptop", demo.directory(), &[], (24, 80));
    terminal.wait_for("fill_cache");
    terminal.press("/fill_cache");
    terminal.press(key::ENTER);
    let rule = terminal.line_with("selected row: ");
    let known = rule.contains("selected row: finer: R ") || rule.contains("at this R");
    assert!(known && rule.contains("±10 %") && rule.starts_with("──"), "{rule}");
}
