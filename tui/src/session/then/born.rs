//! Generations: blocks that live, by when they were born.

use super::bounds::Bounds;
use super::by::{By, Classes, Cut};
use super::only::{Only, Seen};
use super::standing::Standing;
use super::weights::Weights;
use super::{Session, When};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::Total;
use std::sync::Arc;

/// Generations by group.
#[derive(Debug, Clone, PartialEq)]
pub struct Generations {
    /// How many there are.
    each: usize,
    totals: Arc<Vec<Total>>,
}

impl Generations {
    /// Those of sums that are kept up: they go on, and these stay as they are.
    #[must_use]
    pub fn standing(standing: &Standing, each: usize) -> Self {
        Self { each, totals: standing.totals() }
    }

    /// Those of a group, the oldest first.
    #[must_use]
    pub fn of(&self, group: u32) -> &[Total] {
        let at = group as usize * self.each;
        self.totals.get(at..at + self.each).unwrap_or_default()
    }
}

/// Of sets of groups, what `of` says of each of theirs together; there are `each` generations.
pub fn sums<'a, 't>(
    of: &dyn Fn(u32) -> &'t [Total],
    each: usize,
    sets: impl Iterator<Item = &'a [u32]>,
) -> Vec<Vec<Total>> {
    sets.map(|groups| {
        let mut sums = vec![Total::default(); each];
        for &group in groups {
            for (sum, of) in sums.iter_mut().zip(of(group)) {
                sum.merge(of);
            }
        }
        sums
    })
    .collect()
}

/// By group, the blocks alive at the end by the stretch of time that they were born in: the
/// first until `ends_us[0]`, the next from then until `ends_us[1]`, the last after all.
pub fn of(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Arc<Only>>,
    ends_us: &[u64],
) -> Generations {
    let each = ends_us.len() + 1;
    let mut totals = vec![Total::default(); session.book.groups().numbers() * each];
    if bounds.when == When::Peak || !bounds.in_use {
        return Generations { each, totals: Arc::new(totals) };
    }
    let cut = Cut { by: By::Group, only: only.cloned() };
    let classes = Classes::of(session, &cut, bounds);
    let mut weights = Weights::new();
    let mut take = |one: &Seen, weight: &Weight| {
        let Some(group) = classes.class(one) else { return };
        let generation = ends_us.partition_point(|&end| end < one.born_us);
        if let Some(total) = totals.get_mut(group as usize * each + generation) {
            total.add(weight);
        }
    };
    for life in session.lives.within(0, bounds.end_us, bounds.end_us) {
        take(&Seen::life(&life), weights.of(life.interval, life.size));
    }
    for (_, block) in session.blocks.iter() {
        if block.born_ns / 1000 <= bounds.end_us {
            take(&Seen::living(block, bounds), weights.of(block.interval, block.size));
        }
    }
    Generations { each, totals: Arc::new(totals) }
}
