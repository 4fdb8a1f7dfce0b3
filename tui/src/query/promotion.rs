//! What is born young, and what of it survives.

use super::filter::Selection;
use super::numbers::{Numbers, Part};
use super::sums::Sums;
use super::{Label, NodeKey, Sorted, When, sorted};
use crate::session::estimate::survival::Table;
use crate::session::figures::{Estimate, Lifetime, Ratio};
use crate::session::{Session, estimate};
use heaptop_protocol::totals::Total;
use std::cmp::Ordering;
use std::ops::Range;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromotionColumn {
    /// Bytes born young.
    #[default]
    Minor,
    /// Bytes promoted.
    Promoted,
    /// The same per second.
    PerSecond,
    /// The share that is promoted.
    Rate,
    /// The rest.
    ShortLived,
    /// The median lifetime.
    Lifetime,
    /// The callsite.
    Name,
}

impl Sorted<PromotionColumn> {
    /// The column behind it.
    #[must_use]
    pub const fn next(self) -> PromotionColumn {
        use PromotionColumn::{Lifetime, Minor, Name, PerSecond, Promoted, Rate, ShortLived};
        match self.column {
            Minor => Promoted,
            Promoted => PerSecond,
            PerSecond => Rate,
            Rate => ShortLived,
            ShortLived => Lifetime,
            Lifetime => Name,
            Name => Minor,
        }
    }
}

/// Figures of blocks that were born young, in cycles that are over.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotion {
    /// Bytes of them.
    pub minor_bytes: Estimate,
    /// Bytes of those that survived their cycle.
    pub promoted_bytes: Estimate,
    /// Bytes promoted per second: over the last ten seconds, or a range, of what was born
    /// in it.
    pub promoted_rate: Estimate,
    /// Their share.
    pub promoted: Ratio,
    /// The rest.
    pub short_lived: Ratio,
    /// Median lifetime, of all blocks.
    pub lifetime: Lifetime,
}

/// A callsite with blocks born young.
#[derive(Debug, Clone, PartialEq)]
pub struct PromotionRow {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Its figures.
    pub figures: Promotion,
}

/// Callsites by what is born young: a part of the rows, and the sum of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotions {
    /// The place of the first of `rows`.
    pub first: usize,
    /// Most bytes born young first.
    pub rows: Vec<PromotionRow>,
    /// Of all rows that there are.
    pub total: Promotion,
    /// How many rows there are.
    pub len: usize,
}

impl Promotions {
    /// The row at a place, if it is here.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<&PromotionRow> {
        self.rows.get(place.checked_sub(self.first)?)
    }
}

impl Promotion {
    fn of(sums: &Sums, numbers: &Numbers<'_>, lifetime: Lifetime) -> Self {
        let bytes = |part, total: &Total| {
            numbers.sight(part).map_or(Estimate::Unknown, |sight| estimate::bytes(total, sight))
        };
        let (minor, promoted) = (&sums.totals.minor, &sums.totals.promoted);
        let share = match numbers.sight(Part::Minor) {
            Some(_) => estimate::share(promoted, minor),
            None => Ratio::Unknown,
        };
        // Where what is allocated is unknown, what of it is promoted is not.
        let rates = if numbers.session().knows_allocated() { Part::Rates } else { Part::Promoted };
        let promoted_rate = match numbers.rate_seconds() {
            Some(seconds) if numbers.sight(Part::Promoted).is_some() => {
                estimate::per_second(bytes(rates, &sums.promoted), seconds)
            }
            _ => Estimate::Unknown,
        };
        Self {
            promoted_rate,
            minor_bytes: bytes(Part::Minor, minor),
            promoted_bytes: bytes(Part::Promoted, promoted),
            promoted: share,
            short_lived: estimate::complement(share),
            lifetime,
        }
    }
}

/// The first `most` of the callsites that `filter` takes and that have blocks born young.
#[must_use]
pub fn promotion(session: &Session, filter: &str, when: When, most: usize) -> Promotions {
    PromotionList::ask(session, filter, when).rows(0..most)
}

/// Callsites with blocks born young, in order, before figures are made.
#[derive(Debug)]
pub struct PromotionList<'a> {
    numbers: Numbers<'a>,
    order: Sorted<PromotionColumn>,
    /// Groups, with what they are sorted by.
    entries: Vec<(Option<f64>, u32)>,
    /// No filter left any out.
    whole: bool,
}

