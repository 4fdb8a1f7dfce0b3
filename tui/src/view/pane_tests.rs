//! The pane of details, and what says that it is not now.

use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, key, nurseries, orders, press, run, run_with, text};
use crate::app::keymap::{Choice, Keymap};
use crate::app::keys::{Place, TABS};
use crate::app::settings::Settings;
use crate::app::{App, Message};
use crate::session::Session;
use crate::session::fixture::Fixture;

fn still(session: &Session, size: (u16, u16), keys: &str) -> App {
    let mut app = run(session, size, keys);
    app.update(Message::Still, session);
    app
}

#[test]
fn the_selected_rows_details_stand_beside_the_rows() {
    let f = orders();
    for size in [(160, 45), (300, 80)] {
        let app = still(&f.session, size, "↓");
        let name = format!("pane_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
    }
    let f = nurseries();
    let app = still(&f.session, (160, 45), "7");
    insta::assert_snapshot!("pane_leaks_160x45", text(&drawn(&app, (160, 45))));
}

#[test]
fn rows_are_whole_beside_it_at_any_height() {
    let f = orders();
    for height in [5, 6, 10, 24, 45, 120] {
        for width in [160, 161, 300] {
            let app = still(&f.session, (width, height), "");
            let shown = text(&drawn(&app, (width, height)));
            let row = shown.lines().find(|line| line.contains('▸')).unwrap();
            let list = usize::from(app.list_columns());
            let at = |x: usize| row.chars().nth(x);
            assert_eq!(at(list + 1), Some('│'), "{width}×{height}: {row}");
        }
    }
}

#[test]
fn it_says_less_before_it_is_asked_and_all_of_it_behind_a_key() {
    let f = orders();
    let size = (160, 24);
    let app = run(&f.session, size, "");
    let shown = text(&drawn(&app, size));
    assert!(shown.contains("│ …") && !shown.contains("callstacks:"), "{shown}");
    let shown = text(&drawn(&still(&f.session, size, ""), size));
    assert!(shown.contains("callstacks: ") && shown.contains("…; d shows all"), "{shown}");
}

#[test]
fn a_press_on_it_opens_the_details_and_headings_stay_where_they_are() {
    let f = orders();
    let size = (160, 45);
    let mut app = still(&f.session, size, "");
    let press_at = |app: &mut App, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        app.update(Message::Mouse(event), &f.session);
    };
    let shown = text(&drawn(&app, size));
    let (row, line) =
        shown.lines().enumerate().find(|(_, line)| line.starts_with(" callsite")).unwrap();
    let alloc = line[..line.find("alloc/s").unwrap()].chars().count() as u16;
    press_at(&mut app, alloc, row as u16);
    assert_eq!(app.question().sort, crate::query::Column::AllocatedRate);
    press_at(&mut app, 150, row as u16 + 5);
    assert_eq!(app.screen().place(), Place::Details);
}

#[test]
fn whatever_is_not_now_says_so_on_every_screen_with_the_way_back() {
    let f = orders();
    for size in [(80, 24), (120, 40), (300, 80)] {
        let places = TABS.iter().map(|tab| tab.key.to_string()).chain(["d".to_owned()]);
        for keys in places {
            let app = run(&f.session, size, &format!(",,,,,,,,,,{keys}"));
            let first = text(&drawn(&app, size)).lines().next().unwrap().to_owned();
            assert!(first.contains(" at 28") && first.contains("· \\ live"), "{keys}: {first}");
            let app = run(&f.session, size, &keys);
            let first = text(&drawn(&app, size)).lines().next().unwrap().to_owned();
            assert!(!first.contains("live"), "{keys}: {first}");
        }
        let first = |keys: &str| {
            let app = run(&f.session, size, keys);
            text(&drawn(&app, size)).lines().next().unwrap().to_owned()
        };
        assert!(first(",,,,,{,,,,,,,,,,").contains(" to "), "{}", first(",,,,,{,,,,,,,,,,"));
        assert!(first("P").contains("\\ live"), "{}", first("P"));
    }
    let app = run(&f.session, (40, 12), ",,,");
    assert!(text(&drawn(&app, (40, 12))).lines().next().unwrap().contains(" PAST "));
}

