//! Hostile text in every place it can come from, on every screen, in every state, at
//! every size: nothing that a terminal obeys reaches a cell, no cell is wider than its
//! place, and columns stand where they stand with plain names.

use heaptop_protocol::callstack::Module;
use heaptop_protocol::ids::{ModuleId, ThreadId};
use heaptop_protocol::message::{Hello, Losses, Mark, Phase, Sampling, Stopped, Thread};
use proptest::prelude::*;
use ratatui::buffer::{Buffer, Cell};
use unicode_width::UnicodeWidthChar;

use super::testing::{drawn, key, press, run, text};
use crate::app::{App, Message};
use crate::session::fixture::Fixture;
use crate::session::sane::is_hostile;
use crate::session::{Connection, Input, Session};

/// Sizes at which something may go wrong.
const SIZES: [(u16, u16); 9] =
    [(0, 0), (1, 1), (2, 1), (19, 5), (20, 5), (80, 24), (133, 40), (300, 80), (1000, 300)];

/// Ways to every screen and to what lies over it.
const WAYS: [&str; 12] =
    ["", "⏎", "⏎i", "?", "/x", "/\u{301}⏎", "Mname", "+", "o ", "4", "5", "5]"];

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\x1b]0;PWNED\x07title",
        "\x1b[2J\x1b[31mred\x1b[m",
        "\x1bP+q544e\x1b\\dcs",
        "\u{9b}31mc1\u{9d}0;x\u{9c}\u{90}q\u{98}",
        "\u{202e}exe.txt\u{2066}\u{2069}\u{200f}",
        "zero\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}width",
        "名前::とても長い名前の関数::叫ぶ<T>",
        "e\u{301}\u{301}clair",
        "\u{301}\u{302}no base",
        "👨\u{200d}👩\u{200d}👧 ☠\u{fe0f} 🇩🇪",
        "line\nfeed\r\ttab\x08\x7f",
        "",
        "   ",
        "\u{3164}\u{115f}\u{ffa0}",
        "\u{fffd}\u{fffd}invalid",
        "\u{e0041}\u{e007f}tags",
        "שלום عالم",
        "\u{FFFE}\u{FFFF}\u{10FFFF}",
    ]
    .map(String::from)
    .into();
    texts.push(format!("z{}algo", "\u{334}\u{35c}\u{e47}".repeat(500)));
    texts.push(format!(
        "std::map<{}int{}>::operator[]",
        "std::vector<".repeat(700),
        ">".repeat(700)
    ));
    texts.push("ab::".repeat(2500) + "end");
    texts.push("寬".repeat(5000));
    texts
}

/// A target whose functions are called `names`, the first of which holds most; all
/// else is called `name`.
fn target(names: &[String], name: &str) -> Fixture {
    let mut f = Fixture::new(1024);
    f.say(Hello { name: name.into(), notices: vec![name.into(); 3], ..f.hello() });
    f.say(Thread { id: ThreadId(7), tid: 7, name: name.into() });
    f.say(Module {
        id: ModuleId(1),
        path: format!("/{name}"),
        build_id: vec![1],
        load_bias: 0,
        range: (0x1000, 0x10_0000),
    });
    for (i, function) in names.iter().enumerate() {
        let caller = format!("{name} caller {i}");
        let stack = f.stack(&["main", &caller, &format!("{function}@{name}/{i}.rs:{i}")]);
        for _ in 0..40 {
            f.alloc(stack, 9000 - 300 * i as u64);
        }
        let young = f.alloc(stack, 1000);
        f.promote(young);
    }
    let at = f.now();
    f.say(Phase { at, name: name.into() });
    let bare = f.bare_stack(&["main", "bare"]);
    f.alloc(bare, 100);
    f.pass(1.0);
    f
}

/// The same target in all states that a screen speaks of.
fn states(f: &mut Fixture, name: &str) -> Vec<Session> {
    let state = |change: &dyn Fn(&mut Fixture), names: &[String]| {
        let mut f = target(names, name);
        change(&mut f);
        std::mem::take(&mut f.session)
    };
    let names = texts();
    let connection = |f: &mut Fixture, c| f.session.apply(Input::Connection(c));
    let mut states = vec![Session::new()];
    states.push(state(&|f| connection(f, Connection::Lost(name.into())), &names));
    states.push(state(&|f| connection(f, Connection::Ended(name.into())), &names));
    states.push(state(&|f| f.say(Stopped { reason: name.into() }), &names));
    states.push(state(
        &|f| {
            f.sampling = Sampling::Paused;
            f.losses = Losses { births: 7, stacks: u64::MAX, unsent: 3, thinned: u32::MAX };
            f.report();
        },
        &[],
    ));
    states.push(std::mem::take(&mut f.session));
    states
}

