//! What prefixes add up to, for one question after the other.

use super::super::Metric;
use super::super::grow::Measure;
use super::super::numbers::Numbers;
use super::super::select::Found;
use super::{NOWHERE, Prefixes};
use crate::session::estimate::Sight;
use crate::session::figures::Estimate;
use crate::session::then::Then;
use heaptop_protocol::totals::Total;
use std::sync::{Arc, Weak};

/// What begins with a prefix.
#[derive(Debug, Default)]
pub struct Sums {
    pub cum: Total,
    /// Of callstacks that end at it; `None` where none does.
    pub flat: Option<Total>,
    /// The value of those that have what is looked for.
    pub found: f64,
    /// What is shown of them, if it was made.
    pub shown: Option<[Estimate; 2]>,
}

/// What sums are of.
#[derive(Debug)]
pub struct Counted {
    of: Of,
    search: String,
    sight: Option<Sight>,
    /// As of so many changes of callstacks' totals.
    changes: u64,
}

#[derive(Debug)]
enum Of {
    Present(Metric),
    Past(Weak<Then>, Metric),
    Gained(Weak<Then>),
}

impl Of {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Present(a), Self::Present(b)) => a == b,
            (Self::Past(a, m), Self::Past(b, n)) => m == n && Weak::ptr_eq(a, b),
            (Self::Gained(a), Self::Gained(b)) => Weak::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// What one flamegraph asks for.
pub struct Asked<'a> {
    pub numbers: &'a Numbers<'a>,
    pub measure: Measure<'a>,
    /// What is counted where that is what was gained.
    pub gained: Option<&'a Arc<Then>>,
    /// What is looked for; empty: nothing.
    pub search: &'a str,
    /// The nodes on the way to the frame that has all the width.
    pub zoom: &'a [u32],
    /// How many columns that is.
    pub columns: u16,
}

impl Asked<'_> {
    /// Whether a frame with this share of the width has at least half a column.
    pub fn is_seen(&self, share: f64) -> bool {
        share * f64::from(self.columns.max(1)) >= 0.5
    }
}

impl Prefixes {
    /// Brings all sums up to what is asked for.
    pub fn count(&mut self, asked: &Asked<'_>) {
        let (session, sight) = (asked.numbers.session(), asked.measure.sight(asked.numbers));
        let metric = |metric| match asked.numbers.past() {
            None => Of::Present(metric),
            Some(then) => Of::Past(Arc::downgrade(then), metric),
        };
        let of = match (asked.measure, asked.gained) {
            (Measure::Metric(of), _) => metric(of),
            (Measure::Gained(_), Some(then)) => Of::Gained(Arc::downgrade(then)),
            (Measure::Gained(_), None) => Of::Gained(Weak::new()),
        };
        let same = |counted: &&Counted| counted.of.is(&of) && counted.search == asked.search;
        let before = self.counted.as_ref().filter(same).map(|c| (c.sight, c.changes));
        if self.counted.is_none() {
            self.expand(asked);
        }
        match before {
            None => self.stale.fill(true),
            Some((seen, changes)) => {
                if seen != sight {
                    self.all.iter_mut().for_each(|prefix| prefix.sums.shown = None);
                }
                if matches!(of, Of::Present(_)) {
                    for stack in session.counted_since(changes) {
                        // Those that are not taken lie nowhere.
                        let lies_in = self.lies_in.get(stack as usize).copied();
                        if let Some(prefix) = lies_in.filter(|prefix| *prefix != NOWHERE) {
                            self.mark_stale(prefix);
                        }
                    }
                }
            }
        }
        let changes = session.counts();
        self.counted = Some(Counted { of, search: asked.search.to_owned(), sight, changes });
        let found = Found::new(session.book(), asked.search);
        for at in (0..self.all.len()).rev() {
            if std::mem::replace(&mut self.stale[at], false) {
                self.add_up(at, asked, &found);
            }
        }
    }

    pub fn add_up(&mut self, at: usize, asked: &Asked<'_>, found: &Found) {
        let prefix = &self.all[at];
        let mut sums = Sums::default();
        let mut add = |stack: u32| {
            let total = asked.measure.total(asked.numbers, stack);
            sums.cum.merge(&total);
            if !asked.search.is_empty() && found.has(stack) {
                sums.found += asked.measure.value(&total);
            }
            total
        };
        for &stack in &prefix.stacks {
            add(stack);
        }
        // What allocates at the root of everything has no callstack, or none that is shown.
        let mut flat = None;
        for &stack in &prefix.ends {
            let total = add(stack);
            if prefix.depth > 0 {
                flat.get_or_insert_with(Total::default).merge(&total);
            }
        }
        sums.flat = flat;
        for child in &prefix.children {
            let child = &self.all[*child as usize].sums;
            sums.cum.merge(&child.cum);
            sums.found += child.found;
        }
        self.all[at].sums = sums;
    }

    /// By prefix, what began so and was gained and lost.
    pub fn grown(&self, then: &Then) -> Vec<[Total; 2]> {
        let mut sums = vec![[Total::default(); 2]; self.all.len()];
        for (stack, &at) in (0..).zip(&self.lies_in).filter(|(_, at)| **at != NOWHERE) {
            if let Some((gained, lost)) = then.group_growth(stack) {
                sums[at as usize][0].merge(gained);
                sums[at as usize][1].merge(lost);
            }
        }
        for at in (1..self.all.len()).rev() {
            let [gained, lost] = sums[at];
            let above = &mut sums[self.all[at].parent as usize];
            above[0].merge(&gained);
            above[1].merge(&lost);
        }
        sums
    }
}
