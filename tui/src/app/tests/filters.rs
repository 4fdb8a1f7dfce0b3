//! Filters as they are typed and chosen.

use super::*;

#[test]
fn a_wrong_filter_is_marked_and_what_was_before_holds() {
    let f = fixture();
    let mut app = app(&f.session);
    let typed = |text: &str| text.chars().map(c).collect::<Vec<_>>();
    press(&mut app, &f.session, &typed("/size>4"));
    assert_eq!((app.question().filter.as_str(), app.wrong_filter()), ("size>4", None));
    press(&mut app, &f.session, &typed("Q"));
    assert_eq!(app.question().filter, "size>4", "the last that was right");
    assert_eq!(app.wrong_filter().map(|wrong| wrong.at), Some(5));
    press(&mut app, &f.session, &[KeyCode::Backspace, c('K')]);
    assert_eq!((app.question().filter.as_str(), app.wrong_filter()), ("size>4K", None));
    press(&mut app, &f.session, &[c(' '), c('!'), KeyCode::Esc]);
    assert_eq!(app.question().filter, "", "that of before");
    press(&mut app, &f.session, &typed("/big"));
    press(&mut app, &f.session, &[KeyCode::Enter]);
    press(&mut app, &f.session, &typed("/ size>4Q"));
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::Esc]);
    assert_eq!(app.question().filter, "big");
}

/// Enter takes no mistake, and throws nothing away: what was typed is there to be mended, and
/// no letter behind it is a command.
#[test]
fn what_is_wrong_stays_to_be_mended() {
    let f = fixture();
    let mut app = app(&f.session);
    let typed = |text: &str| text.chars().map(c).collect::<Vec<_>>();
    let line = |app: &App| app.prompt().map(|(_, text, _)| text.to_owned());
    press(&mut app, &f.session, &typed("/re:(big"));
    assert!(press(&mut app, &f.session, &[KeyCode::Enter]).is_empty());
    assert_eq!(line(&app).as_deref(), Some("re:(big"));
    assert!(app.note().is_some_and(|note| note.contains("Esc takes it back")), "{:?}", app.note());
    assert!(app.wrong_filter().is_some(), "where it is wrong is marked");
    assert_eq!(press(&mut app, &f.session, &typed("q)")), []);
    press(&mut app, &f.session, &[KeyCode::Backspace, KeyCode::Backspace, c(')'), KeyCode::Enter]);
    assert_eq!((line(&app), app.question().filter.as_str()), (None, "re:(big)"));

    press(&mut app, &f.session, &typed("7Labc"));
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!(line(&app).as_deref(), Some("abc"));
    assert!(app.note().is_some_and(|note| note.contains("abc is no limit")), "{:?}", app.note());
    let control = KeyEvent::new(c('u'), KeyModifiers::CONTROL);
    app.update(Message::Key(control), &f.session);
    assert_eq!(line(&app).as_deref(), Some(""), "^U clears");
    press(&mut app, &f.session, &typed("2G"));
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!((line(&app), app.limit), (None, Some(2 << 30)));
}

#[test]
fn names_that_nobody_has_are_told() {
    let mut f = fixture();
    f.name_thread(1, "main");
    let at = f.now();
    f.say(heaptop_protocol::message::Phase { at, name: "billing".into() });
    let mut app = app(&f.session);
    let typed = |text: &str| text.chars().map(c).collect::<Vec<_>>();
    for (filter, said) in [
        ("phase:x", Some("no phase “x” so far")),
        ("!thread:\"work er\"", Some("no thread “work er” so far")),
        ("phase:bill thread:mai big", None),
    ] {
        press(&mut app, &f.session, &typed(&format!("/{filter}")));
        press(&mut app, &f.session, &[KeyCode::Enter]);
        assert_eq!(app.note(), said, "{filter}");
        press(&mut app, &f.session, &[KeyCode::Esc]);
    }
}

#[test]
fn filters_of_before_are_gone_through() {
    let f = fixture();
    let mut app = app(&f.session);
    let typed = |text: &str| text.chars().map(c).collect::<Vec<_>>();
    for filter in ["left", "right"] {
        press(&mut app, &f.session, &typed(&format!("/{filter}")));
        press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::Esc]);
    }
    press(&mut app, &f.session, &typed("/sm"));
    let filter = |app: &App| app.question().filter.clone();
    let mut seen = Vec::new();
    for key in [KeyCode::Up, KeyCode::Up, KeyCode::Up, KeyCode::Down, KeyCode::Down, KeyCode::Down]
    {
        press(&mut app, &f.session, &[key]);
        seen.push(filter(&app));
    }
    assert_eq!(seen, ["right", "left", "left", "right", "sm", "sm"]);
}

#[test]
fn threads_are_gone_through_on_every_screen() {
    let mut f = fixture();
    f.name_thread(1, "main");
    f.name_thread(2, "work er");
    f.thread = heaptop_protocol::ids::ThreadId(2);
    let stack = f.stack(&["main", "other"]);
    f.alloc(stack, 40);
    f.pass(1.0);
    let mut app = app(&f.session);
    let rows = |app: &App| app.table().unwrap().rows.len();
    assert_eq!(rows(&app), 3);
    for (key, filter, shown) in [
        ('>', "thread:\"main\"", 2),
        ('>', "thread:\"work er\"", 1),
        ('>', "", 3),
        ('<', "thread:\"work er\"", 1),
    ] {
        press(&mut app, &f.session, &[c(key)]);
        assert_eq!((app.question().filter.as_str(), rows(&app)), (filter, shown));
    }
    press(&mut app, &f.session, &[KeyCode::Esc, c('/'), c('o'), KeyCode::Enter, c('6')]);
    let Screen::Threads(threads) = app.screen() else { panic!("{:?}", app.screen()) };
    assert_eq!(threads.rows.as_ref().map(Vec::len), Some(1), "who allocates at other");
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!(app.screen().place(), keys::Place::Callsites);
    assert_eq!((app.question().filter.as_str(), rows(&app)), ("o thread:\"work er\"", 1));
    press(&mut app, &f.session, &[KeyCode::Esc]);
    assert_eq!((app.question().filter.as_str(), rows(&app)), ("", 3));
}
