//! What keys do, without a screen.

mod exports;
mod filters;
mod moments;
mod resets;

use super::*;
use crate::query::Direction;
use crate::session::Session;
use crate::session::figures::Estimate;
use crate::session::fixture::Fixture;
use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};

/// `big` under `left` and `right`, `small` under `right`; exact figures.
fn fixture() -> Fixture {
    let mut f = Fixture::new(1);
    let left = f.stack(&["main", "left", "big"]);
    let right = f.stack(&["main", "right", "big"]);
    let small = f.stack(&["main", "right", "small"]);
    for (stack, size) in [(left, 600), (right, 300), (small, 100)] {
        let block = f.alloc(stack, size);
        f.promote(block);
    }
    f.pass(1.0);
    f
}

fn app(session: &Session) -> App {
    let mut app = App::new(Options { theme: Theme::mono(), ascii: false });
    app.update(Message::Resize(80, 24), session);
    app.update(Message::Refresh, session);
    app
}

fn press(app: &mut App, session: &Session, codes: &[KeyCode]) -> Vec<Effect> {
    codes
        .iter()
        .flat_map(|&c| app.update(Message::Key(KeyEvent::new(c, KeyModifiers::NONE)), session))
        .collect()
}

fn c(character: char) -> KeyCode {
    KeyCode::Char(character)
}

fn tree(app: &App) -> &Callers {
    match app.screen() {
        Screen::Callers(callers) => callers,
        other => panic!("the callers should be shown, not {other:?}"),
    }
}

/// The rows of the tree, indented.
fn names(app: &App) -> Vec<String> {
    tree(app).rows.iter().map(|r| format!("{}{}", " ".repeat(r.depth), r.label.function)).collect()
}

fn selected(app: &App) -> String {
    match app.screen() {
        Screen::Callsites(cursor) => {
            app.table().unwrap().rows[cursor.index()].label.function.to_string()
        }
        Screen::Callers(callers) => callers.rows[callers.cursor.index()].label.function.to_string(),
        Screen::Promotion(promotion) => promotion.selected().unwrap().label.function.to_string(),
        Screen::Leaks(leaks) => leaks.selected().unwrap().label.function.to_string(),
        Screen::Details(details) => details.label.function.to_string(),
        Screen::Flame(flame) => flame.selected().unwrap().label.function.to_string(),
        Screen::Threads(threads) => threads.selected().unwrap().name.clone(),
        Screen::Source(source) => source.line.to_string(),
        Screen::Targets(targets) => targets.selected().unwrap().name.clone(),
        Screen::Timeline(_)
        | Screen::Log(_)
        | Screen::Columns { .. }
        | Screen::Export(_)
        | Screen::Help { .. } => String::new(),
    }
}

#[test]
fn enter_drills_and_escape_comes_back() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!(names(&app), ["big", " left", "  main", " right", "  main"]);
    press(&mut app, &f.session, &[KeyCode::End, KeyCode::Enter]);
    assert_eq!(names(&app), ["main"]);
    let crumbs: Vec<&str> = tree(&app).crumbs.iter().map(|l| &*l.function).collect();
    assert_eq!(crumbs, ["big", "right", "main"], "every frame on the way is in the focus");
    press(&mut app, &f.session, &[KeyCode::Esc]);
    assert_eq!((names(&app).len(), selected(&app).as_str()), (5, "main"));
    press(&mut app, &f.session, &[KeyCode::Backspace]);
    assert_eq!(selected(&app), "big");
    press(&mut app, &f.session, &[KeyCode::Esc]);
    assert_eq!(app.screens().len(), 1, "there is nothing below the callsites");
}

#[test]
fn the_focus_itself_is_no_drill() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(app.screens().len(), 2);
}

