//! The promotion screen: what it remembers, and what it asks.
//!
//! Lives take a pass over all that are kept, so they are not asked for with each
//! refresh: anew when another callsite, moment or name is asked about, and else when a
//! second has passed and there are a sixteenth more of them.

use super::App;
use super::ask::AROUND;
use super::cursor::Cursor;
use super::screens::Screen;
use crate::query::{self, NodeKey, PromotionColumn, PromotionRow, Promotions, Sorted};
use crate::query::{Survival, When};
use crate::session::Session;

/// Lives are asked for anew after this, in nanoseconds,
const LIVES_NS: u64 = 1_000_000_000;
/// if there are more by this part.
const MORE: usize = 16;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Promotion {
    /// The selected row.
    pub cursor: Cursor,
    /// The rows; `None` before the first answer.
    pub answer: Option<Promotions>,
    /// The nursery that is asked about, in bytes; `None`: the one that is configured.
    pub nursery: Option<u64>,
    /// What rows are sorted by.
    pub order: Sorted<PromotionColumn>,
    lives: Option<Lives>,
}

/// Lives of the selected callsite, and of all.
#[derive(Debug, Clone)]
struct Lives {
    of: (Option<NodeKey>, When, u64),
    filter: String,
    /// How many lives there were, and when.
    at: (usize, u64),
    selected: Option<Survival>,
    all: Option<Survival>,
    /// Why there are none.
    why_none: Option<&'static str>,
}

impl Promotion {
    /// The selected row, if it is held.
    #[must_use]
    pub fn selected(&self) -> Option<&PromotionRow> {
        self.answer.as_ref()?.row(self.cursor.index())
    }

    /// Lives of the selected callsite's minor blocks, and of all.
    #[must_use]
    pub fn lives(&self) -> Option<(&Survival, &Survival)> {
        let lives = self.lives.as_ref()?;
        Some((lives.selected.as_ref()?, lives.all.as_ref()?))
    }

    /// Why there are no lives, in a sentence.
    #[must_use]
    pub fn why_no_lives(&self) -> Option<&'static str> {
        self.lives.as_ref()?.why_none
    }

    /// Moves the selection.
    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let len = self.answer.as_ref().map_or(0, |answer| answer.len);
        self.cursor.go(to(self.cursor.index()), len, page);
    }

    /// The selection is the row's that is selected, wherever it goes.
    pub(super) fn pin(&mut self) {
        if let Some(key) = self.selected().map(|row| row.key) {
            self.cursor.follow(key.0);
        }
    }

    fn covers(&self, page: usize) -> bool {
        let Some(answer) = &self.answer else { return false };
        let places = self.cursor.offset()..(self.cursor.offset() + page).min(answer.len);
        places.is_empty()
            || answer.first <= places.start && places.end <= answer.first + answer.rows.len()
    }

    fn ask_lives(&mut self, session: &Session, when: When, filter: &str) {
        let of = (self.selected().map(|row| row.key), when, session.book().regrouped());
        let at = (session.lives_over().len(), session.now_ns());
        let fresh = self.lives.as_ref().is_some_and(|lives| {
            let more = at.0.saturating_sub(lives.at.0);
            let soon = at.1.saturating_sub(lives.at.1) < LIVES_NS;
            lives.of == of && lives.filter == filter && (soon || more <= lives.at.0 / MORE)
        });
        if fresh {
            return;
        }
        let selected = of.0.and_then(|key| query::survival(session, Some(key), when, filter));
        // Of another callsite the same is asked that is known of all.
        let recent = |lives: &Lives| at.0.saturating_sub(lives.at.0) <= lives.at.0 / MORE;
        let held = self.lives.take();
        let held = held.filter(|l| l.of.1 == of.1 && l.filter == filter && recent(l));
        let (all, at) = match held {
            Some(lives) if lives.of.0 != of.0 => (lives.all, lives.at),
            _ => (query::survival(session, None, when, filter), at),
        };
        let why_none = query::why_no_lives(session, filter);
        self.lives = Some(Lives { of, filter: filter.to_owned(), at, selected, all, why_none });
    }
}

impl App {
    pub(super) fn ask_promotion(&mut self, session: &Session) {
        let rooms = self.rooms();
        let page = usize::from(rooms.body);
        let (paused, question) = (self.paused, &self.question);
        let Some(Screen::Promotion(p)) = self.stack.first_mut() else { return };
        let list = query::PromotionList::sorted(session, &question.filter, question.when, p.order);
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
        if rooms.panel > 0 {
            p.ask_lives(session, question.when, &question.filter);
        }
    }

    /// Size or selection have changed: asks for the rows that are seen by now, and for the
    /// lives of the one that is selected. A paused screen holds all rows.
    pub(super) fn place_promotion(&mut self, session: &Session) {
        let rooms = self.rooms();
        let page = usize::from(rooms.body);
        let (when, filter) = (self.question.when, &self.question.filter);
        let Some(Screen::Promotion(p)) = self.stack.last_mut() else { return };
        let Some(answer) = &p.answer else { return };
        p.cursor.place(answer.len, page);
        if !p.covers(page) {
            return self.ask_promotion(session);
        }
        let shown = p.lives.as_ref().map(|lives| lives.of.0);
        if rooms.panel > 0 && shown != Some(p.selected().map(|row| row.key)) {
            p.ask_lives(session, when, filter);
            self.dirty = true;
        }
    }

    /// Another nursery is asked about.
    pub(super) fn nursery(&mut self, larger: bool) {
        let Some(Screen::Promotion(p)) = self.stack.last_mut() else { return };
        if let Some((of, _)) = p.lives() {
            let own = of.own_bytes;
            let next = query::nursery_beside(p.nursery.unwrap_or(own), own, larger);
            p.nursery = (next != own).then_some(next);
        } else if let Some(why) = p.why_no_lives() {
            self.say(why.into());
        }
    }
}
