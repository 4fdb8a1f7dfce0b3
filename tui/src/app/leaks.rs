//! The leaks screen: what it remembers, what it asks, and what limits growth.

use super::ask::{AROUND, SLICE};
use super::cursor::Cursor;
use super::screens::Screen;
use super::{App, Effect};
use crate::query::{self, AUTOMATIC, LeakColumn, LeakList, LeakRow, Leaks as Answer};
use crate::query::{NodeKey, Reached, Sorted, When};
use crate::session::figures::{Change, Estimate};
use crate::session::{Connection, Session};
use crate::system::Memory;
use heaptop_protocol::message::SetMark;

/// Minutes between automatic marks; 0: there are none.
pub const PERIODS: [u64; 5] = [0, 1, 5, 15, 60];
const MINUTE_NS: u64 = 60_000_000_000;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Leaks {
    /// The selected row.
    pub cursor: Cursor,
    /// The rows; `None` where nothing is known of the moment.
    pub answer: Option<Answer>,
    /// What growth is counted from: the mark's name.
    pub base: Option<String>,
    /// What rows are sorted by.
    pub order: Sorted<LeakColumn>,
    /// What the answer depends on: the filter, from when on growth is counted, and which
    /// callstacks are one callsite, and the order.
    asked: (String, Option<u64>, u64, Sorted<LeakColumn>),
    /// The answer is without its later part.
    later_due: bool,
}

/// The present is made anew so often, in nanoseconds: see [`Session::lately`].
const AGAIN_NS: u64 = 1_000_000_000;

/// Marks that are made by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Automatic {
    minutes: u64,
    /// When the last one was asked for.
    asked_ns: u64,
}

impl Automatic {
    /// As configured. The time counts from when a target is seen first.
    pub(super) const fn every(minutes: u64) -> Self {
        Self { minutes, asked_ns: u64::MAX }
    }
}

/// What resident memory is made of. Bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resident {
    /// All of it.
    pub rss: Option<u64>,
    /// What the program holds.
    pub in_use: Estimate,
    /// Code, libraries and mapped files.
    pub files: Option<u64>,
    /// The agent's own.
    pub agent: Option<u64>,
    /// What none of these explains: what allocators hold back, stacks, memory that is not
    /// allocated through them; less where what is in use is not resident.
    pub unexplained: Change,
}

impl App {
    pub(super) fn ask_leaks(&mut self, session: &Session) {
        let page = self.leaks_rooms().rows;
        let base = self.growth_base.moment(session, self.question.when);
        let (paused, question) = (self.paused, &self.question);
        let Some(Screen::Leaks(l)) = self.stack.first_mut() else { return };
        let from = base.as_ref().map(|(at, _)| *at);
        let asked = (question.filter.clone(), from, session.book().regrouped(), l.order);
        let fresh = |answer: &Answer| {
            let seen = l.cursor.offset()..l.cursor.offset() + page;
            let again = answer.to_ns.saturating_add(AGAIN_NS);
            question.when == When::Now
                && (answer.to_ns..again).contains(&session.now_ns())
                && answer.covers(&seen)
        };
        let gone = matches!(session.connection(), Connection::Lost(_) | Connection::Ended(_));
        let goes_on = question.when == When::Now && !paused && !gone && self.file.is_none();
        // What is not kept up while others are shown is made part by part. While they are
        // shown callstacks may come to other callsites again and again, and answers with them.
        let latest_ns = l.answer.as_ref().map_or(0, |answer| answer.to_ns);
        if goes_on
            && (l.answer.is_none() || latest_ns.saturating_add(2 * AGAIN_NS) < session.now_ns())
            && let under_way @ Some(_) =
                LeakList::make_ahead(session, from, &question.filter, SLICE)
        {
            (self.under_way, self.dirty) = (under_way, true);
            return;
        }
        let list = || LeakList::sorted(session, question.when, from, &question.filter, l.order);
        if !paused && asked == l.asked && l.answer.as_ref().is_some_and(fresh) {
            if std::mem::take(&mut l.later_due)
                && let Some(answer) = &mut l.answer
            {
                answer.later = list().and_then(|list| list.later());
                self.dirty = true;
            }
            return;
        }
        let list = list();
        // Events go on while it is made, so it comes with the next refresh: until then that of
        // the same question a second ago stands, and of another question all is made at once.
        let before = l.answer.as_ref().map(|answer| answer.later);
        let put_off = goes_on && (before.is_none() || asked == l.asked);
        l.asked = asked;
        let list = if put_off { list.map(LeakList::without_later) } else { list };
        let answer = list.map(|list| {
            l.cursor.settle(list.len(), |id| list.position(NodeKey(id)), page);
            let first = l.cursor.offset();
            let mut answer = list.rows(if paused {
                0..list.len()
            } else {
                first.saturating_sub(AROUND)..first + page + AROUND
            });
            if put_off {
                answer.later = before.flatten();
            }
            answer
        });
        let base = match question.when {
            When::Range { .. } => None,
            _ => base.and_then(|(_, name)| name),
        };
        l.later_due = put_off;
        if l.answer != answer || l.base != base {
            (l.answer, l.base) = (answer, base);
            self.dirty = true;
        }
    }