#[test]
fn tab_goes_to_and_fro_and_keeps_the_drill() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c('2'), KeyCode::Down, KeyCode::Enter]);
    assert_eq!(tree(&app).focus.len(), 2);
    press(&mut app, &f.session, &[c('1')]);
    assert!(matches!(app.screen(), Screen::Callsites(_)));
    press(&mut app, &f.session, &[KeyCode::Tab]);
    assert_eq!(tree(&app).focus.len(), 2);
    press(&mut app, &f.session, &[KeyCode::BackTab, KeyCode::Enter]);
    assert_eq!(tree(&app).focus.len(), 1, "Enter drills anew");
    assert_eq!(app.screens().len(), 2);
}

#[test]
fn the_callers_are_come_back_to_whatever_was_opened_above_them() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c('2'), c('d')]);
    assert_eq!(app.screen().place(), keys::Place::Details);
    press(&mut app, &f.session, &[c('1'), c('2')]);
    assert_eq!(names(&app), ["big", " left", "  main", " right", "  main"]);
}

#[test]
fn screens_keep_their_cursor_when_they_are_left() {
    let f = fixture();
    let mut app = app(&f.session);
    let places = |app: &mut App, keys: &[KeyCode]| {
        keys.iter()
            .map(|&key| {
                press(app, &f.session, &[key]);
                app.screen().place()
            })
            .collect::<Vec<_>>()
    };
    press(&mut app, &f.session, &[KeyCode::Down]);
    assert_eq!(selected(&app), "small");
    press(&mut app, &f.session, &[c('5'), KeyCode::End]);
    assert_eq!(selected(&app), "small", "the fewest bytes born young");
    press(&mut app, &f.session, &[c('1'), KeyCode::Home]);
    assert_eq!(selected(&app), "big");
    press(&mut app, &f.session, &[c('5')]);
    assert_eq!(selected(&app), "small");
    // Callers lie on the screen that they were asked on.
    press(&mut app, &f.session, &[KeyCode::Enter]);
    assert_eq!(names(&app), ["small", " right", "  main"]);
    press(&mut app, &f.session, &[c('4'), KeyCode::End, c('2')]);
    assert_eq!(names(&app), ["small", " right", "  main"], "it is the one that is selected");
    press(&mut app, &f.session, &[c('1'), c('2')]);
    assert_eq!(names(&app)[0], "big", "another is");
    press(&mut app, &f.session, &[c('5'), KeyCode::Enter, KeyCode::Esc]);
    assert_eq!(selected(&app), "small");
    let all: Vec<keys::Place> = keys::TABS.iter().map(|tab| tab.place).collect();
    press(&mut app, &f.session, &[c('1')]);
    let mut forward = all.clone();
    forward.rotate_left(1);
    assert_eq!(places(&mut app, &vec![KeyCode::Tab; all.len()]), forward);
    let mut back = all;
    back.reverse();
    assert_eq!(places(&mut app, &vec![KeyCode::BackTab; back.len()]), back);
    assert_eq!(app.screens().len(), 1);
}

#[test]
fn a_paused_screen_asks_others_once() {
    let mut f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c('5'), c('1'), c(' ')]);
    let new = f.stack(&["main", "new"]);
    let block = f.alloc(new, 100);
    f.promote(block);
    f.pass(1.0);
    press(&mut app, &f.session, &[c('5')]);
    let rows = |app: &App| match app.screen() {
        Screen::Promotion(promotion) => promotion.answer.as_ref().unwrap().len,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows(&app), 3, "as of when it is first shown");
    let newer = f.stack(&["main", "newer"]);
    let block = f.alloc(newer, 100);
    f.promote(block);
    f.pass(1.0);
    press(&mut app, &f.session, &[c('1'), c('5')]);
    assert_eq!(rows(&app), 3, "and held");
    press(&mut app, &f.session, &[c(' ')]);
    assert_eq!(rows(&app), 4);
}

