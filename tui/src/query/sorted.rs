//! By which column a list of callsites is sorted, and which way.

use std::cmp::Ordering;
use std::ops::Range;

/// A column, and whether the largest come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sorted<C> {
    /// The column.
    pub column: C,
    /// The largest first; of names, from A on.
    pub first: bool,
}

impl<C: Default> Default for Sorted<C> {
    fn default() -> Self {
        Self { column: C::default(), first: true }
    }
}

impl<C: Copy + PartialEq> Sorted<C> {
    /// By a column, the largest first.
    #[must_use]
    pub const fn by_first(column: C) -> Self {
        Self { column, first: true }
    }

    /// By a column; if it is by that already, the other way round.
    #[must_use]
    pub fn by(self, column: C) -> Self {
        let first = self.column != column || !self.first;
        Self { column, first }
    }

    /// Compares figures; what is unknown comes last either way.
    #[must_use]
    pub fn figures(&self, a: Option<f64>, b: Option<f64>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => self.turned(b.total_cmp(&a)),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    /// What it is for the largest first, turned round if that is wanted.
    #[must_use]
    pub fn turned(&self, order: Ordering) -> Ordering {
        if self.first { order } else { order.reverse() }
    }
}

/// Puts those in order that belong at `range`, and no others.
pub fn part<'a, T>(
    mut all: &'a mut [T],
    range: &Range<usize>,
    by: impl Fn(&T, &T) -> Ordering,
) -> &'a mut [T] {
    if range.end < all.len() {
        all.select_nth_unstable_by(range.end, &by);
        all = &mut all[..range.end];
    }
    if 0 < range.start && range.start < all.len() {
        all.select_nth_unstable_by(range.start, &by);
    }
    let part = &mut all[range.start..];
    part.sort_unstable_by(&by);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unknown_comes_last_either_way() {
        for first in [true, false] {
            let sorted = Sorted { column: 1, first };
            let mut figures = [None, Some(2.0), Some(5.0), None, Some(3.0)];
            figures.sort_by(|a, b| sorted.figures(*a, *b));
            let mut known = [Some(5.0), Some(3.0), Some(2.0)];
            if !first {
                known.reverse();
            }
            assert_eq!(figures[..3], known);
        }
        let sorted = Sorted::by_first(1);
        assert_eq!(sorted.by(1), Sorted { column: 1, first: false });
        assert_eq!(sorted.by(1).by(1), sorted);
        assert_eq!(sorted.by(1).by(2), Sorted::by_first(2));
    }
}