/// That a drawn screen is sound: see the module.
fn check(buffer: &Buffer, what: &str) {
    let width = usize::from(buffer.area.width);
    for (y, row) in buffer.content.chunks(width.max(1)).enumerate() {
        let mut covered = 0;
        for (x, cell) in row.iter().enumerate() {
            let symbol = cell.symbol();
            assert!(
                !symbol.chars().any(is_hostile),
                "{what}: {symbol:?} at {x},{y} of {:?}",
                buffer.area
            );
            let marks = symbol.chars().filter(|c| c.width() == Some(0)).count();
            assert!(
                marks <= 4 * symbol.chars().count().div_ceil(5),
                "{what}: {symbol:?} at {x},{y}"
            );
            let columns = super::text::width(symbol);
            if covered > 0 {
                assert!(symbol == " " || symbol.is_empty(), "{what}: {symbol:?} is covered");
                covered -= 1;
            } else {
                assert!(columns > 0, "{what}: {symbol:?} has no width");
                covered = columns - 1;
            }
        }
        assert_eq!(covered, 0, "{what}: line {y} is wider than the screen");
    }
}

#[test]
fn every_screen_in_every_state_at_every_size() {
    let everything = texts().concat();
    let mut f = target(&texts(), &everything);
    for (i, session) in states(&mut f, &everything).iter().enumerate() {
        for way in WAYS {
            // The largest takes its time.
            let sizes = if way.is_empty() { &SIZES[..] } else { &SIZES[..SIZES.len() - 1] };
            for &size in sizes {
                let app = run(session, size, way);
                check(&drawn(&app, size), &format!("state {i}, keys {way:?}"));
            }
            // The terminal has another size than the state knows.
            let app = run(session, (80, 24), way);
            for size in [(1, 1), (20, 5), (300, 80)] {
                check(&drawn(&app, size), &format!("state {i}, keys {way:?}, resized"));
            }
        }
    }
}

#[test]
fn columns_stand_where_they_stand_with_plain_names() {
    let plain: Vec<String> = (0..texts().len()).map(|i| format!("plain::name{i}")).collect();
    let (hostile, plain) = (target(&texts(), "\x1b[2J名"), target(&plain, "plain"));
    for width in [80, 120, 300] {
        let size = (width, 40);
        // Beside the rows stand the details of one.
        let list = usize::from(run(&plain.session, size, "").list_columns());
        let [hostile, plain] =
            [&hostile, &plain].map(|f| drawn(&run(&f.session, size, ""), size).content);
        let lines = |cells: &[Cell], from: usize| -> Vec<String> {
            let lines = cells.chunks(usize::from(width));
            lines.map(|row| row[from..list].iter().map(Cell::symbol).collect()).collect()
        };
        // Names end where the first figure begins, which is 8 columns wide.
        let mark = plain.iter().position(|cell| cell.symbol() == "▼").unwrap();
        let (first, from) = (mark / usize::from(width), mark % usize::from(width) - 7);
        let [hostile, plain] = [hostile, plain].map(|cells| lines(&cells, from));
        let last = plain.len() - 2;
        assert!(plain[first..last].iter().filter(|line| line.contains("KiB")).count() > 15);
        assert_eq!(hostile[first..last], plain[first..last], "{width}");
    }
}

#[test]
fn what_was_cut_or_taken_out_is_seen() {
    let f = target(&texts(), "\x1b]0;PWNED\x07");
    // Wide enough for rows of 200 columns, and the details of one beside them.
    let shown = text(&drawn(&run(&f.session, (288, 60), ""), (288, 60)));
    for seen in [
        "�]0;PWNED�title",
        "�[2J",
        "�exe.txt",
        "zero������width",
        "(unnamed)",
        "::end  20.rs:20",
        "寬…",
    ] {
        assert!(shown.contains(seen), "{seen}:\n{shown}");
    }
}

#[test]
fn a_mark_of_any_name_is_told() {
    for label in texts() {
        let mut f = target(&texts(), "x");
        let mut app = run(&f.session, (80, 24), "");
        let at = f.now();
        f.say(Mark { at, label: label.clone() });
        app.update(Message::Refresh, &f.session);
        assert!(app.note().is_some_and(|note| note.starts_with("marked “")), "{label:?}");
        check(&drawn(&app, (80, 24)), &label);
    }
}

fn random() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        any::<String>(),
        proptest::collection::vec(any::<char>(), 0..40).prop_map(|c| c.into_iter().collect()),
        "[a-z:<> ,*&()\\[\\]{}\u{301}\u{202e}\x1b\u{9b}名👨\u{200d}]{0,200}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: proptest::test_runner::RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn any_text_at_any_size_after_any_keys(
        names in proptest::collection::vec(random(), 1..6),
        name in random(),
        steps in proptest::collection::vec((0usize..WAYS.len() + 3, 0u16..330, 0u16..90), 1..12),
    ) {
        let f = target(&names, &name);
        let mut app: App = run(&f.session, (80, 24), "");
        for (choice, width, height) in steps {
            match WAYS.get(choice) {
                Some(way) => _ = press(&mut app, &f.session, way),
                None if choice == WAYS.len() => {
                    app.update(Message::Paste(name.clone()), &f.session);
                }
                None if choice == WAYS.len() + 1 => {
                    app.update(key(crossterm::event::KeyCode::Esc), &f.session);
                }
                None => _ = app.update(Message::Exported(0, Err(name.clone())), &f.session),
            }
            // Half of the time the state learns of the size.
            if (width + height) % 2 == 0 {
                app.update(Message::Resize(width, height), &f.session);
            }
            check(&drawn(&app, (width, height)), &format!("{names:?} {name:?}"));
        }
    }
}