#[test]
fn branches_open_and_close() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::Down, KeyCode::Left]);
    assert_eq!(names(&app), ["big", " left", " right", "  main"]);
    assert_eq!(selected(&app), "left");
    app.update(Message::Refresh, &f.session);
    assert_eq!(names(&app).len(), 4, "what was closed stays closed");
    press(&mut app, &f.session, &[c('l'), c('l')]);
    assert_eq!((names(&app).len(), selected(&app).as_str()), (5, "main"));
    press(&mut app, &f.session, &[c('h')]);
    assert_eq!(selected(&app), "left", "left on a leaf goes to its parent");
}

#[test]
fn inverting_shows_what_is_called() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::End, c('k'), KeyCode::Enter, c('i')]);
    assert_eq!(tree(&app).direction, Direction::Callees);
    assert_eq!(names(&app)[0], "right");
    assert!(names(&app).contains(&" big".to_owned()));
}

#[test]
fn the_selection_follows_its_row() {
    let mut f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Down]);
    assert_eq!(selected(&app), "small");
    let small = f.stack(&["main", "right", "small"]);
    f.alloc(small, 5000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(selected(&app), "small");
    assert_eq!(app.table().unwrap().rows[0].label.function.as_ref(), "small");
    press(&mut app, &f.session, &[KeyCode::Down, c('g')]);
    assert_eq!(selected(&app), "small");
}

#[test]
fn the_selection_is_where_it_was_when_rows_are_grouped_so_again() {
    let f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Down]);
    assert_eq!(selected(&app), "small");
    press(&mut app, &f.session, &[c('t'), KeyCode::Down]);
    let function = selected(&app);
    press(&mut app, &f.session, &[c('t'); 5]);
    assert_eq!(selected(&app), "small", "after all groupings");
    press(&mut app, &f.session, &[c('t')]);
    assert_eq!(selected(&app), function);
    press(&mut app, &f.session, &[c('r'), c('t'), c('t'), c('t'), c('t'), c('t'), c('t')]);
    assert_eq!(selected(&app), "big", "what was reset was forgotten");
}

#[test]
fn a_held_order_holds_in_the_tree() {
    let mut f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, c('o')]);
    let before = names(&app);
    let right = f.stack(&["main", "right", "big"]);
    f.alloc(right, 5000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(names(&app), before);
    press(&mut app, &f.session, &[c('o')]);
    assert_eq!(names(&app)[1], " right");
}

#[test]
fn sorting_goes_through_the_columns_and_turns_round() {
    let f = fixture();
    let mut app = app(&f.session);
    let first = |app: &App| app.table().unwrap().rows[0].label.function.to_string();
    assert_eq!(first(&app), "big");
    press(&mut app, &f.session, &[c('S')]);
    assert_eq!(first(&app), "small");
    let mut seen = Vec::new();
    // Cum is of functions alone.
    for _ in 0..Column::ALL.len() - 1 {
        press(&mut app, &f.session, &[c('s')]);
        seen.push(app.question().sort);
    }
    assert_eq!(seen.last(), Some(&Column::InUseBytes), "round once");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), Column::ALL.len() - 1, "every column once");
    assert!(app.question().descending);
}

fn exported(effects: Vec<Effect>) -> crate::export::Request {
    match effects.into_iter().last() {
        Some(Effect::Export(job)) => job.shown.request,
        other => panic!("an export was expected, not {other:?}"),
    }
}

#[test]
fn an_export_is_what_is_shown() {
    let f = fixture();
    let mut app = app(&f.session);
    let sum = |r: &crate::export::Request| r.stacks.iter().map(|(_, w)| w).sum::<f64>();
    let whole = exported(press(&mut app, &f.session, &[c('e'), KeyCode::Enter]));
    assert_eq!((whole.stacks.len(), sum(&whole)), (3, 1000.0));
    assert_eq!(whole.total, app.table().unwrap().total.in_use_bytes);
    assert_eq!((whole.target.as_str(), whole.pid), ("orders-api", 4711));

    let esc = KeyCode::Esc;
    let keys = [esc, KeyCode::Enter, KeyCode::Down, KeyCode::Enter, c('m'), c('e'), KeyCode::Enter];
    let focused = exported(press(&mut app, &f.session, &keys));
    press(&mut app, &f.session, &[esc]);
    assert_eq!(focused.metric, Metric::InUseObjects);
    assert_eq!((focused.stacks.len(), sum(&focused)), (1, 1.0));
    assert_eq!(focused.total, tree(&app).tree.as_ref().unwrap().cum);
    assert_eq!(focused.focus.len(), 2);
}

