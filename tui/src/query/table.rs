//! The callsites screen's rows.
//!
//! Of many thousand callsites a screen shows some dozens. So asking makes of each
//! callsite only what it is ordered by; rows are then picked out of the order, and
//! figures made for them alone. Nothing is sorted but what is handed out.
//!
//! What rows are ordered by is the very number that their figures show. The sum
//! is over all rows, handed out or not.

use super::keys::Keys;
use super::numbers::Numbers;
use super::select::Filter;
use super::{Column, Figures, NodeKey, Question, Row, Table, Unattributed, When};
use crate::session::Session;
use crate::session::book::NodeInfo;
use crate::session::estimate::survival;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::ops::Range;

/// A row for each callsite that the question's filter takes, in its order. Rows
/// are whole: one stack that fits brings all of its callsite. (Trees leave out the
/// stacks that do not fit.) For a part of the rows ask [`Callsites`].
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

/// One callsite in the order.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its place in an order that is held; `u32::MAX` without.
    place: u32,
    group: u32,
    /// Smaller ones come first.
    key: u64,
}

/// The answer to a [`Question`], before figures are made. The pure beginning of
/// every table: screens, reports and exports are parts of it.
#[derive(Debug)]
pub struct Callsites<'a> {
    numbers: Numbers<'a>,
    when: When,
    entries: Vec<Entry>,
    /// Names run from Z to A.
    names_descend: bool,
}

impl<'a> Callsites<'a> {
    /// Asks. Costs a look at each callsite.
    #[must_use]
    pub fn ask(session: &'a Session, question: &Question) -> Self {
        let filter = Filter::new(session.book(), &question.filter);
        let numbers = Numbers::of(session, question.when);
        let mut keys = Keys::new(&numbers, question);
        let groups = session.book().groups().iter();
        let entries = groups
            .filter(|(_, group)| group.stacks().iter().any(|&at| filter.takes(at)))
            .map(|(group, _)| Entry { place: u32::MAX, group, key: keys.of(group) })
            .collect();
        let names_descend = question.sort == Column::Callsite && question.descending;
        Self { numbers, when: question.when, entries, names_descend }
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
            match order.0.get(&self.node(entry.group).key) {
                Some(&place) => entry.place = place,
                None => new.push(*entry),
            }
        }
        self.entries = entries;
        if new.is_empty() {
            return;
        }
        new.sort_unstable_by(|a, b| self.compare(a, b));
        order.extend(new.iter().map(|entry| self.node(entry.group).key));
        self.hold(order);
    }

    /// The place of a row.
    #[must_use]
    pub fn position(&self, key: NodeKey) -> Option<usize> {
        let book = self.session().book();
        let group = book.groups().at(book.node(key)?)?;
        let entry = self.entries.iter().find(|entry| entry.group == group)?;
        Some(self.entries.iter().filter(|e| self.compare(e, entry).is_lt()).count())
    }

    /// The rows at `range`, as far as there are, and the sum of all.
    #[must_use]
    pub fn table(mut self, range: Range<usize>) -> Table {
        let len = self.entries.len();
        let range = range.start.min(len)..range.end.min(len).max(range.start.min(len));
        let mut lives = survival::Table::default();
        let rows = self
            .pick(&range)
            .into_iter()
            .map(|group| {
                let node = self.node(group);
                let lifetime = self.numbers.lifetime(group, &mut lives);
                let figures = self.numbers.of_group(group).figures(&self.numbers, lifetime);
                Row { key: node.key, label: node.label.clone(), figures }
            })
            .collect();
        let of = self.session().book().groups().count();
        let unattributed = match self.when {
            When::Now => self.session().unattributed(),
            When::At(_) | When::Range { .. } | When::Peak => None,
        };
        let unattributed = unattributed
            .map(|(in_use_bytes, allocated_bytes)| Unattributed { in_use_bytes, allocated_bytes });
        Table { first: range.start, rows, total: self.total(), unattributed, len, of }
    }

    /// The groups of the rows at `range`.
    fn pick(&mut self, range: &Range<usize>) -> Vec<u32> {
        let mut entries = std::mem::take(&mut self.entries);
        let by = |a: &Entry, b: &Entry| self.compare(a, b);
        let mut part = &mut entries[..];
        if range.end < part.len() {
            part.select_nth_unstable_by(range.end, by);
            part = &mut part[..range.end];
        }
        if 0 < range.start && range.start < part.len() {
            part.select_nth_unstable_by(range.start, by);
        }
        part = &mut part[range.start..];
        part.sort_unstable_by(by);
        let groups = part.iter().map(|entry| entry.group).collect();
        self.entries = entries;
        groups
    }

    fn session(&self) -> &'a Session {
        self.numbers.session()
    }

    fn total(&self) -> Figures {
        let groups = self.session().book().groups();
        if self.entries.len() == groups.count() {
            let lifetime = self.numbers.lifetime_of(None);
            return self.numbers.whole().figures(&self.numbers, lifetime);
        }
        let mut taken = vec![false; groups.numbers()];
        for entry in &self.entries {
            taken[entry.group as usize] = true;
        }
        let mut groups = self.entries.iter().map(|entry| entry.group);
        let lifetime = self.numbers.lifetime_of(Some(&mut groups));
        self.numbers.of_groups(&taken).figures(&self.numbers, lifetime)
    }

    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        (a.place, a.key).cmp(&(b.place, b.key)).then_with(|| {
            let name = |entry: &Entry| {
                let NodeInfo { key, label, .. } = self.node(entry.group);
                (&label.function, &label.location, *key)
            };
            let order = name(a).cmp(&name(b));
            if self.names_descend { order.reverse() } else { order }
        })
    }

    fn node(&self, group: u32) -> &'a NodeInfo {
        let book = self.session().book();
        &book.nodes()[book.groups().group(group).callsite() as usize]
    }
}
