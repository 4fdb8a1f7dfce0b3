//! What a person reads from screen to screen: names that are the same, figures that say what
//! they count, keys that are seen, and lines that stay where they are.

use super::testing::{drawn, orders, run, screen, text};
use crate::app::{App, Message};
use crate::session::fixture::Fixture;

const NARROW: (u16, u16) = (80, 24);
const WIDE: (u16, u16) = (120, 40);

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

fn shown(app: &App, size: (u16, u16)) -> String {
    text(&drawn(app, size))
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