impl<'a> PromotionList<'a> {
    /// Asks, for those with most bytes born young first. Costs a look at each callsite.
    #[must_use]
    pub fn ask(session: &'a Session, filter: &str, when: When) -> Self {
        Self::sorted(session, filter, when, Sorted::default())
    }

    /// The same in another order.
    #[must_use]
    pub fn sorted(
        session: &'a Session,
        filter: &str,
        when: When,
        order: Sorted<PromotionColumn>,
    ) -> Self {
        let selection = Selection::of(session, filter);
        let numbers = Numbers::by_group(session, when, &selection);
        let (book, whole) = (session.book(), selection.takes_all());
        let mut table = Table::default();
        let mut figure = |at: u32| {
            let totals = numbers.group(at);
            let rate = || estimate::share_alone(&totals.promoted, &totals.minor);
            match order.column {
                PromotionColumn::Name => None,
                PromotionColumn::Minor => Some(totals.minor.bytes.sum),
                PromotionColumn::Promoted => Some(totals.promoted.bytes.sum),
                PromotionColumn::PerSecond => Some(numbers.of_group(at).promoted.bytes.sum),
                PromotionColumn::Rate => rate(),
                PromotionColumn::ShortLived => rate().map(|rate| 1.0 - rate),
                PromotionColumn::Lifetime => numbers.lifetime(at, &mut table).shown_ns(),
            }
        };
        let entries = book
            .groups()
            .iter()
            .filter(|(at, _)| selection.takes_any_of(*at))
            .filter_map(|(at, _)| {
                // Where promoted blocks alone are told of there are no others.
                let totals = numbers.group(at);
                let minor = if totals.minor.n > 0 { &totals.minor } else { &totals.promoted };
                (minor.n > 0).then(|| (figure(at), at))
            })
            .collect();
        Self { numbers, order, entries, whole }
    }

    fn compare(&self, a: &(Option<f64>, u32), b: &(Option<f64>, u32)) -> Ordering {
        let order = self.order;
        order.figures(a.0, b.0).then_with(|| {
            let book = self.numbers.session().book();
            let node = |group: u32| &book.nodes()[book.groups().group(group).callsite() as usize];
            let name = |of: &(Option<f64>, u32)| (&node(of.1).label.function, of.1);
            let names = name(a).cmp(&name(b));
            if order.column == PromotionColumn::Name { order.turned(names) } else { names }
        })
    }

    /// How many rows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The place of a row.
    #[must_use]
    pub fn position(&self, key: NodeKey) -> Option<usize> {
        let book = self.numbers.session().book();
        let group = book.groups().at(book.node(key)?)?;
        let entry = self.entries.iter().find(|entry| entry.1 == group)?;
        Some(self.entries.iter().filter(|other| self.compare(other, entry).is_lt()).count())
    }

    /// The rows at `range`, as far as there are, and the sum of all.
    #[must_use]
    pub fn rows(mut self, range: Range<usize>) -> Promotions {
        let len = self.entries.len();
        let first = range.start.min(len);
        let mut entries = std::mem::take(&mut self.entries);
        let range = first..range.end.clamp(first, len);
        let shown = sorted::part(&mut entries, &range, |a, b| self.compare(a, b));
        let shown: Vec<u32> = shown.iter().map(|entry| entry.1).collect();
        let (numbers, book) = (&self.numbers, self.numbers.session().book());
        let total = if self.whole {
            // Kept as a whole: no look at each.
            Promotion::of(&numbers.whole(), numbers, numbers.lifetime_of(None))
        } else {
            let mut taken = vec![false; book.groups().numbers()];
            for (_, group) in &entries {
                taken[*group as usize] = true;
            }
            // In one order, whatever is shown: sums of floats differ by their order.
            let mut all = (0..).zip(&taken).filter(|(_, taken)| **taken).map(|(at, _)| at);
            let of_all = numbers.lifetime_of(Some(&mut all));
            Promotion::of(&numbers.of_groups(&taken), numbers, of_all)
        };
        let mut table = Table::default();
        let rows = shown.into_iter().map(|group| {
            let node = &book.nodes()[book.groups().group(group).callsite() as usize];
            let lifetime = numbers.lifetime(group, &mut table);
            let figures = Promotion::of(&numbers.of_group(group), numbers, lifetime);
            PromotionRow { key: node.key, label: node.label.clone(), figures }
        });
        Promotions { first, rows: rows.collect(), total, len }
    }
}
