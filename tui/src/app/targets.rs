//! The targets that can be attached to: a list that is looked for anew while it is shown.
//!
//! Targets come and go. The selection belongs to a target and not to a place, so what is
//! chosen is what was selected, whatever came meanwhile. A target that is a child of another
//! stands below it. Looking for targets and attaching are the terminal loop's
//! ([`Effect::Attach`]); until a target has answered, the one that was shown before stays.

use std::path::PathBuf;

use super::cursor::Cursor;
use super::keys::Action;
use super::{App, Effect, Options, Prompt, Screen, Typed};
use crate::session::figures::Estimate;
use crate::session::{Connection, Session};
use tui_input::Input;

/// A target that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its pid, as seen from here.
    pub pid: u32,
    /// The pid of the nearest process above it that is a target too.
    pub parent: Option<u32>,
    /// Its name. Any text may be in it.
    pub name: String,
    /// The kind of its agent.
    pub kind: &'static str,
    /// Where it listens.
    pub socket: PathBuf,
    /// R in bytes, if it told.
    pub interval_bytes: Option<u32>,
    /// Bytes in use.
    pub in_use: Estimate,
    /// Since the agent's start, in nanoseconds.
    pub uptime_ns: u64,
}

/// What a look for targets found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// Targets, by pid.
    pub targets: Vec<Candidate>,
    /// What stood in the way, in a sentence.
    pub trouble: Option<String>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The selected row.
    pub cursor: Cursor,
    /// What the last look found; `None` before the first.
    look: Option<Look>,
    /// The text that rows have; empty: all of them.
    pub filter: String,
    /// The place among the targets that each row has, and how many of those above it stand
    /// over it.
    rows: Vec<(usize, usize)>,
    /// The name of the target that is being attached to.
    pub attaching: Option<String>,
}

impl Targets {
    /// The rows, each with how deep it stands below others; `None` before the first look.
    #[must_use]
    pub fn rows(&self) -> Option<Vec<(&Candidate, usize)>> {
        let look = self.look.as_ref()?;
        let row = |&(at, depth): &(usize, usize)| Some((look.targets.get(at)?, depth));
        Some(self.rows.iter().filter_map(row).collect())
    }

    /// How many rows there are, and how many targets.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.rows.len(), self.look.as_ref().map_or(0, |look| look.targets.len()))
    }

    /// What stands in the way of looking for them, in a sentence.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.look.as_ref()?.trouble.as_deref()
    }

    /// The selected target.
    #[must_use]
    pub fn selected(&self) -> Option<&Candidate> {
        let (at, _) = self.rows.get(self.cursor.index())?;
        self.look.as_ref()?.targets.get(*at)
    }

    fn pid_at(&self, row: usize) -> u64 {
        let target = self.rows.get(row).and_then(|(at, _)| self.look.as_ref()?.targets.get(*at));
        target.map_or(u64::MAX, |target| target.pid.into())
    }

    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let pids: Vec<u64> = (0..self.rows.len()).map(|row| self.pid_at(row)).collect();
        self.cursor.select(to(self.cursor.index()), pids.len(), |row| pids[row], page);
    }

    /// Another look, or another filter.
    fn arrange(&mut self, page: usize) {
        let targets = self.look.as_ref().map_or(&[][..], |look| &look.targets);
        self.rows = arranged(targets, &self.filter);
        let pids: Vec<u64> = (0..self.rows.len()).map(|row| self.pid_at(row)).collect();
        let find = |pid| pids.iter().position(|&other| other == pid);
        self.cursor.settle(pids.len(), find, page);
        // Also the first one, which nobody has moved to, is not exchanged unseen.
        self.cursor.select(self.cursor.index(), pids.len(), |row| pids[row], page);
    }

    /// There is room for so many rows.
    pub(super) fn place(&mut self, page: usize) {
        self.cursor.place(self.rows.len(), page);
    }
}

