//! What is asked of the session: the content of the screens, and of exports.

use super::keys::Place;
use super::summary::{Live, Summary};
use super::{App, Callers, Screen, tree};
use crate::export;
use crate::query::{self, Callsites, Column, NodeKey};
use crate::session::estimate::precision::Finer;
use crate::session::{Connection, Session};
use crate::view;
use crate::view::format::{self, Rounding};

/// So many rows around those that are seen are asked for: figures take longer to make than
/// all else, and what is scrolled to is asked for when it comes into sight.
pub(super) const AROUND: usize = 8;
/// So many lives and blocks are gone through at once for a moment of the past: about 20 ms.
/// Keys are heard in between.
pub(super) const SLICE: usize = 1 << 15;

impl App {
    /// How far the moment is that is asked for, in percent; `None`: it is shown. Meanwhile
    /// [`super::Message::GoOn`] is wanted.
    #[must_use]
    pub const fn under_way(&self) -> Option<u8> {
        self.under_way
    }

    /// Whether what is on the screen may have changed since the last time this
    /// was asked.
    pub const fn take_dirty(&mut self) -> bool {
        std::mem::replace(&mut self.dirty, false)
    }

    /// What came with the stream, unless the screen is paused.
    pub(super) fn refresh(&mut self, session: &Session) {
        let revision = Some(session.revision());
        if std::mem::replace(&mut self.revision, revision) == revision {
            return;
        }
        let live = Live::of(session);
        if live != self.live {
            // All viewers are told of a mark. Those before heaptop came are no news.
            let since = session.hello().map_or(0, |hello| hello.uptime_ns);
            if let Some((label, minutes)) = live.news_after(&self.live, since)
                && label != query::AUTOMATIC
                && (self.awaited_mark(label) || live.trouble(None).is_none())
            {
                let when = format::uptime(minutes);
                // The log has it from the session.
                self.note = Some(format!("marked “{label}”, up {when}"));
                self.dirty = true;
            }
            self.live = live;
            self.dirty = true;
        }
        self.see_outcomes(session);
        if !self.paused {
            self.look(session);
        }
        session.look_ahead();
    }

    pub(super) fn look(&mut self, session: &Session) {
        let when = self.times.when(session.span());
        let under_way = query::make_ahead(session, &self.asked_next(when), SLICE);
        self.dirty |= self.under_way != under_way;
        self.under_way = under_way;
        if under_way.is_some() {
            // The moment before stands until this one is added up.
            return;
        }
        self.question.when = when;
        let summary = Summary::of(session, self.question.when);
        if summary != self.summary {
            self.summary = summary;
            self.dirty = true;
        }
        self.ask(session);
    }

    /// What is asked of a moment, as far as it is added up ahead.
    fn asked_next(&self, when: query::When) -> query::Question {
        let callsites = matches!(self.stack.first(), Some(Screen::Callsites(_)));
        let question = self.question.clone();
        query::Question {
            when,
            group: if callsites { question.group } else { query::Grouping::Callsite },
            growth_from_ns: question.growth_from_ns.filter(|_| callsites),
            ..question
        }
    }

    /// Asks the question of the screen that is shown, or lies under the help.
    pub(super) fn ask(&mut self, session: &Session) {
        match self.shown() {
            Screen::Callers(_) => self.ask_callers(session),
            Screen::Details(_) => self.ask_details(session),
            // Nothing of the session's is shown.
            Screen::Targets(_) => {}
            _ => self.ask_lowest(session),
        }
        if self.paused {
            self.export = Some(Box::new(self.exported(session)));
        }
        self.settle(session);
    }

    /// Asks the question of the lowest screen.
    pub(super) fn ask_lowest(&mut self, session: &Session) {
        match self.stack.first().map(Screen::place) {
            Some(Place::Flame) => self.ask_flame(session),
            Some(Place::Timeline) => self.ask_timeline(session),
            Some(Place::Promotion) => self.ask_promotion(session),
            Some(Place::Leaks) => self.ask_leaks(session),
            Some(Place::Threads) => self.ask_threads(session),
            Some(Place::Source) => self.ask_source(session),
            Some(Place::Log) => self.ask_log(session),
            _ => self.ask_callsites(session),
        }
    }

