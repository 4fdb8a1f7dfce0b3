//! What a person reads from screen to screen: names that are the same, figures that say what
//! they count, keys that are seen, and lines that stay where they are.

use super::testing::{drawn, orders, press, run, screen, text};
use crate::app::source::Text;
use crate::app::{App, Message, Screen};
use crate::session::fixture::Fixture;

const NARROW: (u16, u16) = (80, 24);
const WIDE: (u16, u16) = (120, 40);

fn shown(app: &App, size: (u16, u16)) -> String {
    text(&drawn(app, size))
}

/// How a callsite's name stands in a row, and the file and line behind it.
fn named(shown: &str, function: &str) -> (String, Option<String>) {
    // Of what callers are stands above them whole; beside rows stand details.
    let rows = shown.lines().filter(|line| !line.starts_with(" callers of "));
    let rows = rows.map(|line| line.split('│').next().unwrap_or_default());
    let row = rows.map(|row| row.trim_start_matches([' ', '▸'])).find(|row| row.contains(function));
    let mut words = row
        .unwrap_or_else(|| panic!("{function} in {shown}"))
        .split_whitespace()
        .skip_while(|word| !word.ends_with(function));
    let name = words.next().unwrap_or_else(|| panic!("{function} in {shown}")).to_owned();
    (name, words.next().filter(|place| place.contains(".rs:")).map(str::to_owned))
}

/// A callsite is known again by its name, whatever else a screen has room for; its place is
/// left out or is the same.
#[test]
fn names_are_the_same_on_all_screens() {
    let f = orders();
    for size in [NARROW, (100, 30), WIDE, (160, 50)] {
        for function in ["fill_cache", "forget_session"] {
            let callers = if function == "fill_cache" { "⏎" } else { "j⏎" };
            let on = |keys| named(&screen(&f.session, size, keys), function);
            let (name, place) = on("");
            for keys in ["4", "5", "7", callers] {
                let (other, at) = on(keys);
                assert_eq!(other, name, "{keys:?} at {size:?}");
                if let (Some(place), Some(at)) = (&place, at) {
                    assert_eq!(at, *place, "{keys:?} at {size:?}");
                }
            }
        }
    }
}