/// Children behind their parents, each with how many of those above it are listed. Those
/// whose name or pid has `filter` are.
fn arranged(targets: &[Candidate], filter: &str) -> Vec<(usize, usize)> {
    let text = filter.to_lowercase();
    let fits = |target: &Candidate| {
        target.name.to_lowercase().contains(&text) || target.pid.to_string().contains(&text)
    };
    let parent = |target: &Candidate| {
        let known = |pid: &u32| *pid != target.pid && targets.iter().any(|t| t.pid == *pid);
        target.parent.filter(known)
    };
    let parents: Vec<Option<u32>> = targets.iter().map(parent).collect();
    let mut rows = Vec::new();
    let mut seen = vec![false; targets.len()];
    // The last is the next one: with how many above it are listed.
    let below = |parent: Option<u32>, depth: usize, waiting: &mut Vec<(usize, usize)>| {
        let children = (0..targets.len()).rev().filter(|&at| parents[at] == parent);
        waiting.extend(children.map(|at| (at, depth)));
    };
    let mut waiting = Vec::new();
    below(None, 0, &mut waiting);
    loop {
        let next = waiting.pop().or_else(|| {
            // Numbers are reused while they are looked at: whoever stands in a circle stands
            // below nobody.
            seen.iter().position(|seen| !seen).map(|at| (at, 0))
        });
        let Some((at, depth)) = next else { return rows };
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let listed = fits(&targets[at]);
        if listed {
            rows.push((at, depth));
        }
        below(Some(targets[at].pid), depth + usize::from(listed), &mut waiting);
    }
}

impl App {
    /// A viewer without a target: one is to be chosen.
    #[must_use]
    pub fn without_target(options: Options) -> Self {
        let mut app = Self { unattached: true, ..Self::new(options) };
        app.stack.push(Screen::Targets(Box::default()));
        app
    }

    /// Whether a target is being chosen: then [`Message::Targets`](super::Message::Targets)
    /// is wanted now and then.
    #[must_use]
    pub fn choosing(&self) -> bool {
        matches!(self.shown(), Screen::Targets(_))
    }

    fn targets(&mut self) -> Option<&mut Targets> {
        self.stack.iter_mut().find_map(|screen| match screen {
            Screen::Targets(targets) => Some(&mut **targets),
            _ => None,
        })
    }

    /// Lists the targets, above what is shown.
    pub(super) fn open_targets(&mut self) {
        self.stack.push(Screen::Targets(Box::default()));
    }

    /// Back to what is shown of a target, if there is one.
    pub(super) fn close_targets(&mut self) -> bool {
        let open = matches!(self.screen(), Screen::Targets(_)) && !self.unattached;
        if open {
            self.stack.pop();
        }
        open
    }

    /// A look for targets is over.
    pub(super) fn targets_are(&mut self, look: Look) {
        let page = usize::from(self.rooms().body);
        let Some(targets) = self.targets() else { return };
        if targets.look.as_ref() != Some(&look) {
            targets.look = Some(look);
            targets.arrange(page);
            self.dirty = true;
        }
    }

    /// Starts typing what rows must have.
    pub(super) fn type_narrower(&mut self) {
        let Some(before) = self.targets().map(|targets| targets.filter.clone()) else { return };
        let input = Input::new(before.clone());
        self.prompt = Some(Prompt { input, kind: Typed::Target(before) });
    }

    /// Lists those alone whose name or pid has `text`.
    pub(super) fn narrow(&mut self, text: &str) {
        let page = usize::from(self.rooms().body);
        let Some(targets) = self.targets() else { return };
        text.clone_into(&mut targets.filter);
        targets.arrange(page);
        self.dirty = true;
    }

    /// Leaves off attaching; takes the filter away; goes back to what was shown.
    pub(super) fn back_from_targets(&mut self, session: &Session) -> Vec<Effect> {
        let Some(targets) = self.targets() else { return Vec::new() };
        if targets.attaching.take().is_some() {
            return vec![Effect::Stay];
        }
        if !targets.filter.is_empty() {
            self.narrow("");
        } else if self.close_targets() {
            self.come_back(session);
        }
        Vec::new()
    }