    /// Whether the screen on top holds an answer.
    pub(super) fn has_answer(&self) -> bool {
        match self.shown() {
            Screen::Callsites(_) => self.table.is_some(),
            Screen::Callers(c) => c.tree.is_some(),
            Screen::Flame(f) => f.answer.is_some(),
            Screen::Timeline(t) => t.answer.is_some(),
            Screen::Promotion(p) => p.answer.is_some(),
            Screen::Leaks(l) => l.answer.is_some(),
            Screen::Threads(t) => t.rows.is_some(),
            Screen::Source(s) => s.lines.is_some(),
            Screen::Log(l) => l.lines.is_some(),
            Screen::Details(d) => d.answer.is_some(),
            Screen::Targets(_)
            | Screen::Columns { .. }
            | Screen::Export(_)
            | Screen::Help { .. } => true,
        }
    }

    /// Screens that are not shown forget their answers: a paused screen asks them as of
    /// when it is first shown.
    pub(super) fn forget(&mut self) {
        if self.lowest.iter().any(|screen| matches!(screen, Screen::Callsites(_))) {
            self.table = None;
        }
        for screen in &mut self.lowest {
            match screen {
                Screen::Flame(f) => f.answer = None,
                Screen::Timeline(t) => t.answer = None,
                Screen::Promotion(p) => p.answer = None,
                Screen::Leaks(l) => l.answer = None,
                Screen::Threads(t) => t.rows = None,
                Screen::Source(s) => s.lines = None,
                Screen::Log(l) => l.lines = None,
                Screen::Details(_)
                | Screen::Callsites(_)
                | Screen::Callers(_)
                | Screen::Columns { .. }
                | Screen::Export(_)
                | Screen::Targets(_)
                | Screen::Help { .. } => {}
            }
        }
    }

    fn ask_callers(&mut self, session: &Session) {
        let (held, paused, metric) = (self.order_held, self.paused, self.metric);
        let shown = self.stack.iter_mut().rev().find(|s| s.is_list());
        let Some(Screen::Callers(c)) = shown else { return };
        let question = &self.question;
        let filter = &question.filter;
        let Callers { focus, direction, opened, .. } = &mut **c;
        // What is held must be there when a branch is opened later.
        let open = |b| paused | tree::is_open(opened, b);
        let mut answer =
            query::tree(session, question.when, focus, *direction, metric, filter, open);
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
        let Callers { tree, rows, opened, .. } = &mut **c;
        *rows = tree.as_ref().map(|t| tree::rows(t, opened)).unwrap_or_default();
    }

    /// Asks for the rows that are seen and some around them; for all of them when
    /// the screen is paused, since they are held.
    pub(super) fn ask_callsites(&mut self, session: &Session) {
        self.question.growth_from_ns = self.growth_from(session);
        let mut list = Callsites::ask(session, &self.question);
        if self.order_held {
            list.hold(&mut self.order);
        }
        let page = usize::from(self.rooms().body);
        let mut wanted = 0..list.len();
        if let Some(Screen::Callsites(cursor)) = self.stack.first_mut() {
            cursor.settle(list.len(), |id| list.position(NodeKey(id)), page);
            if !self.paused {
                let first = cursor.offset();
                wanted = first.saturating_sub(AROUND)..first + page + AROUND;
            }
        }
        let answer = list.table(wanted);
        if self.table.as_ref() != Some(&answer) {
            self.dirty = true;
            self.table = Some(answer);
        }
    }

    /// Size or selection have changed: puts the selection right, and asks for the
    /// rows that are seen by now.
    pub(super) fn settle(&mut self, session: &Session) {
        self.place(session);
        self.follow_pane();
        self.take_hint(session);
    }

    /// The hint for the selected row. On a paused screen it stands still with it.
    fn take_hint(&mut self, session: &Session) {
        let key = self.selected_row().map(|row| row.key);
        let same = self.hint.as_ref().map(|(key, _)| *key) == key;
        if self.paused && same {
            return;
        }
        // Nothing more comes of what is over.
        let key = key.filter(|_| *session.connection() == Connection::Connected);
        let hint = key.and_then(|key| Some((key, hint(&query::finer(session, key)?, session)?)));
        self.dirty |= hint != self.hint;
        self.hint = hint;
    }

