//! The chooser of columns: which of the first screen's are shown, and in which order.

use super::cursor::Cursor;
use super::{App, Screen};
use crate::query::Column;

impl App {
    /// All columns as the chooser lists them: those that are shown in their order, then the
    /// others. The names of rows are no choice.
    #[must_use]
    pub fn columns_listed(&self) -> Vec<(Column, bool)> {
        let shown = self.columns.iter().copied().filter(|&c| c != Column::Callsite);
        let hidden = Column::ALL.into_iter().filter(|c| !self.columns.contains(c));
        shown.map(|c| (c, true)).chain(hidden.map(|c| (c, false))).collect()
    }

    pub(super) fn open_columns(&mut self) {
        self.stack.push(Screen::Columns { cursor: Cursor::default() });
    }

    pub(super) fn close_columns(&mut self) -> bool {
        let open = matches!(self.screen(), Screen::Columns { .. });
        if open {
            self.stack.pop();
        }
        open
    }

    fn chosen_column(&self) -> Option<Column> {
        let Screen::Columns { cursor } = self.screen() else { return None };
        self.columns_listed().get(cursor.index()).map(|(column, _)| *column)
    }

    /// Shows the selected column, or hides it.
    pub(super) fn toggle_column(&mut self) {
        let Some(column) = self.chosen_column() else { return };
        self.columns_chosen = true;
        self.passed_over = 0;
        match self.columns.iter().position(|&c| c == column) {
            Some(at) => {
                self.columns.remove(at);
            }
            None => self.columns.push(column),
        }
        self.follow(column);
    }

    /// Moves the selected column to the left, which is up in the list, or to the right.
    pub(super) fn move_column(&mut self, right: bool) {
        let Some(column) = self.chosen_column() else { return };
        let Some(at) = self.columns.iter().position(|&c| c == column) else { return };
        let to = if right { at + 1 } else { at.saturating_sub(1) };
        // The names stand first.
        if to < self.columns.len() && self.columns[to] != Column::Callsite {
            self.columns.swap(at, to);
            self.columns_chosen = true;
            self.passed_over = 0;
        }
        self.follow(column);
    }

    pub(super) fn reset_columns(&mut self) {
        self.columns.clone_from(&self.settings.columns);
        self.columns_chosen = self.columns != Column::ALL;
        self.passed_over = 0;
    }

    fn follow(&mut self, column: Column) {
        let listed = self.columns_listed();
        let page = usize::from(self.rooms().body).max(1);
        if let (Some(at), Some(Screen::Columns { cursor })) =
            (listed.iter().position(|(c, _)| *c == column), self.stack.last_mut())
        {
            cursor.go(at, listed.len(), page);
        }
    }
}
