//! What rows are ordered by, as one number: smaller ones come first.

use super::filter::Selection;
use super::numbers::{Numbers, Part};
use super::rows::Rows;
use super::{Column, Question};
use crate::session::estimate::{self, Sight, survival};
use crate::session::figures::Followed;
use heaptop_protocol::totals::{Total, Totals};

/// Makes the keys of rows for one question.
pub struct Keys<'a> {
    numbers: &'a Numbers<'a>,
    rows: &'a Rows<'a>,
    column: Column,
    descending: bool,
    /// By group, of columns that look at time: what was allocated lately, or by
    /// how much more is in use.
    lately: Vec<Total>,
    growth: Option<Vec<f64>>,
    /// By row, what goes through it.
    cum: Vec<f64>,
    lives: survival::Table,
}

impl<'a> Keys<'a> {
    pub fn new(
        numbers: &'a Numbers<'a>,
        rows: &'a Rows<'a>,
        question: &Question,
        selection: &Selection,
    ) -> Self {
        let (mut lately, mut growth, mut cum) = (Vec::new(), None, Vec::new());
        match question.sort {
            Column::AllocatedRate | Column::ObjectRate => lately = numbers.windows(),
            Column::Trend => growth = numbers.trends(),
            Column::Cum => cum = through(numbers, rows, selection),
            _ => {}
        }
        Self {
            numbers,
            rows,
            column: match question.sort {
                // Where that is not told all rows are alike by it.
                Column::InUseBytes if !numbers.session().knows_in_use() => Column::AllocatedBytes,
                Column::InUseObjects if !numbers.session().knows_in_use() => {
                    Column::AllocatedObjects
                }
                sort => sort,
            },
            descending: question.descending,
            lately,
            growth,
            cum,
            lives: survival::Table::default(),
        }
    }

    /// The key of a row.
    pub fn of(&mut self, row: u32) -> u64 {
        if self.column == Column::Callsite {
            return 0;
        }
        match self.number(row) {
            Some(number) => directed(number, self.descending),
            // What is unknown comes last in either direction.
            None => u64::MAX,
        }
    }

    fn number(&mut self, row: u32) -> Option<f64> {
        let numbers = self.numbers;
        let members = self.rows.members(&row);
        // Of each group alone what the order is by: their totals lie far from each other.
        let sum = |part: fn(&Totals) -> &Total| match members {
            [group] => *part(numbers.group(*group)),
            groups => {
                let mut sum = Total::default();
                for &group in groups {
                    sum.merge(part(numbers.group(group)));
                }
                sum
            }
        };
        let window = || {
            let mut sum = Total::default();
            // A moment knows the groups that it has anything of.
            for lately in members.iter().filter_map(|&group| self.lately.get(group as usize)) {
                sum.merge(lately);
            }
            sum
        };
        let sight = |part| numbers.sight(part);
        // Seconds are the same for all rows.
        let rates = || sight(Part::Rates).filter(|_| numbers.rate_seconds().is_some());
        let promoted = || {
            sight(Part::Allocated)?;
            estimate::share_alone(&sum(|t| &t.promoted), &sum(|t| &t.minor))
        };
        match self.column {
            Column::Callsite => None,
            Column::InUseBytes => of_bytes(&sum(|t| &t.in_use), sight(Part::InUse)?),
            Column::InUseObjects => {
                estimate::objects(&sum(|t| &t.in_use), sight(Part::InUse)?).point()
            }
            Column::AllocatedBytes => of_bytes(&sum(|t| &t.allocated), sight(Part::Allocated)?),
            Column::AllocatedObjects => {
                estimate::objects(&sum(|t| &t.allocated), sight(Part::Allocated)?).point()
            }
            Column::AllocatedRate => of_bytes(&window(), rates()?),
            Column::ObjectRate => estimate::objects(&window(), rates()?).point(),
            Column::Promoted => promoted(),
            Column::ShortLived => promoted().map(|share| 1.0 - share),
            Column::Lifetime => {
                numbers.lived(self.rows, row, false, &mut self.lives).median.shown_ns()
            }
            Column::MeanLifetime => match numbers.lived(self.rows, row, true, &mut self.lives).mean
            {
                Followed::Unknown => None,
                Followed::Interval { value: ns, .. } | Followed::Bounds { low: ns, .. } => Some(ns),
            },
            Column::Growth => {
                numbers.growth_sight()?;
                let grown = |group: &u32| {
                    let (gained, lost) = numbers.growth_of(*group)?;
                    Some(gained.bytes.sum - lost.bytes.sum)
                };
                Some(members.iter().filter_map(grown).sum())
            }
            Column::Cum => self.cum.get(row as usize).copied(),
            Column::Trend => self
                .growth
                .as_ref()
                .map(|growth| members.iter().filter_map(|&group| growth.get(group as usize)).sum()),
        }
    }
}

/// By row, the bytes in use that go through functions; empty where rows are none.
fn through(numbers: &Numbers<'_>, rows: &Rows<'_>, selection: &Selection) -> Vec<f64> {
    let Some(functions) = rows.functions() else { return Vec::new() };
    let book = numbers.session().book();
    let values: Vec<f64> = (0..book.stacks().len() as u32)
        .map(|stack| {
            let taken = selection.takes(stack);
            if taken { numbers.stack(stack).in_use.bytes.sum } else { 0.0 }
        })
        .collect();
    let of_class = |class| -> f64 {
        functions.through(book, class).iter().map(|&stack| values[stack as usize]).sum()
    };
    (0..functions.classes.len() as u32).map(of_class).collect()
}

/// What [`estimate::bytes`] shows; where that is the value, without the work for
/// its interval. No sample: below everything that has one; unknown while R is.
fn of_bytes(total: &Total, sight: Sight) -> Option<f64> {
    if sight.lost || total.n == 0 {
        return estimate::bytes(total, sight).point();
    }
    Some(total.bytes.sum)
}

/// Numbers in the order of [`f64::total_cmp`], or the other way round.
fn directed(number: f64, descending: bool) -> u64 {
    let bits = number.to_bits();
    let ascending = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    if descending { !ascending } else { ascending }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_numbers() {
        let numbers = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 3.0, 1e30, f64::INFINITY];
        for pair in numbers.windows(2) {
            assert!(directed(pair[0], false) < directed(pair[1], false), "{pair:?}");
            assert!(directed(pair[0], true) > directed(pair[1], true), "{pair:?}");
        }
        assert!(numbers.iter().all(|n| directed(*n, true) < u64::MAX));
    }
}
