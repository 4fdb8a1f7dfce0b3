//! `r`, and `p`: what they do is seen.

use super::*;
use crate::app::keys::{Action, TimeKey};
use crate::app::testing::{press, refresh};
use heaptop_protocol::message::Mark;

/// A target that has run for a minute, and was marked.
fn marked() -> Fixture {
    let mut f = fixture();
    f.pass(30.0);
    for label in ["one", "two"] {
        let at = f.now();
        f.say(Mark { at, label: label.into() });
        f.pass(15.0);
    }
    f.report();
    f
}

/// What a user can have changed of the view.
fn view(app: &App) -> String {
    let screens: Vec<String> = app
        .screens()
        .iter()
        .map(|screen| match screen {
            Screen::Callers(c) => format!("{:?} {:?} {}", c.direction, c.opened, c.cursor.index()),
            Screen::Flame(f) => format!(
                "{:?} {} {:?} {:?} {} {}",
                f.zoom, f.upward, f.frozen, f.search, f.gained, f.compared
            ),
            Screen::Promotion(p) => format!("{:?} {:?} {}", p.nursery, p.order, p.cursor.index()),
            Screen::Leaks(l) => format!("{:?} {}", l.order, l.cursor.index()),
            Screen::Threads(t) => format!("{:?} {} {}", t.sort, t.reversed, t.cursor.index()),
            Screen::Callsites(cursor) => cursor.index().to_string(),
            Screen::Timeline(t) => t.cursor.index().to_string(),
            other => format!("{:?}", other.place()),
        })
        .collect();
    format!(
        "{screens:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {:?}",
        app.question,
        app.columns(),
        app.columns_chosen,
        app.metric,
        app.times,
        app.growth_base,
        app.class(),
        app.paused,
        app.order_held,
        app.left_group.is_some()
    )
}

#[test]
fn a_reset_puts_back_all_of_the_view_on_every_screen() {
    let f = marked();
    for (screen, changes) in [
        ('1', "/main⏎jsSto,"),
        ('1', "t⏎c jl⎋DDm{,} "),
        ('1', ">/ big⏎l(P"),
        ('2', "ilj,m"),
        ('3', "jji/m⏎⏎fmain⏎zDDmt"),
        ('4', "j,{,}"),
        ('5', "][[sSj,"),
        ('6', "sSSj."),
        ('7', "sSDDj,"),
    ] {
        let mut app = app(&f.session);
        press(&mut app, &f.session, &format!("{screen}"));
        let before = view(&app);
        press(&mut app, &f.session, changes);
        assert_ne!(view(&app), before, "{screen}: {changes}");
        press(&mut app, &f.session, "r");
        assert_eq!(view(&app), before, "{screen}: {changes}");
        // Also when another screen is reset meanwhile.
        if screen != '2' {
            press(&mut app, &f.session, changes);
            press(&mut app, &f.session, "⎋⎋⎋6r1r");
            press(&mut app, &f.session, &format!("{screen}"));
            assert_eq!(view(&app), before, "{screen}: {changes}, reset elsewhere");
        }
    }
}

#[test]
fn growth_is_counted_from_the_last_mark_again() {
    let f = marked();
    let mut app = app(&f.session);
    press(&mut app, &f.session, "DD");
    assert_eq!(app.growth_base, GrowthBase::Came);
    press(&mut app, &f.session, "r");
    assert_eq!(app.growth_base, GrowthBase::Last);
    let said = "the view is as at the start; growth is counted from “two” on";
    assert_eq!(app.note(), Some(said));
}

#[test]
fn playing_says_what_is_played_and_how_to_stop() {
    let mut f = marked();
    let mut app = app(&f.session);
    press(&mut app, &f.session, "p");
    assert!(app.playing());
    let said = app.note().unwrap().to_owned();
    assert!(said.starts_with("playing ") && said.ends_with("; p stops"), "{said}");
    press(&mut app, &f.session, "p");
    assert_eq!(app.note(), Some("playing has stopped; p goes on; \\ is now"));
    press(&mut app, &f.session, "p");
    // To the end in half a minute, however long it was.
    let mut seconds = 0;
    while app.playing() {
        app.update(Message::Passed(1_000_000_000), &f.session);
        seconds += 1;
    }
    assert!((15..=30).contains(&seconds), "{seconds}");
    assert!(!app.playing());
    assert_eq!(app.note(), Some("all was played: this is now"));
    f.pass(1.0);
    refresh(&mut app, &f);
    assert_eq!(app.question.when, When::Now);
    app.update(Message::Passed(1), &f.session);
    assert_eq!(app.question.when, When::Now, "nothing plays");
}

#[test]
fn where_nothing_can_be_played_it_is_said() {
    let session = Session::new();
    let mut app = app(&session);
    press(&mut app, &session, "p");
    assert!(!app.playing());
    assert_eq!(app.note(), Some("there is nothing to play yet: no moment but now is known"));
}

#[test]
fn a_larger_step_goes_ten_times_as_far() {
    let f = marked();
    let mut app = app(&f.session);
    for &place in keys::SCREENS.iter().chain(&[keys::Place::Log]) {
        for action in [TimeKey::MuchEarlier, TimeKey::MuchLater] {
            assert!(app.keymap().key_of(Action::Time(action), place).is_some(), "{place:?}");
        }
    }
    press(&mut app, &f.session, "(");
    let at = app.question.when;
    press(&mut app, &f.session, "\\,,,,,,,,,,");
    assert_eq!((app.question.when, matches!(at, When::At(_))), (at, true));
    press(&mut app, &f.session, ")");
    assert_eq!(app.question.when, When::Now);
}
