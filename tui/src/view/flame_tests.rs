//! Screen 3, driven by real keys and the mouse.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, orders, press, run, screen, styles, text};
use crate::app::export::Job;
use crate::app::flame::Flame;
use crate::app::{App, Effect, Message, Screen};
use crate::session::Session;
use heaptop_protocol::message::Mark;

const SIZES: [(u16, u16); 4] = [(20, 5), (80, 24), (120, 40), (300, 80)];

fn flame(app: &App) -> &Flame {
    match app.screen() {
        Screen::Flame(flame) => flame,
        other => panic!("{other:?}"),
    }
}

fn names(app: &App) -> Vec<String> {
    flame(app).bars.iter().map(|bar| format!("{} {}", bar.row, bar.label.function)).collect()
}

fn selected(app: &App) -> &str {
    &flame(app).selected().unwrap().label.function
}

fn click(app: &mut App, session: &Session, column: u16, row: u16) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    let modifiers = KeyModifiers::NONE;
    app.update(Message::Mouse(MouseEvent { kind, column, row, modifiers }), session);
}

#[test]
fn at_every_size() {
    let f = orders();
    for size in SIZES {
        let name = format!("flame_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&f.session, size, "3"));
    }
    insta::assert_snapshot!("flame_zoomed", screen(&f.session, (80, 24), "3jjj⏎"));
    insta::assert_snapshot!("flame_upward", screen(&f.session, (80, 24), "3i"));
    let found = run(&f.session, (80, 24), "3ffill⏎");
    insta::assert_snapshot!("flame_found", text(&drawn(&found, (80, 24))));
    insta::assert_snapshot!("flame_found_styles", styles(&drawn(&found, (80, 24))));
}

#[test]
fn frames_of_a_row_lie_beside_each_other_and_below_their_parent() {
    let f = orders();
    for width in [20, 33, 80, 300] {
        let app = run(&f.session, (width, 40), "3");
        let bars = &flame(&app).bars;
        assert_eq!((bars[0].x, bars[0].width), (0, width), "the root has all the width");
        for (i, bar) in bars.iter().enumerate().skip(1) {
            let above = &bars[bar.parent];
            assert_eq!(above.row + 1, bar.row);
            assert!(above.x <= bar.x && bar.x + bar.width <= above.x + above.width);
            let before = bars[..i].iter().rev().find(|b| b.row == bar.row);
            assert!(before.is_none_or(|b| b.x + b.width <= bar.x));
        }
        for (i, bar) in bars.iter().enumerate() {
            let below: f64 = bars.iter().skip(1).filter(|b| b.parent == i).map(|b| b.share).sum();
            assert!(below <= bar.share + 1e-9, "{bar:?}");
        }
    }
}

#[test]
fn keys_go_from_frame_to_frame_and_zoom() {
    let f = orders();
    let mut app = run(&f.session, (120, 40), "3");
    assert_eq!(selected(&app), "(all)");
    press(&mut app, &f.session, "jjj");
    let there = selected(&app).to_owned();
    assert_eq!(flame(&app).selected().unwrap().row, 3);
    press(&mut app, &f.session, "k");
    assert_eq!(flame(&app).selected().unwrap().row, 2);
    press(&mut app, &f.session, "j⏎");
    assert_eq!(selected(&app), there, "it is the zoom, and selected");
    assert_eq!(flame(&app).bars[0].width, 120);
    assert_eq!(flame(&app).zoom.len(), 3);
    press(&mut app, &f.session, "⎋");
    assert_eq!(flame(&app).zoom.len(), 2);
    press(&mut app, &f.session, "⎋⎋");
    assert_eq!((flame(&app).zoom.len(), selected(&app)), (0, "(all)"));
    // Upside down the keys go by what is seen.
    press(&mut app, &f.session, "ikk");
    assert_eq!(flame(&app).selected().unwrap().row, 2);
    press(&mut app, &f.session, "j");
    assert_eq!(flame(&app).selected().unwrap().row, 1);
}

#[test]
fn the_mouse_selects_and_zooms() {
    let f = orders();
    for keys in ["3", "3i"] {
        let mut app = run(&f.session, (120, 40), keys);
        let page = usize::from(app.rooms().body);
        let bar = flame(&app).bars[4].clone();
        let line = flame(&app).line(bar.row, page).unwrap() as u16 + app.rooms().above_body();
        click(&mut app, &f.session, bar.x, line);
        assert_eq!(selected(&app), &*bar.label.function);
        assert!(flame(&app).zoom.is_empty());
        click(&mut app, &f.session, bar.x, line);
        assert_eq!(flame(&app).zoom.last(), Some(&bar.key));
        click(&mut app, &f.session, 0, 0);
        assert_eq!(flame(&app).zoom.last(), Some(&bar.key), "nothing is there");
    }
}

#[test]
fn what_is_found_is_gone_to_and_told() {
    let f = orders();
    let mut app = run(&f.session, (120, 40), "3ffill⏎n");
    assert_eq!(selected(&app), "orders::cache::fill_cache");
    let first = flame(&app).at();
    press(&mut app, &f.session, "n");
    assert_ne!(flame(&app).at(), first, "there are two");
    press(&mut app, &f.session, "n");
    assert_eq!(flame(&app).at(), first, "and round");
    press(&mut app, &f.session, "N");
    assert_ne!(flame(&app).at(), first);
    assert!(text(&drawn(&app, (120, 40))).contains("“fill” in "));
    press(&mut app, &f.session, "fx⎋");
    assert_eq!(flame(&app).search, "fill", "taken back");
    let mut app = run(&f.session, (120, 40), "3n");
    assert!(app.note().unwrap().contains("f asks"));
    press(&mut app, &f.session, "fnowhere⏎n");
    assert!(app.note().unwrap().contains("“nowhere”"));
    assert!(flame(&app).bars.iter().all(|bar| !bar.found));
}

#[test]
fn a_frozen_one_stands_still_and_its_zoom_too() {
    let mut f = orders();
    let mut app = run(&f.session, (120, 40), "3z");
    let before = names(&app);
    assert!(text(&drawn(&app, (120, 40))).contains("FROZEN"));
    for _ in 0..10 {
        f.pass(1.0);
        let stack = f.stack(&["main", "newcomer@new.rs:1"]);
        f.alloc(stack, 1 << 20);
    }
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(names(&app), before);
    press(&mut app, &f.session, "jj⏎⎋⎋");
    assert_eq!(names(&app), before, "of the same moment");
    press(&mut app, &f.session, "z");
    assert!(names(&app).contains(&"2 newcomer".to_owned()), "{:?}", names(&app));
}

#[test]
fn the_export_is_what_is_seen() {
    let f = orders();
    let mut app = run(&f.session, (120, 40), "3jjj⏎m");
    let zoom = selected(&app).to_owned();
    let effects = press(&mut app, &f.session, "e⏎");
    let [Effect::Propose(..), Effect::Export(Job { shown, .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    let request = &shown.request;
    assert!(request.icicle);
    press(&mut app, &f.session, "⎋");
    assert_eq!(&*request.focus[0].function, zoom);
    assert_eq!(request.total, flame(&app).bars[0].cum);
    assert!(request.stacks.iter().all(|(path, _)| *path[2].function == zoom));
    let svg = String::from_utf8(request.svg().unwrap()).unwrap();
    assert!(svg.contains("in use, objects") && svg.contains(&format!("through {zoom}")));
    let upward = press(&mut app, &f.session, "ie⏎");
    let [Effect::Propose(..), Effect::Export(Job { shown, .. })] = &upward[..] else {
        panic!("{upward:?}")
    };
    let request = &shown.request;
    assert!(!request.icicle);
}

#[test]
fn growth_is_shown_counted_and_exported() {
    let mut f = orders();
    let at = f.now();
    f.say(Mark { at, label: "before".into() });
    f.pass(1.0);
    let stack = f.stack(&["main", "newcomer@new.rs:1"]);
    for _ in 0..60 {
        f.alloc(stack, 200_000);
        f.pass(0.1);
    }
    f.pass(2.0);
    let size = (120, 40);
    let mut app = run(&f.session, size, "3");
    press(&mut app, &f.session, "D");
    assert!(app.note().unwrap().contains("“before”"), "{:?}", app.note());
    let newcomer = flame(&app).bars.iter().find(|b| &*b.label.function == "newcomer").unwrap();
    assert!(newcomer.grown.unwrap().grew);
    insta::assert_snapshot!("flame_growth", text(&drawn(&app, size)));
    let effects = press(&mut app, &f.session, "e⏎");
    let [Effect::Propose(..), Effect::Export(Job { shown, .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    let request = &shown.request;
    let svg = String::from_utf8(request.svg().unwrap()).unwrap();
    assert!(svg.contains("red: more than before"), "it says what colours mean");
    // Behind the last metric stands growth.
    press(&mut app, &f.session, "⎋mmmmmm");
    assert!(app.note().unwrap().contains("born since “before”"), "{:?}", app.note());
    let all = &flame(&app).bars;
    assert!(all.iter().any(|bar| &*bar.label.function == "newcomer"));
    assert!(!all.iter().any(|bar| bar.label.function.ends_with("fill_cache")), "nothing new");
    press(&mut app, &f.session, "mDDD");
    assert!(!flame(&app).gained);
}
