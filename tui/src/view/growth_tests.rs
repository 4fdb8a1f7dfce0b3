//! The screens of growth and of one callsite, at four sizes and by real keys.

use super::testing::{drawn, orders, press, run, run_with, screen, styles, text};
use crate::app::settings::Settings;
use crate::app::{App, Effect, Message, Screen};
use crate::query::Grouping;
use crate::report::Cell;
use crate::session::fixture::Fixture;
use crate::system::{Limit, Memory};
use heaptop_protocol::message::{FreeStack, FreeStacks, FromViewer, Mark};

const SIZES: [(u16, u16); 4] = [(20, 5), (80, 24), (120, 40), (300, 80)];

/// Two marks, and what happened between them and since.
fn marked() -> Fixture {
    let mut f = orders();
    for (label, blocks) in [("before load", 40), ("after load", 3)] {
        let at = f.now();
        f.say(Mark { at, label: label.into() });
        let leak = f.stack(&[
            "main@orders/src/main.rs:12",
            "orders::auth::forget_session@orders/src/auth.rs:41",
        ]);
        for _ in 0..blocks {
            f.alloc(leak, 700);
            f.pass(0.5);
        }
    }
    f
}

fn memory() -> Memory {
    Memory {
        anonymous: Some(80 << 20),
        files: Some(9 << 20),
        shared: Some(4 << 20),
        group: Some(Limit { most: 128 << 20, taken: 100 << 20 }),
        space: None,
        data: None,
        available: Some(6 << 30),
        machine: Some(16 << 30),
    }
}