#[test]
fn an_exports_total_is_the_sum_of_its_stacks() {
    let mut f = fixture();
    // The callsite calls on: its callers are of its own blocks, its callees are not.
    let deeper = f.stack(&["main", "left", "big", "deeper"]);
    f.alloc(deeper, 7);
    f.pass(1.0);
    for keys in [
        vec![c('e'), KeyCode::Enter],
        vec![KeyCode::Enter, c('e'), KeyCode::Enter],
        vec![KeyCode::Enter, c('i'), c('e'), KeyCode::Enter],
    ] {
        let mut app = app(&f.session);
        let request = exported(press(&mut app, &f.session, &keys));
        let value = request.stacks.iter().map(|(_, w)| w).sum::<f64>();
        assert_eq!(request.total, Estimate::Exact { value });
    }
}

#[test]
fn a_paused_screen_exports_what_it_shows() {
    let mut f = fixture();
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[c(' ')]);
    let more = f.stack(&["main", "later"]);
    f.alloc(more, 5000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    let held = exported(press(&mut app, &f.session, &[c('e'), KeyCode::Enter]));
    assert_eq!(held.total, app.table().unwrap().total.in_use_bytes);
    assert_eq!(held.stacks.len(), 3);
    press(&mut app, &f.session, &[KeyCode::Esc, c(' ')]);
    assert_eq!(exported(press(&mut app, &f.session, &[c('e'), KeyCode::Enter])).stacks.len(), 4);
}

#[test]
fn exports_and_notes_are_said_until_the_next_key() {
    let f = fixture();
    let mut app = app(&f.session);
    let written = |left_out| Message::Exported(1, Ok(("a.svg".into(), left_out)));
    app.update(written(Vec::new()), &f.session);
    assert_eq!(app.sentence().as_deref(), Some("written: a.svg"));
    app.update(written(vec!["x".into(), "y".into()]), &f.session);
    assert_eq!(app.sentence().as_deref(), Some("written: a.svg; left out: x; y"));
    app.update(Message::Exported(1, Err("no room".into())), &f.session);
    assert_eq!(app.sentence().as_deref(), Some("export failed: no room"));
    press(&mut app, &f.session, &[KeyCode::Down]);
    assert_eq!(app.sentence(), None);
}

#[test]
fn a_row_is_copied_as_text() {
    let f = fixture();
    let mut app = app(&f.session);
    let effects = press(&mut app, &f.session, &[c('y')]);
    let [Effect::Copy(text)] = &effects[..] else { panic!("{effects:?}") };
    assert!(text.starts_with("big\tin use 900 B\tobjects 2\t"), "{text}");
    let effects = press(&mut app, &f.session, &[KeyCode::Enter, c('y')]);
    let expected = "big\tcum 900 B\tflat 900 B\tin use, bytes";
    assert_eq!(effects, [Effect::Copy(expected.into())]);
}

#[test]
fn quitting_and_suspending() {
    let f = fixture();
    let mut app = app(&f.session);
    assert_eq!(press(&mut app, &f.session, &[c('q')]), [Effect::Quit]);
    let control = |character, kind| {
        Message::Key(KeyEvent::new_with_kind(c(character), KeyModifiers::CONTROL, kind))
    };
    assert_eq!(app.update(control('z', KeyEventKind::Press), &f.session), [Effect::Suspend]);
    assert_eq!(app.update(control('c', KeyEventKind::Release), &f.session), []);
    press(&mut app, &f.session, &[c('/'), c('q')]);
    assert_eq!(
        app.prompt().map(|(_, typed, at)| (typed, at)),
        Some(("q", 1)),
        "while typing, letters are letters"
    );
    assert_eq!(app.update(control('c', KeyEventKind::Press), &f.session), [Effect::Quit]);
}

