//! The export menu: what can be written of what is shown, and where to.
//!
//! What is written is what was shown when the menu was opened, whatever comes meanwhile. The
//! menu stays until it is written: what cannot be can go elsewhere.

use std::path::PathBuf;

use tui_input::Input;

use super::cursor::Cursor;
use super::keys::Action;
use super::{App, Effect, Prompt, Screen, Typed};
use crate::export::{Destination, Format, Proposal, Request, Shown};
use crate::query::{self, Direction, NodeKey};
use crate::report::{Asked, Report, View, leaks, views};
use crate::session::Session;

/// See the module.
#[derive(Debug, Clone)]
pub struct Menu {
    /// The selected format.
    pub cursor: Cursor,
    /// What is written.
    pub shown: Box<Shown>,
    /// Where to.
    pub to: Destination,
    /// The file for each format, once it is known, or why there can be none.
    pub paths: Option<Result<Vec<Proposal>, String>>,
    /// The number of the export that is being written.
    pub writing: Option<u64>,
}

/// An export to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What,
    pub shown: Box<Shown>,
    /// as what,
    pub format: Format,
    /// and where to.
    pub to: Destination,
    /// Its number, for [`Message::Exported`](super::Message::Exported).
    pub number: u64,
}

/// Characters of a path that is typed: the system takes no longer ones.
pub(super) const LONGEST_PATH: usize = 4096;

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
    pub fn path(&self) -> Option<&Proposal> {
        self.paths.as_ref()?.as_ref().ok()?.get(self.cursor.index())
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
        let to = Destination::directory(&self.directory);
        let propose = Effect::Propose(shown.clone(), to.clone());
        let menu = Menu { cursor: Cursor::default(), shown, to, paths: None, writing: None };
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

    fn menu(&mut self) -> Option<&mut Menu> {
        self.stack.iter_mut().rev().find_map(|screen| match screen {
            Screen::Export(menu) => Some(menu),
            _ => None,
        })
    }

    /// Writes what is selected.
    pub(super) fn write_export(&mut self) -> Vec<Effect> {
        let number = self.exports + 1;
        let Some(menu) = self.menu() else { return Vec::new() };
        let Some(format) = menu.format() else { return Vec::new() };
        if menu.writing.is_some() {
            self.say("it is being written: a moment".into());
            return Vec::new();
        }
        // No other path helps.
        if let Err(why) = menu.shown.check(format) {
            self.say(why);
            return Vec::new();
        }
        menu.writing = Some(number);
        let (shown, to) = (menu.shown.clone(), menu.to.clone());
        self.exports = number;
        self.say(format!("writing {}…", format.says()));
        vec![Effect::Export(Job { shown, format, to, number })]
    }

    /// An export is over. What was not written is still there.
    pub(super) fn exported_is(
        &mut self,
        number: u64,
        written: Result<(PathBuf, Vec<String>), String>,
    ) {
        let is = |screen: &Screen| matches!(screen, Screen::Export(menu) if menu.writing == Some(number));
        match written {
            Ok((path, left_out)) => {
                self.stack.retain(|screen| !is(screen));
                let left_out = match &left_out[..] {
                    [] => String::new(),
                    some => format!("; left out: {}", some.join("; ")),
                };
                self.say(format!("written: {}{left_out}", path.display()));
            }
            Err(why) => {
                let said = format!("export failed: {why}");
                match self.menu().filter(|menu| menu.writing == Some(number)) {
                    Some(menu) => {
                        menu.writing = None;
                        self.say(self.with_key(&said, Action::Path, "chooses another path"));
                    }
                    None => self.say(said),
                }
            }
        }
    }

    /// Starts typing where it goes.
    pub(super) fn type_path(&mut self) {
        let Some(menu) = self.menu() else { return };
        if menu.writing.is_some() {
            return self.say("it is being written: a moment".into());
        }
        // Where nothing can go: what was wrong.
        let before = menu.path().map(|proposal| proposal.path.display().to_string());
        let before = before.unwrap_or_else(|| menu.to.text.clone());
        let input = Input::new(before.clone());
        self.prompt = Some(Prompt { input, kind: Typed::Path(before) });
    }

    /// Enter: asks whether it can go there. What was typed stays until then.
    pub(super) fn path_typed(&mut self) -> Vec<Effect> {
        let Some(Prompt { input, kind: Typed::Path(before) }) = &self.prompt else {
            return Vec::new();
        };
        let (typed, changed) = (input.value().to_owned(), input.value() != before);
        let Some(menu) = self.menu().filter(|menu| changed || menu.path().is_none()) else {
            self.prompt = None;
            return Vec::new();
        };
        let to = Destination { text: typed, of: menu.format() };
        vec![Effect::Propose(menu.shown.clone(), to)]
    }

    /// Where files would go.
    pub(super) fn proposed(&mut self, to: Destination, proposed: Result<Vec<Proposal>, String>) {
        let typed = match &self.prompt {
            Some(Prompt { input, kind: Typed::Path(_) }) => Some(input.value() == to.text),
            _ => None,
        };
        let Some(menu) = self.menu() else { return };
        match proposed {
            Err(why) if typed.is_some() => return self.say(why),
            Ok(_) => menu.to = to,
            Err(_) => {}
        }
        menu.paths = Some(proposed);
        let parent = menu.path().and_then(|proposal| proposal.path.parent()?.to_str());
        let parent = parent.unwrap_or_default().to_owned();
        self.dirty = true;
        if typed == Some(true) {
            // The next export is likely to go there too.
            self.directory = parent;
            self.prompt = None;
        }
    }

    /// What is shown, for an export.
    pub(super) fn exported(&self, session: &Session) -> Shown {
        Shown {
            request: self.request(session),
            table: self.tabled(session),
            recording: self.path.clone(),
            columns: self.size.0.into(),
        }
    }

    /// What is shown as a table, as `heaptop report` prints it; none where there is none.
    fn tabled(&self, session: &Session) -> Option<Report> {
        let mut question = self.question.clone();
        let now = session.now_ns();
        question.growth_from_ns = self.growth_moment(session);
        let asked = |view| Asked {
            view,
            metric: self.metric,
            top: usize::MAX,
            focus: Vec::new(),
            filter: question.filter.clone(),
            when: question.when.until(now),
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
            Screen::Promotion(p) => {
                let asked = asked(View::Promotion);
                let report = views::promotion_as_shown(session, &asked, p.order);
                Some(views::noted(session, &asked, report))
            }
            Screen::Threads(t) => {
                let asked = asked(View::Threads);
                let rows = t.ordered(query::threads(session, asked.when, &asked.filter));
                let report = views::threads_as_shown(session, &asked, rows);
                Some(views::noted(session, &asked, report))
            }
            Screen::Leaks(l) => {
                let asked = asked(View::Leaks);
                let base = self.growth_base.moment(session, asked.when);
                let base = base.as_ref().map(|(at, name)| (*at, name.as_deref()));
                let report = leaks::as_shown(session, &asked, base, l.order);
                Some(views::noted(session, &asked, report))
            }
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
    use crate::app::export::Job;
    use crate::app::{App, Effect, Message, Options, Screen};
    use crate::export::{Destination, Format, Proposal};
    use crate::session::Session;
    use crate::session::fixture::Fixture;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

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
            let [Effect::Export(job)] = &effects[..] else { panic!("{effects:?}") };
            let bytes = job.shown.bytes(job.format).unwrap();
            written.push((job.format, String::from_utf8(bytes).unwrap()));
            app.update(Message::Exported(job.number, Ok(("a".into(), Vec::new()))), &f.session);
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
    fn threads_stand_in_the_order_of_the_screen() {
        let mut f = target();
        f.thread = heaptop_protocol::ids::ThreadId(2);
        f.name_thread(2, "other");
        let stack = f.stack(&["main", "hoard"]);
        f.alloc(stack, 9000);
        f.pass(1.0);
        let threads = |keys: &[KeyCode]| {
            let keys = [&[KeyCode::Char('6')], keys].concat();
            let csv = written(&f, &keys).into_iter().find(|(format, _)| *format == Format::Csv);
            let csv = csv.unwrap().1;
            csv.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
        };
        let (largest, smallest): (Vec<String>, Vec<String>) =
            (threads(&[]), threads(&[KeyCode::Char('S')]));
        assert!(largest.len() > 1 && largest != smallest, "{largest:?} {smallest:?}");
        assert!(largest.iter().eq(smallest.iter().rev()), "{largest:?} {smallest:?}");
    }

    #[test]
    fn a_table_holds_what_a_wide_screen_shows() {
        let f = target();
        let text = |columns| {
            let mut app = started(&f.session);
            app.update(Message::Resize(columns, 40), &f.session);
            press(&mut app, &f.session, &[E]);
            let Screen::Export(menu) = app.screen() else { panic!("{:?}", app.screen()) };
            String::from_utf8(menu.shown.bytes(Format::Text).unwrap()).unwrap()
        };
        assert!(text(80).contains("left out for want of room"), "{}", text(80));
        assert!(!text(250).contains("left out for want of room"), "{}", text(250));
    }

    #[test]
    fn a_trace_can_be_made_of_what_is_read_from_a_file() {
        let f = target();
        let mut app = App::of_file(Options::default()).at("/r/today.heaptop".into());
        app.update(Message::Resize(120, 40), &f.session);
        app.update(Message::Refresh, &f.session);
        press(&mut app, &f.session, &[KeyCode::Char('4'), E, KeyCode::End]);
        let effects = press(&mut app, &f.session, &[KeyCode::Enter]);
        let [Effect::Export(Job { shown, format: Format::Ctf, .. })] = &effects[..] else {
            panic!("{effects:?}")
        };
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
        let [Effect::Export(Job { shown, format: Format::Svg, .. })] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(shown.request.stacks.len(), 2);
        assert_eq!(shown.table.as_ref().unwrap().rows.len(), 2);
    }

    #[test]
    fn the_menu_says_where_and_esc_writes_nothing() {
        let f = target();
        let mut app = started(&f.session);
        let effects = press(&mut app, &f.session, &[E]);
        let [Effect::Propose(shown, to)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(*to, Destination::default());
        let path =
            |format: &Format| Proposal { path: shown.file_name(*format, 1).into(), taken: None };
        let paths: Vec<Proposal> = shown.formats().iter().map(path).collect();
        let proposed = || Message::Proposed(Destination::default(), Ok(paths.clone()));
        app.update(proposed(), &f.session);
        press(&mut app, &f.session, &[KeyCode::Down]);
        let Screen::Export(menu) = app.screen() else { panic!("{:?}", app.screen()) };
        assert_eq!((menu.format(), menu.path()), (Some(Format::Folded), Some(&paths[1])));
        assert_eq!(press(&mut app, &f.session, &[KeyCode::Esc]), []);
        assert!(matches!(app.screen(), Screen::Callsites(_)));
        assert_eq!(press(&mut app, &f.session, &[E, E]).len(), 1, "the same key closes it");
        assert!(matches!(app.screen(), Screen::Callsites(_)));
        press(&mut app, &f.session, &[E, KeyCode::Char('5')]);
        assert!(matches!(app.screen(), Screen::Promotion(_)), "other screens close it");
        app.update(proposed(), &f.session);
        assert!(matches!(app.screen(), Screen::Promotion(_)), "an answer that comes late");
    }
}
