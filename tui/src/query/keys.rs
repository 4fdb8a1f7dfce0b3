//! What rows are ordered by, as one number: smaller ones come first.

use super::sums::born_lately;
use super::{Column, Question};
use crate::session::estimate::{Sight, survival};
use crate::session::figures::Lifetime;
use crate::session::{Session, estimate};
use heaptop_protocol::totals::Total;

/// Makes the keys of groups for one question.
pub struct Keys<'a> {
    session: &'a Session,
    column: Column,
    descending: bool,
    /// By group, of columns that look at time: what was allocated lately, or by
    /// how much more is in use.
    lately: Vec<Total>,
    growth: Vec<f64>,
    lives: survival::Table,
}

impl<'a> Keys<'a> {
    pub fn new(session: &'a Session, question: &Question) -> Self {
        let mut keys = Self {
            session,
            column: question.sort,
            descending: question.descending,
            lately: Vec::new(),
            growth: Vec::new(),
            lives: survival::Table::default(),
        };
        let (everything, course) = (session.everything(), session.course());
        let groups = session.book().groups().numbers();
        let group = |stack: u32| session.book().stacks()[stack as usize].group() as usize;
        match question.sort {
            Column::AllocatedRate | Column::ObjectRate => {
                keys.lately.resize(groups, Total::default());
                for stack in everything.allocated.within(course.rate_steps()) {
                    keys.lately[group(stack)].merge(&born_lately(session, stack));
                }
            }
            Column::Trend => {
                keys.growth.resize(groups, 0.0);
                let oldest = course.trend_steps().oldest();
                for stack in everything.in_use.within(course.trend_steps()) {
                    let numbers = &session.numbers()[stack as usize];
                    let now = numbers.totals.in_use.bytes.sum;
                    keys.growth[group(stack)] += now - numbers.in_use.at(oldest, now);
                }
            }
            _ => {}
        }
        keys
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
        let session = self.session;
        let sight = session.course().sight();
        let totals = || session.group_totals(group);
        // Seconds are the same for all rows.
        let rates = session.course().rate_sight();
        let known = session.course().rate_seconds();
        match self.column {
            Column::Callsite => None,
            Column::InUseBytes => of_bytes(&totals().in_use, sight),
            Column::InUseObjects => estimate::objects(&totals().in_use, sight).point(),
            Column::AllocatedBytes => of_bytes(&totals().allocated, sight),
            Column::AllocatedObjects => estimate::objects(&totals().allocated, sight).point(),
            Column::AllocatedRate => {
                known.and_then(|_| of_bytes(&self.lately[group as usize], rates))
            }
            Column::ObjectRate => {
                known.and_then(|_| estimate::objects(&self.lately[group as usize], rates).point())
            }
            Column::Promoted => promoted(session, group),
            Column::ShortLived => promoted(session, group).map(|share| 1.0 - share),
            Column::Lifetime => match session.group_lifetime(group, &mut self.lives) {
                Lifetime::Unknown => None,
                Lifetime::Median { ns, .. } | Lifetime::Beyond { ns, .. } => Some(ns),
            },
            Column::Trend => {
                (session.course().trend_steps().count() > 0).then(|| self.growth[group as usize])
            }
        }
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

fn promoted(session: &Session, group: u32) -> Option<f64> {
    let totals = session.group_totals(group);
    estimate::share_alone(&totals.promoted, &totals.minor)
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
