//! The export menu: what can be written of what is shown, and where to.
//!
//! What is written is what was shown when the menu was opened, whatever comes meanwhile.

use std::path::PathBuf;

use super::cursor::Cursor;
use super::{App, Effect, Screen};
use crate::export::{Format, Request, Shown};
use crate::query::{Direction, NodeKey};
use crate::report::{Asked, Report, View, views};
use crate::session::Session;

/// See the module.
#[derive(Debug, Clone)]
pub struct Menu {
    /// The selected format.
    pub cursor: Cursor,
    /// What is written.
    pub shown: Box<Shown>,
    /// The file for each format, once it is known.
    pub paths: Vec<PathBuf>,
}

impl Menu {
    /// What can be written.
    #[must_use]
    pub fn formats(&self) -> Vec<Format> {
        self.shown.formats()
    }

    /// The selected one.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.formats().get(self.cursor.index()).copied()
    }

    /// Where it goes.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        self.paths.get(self.cursor.index())
    }
}

impl App {
    /// Opens the menu, or closes it.
    pub(super) fn open_export(&mut self, session: &Session) -> Vec<Effect> {
        if self.close_export() {
            return Vec::new();
        }
        let shown = if let Some(held) = &self.export {
            held.clone()
        } else {
            // What is exported is what is seen.
            self.look(session);
            Box::new(self.exported(session))
        };
        let propose = Effect::Propose(shown.clone());
        let menu = Menu { cursor: Cursor::default(), shown, paths: Vec::new() };
        self.stack.push(Screen::Export(menu));
        vec![propose]
    }

    pub(super) fn close_export(&mut self) -> bool {
        let open = matches!(self.screen(), Screen::Export(_));
        if open {
            self.stack.pop();
        }
        open
    }

    /// Writes what is selected.
    pub(super) fn write_export(&mut self) -> Vec<Effect> {
        let Screen::Export(menu) = self.screen() else { return Vec::new() };
        let Some(format) = menu.format() else { return Vec::new() };
        let shown = menu.shown.clone();
        self.close_export();
        self.say(format!("writing {}…", format.says()));
        vec![Effect::Export(shown, format)]
    }

    /// Where files would go.
    pub(super) fn proposed(&mut self, paths: Vec<PathBuf>) {
        if let Some(Screen::Export(menu)) = self.stack.last_mut() {
            menu.paths = paths;
            self.dirty = true;
        }
    }

    /// What is shown, for an export.
    pub(super) fn exported(&self, session: &Session) -> Shown {
        Shown {
            request: self.request(session),
            table: self.tabled(session),
            recording: self.path.clone(),
        }
    }

    /// What is shown as a table, as `heaptop report` prints it; none where there is none.
    fn tabled(&self, session: &Session) -> Option<Report> {
        let mut question = self.question.clone();
        question.growth_from_ns = self.growth_base.moment(session).map(|(at, _)| at);
        let asked = |view| Asked {
            view,
            metric: self.metric,
            top: usize::MAX,
            focus: Vec::new(),
            filter: question.filter.clone(),
            when: question.when,
            group: question.group,
            limit: self.limit,
            memory: self.system,
        };
        match self.shown() {
            Screen::Callsites(_) => {
                Some(views::as_shown(session, &asked(View::Callsites), &question))
            }
            Screen::Callers(c) => {
                views::through(session, &asked(View::Callers), &c.focus, c.direction)
            }
            Screen::Promotion(_) => views::report(session, &asked(View::Promotion)).ok(),
            Screen::Threads(_) => views::report(session, &asked(View::Threads)).ok(),
            Screen::Leaks(_) => views::report(session, &asked(View::Leaks)).ok(),
            _ => None,
        }
    }

    fn request(&self, session: &Session) -> Request {
        if let Screen::Flame(flame) = self.shown() {
            return Request::of_flame(session, &self.flame_question(flame, session), !flame.upward);
        }
        let (focus, direction, crumbs): (&[NodeKey], _, _) = match self.shown() {
            Screen::Callers(c) => (&c.focus, c.direction, c.crumbs.clone()),
            _ => (&[], Direction::Callers, Vec::new()),
        };
        let (metric, question) = (self.metric, &self.question);
        let way = (focus, direction);
        Request::of(session, question.when, way, metric, &question.filter, crumbs)
    }
}

#[cfg(test)]
mod tests {
    use crate::app::{App, Effect, Message, Options, Screen};
    use crate::export::Format;
    use crate::session::Session;
    use crate::session::fixture::Fixture;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use std::path::PathBuf;

    fn target() -> Fixture {
        let mut f = Fixture::new(1);
        for (name, size) in [("hoard", 600), ("trifle", 100)] {
            let stack = f.stack(&["main", name]);
            let block = f.alloc(stack, size);
            f.promote(block);
        }
        f.pass(1.0);
        f
    }

    fn press(app: &mut App, session: &Session, codes: &[KeyCode]) -> Vec<Effect> {
        let key = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
        codes.iter().flat_map(|&code| app.update(key(code), session)).collect()
    }

    fn started(session: &Session) -> App {
        let mut app = App::new(Options::default());
        app.update(Message::Resize(120, 40), session);
        app.update(Message::Refresh, session);
        app
    }

    const E: KeyCode = KeyCode::Char('e');