    fn place(&mut self, session: &Session) {
        let page = usize::from(self.rooms().body);
        let width = self.size.0;
        let help_lines = self.help().map_or(0, |help| help.lines.len());
        match self.stack.last_mut() {
            Some(Screen::Callsites(cursor)) => {
                let Some(table) = &self.table else { return };
                cursor.place(table.len, page);
                if !table.covers(&(cursor.offset()..cursor.offset() + page)) {
                    self.ask_callsites(session);
                }
            }
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, .. } = &mut **c;
                let at = cursor.index();
                let find = |path: u64| {
                    let here = rows.get(at).is_some_and(|row| row.path == path);
                    if here { Some(at) } else { rows.iter().position(|row| row.path == path) }
                };
                cursor.settle(rows.len(), find, page);
            }
            Some(Screen::Columns { cursor }) => cursor.place(Column::ALL.len() - 1, page),
            Some(Screen::Export(menu)) => menu.cursor.place(menu.formats().len(), page),
            Some(Screen::Targets(targets)) => targets.place(page),
            Some(Screen::Flame(_)) => self.place_flame(),
            Some(Screen::Promotion(_)) => self.place_promotion(session),
            Some(Screen::Leaks(_)) => self.place_leaks(session),
            Some(Screen::Threads(_)) => self.place_threads(),
            Some(Screen::Details(d)) => {
                let lines = view::details::lines(d, width).len();
                d.offset = d.offset.min(lines.saturating_sub(page));
            }
            Some(Screen::Help { offset }) => {
                *offset = (*offset).min(help_lines.saturating_sub(page));
            }
            Some(Screen::Timeline(t)) => t.settle(),
            Some(Screen::Source(s)) => s.settle(page),
            Some(Screen::Log(_)) | None => {}
        }
    }

    /// The help of the screen that lies under it; `None`: it is not shown.
    #[must_use]
    pub fn help(&self) -> Option<view::help::Help> {
        let [.., under, Screen::Help { .. }] = &self.stack[..] else { return None };
        Some(view::help::help(self.keymap(), under.place(), self.size.0))
    }

    /// The list that is shown, or lies under the help.
    pub(super) fn shown(&self) -> &Screen {
        self.stack.iter().rev().find(|s| s.is_list()).unwrap_or(&Screen::NONE)
    }

    pub(super) fn selected_text(&self) -> Option<String> {
        match self.screen() {
            Screen::Callsites(_) => self.selected_row().map(export::row_text),
            Screen::Callers(c) => c
                .rows
                .get(c.cursor.index())
                .map(|row| export::node_text(&row.label, &row.cum, &row.flat, self.metric)),
            Screen::Flame(f) => f
                .selected()
                .map(|bar| export::node_text(&bar.label, &bar.cum, &bar.flat, self.metric)),
            Screen::Promotion(p) => p.selected().map(export::promotion_text),
            Screen::Leaks(l) => l.selected().map(export::leak_text),
            Screen::Threads(t) => t.selected().map(export::thread_text),
            Screen::Timeline(t) => t.selected().map(export::series_text),
            Screen::Source(s) => s
                .figures(s.line)
                .map(|line| export::node_text(&line.label, &line.cum, &line.flat, self.metric)),
            Screen::Log(_)
            | Screen::Details(_)
            | Screen::Columns { .. }
            | Screen::Export(_)
            | Screen::Targets(_)
            | Screen::Help { .. } => None,
        }
    }
}

/// "finer: R 64 KiB, ~40 s to ±10 %".
fn hint(finer: &Finer, session: &Session) -> Option<String> {
    // Who waits so long has other questions.
    const LONGEST_SECONDS: f64 = 86_400.0;
    let now = session.status()?.interval;
    if finer.seconds > LONGEST_SECONDS {
        return None;
    }
    let time = format::duration(finer.seconds.max(1.0) * 1e9, 1, Rounding::Up);
    let within = (finer.within * 100.0).round();
    Some(if finer.interval == now {
        format!("±{within} % in ~{time} at this R")
    } else {
        let bytes = format::bytes(f64::from(finer.interval.bytes()), 3, Rounding::Nearest);
        let bytes = bytes.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1);
        format!("finer: R {bytes}, ~{time} to ±{within} %")
    })
}
