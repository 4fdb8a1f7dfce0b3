//! The export menu: where its user wants to have what is shown.

use super::*;
use crate::app::export::Job;
use crate::app::testing::press;
use crate::export::{Destination, Format, Names, Proposal, propose};
use std::path::Path;

/// What the terminal loop answers, with a directory for the working one.
fn answer(app: &mut App, session: &Session, working: &Path, effects: Vec<Effect>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for effect in effects {
        match effect {
            Effect::Propose(shown, to) => {
                let names = match to.text.as_str() {
                    "" => Ok(Names::within(working)),
                    _ => to.names(),
                };
                let proposed = names.and_then(|names| propose(&shown, &names));
                app.update(Message::Proposed(to, proposed), session);
            }
            Effect::Export(job) => jobs.push(job),
            other => panic!("{other:?}"),
        }
    }
    jobs
}

struct Menu {
    f: Fixture,
    app: App,
    working: tempfile::TempDir,
}

impl Menu {
    fn open() -> Self {
        let f = fixture();
        let app = app(&f.session);
        let mut menu = Self { f, app, working: tempfile::tempdir().unwrap() };
        menu.press("e");
        menu
    }

    fn press(&mut self, keys: &str) -> Vec<Job> {
        let effects = press(&mut self.app, &self.f.session, keys);
        answer(&mut self.app, &self.f.session, self.working.path(), effects)
    }

    /// Types another path in place of the one that is there, which is as long at most.
    fn instead(&mut self, path: &str) -> Vec<Job> {
        self.press("p");
        let typed = self.app.prompt().unwrap().1.chars().count();
        for _ in 0..typed {
            self.app.update(key(KeyCode::Backspace), &self.f.session);
        }
        self.press(path)
    }

    fn menu(&self) -> &export::Menu {
        match self.app.screen() {
            Screen::Export(menu) => menu,
            other => panic!("{other:?}"),
        }
    }

    fn path(&self) -> &Path {
        &self.menu().path().unwrap().path
    }

    fn write(&mut self, job: &Job) {
        let written = job.to.names();
        let written = written.and_then(|names| crate::export::run(&job.shown, job.format, &names));
        let written = written.map(|path| (path, Vec::new()));
        self.app.update(Message::Exported(job.number, written), &self.f.session);
    }
}

