//! Sizes of the terminal, at any moment.

use crate::demo;
use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;

fn viewer() -> (Target, Terminal) {
    let mut demo = demo::start(&[]);
    demo::warm_up(&mut demo, 4 << 20, 0);
    let terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("fill_cache");
    (demo, terminal)
}

/// What a whole screen of these columns shows at its edges.
fn is_whole(screen: &str, columns: usize) -> bool {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.first().is_some_and(|line| line.contains(" heaptop-demo · pid "));
    let rule = lines.iter().any(|line| line.chars().filter(|c| *c == '─').count() == columns);
    let last = lines.last().is_some_and(|line| line.contains("q quit"));
    first && rule && last && screen.contains("fill_cache") && screen.contains("1 Callsites")
}

#[test]
fn each_size_is_drawn_whole() {
    let (_demo, mut terminal) = viewer();
    for (rows, cols) in [(24, 80), (80, 300), (300, 1000), (24, 80)] {
        terminal.resize(rows, cols);
        terminal.until(&format!("a whole screen at {cols}x{rows}"), |screen| {
            is_whole(screen, usize::from(cols)).then_some(())
        });
    }
    terminal.resize(5, 20);
    terminal.until("the smallest screen", |screen| {
        let rows: Vec<&str> = screen.lines().collect();
        (rows.len() == 5 && rows[2].contains("callsite")).then_some(())
    });
    for (rows, cols) in [(4, 80), (24, 19)] {
        terminal.resize(rows, cols);
        terminal.until(&format!("a sentence at {cols}x{rows}"), |screen| {
            screen.contains("needs 20x5").then_some(())
        });
    }
    for (rows, cols) in [(1, 1), (0, 0), (0, 80), (24, 0)] {
        terminal.resize(rows, cols);
        // It takes keys whatever is to be seen.
        terminal.press("?");
        terminal.press("?");
    }
    terminal.resize(24, 80);
    terminal.until("a whole screen again", |screen| is_whole(screen, 80).then_some(()));
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn a_storm_of_sizes_while_it_draws_leaves_a_whole_screen() {
    let (_demo, mut terminal) = viewer();
    let keys = ["2", "i", "1", "s", "?", "?", "/x", "\r", " ", " ", "G", "g"];
    // A congruential generator: sizes that have no pattern, the same in every run.
    let mut seed = 12_345_u32;
    let mut next = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    for storm in 0..20 {
        for step in 0..40 {
            let (rows, cols) = match next(8) {
                0 => (next(3), next(3)),
                1 => (300, 1000),
                _ => (next(70), next(250)),
            };
            let [rows, cols] = [rows, cols].map(|n| u16::try_from(n).expect("it is small"));
            terminal.resize_unseen(rows, cols);
            if step % 5 == 0 {
                terminal.press(keys[next(12) as usize]);
            }
        }
        // Whatever the keys have opened: closed, and all as at the start.
        terminal.resize(30, 110);
        terminal.press("\r1r");
        terminal.until(&format!("a whole screen after storm {storm}"), |screen| {
            (is_whole(screen, 110) && screen.contains("all callsites")).then_some(())
        });
    }
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    assert!(!terminal.in_alternate_screen() && !terminal.cursor_hidden());
}
