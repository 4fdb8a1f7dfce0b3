//! The callsites screen's rows.
//!
//! Of many thousand callsites a screen shows some dozens. So asking makes of each
//! callsite only what it is ordered by; rows are then picked out of the order, and
//! figures made for them alone. Nothing is sorted but what is handed out.
//!
//! What rows are ordered by is the very number that their figures show. The sum
//! is over all rows, handed out or not. Rows may also be callsites put together, or blocks
//! by size or thread: see [`super::rows`].

use super::filter::Selection;
use super::keys::Keys;
use super::numbers::{Numbers, Part};
use super::rows::Rows;
use super::sorted;
use super::sums::Sums;
use super::{Column, Figures, Grouping, NodeKey, Question, Row, Table, Unattributed, When};
use crate::session::Session;
use crate::session::estimate::{family, survival};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// A row for each callsite that the question's filter takes anything of, in its order:
/// figures are of what it takes. For a part of the rows ask [`Callsites`].
#[must_use]
pub fn callsites(session: &Session, question: &Question) -> Table {
    Callsites::ask(session, question).table(0..usize::MAX)
}

/// An order of rows that is kept while numbers move.
#[derive(Debug, Clone, Default)]
pub struct Order(FxHashMap<NodeKey, u32>);

impl Extend<NodeKey> for Order {
    fn extend<T: IntoIterator<Item = NodeKey>>(&mut self, keys: T) {
        for key in keys {
            let next = self.0.len() as u32;
            self.0.entry(key).or_insert(next);
        }
    }
}

/// One row in the order.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its place in an order that is held; `u32::MAX` without.
    place: u32,
    row: u32,
    /// Smaller ones come first.
    key: u64,
}

/// The answer to a [`Question`], before figures are made. The pure beginning of
/// every table: screens, reports and exports are parts of it.
#[derive(Debug)]
pub struct Callsites<'a> {
    numbers: Numbers<'a>,
    rows: Rows<'a>,
    selection: Arc<Selection>,
    question: Question,
    entries: Vec<Entry>,
    /// Before the filter.
    of: usize,
    /// Names run from Z to A.
    names_descend: bool,
}

