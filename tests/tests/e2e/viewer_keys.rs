//! The key table, walked in a real terminal: every key, on every screen where the help
//! says that it works, does something that is seen, and none but those for it closes
//! heaptop.
//!
//! The screen is paused before each key, and nothing else is written then: what changes,
//! the key has done. Where a key needs something to act on (a row above the selected one,
//! a filter to take away), it is made before.

use crate::demo;
use heaptop::app::keys::{Action, BINDINGS, Place, TABS, TimeKey};
use heaptop_tests::deadline::Deadline;
use heaptop_tests::target::Target;
use heaptop_tests::terminal::{Terminal, key};
use std::time::Duration;

/// A screen low enough that every list is longer, and narrow enough that columns are
/// left over.
const SIZE: (u16, u16) = (16, 80);

fn target() -> Target {
    let mut demo = demo::start_with(&["--leak", "1048576"], &[("HEAPTOP_INTERVAL", "16K")]);
    demo::warm_up(&mut demo, 8 << 20, 512 << 10);
    demo
}

fn viewer(target: &Target) -> Terminal {
    let mut terminal = Terminal::start("heaptop", target.directory(), &[], SIZE);
    terminal.wait_for("fill_cache");
    // Two marks to count growth from.
    for name in ["one", "two"] {
        terminal.press(&format!("M{name}\r"));
        terminal.wait_for(&format!("marked “{name}”"));
    }
    // Of a time that is past something is known once the bar of it is drawn.
    terminal.wait_for(" 0 to ");
    terminal
}

/// Keys that lead from the callsites, as they are at the start, to a place.
fn way(place: Place) -> String {
    match place {
        Place::Details => "d".into(),
        Place::Columns => "c".into(),
        Place::Help => "?".into(),
        Place::Export => "e".into(),
        Place::Targets => "T".into(),
        place => TABS.iter().find(|t| t.place == place).map_or('1', |t| t.key).to_string(),
    }
}

/// What the screen of a place shows, and no other.
fn sign(place: Place) -> String {
    match place {
        Place::Details => ", objects ".into(),
        Place::Columns => "bytes that live now".into(),
        Place::Help => "who calls the selected callsite".into(),
        Place::Export => "folded".into(),
        Place::Targets => "targets of this user".into(),
        place => TABS
            .iter()
            .find(|t| t.place == place)
            .map(|t| format!("{} {}", t.key, t.name))
            .unwrap_or_default(),
    }
}

/// What is pressed before, so that there is something to act on.
fn before(action: Action, place: Place) -> &'static str {
    match (action, place) {
        (Action::Down | Action::Last | Action::PageDown, _) => "g",
        (Action::Up | Action::First | Action::PageUp, _) => "G",
        (
            Action::Time(
                TimeKey::Now | TimeKey::Begin | TimeKey::End | TimeKey::Later | TimeKey::MuchLater,
            ),
            _,
        ) => ",,",
        (Action::Time(TimeKey::Play), _) => ",,,",
        (Action::Back, Place::Flame) => "jj\r",
        (Action::Drill, Place::Callers | Place::Flame) => "j",
        (Action::Left, Place::Callsites) => "ll",
        (Action::NextMatch { .. }, Place::Flame) => "fe\r",
        (Action::Left, Place::Help) => "l",
        (Action::Left, Place::Callers) => "gl",
        (Action::Right, Place::Callers) => "gh",
        (Action::ColumnLeft, _) => "jj",
        (Action::ResetColumns, _) => " ",
        (
            Action::Back,
            Place::Callsites | Place::Timeline | Place::Promotion | Place::Threads | Place::Leaks,
        ) => "/e\r",
        _ => "",
    }
}

/// What is pressed behind, so that nothing is left of it: a question is answered with no,
/// a line that is typed is left, what was started is ended.
fn after(action: Action) -> &'static str {
    match action {
        Action::Finer | Action::Coarser | Action::Sampling => "n",
        Action::Filter | Action::Find | Action::Mark | Action::Limit | Action::Path => "\r",
        Action::Record => "R",
        // Backspace: behind Esc the next key would be one with Alt.
        Action::Targets => "\x7f",
        // The root is on top again.
        Action::Invert => "i",
        _ => "",
    }
}

/// Waits until nothing more is written: what was asked for in the background has come.
fn quiet(terminal: &Terminal) -> String {
    loop {
        let written = terminal.written();
        std::thread::sleep(Duration::from_millis(60));
        if terminal.written() == written {
            return terminal.contents();
        }
    }
}

/// The state of the start, on the callsites.
fn home(terminal: &mut Terminal) {
    terminal.press("1r");
    terminal.until("the callsites", |screen| {
        (screen.contains("1 Callsites") && !screen.contains("PAUSED")).then_some(())
    });
}

