//! What is asked of the session: the content of the screens, and of exports.

use std::collections::HashMap;

use super::summary::{Live, Summary};
use super::{App, Callers, Effect, Screen, keys, tree};
use crate::export::{self, Request};
use crate::query::{self, Direction, NodeKey, Row};
use crate::session::Session;
use crate::session::figures::Estimate;

impl App {
    /// What came with the stream, unless the screen is paused.
    pub(super) fn refresh(&mut self, session: &Session) {
        let live = Live::of(session);
        if live != self.live {
            self.live = live;
            self.dirty = true;
        }
        if !self.paused {
            self.look(session);
        }
    }

    pub(super) fn look(&mut self, session: &Session) {
        let summary = Summary::of(session);
        if summary != self.summary {
            self.summary = summary;
            self.dirty = true;
        }
        self.ask(session);
    }

    /// Asks the question of the screen that is shown, or lies under the help.
    pub(super) fn ask(&mut self, session: &Session) {
        let held = self.order_held;
        let shown = self.stack.iter_mut().rev().find(|s| !matches!(s, Screen::Help { .. }));
        match shown {
            Some(Screen::Callers(c)) => {
                let mut answer = query::callers(
                    session,
                    &c.focus,
                    c.direction,
                    self.metric,
                    &self.question.filter,
                );
                if let (true, Some(new), Some(former)) = (held, &mut answer, &c.tree) {
                    tree::keep_order(new, former);
                }
                for (crumb, &key) in c.crumbs.iter_mut().zip(&c.focus) {
                    if let Some(label) = query::find(session, key) {
                        *crumb = label;
                    }
                }
                if answer != c.tree {
                    self.dirty = true;
                    c.tree = answer;
                }
                c.rows = c.tree.as_ref().map(|t| tree::rows(t, &c.opened)).unwrap_or_default();
            }
            Some(Screen::Callsites(_) | Screen::Help { .. }) | None => {
                let mut answer = query::callsites(session, &self.question);
                if let (true, Some(former)) = (held, &self.table) {
                    keep_order(&mut answer.rows, &former.rows);
                }
                if self.table.as_ref() != Some(&answer) {
                    self.dirty = true;
                    self.table = Some(answer);
                }
            }
        }
        if self.paused {
            self.export = Some(Box::new(self.request(session)));
        }
        self.settle();
    }

    /// Rows, size or selection have changed: puts the selection right.
    pub(super) fn settle(&mut self) {
        let page = usize::from(self.rooms().body);
        let rows = self.table.as_ref().map_or(&[][..], |t| &t.rows);
        match self.stack.last_mut() {
            Some(Screen::Callsites(cursor)) => cursor.settle(rows.len(), |i| rows[i].key.0, page),
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, .. } = &mut **c;
                cursor.settle(rows.len(), |i| rows[i].path, page);
            }
            Some(Screen::Help { offset }) => {
                *offset = (*offset).min(keys::HELP_LINES.saturating_sub(page));
            }
            None => {}
        }
    }

    pub(super) fn export(&mut self, session: &Session) -> Vec<Effect> {
        let request = if let Some(held) = &self.export {
            held.clone()
        } else {
            // What is exported is what is seen.
            self.look(session);
            Box::new(self.request(session))
        };
        self.say(format!("exporting {}…", export::metric(self.metric)));
        vec![Effect::Export(request)]
    }

    pub(super) fn request(&self, session: &Session) -> Request {
        let (focus, crumbs): (&[NodeKey], _) = match self.shown() {
            Screen::Callers(c) => (&c.focus, c.crumbs.clone()),
            _ => (&[], Vec::new()),
        };
        let filter = &self.question.filter;
        // Of the direction in which `stacks` reads a focus: one total for both.
        let whole = query::callers(session, focus, Direction::Callers, self.metric, filter);
        Request {
            target: self.summary.target.clone(),
            pid: self.summary.pid.unwrap_or(0),
            metric: self.metric,
            focus: crumbs,
            filter: filter.clone(),
            total: whole.map_or(Estimate::Unknown, |n| n.cum),
            interval_bytes: self.summary.interval_bytes,
            uptime_minutes: self.summary.uptime_minutes.unwrap_or(0),
            lost: self.live.lost(),
            stacks: query::stacks(session, focus, self.metric, filter),
        }
    }

    /// The list that is shown, or lies under the help.
    pub(super) fn shown(&self) -> &Screen {
        self.stack.iter().rev().find(|s| !matches!(s, Screen::Help { .. })).unwrap_or(&Screen::NONE)
    }

    pub(super) fn selected_text(&self) -> Option<String> {
        match self.screen() {
            Screen::Callsites(_) => self.selected_row().map(export::row_text),
            Screen::Callers(c) => c
                .rows
                .get(c.cursor.index())
                .map(|row| export::node_text(&row.label, &row.cum, &row.flat, self.metric)),
            Screen::Help { .. } => None,
        }
    }
}

/// Puts `rows` into the order of `former`; new ones come last, in their order.
fn keep_order(rows: &mut [Row], former: &[Row]) {
    let place: HashMap<NodeKey, usize> =
        former.iter().enumerate().map(|(i, row)| (row.key, i)).collect();
    rows.sort_by_key(|row| place.get(&row.key).copied().unwrap_or(usize::MAX));
}
