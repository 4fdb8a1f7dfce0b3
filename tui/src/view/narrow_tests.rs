//! Where room is short: what is worth most is seen, and what does not fit is left out as a
//! whole, or says that it was cut.

use crate::app::Message;
use crate::export::{Destination, Proposal};
use crate::session::fixture::Fixture;
use crate::view::testing::{drawn, orders, press, run, screen, text};

/// The line of the headings: the one that has this word.
fn line<'a>(shown: &'a str, word: &str) -> &'a str {
    let found = shown.lines().find(|line| line.contains(word));
    found.unwrap_or_else(|| panic!("{word} is not in {shown}"))
}

/// How many lines a sentence of such words has.
fn worded(shown: &str) -> usize {
    let is = |word: &str| word.starts_with("wo") || word.trim_matches('x').is_empty();
    let lines = shown.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| line.split(' ').all(is)).count()
}

#[test]
fn a_sentence_takes_the_lines_that_it_has() {
    let f = orders();
    for size in [(80, 24), (61, 24), (40, 20)] {
        // The first has no room to spare in its line.
        let whole = usize::from(size.0) - 1;
        for (columns, lines) in [(whole - 4, 1), (whole, 1), (whole + 1, 2), (2 * whole, 3)] {
            let mut app = run(&f.session, size, "");
            let without = app.rooms().sentence;
            let words = "words ".repeat(columns / 6) + &"x".repeat(columns % 6);
            app.update(Message::Note(words), &f.session);
            let shown = text(&drawn(&app, size));
            let drawn = worded(&shown);
            let rooms = app.rooms().sentence;
            assert_eq!((without, usize::from(rooms)), (0, drawn), "{size:?}: {shown}");
            assert!((1..=lines).contains(&drawn), "{columns} of {size:?}: {shown}");
        }
    }
    // What has no room says so.
    let mut app = run(&f.session, (40, 20), "");
    app.update(Message::Note("words ".repeat(40)), &f.session);
    let shown = text(&drawn(&app, (40, 20)));
    assert_eq!(worded(&shown), 3, "{shown}");
    assert!(shown.contains("…\n"), "{shown}");
}

#[test]
fn headings_are_whole_and_have_their_sign() {
    let f = orders();
    let by_mean_life = "s".repeat(9);
    for size in [(80, 24), (120, 40), (160, 50), (300, 80)] {
        let shown = screen(&f.session, size, &by_mean_life);
        assert!(line(&shown, "callsite ").contains("mean life▼"), "{size:?}: {shown}");
        let shown = screen(&f.session, size, &"s".repeat(8));
        assert!(line(&shown, "callsite ").contains("lifetime▼"), "{size:?}: {shown}");
    }
    let wide = screen(&f.session, (300, 80), "");
    assert!(line(&wide, "callsite ").contains(" mean life "), "{wide}");
}

#[test]
fn an_interval_is_whole_or_is_not_there() {
    let mut f = Fixture::new(4096);
    let stack = f.stack(&["main", "leaf"]);
    f.alloc(stack, 1 << 20);
    f.pass(1.0);
    let figure = |width| {
        let shown = screen(&f.session, (width, 5), "");
        line(&shown, " in use ").trim_end().to_owned()
    };
    assert_eq!(figure(20), " in use 1.00 MiB", "and not ±2, without what it is of");
    assert_eq!(figure(21), " in use 1.00 MiB ±2 %");
}

#[test]
fn what_rows_are_sorted_by_has_the_first_room() {
    let f = orders();
    for (keys, heading) in [("6", "in use"), ("6s", "objects"), ("7", "growth"), ("1", "in use")] {
        for width in [36, 40, 44, 50, 60] {
            let shown = screen(&f.session, (width, 14), keys);
            let first = if keys.starts_with('6') { " thread" } else { " callsite" };
            let head = shown.lines().rfind(|line| line.starts_with(first)).unwrap();
            assert!(head.contains(heading), "{keys} in {width}: {shown}");
        }
    }
}

fn menu(f: &Fixture, size: (u16, u16), name: &str, keys: &str) -> String {
    let mut app = run(&f.session, size, "e");
    let one = |end: &str| Proposal {
        path: format!("/home/ann/measurements/of-december/{name}.{end}").into(),
        taken: (end == "folded").then(|| "it".to_owned()),
    };
    let paths = ["svg", "folded", "txt", "csv", "json"].map(one).into();
    app.update(Message::Proposed(Destination::default(), Ok(paths)), &f.session);
    press(&mut app, &f.session, keys);
    text(&drawn(&app, size))
}

#[test]
fn the_export_menu_says_where_it_goes_on_any_screen() {
    let f = orders();
    let long = "heaptop-orders-api-4711-in-use-bytes-1";
    for size in [(30, 8), (40, 12), (60, 12), (60, 24), (80, 24)] {
        for (at, end) in ["svg", "folded", "txt", "csv", "json"].into_iter().enumerate() {
            let shown = menu(&f, size, long, &"↓".repeat(at));
            // A path goes on in the next line.
            let joined: String = shown.lines().map(str::trim).collect();
            assert!(joined.contains(&format!("1.{end}")), "{size:?}: {shown}");
            assert!(shown.contains(&format!("▸{end}")), "{size:?}: {shown}");
        }
    }
    for (width, cut) in [(40, "folded stacks, for flamegraph …"), (60, "for flamegraph tools")] {
        let shown = menu(&f, (width, 24), "a", "");
        assert!(shown.contains(cut), "{shown}");
    }
    assert!(menu(&f, (80, 24), "a", "↓").contains("a.folded: it is there already"));
}