/// Presses one key in one place; what is wrong.
fn walk(terminal: &mut Terminal, action: Action, place: Place, sent: &str) -> Option<String> {
    // A frame with one beside it lies somewhere below the first.
    let deep = |depth: usize| match action {
        Action::Right => "j".repeat(depth),
        _ => "j".repeat(depth) + "l",
    };
    if place == Place::Flame && matches!(action, Action::Left | Action::Right) {
        let soon = Duration::from_millis(500);
        let found = |depth| press(terminal, (action, place), &deep(depth), sent, soon);
        return (1..16).map(found).reduce(Option::and).flatten();
    }
    press(terminal, (action, place), before(action, place), sent, Duration::from_secs(5))
}

fn press(
    terminal: &mut Terminal,
    (action, place): (Action, Place),
    before: &str,
    sent: &str,
    soon: Duration,
) -> Option<String> {
    // What a nursery would do has no room on the lowest.
    let rows = if place == Place::Promotion { 24 } else { SIZE.0 };
    terminal.resize(rows, SIZE.1);
    home(terminal);
    terminal.press(&way(place));
    if let Err(error) = shows(terminal, &sign(place)) {
        return Some(error);
    }
    // The flamegraph is as it was left until it is reset itself.
    if place == Place::Flame {
        terminal.press("r");
    }
    terminal.press(before);
    // The chooser, the menu and the help take no pause, and stand still.
    let pauses = !matches!(place, Place::Columns | Place::Help | Place::Export);
    if pauses {
        terminal.press(" ");
        if let Err(error) = shows(terminal, "PAUSED") {
            return Some(error);
        }
    }
    let screen = quiet(terminal);
    terminal.press(sent);
    let soon = Deadline::after(soon);
    let changed =
        terminal.by(soon, "something that the key has done", |now| (now != screen).then_some(()));
    terminal.press(after(action));
    changed.err()
}

fn shows(terminal: &Terminal, text: &str) -> Result<(), String> {
    let soon = Deadline::after(Duration::from_secs(10));
    terminal.by(soon, text, |screen| screen.contains(text).then_some(()))
}

/// Whether there is nothing to be seen of the key, with reason.
fn unseen(action: Action, place: Place) -> bool {
    match action {
        // Where one is already.
        Action::Go(to) => to == place,
        // Nobody could continue it in this terminal: see `viewer_manners`.
        Action::Suspend => true,
        _ => false,
    }
}

fn walk_all(of: impl Fn(Place) -> bool) {
    let target = target();
    let mut terminal = viewer(&target);
    let (mut keys, mut wrong) = (0, Vec::new());
    for binding in BINDINGS.iter().filter(|b| b.action != Action::Quit) {
        for &place in binding.places.iter().filter(|&&place| of(place)) {
            for sent in binding.sent() {
                if unseen(binding.action, place) {
                    continue;
                }
                keys += 1;
                if let Some(error) = walk(&mut terminal, binding.action, place, &sent) {
                    let error = error.lines().take(20).collect::<Vec<_>>().join("\n");
                    wrong.push(format!("{sent:?} in {place:?}: {}: {error}", binding.says));
                }
            }
        }
    }
    println!("{keys} keys");
    assert!(wrong.is_empty(), "{} of {keys} keys:\n{}", wrong.len(), wrong.join("\n"));
    home(&mut terminal);
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn every_key_of_the_lists_does_what_is_seen() {
    walk_all(|place| matches!(place, Place::Callsites | Place::Callers | Place::Promotion));
}

#[test]
fn every_key_of_the_charts_and_threads_does_what_is_seen() {
    walk_all(|place| matches!(place, Place::Flame | Place::Timeline | Place::Threads));
}

#[test]
fn every_key_of_the_other_screens_does_what_is_seen() {
    let others = [Place::Leaks, Place::Source, Place::Log];
    walk_all(|place| others.contains(&place));
}

#[test]
fn every_key_of_what_opens_above_does_what_is_seen() {
    let above = [Place::Details, Place::Columns, Place::Help, Place::Export];
    walk_all(|place| above.contains(&place));
}

#[test]
fn quitting_works_everywhere() {
    let target = target();
    for binding in BINDINGS.iter().filter(|b| b.action == Action::Quit) {
        for &place in binding.places {
            let mut terminal = Terminal::start("heaptop", target.directory(), &[], SIZE);
            terminal.wait_for("fill_cache");
            terminal.press(&way(place));
            terminal.wait_for(&sign(place));
            terminal.press(&binding.sent().concat());
            assert_eq!(terminal.wait(), 0, "{} in {place:?}", binding.shown);
        }
    }
}

#[test]
fn questions_and_lines_that_are_typed_take_what_leaves_them() {
    let target = target();
    let mut terminal = viewer(&target);
    for (opens, shows) in [("x", "stop sampling"), ("+", "sample 1 in 8 KiB?"), ("M", "mark as")] {
        terminal.press(opens);
        terminal.wait_for(shows);
        terminal.press("q");
        terminal.press(key::ENTER);
    }
    // Neither q closed it.
    terminal.wait_for("marked “q”");
    terminal.press(key::INTERRUPT);
    assert_eq!(terminal.wait(), 0);
}
