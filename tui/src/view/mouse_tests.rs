//! The mouse on every screen, where things are drawn.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, orders, run, text};
use crate::app::keys::{Place, TABS};
use crate::app::{App, Message};
use crate::query::{Column, LeakColumn, PromotionColumn, When};
use crate::session::Session;

const DOWN: MouseEventKind = MouseEventKind::Down(MouseButton::Left);
const DRAG: MouseEventKind = MouseEventKind::Drag(MouseButton::Left);
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (300, 80)];

fn mouse(app: &mut App, session: &Session, kind: MouseEventKind, (column, row): (u16, u16)) {
    let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    app.update(Message::Mouse(event), session);
}

/// Where `what` is drawn first, in a line that `is` takes: column and row.
fn place(app: &App, size: (u16, u16), is: impl Fn(&str) -> bool, what: &str) -> (u16, u16) {
    let shown = text(&drawn(app, size));
    let found = shown.lines().enumerate().find(|(_, line)| is(line) && line.contains(what));
    let (row, line) = found.unwrap_or_else(|| panic!("no {what} in\n{shown}"));
    let at = line.find(what).unwrap();
    (line[..at].chars().count() as u16, row as u16)
}

#[test]
fn names_of_screens_are_gone_to() {
    let f = orders();
    for size in [(140, 40), (300, 80)] {
        for from in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "d", "c", "?"] {
            let mut app = run(&f.session, size, from);
            for tab in TABS {
                // What is marked may be drawn otherwise; numbers are there at any size.
                let first = |line: &str| line.contains("orders-api");
                let (x, y) = place(&app, size, first, &format!("{} {}", tab.key, tab.name));
                for x in [x, x + 2, x + tab.name.len() as u16 + 1] {
                    mouse(&mut app, &f.session, DOWN, (x, y));
                    assert_eq!(app.screen().place(), tab.place, "{size:?} from {from}");
                }
            }
            mouse(&mut app, &f.session, DOWN, (1, 0));
            assert_eq!(app.screen().place(), Place::Log, "the target's name is no screen's");
        }
    }
    // Numbers alone do as well.
    let size = (48, 12);
    let mut app = run(&f.session, size, "");
    let at = place(&app, size, |_| true, "5");
    mouse(&mut app, &f.session, DOWN, at);
    assert_eq!(app.screen().place(), Place::Promotion);
}

