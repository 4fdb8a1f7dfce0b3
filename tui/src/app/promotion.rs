//! The promotion screen: what it remembers, and what it asks.

use super::App;
use super::cursor::Cursor;
use super::screens::Screen;
use crate::query::{self, NodeKey, PromotionRow, Promotions};
use crate::session::Session;

/// So many rows around those that are seen are asked for.
const AROUND: usize = 32;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Promotion {
    /// The selected row.
    pub cursor: Cursor,
    /// The rows; `None` before the first answer.
    pub answer: Option<Promotions>,
}

impl Promotion {
    /// The selected row, if it is held.
    #[must_use]
    pub fn selected(&self) -> Option<&PromotionRow> {
        self.answer.as_ref()?.row(self.cursor.index())
    }

    /// Moves the selection.
    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let len = self.answer.as_ref().map_or(0, |answer| answer.len);
        self.cursor.go(to(self.cursor.index()), len, page);
        if let Some(key) = self.selected().map(|row| row.key) {
            self.cursor.follow(key.0);
        }
    }

    /// Size or rows have changed.
    pub(super) fn settle(&mut self, page: usize) {
        let len = self.answer.as_ref().map_or(0, |answer| answer.len);
        self.cursor.place(len, page);
    }
}

impl App {
    pub(super) fn ask_promotion(&mut self, session: &Session) {
        let page = usize::from(self.rooms().body);
        let (paused, question) = (self.paused, &self.question);
        let Some(Screen::Promotion(p)) = self.stack.first_mut() else { return };
        let list = query::PromotionList::ask(session, &question.filter, question.when);
        p.cursor.settle(list.len(), |id| list.position(NodeKey(id)), page);
        let first = p.cursor.offset();
        let wanted = if paused {
            0..list.len()
        } else {
            first.saturating_sub(AROUND)..first + page + AROUND
        };
        let answer = Some(list.rows(wanted));
        if p.answer != answer {
            p.answer = answer;
            self.dirty = true;
        }
    }
}