/// The line that says of what there are callers.
fn crumbs(app: &App, size: (u16, u16)) -> String {
    let shown = shown(app, size);
    let line = shown.lines().find(|line| line.starts_with(" callers of "));
    line.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

/// Its key goes to the callers of what is selected, on whatever screen, and what they are
/// callers of is said.
#[test]
fn callers_are_of_what_is_selected() {
    let f = orders();
    let mut app = run(&f.session, WIDE, "⏎");
    assert!(crumbs(&app, WIDE).starts_with(" callers of orders::cache::fill_cache  "));
    press(&mut app, &f.session, "1j2");
    assert!(crumbs(&app, WIDE).starts_with(" callers of orders::auth::forget_session  "));
    // A source line's are not those that were left.
    press(&mut app, &f.session, "1g8");
    let Screen::Source(source) = app.screen() else { panic!("{:?}", app.screen()) };
    assert!(source.figures(source.line).is_some(), "{source:?}");
    press(&mut app, &f.session, "2");
    assert!(crumbs(&app, WIDE).starts_with(" callers of orders::cache::fill_cache  "));
    // Nor are a frame's.
    press(&mut app, &f.session, "3↓↓");
    let Screen::Flame(flame) = app.screen() else { panic!("{:?}", app.screen()) };
    let frame = flame.selected().unwrap().label.function.to_string();
    assert_ne!(frame, "orders::cache::fill_cache");
    press(&mut app, &f.session, "2");
    assert!(crumbs(&app, WIDE).starts_with(&format!(" callers of {frame}  ")));
    // Where nothing is selected they are come back to.
    press(&mut app, &f.session, "92");
    assert!(crumbs(&app, WIDE).starts_with(&format!(" callers of {frame}  ")));
}

/// Enter makes a focus of the selected row, or says why it does not.
#[test]
fn enter_focuses_the_selected_row() {
    let f = orders();
    let mut app = run(&f.session, WIDE, "⏎j⏎");
    assert!(crumbs(&app, WIDE).contains("orders::cache::fill_cache › orders::"));
    assert!(crumbs(&app, WIDE).ends_with(" along this path"));
    press(&mut app, &f.session, "g⏎");
    assert_eq!(app.note(), Some("this is the focus; Esc goes back"));
}

/// A line of the source has more than a callsite at it: both screens say what they count.
#[test]
fn callers_and_source_say_what_they_count() {
    let f = orders();
    for size in [NARROW, WIDE] {
        let callers = run(&f.session, size, "⏎");
        assert!(crumbs(&callers, size).ends_with("at this callsite alone"), "{size:?}");
        let mut source = run(&f.session, size, "8");
        let Screen::Source(s) = source.screen() else { panic!("{:?}", source.screen()) };
        let (file, lines) = (s.file.clone().unwrap(), vec![String::new(); 100]);
        let read = Text { path: "x.rs".into(), lines, changed_unix_ns: None };
        source.update(Message::Source(file, Ok(read)), &f.session);
        let shown = shown(&source, size);
        let heading =
            shown.lines().find(|line| line.contains("cum     flat") || line.contains("flat "));
        let heading = heading.unwrap_or_else(|| panic!("{shown}"));
        assert!(heading.contains("through the line") && heading.contains("at it"), "{heading}");
    }
    // Long names make room for it.
    let mut f = orders();
    let long = "orders::customers::addresses::repository::cache::fill_all_of_them@r.rs:1";
    let stack = f.stack(&["main@main.rs:1", long]);
    f.alloc(stack, 90_000_000);
    f.pass(1.0);
    let said = crumbs(&run(&f.session, NARROW, "⏎"), NARROW);
    assert!(said.contains("…::fill_all_of_them  "), "{said}");
    assert!(said.ends_with("at this callsite alone"), "{said}");
    // A frame that allocates nothing itself has others' bytes.
    let mut app = run(&f.session, WIDE, "3↓2");
    assert!(crumbs(&app, WIDE).ends_with("through this frame"), "{}", crumbs(&app, WIDE));
    press(&mut app, &f.session, "i");
    assert!(shown(&app, WIDE).contains(" callees of "));
}

/// What is done most is seen on the narrowest usual terminal, however many rows there are.
#[test]
fn the_keys_that_are_used_most_are_seen() {
    let mut f = orders();
    for site in 0..1_200 {
        let stack = f.stack(&["main@main.rs:1", &format!("many::site{site}@many.rs:{site}")]);
        f.alloc(stack, 100_000);
    }
    f.pass(1.0);
    let wanted: [(&str, &[&str]); 6] = [
        ("", &["Enter callers", "/ filter", "d details", "e export", "M mark"]),
        ("/site⏎", &["Enter callers", "/ filter", "d details", "e export", "M mark"]),
        ("7", &["Enter details", "/ filter", "e export", "M mark"]),
        ("5", &["Enter callers", "/ filter", "d details", "e export", "M mark"]),
        ("4", &["Enter callers", "/ filter", "d details", "e export", "M mark"]),
        ("2", &["Enter focus", "Esc back", "/ filter", "d details", "e export", "i invert"]),
    ];
    for (keys, wanted) in wanted {
        let shown = screen(&f.session, NARROW, keys);
        let bar = shown.lines().last().unwrap();
        for key in wanted.iter().chain(&["? help", "q quit"]) {
            assert!(bar.contains(key), "{keys:?}: {key} in {bar}");
        }
        assert!(!bar.contains("Enter details  d"), "{bar}");
    }
    let count = |keys| {
        let shown = screen(&f.session, NARROW, keys);
        shown.trim_end().rsplit("quit").next().unwrap().trim().to_owned()
    };
    assert_eq!((count(""), count("/site⏎")), ("1,205".into(), "1200/1205".into()));
}

/// Where the header's items stand.
fn items(shown: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = shown.lines().skip(1).take(4).collect();
    let find = |word: &&str| {
        let word = format!(" {word} ");
        lines.iter().enumerate().find_map(|(y, line)| Some((y, line.find(&word)?)))
    };
    let column = |(y, at): (usize, usize)| (y, super::text::width(&lines[y][..at]));
    let words = ["alloc", "promoted", "RSS", "peak", "cost", "dropped"];
    words.iter().filter_map(find).map(column).collect()
}

/// Numbers become longer and shorter from second to second: nothing moves for it.
#[test]
fn the_header_stands_still() {
    for size in [NARROW, (100, 30), WIDE, (160, 50), (200, 50), (300, 80)] {
        let mut f = Fixture::new(64 << 10);
        let small = f.stack(&["main", "small"]);
        let large = f.stack(&["main", "large"]);
        let mut app = run(&f.session, size, "");
        let mut seen: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut widths = Vec::new();
        for step in 0..14_u32 {
            let bytes = if step % 3 == 0 { 10_000_000 } else { 900 };
            for _ in 0..(1 << step.min(9)) {
                let block = f.alloc(if step % 3 == 0 { large } else { small }, bytes);
                if bytes < 1000 && step % 2 == 0 {
                    f.promote(block);
                }
            }
            f.pass(1.0);
            app.update(Message::Refresh, &f.session);
            let shown = shown(&app, size);
            widths.push(shown.lines().nth(1).unwrap().split("  ").next().unwrap().len());
            seen.push(items(&shown));
        }
        widths.sort_unstable();
        widths.dedup();
        assert!(widths.len() > 2, "the figures change: {widths:?}");
        assert!(seen[0].len() >= 5, "{:?}", seen[0]);
        seen.dedup();
        assert_eq!(seen.len(), 1, "{size:?}: {seen:?}");
    }
}
