//! What messages do to the state.

use std::collections::HashMap;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

use super::cursor::Cursor;
use super::keys::{self, Action};
use super::summary::{Live, Summary};
use super::{App, Callers, Effect, Message, Prompt, Screen, tree};
use crate::export::{self, Request};
use crate::query::{self, Column, Direction, Metric, NodeKey, Question, Row};
use crate::session::Session;

/// Longest filter that is taken, in characters.
const LONGEST_FILTER: usize = 200;
/// What `m` goes through.
const METRICS: [Metric; 6] = [
    Metric::InUseBytes,
    Metric::InUseObjects,
    Metric::AllocatedBytes,
    Metric::AllocatedObjects,
    Metric::PromotedBytes,
    Metric::ShortLivedBytes,
];

impl App {
    /// Takes a message; what comes back is for the terminal loop to do.
    pub fn update(&mut self, message: Message, session: &Session) -> Vec<Effect> {
        match message {
            Message::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
            Message::Key(key) => {
                self.dirty = true;
                self.note = None;
                return self.key(key, session);
            }
            Message::Paste(pasted) => {
                if let Some(prompt) = &mut self.prompt {
                    let room = LONGEST_FILTER.saturating_sub(prompt.input.value().chars().count());
                    for c in pasted.chars().filter(|c| !c.is_control()).take(room) {
                        prompt.input.handle(InputRequest::InsertChar(c));
                    }
                    self.filter_typed(session);
                }
            }
            Message::Resize(columns, rows) => {
                self.dirty |= self.size != (columns, rows);
                self.size = (columns, rows);
            }
            Message::Refresh => self.refresh(session),
            Message::Exported(Ok(path)) => self.say(format!("written: {}", path.display())),
            Message::Exported(Err(why)) => self.say(format!("export failed: {why}")),
            Message::Note(sentence) => self.say(sentence),
        }
        self.settle();
        Vec::new()
    }

    fn say(&mut self, sentence: String) {
        self.note = Some(sentence);
        self.dirty = true;
    }

    fn key(&mut self, key: KeyEvent, session: &Session) -> Vec<Effect> {
        if self.prompt.is_some() {
            let effects = self.prompt_key(key, session);
            self.settle();
            return effects;
        }
        let effects = match keys::action(&key, self.screen().place()) {
            Some(action) => self.act(action, session),
            None => Vec::new(),
        };
        self.settle();
        effects
    }

