//! The mouse: what lies where it is pressed, dragged or turned.
//!
//! Whatever the screen: a name of a screen in the title goes there; on the time bar, and on
//! the timeline's charts, a press is a moment, a drag a range, and the wheel steps; a heading
//! sorts by its column, once more the other way round; a row is selected; elsewhere the wheel
//! goes along the rows. Once more on a target that is selected attaches to it.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::keys::{Action, TimeKey};
use super::{App, Effect, Screen};
use crate::query::Column;
use crate::session::Session;
use crate::view;

/// Rows that a turn of the wheel goes along.
const LINES: usize = 3;

impl App {
    /// See the module.
    pub(super) fn mouse(&mut self, event: MouseEvent, session: &Session) -> Vec<Effect> {
        let place = (event.column, event.row);
        let mut effects = Vec::new();
        match event.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                self.turn(event.kind == MouseEventKind::ScrollUp, place, session);
            }
            MouseEventKind::Down(MouseButton::Left) if self.selected_target_at(place) => {
                effects = self.attach(session);
            }
            MouseEventKind::Down(MouseButton::Left) => self.press(place, session),
            MouseEventKind::Drag(MouseButton::Left) => self.drag(place, session),
            MouseEventKind::Up(_) => {
                self.pressed_ns = None;
                return effects;
            }
            _ => return effects,
        }
        self.dirty = true;
        effects
    }

    /// Whether it is the selected one of the targets that can be attached to.
    fn selected_target_at(&self, (_, y): (u16, u16)) -> bool {
        let Screen::Targets(targets) = self.screen() else { return false };
        let rooms = self.rooms();
        let row = y.checked_sub(rooms.above_body()).filter(|row| *row < rooms.body);
        let (rows, _) = targets.counts();
        let (at, first) = (targets.cursor.index(), targets.cursor.offset());
        at < rows && row.is_some_and(|row| first + usize::from(row) == at)
    }

    fn turn(&mut self, up: bool, (x, y): (u16, u16), session: &Session) {
        let chart = matches!(self.screen(), Screen::Timeline(_))
            && self.timeline_layout().column_at(x, y).is_some();
        if chart || self.is_time_bar(y) {
            let key = if up { TimeKey::Later } else { TimeKey::Earlier };
            return self.travel(session, |times, span| times.act(key, span));
        }
        if up {
            self.scroll(|i, _| i.saturating_sub(LINES), session);
        } else {
            self.scroll(|i, _| i.saturating_add(LINES), session);
        }
    }

    /// Whether the pane of details, where there is one, lies on this line.
    fn is_beside_rows(&self, y: u16) -> bool {
        let rooms = self.rooms();
        let below = rooms.above_body() + rooms.body + rooms.total;
        (rooms.above_body() - rooms.heading..below).contains(&y)
    }

    fn is_time_bar(&self, y: u16) -> bool {
        let rooms = self.rooms();
        let above = rooms.title + rooms.figures;
        (above..above + rooms.curve).contains(&y)
    }

    fn press(&mut self, (x, y): (u16, u16), session: &Session) {
        self.pressed_ns = None;
        let rooms = self.rooms();
        if y < rooms.title {
            if let Some(place) = view::header::tab_at(self, x, self.size.0) {
                self.go_to(place, session);
                self.settle(session);
            }
            return;
        }
        let pane = self.pane_columns() > 0 && x >= self.list_columns();
        if pane && self.screen().is_list() && self.is_beside_rows(y) {
            return self.open_details(session);
        }
        if self.is_time_bar(y) {
            if let Some(at) = view::timebar::time_at(self, x, self.size.0) {
                self.pressed_ns = Some(at);
                self.point_at(at, session);
            }
            return;
        }
        if let Screen::Timeline(_) = self.screen() {
            return self.press_timeline((x, y), session);
        }
        if let Screen::Flame(_) = self.screen() {
            let line = y.checked_sub(rooms.above_body()).filter(|line| *line < rooms.body);
            if let Some(line) = line {
                self.point_at_frame(x, line.into(), session);
            }
            return;
        }
        let leaks = self.leaks_rooms();
        let heading = match self.screen() {
            Screen::Leaks(_) if leaks.heading > 0 => {
                Some(rooms.above_body() + leaks.summary as u16)
            }
            Screen::Leaks(_) => None,
            _ => (rooms.heading > 0).then(|| rooms.above_body() - 1),
        };
        if heading == Some(y) {
            return self.press_heading(x, session);
        }
        let above = match self.screen() {
            Screen::Leaks(_) => rooms.above_body() + leaks.above_rows() as u16,
            _ => rooms.above_body(),
        };
        let row = y.checked_sub(above).filter(|_| y < rooms.above_body() + rooms.body);
        let first = self.cursor().map(|cursor| cursor.offset());
        if let (Some(row), Some(first)) = (row, first) {
            self.scroll(|_, _| first + usize::from(row), session);
            // On its box a column is shown or hidden, beyond the last row nothing is.
            let listed = first + usize::from(row) < Column::ALL.len() - 1;
            if matches!(self.screen(), Screen::Columns { .. }) && x < view::columns::BOX && listed {
                self.toggle_column();
            }
        }
    }

    fn press_timeline(&mut self, (x, y): (u16, u16), session: &Session) {
        let legend = self.timeline_layout().legend;
        let inside =
            (legend.x..legend.right()).contains(&x) && (legend.y..legend.bottom()).contains(&y);
        if !inside {
            return self.point_at_time((x, y), false, session);
        }
        // Below its heading.
        let row = (y - legend.y).checked_sub(1);
        if let (Some(row), Some(Screen::Timeline(t))) = (row, self.stack.last_mut())
            && t.answer.as_ref().is_some_and(|answer| usize::from(row) < answer.series.len())
        {
            t.scroll(|_| usize::from(row));
        }
    }

    fn drag(&mut self, (x, y): (u16, u16), session: &Session) {
        if let Some(from) = self.pressed_ns {
            // Who drags beyond the bar means its end.
            let ends = view::timebar::columns(self, self.size.0);
            let x = x.clamp(ends.start, ends.end.saturating_sub(1).max(ends.start));
            if let Some(to) = view::timebar::time_at(self, x, self.size.0) {
                self.travel(session, |times, span| times.set_range(from, to, span));
            }
        } else if let Screen::Timeline(_) = self.screen() {
            self.point_at_time((x, y), true, session);
        }
    }

    fn press_heading(&mut self, x: u16, session: &Session) {
        let width = self.list_columns();
        match self.screen() {
            Screen::Callsites(_) => {
                let Some(column) = view::callsites::column_at(self, x, width) else { return };
                if self.question.sort == column {
                    self.question.descending = !self.question.descending;
                } else {
                    self.question.sort = column;
                    self.question.descending = column != Column::Callsite;
                }
                self.order_held = false;
            }
            Screen::Callers(_) if view::callers::is_name(x, width) => {
                self.act(Action::Invert, session);
                return;
            }
            Screen::Promotion(_) => {
                let Some(column) = view::promotion::column_at(x, width) else { return };
                if let Some(Screen::Promotion(p)) = self.stack.last_mut() {
                    p.order = p.order.by(column);
                }
            }
            Screen::Threads(t) => {
                let Some(by) = view::threads::sort_at(t, x, width) else { return };
                if let Some(Screen::Threads(t)) = self.stack.last_mut() {
                    t.sort_by(by);
                }
            }
            Screen::Leaks(l) => {
                let answer = l.answer.as_ref();
                let Some(column) = view::leaks::column_at(answer, x, width) else { return };
                if let Some(Screen::Leaks(l)) = self.stack.last_mut() {
                    l.order = l.order.by(column);
                }
            }
            _ => return,
        }
        self.ask(session);
    }
}
