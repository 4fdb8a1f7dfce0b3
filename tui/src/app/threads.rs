//! The threads: what they remember, and what they ask.
//!
//! They cost a pass over what happened: made anew once a second, or when another moment is
//! asked about.

use super::App;
use super::cursor::Cursor;
use super::screens::Screen;
use crate::query::{self, ThreadRow, When, thread_name};
use crate::session::Session;
use crate::session::figures::{Estimate, Ratio};
use std::cmp::Ordering;

/// See the module, in nanoseconds.
const AGAIN_NS: u64 = 1_000_000_000;

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The name, from A to Z.
    Name,
    /// Bytes in use.
    #[default]
    InUse,
    /// Objects in use.
    Objects,
    /// Bytes allocated per second.
    Rate,
    /// Bytes allocated.
    Allocated,
    /// Bytes that others freed.
    FreedElsewhere,
    /// Their share of what was freed.
    Share,
}

impl Sort {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 7] = [
        Self::Name,
        Self::InUse,
        Self::Objects,
        Self::Rate,
        Self::Allocated,
        Self::FreedElsewhere,
        Self::Share,
    ];
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    /// The selected row.
    pub cursor: Cursor,
    /// The threads; `None` before the first answer.
    pub rows: Option<Vec<ThreadRow>>,
    /// What they are sorted by, largest first but for names.
    pub sort: Sort,
    /// The other way round.
    pub reversed: bool,
    /// Of what moment they are, and when that was asked.
    asked: Option<(When, u64, String)>,
}

impl Threads {
    /// The selected thread.
    #[must_use]
    pub fn selected(&self) -> Option<&ThreadRow> {
        self.rows.as_ref()?.get(self.cursor.index())
    }

    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let Some(rows) = &self.rows else { return };
        self.cursor.select(to(self.cursor.index()), rows.len(), |i| id(&rows[i]), page);
    }

    /// Sorts by the next column.
    pub(super) fn sort_next(&mut self) {
        let at = Sort::ALL.iter().position(|&sort| sort == self.sort).unwrap_or(0);
        (self.sort, self.reversed) = (Sort::ALL[(at + 1) % Sort::ALL.len()], false);
        self.order();
    }

    /// Sorts by this column; what they are sorted by already is turned round.
    pub(super) fn sort_by(&mut self, by: Sort) {
        self.reversed = by == self.sort && !self.reversed;
        self.sort = by;
        self.order();
    }

    fn order(&mut self) {
        if let Some(rows) = self.rows.take() {
            self.rows = Some(self.ordered(rows));
        }
    }

    /// These in the order that is chosen.
    pub(super) fn ordered(&self, mut rows: Vec<ThreadRow>) -> Vec<ThreadRow> {
        let (sort, reversed) = (self.sort, self.reversed);
        let by = |a: &ThreadRow, b: &ThreadRow| {
            let order = match sort {
                Sort::Name => thread_name(a).cmp(&thread_name(b)),
                Sort::InUse => largest(a.in_use_bytes, b.in_use_bytes),
                Sort::Objects => largest(a.in_use_objects, b.in_use_objects),
                Sort::Rate => largest(a.allocated_rate, b.allocated_rate),
                Sort::Allocated => largest(a.allocated_bytes, b.allocated_bytes),
                Sort::FreedElsewhere => largest(a.freed_elsewhere_bytes, b.freed_elsewhere_bytes),
                Sort::Share => value(b.freed_elsewhere).total_cmp(&value(a.freed_elsewhere)),
            };
            let order = if reversed { order.reverse() } else { order };
            order.then_with(|| id(a).cmp(&id(b)))
        };
        rows.sort_by(by);
        rows
    }
}

/// Its number, for the cursor.
#[must_use]
pub fn id(row: &ThreadRow) -> u64 {
    row.id.map_or(u64::MAX, |id| u64::from(id.0))
}

fn largest(a: Estimate, b: Estimate) -> Ordering {
    let point = |estimate: Estimate| estimate.point().unwrap_or(-1.0);
    point(b).total_cmp(&point(a))
}

const fn value(share: Ratio) -> f64 {
    match share {
        Ratio::Interval { value, .. } => value,
        Ratio::Unknown => -1.0,
    }
}

impl App {
    pub(super) fn ask_threads(&mut self, session: &Session) {
        let page = usize::from(self.rooms().body);
        let question = &self.question;
        let Some(Screen::Threads(t)) = self.stack.first_mut() else { return };
        let (when, now) = (question.when, session.now_ns());
        let fresh = t.rows.is_some()
            && t.asked.as_ref().is_some_and(|(of, at, filter)| {
                let soon = (*at..at.saturating_add(AGAIN_NS)).contains(&now);
                *of == when && *filter == question.filter && soon
            });
        if !fresh {
            t.asked = Some((when, now, question.filter.clone()));
            let rows = query::threads(session, when, &question.filter);
            let before = t.rows.replace(rows);
            t.order();
            self.dirty |= t.rows != before;
        }
        let rows = t.rows.as_deref().unwrap_or_default();
        t.cursor.settle(rows.len(), |key| rows.iter().position(|row| id(row) == key), page);
    }

    /// Size or selection have changed.
    pub(super) fn place_threads(&mut self) {
        let page = usize::from(self.rooms().body);
        if let Some(Screen::Threads(t)) = self.stack.last_mut() {
            let len = t.rows.as_ref().map_or(0, Vec::len);
            t.cursor.place(len, page);
        }
    }
}