/// A viewer whose keys are the user's.
fn configured(f: &Fixture, size: (u16, u16), names: &[(&str, &str)]) -> App {
    let choices: Vec<Choice> = names
        .iter()
        .map(|(name, key)| {
            let keys = if key.is_empty() { Vec::new() } else { vec![key.parse().unwrap()] };
            Choice { name: (*name).into(), keys }
        })
        .collect();
    let (keymap, clashes) = Keymap::new(&choices);
    assert_eq!(clashes, []);
    let settings = Settings { keymap, ..Settings::default() };
    run_with(&f.session, size, settings, "")
}

#[test]
fn sentences_name_the_users_keys() {
    let f = orders();
    let size = (120, 40);
    let keys = [
        ("now", "F5"),
        ("back", "F6"),
        ("freeze", "F7"),
        ("go-callsites", "F8"),
        ("find", ""),
        ("finer", "F9"),
        ("larger-nursery", "F10"),
        ("mark", "F11"),
        ("limit", "F12"),
    ];
    let shown = |typed: &str| {
        let mut app = configured(&f, size, &keys);
        // What has no character stands for F7.
        for part in typed.split_inclusive('\u{7}') {
            press(&mut app, &f.session, part.trim_end_matches('\u{7}'));
            if part.ends_with('\u{7}') {
                app.update(key(KeyCode::F(7)), &f.session);
            }
        }
        text(&drawn(&app, size))
    };
    for (typed, wanted) in [
        (",,,", "· F5 live"),
        ("/zebra⏎", "nothing fits “zebra”; F6 takes the filter away"),
        ("3\u{7}", "stays at this moment; F7 lets it go on"),
        ("9d", "details are of a callsite; F8 lists them"),
        ("-", "F9 finer"),
        ("5", "nursery [ F10"),
        ("7", "– no limit is known: F12 sets one"),
        ("7", "F11 marks"),
    ] {
        let shown = shown(typed);
        assert!(shown.contains(wanted), "{typed:?}: {wanted}\n{shown}");
    }
    let unbound = shown("3n");
    assert!(unbound.contains("nothing is looked for") && !unbound.contains("asks for a text"));
}

#[test]
fn details_of_frames_and_why_there_are_none() {
    let f = orders();
    let size = (120, 40);
    let after = |keys: &str| {
        let app = run(&f.session, size, keys);
        (app.screen().place(), app.note().unwrap_or_default().to_owned())
    };
    let (place, note) = after("3d");
    assert_eq!(place, Place::Flame);
    assert!(note.contains("this frame allocates nothing itself"), "{note}");
    // The widest frames, down to one that allocates.
    assert_eq!(after("3↓↓↓↓↓↓↓↓d").0, Place::Details);
    for screen in ["9", "6"] {
        let (_, note) = after(&format!("{screen}d"));
        assert_eq!(note, "details are of a callsite; 1 lists them", "{screen}");
    }
}

#[test]
fn growth_of_frames_says_that_it_is_in_use_whatever_is_counted() {
    let f = orders();
    let size = (120, 40);
    let shown = |keys: &str| text(&drawn(&run(&f.session, size, keys), size));
    let other = shown("3mmD");
    assert!(other.contains("in bytes in use; widths count allocated, bytes"), "{other}");
    assert!(
        other.contains("growth in bytes in use · since heaptop came · allocated, bytes"),
        "{other}"
    );
    assert!(!shown("3D").contains("growth in bytes in use"));
    let gained = shown("3mmmmmm");
    assert!(
        gained.contains("counting bytes gained: born since heaptop came and alive"),
        "{gained}"
    );
    assert!(gained.contains("since heaptop came · growth: bytes gained"), "{gained}");
    let range = shown("3,,,{...mmmmmm");
    assert!(range.contains("born in the range and alive at its end"), "{range}");
    assert!(range.contains("in the range · growth: bytes gained"), "{range}");
    let compared = shown("3,,,{...D");
    assert!(compared.contains("growth is counted over the range that is chosen"), "{compared}");
}
