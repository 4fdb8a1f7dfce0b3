//! What the viewer tells the agent, by its keys, and what comes of it.

use crate::demo;
use heaptop_tests::terminal::{Terminal, key};

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
        terminal.wait_for("1 in 16 KiB  ");
    }
    first.press("x");
    first.wait_for("stop sampling, for all viewers?");
    first.press(key::ENTER);
    for terminal in [&first, &second] {
        terminal.wait_for("x starts it again");
    }
    first.press("xy");
    for terminal in [&first, &second] {
        terminal.until("sampling again", |screen| {
            (screen.contains("1 in 16 KiB") && !screen.contains("x starts it again")).then_some(())
        });
    }
    first.press("q");
    assert_eq!(first.wait(), 0);
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