#[test]
fn headings_sort_on_every_screen_that_has_some() {
    let f = orders();
    let heading = |line: &str| line.starts_with(" callsite") || line.starts_with(" calle");
    for size in SIZES {
        let mut app = run(&f.session, size, "5");
        let promotion = |app: &App| match app.screen() {
            crate::app::Screen::Promotion(p) => (p.order.column, p.order.first),
            other => panic!("{other:?}"),
        };
        let rows =
            |app: &App| text(&drawn(app, size)).lines().map(str::to_owned).collect::<Vec<_>>();
        let names = |app: &App, y: u16| {
            let rows = rows(app);
            let rows = rows[usize::from(y) + 1..]
                .iter()
                .take_while(|row| row.contains("orders") || row.contains("parse"));
            rows.map(|row| row.chars().skip(1).take(11).collect()).collect::<Vec<String>>()
        };
        for (title, column) in [
            ("rate", PromotionColumn::Rate),
            ("callsite", PromotionColumn::Name),
            ("born", PromotionColumn::Minor),
        ] {
            let (x, y) = place(&app, size, heading, title);
            mouse(&mut app, &f.session, DOWN, (x + 1, y));
            assert_eq!(promotion(&app), (column, true), "{size:?} {title}");
            let before = names(&app, y);
            assert!(rows(&app)[usize::from(y)].contains('▼'), "{:?}", rows(&app));
            mouse(&mut app, &f.session, DOWN, (x + 1, y));
            assert_eq!(promotion(&app), (column, false), "{size:?} {title}");
            assert!(rows(&app)[usize::from(y)].contains('▲'), "{:?}", rows(&app));
            if title == "callsite" {
                let mut after = names(&app, y);
                after.reverse();
                assert!(before.len() > 1, "{before:?}");
                assert_eq!(before, after);
            }
        }

        let mut app = run(&f.session, size, "7");
        let leaks = |app: &App| match app.screen() {
            crate::app::Screen::Leaks(l) => (l.order.column, l.order.first),
            other => panic!("{other:?}"),
        };
        for (title, column) in [
            ("old", LeakColumn::Old),
            ("age", LeakColumn::Age),
            ("callsite", LeakColumn::Name),
            ("growth", LeakColumn::Growth),
        ] {
            let (x, y) = place(&app, size, heading, title);
            mouse(&mut app, &f.session, DOWN, (x + 1, y));
            assert_eq!(leaks(&app), (column, true), "{size:?} {title}");
            mouse(&mut app, &f.session, DOWN, (x + 1, y));
            assert_eq!(leaks(&app), (column, false), "{size:?} {title}");
        }

        let mut app = run(&f.session, size, "2");
        let (x, y) = place(&app, size, heading, "callers  ");
        mouse(&mut app, &f.session, DOWN, (x, y));
        assert!(rows(&app)[usize::from(y)].starts_with(" callees"), "{:?}", rows(&app));

        let mut app = run(&f.session, size, "1");
        let (x, y) = place(&app, size, heading, "alloc/s");
        mouse(&mut app, &f.session, DOWN, (x, y));
        assert_eq!(app.question().sort, Column::AllocatedRate);
    }
    // Figures are in the order that the heading says.
    let size = (120, 40);
    let mut app = run(&f.session, size, "7ss");
    let ages = |app: &App| match app.screen() {
        crate::app::Screen::Leaks(l) => {
            let rows = &l.answer.as_ref().unwrap().rows;
            let age =
                |row: &crate::query::LeakRow| row.figures.median_age.shown_ns().map(|ns| ns as u64);
            rows.iter().map(age).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let oldest = ages(&app);
    super::testing::press(&mut app, &f.session, "S");
    let youngest = ages(&app);
    let known = |ages: &[Option<u64>]| ages.iter().flatten().copied().collect::<Vec<_>>();
    assert!(known(&oldest).len() > 1 && known(&oldest).is_sorted_by(|a, b| a >= b), "{oldest:?}");
    assert!(known(&youngest).is_sorted() && youngest != oldest, "{youngest:?}");
}

#[test]
fn the_time_bar_is_pressed_and_dragged_on_every_screen() {
    let f = orders();
    for size in SIZES {
        for keys in ["1", "2", "5", "7", "d", "?"] {
            let mut app = run(&f.session, size, keys);
            let (_, y) = place(&app, size, |line| line.starts_with(" in use "), " 0 to ");
            let (from, to) = (size.0 / 4, size.0 / 2);
            mouse(&mut app, &f.session, DOWN, (from, y));
            let When::At(at) = app.question().when else {
                panic!("{size:?} {keys}: {:?}", app.question())
            };
            mouse(&mut app, &f.session, DRAG, (to, y + 5));
            let When::Range { from_ns, to_ns } = app.question().when else {
                panic!("{size:?} {keys}: {:?}", app.question())
            };
            assert!(
                from_ns == at && to_ns > at,
                "{size:?} {keys}: {from_ns} to {to_ns}, pressed at {at}"
            );
            // The wheel steps there, and leaves rows alone; elsewhere it does not.
            mouse(&mut app, &f.session, MouseEventKind::Up(MouseButton::Left), (to, y));
            mouse(&mut app, &f.session, DRAG, (from, y));
            let range = app.question().when;
            assert_eq!(range, When::Range { from_ns, to_ns }, "nothing is pressed any more");
            mouse(&mut app, &f.session, DOWN, (from, y));
            let When::At(at) = app.question().when else { panic!("{:?}", app.question()) };
            mouse(&mut app, &f.session, MouseEventKind::ScrollDown, (from, y));
            let When::At(earlier) = app.question().when else { panic!("{:?}", app.question()) };
            assert!(earlier < at, "{size:?} {keys}");
            mouse(&mut app, &f.session, MouseEventKind::ScrollDown, (from, size.1 - 3));
            assert_eq!(app.question().when, When::At(earlier));
        }
    }
}

#[test]
fn the_wheel_goes_along_whatever_there_is() {
    let f = orders();
    for size in [(80, 12), (80, 24)] {
        for keys in ["1", "2", "4", "5", "7", "d", "c", "?"] {
            let mut app = run(&f.session, size, keys);
            let before = text(&drawn(&app, size));
            let body = (3, size.1 - 4);
            let legend = match app.screen() {
                crate::app::Screen::Timeline(_) => app.timeline_layout().legend,
                _ => ratatui::layout::Rect { x: body.0, y: body.1, width: 1, height: 1 },
            };
            if legend.height == 0 {
                continue;
            }
            mouse(&mut app, &f.session, MouseEventKind::ScrollDown, (legend.x, legend.y));
            let after = text(&drawn(&app, size));
            assert_ne!(before, after, "{size:?} {keys}: down");
            mouse(&mut app, &f.session, MouseEventKind::ScrollUp, (legend.x, legend.y));
            assert_eq!(before, text(&drawn(&app, size)), "{size:?} {keys}: and up again");
        }
    }
}

#[test]
fn rows_of_legend_and_chooser_are_pressed() {
    let f = orders();
    let size = (120, 40);
    let mut app = run(&f.session, size, "4");
    let at = place(&app, size, |_| true, "forget_session");
    mouse(&mut app, &f.session, DOWN, at);
    let crate::app::Screen::Timeline(t) = app.screen() else { panic!("{:?}", app.screen()) };
    assert!(t.selected().unwrap().label.function.contains("forget_session"));
    assert_eq!(app.question().when, When::Now, "a name is no moment");

    let mut app = run(&f.session, size, "c");
    let (x, y) = place(&app, size, |_| true, "[x] objects");
    mouse(&mut app, &f.session, DOWN, (x + 6, y));
    assert!(text(&drawn(&app, size)).contains("▸[x] objects"), "its name selects");
    mouse(&mut app, &f.session, DOWN, (x, y));
    assert!(text(&drawn(&app, size)).contains("▸[ ] objects"), "its box changes it");
}