#[test]
fn a_filter_selects_while_it_is_typed() {
    let f = fixture();
    let mut app = app(&f.session);
    let rows = |app: &App| app.table().unwrap().rows.len();
    press(&mut app, &f.session, &[c('/'), c('l'), c('e'), c('f'), c('t')]);
    assert_eq!((rows(&app), app.question().filter.as_str()), (1, "left"));
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(names(&app), ["big", " left", "  main"], "it holds in the tree");
    press(&mut app, &f.session, &[KeyCode::Esc, c('/'), c('x'), KeyCode::Esc]);
    assert_eq!(app.question().filter, "left", "Esc takes back what was typed");
    press(&mut app, &f.session, &[KeyCode::Esc]);
    assert_eq!((rows(&app), app.question().filter.as_str()), (2, ""));
}

#[test]
fn pasted_text_is_bounded_and_clean() {
    let f = fixture();
    let mut app = app(&f.session);
    app.update(Message::Paste("nowhere".into()), &f.session);
    assert_eq!(app.question().filter, "");
    press(&mut app, &f.session, &[c('/')]);
    app.update(Message::Paste(format!("a\n\x1b{}", "b".repeat(10_000))), &f.session);
    app.update(Message::Paste("c".repeat(10_000)), &f.session);
    let filter = &app.question().filter;
    assert!(filter.starts_with("a bb") && filter.chars().count() <= 200, "{}", filter.len());
    press(&mut app, &f.session, &[KeyCode::Esc, c('/')]);
    app.update(Message::Paste("left\r\nsize<1\tdepth>2\n".into()), &f.session);
    assert_eq!(app.prompt().unwrap().1, "left size<1 depth>2", "words stay apart");
}

#[test]
fn reset_is_the_start() {
    let f = fixture();
    let mut app = app(&f.session);
    let keys = [c('s'), c('S'), c('m'), c('o'), c(' '), c('l'), c('/'), c('x'), KeyCode::Enter];
    press(&mut app, &f.session, &keys);
    press(&mut app, &f.session, &[c('r')]);
    assert_eq!(app.question(), &Question::default());
    assert_eq!(app.metric(), Metric::InUseBytes);
    assert!(!app.paused() && !app.order_held());
    assert_eq!(app.columns().1, 0);
    assert_eq!(app.table().unwrap().rows.len(), 2);
}

/// 300 callsites, the largest first: `site000` …
fn many() -> Fixture {
    let mut f = Fixture::new(1);
    for i in 0..300 {
        let stack = f.stack(&["main", &format!("site{i:03}")]);
        f.alloc(stack, 100_000 - i);
    }
    f.pass(1.0);
    f
}

