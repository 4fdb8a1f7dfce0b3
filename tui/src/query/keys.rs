//! What rows are ordered by, as one number: smaller ones come first.

use super::numbers::{Numbers, Part};
use super::{Column, Question};
use crate::session::estimate::{self, Sight, survival};
use crate::session::figures::Lifetime;
use heaptop_protocol::totals::Total;

/// Makes the keys of groups for one question.
pub struct Keys<'a> {
    numbers: &'a Numbers<'a>,
    column: Column,
    descending: bool,
    /// By group, of columns that look at time: what was allocated lately, or by
    /// how much more is in use.
    lately: Vec<Total>,
    growth: Option<Vec<f64>>,
    lives: survival::Table,
}

impl<'a> Keys<'a> {
    pub fn new(numbers: &'a Numbers<'a>, question: &Question) -> Self {
        let (mut lately, mut growth) = (Vec::new(), None);
        match question.sort {
            Column::AllocatedRate | Column::ObjectRate => lately = numbers.windows(),
            Column::Trend => growth = numbers.trends(),
            _ => {}
        }
        Self {
            numbers,
            column: question.sort,
            descending: question.descending,
            lately,
            growth,
            lives: survival::Table::default(),
        }
    }

    /// The key of a group.
    pub fn of(&mut self, group: u32) -> u64 {
        if self.column == Column::Callsite {
            return 0;
        }
        match self.number(group) {
            Some(number) => directed(number, self.descending),
            // What is unknown comes last in either direction.
            None => u64::MAX,
        }
    }

    fn number(&mut self, group: u32) -> Option<f64> {
        let numbers = self.numbers;
        let totals = || numbers.group(group);
        let sight = |part| numbers.sight(part);
        // Seconds are the same for all rows.
        let rates = || sight(Part::Rates).filter(|_| numbers.rate_seconds().is_some());
        match self.column {
            Column::Callsite => None,
            Column::InUseBytes => of_bytes(&totals().in_use, sight(Part::InUse)?),
            Column::InUseObjects => {
                estimate::objects(&totals().in_use, sight(Part::InUse)?).point()
            }
            Column::AllocatedBytes => of_bytes(&totals().allocated, sight(Part::Allocated)?),
            Column::AllocatedObjects => {
                estimate::objects(&totals().allocated, sight(Part::Allocated)?).point()
            }
            Column::AllocatedRate => of_bytes(&self.lately[group as usize], rates()?),
            Column::ObjectRate => estimate::objects(&self.lately[group as usize], rates()?).point(),
            Column::Promoted => self.promoted(group),
            Column::ShortLived => self.promoted(group).map(|share| 1.0 - share),
            Column::Lifetime => match numbers.lifetime(group, &mut self.lives) {
                Lifetime::Unknown => None,
                Lifetime::Median { ns, .. } | Lifetime::Beyond { ns, .. } => Some(ns),
            },
            Column::Trend => self.growth.as_ref().map(|growth| growth[group as usize]),
        }
    }

    fn promoted(&self, group: u32) -> Option<f64> {
        self.numbers.sight(Part::Allocated)?;
        let totals = self.numbers.group(group);
        estimate::share_alone(&totals.promoted, &totals.minor)
    }
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
