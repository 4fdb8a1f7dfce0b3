//! Whole screens, driven by real keys, at five sizes; their styles; and any
//! keys at any size.

use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw;
use super::testing::{drawn, key, nurseries, orders, press, run, screen, styles, text};
use super::theme::Theme;
use crate::app::{App, Message, Options, Screen};
use crate::export::{Destination, Proposal};
use crate::query::Column;
use crate::session::fixture::Fixture;
use crate::session::{Connection, Input, Session};

const SIZES: [(u16, u16); 6] = [(20, 5), (40, 12), (80, 24), (120, 40), (160, 50), (300, 80)];

#[test]
fn callsites() {
    let f = orders();
    for size in SIZES {
        insta::assert_snapshot!(
            format!("callsites_{}x{}", size.0, size.1),
            screen(&f.session, size, "")
        );
    }
}

#[test]
fn callers() {
    let f = orders();
    for size in SIZES {
        insta::assert_snapshot!(
            format!("callers_{}x{}", size.0, size.1),
            screen(&f.session, size, "⏎")
        );
    }
}

#[test]
fn promotion() {
    let f = nurseries();
    for size in SIZES {
        let name = format!("promotion_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&f.session, size, "5"));
    }
    insta::assert_snapshot!("promotion_larger", screen(&f.session, (80, 24), "5]]]"));
    insta::assert_snapshot!("promotion_beyond", screen(&f.session, (80, 24), "5G]]]]]]"));
    // What was asked about is there when one comes back.
    let there = screen(&f.session, (80, 24), "5[15");
    assert!(there.contains("1 MiB, what if"), "{there}");
    assert!(!screen(&f.session, (80, 24), "5[]").contains("what if"));
}

#[test]
fn callees_of_a_frame() {
    let f = orders();
    let app = run(&f.session, (100, 24), "⏎G⏎i");
    insta::assert_snapshot!(text(&drawn(&app, (100, 24))));
}

#[test]
fn a_moment_and_a_range_are_said_and_marked() {
    let f = orders();
    for size in [(20, 5), (80, 24), (160, 50)] {
        let moment = screen(&f.session, size, ",,,,,,,,,,,,,,,,,,,,");
        insta::assert_snapshot!(format!("moment_{}x{}", size.0, size.1), moment);
    }
    insta::assert_snapshot!(screen(&f.session, (80, 24), ",,,,,,,,,,,,,,,{,,,,,,,,,,,,,,,}"));
    insta::assert_snapshot!(screen(&f.session, (80, 24), "P"));
    let app = run(&f.session, (80, 24), ",,,,,,,,,,{");
    insta::assert_snapshot!(styles(&drawn(&app, (80, 24))));
}

#[test]
fn help() {
    let f = orders();
    for size in [(20, 5), (80, 24), (160, 50)] {
        insta::assert_snapshot!(
            format!("help_{}x{}", size.0, size.1),
            screen(&f.session, size, "?")
        );
    }
}

#[test]
fn a_filter_is_shown_while_it_is_typed_and_while_it_holds() {
    let f = orders();
    insta::assert_snapshot!("filter_typed", screen(&f.session, (80, 24), "/cache"));
    let app = run(&f.session, (80, 24), "/cache←");
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(&app, frame)).unwrap();
    terminal.backend_mut().assert_cursor_position((7, 22));
    insta::assert_snapshot!("filter_holds", screen(&f.session, (80, 24), "/cache⏎"));
    insta::assert_snapshot!("filter_without_match", screen(&f.session, (80, 24), "/zebra⏎"));
    let taken_back = screen(&f.session, (80, 24), "/cache⎋");
    assert_eq!(taken_back, screen(&f.session, (80, 24), ""));
    assert_eq!(screen(&f.session, (80, 24), "/cache⏎⎋"), taken_back);
}