fn key(code: KeyCode) -> Message {
    Message::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn the_path_is_typed_and_what_is_written_goes_there() {
    let mut menu = Menu::open();
    let elsewhere = tempfile::tempdir().unwrap();
    let wanted = elsewhere.path().join("growth.svg");
    assert!(menu.path().starts_with(menu.working.path()));
    menu.instead(wanted.to_str().unwrap());
    assert!(menu.path().starts_with(menu.working.path()), "not before Enter");
    menu.press("⏎");
    assert_eq!(menu.app.prompt(), None);
    assert_eq!(menu.path(), wanted);
    menu.press("↓");
    assert_eq!(menu.path(), wanted.with_extension("folded"), "each format has its ending");
    menu.app.update(key(KeyCode::Up), &menu.f.session);
    let [job] = &menu.press("⏎")[..] else { panic!() };
    assert!(!wanted.exists());
    menu.write(job);
    assert!(std::fs::read_to_string(&wanted).unwrap().contains("<svg"));
    assert_eq!(menu.app.note(), Some(format!("written: {}", wanted.display()).as_str()));
    assert!(matches!(menu.app.screen(), Screen::Callsites(_)), "then it is closed");
    // The next goes there too, and what was written stays.
    menu.press("e");
    assert_eq!(menu.path().parent(), Some(elsewhere.path()));
    assert_ne!(menu.path(), wanted);
    menu.instead(wanted.to_str().unwrap());
    menu.press("⏎");
    assert_eq!(menu.path(), elsewhere.path().join("growth-2.svg"));
    assert_eq!(menu.menu().path().unwrap().taken.as_deref(), Some("growth.svg"));
}

#[test]
fn a_path_that_is_none_is_said_and_stays_to_be_mended() {
    let mut menu = Menu::open();
    let before = menu.menu().path().cloned();
    menu.instead("/nonexistent/growth.svg⏎");
    assert_eq!(menu.app.note(), Some("there is no directory /nonexistent"));
    let (kind, typed, _) = menu.app.prompt().unwrap();
    assert!(matches!(kind, Typed::Path(_)) && typed == "/nonexistent/growth.svg");
    menu.press("⎋");
    assert_eq!(menu.app.prompt(), None);
    assert_eq!(menu.menu().path().cloned(), before, "Esc leaves it as it was");
    let [job] = &menu.press("⏎")[..] else { panic!() };
    assert_eq!(job.to, Destination::default());
    menu.press("⎋");
    assert!(matches!(menu.app.screen(), Screen::Callsites(_)));
    // Where nothing can go to begin with, it is said in place of the path.
    let settings = Settings { export_directory: "/nonexistent".into(), ..Settings::default() };
    let mut menu = Menu { app: menu.app.configured(settings), ..menu };
    menu.press("e");
    assert_eq!(menu.menu().path(), None);
    assert_eq!(menu.menu().paths, Some(Err("there is no directory /nonexistent".into())));
    menu.press("p");
    assert_eq!(menu.app.prompt().unwrap().1, "/nonexistent/");
    let working = menu.working.path().to_str().unwrap().to_owned();
    menu.press("⎋");
    menu.instead(&format!("{working}⏎"));
    assert!(menu.path().starts_with(&working) && menu.app.prompt().is_none());
}

/// Another path is no remedy for it.
#[test]
fn nothing_is_not_exported() {
    let mut menu = Menu::open();
    menu.press("⎋/nobody⏎e");
    assert_eq!(menu.press("⏎"), []);
    let said = "there is nothing to export: no sample in this metric, focus and filter";
    assert_eq!(menu.app.note(), Some(said));
    assert_eq!(menu.menu().writing, None);
}

#[test]
fn what_cannot_be_written_is_not_lost() {
    let mut menu = Menu::open();
    let [job] = &menu.press("⏎")[..] else { panic!() };
    assert_eq!(menu.press("⏎"), [], "once");
    assert_eq!(menu.press("p"), []);
    assert_eq!(menu.app.prompt(), None, "it is on its way");
    let failed = |number| Message::Exported(number, Err("the disk is full".into()));
    menu.app.update(failed(job.number), &menu.f.session);
    let said = "export failed: the disk is full; p chooses another path";
    assert_eq!(menu.app.note(), Some(said));
    let [again] = &menu.press("⏎")[..] else { panic!() };
    assert_eq!((&again.shown, again.format), (&job.shown, Format::Svg));
    assert_ne!(again.number, job.number);
    // A menu that was opened meanwhile is none of theirs.
    menu.press("⎋e");
    let done = Message::Exported(again.number, Ok(("a.svg".into(), Vec::new())));
    menu.app.update(done, &menu.f.session);
    assert_eq!(menu.app.note(), Some("written: a.svg"));
    assert_eq!(menu.menu().writing, None);
    menu.app.update(failed(again.number), &menu.f.session);
    assert_eq!(menu.app.note(), Some("export failed: the disk is full"));
}

#[test]
fn a_menu_that_is_left_takes_no_late_answers() {
    let f = fixture();
    let mut app = app(&f.session);
    let effects = press(&mut app, &f.session, "e");
    let [Effect::Propose(shown, to)] = &effects[..] else { panic!("{effects:?}") };
    let proposal = Proposal { path: "/w/a.svg".into(), taken: None };
    let proposed = || Ok(vec![proposal.clone(); shown.formats().len()]);
    press(&mut app, &f.session, "p");
    // Typed on meanwhile: what was asked for before does not close the line.
    press(&mut app, &f.session, "/");
    app.update(Message::Proposed(to.clone(), proposed()), &f.session);
    assert_eq!(app.prompt().map(|(_, typed, _)| typed), Some("/"));
    app.update(Message::Proposed(to.clone(), Err("no".into())), &f.session);
    assert_eq!(app.prompt().map(|(_, typed, _)| typed), Some("/"));
    press(&mut app, &f.session, "⎋⎋");
    assert!(matches!(app.screen(), Screen::Callsites(_)));
    app.update(Message::Proposed(to.clone(), proposed()), &f.session);
    assert!(matches!(app.screen(), Screen::Callsites(_)));
}

#[test]
fn the_line_takes_long_paths_and_is_moved_along() {
    let mut menu = Menu::open();
    let long = "/".to_owned() + &"x".repeat(300);
    menu.instead(&long);
    assert_eq!(menu.app.prompt().unwrap().1, long);
    menu.app.update(key(KeyCode::Home), &menu.f.session);
    menu.app.update(Message::Paste("/tmp\n".into()), &menu.f.session);
    let (_, typed, at) = menu.app.prompt().unwrap();
    assert_eq!((typed, at), (format!("/tmp{long}").as_str(), 4));
}