    /// Size or selection have changed: asks for the rows that are seen by now.
    pub(super) fn place_leaks(&mut self, session: &Session) {
        let page = self.leaks_rooms().rows;
        let Some(Screen::Leaks(l)) = self.stack.last_mut() else { return };
        let Some(answer) = &l.answer else { return };
        l.cursor.place(answer.len, page);
        if !answer.covers(&(l.cursor.offset()..l.cursor.offset() + page)) {
            self.ask_leaks(session);
        }
    }

    /// The lines of the leaks screen's parts.
    #[must_use]
    pub fn leaks_rooms(&self) -> LeaksRooms {
        LeaksRooms::of(usize::from(self.rooms().body))
    }

    /// What limits growth, the nearest first. A target that is read from a file has no
    /// limits but one that is set.
    #[must_use]
    pub fn limits(&self) -> Vec<Reached> {
        let Screen::Leaks(leaks) = self.shown() else { return Vec::new() };
        let Some(answer) = &leaks.answer else { return Vec::new() };
        // Others than one that is set speak of now.
        let system = self.system.filter(|_| self.question.when == When::Now);
        query::limits(answer, self.limit, system)
    }

    /// What resident memory is made of now.
    #[must_use]
    pub fn resident(&self) -> Resident {
        let now = self.question.when == When::Now && self.file.is_none();
        let memory = self.system.filter(|_| now).unwrap_or_default();
        let (rss, in_use) = (self.summary.rss_bytes, self.summary.in_use);
        let files = match (memory.files, memory.shared) {
            // The agent's own is shared memory.
            (Some(files), Some(shared)) => {
                Some(files + shared.saturating_sub(self.summary.agent_bytes.unwrap_or(0)))
            }
            _ => None,
        };
        let agent = self.summary.agent_bytes.filter(|_| now);
        let rest = rss
            .zip(files)
            .zip(agent)
            .map(|((rss, files), agent)| rss as f64 - files as f64 - agent as f64);
        let unexplained = match (rest, in_use) {
            (Some(rest), Estimate::Exact { value }) => Change::Exact { value: rest - value },
            (Some(rest), Estimate::Interval { value, low, high, samples }) => {
                let (value, low, high) = (rest - value, rest - high, rest - low);
                Change::Interval { value, low, high, samples }
            }
            (Some(rest), Estimate::AtLeast { low, samples }) => {
                Change::AtMost { high: rest - low, samples }
            }
            _ => Change::Unknown,
        };
        Resident { rss, in_use, files, agent, unexplained }
    }

    /// What the system knows of the target's memory has been read.
    pub(super) fn system_is(&mut self, memory: Option<Memory>) {
        self.dirty |= self.system != memory && !self.paused;
        if !self.paused {
            self.system = memory;
        }
    }

