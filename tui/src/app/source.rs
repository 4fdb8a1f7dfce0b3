//! A source file with bytes beside its lines: what it remembers, and what it asks.
//!
//! The file is read by the terminal loop, once ([`Effect::Read`](super::Effect::Read)): the
//! state does no IO.

use std::path::PathBuf;
use std::sync::Arc;

use super::keys::Action;
use super::screens::Screen;
use super::{App, Callers};
use crate::query::{self, Direction, NodeKey, SourceLine};
use crate::session::Session;

/// A file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Where it was read.
    pub path: PathBuf,
    /// Its lines, without their ends.
    pub lines: Vec<String>,
    /// When it was changed last, in nanoseconds since 1970; `None` if that is not known.
    pub changed_unix_ns: Option<u64>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The file, as the debug information has it; `None`: no callsite was selected yet.
    pub file: Option<Arc<str>>,
    /// What it holds, or why that is not to be had; `None` while it is read.
    pub text: Option<Result<Text, String>>,
    /// Figures by line; `None` before the first answer.
    pub lines: Option<Vec<SourceLine>>,
    /// The selected line, from 1.
    pub line: u32,
    /// First line shown, from 0.
    pub offset: usize,
}

impl Source {
    /// How many lines there are to go along.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.text {
            Some(Ok(text)) => text.lines.len(),
            // Without the text there are those with figures.
            _ => self.lines.as_ref().map_or(0, Vec::len),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of the selected line among those that are shown; the last one where the
    /// file ends before it.
    #[must_use]
    pub fn at(&self) -> usize {
        let at = match (&self.text, &self.lines) {
            (Some(Ok(_)), _) => (self.line.max(1) - 1) as usize,
            (_, Some(lines)) => lines.partition_point(|line| line.number < self.line),
            (_, None) => 0,
        };
        at.min(self.len().saturating_sub(1))
    }

    /// The figures of a line.
    #[must_use]
    pub fn figures(&self, number: u32) -> Option<&SourceLine> {
        let lines = self.lines.as_ref()?;
        let at = lines.binary_search_by_key(&number, |line| line.number).ok()?;
        lines.get(at)
    }

    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let at = to(self.at()).min(self.len().saturating_sub(1));
        self.line = match (&self.text, &self.lines) {
            (Some(Ok(_)), _) => at as u32 + 1,
            (_, Some(lines)) => lines.get(at).map_or(0, |line| line.number),
            (_, None) => 0,
        };
        self.settle(page);
    }

    pub(super) fn settle(&mut self, page: usize) {
        let (page, len) = (page.max(1), self.len());
        let at = self.at().min(len.saturating_sub(1));
        self.offset =
            self.offset.min(len.saturating_sub(page)).clamp((at + 1).saturating_sub(page), at);
    }

    /// To the next line with figures, or the one before.
    fn next(&mut self, forward: bool, page: usize) {
        let Some(lines) = &self.lines else { return };
        let next = if forward {
            lines.iter().find(|line| line.number > self.line).or(lines.first())
        } else {
            lines.iter().rev().find(|line| line.number < self.line).or(lines.last())
        };
        if let Some(next) = next {
            self.line = next.number;
            self.settle(page);
        }
    }
}

impl App {
    /// The file of what is selected, if that is another one; then it has to be read.
    pub(super) fn open_source(&mut self, key: Option<NodeKey>, session: &Session) {
        let place = key.and_then(|key| query::source_of(session, key));
        if key.is_some() && place.is_none() {
            self.say("no source file is known of what was selected: it has no line numbers".into());
        }
        let page = usize::from(self.rooms().body);
        let Some(Screen::Source(s)) = self.stack.first_mut() else { return };
        let Some((file, line)) = place else { return };
        if s.file.as_ref() != Some(&file) {
            **s = Source { file: Some(Arc::clone(&file)), ..Source::default() };
            self.unread = Some(file);
        }
        if let Some(line) = line {
            s.line = line;
            s.offset = s.at().saturating_sub(page / 3);
        }
        self.ask(session);
    }

    /// A file was read, or cannot be.
    pub(super) fn source_is(&mut self, file: &str, text: Result<Text, String>) {
        let page = usize::from(self.rooms().body);
        let screens = self.stack.iter_mut().chain(&mut self.lowest);
        for screen in screens {
            if let Screen::Source(s) = screen
                && s.file.as_deref() == Some(file)
            {
                s.text = Some(text);
                // What stands above it is worth seeing.
                s.offset = s.at().saturating_sub(page / 3);
                s.settle(page);
                self.dirty = true;
                return;
            }
        }
    }

    pub(super) fn ask_source(&mut self, session: &Session) {
        let page = usize::from(self.rooms().body);
        let (metric, question) = (self.metric, &self.question);
        let Some(Screen::Source(s)) = self.stack.first_mut() else { return };
        let Some(file) = &s.file else { return };
        let lines = Some(query::source(session, question.when, metric, &question.filter, file));
        if s.lines != lines {
            s.lines = lines;
            self.dirty = true;
        }
        s.settle(page);
    }

    /// To the next line that has figures.
    pub(super) fn next_line(&mut self, forward: bool) {
        let page = usize::from(self.rooms().body);
        if let Some(Screen::Source(s)) = self.stack.last_mut() {
            s.next(forward, page);
        }
    }

    /// Who calls what is at the selected line.
    pub(super) fn drill_line(&mut self, session: &Session) {
        let Screen::Source(s) = self.screen() else { return };
        let Some(line) = s.figures(s.line) else {
            let said = "nothing is allocated through this line";
            let next = Action::NextMatch { forward: true };
            return self.say(self.with_key(said, next, "goes to the next that has bytes"));
        };
        let next = Callers::of(vec![line.key], vec![line.label.clone()], Direction::Callers);
        self.aside.clear();
        self.stack.push(Screen::Callers(Box::new(next)));
        self.ask(session);
    }
}