    /// Attaches to the selected target; to the one that is attached to it goes back.
    pub(super) fn attach(&mut self, session: &Session) -> Vec<Effect> {
        let attached = self.attached.clone();
        let connected = *session.connection() == Connection::Connected;
        let Some(targets) = self.targets() else { return Vec::new() };
        let Some(Candidate { pid, name, socket, .. }) = targets.selected() else {
            return Vec::new();
        };
        let (name, socket) = (format!("{name} (pid {pid})"), socket.clone());
        if connected && attached.is_some_and(|attached| attached == socket) {
            if self.close_targets() {
                self.come_back(session);
            }
            return Vec::new();
        }
        targets.attaching = Some(name);
        vec![Effect::Attach(socket)]
    }

    /// Starts the demo.
    pub(super) fn start_demo(&mut self) -> Vec<Effect> {
        let Some(targets) = self.targets() else { return Vec::new() };
        targets.attaching = Some("the demo".into());
        vec![Effect::Demo]
    }

    /// The target could not be attached to.
    pub(super) fn not_attached(&mut self, why: &str) {
        if let Some(targets) = self.targets() {
            targets.attaching = None;
        }
        self.say(format!("not attached: {why}"));
    }

    /// The same for the target that listens at `socket`.
    #[must_use]
    pub fn of_target(mut self, socket: PathBuf) -> Self {
        self.attached = Some(socket);
        self
    }

    /// Whether this is the target that is attached to.
    #[must_use]
    pub fn is_attached(&self, target: &Candidate) -> bool {
        self.attached.as_ref() == Some(&target.socket)
    }