    fn act(&mut self, action: Action, session: &Session) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Export => return self.export(session),
            Action::Copy => return self.selected_text().map(Effect::Copy).into_iter().collect(),
            Action::Help => {
                if !self.close_help() {
                    self.stack.push(Screen::Help { offset: 0 });
                }
            }
            Action::Callsites => self.to_callsites(session),
            Action::Callers => self.to_callers(session),
            Action::NextScreen => {
                self.close_help();
                if matches!(self.screen(), Screen::Callsites(_)) {
                    self.to_callers(session);
                } else {
                    self.to_callsites(session);
                }
            }
            Action::Up => self.scroll(|i, _| i.saturating_sub(1)),
            Action::Down => self.scroll(|i, _| i.saturating_add(1)),
            Action::PageUp => self.scroll(|i, page| i.saturating_sub(page)),
            Action::PageDown => self.scroll(|i, page| i.saturating_add(page)),
            Action::First => {
                // The first row is a place, not a row: it stays on top.
                match self.cursor() {
                    Some(cursor) => cursor.reset(),
                    None => self.scroll(|_, _| 0),
                }
            }
            Action::Last => self.scroll(|_, _| usize::MAX),
            Action::Left => self.sideways(false),
            Action::Right => self.sideways(true),
            Action::Drill => self.drill(session),
            Action::Back => self.back(session),
            Action::Filter => {
                let before = self.question.filter.clone();
                self.prompt = Some(Prompt { input: Input::new(before.clone()), before });
            }
            Action::SortColumn => {
                let at = self.columns.iter().position(|&c| c == self.question.sort).unwrap_or(0);
                self.question.sort = self.columns[(at + 1) % self.columns.len()];
                // Names from A, figures from the largest.
                self.question.descending = self.question.sort != Column::Callsite;
                self.order_held = false;
                self.ask(session);
            }
            Action::SortDirection => {
                self.question.descending = !self.question.descending;
                self.order_held = false;
                self.ask(session);
            }
            Action::Metric => {
                let at = METRICS.iter().position(|&m| m == self.metric).unwrap_or(0);
                self.metric = METRICS[(at + 1) % METRICS.len()];
                self.say(format!("counting {}", export::metric(self.metric)));
                self.ask(session);
            }
            Action::Invert => {
                if let Some(Screen::Callers(c)) = self.stack.last_mut() {
                    c.direction = match c.direction {
                        Direction::Callers => Direction::Callees,
                        Direction::Callees => Direction::Callers,
                    };
                    c.cursor.reset();
                }
                self.ask(session);
            }
            Action::Pause => self.pause(session),
            Action::Hold => self.order_held = !self.order_held,
            Action::Reset => self.reset(session),
        }
        Vec::new()
    }

    /// What came with the stream, unless the screen is paused.
    fn refresh(&mut self, session: &Session) {
        let live = Live::of(session);
        if live != self.live {
            self.live = live;
            self.dirty = true;
        }
        if !self.paused {
            self.look(session);
        }
    }

    fn look(&mut self, session: &Session) {
        let summary = Summary::of(session);
        if summary != self.summary {
            self.summary = summary;
            self.dirty = true;
        }
        self.ask(session);
    }

    /// Asks the question of the screen that is shown, or lies under the help.
    fn ask(&mut self, session: &Session) {
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
            _ => {
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
    fn settle(&mut self) {
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

    fn scroll(&mut self, to: impl Fn(usize, usize) -> usize) {
        let page = usize::from(self.rooms().body).max(1);
        let rows = self.table.as_ref().map_or(&[][..], |t| &t.rows);
        match self.stack.last_mut() {
            Some(Screen::Callsites(c)) => {
                c.select(to(c.index(), page), rows.len(), |i| rows[i].key.0, page);
            }
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, .. } = &mut **c;
                cursor.select(to(cursor.index(), page), rows.len(), |i| rows[i].path, page);
            }
            Some(Screen::Help { offset }) => *offset = to(*offset, page),
            None => {}
        }
    }

    fn cursor(&mut self) -> Option<&mut Cursor> {
        match self.stack.last_mut()? {
            Screen::Callsites(cursor) => Some(cursor),
            Screen::Callers(c) => Some(&mut c.cursor),
            Screen::Help { .. } => None,
        }
    }

    /// Left and right: columns of the table, branches of the tree.
    fn sideways(&mut self, right: bool) {
        let page = usize::from(self.rooms().body);
        let last = self.columns.len().saturating_sub(2);
        match self.stack.last_mut() {
            Some(Screen::Callsites(_)) if right => {
                self.passed_over = (self.passed_over + 1).min(last);
            }
            Some(Screen::Callsites(_)) => self.passed_over = self.passed_over.saturating_sub(1),
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, opened, tree, .. } = &mut **c;
                let at = cursor.index();
                let Some(row) = rows.get(at) else { return };
                if row.branches && row.open != right {
                    opened.insert(row.path, right);
                    *rows = tree.as_ref().map(|t| tree::rows(t, opened)).unwrap_or_default();
                    // The selection is this row's from now on.
                    cursor.select(at, rows.len(), |i| rows[i].path, page);
                } else {
                    let to = if !right {
                        row.parent
                    } else if row.branches {
                        at + 1
                    } else {
                        at
                    };
                    cursor.select(to, rows.len(), |i| rows[i].path, page);
                }
            }
            Some(Screen::Help { .. }) | None => {}
        }
    }

    fn close_help(&mut self) -> bool {
        let open = matches!(self.screen(), Screen::Help { .. });
        if open {
            self.stack.pop();
        }
        open
    }

    fn to_callsites(&mut self, session: &Session) {
        self.close_help();
        if self.stack.len() > 1 {
            self.aside = self.stack.split_off(1);
        }
        self.come_back(session);
    }

    fn to_callers(&mut self, session: &Session) {
        self.close_help();
        if self.stack.len() > 1 {
            return;
        }
        if self.aside.is_empty() {
            self.drill(session);
        } else {
            self.stack.append(&mut self.aside);
            self.come_back(session);
        }
    }

    /// A screen that was covered is on top again: what it holds is old, unless
    /// the screen is paused and it has its answer.
    fn come_back(&mut self, session: &Session) {
        if self.paused {
            self.export = Some(Box::new(self.request(session)));
        } else {
            self.ask(session);
        }
    }

    fn selected_row(&self) -> Option<&Row> {
        match self.screen() {
            Screen::Callsites(cursor) => self.table.as_ref()?.rows.get(cursor.index()),
            _ => None,
        }
    }

    fn drill(&mut self, session: &Session) {
        let next = match self.screen() {
            Screen::Callsites(_) => self
                .selected_row()
                .map(|row| Callers::of(vec![row.key], vec![row.label.clone()], Direction::Callers)),
            Screen::Callers(c) => c.drilled(c.cursor.index()),
            Screen::Help { .. } => None,
        };
        if let Some(next) = next {
            self.aside.clear();
            self.stack.push(Screen::Callers(Box::new(next)));
            self.ask(session);
        }
    }

    fn back(&mut self, session: &Session) {
        if self.stack.len() > 1 {
            let was_help = self.close_help();
            if !was_help {
                self.stack.pop();
                self.come_back(session);
            }
        } else if !self.question.filter.is_empty() {
            self.question.filter.clear();
            self.ask(session);
        }
    }

    fn pause(&mut self, session: &Session) {
        self.paused = !self.paused;
        self.export = None;
        // Either way the figures of this moment: those that are held, or the next.
        self.look(session);
    }

    fn reset(&mut self, session: &Session) {
        self.question = Question::default();
        self.passed_over = 0;
        self.metric = Metric::InUseBytes;
        self.order_held = false;
        self.paused = false;
        self.export = None;
        if let Some(cursor) = self.cursor() {
            cursor.reset();
        }
        if let Some(Screen::Callers(c)) = self.stack.last_mut() {
            c.direction = Direction::Callers;
            c.opened.clear();
        }
        self.look(session);
    }

    fn prompt_key(&mut self, key: KeyEvent, session: &Session) -> Vec<Effect> {
        let Some(prompt) = &mut self.prompt else { return Vec::new() };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return vec![Effect::Quit],
            KeyCode::Char('z') if control => return vec![Effect::Suspend],
            KeyCode::Enter => self.prompt = None,
            KeyCode::Esc => {
                self.question.filter = std::mem::take(&mut prompt.before);
                self.prompt = None;
                self.ask(session);
            }
            KeyCode::Char(_)
                if !control && prompt.input.value().chars().count() >= LONGEST_FILTER => {}
            _ => {
                prompt.input.handle_event(&Event::Key(key));
                self.filter_typed(session);
            }
        }
        Vec::new()
    }

    /// The filter works while it is typed.
    fn filter_typed(&mut self, session: &Session) {
        self.dirty = true;
        if let Some(prompt) = &self.prompt
            && prompt.input.value() != self.question.filter
        {
            self.question.filter = prompt.input.value().to_owned();
            self.ask(session);
        }
    }

    fn export(&mut self, session: &Session) -> Vec<Effect> {
        let request = match &self.export {
            Some(held) => held.clone(),
            None => {
                // What is exported is what is seen.
                self.look(session);
                Box::new(self.request(session))
            }
        };
        self.say(format!("exporting {}…", export::metric(self.metric)));
        vec![Effect::Export(request)]
    }

    fn request(&self, session: &Session) -> Request {
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
            total: whole.map_or(crate::session::figures::Estimate::Unknown, |n| n.cum),
            interval_bytes: self.summary.interval_bytes,
            uptime_minutes: self.summary.uptime_minutes.unwrap_or(0),
            lost: self.live.lost(),
            stacks: query::stacks(session, focus, self.metric, filter),
        }
    }

    /// The list that is shown, or lies under the help.
    fn shown(&self) -> &Screen {
        self.stack.iter().rev().find(|s| !matches!(s, Screen::Help { .. })).unwrap_or(&Screen::NONE)
    }

    fn selected_text(&self) -> Option<String> {
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
