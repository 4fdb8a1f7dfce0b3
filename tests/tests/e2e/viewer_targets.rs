//! The list of targets: what runs is listed while it runs, and one is attached to, and then
//! another one.

use heaptop_protocol::endpoint;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::target::{Target, socket_directory};
use heaptop_tests::terminal::{Terminal, key};
use std::sync::Arc;
use tempfile::TempDir;

fn exits(directory: &Arc<TempDir>) -> Target {
    let target = Target::start_in(Arc::clone(directory), "fixture-exits", &["0"], &[]);
    let _ = target.socket();
    target
}

/// The row of a target.
fn row(terminal: &Terminal, pid: u32) -> String {
    terminal.line_with(&format!(" {pid} "))
}

fn gone(terminal: &Terminal, pid: u32) {
    terminal.until(&format!("{pid} gone"), |screen| {
        (!screen.contains(&format!(" {pid} "))).then_some(())
    });
}

#[test]
fn targets_come_and_go_while_they_are_listed() {
    let directory = Arc::new(socket_directory());
    let (first, mut second) = (exits(&directory), exits(&directory));
    let mut terminal = Terminal::start("heaptop", directory.path(), &[], (24, 80));
    terminal.wait_for("targets of this user");
    for target in [&first, &second] {
        let row = row(&terminal, target.pid());
        // 64 blocks of a KiB, and what the runtime has.
        for cell in ["fixture-exits", "linked", " KiB", "< 1 m"] {
            assert!(row.contains(cell), "{cell} in {row}");
        }
    }
    terminal.wait_for("2 targets");
    let third = exits(&directory);
    row(&terminal, third.pid());
    // Whoever is listed last is selected by then, wherever it stands.
    terminal.press("G");
    let last = first.pid().max(second.pid()).max(third.pid());
    terminal.until("the last is selected", |screen| {
        let row = screen.lines().find(|line| line.contains(&format!(" {last} ")))?;
        row.starts_with('▸').then_some(())
    });
    second.say("end");
    second.wait();
    gone(&terminal, second.pid());
    terminal.wait_for("2 targets");

    terminal.press(&format!("/{}", third.pid()));
    terminal.wait_for("1 of 2 targets");
    terminal.press(key::ENTER);
    terminal.press(key::ENTER);
    terminal.wait_for("hold_until_exit");
    terminal.wait_for(&format!("pid {}", third.pid()));

    // To the other one, and to the list again.
    terminal.press("T");
    assert!(terminal.line_with("  shown ").contains(&third.pid().to_string()));
    terminal.press(&format!("/{}", first.pid()));
    terminal.wait_for("1 of 2 targets");
    terminal.press(key::ENTER);
    terminal.press(key::ENTER);
    terminal.wait_for(&format!("pid {}", first.pid()));
    terminal.wait_for("hold_until_exit");
    terminal.press("T");
    terminal.wait_for("targets of this user");
    terminal.press(key::ESC);
    terminal.wait_for("hold_until_exit");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    assert!(!terminal.in_alternate_screen());
}

#[test]
fn a_child_stands_below_its_parent() {
    let mut target = Target::start("fixture-followed", &[""], &[("HEAPTOP_FOLLOW", "1")]);
    let quiet = target.wait_for_line("quiet", |line| line.starts_with("quiet "));
    let child: u32 = quiet["quiet ".len()..].parse().unwrap();
    let socket = endpoint::socket(target.directory(), child);
    poll(Deadline::default(), || socket.exists().then_some(())).expect("the child's socket");
    let mut terminal = Terminal::viewer(target.directory(), &[]);
    let below = row(&terminal, child);
    assert!(below.starts_with(" └ fixture-followed"), "{below}");
    let above = row(&terminal, target.pid());
    assert!(above.starts_with("▸fixture-followed"), "{above}");
    terminal.press(key::DOWN);
    terminal.press(key::ENTER);
    terminal.wait_for(&format!("pid {child}"));
    terminal.wait_for("in_child");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    target.say("go");
    assert!(target.wait().success());
}

#[test]
fn without_a_target_it_waits_for_one() {
    let directory = Arc::new(socket_directory());
    let mut terminal = Terminal::viewer(directory.path(), &[]);
    terminal.wait_for("no target runs");
    let target = exits(&directory);
    row(&terminal, target.pid());
    terminal.press(key::ENTER);
    terminal.wait_for("hold_until_exit");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn the_demo_is_started_from_the_list_and_ends_with_the_viewer() {
    let directory = socket_directory();
    let mut terminal = Terminal::viewer(directory.path(), &[]);
    terminal.wait_for("d starts the demo");
    terminal.press("d");
    terminal.wait_for("fill_cache");
    // It goes on while another list is looked at.
    terminal.press("T");
    terminal.wait_for("1 target");
    let row = terminal.line_with("heaptop-demo");
    let pid = row.split_whitespace().find_map(|cell| cell.parse::<u32>().ok()).expect("its pid");
    terminal.press(key::ESC);
    terminal.wait_for("fill_cache");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    poll(Deadline::default(), || (!process.exists()).then_some(())).expect("the demo ends");
}

#[test]
fn from_a_target_that_has_ended_one_goes_to_the_next() {
    let directory = Arc::new(socket_directory());
    let (mut first, second) = (exits(&directory), exits(&directory));
    let mut terminal = Terminal::viewer(directory.path(), &["attach", &first.pid().to_string()]);
    terminal.wait_for("hold_until_exit");
    first.say("end");
    first.wait();
    terminal.wait_for("T lists the targets that run");
    // What was known last is there until another target answers.
    terminal.press("T");
    row(&terminal, second.pid());
    gone(&terminal, first.pid());
    terminal.press(key::ESC);
    terminal.wait_for("ENDED");
    terminal.wait_for("hold_until_exit");
    terminal.press("T");
    row(&terminal, second.pid());
    terminal.press(key::ENTER);
    terminal.wait_for(&format!("pid {}", second.pid()));
    terminal.until("no end", |screen| (!screen.contains("ENDED")).then_some(()));
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn what_is_recorded_ends_when_another_target_is_attached_to() {
    let directory = Arc::new(socket_directory());
    let (first, second) = (exits(&directory), exits(&directory));
    let mut terminal = Terminal::viewer(directory.path(), &["attach", &first.pid().to_string()]);
    terminal.wait_for("hold_until_exit");
    terminal.press("R");
    terminal.wait_for("recording into /");
    terminal.press(&format!("T/{}", second.pid()));
    terminal.wait_for("1 of 2 targets");
    terminal.press(key::ENTER);
    terminal.press(key::ENTER);
    terminal.wait_for(&format!("pid {}", second.pid()));
    terminal.wait_for("recorded /");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn keys_that_are_pressed_at_once_are_all_heard() {
    let directory = Arc::new(socket_directory());
    let (first, _second) = (exits(&directory), exits(&directory));
    let mut terminal = Terminal::viewer(directory.path(), &[]);
    row(&terminal, first.pid());
    // Those behind Enter come while it is attached to, and are the list's until then.
    terminal.press("gj");
    terminal.press(key::ENTER);
    terminal.wait_for("hold_until_exit");
    terminal.press("4q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn who_names_a_target_without_a_command_is_told_how() {
    let directory = socket_directory();
    let mut terminal = Terminal::viewer(directory.path(), &["orders-api"]);
    terminal.wait_for("heaptop attach orders-api");
    assert_eq!(terminal.wait(), 2);
}
