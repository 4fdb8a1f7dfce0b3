//! The selected row of a list, and how far the list is scrolled.
//!
//! The selection belongs to a row, not to a place: when rows move it moves with
//! its row. Until somebody moves it, it stays on the first row, whichever that
//! is. Invariant after [`Cursor::settle`]: `index < len` (or 0 for an empty
//! list), and `offset ≤ index < offset + page`.

/// A selection in a list of rows that have ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    id: Option<u64>,
    index: usize,
    offset: usize,
}

impl Cursor {
    /// Index of the selected row.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Index of the first row on the screen.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Rows have changed: finds the selected one again, or stays where it was.
    pub fn settle(&mut self, len: usize, find: impl FnOnce(u64) -> Option<usize>, page: usize) {
        if let Some(id) = self.id {
            match find(id) {
                Some(found) => self.index = found,
                // Gone: the row that took its place is as good as any.
                None => self.id = None,
            }
        }
        self.place(len, page);
    }

    /// Rows are what they were; there may be room for more or fewer of them.
    pub fn place(&mut self, len: usize, page: usize) {
        self.index = self.index.min(len.saturating_sub(1));
        self.show(len, page);
    }

    /// To the place `index`, or the last one, whichever row is there.
    pub fn go(&mut self, index: usize, len: usize, page: usize) {
        self.id = None;
        self.index = index;
        self.place(len, page);
    }

    /// Selects the row at `index`, or the last one.
    pub fn select(&mut self, index: usize, len: usize, id_at: impl Fn(usize) -> u64, page: usize) {
        self.index = index.min(len.saturating_sub(1));
        self.id = (len > 0).then(|| id_at(self.index));
        self.show(len, page);
    }

    /// Selects the row with `id` at the next [`Cursor::settle`].
    pub const fn follow(&mut self, id: u64) {
        self.id = Some(id);
    }

    /// Back to the first row, whichever comes to be the first.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn show(&mut self, len: usize, page: usize) {
        let page = page.max(1);
        self.offset = self.offset.min(len.saturating_sub(page));
        if self.index < self.offset {
            self.offset = self.index;
        } else if self.index >= self.offset + page {
            self.offset = self.index + 1 - page;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_follows_its_row() {
        let mut c = Cursor::default();
        let rows = [10u64, 20, 30];
        c.select(1, 3, |i| rows[i], 2);
        let moved = [30u64, 10, 5, 20];
        c.settle(4, |id| moved.iter().position(|row| *row == id), 2);
        assert_eq!((c.index(), c.offset()), (3, 2));
        c.settle(0, |_| None, 2);
        assert_eq!((c.index(), c.offset()), (0, 0));
    }

    #[test]
    fn an_untouched_selection_stays_on_top() {
        let mut c = Cursor::default();
        for rows in [[1u64, 2], [2, 1]] {
            c.settle(2, |id| rows.iter().position(|row| *row == id), 5);
            assert_eq!(c.index(), 0);
        }
    }
}
