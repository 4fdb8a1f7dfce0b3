//! Other moments than now, and ranges.

use super::*;

/// `big` grows by 100 B a second, ten seconds long, from the first moment on.
fn growing() -> Fixture {
    let mut f = Fixture::new(1);
    let big = f.stack(&["main", "big"]);
    for _ in 0..10 {
        f.alloc(big, 100);
        f.pass(1.0);
    }
    f
}

fn exactly(value: f64) -> Estimate {
    Estimate::Exact { value }
}

#[test]
fn all_screens_show_the_moment_of_the_cursor() {
    let f = growing();
    let mut app = app(&f.session);
    let in_use = |app: &App| app.table().unwrap().rows[0].figures.in_use_bytes;
    assert_eq!((in_use(&app), app.summary().in_use), (exactly(1000.0), exactly(1000.0)));
    // Half of the time, by steps of a hundredth.
    press(&mut app, &f.session, &[c(','); 50]);
    assert_eq!((in_use(&app), app.summary().in_use), (exactly(600.0), exactly(600.0)));
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!(tree(&app).tree.as_ref().unwrap().cum, exactly(600.0));
    let export = press(&mut app, &f.session, &[c('e'), KeyCode::Enter]);
    assert_eq!(exported(export).total, exactly(600.0));
    // Time passes, and it stays.
    press(&mut app, &f.session, &[KeyCode::Esc, KeyCode::Esc, c('\\')]);
    assert_eq!(in_use(&app), exactly(1000.0));
}

#[test]
fn a_range_counts_what_was_born_in_it() {
    let f = growing();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c(','); 50]);
    press(&mut app, &f.session, &[c('{')]);
    press(&mut app, &f.session, &[c('.'); 20]);
    press(&mut app, &f.session, &[c('}')]);
    let figures = app.table().unwrap().rows[0].figures.clone();
    assert_eq!((figures.in_use_bytes, figures.allocated_bytes), (exactly(800.0), exactly(200.0)));
    press(&mut app, &f.session, &[c('r')]);
    assert_eq!(app.table().unwrap().rows[0].figures.allocated_bytes, exactly(1000.0));
}

#[test]
fn a_paused_screen_travels_too_and_plays() {
    let f = growing();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c(' '), c('p')]);
    assert!(app.playing() && app.paused());
    assert_eq!(app.summary().in_use, exactly(100.0));
    app.update(Message::Passed(5_500_000_000), &f.session);
    assert_eq!(app.summary().in_use, exactly(600.0));
    app.update(Message::Passed(5_500_000_000), &f.session);
    assert!(!app.playing());
    assert_eq!(app.summary().in_use, exactly(1000.0));
}

#[test]
fn without_a_past_a_sentence_says_so() {
    let session = Session::new();
    let mut app = app(&session);
    press(&mut app, &session, &[c(',')]);
    assert!(app.note().is_some_and(|note| note.contains("no moment but now")));
}

/// Of 45,000 lives.
fn many_lives() -> Fixture {
    let mut f = Fixture::new(1);
    let sites = ["a", "b"].map(|name| f.stack(&["main", name]));
    for i in 0..45_000u64 {
        let block = f.alloc(sites[i as usize % 2], 1 + i % 7);
        if i % 100 == 0 {
            f.pass(0.5);
        } else {
            f.free(block);
        }
    }
    f.pass(5.0);
    f
}

/// What is counted before a filter, what the filter takes, and growth are made one behind the
/// other, and none of them takes the room of another.
#[test]
fn a_moment_comes_to_be_shown_whatever_is_asked_of_it() {
    let f = many_lives();
    for groups in 0..Grouping::ALL.len() {
        let mut app = app(&f.session);
        press(&mut app, &f.session, &vec![c('t'); groups]);
        app.question.sort = Column::Growth;
        press(&mut app, &f.session, &"/size>1".chars().map(c).collect::<Vec<_>>());
        press(&mut app, &f.session, &[KeyCode::Enter, c(','), c(',')]);
        let mut slices = 0;
        while app.under_way().is_some() {
            app.update(Message::GoOn, &f.session);
            slices += 1;
            assert!(slices < 40, "grouped {groups} times");
        }
        assert!(matches!(app.summary().when, When::At(_)));
    }
}

