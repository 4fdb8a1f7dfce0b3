//! Lives that are over, by size or thread. Once over they stay so: sums go on where they
//! stopped.

use super::super::ages::{self, Followed};
use super::super::bounds::Bounds;
use super::super::totals::OfGroup;
use super::super::trend::Trend;
use super::super::weights::Weights;
use super::grid::Grid;
use super::{Kind, merge, of};
use crate::session::Session;
use crate::session::lifetimes::Ages;
use crate::session::lives::{Life, Place};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::Total;
use std::collections::BTreeMap;

/// Most sums of cycles that are not over: there is one cycle at a time, but for threads that
/// have not booked their bytes yet.
const MOST_OPEN: usize = 1 << 16;

/// What lives and their beginnings are, and from when on births are counted.
type Key = (u64, u64, u64);

/// See the module.
#[derive(Debug)]
pub struct Over {
    key: Option<Key>,
    until: Place,
    kind: Kind,
    classes: Vec<OfClass>,
    /// Born young in a cycle that is not over, and promoted of them: by its end, on G, and
    /// class.
    open: BTreeMap<(u64, usize), [Total; 2]>,
    grid: Grid,
}

#[derive(Debug, Default)]
struct OfClass {
    allocated: Total,
    minor: Total,
    promoted: Total,
    ages: Ages,
}

impl Default for Over {
    fn default() -> Self {
        let (kind, open) = (Kind::Sizes, BTreeMap::new());
        let (until, classes, grid) = (Place::default(), Vec::new(), Grid::default());
        Self { key: None, until, kind, classes, open, grid }
    }
}

impl Over {
    /// Goes on, over so many lives at most. `at` tells sizes and threads apart. How many are
    /// left.
    pub fn go_on(&mut self, session: &Session, bounds: &Bounds, at: usize, most: usize) -> usize {
        let key = Some((session.lives.rewritten(), bounds.born_after_us, bounds.minor_from));
        if self.key != key {
            let grid = Grid::after(bounds.since_us);
            *self = Self { key, kind: Kind::new(at), grid, ..Self::default() };
        }
        while let Some(open) = self.open.first_entry()
            && open.key().0 <= bounds.cycles_until
        {
            let ((_, class), [minor, promoted]) = open.remove_entry();
            let class = of(&mut self.classes, class);
            class.minor.merge(&minor);
            class.promoted.merge(&promoted);
        }
        let settled = bounds.settled();
        let mut weights = Weights::new();
        let mut until = self.until;
        let left = session.lives.go_on(&mut until, most, |life| {
            let weight = weights.of(life.interval, life.size);
            self.add(session, [bounds, &settled], life, weight);
        });
        self.until = until;
        left
    }

    fn add(&mut self, session: &Session, bounds: [&Bounds; 2], life: &Life, weight: &Weight) {
        let [now, settled] = bounds;
        let class = self.kind.class(life.size, life.thread);
        self.grid.add(life.born_us, class, weight.bytes);
        self.grid.add(life.ended_us, class, -weight.bytes);
        let sums = of(&mut self.classes, class);
        if life.born_us > now.born_after_us {
            sums.allocated.add(weight);
        }
        let decided = life.promoted || life.end.is_death();
        if life.born_young && settled.counts(life.born_clock, decided) {
            let [minor, promoted] = if now.counts(life.born_clock, decided) {
                [&mut sums.minor, &mut sums.promoted]
            } else {
                let end = settled.cycle_end(life.born_clock);
                self.open.entry((end, class)).or_default().each_mut()
            };
            minor.add(weight);
            if life.promoted {
                promoted.add(weight);
            }
        }
        let sums = of(&mut self.classes, class);
        let followed = Followed::dead(life, weight.objects);
        ages::add(&mut sums.ages, settled, &session.lives, &followed);
        // What no agent would tell is forgotten: see `is_whole`.
        while self.open.len() > MOST_OPEN {
            self.open.pop_last();
        }
    }

    /// Whether nothing had to be forgotten.
    pub fn is_whole(&self) -> bool {
        self.open.len() < MOST_OPEN
    }

    /// Adds it all to the classes that are asked for.
    pub fn add_to(
        &self,
        session: &Session,
        groups: &mut [OfGroup],
        ages: &mut [Ages],
        trend: &mut Trend,
    ) {
        let asked = self.kind.asked(session);
        for (sums, &class) in self.classes.iter().zip(&asked) {
            let OfClass { allocated, minor, promoted, ages: lives } = sums;
            let parts = [&Total::default(), allocated, minor, promoted];
            merge(&mut groups[class as usize].totals, parts);
            ages[class as usize].merge(lives);
        }
        trend.add(&self.grid, &asked);
    }
}
