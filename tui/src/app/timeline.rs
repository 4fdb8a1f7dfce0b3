//! The timeline: what it remembers, and what it asks.

use super::App;
use super::screens::Screen;
use crate::query::{self, Curve};
use crate::session::Session;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The target over time; `None` before the first answer.
    pub answer: Option<Curve>,
}

impl App {
    pub(super) fn ask_timeline(&mut self, session: &Session) {
        let Some(Screen::Timeline(timeline)) = self.stack.first_mut() else { return };
        let answer = Some(query::curve(session));
        if timeline.answer != answer {
            timeline.answer = answer;
            self.dirty = true;
        }
    }
}