/// Of many lives a moment is added up in slices: meanwhile the one before stands, and keys do
/// what they do.
#[test]
fn a_moment_of_many_lives_blocks_no_key() {
    let f = many_lives();
    let mut app = app(&f.session);
    let shown = |app: &App| (app.table().unwrap().total.clone(), app.summary().when);
    let now = shown(&app);
    press(&mut app, &f.session, &[c(',')]);
    assert!(app.under_way().is_some());
    assert_eq!(shown(&app), now, "the moment before stands");
    let backend = ratatui::backend::TestBackend::new(100, 20);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    terminal.draw(|frame| crate::view::draw(&app, frame)).unwrap();
    assert!(terminal.backend().to_string().contains("adding up, "));
    press(&mut app, &f.session, &[c('S'), KeyCode::Down]);
    assert!(!app.question().descending && app.under_way().is_some());

    let mut slices = 0;
    while app.under_way().is_some() {
        app.update(Message::GoOn, &f.session);
        slices += 1;
        assert!(slices < 10);
    }
    let table = crate::query::callsites(&f.session, app.question());
    assert!(matches!(app.summary().when, When::At(_)));
    assert_eq!(app.table().unwrap().total, table.total);
    assert_ne!(shown(&app), now);
    // Who goes away from it before it is there is where he went.
    press(&mut app, &f.session, &[c(','), c('\\')]);
    assert_eq!((app.under_way(), shown(&app)), (None, now));
}

#[test]
fn pausing_stops_what_plays() {
    let f = growing();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c('p'), c(' ')]);
    assert!(app.paused() && !app.playing());
    assert!(app.note().is_some_and(|note| note.contains("p plays on")), "{:?}", app.note());
    app.update(Message::Passed(5_500_000_000), &f.session);
    assert_eq!(app.summary().in_use, exactly(100.0), "it stands");
}

#[test]
fn what_comes_of_the_ends_of_a_range_is_said() {
    let f = growing();
    let said = |app: &App| app.note().unwrap_or_default().to_owned();
    let keys = |keys: &str| keys.chars().map(c).collect::<Vec<_>>();
    for (pressed, wanted) in [
        ("((({", "a range begins here; } ends it at the cursor"),
        ("(((({))}", ""),
        ("((({((}", "6.0 s is before 8.0 s, where the range began: it is 1.0 s to 6.0 s now"),
        ("(((}(({", ""),
        ("((((}))){", "a new range begins at 10.0 s: the one before ended at 7.0 s"),
        ("((({}", "a range that begins and ends at 8.0 s is none; , moves the cursor"),
        ("(((}{", "a range that begins and ends at 8.0 s is none; , moves the cursor"),
    ] {
        let mut app = app(&f.session);
        press(&mut app, &f.session, &keys(pressed));
        let as_wanted =
            said(&app).starts_with(wanted) && said(&app).is_empty() == wanted.is_empty();
        assert!(as_wanted, "{pressed}: {}", said(&app));
    }
    // At the end of a file there is nothing behind it.
    let mut app = App::of_file(Options::default());
    app.update(Message::Reading(None), &f.session);
    app.update(Message::Refresh, &f.session);
    press(&mut app, &f.session, &keys("\\{"));
    assert!(said(&app).starts_with("a range begins here, at the end; , moves"), "{}", said(&app));
}

/// What lives is added up for leaks part by part, growth's later part with the refresh after it.
#[test]
fn leaks_of_many_blocks_block_no_key() {
    let mut f = Fixture::new(1);
    let sites = ["a", "b"].map(|name| f.stack(&["main", name]));
    for i in 0..40_000u64 {
        f.alloc(sites[i as usize % 2], 1 + i % 7);
        if i % 100 == 0 {
            f.pass(0.5);
        }
    }
    f.pass(5.0);
    let mut app = app(&f.session);
    let answer = |app: &App| match app.shown() {
        Screen::Leaks(leaks) => leaks.answer.clone(),
        _ => None,
    };
    press(&mut app, &f.session, &[c('7')]);
    assert!(app.under_way().is_some() && answer(&app).is_none());
    let backend = ratatui::backend::TestBackend::new(100, 20);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    terminal.draw(|frame| crate::view::draw(&app, frame)).unwrap();
    assert!(terminal.backend().to_string().contains("what lives is being added up"));
    let mut parts = 0;
    while app.under_way().is_some() {
        app.update(Message::GoOn, &f.session);
        parts += 1;
        assert!(parts < 9);
    }
    assert!(parts > 2, "one after the other");
    let want = crate::query::LeakList::ask(&f.session, When::Now, None, "").unwrap().rows(0..9);
    let got = answer(&app).unwrap();
    assert_eq!((got.rows, got.total, got.later), (want.rows, want.total, None));
    f.pass(0.25);
    app.update(Message::Refresh, &f.session);
    assert_eq!(
        answer(&app).unwrap().later.map(|later| later.from_ns),
        want.later.map(|l| l.from_ns)
    );
    assert!(want.later.is_some());
}
