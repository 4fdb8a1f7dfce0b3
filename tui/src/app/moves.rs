//! Moving about: rows, branches, screens.

use super::cursor::Cursor;
use super::keys::{Action, Place, TABS};
use super::{App, Callers, Screen, tree};
use crate::query::{Column, Direction, Grouping, Label, NodeKey, Row};
use crate::session::Session;
use crate::view;

impl App {
    /// Along the rows.
    pub(super) fn move_along(&mut self, action: Action, session: &Session) {
        match action {
            Action::Up => self.scroll(|i, _| i.saturating_sub(1), session),
            Action::Down => self.scroll(|i, _| i.saturating_add(1), session),
            Action::PageUp => self.scroll(usize::saturating_sub, session),
            Action::PageDown => self.scroll(usize::saturating_add, session),
            Action::Last => self.scroll(|_, _| usize::MAX, session),
            // The first row is a place, not a row: it stays on top.
            _ => match self.cursor() {
                Some(cursor) => cursor.reset(),
                None => self.scroll(|_, _| 0, session),
            },
        }
    }

    pub(super) fn scroll(&mut self, to: impl Fn(usize, usize) -> usize, session: &Session) {
        let page = usize::from(self.rooms().body).max(1);
        let leaks_page = self.leaks_rooms().rows.max(1);
        match self.stack.last_mut() {
            Some(Screen::Callsites(cursor)) => {
                let Some(table) = &self.table else { return };
                cursor.go(to(cursor.index(), page), table.len, page);
                self.settle(session);
                self.pin();
            }
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, .. } = &mut **c;
                cursor.select(to(cursor.index(), page), rows.len(), |i| rows[i].path, page);
            }
            Some(Screen::Flame(f)) => {
                let last = f.rows().saturating_sub(1);
                let row = f.selected().map_or(0, |bar| bar.row);
                let at = if f.upward { last - row.min(last) } else { row };
                let to = to(at, page).min(last);
                f.climb((to > at) != f.upward, to.abs_diff(at), page);
            }
            Some(Screen::Columns { cursor }) => {
                let len = Column::ALL.len() - 1;
                cursor.go(to(cursor.index(), page), len, page);
            }
            Some(Screen::Export(menu)) => {
                let len = menu.formats().len();
                let page = view::export::rows(len, page);
                menu.cursor.go(to(menu.cursor.index(), page), len, page);
            }
            Some(Screen::Targets(targets)) => targets.scroll(|at| to(at, page), page),
            Some(Screen::Promotion(p)) => {
                p.scroll(|at| to(at, page), page);
                self.settle(session);
                if let Some(Screen::Promotion(p)) = self.stack.last_mut() {
                    p.pin();
                }
            }
            Some(Screen::Leaks(l)) => {
                l.scroll(|at| to(at, leaks_page), leaks_page);
                self.settle(session);
                if let Some(Screen::Leaks(l)) = self.stack.last_mut() {
                    l.pin();
                }
            }
            Some(Screen::Details(d)) => d.offset = to(d.offset, page),
            Some(Screen::Threads(t)) => t.scroll(|at| to(at, page), page),
            Some(Screen::Source(s)) => s.scroll(|at| to(at, page), page),
            Some(Screen::Log(l)) => l.scroll(|at| to(at, page), self.size.0, page),
            Some(Screen::Help { offset }) => *offset = to(*offset, page),
            Some(Screen::Timeline(t)) => t.scroll(|at| to(at, page)),
            None => {}
        }
    }

    /// The selection is that of the callsite that is selected, wherever it goes.
    fn pin(&mut self) {
        let key = self.selected_row().map(|row| row.key);
        if let (Some(key), Some(cursor)) = (key, self.cursor()) {
            cursor.follow(key.0);
        }
    }

    pub(super) fn cursor(&mut self) -> Option<&mut Cursor> {
        match self.stack.last_mut()? {
            Screen::Callsites(cursor) | Screen::Columns { cursor } => Some(cursor),
            Screen::Export(menu) => Some(&mut menu.cursor),
            Screen::Targets(targets) => Some(&mut targets.cursor),
            Screen::Callers(c) => Some(&mut c.cursor),
            Screen::Promotion(p) => Some(&mut p.cursor),
            Screen::Leaks(l) => Some(&mut l.cursor),
            Screen::Threads(t) => Some(&mut t.cursor),
            Screen::Timeline(t) => Some(&mut t.cursor),
            Screen::Flame(_)
            | Screen::Source(_)
            | Screen::Log(_)
            | Screen::Details(_)
            | Screen::Help { .. } => None,
        }
    }

    /// Left and right: columns of the table, branches of the tree.
    pub(super) fn sideways(&mut self, right: bool, session: &Session) {
        let page = usize::from(self.rooms().body);
        let last = self.columns.len().saturating_sub(2);
        let parts = self.help().map_or_else(Vec::new, |help| help.parts);
        match self.stack.last_mut() {
            Some(Screen::Callsites(_)) if right => {
                self.passed_over = (self.passed_over + 1).min(last);
            }
            Some(Screen::Callsites(_)) => self.passed_over = self.passed_over.saturating_sub(1),
            Some(Screen::Flame(f)) => f.along(right, page),
            Some(Screen::Help { offset }) => {
                let part = if right {
                    parts.iter().find(|part| **part > *offset)
                } else {
                    parts.iter().rev().find(|part| **part < *offset)
                };
                // Before the first part stands what can be gone through.
                *offset = part.copied().unwrap_or(if right { *offset } else { 0 });
            }
            Some(Screen::Callers(c)) => {
                let Callers { rows, cursor, opened, tree, .. } = &mut **c;
                let at = cursor.index();
                let Some(row) = rows.get(at) else { return };
                if row.branches && row.open != right {
                    opened.insert(row.path, right);
                    // The selection is this row's from now on.
                    cursor.follow(row.path);
                    if self.paused || !right {
                        *rows = tree.as_ref().map(|t| tree::rows(t, opened)).unwrap_or_default();
                    } else {
                        self.ask(session);
                    }
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
            Some(
                Screen::Timeline(_)
                | Screen::Promotion(_)
                | Screen::Leaks(_)
                | Screen::Threads(_)
                | Screen::Source(_)
                | Screen::Log(_)
                | Screen::Details(_)
                | Screen::Columns { .. }
                | Screen::Export(_)
                | Screen::Targets(_),
            )
            | None => {}
        }
    }

    pub(super) fn close_help(&mut self) -> bool {
        let open = matches!(self.screen(), Screen::Help { .. });
        if open {
            self.stack.pop();
        }
        open
    }

    /// Closes what lies above the screens that have a number. Without a target there are none
    /// to go to, and that is said.
    fn close_above(&mut self) -> bool {
        self.close_help();
        if self.unattached {
            self.say("choose a target first".into());
            return false;
        }
        self.close_columns();
        self.close_export();
        self.close_targets();
        true
    }

    /// To a screen that has a number.
    pub(super) fn go_to(&mut self, place: Place, session: &Session) {
        if !self.close_above() {
            return;
        }
        if place == Place::Callers {
            return self.go_to_callers(session);
        }
        // Of the source it is the file of what is selected here, or was among the callsites.
        let selected = self.selected_node();
        let among = self.selected_among_callsites().map(|(key, _)| key);
        if self.stack.len() > 1 {
            self.aside = self.stack.split_off(1);
        }
        let wanted = self.lowest.iter_mut().find(|screen| screen.place() == place);
        if let (Some(wanted), Some(shown)) = (wanted, self.stack.first_mut()) {
            std::mem::swap(wanted, shown);
        }
        if place == Place::Source {
            let has_none =
                matches!(self.stack.first(), Some(Screen::Source(s)) if s.file.is_none());
            self.open_source(selected.or(among.filter(|_| has_none)), session);
        }
        self.come_back(session);
    }

    /// To the next of the screens that have a number, or to the one before.
    pub(super) fn go_along(&mut self, forward: bool, session: &Session) {
        if !self.close_above() {
            return;
        }
        let from = self.screen().place();
        let at = TABS.iter().position(|tab| tab.place == from).unwrap_or(0);
        let step = if forward { 1 } else { TABS.len() - 1 };
        for steps in 1..TABS.len() {
            let to = TABS[(at + steps * step) % TABS.len()].place;
            self.go_to(to, session);
            // There are no callers where there are no callsites.
            if self.screen().place() == to {
                break;
            }
        }
    }

    /// To the callers of what is selected here, a callsite, frame or line: those that were
    /// left, if they are. Where nothing is selected those that were left are come back to; of
    /// what they are, they say.
    fn go_to_callers(&mut self, session: &Session) {
        if matches!(self.screen(), Screen::Details(_)) {
            // They lie above it: the way back is the way they were come by.
            return self.drill(session);
        }
        if self.stack.len() > 1 {
            return;
        }
        let selected = match self.screen() {
            Screen::Source(s) => s.figures(s.line).map(|line| line.key),
            _ => self.selected_node(),
        };
        let left = match self.aside.first() {
            Some(Screen::Callers(c)) => c.focus.first().copied(),
            _ => None,
        };
        if left.is_some() && (selected.is_none() || selected == left) {
            // Details that were looked at above them are no callers.
            self.aside.retain(|screen| matches!(screen, Screen::Callers(_)));
            self.stack.append(&mut self.aside);
            self.come_back(session);
        } else {
            match self.screen() {
                // There the key for it does something else.
                Screen::Flame(_) | Screen::Threads(_) | Screen::Log(_) => {
                    self.drill_elsewhere(session);
                }
                _ => self.drill(session),
            }
        }
    }

    /// To the callers of the selected frame, or else of what was selected among the
    /// callsites.
    fn drill_elsewhere(&mut self, session: &Session) {
        let frame = match self.screen() {
            Screen::Flame(f) => f.selected().map(|bar| (bar.key, bar.label.clone())),
            _ => None,
        };
        let frame = frame.filter(|(key, _)| ![NodeKey::ALL, NodeKey::SMALLER].contains(key));
        let Some((key, label)) = frame.or_else(|| self.selected_among_callsites()) else {
            let list = Action::Go(Place::Callsites);
            return self.say(self.with_key("select a callsite first", list, "lists them"));
        };
        let next = Callers::of(vec![key], vec![label], Direction::Callers);
        self.aside.clear();
        self.stack.push(Screen::Callers(Box::new(next)));
        self.ask(session);
    }

    /// What was selected on the screen of callsites, from another one.
    fn selected_among_callsites(&self) -> Option<(NodeKey, Label)> {
        let cursor = self.lowest.iter().find_map(|screen| match screen {
            Screen::Callsites(cursor) => Some(cursor),
            _ => None,
        });
        // A class of callsites has no callers of its own.
        let table = self.table.as_ref().filter(|_| self.question.group == Grouping::Callsite);
        table?.row(cursor?.index()).map(|row| (row.key, row.label.clone()))
    }

    /// A screen that was covered is on top again: what it holds is old, unless
    /// the screen is paused and it has its answer.
    pub(super) fn come_back(&mut self, session: &Session) {
        if self.paused && self.has_answer() {
            self.export = Some(Box::new(self.exported(session)));
        } else {
            self.look(session);
        }
    }

    /// The callsite that is selected here.
    pub(super) fn selected(&self) -> Option<(NodeKey, Label)> {
        match self.screen() {
            // A class of callsites has no callers of its own.
            Screen::Callsites(_) if self.question.group != Grouping::Callsite => None,
            Screen::Callsites(_) => self.selected_row().map(|row| (row.key, row.label.clone())),
            Screen::Promotion(p) => p.selected().map(|row| (row.key, row.label.clone())),
            Screen::Leaks(l) => l.selected().map(|row| (row.key, row.label.clone())),
            Screen::Details(d) => Some((d.key, d.label.clone())),
            Screen::Timeline(t) => t.selected().map(|s| (s.key, s.label.clone())),
            Screen::Callers(_)
            | Screen::Flame(_)
            | Screen::Threads(_)
            | Screen::Source(_)
            | Screen::Log(_)
            | Screen::Columns { .. }
            | Screen::Export(_)
            | Screen::Targets(_)
            | Screen::Help { .. } => None,
        }
    }

    /// The node that is selected here: a callsite, or a frame.
    pub(super) fn selected_node(&self) -> Option<NodeKey> {
        match self.screen() {
            Screen::Callers(c) => c.rows.get(c.cursor.index()).map(|row| row.key),
            Screen::Flame(f) => f.selected().map(|bar| bar.key),
            _ => self.selected().map(|(key, _)| key),
        }
        .filter(|key| ![NodeKey::ALL, NodeKey::SMALLER].contains(key))
    }

    pub(super) fn selected_row(&self) -> Option<&Row> {
        match self.screen() {
            Screen::Callsites(cursor) => self.table.as_ref()?.row(cursor.index()),
            _ => None,
        }
    }

    pub(super) fn drill(&mut self, session: &Session) {
        if matches!(self.screen(), Screen::Callsites(_))
            && self.question.group != Grouping::Callsite
        {
            return self.go_into(session);
        }
        match self.screen() {
            Screen::Flame(_) => return self.zoom_in(session),
            Screen::Source(_) => return self.drill_line(session),
            Screen::Threads(_) => return self.go_into_thread(session),
            _ => {}
        }
        let next = match self.screen() {
            Screen::Callers(c) => c.drilled(c.cursor.index()),
            Screen::Targets(_)
            | Screen::Columns { .. }
            | Screen::Export(_)
            | Screen::Help { .. } => None,
            _ => self
                .selected()
                .map(|(key, label)| Callers::of(vec![key], vec![label], Direction::Callers)),
        };
        match (next, self.screen()) {
            (Some(next), _) => {
                self.aside.clear();
                self.stack.push(Screen::Callers(Box::new(next)));
                self.ask(session);
            }
            (None, Screen::Callers(c)) => {
                let smaller = c.rows.get(c.cursor.index()).map(|row| row.key);
                self.say(if smaller == Some(NodeKey::SMALLER) {
                    "these are many frames, each of little: none of them can be the focus".into()
                } else {
                    self.with_key("this is the focus", Action::Back, "goes back")
                });
            }
            _ => {}
        }
    }

    /// The callsites of the selected class.
    fn go_into(&mut self, session: &Session) {
        let row = self.selected_row().map(|row| (row.key, row.label.function.clone()));
        let Some((key, name)) = row else { return };
        let Some(together) = self.question.group.together() else {
            let said = "sizes and threads have no callers";
            return self.say(self.with_key(said, Action::Group, "groups by the next"));
        };
        self.left_group = Some((self.question.group, key, name));
        self.group_by(Grouping::Callsite, session);
        self.question.within = Some((together, key));
        self.ask(session);
    }

    /// Back to the classes, if one was gone into.
    fn leave_class(&mut self, session: &Session) -> bool {
        let Some((group, key, _)) = self.left_group.take() else { return false };
        if self.question.within.is_none() {
            return false;
        }
        self.group_by(group, session);
        if let Some(cursor) = self.cursor() {
            cursor.follow(key.0);
        }
        self.ask(session);
        true
    }

    pub(super) fn back(&mut self, session: &Session) {
        if self.close_columns() || self.close_export() {
            return self.come_back(session);
        }
        let alone = self.stack.len() == 1;
        if alone
            && (self.zoom_out(session) || self.leave_class(session) || self.find_nothing(session))
        {
            return;
        }
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
}