impl<'a> Callsites<'a> {
    /// Asks. Costs a look at each callsite.
    #[must_use]
    pub fn ask(session: &'a Session, question: &Question) -> Self {
        let selection = Selection::of(session, &question.filter);
        let numbers = Numbers::ask(session, question, &selection);
        let rows = Rows::of(session, question.group);
        let (mut of, mut taken) = rows.taken(question, &selection);
        // Where nothing is known of a moment, that nothing is there is not known either.
        let known = [Part::InUse, Part::Allocated].map(|part| numbers.sight(part).is_some());
        let past = question.when != When::Now && known.contains(&true);
        let empty = |row: &u32, numbers: &Numbers<'_>| {
            !rows.members(row).iter().any(|&group| {
                let totals = numbers.group(group);
                let grown = numbers.growth_of(group).map_or(0, |(gained, lost)| gained.n + lost.n);
                totals.allocated.n + totals.in_use.n + totals.promoted.n + grown > 0
            })
        };
        if rows.leaves_out_empty() {
            taken.retain(|row| !empty(row, &numbers));
            of = taken.len();
            if !selection.takes_all() {
                let all = Numbers::ask(session, &question.of_all(), &Selection::default());
                of = (0..rows.count() as u32).filter(|row| !empty(row, &all)).count();
            }
        } else if past || selection.has_tests() {
            // A function that calls others has what is in theirs.
            let none = |row: &u32, numbers: &Numbers<'_>| {
                rows.functions().is_none_or(|functions| {
                    let through = functions.through(session.book(), *row);
                    through.iter().all(|&stack| numbers.stack(stack).in_use.n == 0)
                })
            };
            let there = |row: &u32, of: &Numbers<'_>| !(empty(row, of) && none(row, of));
            taken.retain(|row| there(row, &numbers));
            // Of what is past those are counted that were there then.
            if past {
                let all = question.of_all();
                let (_, rows) = rows.taken(&all, &Selection::default());
                let every = (!selection.takes_all())
                    .then(|| Numbers::ask(session, &all, &Selection::default()));
                let numbers = every.as_ref().unwrap_or(&numbers);
                of = rows.iter().filter(|row| there(row, numbers)).count();
            }
        }
        let mut keys = Keys::new(&numbers, &rows, question, &selection);
        let entries = taken
            .into_iter()
            .map(|row| Entry { place: u32::MAX, row, key: keys.of(row) })
            .collect();
        let names_descend = question.sort == Column::Callsite && question.descending;
        Self { numbers, rows, selection, question: question.clone(), entries, of, names_descend }
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

    /// Puts the rows into the order of `order`; new ones come last, and join it.
    pub fn hold(&mut self, order: &mut Order) {
        let mut new = Vec::new();
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &mut entries {
            match order.0.get(&self.rows.key(entry.row)) {
                Some(&place) => entry.place = place,
                None => new.push(*entry),
            }
        }
        self.entries = entries;
        if new.is_empty() {
            return;
        }
        new.sort_unstable_by(|a, b| self.compare(a, b));
        order.extend(new.iter().map(|entry| self.rows.key(entry.row)));
        self.hold(order);
    }

    /// The place of a row.
    #[must_use]
    pub fn position(&self, key: NodeKey) -> Option<usize> {
        let row = self.rows.find(key)?;
        let entry = self.entries.iter().find(|entry| entry.row == row)?;
        Some(self.entries.iter().filter(|e| self.compare(e, entry).is_lt()).count())
    }

    /// The rows at `range`, as far as there are, and the sum of all.
    #[must_use]
    pub fn table(mut self, range: Range<usize>) -> Table {
        let len = self.entries.len();
        let range = range.start.min(len)..range.end.min(len).max(range.start.min(len));
        let picked = self.pick(&range);
        let mut sums = self.numbers.of_rows(&self.rows, &picked);
        self.mark_grown(&picked, &mut sums);
        self.add_cum(&picked, &mut sums);
        let mut lives = survival::Table::default();
        let rows = picked
            .iter()
            .zip(&sums)
            .map(|(&row, sums)| {
                let lived = self.numbers.lived(&self.rows, row, true, &mut lives);
                let figures = sums.figures(&self.numbers, lived);
                Row { key: self.rows.key(row), label: self.rows.label(row).clone(), figures }
            })
            .collect();
        let unattributed = match self.question.when {
            // What was lost has no block.
            When::Now if self.numbers.is_of_blocks() => None,
            When::Now => self.session().unattributed(),
            When::At(_) | When::Range { .. } | When::Peak => None,
        };
        let unattributed = unattributed
            .map(|(in_use_bytes, allocated_bytes)| Unattributed { in_use_bytes, allocated_bytes });
        let (total, of) = (self.total(), self.of);
        Table { first: range.start, rows, total, unattributed, len, of }
    }

    /// The rows at `range`.
    fn pick(&mut self, range: &Range<usize>) -> Vec<u32> {
        let mut entries = std::mem::take(&mut self.entries);
        let part = sorted::part(&mut entries, range, |a, b| self.compare(a, b));
        let rows = part.iter().map(|entry| entry.row).collect();
        self.entries = entries;
        rows
    }

    /// Which rows grew with evidence: of all rows that there are, shown or not.
    fn mark_grown(&self, picked: &[u32], sums: &mut [Sums]) {
        let Some(sight) = self.numbers.growth_sight() else { return };
        let together;
        let holding = if self.rows.are_groups() || self.question.group.together().is_none() {
            self.numbers.holding()
        } else {
            let Some(partition) = self.rows.partition() else { return };
            together = self.numbers.holding_together(partition);
            &together[..]
        };
        for (row, sums) in picked.iter().zip(sums) {
            let holds = holding.get(*row as usize).is_some_and(|holds| *holds);
            sums.grew = holds && family::is_seen(&sums.gained, &sums.lost, sight.both());
        }
    }

    /// What goes through functions, of those that are shown.
    fn add_cum(&self, picked: &[u32], sums: &mut [Sums]) {
        let Some(functions) = self.rows.functions() else { return };
        let book = self.session().book();
        for (row, sums) in picked.iter().zip(sums) {
            let cum = sums.cum.get_or_insert_default();
            let through = functions.through(book, *row).iter();
            for &stack in through.filter(|stack| self.selection.takes(**stack)) {
                cum.merge(&self.numbers.stack(stack).in_use);
            }
        }
    }

    fn session(&self) -> &'a Session {
        self.numbers.session()
    }

    fn total(&self) -> Figures {
        let groups = self.session().book().groups();
        let everything = self.entries.len() == self.of
            && self.question.within.is_none()
            && self.numbers.are_whole();
        let (mut sums, lived) = if everything {
            (self.numbers.whole(), self.numbers.lived_of(None))
        } else {
            let classes = self.numbers.classes().max(groups.numbers());
            let mut taken = vec![false; classes];
            for &group in self.entries.iter().flat_map(|e| self.rows.members(&e.row)) {
                taken[group as usize] = true;
            }
            // In one order, whatever was handed out: sums of floats differ by their order.
            let mut members = (0..).zip(&taken).filter(|(_, taken)| **taken).map(|(at, _)| at);
            let lived = self.numbers.lived_of(Some(&mut members));
            (self.numbers.of_groups(&taken), lived)
        };
        if let Some(sight) = self.numbers.growth_sight() {
            sums.grew = family::grew([(&sums.gained, &sums.lost)].into_iter(), sight.both())[0];
        }
        sums.figures(&self.numbers, lived)
    }

    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        (a.place, a.key).cmp(&(b.place, b.key)).then_with(|| {
            // Sizes have an order of their own, which their names have not.
            if self.question.group == Grouping::Size {
                return if self.names_descend { b.row.cmp(&a.row) } else { a.row.cmp(&b.row) };
            }
            let name = |entry: &Entry| {
                let label = self.rows.label(entry.row);
                (&label.function, &label.location, self.rows.key(entry.row))
            };
            let order = name(a).cmp(&name(b));
            if self.names_descend { order.reverse() } else { order }
        })
    }
}