    /// Whether somebody looks at what the system knows.
    #[must_use]
    pub fn wants_system(&self) -> bool {
        matches!(self.shown(), Screen::Leaks(_)) && self.file.is_none()
    }

    /// Another time between automatic marks.
    pub(super) fn next_period(&mut self, session: &Session) {
        if !self.can_tell(session) {
            return;
        }
        let at = PERIODS.iter().position(|&p| p == self.automatic.minutes).unwrap_or(0);
        let minutes = PERIODS[(at + 1) % PERIODS.len()];
        self.automatic = Automatic { minutes, asked_ns: session.now_ns() };
        self.say(match minutes {
            0 => "no more automatic marks".into(),
            1 => "a mark every minute, for all viewers".into(),
            _ => format!("a mark every {minutes} minutes, for all viewers"),
        });
    }

    /// Minutes between automatic marks, if there are any.
    #[must_use]
    pub const fn marks_every(&self) -> Option<u64> {
        if self.automatic.minutes > 0 { Some(self.automatic.minutes) } else { None }
    }

    /// A mark, if its time has come.
    pub(super) fn automatic_mark(&mut self, session: &Session) -> Option<Effect> {
        let Automatic { minutes, asked_ns } = self.automatic;
        let connected = *session.connection() == Connection::Connected;
        if minutes == 0 || !connected || self.file.is_some() {
            return None;
        }
        if asked_ns == u64::MAX {
            self.automatic.asked_ns = session.now_ns();
            return None;
        }
        // One by another viewer will do.
        let last = session.marks().iter().rev().find(|mark| mark.label == AUTOMATIC);
        let last = last.map_or(0, |mark| mark.at.time_ns).max(asked_ns);
        if session.now_ns() < last.saturating_add(minutes * MINUTE_NS) {
            return None;
        }
        self.automatic.asked_ns = session.now_ns();
        Some(Effect::Send(SetMark { label: AUTOMATIC.into() }.into()))
    }

    /// The limit that was typed; nothing takes it away. Whether it was understood.
    pub(super) fn set_limit(&mut self, typed: &str) -> bool {
        let typed = typed.trim();
        if typed.is_empty() {
            self.limit = None;
            self.say("no limit is set".into());
            return true;
        }
        match crate::cli::bytes(typed) {
            Ok(bytes) => {
                self.limit = Some(bytes);
                self.dirty = true;
                true
            }
            Err(why) => {
                self.say(format!("{typed} is no limit: {why}"));
                false
            }
        }
    }
}

impl Leaks {
    /// The selected row, if it is held.
    #[must_use]
    pub fn selected(&self) -> Option<&LeakRow> {
        self.answer.as_ref()?.row(self.cursor.index())
    }

    /// Moves the selection.
    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, page: usize) {
        let len = self.answer.as_ref().map_or(0, |answer| answer.len);
        self.cursor.go(to(self.cursor.index()), len, page);
    }

    /// The selection is that of the callsite that is selected, wherever it goes.
    pub(super) fn pin(&mut self) {
        if let Some(key) = self.selected().map(|row| row.key) {
            self.cursor.follow(key.0);
        }
    }
}

/// Lines of the leaks screen's parts, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaksRooms {
    /// What grew, when that reaches a limit, and what resident memory is made of.
    pub summary: usize,
    /// The columns' names.
    pub heading: usize,
    /// Callsites.
    pub rows: usize,
}

impl LeaksRooms {
    /// Lines above the rows.
    #[must_use]
    pub const fn above_rows(self) -> usize {
        self.summary + self.heading
    }

    /// Divides `lines`: rows first.
    #[must_use]
    pub const fn of(lines: usize) -> Self {
        let heading = if lines >= 3 { 1 } else { 0 };
        let summary = match lines {
            0..=4 => 0,
            5..=8 => 2,
            9..=13 => 4,
            _ => 6,
        };
        Self { summary, heading, rows: lines - heading - summary }
    }
}