    /// Each format of a screen, as it is written.
    fn written(f: &Fixture, keys: &[KeyCode]) -> Vec<(Format, String)> {
        let mut app = started(&f.session);
        press(&mut app, &f.session, keys);
        press(&mut app, &f.session, &[E]);
        let Screen::Export(menu) = app.screen() else { panic!("{:?}", app.screen()) };
        let formats = menu.formats();
        let mut written = Vec::new();
        for at in 0..formats.len() {
            press(&mut app, &f.session, &vec![KeyCode::Down; at]);
            let effects = press(&mut app, &f.session, &[KeyCode::Enter]);
            let [Effect::Export(shown, format)] = &effects[..] else { panic!("{effects:?}") };
            written.push((*format, String::from_utf8(shown.bytes(*format).unwrap()).unwrap()));
            assert!(!matches!(app.screen(), Screen::Export(_)), "what is written closes it");
            press(&mut app, &f.session, &[E]);
        }
        assert_eq!(written.iter().map(|(format, _)| *format).collect::<Vec<_>>(), formats);
        written
    }

    #[test]
    fn all_formats_say_what_is_shown() {
        let f = target();
        let callsites = written(&f, &[KeyCode::Char('S')]);
        assert_eq!(callsites.len(), 5);
        for (format, text) in &callsites {
            assert!(text.contains("hoard") && text.contains("trifle"), "{format:?}: {text}");
        }
        let of = |wanted| callsites.iter().find(|(format, _)| *format == wanted).unwrap().1.clone();
        assert!(of(Format::Folded).contains("main;hoard 600"), "{}", of(Format::Folded));
        let csv = of(Format::Csv);
        let at = |name| csv.find(name).unwrap();
        assert!(at("trifle") < at("hoard"), "in the order of the screen: {csv}");
        assert!(of(Format::Json).contains("\"in_use_bytes\""));
        let callers = written(&f, &[KeyCode::Enter]);
        assert_eq!(callers.len(), 5);
        for (format, text) in &callers {
            assert!(text.contains("hoard") && !text.contains("trifle"), "{format:?}: {text}");
        }
        let filtered: Vec<KeyCode> = "/trifle".chars().map(KeyCode::Char).collect();
        for (format, text) in written(&f, &[&filtered[..], &[KeyCode::Enter]].concat()) {
            assert!(text.contains("trifle") && !text.contains("hoard"), "{format:?}: {text}");
        }
        for (screen, formats) in [('3', 2), ('4', 2), ('5', 5), ('6', 5), ('7', 5), ('8', 2)] {
            assert_eq!(written(&f, &[KeyCode::Char(screen)]).len(), formats, "{screen}");
        }
    }

    #[test]
    fn a_trace_can_be_made_of_what_is_read_from_a_file() {
        let f = target();
        let mut app = App::of_file(Options::default()).at("/r/today.heaptop".into());
        app.update(Message::Resize(120, 40), &f.session);
        app.update(Message::Refresh, &f.session);
        press(&mut app, &f.session, &[KeyCode::Char('4'), E, KeyCode::End]);
        let effects = press(&mut app, &f.session, &[KeyCode::Enter]);
        let [Effect::Export(shown, Format::Ctf)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(shown.recording.as_deref(), Some("/r/today.heaptop".as_ref()));
        assert_eq!(shown.file_name(Format::Ctf, 1), "heaptop-orders-api-4711-trace-1.ctf");
        let live = written(&f, &[]);
        assert!(live.iter().all(|(format, _)| *format != Format::Ctf), "of a target there is none");
    }

    #[test]
    fn what_is_written_is_what_was_shown_when_it_opened() {
        let mut f = target();
        let mut app = started(&f.session);
        press(&mut app, &f.session, &[E]);
        let later = f.stack(&["main", "later"]);
        f.alloc(later, 5000);
        f.pass(1.0);
        app.update(Message::Refresh, &f.session);
        let effects = press(&mut app, &f.session, &[KeyCode::Enter]);
        let [Effect::Export(shown, Format::Svg)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(shown.request.stacks.len(), 2);
        assert_eq!(shown.table.as_ref().unwrap().rows.len(), 2);
    }

    #[test]
    fn the_menu_says_where_and_esc_writes_nothing() {
        let f = target();
        let mut app = started(&f.session);
        let effects = press(&mut app, &f.session, &[E]);
        let [Effect::Propose(shown)] = &effects[..] else { panic!("{effects:?}") };
        let paths: Vec<PathBuf> =
            shown.formats().iter().map(|format| shown.file_name(*format, 1).into()).collect();
        app.update(Message::Proposed(paths.clone()), &f.session);
        press(&mut app, &f.session, &[KeyCode::Down]);
        let Screen::Export(menu) = app.screen() else { panic!("{:?}", app.screen()) };
        assert_eq!((menu.format(), menu.path()), (Some(Format::Folded), Some(&paths[1])));
        assert_eq!(press(&mut app, &f.session, &[KeyCode::Esc]), []);
        assert!(matches!(app.screen(), Screen::Callsites(_)));
        assert_eq!(press(&mut app, &f.session, &[E, E]).len(), 1, "the same key closes it");
        assert!(matches!(app.screen(), Screen::Callsites(_)));
        press(&mut app, &f.session, &[E, KeyCode::Char('5')]);
        assert!(matches!(app.screen(), Screen::Promotion(_)), "other screens close it");
        app.update(Message::Proposed(paths), &f.session);
        assert!(matches!(app.screen(), Screen::Promotion(_)), "an answer that comes late");
    }
}
