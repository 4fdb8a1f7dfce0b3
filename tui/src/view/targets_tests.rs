//! The list of targets, as it is drawn, and the mouse on it.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, press, text};
use crate::app::targets::{Candidate, Look};
use crate::app::testing;
use crate::app::{App, Effect, Message, Options};
use crate::session::Session;
use crate::session::figures::Estimate;

fn target(pid: u32, parent: Option<u32>, name: &str, mib: f64) -> Candidate {
    let value = mib * 1_048_576.0;
    Candidate {
        in_use: Estimate::Interval { value, low: value * 0.9, high: value * 1.1, samples: 90 },
        uptime_ns: u64::from(pid) * 7_000_000_000,
        ..testing::target(pid, parent, name)
    }
}

fn family() -> Look {
    let mut silent = target(12_001, Some(4711), "a worker\x1b[2J", 1.0);
    (silent.in_use, silent.interval_bytes) = (Estimate::Unknown, None);
    let targets = vec![
        target(77, None, "batch", 12.0),
        target(4711, Some(1), "orders-api", 412.0),
        target(12_000, Some(4711), "orders-api worker with a name that is long", 38.5),
        silent,
        target(12_002, Some(12_000), "helper", 3.0),
    ];
    Look { targets, trouble: None }
}

fn listed(size: (u16, u16), look: Look) -> (App, Session) {
    let session = Session::new();
    let mut app = App::without_target(Options::default());
    app.update(Message::Resize(size.0, size.1), &session);
    app.update(Message::Targets(look), &session);
    (app, session)
}

#[test]
fn targets_are_listed_as_a_tree() {
    for size in [(20, 5), (80, 24), (120, 40)] {
        let (app, _) = listed(size, family());
        let name = format!("targets_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
    }
}

#[test]
fn what_is_looked_for_and_what_is_not_there_is_said() {
    let size = (80, 24);
    let shown = |app: &App| text(&drawn(app, size));
    let (mut app, session) = listed(size, family());
    press(&mut app, &session, "/work");
    assert!(shown(&app).contains(" find work") && shown(&app).contains("2 of 5 targets"));
    press(&mut app, &session, "x⏎");
    let none = shown(&app);
    assert!(none.contains("no target has “workx” in its name or pid; Esc lists all"), "{none}");
    press(&mut app, &session, "⎋");
    assert!(shown(&app).contains("5 targets"));
    press(&mut app, &session, "?");
    assert!(shown(&app).contains("attach to the selected target"), "{}", shown(&app));
    let trouble = Look { trouble: Some("the peer at /s/1.sock is no heaptop".into()), ..family() };
    app.update(Message::Targets(trouble), &session);
    press(&mut app, &session, "⎋");
    assert!(shown(&app).contains("the peer at /s/1.sock is no heaptop"));
    let (app, _) = listed(size, Look::default());
    let empty = shown(&app);
    assert!(empty.contains("no target runs") && empty.contains("d starts the demo"), "{empty}");
    let mut app = App::without_target(Options::default());
    app.update(Message::Resize(80, 24), &Session::new());
    assert!(shown(&app).contains("looking for targets…"));
}

#[test]
fn a_press_selects_and_once_more_attaches() {
    let size = (80, 24);
    let (mut app, session) = listed(size, family());
    let drawn = text(&drawn(&app, size));
    let row = drawn.lines().position(|line| line.contains(" 4711 ")).unwrap() as u16;
    let down = |app: &mut App, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let event = MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
        app.update(Message::Mouse(event), &session)
    };
    assert_eq!(down(&mut app, row), []);
    assert_eq!(down(&mut app, row), [Effect::Attach("/s/4711.sock".into())]);
    for row in [0, 1, 20, 23] {
        assert_eq!(down(&mut app, row), [], "there is no target");
    }
}