#[test]
fn a_question_stands_where_the_keys_were() {
    let f = orders();
    let last = |size, keys: &str| {
        screen(&f.session, size, keys).lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        last((120, 24), "+"),
        " sample 1 in 32 KiB instead of 1 in 64 KiB, for all viewers?  y yes  n no  + finer  - coarser  a auto"
    );
    assert_eq!(
        last((70, 24), "-"),
        " sample 1 in 128 KiB?  y yes  n no  + finer  - coarser  a auto"
    );
    assert_eq!(last((60, 24), "-"), " sample 1 in 128 KiB? y/n");
    assert_eq!(last((60, 24), "+a"), " let the agent choose R, for all viewers?  y yes  n no");
    assert_eq!(last((20, 5), "x"), " stop sampling? y/n");
    assert!(last((80, 24), "xn").contains("? help"));
    assert!(last((60, 5), "M").contains("Enter marks"), "so has a line that is typed");
    assert!(screen(&f.session, (80, 24), "Mbefore").contains(" mark as before"));
}

#[test]
fn the_header_says_how_it_samples_and_at_what_cost() {
    let f = orders();
    for size in [(80, 24), (120, 40), (160, 50), (300, 80)] {
        let shown = screen(&f.session, size, "");
        for figure in ["1 in 64 KiB", " samples/s", "cost 0.1 %", "dropped 0"] {
            assert!(shown.contains(figure), "{figure} at {size:?}:\n{shown}");
        }
    }
}

