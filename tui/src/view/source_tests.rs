//! Screen 8, driven by real keys; the file's text is told as the terminal loop does.

use super::testing::{drawn, orders, press, run, text};
use crate::app::source::{Source, Text};
use crate::app::{App, Effect, Message, Screen};
use crate::session::Session;

const FILE: &str = "orders/src/cache.rs";

fn source(app: &App) -> &Source {
    match app.screen() {
        Screen::Source(source) => source,
        other => panic!("{other:?}"),
    }
}

/// The selected callsite's file, whose line 88 says so.
fn shown(session: &Session, size: (u16, u16)) -> App {
    let mut app = run(session, size, "");
    let effects = press(&mut app, session, "8");
    assert_eq!(effects, [Effect::Read(FILE.into())]);
    let mut lines: Vec<String> = (1..=120).map(|n| format!("\tline({n});")).collect();
    lines[87] = "        let page = vec![0; size]; // \x1b[31m".into();
    let read = Text { path: FILE.into(), lines, changed_unix_ns: Some(1) };
    app.update(Message::Source(FILE.into(), Ok(read)), session);
    app
}

#[test]
fn bytes_stand_beside_the_lines_at_every_size() {
    let f = orders();
    for size in [(20, 5), (80, 24), (120, 40), (300, 80)] {
        let app = shown(&f.session, size);
        let name = format!("source_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, text(&drawn(&app, size)));
    }
}

#[test]
fn lines_are_gone_along_and_drilled() {
    let f = orders();
    let mut app = shown(&f.session, (80, 24));
    assert_eq!(source(&app).line, 88);
    let cell = &source(&app).figures(88).unwrap().cum;
    let row = |name: &str| {
        let rows = &run(&f.session, (80, 24), "").table().unwrap().rows.clone();
        rows.iter().find(|row| row.label.function.ends_with(name)).unwrap().figures.in_use_bytes
    };
    assert_eq!(*cell, row("fill_cache"), "what the table says");
    press(&mut app, &f.session, "kkk");
    assert_eq!(source(&app).line, 85);
    press(&mut app, &f.session, "n");
    assert_eq!(source(&app).line, 88);
    press(&mut app, &f.session, "⏎");
    let Screen::Callers(callers) = app.screen() else { panic!("{:?}", app.screen()) };
    assert!(callers.crumbs[0].function.ends_with("fill_cache"));
    press(&mut app, &f.session, "⎋g⏎");
    assert_eq!(source(&app).line, 1);
    assert!(app.note().unwrap().contains("n goes to the next"));
}

#[test]
fn where_nothing_is_selected_the_callsite_is_that_of_the_first_screen() {
    let f = orders();
    let mut app = run(&f.session, (80, 24), "");
    assert_eq!(press(&mut app, &f.session, "68"), [Effect::Read(FILE.into())]);
    // What is being read stays, wherever one comes from.
    let mut app = shown(&f.session, (80, 24));
    press(&mut app, &f.session, "kkk");
    assert_eq!(press(&mut app, &f.session, "68"), []);
    assert_eq!(source(&app).line, 85);
}

#[test]
fn without_its_text_a_file_has_figures_by_line() {
    let f = orders();
    let mut app = run(&f.session, (100, 24), "8");
    let why = format!("{FILE} cannot be read here: there is no such file");
    app.update(Message::Source(FILE.into(), Err(why)), &f.session);
    let screen = text(&drawn(&app, (100, 24)));
    assert!(screen.contains("there is no such file"), "{screen}");
    assert!(screen.contains("fill_cache"), "{screen}");
    // Another file's text is not this one's.
    let other = Text { path: "x".into(), lines: vec!["other".into()], changed_unix_ns: None };
    app.update(Message::Source("x.rs".into(), Ok(other)), &f.session);
    assert!(!text(&drawn(&app, (100, 24))).contains("other"));
}

#[test]
fn a_file_that_changed_since_says_so() {
    let f = orders();
    let mut app = run(&f.session, (120, 24), "8");
    let read =
        Text { path: FILE.into(), lines: vec![String::new(); 90], changed_unix_ns: Some(u64::MAX) };
    app.update(Message::Source(FILE.into(), Ok(read)), &f.session);
    assert!(text(&drawn(&app, (120, 24))).contains("changed since the program started"));
}

#[test]
fn without_a_selection_it_says_what_to_do() {
    let f = crate::session::fixture::Fixture::new(1024);
    let mut app = run(&f.session, (80, 24), "");
    assert_eq!(press(&mut app, &f.session, "8"), []);
    assert!(text(&drawn(&app, (80, 24))).contains("select one on another"));
}
