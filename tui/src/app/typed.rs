//! Lines that are typed: filters, marks, limits, paths, what is looked for.
//!
//! Enter takes what is typed. What cannot be understood is said, and stays to be mended: no
//! text is thrown away but by Esc.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

use super::export::LONGEST_PATH;
use super::{App, Effect};
use crate::query::filter::LONGEST;
use crate::session::Session;

/// The key that clears the line.
pub const CLEAR: &str = "^U";

/// A line that is being typed.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) input: Input,
    pub(super) kind: Typed,
}

impl Prompt {
    /// Whether no more characters are taken.
    fn is_full(&self) -> bool {
        self.input.value().chars().count() >= self.kind.longest()
    }
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A filter; it had this one before.
    Filter(String),
    /// The name of a mark.
    Mark,
    /// A limit of bytes in use.
    Limit,
    /// What is looked for; it was this before.
    Find(String),
    /// Which targets are listed; it was this before.
    Target(String),
    /// Where an export goes; it was this before.
    Path(String),
}

impl Typed {
    /// So many characters at most.
    const fn longest(&self) -> usize {
        match self {
            Self::Path(_) => LONGEST_PATH,
            _ => LONGEST,
        }
    }

    /// The keys that work while it is typed, the most needed first, and what they do.
    #[must_use]
    pub const fn keys(&self) -> &'static [(&'static str, &'static str)] {
        const CLEARS: (&str, &str) = (CLEAR, "clears the line");
        match self {
            Self::Filter(_) => &[
                ("Enter", "keeps it"),
                ("Esc", "takes it back"),
                ("Up, Down", "those before"),
                CLEARS,
            ],
            Self::Find(_) | Self::Target(_) => {
                &[("Enter", "keeps it"), ("Esc", "takes it back"), CLEARS]
            }
            Self::Mark => &[("Enter", "marks now"), ("Esc", "does not"), CLEARS],
            Self::Limit => &[("Enter", "sets it"), ("Esc", "does not"), CLEARS],
            Self::Path(_) => &[("Enter", "takes it"), ("Esc", "does not"), CLEARS],
        }
    }
}

impl App {
    /// A key while a line is typed.
    pub(super) fn prompt_key(&mut self, key: KeyEvent, session: &Session) -> Vec<Effect> {
        let Some(prompt) = &mut self.prompt else { return Vec::new() };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return vec![Effect::Quit],
            KeyCode::Char('z') if control => return vec![Effect::Suspend],
            // It stays until the path is known to be one.
            KeyCode::Enter if matches!(prompt.kind, Typed::Path(_)) => return self.path_typed(),
            KeyCode::Enter => return self.take_typed(session),
            KeyCode::Esc => {
                let Some(Prompt { kind, .. }) = self.prompt.take() else { return Vec::new() };
                match kind {
                    Typed::Filter(before) => {
                        self.wrong = None;
                        self.question.filter = before;
                        self.ask(session);
                    }
                    Typed::Find(before) => self.look_for(&before, session),
                    Typed::Target(before) => self.narrow(&before),
                    Typed::Mark | Typed::Limit | Typed::Path(_) => {}
                }
            }
            KeyCode::Char(_) if !control && prompt.is_full() => {}
            code if self.recall(code, session) => {}
            _ => {
                let Some(prompt) = &mut self.prompt else { return Vec::new() };
                prompt.input.handle_event(&Event::Key(key));
                self.filter_typed(session);
            }
        }
        Vec::new()
    }

    /// Enter: what is typed is taken, or else stays.
    fn take_typed(&mut self, session: &Session) -> Vec<Effect> {
        let Some(Prompt { input, kind }) = self.prompt.take() else { return Vec::new() };
        let taken = match kind {
            Typed::Mark => return self.mark(input.value(), session),
            Typed::Limit => self.set_limit(input.value()),
            Typed::Filter(_) => self.keep_filter(session),
            Typed::Find(_) | Typed::Target(_) | Typed::Path(_) => true,
        };
        if !taken {
            self.prompt = Some(Prompt { input, kind });
        }
        Vec::new()
    }

    /// A filter, and what is looked for, work while they are typed.
    pub(super) fn filter_typed(&mut self, session: &Session) {
        self.dirty = true;
        if let Some(prompt) = &self.prompt
            && matches!(prompt.kind, Typed::Filter(_))
        {
            let typed = prompt.input.value().to_owned();
            self.filter_is(&typed, session);
        }
        if let Some(Prompt { input, kind: Typed::Find(_) }) = &self.prompt {
            let text = input.value().to_owned();
            self.look_for(&text, session);
        }
        if let Some(Prompt { input, kind: Typed::Target(_) }) = &self.prompt {
            let text = input.value().to_owned();
            self.narrow(&text);
        }
    }

    /// Text is pasted into the line that is typed, as much as it takes.
    pub(super) fn paste(&mut self, pasted: &str, session: &Session) {
        let Some(prompt) = &mut self.prompt else { return };
        let room = prompt.kind.longest();
        let room = room.saturating_sub(prompt.input.value().chars().count());
        // Lines and columns stay apart; what follows the last one of them is nothing.
        let blank = |c: char| if c.is_whitespace() { ' ' } else { c };
        let pasted = pasted.trim_end_matches(['\n', '\r']).replace("\r\n", "\n");
        for c in pasted.chars().map(blank).filter(|c| !c.is_control()).take(room) {
            prompt.input.handle(InputRequest::InsertChar(c));
        }
        self.filter_typed(session);
    }
}
