//! The filter: how it is typed, those of before, and that of a thread.
//!
//! It works while it is typed. What cannot be understood yet leaves the last that could in
//! force, and is said with where it is wrong.

use super::keys::Place;
use super::{App, Prompt, Typed};
use crate::query::filter::{self, Wrong};
use crate::query::thread_name;
use crate::session::Session;
use crossterm::event::KeyCode;
use heaptop_protocol::ids::ThreadId;
use tui_input::Input;

/// So many filters are remembered.
const REMEMBERED: usize = 50;

/// Filters of before, the latest last.
#[derive(Debug, Default)]
pub struct History {
    filters: Vec<String>,
    /// The one that is shown, from the latest on; 0: what is typed, which is kept.
    back: usize,
    typed: String,
}

impl History {
    fn remember(&mut self, filter: &str) {
        if filter.is_empty() {
            return;
        }
        self.filters.retain(|known| known != filter);
        self.filters.push(filter.to_owned());
        if self.filters.len() > REMEMBERED {
            self.filters.remove(0);
        }
    }

    /// The one before, or the next; `None` where there is no other.
    fn go(&mut self, earlier: bool, typed: &str) -> Option<String> {
        let back = if earlier { self.back + 1 } else { self.back.checked_sub(1)? };
        if back > self.filters.len() {
            return None;
        }
        if self.back == 0 {
            typed.clone_into(&mut self.typed);
        }
        self.back = back;
        let at = self.filters.len().checked_sub(back)?;
        Some(self.filters.get(at).unwrap_or(&self.typed).clone())
    }
}

impl App {
    /// What is wrong with the filter that is typed.
    #[must_use]
    pub fn wrong_filter(&self) -> Option<&Wrong> {
        let typed = matches!(self.prompt, Some(Prompt { kind: Typed::Filter(_), .. }));
        self.wrong.as_ref().filter(|_| typed)
    }

    pub(super) fn type_filter(&mut self) {
        let before = self.question.filter.clone();
        self.history.back = 0;
        self.wrong = None;
        self.prompt =
            Some(Prompt { input: Input::new(before.clone()), kind: Typed::Filter(before) });
    }

    /// A key that goes through former filters; whether it is one.
    pub(super) fn recall(&mut self, key: KeyCode, session: &Session) -> bool {
        let Some(Prompt { input, kind: Typed::Filter(_) }) = &mut self.prompt else {
            return false;
        };
        if !matches!(key, KeyCode::Up | KeyCode::Down) {
            return false;
        }
        if let Some(filter) = self.history.go(key == KeyCode::Up, input.value()) {
            *input = Input::new(filter);
            self.filter_typed(session);
        }
        true
    }

    /// What was typed works from now on, if it is understood.
    pub(super) fn filter_is(&mut self, typed: &str, session: &Session) {
        self.wrong = filter::check(session, typed).err();
        if self.wrong.is_none() && typed != self.question.filter {
            typed.clone_into(&mut self.question.filter);
            self.ask(session);
        }
    }

    /// Enter: the filter stays, and is remembered. What cannot be understood goes on being
    /// typed, and what is wrong is told once more; whether it was.
    pub(super) fn keep_filter(&mut self, session: &Session) -> bool {
        if let Some(wrong) = &self.wrong {
            self.say(format!("not understood yet: {}; Esc takes it back", wrong.says));
            return false;
        }
        let filter = self.question.filter.clone();
        self.history.remember(&filter);
        if let Some(said) = filter::unknown(session, &filter) {
            self.say(said);
        }
        true
    }

    /// The next thread's blocks alone, or those of the one before; beyond the last all.
    pub(super) fn next_thread(&mut self, forward: bool, session: &Session) {
        let mut ids: Vec<&ThreadId> = session.threads().keys().collect();
        ids.sort_unstable();
        let mut names: Vec<String> = Vec::new();
        for name in ids.into_iter().map(|id| filter::thread_name(session, *id)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (rest, now) = filter::without_thread(&self.question.filter);
        let at = now.and_then(|now| names.iter().position(|name| *name == now));
        let next = match (at, forward) {
            (None, true) => Some(0),
            (None, false) => names.len().checked_sub(1),
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        let Some(name) = next.and_then(|at| names.get(at)) else {
            self.set_filter(rest, session);
            return self.say("blocks of all threads".into());
        };
        self.set_filter(filter::with_thread(&rest, name), session);
        self.say(format!("blocks of thread {name}"));
    }

    /// From the threads to the callsites of the one that is selected.
    pub(super) fn go_into_thread(&mut self, session: &Session) {
        let super::Screen::Threads(threads) = self.screen() else { return };
        let Some(name) = threads.selected().map(thread_name) else { return };
        let (rest, _) = filter::without_thread(&self.question.filter);
        self.question.filter = filter::with_thread(&rest, &name);
        self.history.remember(&self.question.filter.clone());
        self.go_to(Place::Callsites, session);
    }

    fn set_filter(&mut self, filter: String, session: &Session) {
        self.question.filter = filter;
        self.dirty = true;
        self.ask(session);
    }
}
