//! What the user has chosen for good: the configuration, themes, and the first time.

use crate::demo;
use heaptop_tests::binaries;
use heaptop_tests::terminal::{Terminal, key};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn heaptop(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binaries::path("heaptop"));
    command.args(args).current_dir(directory).env("XDG_CONFIG_HOME", directory);
    command.output().unwrap()
}

#[test]
fn a_session_begins_as_it_is_configured_and_a_mistake_costs_its_line() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let file = demo.directory().join("mine.toml");
    let text =
        "screen = \"promotion\"\ntheme = \"drak\"\n[keys]\npause = [\"v\"]\nquit = [\"Q\"]\n";
    fs::write(&file, text).unwrap();
    let mut terminal = Terminal::viewer(demo.directory(), &["--config", "mine.toml"]);
    // It says which line, and what holds.
    terminal.wait_for("mine.toml:2: theme must be one of dark, light, colour-blind, mono");
    terminal.wait_for("born young");
    terminal.press(" ");
    terminal.press("v");
    terminal.wait_for("PAUSED");
    terminal.press("q9");
    terminal.wait_for("mine.toml:2:");
    terminal.wait_for("Q quit");
    terminal.press("Q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn themes_choose_the_colours_that_are_written() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    for (args, color, frame) in [
        // Red, green and blue of what the theme has for frames; or inverse video.
        ("COLORTERM=truecolor \"$VIEWER\" --theme light", true, "48;2;188;192;198"),
        ("TERM=xterm-256color \"$VIEWER\" --theme dark", true, "48;5;240"),
        ("TERM=xterm \"$VIEWER\"", true, "\x1b[7m"),
        ("NO_COLOR=1 COLORTERM=truecolor \"$VIEWER\"", false, "\x1b[7m"),
        ("NO_COLOR=1 COLORTERM=truecolor \"$VIEWER\" --color always", true, "48;2;80;86;94"),
        ("COLORTERM=truecolor \"$VIEWER\" --theme mono", false, "\x1b[7m"),
    ] {
        let mut terminal = Terminal::shell(demo.directory(), args);
        terminal.wait_for("fill_cache");
        terminal.press("3");
        terminal.wait_for("in use, bytes");
        terminal.until("frames", |screen| screen.contains("worker_loop").then_some(()));
        terminal.press("q");
        assert_eq!(terminal.wait(), 0, "{args}");
        let written = String::from_utf8_lossy(&terminal.output()).into_owned();
        assert!(written.contains(frame), "{args}: no {frame:?}");
        let colored = written.contains("\x1b[38;2;") || written.contains("\x1b[48;");
        assert!(color || !colored, "{args}: a colour where none is wanted");
    }
}

#[test]
fn the_default_is_printed_and_holds_and_what_is_wrong_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = heaptop(directory.path(), &["config", "--print"]);
    assert!(printed.status.success());
    fs::create_dir(directory.path().join("heaptop")).unwrap();
    let file = directory.path().join("heaptop/config.toml");
    let missing = heaptop(directory.path(), &["config"]);
    assert!(missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stdout).contains("is not there"));
    fs::write(&file, &printed.stdout).unwrap();
    let checked = heaptop(directory.path(), &["config"]);
    assert_eq!((checked.status.code(), said(&checked).as_str()), (Some(0), ""));
    fs::write(&file, "\n\nrefresh = 3").unwrap();
    let wrong = heaptop(directory.path(), &["config"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("config.toml:3: refresh must be"), "{}", said(&wrong));
    assert_eq!(said(&wrong).lines().count(), 1);
    for command in [&["list", "--config", "none.toml"][..], &["--config", "none.toml", "config"]] {
        let none = heaptop(directory.path(), command);
        assert_eq!(none.status.code(), Some(2), "{command:?}");
        assert!(said(&none).starts_with("heaptop: none.toml: "), "{}", said(&none));
        assert_eq!(said(&none).lines().count(), 1);
    }
}

#[test]
fn completions_and_the_manual_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let printed = heaptop(directory.path(), &["completions", shell]);
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.status.success() && text.contains("completions"), "{shell}");
    }
    let page = heaptop(directory.path(), &["man"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains(".TH heaptop 1"));
}

#[test]
fn who_is_new_is_told_once_what_to_press() {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let script = "XDG_STATE_HOME=\"$PWD/state\" \"$VIEWER\"";
    for first in [true, false] {
        let mut terminal = Terminal::shell(demo.directory(), script);
        terminal.wait_for("fill_cache");
        assert_eq!(terminal.contents().contains("new here? Enter who calls the row"), first);
        terminal.press(key::DOWN);
        terminal.until("the hint to go", |screen| (!screen.contains("new here?")).then_some(()));
        terminal.press("q");
        assert_eq!(terminal.wait(), 0);
    }
    assert!(demo.directory().join("state/heaptop/seen").exists());
}