#[test]
fn a_thin_row_says_what_a_finer_interval_would_give() {
    let mut f = Fixture::new(512 << 10);
    let (thin, thick) = (f.stack(&["main", "thin"]), f.stack(&["main", "thick"]));
    for i in 0..100 {
        (0..20).for_each(|_| _ = f.alloc(thick, 100));
        if i % 5 == 0 {
            f.alloc(thin, 100);
        }
        f.pass(0.5);
    }
    let shown = screen(&f.session, (80, 24), "G");
    assert!(shown.contains("▸thin"), "{shown}");
    // 0.4 samples a second: 384 in 58 s at a sixteenth of R, but that is 640 a second in all.
    assert!(shown.contains("─ selected row: finer: R 32 KiB, ~60 s to ±10 % ──"), "{shown}");
    assert!(!screen(&f.session, (80, 24), "g").contains("selected row"), "±4 % is fine");
    assert!(!screen(&f.session, (40, 24), "G").contains("selected row"), "no room");
    // It stands still with a paused screen.
    let mut app = run(&f.session, (80, 24), "G ");
    let before = text(&drawn(&app, (80, 24)));
    f.pass(60.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(text(&drawn(&app, (80, 24))), before);
    // Of what is over nothing more comes.
    f.session.apply(Input::Connection(Connection::Ended("exited".into())));
    assert!(!screen(&f.session, (80, 24), "G").contains("selected row"), "it is over");
}

#[test]
fn a_paused_screen_stays_while_the_stream_goes_on() {
    let mut f = orders();
    let size = (80, 24);
    let mut app = run(&f.session, size, " ");
    let before = drawn(&app, size);
    insta::assert_snapshot!("paused", text(&before));
    let stack = f.stack(&["main", "new_site"]);
    f.alloc(stack, 9_000_000);
    f.pass(120.0);
    app.take_dirty();
    app.update(Message::Refresh, &f.session);
    assert_eq!(drawn(&app, size), before);
    assert!(!app.take_dirty(), "nothing was drawn anew");
    // Trouble is not held back.
    f.session.apply(Input::Connection(Connection::Lost("end of stream".into())));
    app.update(Message::Refresh, &f.session);
    assert!(app.take_dirty());
    insta::assert_snapshot!("paused_and_lost", text(&drawn(&app, size)));
    press(&mut app, &f.session, " ");
    assert!(text(&drawn(&app, size)).contains("new_site"));
}

#[test]
fn nothing_changes_nothing_is_drawn() {
    let f = orders();
    let mut app = run(&f.session, (80, 24), "");
    app.take_dirty();
    app.update(Message::Refresh, &f.session);
    assert!(!app.take_dirty());
    app.update(key(KeyCode::Down), &f.session);
    assert!(app.take_dirty());
}

#[test]
fn the_order_is_held_while_numbers_move() {
    let mut f = orders();
    let size = (80, 24);
    let order =
        |app: &App| -> Vec<u64> { app.table().unwrap().rows.iter().map(|r| r.key.0).collect() };
    let mut app = run(&f.session, size, "o");
    let before = order(&app);
    let stack = f.stack(&["main", "new_site"]);
    f.alloc(stack, 90_000_000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(order(&app)[..before.len()], before);
    assert!(text(&drawn(&app, size)).contains("ORDER HELD"));
    press(&mut app, &f.session, "o");
    assert_eq!(order(&app)[1..], before);
}

#[test]
fn a_long_name_leaves_room_for_the_rest_of_the_title() {
    let mut f = orders();
    let name = "orders".repeat(70);
    let hello = heaptop_protocol::message::Hello { name: name.clone(), ..f.hello() };
    f.say(hello);
    f.report();
    let title = |width| {
        let screen = screen(&f.session, (width, 24), "");
        screen.lines().next().unwrap().to_owned()
    };
    let cut = |columns: usize| format!(" {}… · pid 4711", &name[..columns - 1]);
    for (width, columns) in [(194, 32), (147, 32), (137, 20), (121, 20), (113, 12)] {
        let title = title(width);
        assert!(title.contains(&cut(columns)), "{width}: {title}");
        assert_eq!(title.contains(" · up < 1 m"), width > 121, "{width}: {title}");
        assert!(title.contains(" 1 Callsites 2 Callers"), "{width}: {title}");
    }
    assert!(title(60).ends_with("  1 Callsites 2 3 4 5 6 7 8 9"), "{}", title(60));
    assert!(title(48).starts_with(&format!(" {}…  ", &name[..11])), "{}", title(48));
    assert!(title(48).ends_with(" 1 Callsites 2 3 4 5 6 7 8 9"), "{}", title(48));
}

#[test]
fn the_peak_is_never_below_what_is_in_use() {
    let mut f = orders();
    let size = (120, 40);
    let figures = |f: &Fixture| {
        let screen = screen(&f.session, size, "");
        screen.lines().nth(1).unwrap().to_owned()
    };
    let stack = f.stack(&["main", "new_site"]);
    let block = f.alloc(stack, 90 << 20);
    // The agent tells of the peak some time after the status.
    f.hold_peak(true);
    f.pass(60.0);
    let now = figures(&f);
    let (in_use, rest) = now.split_once("peak ").unwrap();
    let value = in_use.trim().strip_prefix("in use ").unwrap();
    assert!(rest.starts_with(&format!("{value} now ")), "{now}");
    f.free(block);
    f.pass(60.0);
    let after = figures(&f);
    let peak =
        |line: &str| line.split_once("peak ").unwrap().1.split_once("   ").unwrap().0.to_owned();
    assert_eq!(peak(&after), format!("{value} at <1 m"), "nobody told of it, and it was seen");
}

#[test]
fn losses_are_red_and_said_by_kind() {
    let mut f = orders();
    f.losses.births = 12_345;
    f.losses.unsent = 7;
    f.losses.thinned = 2;
    f.pass(0.5);
    let size = (120, 40);
    let app = run(&f.session, size, "");
    let buffer = drawn(&app, size);
    insta::assert_snapshot!("losses", text(&buffer));
    insta::assert_snapshot!("losses_styles", styles(&buffer));
    let mut plain = App::new(Options { theme: Theme::mono(), ascii: false });
    plain.update(Message::Resize(120, 40), &f.session);
    plain.update(Message::Refresh, &f.session);
    assert!(!styles(&drawn(&plain, size)).contains('r'), "no colour where none is wanted");
}

#[test]
fn a_lost_and_an_ended_connection_say_so() {
    let mut f = orders();
    f.session.apply(Input::Connection(Connection::Lost("the socket was closed".into())));
    insta::assert_snapshot!("lost", screen(&f.session, (80, 24), ""));
    f.session.apply(Input::Connection(Connection::Ended("exit status 1".into())));
    insta::assert_snapshot!("ended", screen(&f.session, (80, 24), ""));
}

#[test]
fn an_empty_screen_says_why() {
    let size = (80, 24);
    insta::assert_snapshot!("connecting", screen(&Session::new(), size, ""));
    let mut f = Fixture::new(512 << 10);
    f.clock = 1_200_000;
    f.pass(1.0);
    insta::assert_snapshot!("no_samples", screen(&f.session, size, ""));
    assert!(screen(&f.session, size, "2⏎").contains("no samples yet"));
    // A filter that fits nothing is named wherever there are no rows for it.
    let mut f = orders();
    for filter in ["nowhere", "size>9G", "phase:x", "thread:x"] {
        for place in ["1", "5", "6", "7"] {
            let shown = screen(&f.session, size, &format!("{place}/{filter}⏎↓"));
            assert!(shown.contains(&format!("nothing fits “{filter}”")), "{place} {shown}");
        }
        let shown = screen(&f.session, size, &format!("4/{filter}⏎↓"));
        let said = ["not in the filter", "nothing fits the filter"];
        assert!(said.iter().any(|said| shown.contains(said)), "{shown}");
    }
    f.session.apply(Input::Connection(Connection::Ended("gone".into())));
    assert!(screen(&f.session, size, "/nowhere⏎↓").contains("nothing fits “nowhere”"));
}

#[test]
fn ascii_is_ascii_and_nothing_moves() {
    let f = orders();
    for keys in ["", "⏎", "?", "4", "5"] {
        let size = (120, 40);
        let rich = run(&f.session, size, keys);
        let mut app = App::new(Options { ascii: true, ..Options::default() });
        app.update(Message::Resize(size.0, size.1), &f.session);
        app.update(Message::Refresh, &f.session);
        press(&mut app, &f.session, keys);
        let plain = drawn(&app, size);
        assert!(text(&plain).is_ascii());
        for (a, b) in drawn(&rich, size).content.iter().zip(&plain.content) {
            // A bound that may be reached takes the blank beside it.
            let or_equal = (a.symbol(), b.symbol()) == (" ", "=");
            assert!(a.symbol() == b.symbol() || !a.symbol().is_ascii() || or_equal);
        }
        if keys.is_empty() {
            insta::assert_snapshot!("ascii", text(&plain));
        }
    }
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let mut f = Fixture::new(1024);
    let stack = f.stack(&[
        "main",
        "a\x1b[31m\u{202E}b",
        "名前::とても長い名前の関数::叫ぶ<T>@ソース/ファイル.rs:1",
    ]);
    for _ in 0..9 {
        f.alloc(stack, 5000);
    }
    f.pass(1.0);
    for keys in ["", "⏎"] {
        let shown = screen(&f.session, (60, 15), keys);
        assert!(shown.contains("叫ぶ<T>"), "{shown}");
        assert!(!shown.contains(['\x1b', '\u{202E}']));
        for line in shown.lines() {
            assert!(super::text::width(line) <= 60, "{line}");
        }
    }
}

#[test]
fn what_rows_are_sorted_by_is_seen() {
    let f = orders();
    for n in 0..12 {
        let shown = screen(&f.session, (80, 24), &"s".repeat(n));
        assert!(shown.contains(['▼', '▲']), "{n}: {shown}");
    }
    let shown = screen(&f.session, (80, 24), "sssS");
    assert!(shown.contains("births ▲"), "{shown}");
}

#[test]
fn columns_without_room_can_be_reached() {
    let f = orders();
    let heading = |keys: &str| screen(&f.session, (80, 24), keys);
    for title in ["objects", "allocated ", "births", "births/s", "dies young", "trend"] {
        assert!(!heading("").contains(title));
        let reached = (1..10).any(|n| heading(&"l".repeat(n)).contains(title));
        assert!(reached, "{title} is reached");
    }
    assert_eq!(heading("llhh"), heading(""));
    assert_eq!(
        heading("llllllllllllllllllhhhhhhhhhhhh"),
        heading(""),
        "there is an end on both sides"
    );
}

#[test]
fn a_long_sentence_is_wrapped() {
    let f = orders();
    let size = (60, 24);
    let mut app = run(&f.session, size, "");
    let words = "the directory is full and nothing could be written into it: free some room, or start \
                 heaptop in another directory";
    app.update(Message::Exported(0, Err(words.into())), &f.session);
    let shown = text(&drawn(&app, size));
    assert!(
        shown.contains("export failed: the directory") && shown.contains("another directory"),
        "{shown}"
    );
}

#[test]
fn any_size_can_be_drawn() {
    let f = orders();
    for keys in ["", "⏎", "?", "/ab", "/ab⏎", "4", "5"] {
        for width in [0, 1, 2, 5, 19, 20, 33, 79, 500] {
            for height in [0, 1, 2, 3, 4, 5, 6, 9, 17, 200] {
                let app = run(&f.session, (width, height), keys);
                drawn(&app, (width, height));
                // A terminal that has shrunk or grown unnoticed.
                drawn(&app, (height, width));
            }
        }
    }
}

#[test]
fn a_screen_too_small_says_so() {
    let f = orders();
    let shown = |width, height| screen(&f.session, (width, height), "");
    assert_eq!(shown(40, 4).trim_end(), "heaptop needs 20x5, q quits");
    assert_eq!(shown(19, 5).trim_end(), "heaptop needs 20x5,\nq quits");
    assert_eq!(shown(11, 2).trim_end(), "needs 20x5");
    assert_eq!(shown(6, 5).trim_end(), "needs\n20x5");
    assert_eq!(shown(1, 1).trim_end(), "…");
    assert!(shown(20, 5).contains("callsite"));
}

#[test]
fn small_screens_keep_the_selected_row() {
    let f = orders();
    let shown = screen(&f.session, (20, 5), "G");
    let last = run(&f.session, (20, 5), "").table().unwrap().rows.last().unwrap().label.clone();
    let end = last.function.rsplit("::").next().unwrap().chars().take(4).collect::<String>();
    assert!(shown.contains('▸') && shown.contains(&end), "{shown} should show {end}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn any_keys_at_any_size(steps in proptest::collection::vec((0u8..76, 0u16..130, 0u16..45), 1..60)) {
        let mut f = orders();
        let mut app = run(&f.session, (80, 24), "");
        let mut size = (80, 24);
        let keys: Vec<char> = "1245⇥⏎⎋↓→←jjkkggGGhl/sSmi oeyr?cache⏎+-xMn[],.{}P\\pT".chars().collect();
        for (choice, width, height) in steps {
            match choice {
                0..65 => {
                    let c = keys[usize::from(choice) % keys.len()];
                    press(&mut app, &f.session, &c.to_string());
                }
                65 => { app.update(key(KeyCode::PageDown), &f.session); }
                66 => { app.update(key(KeyCode::PageUp), &f.session); }
                67 => { app.update(Message::Paste("serve\n\x1b".into()), &f.session); }
                69 | 70 => {
                    let left = MouseButton::Left;
                    let kind = match choice {
                        69 => MouseEventKind::Down(left),
                        _ => MouseEventKind::Drag(left),
                    };
                    let (column, row, modifiers) = (width, height, KeyModifiers::NONE);
                    let event = MouseEvent { kind, column, row, modifiers };
                    app.update(Message::Mouse(event), &f.session);
                }
                68 => {
                    let name = format!("site{width}");
                    let stack = f.stack(&["main", &name]);
                    f.alloc(stack, u64::from(height) * 10_000 + 1);
                    f.pass(0.3);
                    app.update(Message::Refresh, &f.session);
                }
                _ => {
                    size = (width, height);
                    app.update(Message::Resize(width, height), &f.session);
                }
            }
            let leaks = matches!(app.screen(), Screen::Leaks(_));
            let page = if leaks { app.leaks_rooms().rows } else { app.rooms().body.into() }.max(1);
            let (rows, cursor) = match app.screen() {
                Screen::Callsites(c) => (app.table().map_or(0, |t| t.rows.len()), *c),
                Screen::Callers(c) => (c.rows.len(), c.cursor),
                Screen::Promotion(p) => (p.answer.as_ref().map_or(0, |a| a.len), p.cursor),
                Screen::Columns { cursor } => (Column::ALL.len() - 1, *cursor),
                Screen::Export(menu) => (menu.formats().len(), menu.cursor),
                Screen::Targets(t) => (t.counts().0, t.cursor),
                Screen::Threads(t) => (t.rows.as_ref().map_or(0, Vec::len), t.cursor),
                Screen::Leaks(l) => (l.answer.as_ref().map_or(0, |a| a.len), l.cursor),
                Screen::Flame(f) => {
                    let (at, row) = (f.at(), f.selected().map_or(0, |bar| bar.row));
                    prop_assert!(at < f.bars.len().max(1));
                    prop_assert!(f.offset <= row && row < f.offset + page);
                    prop_assert!(f.bars.iter().all(|bar| bar.x + bar.width <= size.0));
                    continue;
                }
                Screen::Timeline(_)
                | Screen::Source(_)
                | Screen::Log(_)
                | Screen::Details(_)
                | Screen::Help { .. } => continue,
            };
            prop_assert!(cursor.index() < rows.max(1));
            prop_assert!(cursor.offset() <= cursor.index() && cursor.index() < cursor.offset() + page);
            let lowest = |s: &Screen| s.is_list() && !matches!(s, Screen::Callers(_) | Screen::Details(_) | Screen::Targets(_));
            prop_assert!(lowest(&app.screens()[0]));
            prop_assert!(!app.screens()[1..].iter().any(lowest));
            drawn(&app, size);
        }
    }
}

#[test]
fn the_first_hint_takes_no_room() {
    let f = orders();
    for size in [(20, 5), (40, 24), (80, 24)] {
        let mut app = run(&f.session, size, "");
        app.is_first();
        let with = text(&drawn(&app, size));
        press(&mut app, &f.session, "~");
        let without = text(&drawn(&app, size));
        let differ: Vec<(&str, &str)> =
            with.lines().zip(without.lines()).filter(|(a, b)| a != b).collect();
        match size {
            (20, 5) => assert_eq!(differ, []),
            _ => assert!(
                differ.len() == 1 && differ[0].0.contains("new here? Enter"),
                "{size:?}: {differ:?}"
            ),
        }
    }
}

#[test]
fn the_export_menu() {
    let f = orders();
    for size in [(20, 5), (80, 24)] {
        let mut app = run(&f.session, size, "e");
        let path = |end: &str| Proposal {
            path: format!("/home/ann/heaptop-orders-api-4711-{end}").into(),
            taken: None,
        };
        let paths = ["in-use-bytes-1.svg", "in-use-bytes-3.folded"].map(path).into();
        app.update(Message::Proposed(Destination::default(), Ok(paths)), &f.session);
        press(&mut app, &f.session, "↓");
        let name = format!("export_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
        // The path is typed, and seen where one types.
        press(&mut app, &f.session, "p");
        let name = format!("export_path_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
    }
}