    /// What is to be read while targets are listed.
    pub(super) fn about_targets(&self, targets: &Targets) -> Option<String> {
        match &targets.attaching {
            Some(name) => {
                Some(self.with_key(&format!("attaching to {name}…"), Action::Back, "leaves off"))
            }
            None => targets.trouble().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Message;
    use crate::app::testing::{press, target};
    use crate::session::fixture::Fixture;

    fn names(targets: &[Candidate], filter: &str) -> Vec<String> {
        arranged(targets, filter)
            .into_iter()
            .map(|(at, depth)| format!("{}{}", " ".repeat(depth), targets[at].name))
            .collect()
    }

    #[test]
    fn children_stand_below_their_parents() {
        let all = [
            target(3, Some(9), "worker-a"),
            target(4, None, "alone"),
            target(7, Some(3), "grandchild"),
            target(8, Some(9), "worker-b"),
            target(9, Some(1), "server"),
        ];
        assert_eq!(names(&all, ""), ["alone", "server", " worker-a", "  grandchild", " worker-b"]);
        assert_eq!(names(&all, "WORKER"), ["worker-a", "worker-b"]);
        assert_eq!(names(&all, "er"), ["server", " worker-a", " worker-b"]);
        assert_eq!(names(&all, "9"), ["server"], "by pid");
        assert_eq!(names(&all, "nobody"), [""; 0]);
        // A child stands below the nearest that is listed.
        assert_eq!(names(&all, "r"), ["server", " worker-a", "  grandchild", " worker-b"]);
        assert_eq!(names(&all, "d"), ["grandchild"]);
        let own = [target(5, Some(5), "own parent"), target(6, None, "b")];
        assert_eq!(names(&own, ""), ["own parent", "b"]);
        let circle = [target(5, Some(6), "a"), target(6, Some(5), "b"), target(7, None, "c")];
        assert_eq!(names(&circle, ""), ["c", "a", " b"], "nobody is left out");
    }

    fn look(app: &mut App, session: &Session, targets: &[Candidate]) {
        let look = Look { targets: targets.to_vec(), trouble: None };
        app.update(Message::Targets(look), session);
    }

    fn selected(app: &App) -> Option<u32> {
        match app.shown() {
            Screen::Targets(targets) => targets.selected().map(|target| target.pid),
            other => panic!("{other:?}"),
        }
    }

    fn choosing() -> (App, Session) {
        let session = Session::new();
        let mut app = App::without_target(Options::default());
        app.update(Message::Resize(80, 24), &session);
        (app, session)
    }

    #[test]
    fn the_selection_follows_its_target_while_others_come_and_go() {
        let (mut app, session) = choosing();
        assert_eq!(press(&mut app, &session, "⏎"), [], "nothing is there yet");
        let [a, b, c] = [(2, "a"), (5, "b"), (8, "c")].map(|(pid, name)| target(pid, None, name));
        look(&mut app, &session, &[a.clone(), b.clone(), c.clone()]);
        assert_eq!(selected(&app), Some(2));
        press(&mut app, &session, "↓");
        let earlier = target(3, None, "earlier");
        look(&mut app, &session, &[a.clone(), earlier.clone(), b.clone(), c.clone()]);
        assert_eq!(selected(&app), Some(5));
        look(&mut app, &session, &[a, earlier, c]);
        assert_eq!(selected(&app), Some(8), "it has ended: the one in its place");
        let attach = press(&mut app, &session, "⏎");
        assert_eq!(attach, [Effect::Attach("/s/8.sock".into())]);
        assert!(app.sentence().unwrap().starts_with("attaching to c (pid 8)…; Esc"));
        assert_eq!(press(&mut app, &session, "⎋"), [Effect::Stay]);
        assert_eq!(app.sentence(), None);
        press(&mut app, &session, "⏎");
        app.update(Message::NotAttached("it is gone".into()), &session);
        assert_eq!(app.sentence().as_deref(), Some("not attached: it is gone"));
    }

    #[test]
    fn rows_are_narrowed_while_it_is_typed() {
        let (mut app, session) = choosing();
        look(&mut app, &session, &[target(2, None, "api"), target(5, None, "batch")]);
        press(&mut app, &session, "/b");
        assert_eq!(selected(&app), Some(5));
        press(&mut app, &session, "⎋");
        assert_eq!(selected(&app), Some(5), "all of them again, and the selection stays");
        press(&mut app, &session, "/ap⏎");
        assert_eq!(selected(&app), Some(2));
        let attach = press(&mut app, &session, "⏎");
        assert_eq!(attach, [Effect::Attach("/s/2.sock".into())]);
        press(&mut app, &session, "⎋⎋");
        let Screen::Targets(targets) = app.screen() else { panic!("{:?}", app.screen()) };
        assert_eq!((targets.filter.as_str(), targets.counts()), ("", (2, 2)));
        assert_eq!(press(&mut app, &session, "d"), [Effect::Demo]);
    }

    #[test]
    fn without_a_target_there_is_nothing_to_go_back_to() {
        let (mut app, session) = choosing();
        for keys in ["14TeR ", "⎋", "⇥"] {
            assert_eq!(press(&mut app, &session, keys), []);
            assert!(app.choosing());
        }
        press(&mut app, &session, "?1");
        assert!(app.choosing());
        press(&mut app, &session, "?⇥");
        assert!(app.choosing());
        assert_eq!(press(&mut app, &session, "q"), [Effect::Quit]);
    }

    #[test]
    fn the_target_that_is_shown_stays_until_another_answers() {
        let f = Fixture::new(1);
        let mut app = App::new(Options::default()).of_target("/s/2.sock".into());
        app.update(Message::Resize(80, 24), &f.session);
        app.update(Message::Refresh, &f.session);
        press(&mut app, &f.session, "4T");
        assert!(app.choosing());
        look(&mut app, &f.session, &[target(2, None, "this"), target(5, None, "other")]);
        press(&mut app, &f.session, "⏎");
        assert!(matches!(app.screen(), Screen::Timeline(_)), "it is this one");
        press(&mut app, &f.session, "T⎋");
        assert!(matches!(app.screen(), Screen::Timeline(_)));
        press(&mut app, &f.session, "T?1");
        assert!(matches!(app.screen(), Screen::Callsites(_)));
        press(&mut app, &f.session, "T");
        look(&mut app, &f.session, &[target(2, None, "this"), target(5, None, "other")]);
        let attach = press(&mut app, &f.session, "↓⏎");
        assert_eq!(attach, [Effect::Attach("/s/5.sock".into())]);
        app.update(Message::Refresh, &f.session);
        assert!(app.choosing(), "until it answers");
    }
}