#[test]
fn leaks() {
    let f = marked();
    for size in SIZES {
        let mut app = run(&f.session, size, "7");
        app.update(Message::System(Some(memory())), &f.session);
        let name = format!("leaks_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
    }
    let mut app = run(&f.session, (120, 40), "7");
    app.update(Message::System(Some(memory())), &f.session);
    insta::assert_snapshot!("leaks_styles", styles(&drawn(&app, (120, 40))));
}

#[test]
fn details() {
    let f = marked();
    for size in SIZES {
        let name = format!("details_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&f.session, size, "jd"));
    }
}

#[test]
fn groups_and_columns() {
    let f = marked();
    for (at, group) in Grouping::ALL.into_iter().enumerate().skip(1) {
        let name = format!("group_{group:?}");
        insta::assert_snapshot!(name, screen(&f.session, (120, 24), &"t".repeat(at)));
    }
    for size in SIZES {
        let name = format!("columns_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&f.session, size, "c"));
    }
    // The third column goes first, the first away.
    let shown = screen(&f.session, (120, 24), "cjjhhk k ⎋");
    insta::assert_snapshot!("columns_chosen", shown);
}

/// Rows that are some of all say of what they are, and what takes that away is gone with it.
#[test]
fn what_was_gone_into_is_said() {
    let f = marked();
    let size = (80, 24);
    let of = |app: &App| {
        let shown = text(&drawn(app, size));
        shown.lines().find(|line| line.contains("of the ")).map(str::to_owned)
    };
    // Functions, then files: into the first of them.
    let mut app = run(&f.session, size, "tt");
    assert_eq!(of(&app), None);
    press(&mut app, &f.session, "⏎");
    let said = of(&app).expect("it says of which file");
    assert!(said.starts_with(" of the file ") && said.contains(".rs"), "{said}");
    press(&mut app, &f.session, "7");
    assert_eq!(of(&app), None, "there it does not hold");
    press(&mut app, &f.session, "1");
    assert!(of(&app).is_some());
    press(&mut app, &f.session, "⎋");
    assert_eq!(of(&app), None);
}

/// Growth is counted from the mark that was chosen, and said to be.
#[test]
fn the_base_of_growth_is_chosen() {
    let f = marked();
    let size = (120, 40);
    let mut app = run(&f.session, size, "7");
    assert!(text(&drawn(&app, size)).contains("since “after load”"));
    let mut said = Vec::new();
    for _ in 0..3 {
        press(&mut app, &f.session, "D");
        press(&mut app, &f.session, "↓");
        let shown = text(&drawn(&app, size));
        let since = shown.lines().find(|line| line.contains("since")).unwrap().to_owned();
        said.push((since.contains("before load"), since.contains("heaptop came")));
    }
    assert_eq!(said, [(true, false), (false, true), (false, false)]);
}

/// What is exported counts growth from the same mark as the screen, in the same order.
#[test]
fn leaks_are_exported_as_they_stand() {
    let f = marked();
    let exported = |keys: &str| {
        let mut app = run(&f.session, (120, 40), keys);
        let shown = text(&drawn(&app, (120, 40)));
        let since = shown.lines().find_map(|line| line.split(" since ").nth(1)).unwrap();
        let since = since.split(", over").next().unwrap().to_owned();
        let Screen::Leaks(leaks) = app.screen() else { panic!("{:?}", app.screen()) };
        let rows = &leaks.answer.as_ref().unwrap().rows;
        let names: Vec<String> = rows.iter().map(|row| row.label.function.to_string()).collect();
        press(&mut app, &f.session, "e");
        let Screen::Export(menu) = app.screen() else { panic!("{:?}", app.screen()) };
        let table = menu.shown.table.clone().unwrap();
        let of = |row: &Vec<Cell>| match &row[0] {
            Cell::Function(label, _) => label.function.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(table.rows.iter().map(of).collect::<Vec<_>>(), names, "{keys}");
        let said = format!("(since {since})");
        assert!(table.notes.iter().any(|note| note.contains(&said)), "{said}: {:?}", table.notes);
        let order = table.notes.iter().any(|note| note.starts_with("order: "));
        (since, order)
    };
    assert_eq!(exported("7"), ("“after load”".into(), true));
    assert_eq!(exported("7D↓"), ("“before load”".into(), true));
    assert_eq!(exported("7D↓D↓"), ("heaptop came".into(), true));
    assert_eq!(exported("7S"), ("“after load”".into(), false));
    assert_eq!(exported("7sss"), ("“after load”".into(), false));
}

/// Growth and forecasts of a part are not taken for those of all.
#[test]
fn figures_of_a_filter_say_so_above_the_leaks() {
    let mut f = marked();
    let leak = f.stack(&["main@orders/src/main.rs:12", "orders::auth::log_in@orders/src/a.rs:4"]);
    for _ in 0..200 {
        f.alloc(leak, 400_000);
        f.pass(0.5);
    }
    let above = |keys: &str| {
        let mut app = run(&f.session, (158, 40), keys);
        app.update(Message::System(Some(memory())), &f.session);
        let shown = text(&drawn(&app, (158, 40)));
        let lines = shown.lines().skip_while(|line| !line.starts_with(" growth "));
        lines.take_while(|line| !line.starts_with(" callsite")).collect::<Vec<_>>().join("\n")
    };
    let (all, part) = (above("7L100M⏎"), above("7L100M⏎/log_in⏎"));
    assert!(all.contains("100 MiB in use, in") && !all.contains("filter"), "{all}");
    assert!(part.contains(" of what the filter takes since "), "{part}");
    assert!(part.contains("RSS grows as what the filter takes does"), "{part}");
    assert!(part.contains("100 MiB in use of what the filter takes, in"), "{part}");
}

/// Details say of which time they are.
#[test]
fn details_say_of_which_time_they_are() {
    let f = marked();
    for (keys, wanted) in [
        ("jd", " over the last "),
        (",,jd", " until then; in use as of then"),
        (",,,,{..}jd", " over the range, "),
    ] {
        let shown = screen(&f.session, (120, 40), keys);
        assert!(shown.contains(wanted), "{keys}: {shown}");
        assert_eq!(shown.contains(" over the last "), keys == "jd", "{keys}: {shown}");
    }
}

/// Where a filter leaves nothing to be said of lives, that is said instead.
#[test]
fn why_no_lives_are_drawn_is_said() {
    let f = marked();
    let why = "the filter chooses blocks by what becomes of them";
    let shown = screen(&f.session, (120, 40), "5/age>1s⏎");
    assert!(shown.contains(why), "{shown}");
    assert!(!screen(&f.session, (120, 40), "5/size>1⏎").contains(why));
    // So does the key that would move the nursery.
    let mut app = run(&f.session, (120, 40), "5/age>1s⏎");
    press(&mut app, &f.session, "]");
    assert!(app.note().is_some_and(|note| note.starts_with(why)), "{:?}", app.note());
}

/// Rows without evidence are in the order of what is old: both columns are marked, and the
/// heading says how the two go together.
#[test]
fn the_order_of_leaks_is_said() {
    let f = marked();
    let size = (120, 40);
    let mut app = run(&f.session, size, "7");
    let heading = |app: &App| {
        let shown = text(&drawn(app, size));
        shown.lines().find(|line| line.contains("in use  ")).unwrap().to_owned()
    };
    let old = |app: &App| -> Vec<f64> {
        let Screen::Leaks(leaks) = app.screen() else { panic!("{:?}", app.screen()) };
        let rows = &leaks.answer.as_ref().unwrap().rows;
        assert!(rows.iter().all(|row| !row.figures.grew), "{rows:?}");
        rows.iter().map(|row| row.figures.old_bytes.point().unwrap_or(0.0)).collect()
    };
    let said = heading(&app);
    for part in ["callsite, grown first", "growth ▼", " old ▼"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(old(&app).is_sorted_by(|a, b| a >= b), "{:?}", old(&app));
    // Turned round, both parts are.
    press(&mut app, &f.session, "S");
    let said = heading(&app);
    for part in ["callsite, grown last", "growth ▲", " old ▲"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(old(&app).is_sorted(), "{:?}", old(&app));
    // By one column there is one mark.
    press(&mut app, &f.session, "s");
    let said = heading(&app);
    assert!(said.starts_with(" callsite  ") && said.contains(" old ▼"), "{said}");
    assert!(!said.contains("growth ▼"), "{said}");
}

/// Without evidence there is no forecast, whatever is left.
#[test]
fn nothing_is_forecast_without_evidence() {
    let mut f = Fixture::new(64 << 10);
    let stack = f.stack(&["main", "work"]);
    let mut last = Vec::new();
    for _ in 0..40 {
        last.push(f.alloc(stack, 500));
        if last.len() > 10 {
            f.free(last.remove(0));
        }
        f.pass(0.5);
    }
    let at = f.now();
    f.say(Mark { at, label: "now".into() });
    f.pass(2.0);
    let mut app = run(&f.session, (120, 40), "7");
    app.update(Message::System(Some(memory())), &f.session);
    let shown = text(&drawn(&app, (120, 40)));
    assert!(shown.contains("no forecast without evidence of growth"), "{shown}");
    assert!(!shown.contains('▲'), "{shown}");
}

/// A limit that was typed is one of bytes in use; nonsense is a sentence.
#[test]
fn a_limit_is_set() {
    let f = marked();
    let mut app = run(&f.session, (120, 40), "7D↓L1G⏎");
    let shown = text(&drawn(&app, (120, 40)));
    assert!(shown.contains("the limit that was set, 1.00 GiB in use, in "), "{shown}");
    press(&mut app, &f.session, "Lmuch⏎");
    assert!(app.note().unwrap().contains("much is no limit"), "{:?}", app.note());
    press(&mut app, &f.session, "⎋L⏎");
    assert_eq!(app.note(), Some("no limit is set"));
}

/// Marks are asked for by the target's clock, once a period, and not talked about.
#[test]
fn marks_come_by_themselves() {
    let mut f = marked();
    let mut app = run(&f.session, (120, 40), "7A");
    let marks = |app: &mut App, f: &Fixture| {
        let effects = app.update(Message::Refresh, &f.session);
        effects
            .iter()
            .filter(
                |e| matches!(e, Effect::Send(FromViewer::SetMark(mark)) if mark.label == "auto"),
            )
            .count()
    };
    assert_eq!(marks(&mut app, &f), 0);
    f.pass(61.0);
    assert_eq!(marks(&mut app, &f), 1);
    f.pass(1.0);
    assert_eq!(marks(&mut app, &f), 0, "one a minute");
    let at = f.now();
    f.say(Mark { at, label: "auto".into() });
    press(&mut app, &f.session, "↓");
    f.pass(2.0);
    marks(&mut app, &f);
    assert_eq!(app.note(), None);
    assert!(text(&drawn(&app, (120, 40))).contains("≥ auto"));
    press(&mut app, &f.session, "AAAA");
    f.pass(4000.0);
    assert_eq!(marks(&mut app, &f), 0, "switched off");
}

/// Enter on a class shows its callsites, and Esc comes back to it.
#[test]
fn a_class_is_entered_and_left() {
    let f = marked();
    let mut app = run(&f.session, (120, 24), "tt");
    let first = app.table().unwrap().rows[0].label.function.clone();
    press(&mut app, &f.session, "⏎");
    let rows = &app.table().unwrap().rows;
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.label.location.starts_with(&*first)), "{rows:?}");
    press(&mut app, &f.session, "⎋");
    assert_eq!(app.table().unwrap().rows[0].label.function, first);
    press(&mut app, &f.session, "ttt⏎");
    assert!(app.note().unwrap().contains("have no callers"), "{:?}", app.note());
}

/// Callstacks of frees are wanted while details are shown, and no longer; those that were
/// told stand there.
#[test]
fn who_frees_is_asked_for_and_shown() {
    let mut f = marked();
    let mut app = run(&f.session, (120, 60), "");
    let wanted = |app: &mut App, f: &Fixture| {
        let effects = app.update(Message::Refresh, &f.session);
        let of = |effect: &Effect| match effect {
            Effect::Send(FromViewer::WantFreeStacks(want)) => Some(want.on),
            _ => None,
        };
        effects.iter().find_map(of)
    };
    assert_eq!(wanted(&mut app, &f), None);
    press(&mut app, &f.session, "d");
    assert_eq!(wanted(&mut app, &f), Some(true));
    assert_eq!(wanted(&mut app, &f), None, "once");
    assert!(text(&drawn(&app, (120, 60))).contains("callstacks of frees: –"));
    let cache = f
        .stack(&["main@orders/src/main.rs:12", "orders::cache::fill_cache@orders/src/cache.rs:88"]);
    let clear =
        f.stack(&["main@orders/src/main.rs:12", "orders::cache::clear@orders/src/cache.rs:99"]);
    for _ in 0..30 {
        let id = f.alloc(cache, 1024);
        f.say(FreeStacks { frees: vec![FreeStack { id, stack: clear }] });
        f.free(id);
    }
    f.pass(2.0);
    assert_eq!(wanted(&mut app, &f), None);
    let shown = text(&drawn(&app, (120, 60)));
    assert!(shown.contains("of the bytes freed, by"), "{shown}");
    assert!(shown.contains("orders::cache::clear"), "{shown}");
    press(&mut app, &f.session, "⎋");
    assert_eq!(wanted(&mut app, &f), Some(false));
}

/// Whatever is to be said above the leaks, it is said to its end from 80 columns on, and of
/// what there is room for at any size no line is cut in the middle of a figure.
#[test]
fn lines_above_the_leaks_fit() {
    let mut f = marked();
    let leak = f.stack(&["main@orders/src/main.rs:12", "orders::auth::log_in@orders/src/a.rs:4"]);
    let at = f.now();
    f.say(Mark { at, label: "after the second half of the load test of this night".into() });
    for _ in 0..200 {
        f.alloc(leak, 400_000);
        f.pass(0.5);
    }
    for (width, height) in [(80, 24), (81, 24), (90, 30), (100, 40), (120, 24), (300, 80)] {
        for keys in ["7", "7D↓D↓", "7A↓", "7L64G⏎", "7D↓D↓AAA↓L640G⏎"] {
            let size = (width, height);
            let mut app = run(&f.session, size, keys);
            app.update(Message::System(Some(memory())), &f.session);
            let shown = text(&drawn(&app, size));
            let said: Vec<&str> = shown
                .lines()
                .skip_while(|line| !line.starts_with(" growth "))
                .take_while(|line| !line.starts_with(" callsite"))
                // Beside them stand the selected one's details.
                .map(|line| line.split('│').next().unwrap_or_default().trim_end())
                .collect();
            assert!(said.len() >= 4, "{size:?} {keys}: {shown}");
            assert!(said.iter().all(|line| !line.ends_with('…')), "{size:?} {keys}: {said:#?}");
            let all = said.join(" ");
            for part in ["▲+", "/s", "unexplained", "in use", "agent", "reaches", "old: over"] {
                assert!(all.contains(part), "{size:?} {keys}: {part} is not in {said:#?}");
            }
        }
    }
}

/// Where there is room for nothing else, a screen says which it is, and shows a row.
#[test]
fn the_smallest_screen_says_which_it_is() {
    let f = marked();
    for (keys, tab) in
        [("1", "1 Callsites"), ("4", "4 Time"), ("5", "5 Promotion"), ("7", "7 Leaks")]
    {
        let shown = screen(&f.session, (20, 5), keys);
        let first = shown.lines().next().unwrap();
        assert!(first.contains(tab) && first.contains(" or"), "{keys}: {shown}");
        if keys != "4" {
            assert!(shown.contains('▸'), "{keys}: {shown}");
        }
    }
}

/// A very wide screen is used: names that are long, every column with its interval, and
/// what else there is beside them.
#[test]
fn a_wide_screen_uses_its_room() {
    const LONG: &str = "<orders::store::Table<orders::keys::Customer, orders::rows::Invoice> as \
                        orders::store::Grow>::grow_to_what_is_needed";
    let wide = (300, 80);
    let mut f = marked();
    let stack = f.stack(&["main@orders/src/main.rs:12", &format!("{LONG}@orders/src/table.rs:77")]);
    for _ in 0..300 {
        let id = f.alloc(stack, 1000);
        f.promote(id);
        f.pass(0.5);
    }
    let named =
        |shown: &str| shown.contains("grow_to_what_is_needed") && shown.contains("table.rs:77");
    let titles = [
        (
            "1",
            &[
                "in use",
                "objects",
                "allocated",
                "births",
                "alloc/s",
                "births/s",
                "promoted",
                "dies young",
                "lifetime",
                "mean life",
                "growth",
                "trend",
            ][..],
        ),
        (
            "7",
            &[
                "growth",
                "old",
                "age",
                "in use",
                "old objects",
                "born before",
                "≥ before load",
                "≥ after load",
            ],
        ),
        ("5", &["born young", "promoted", "promoted/s", "rate", "dies young", "lifetime"]),
        ("2", &["cum", "share", "flat"]),
    ];
    for (keys, titles) in titles {
        // Without the details of a row beside them.
        let alone = Settings { pane: false, ..Settings::default() };
        let shown = text(&drawn(&run_with(&f.session, wide, alone, keys), wide));
        let heading = shown
            .lines()
            .filter(|line| line.starts_with(" callsite") || line.starts_with(" callers "))
            .find(|line| !line.starts_with(" callers of "))
            .unwrap_or_else(|| panic!("{keys}: {shown}"));
        for title in titles {
            assert!(heading.contains(title), "{keys}: {title} is not in {heading}");
        }
        assert!(named(&shown), "{keys}: {shown}");
        let row = shown.lines().find(|line| line.contains("grow_to_what")).unwrap();
        let columns = row.chars().count();
        assert!(columns > 270, "{keys}: {columns} of 300 columns are used by {row}");
    }
    // Names have what figures leave.
    for keys in ["5", "7", "2"] {
        let alone = Settings { pane: false, ..Settings::default() };
        let shown = text(&drawn(&run_with(&f.session, wide, alone, keys), wide));
        assert!(shown.contains("orders::rows::Invoice"), "{keys}: {shown}");
    }
    // A bar of all is as wide as it is said to be.
    let callers = screen(&f.session, wide, "2");
    assert!(callers.contains(&"█".repeat(100)), "{callers}");
    // Details stand in two columns: what a callsite does, and whence it is called.
    let details = screen(&f.session, wide, "d");
    let both = |a: &str, b: &str| details.lines().any(|line| line.contains(a) && line.contains(b));
    assert!(both("in use", "callstacks:") && both("█", "0x"), "{details}");
    // The chooser of columns shows what it makes of the table.
    let columns = screen(&f.session, wide, "cjj ");
    let line = |part: &str| columns.lines().find(|line| line.contains(part)).unwrap().to_owned();
    assert!(line("[x] in use").contains(" callsite "), "{columns}");
    let heading = line("[x] in use");
    assert!(heading.contains("alloc/s") && !heading.contains("objects"), "{heading}");
    assert!(named(&columns), "{columns}");
    // Time: the curves at the left, the layers' names and figures at the right.
    let time = screen(&f.session, wide, "4");
    let row =
        time.lines().find(|line| line.contains("table.rs:77")).unwrap_or_else(|| panic!("{time}"));
    let at = row.find("grow_to_what").map(|at| row[..at].chars().count()).unwrap();
    assert!(at > 150, "{row}");
}