#[test]
fn of_a_long_table_what_is_near_is_asked_for() {
    let mut f = many();
    let mut app = app(&f.session);
    let shown = |app: &App| {
        let Screen::Callsites(cursor) = app.screen() else { panic!("{:?}", app.screen()) };
        let page = usize::from(app.rooms().body);
        let table = app.table().unwrap();
        assert!(table.covers(&(cursor.offset()..cursor.offset() + page)));
        assert!(table.rows.len() < 150 && table.len == 300, "{}", table.rows.len());
        app.selected_row().unwrap().label.function.to_string()
    };
    assert_eq!(shown(&app), "site000");
    press(&mut app, &f.session, &[KeyCode::End]);
    assert_eq!(shown(&app), "site299");
    press(&mut app, &f.session, &[c('k')]);
    assert_eq!(shown(&app), "site298");
    // It goes to the top of the table, and the selection with it.
    let stack = f.stack(&["main", "site298"]);
    f.alloc(stack, 1_000_000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    assert_eq!(shown(&app), "site298");
    press(&mut app, &f.session, &[c('j')]);
    assert_eq!(shown(&app), "site000");
    for _ in 0..12 {
        press(&mut app, &f.session, &[KeyCode::PageDown]);
        shown(&app);
    }
    let here = shown(&app);
    app.update(Message::Resize(80, 60), &f.session);
    assert_eq!(shown(&app), here);
    press(&mut app, &f.session, &[c('S')]);
    assert_eq!(shown(&app), here, "the selection follows when the order turns");
    press(&mut app, &f.session, &[c('g')]);
    assert_eq!(shown(&app), "site299");
}

#[test]
fn a_paused_screen_holds_what_is_not_seen() {
    let mut f = many();
    // Callers of so little that their branch stays closed.
    let path = |caller| ["main", "rare", caller, "site007"];
    let rare = f.stack(&path("before"));
    f.alloc(rare, 50);
    f.pass(1.0);
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, c(' ')]);
    assert_eq!(names(&app), ["site007", " main", " before"]);
    for (caller, size) in [("before", 7), ("after", 300_000)] {
        let stack = f.stack(&path(caller));
        f.alloc(stack, size);
    }
    let grown = f.stack(&["main", "site299"]);
    f.alloc(grown, 400_000);
    f.pass(1.0);
    app.update(Message::Refresh, &f.session);
    press(&mut app, &f.session, &[KeyCode::End, c('l'), c('l')]);
    assert_eq!(names(&app), ["site007", " main", " before", "  rare"]);
    let rare = &tree(&app).rows[3];
    assert_eq!(rare.cum, Estimate::Exact { value: 50.0 });
    press(&mut app, &f.session, &[KeyCode::Esc, KeyCode::End]);
    assert_eq!(selected(&app), "site299", "the table under the tree was held with it");
    let row = app.selected_row().unwrap();
    let value = 100_000.0 - 299.0;
    assert_eq!(row.figures.in_use_bytes, Estimate::Exact { value });
    press(&mut app, &f.session, &[c(' ')]);
    assert_eq!(selected(&app), "site299");
    assert_ne!(app.selected_row().unwrap().figures.in_use_bytes, Estimate::Exact { value });
}

#[test]
fn a_branch_that_is_opened_shows_what_is_below() {
    let mut f = fixture();
    let rare = f.stack(&["main", "deep", "rare", "big"]);
    f.alloc(rare, 20);
    f.pass(1.0);
    let mut app = app(&f.session);
    press(&mut app, &f.session, &[KeyCode::Enter, KeyCode::End, c('l')]);
    assert_eq!(names(&app), ["big", " left", "  main", " right", "  main", " rare", "  deep"]);
    assert_eq!(selected(&app), "rare");
    press(&mut app, &f.session, &[c('l'), c('l')]);
    assert_eq!((names(&app)[7].as_str(), selected(&app).as_str()), ("   main", "deep"));
}

#[test]
fn silence_of_the_target_is_told_unless_the_screen_is_paused() {
    let f = fixture();
    let mut app = app(&f.session);
    app.take_dirty();
    app.update(Message::Silence(Some(3)), &f.session);
    assert!(app.take_dirty());
    let sentence = app.sentence().unwrap();
    assert!(sentence.starts_with("no news for 3 s: the target may be stopped"), "{sentence}");
    app.update(Message::Silence(Some(3)), &f.session);
    assert!(!app.take_dirty(), "nothing changed");
    app.update(Message::Silence(None), &f.session);
    assert!(app.take_dirty());
    assert_eq!(app.sentence(), None);
    press(&mut app, &f.session, &[c(' ')]);
    app.take_dirty();
    app.update(Message::Silence(Some(9)), &f.session);
    assert!(!app.take_dirty(), "it is paused");
    press(&mut app, &f.session, &[c(' ')]);
    assert!(app.take_dirty());
    assert!(app.sentence().unwrap().contains("for 9 s"));
}
