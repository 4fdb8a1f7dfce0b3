//! The details of one callsite: what they remember, and what they ask.

use super::screens::Screen;
use super::{App, Effect};
use crate::query::{self, Label, NodeKey};
use crate::session::{Connection, Session};
use heaptop_protocol::message::WantFreeStacks;

/// See the module.
#[derive(Debug, Clone)]
pub struct Details {
    /// Which callsite.
    pub key: NodeKey,
    /// Its name, as known when it was opened.
    pub label: Label,
    /// What is known of it; `None` where nothing is of the moment.
    pub answer: Option<Box<query::Details>>,
    /// First line that is shown.
    pub offset: usize,
    /// The time of the target at the last answer, in nanoseconds since the agent's start.
    asked_ns: Option<u64>,
    /// What moment it was of, and under which filter.
    was: (query::When, String),
}

/// They cost a pass over what happened: made anew so often, in nanoseconds.
const AGAIN_NS: u64 = 1_000_000_000;

impl App {
    /// Callstacks of frees cost the target something: they are wanted while details are
    /// shown, and no longer.
    pub(super) fn ask_for_frees(&mut self, session: &Session) -> Option<Effect> {
        let connected = *session.connection() == Connection::Connected && self.file.is_none();
        if !connected {
            // Whoever comes back has to be asked again.
            self.frees_wanted = false;
            return None;
        }
        let on = self.stack.iter().any(|screen| matches!(screen, Screen::Details(_)));
        let changed = std::mem::replace(&mut self.frees_wanted, on) != on;
        changed.then(|| Effect::Send(WantFreeStacks { on }.into()))
    }

    /// Opens the details of what is selected.
    pub(super) fn open_details(&mut self, session: &Session) {
        let selected = match self.screen() {
            Screen::Leaks(l) => l.selected().map(|row| (row.key, row.label.clone())),
            Screen::Callers(c) => c.rows.get(c.cursor.index()).map(|r| (r.key, r.label.clone())),
            _ => self.selected(),
        };
        let Some((key, label)) = selected else {
            return self.say("details are of a callsite: select one".into());
        };
        let book = session.book();
        if book.node(key).and_then(|node| book.groups().at(node)).is_none() {
            return self.say("nothing is allocated right there: details are of callsites".into());
        }
        let details =
            Details { key, label, answer: None, offset: 0, asked_ns: None, was: <_>::default() };
        self.stack.push(Screen::Details(Box::new(details)));
        self.ask(session);
    }

    pub(super) fn ask_details(&mut self, session: &Session) {
        let (when, filter) = (self.question.when, &self.question.filter);
        let shown = self.stack.iter_mut().rev().find(|screen| screen.is_list());
        let Some(Screen::Details(details)) = shown else { return };
        let now = session.now_ns();
        let fresh = |asked: u64| (asked..asked.saturating_add(AGAIN_NS)).contains(&now);
        let same = details.answer.as_ref().is_some_and(|answer| {
            when == query::When::Now && details.asked_ns.is_some_and(fresh) && answer.to_ns <= now
        });
        let was = (when, filter.clone());
        if same && details.was == was {
            return;
        }
        details.asked_ns = Some(now);
        details.was = was;
        let answer = query::details(session, when, details.key, filter).map(Box::new);
        if let Some(answer) = &answer {
            details.label = answer.label.clone();
        }
        if details.answer != answer {
            details.answer = answer;
            self.dirty = true;
        }
    }
}
