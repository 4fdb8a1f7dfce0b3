//! From a session and a question to rows. Screens, reports and exports all ask
//! here, so that they cannot disagree.

pub mod details;
pub mod filter;
mod flame;
mod grow;
pub mod grown;
mod growth;
mod keys;
mod leaks;
mod limits;
mod numbers;
mod old;
mod picks;
pub(crate) mod prefixes;
mod promotion;
mod rows;
mod select;
mod sorted;
mod source;
mod sums;
mod survival;
mod table;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;
mod tree;

pub use details::{Details, details};
pub use flame::{Above, Flame, FlameQuestion, Grown as FrameGrown, Weighed, flame, flame_stacks};
pub use growth::{Grown, Growth, growth};
pub use leaks::{
    AUTOMATIC, Generation, LeakColumn, LeakFigures, LeakList, LeakRow, Leaks, MOST_GENERATIONS,
    NoForecast, last_mark,
};
pub use limits::{Bound, Pace, Reached, limits};
pub use old::{Old, OldRow, old};
pub use promotion::{
    Promotion, PromotionColumn, PromotionList, PromotionRow, Promotions, promotion,
};
pub use sorted::Sorted;
pub use source::{SourceLine, source, source_of};
pub use sums::finer;
pub use survival::{LEAST_NURSERY, MOST_NURSERY, Survival};
pub use survival::{nursery_beside, survival, why_no_lives};
pub use table::{Callsites, Order, callsites};
pub use threads::{ThreadRow, thread_name, threads};
pub use timeline::{Curve, Point, Series, Timeline, column, curve, timeline};
pub use tree::{Branch, callers, stacks, tree};

use crate::session::Session;
use crate::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};
use crate::session::partition::Together;
pub use crate::session::when::When;
use std::sync::Arc;

/// What is counted where one metric must be chosen: trees and exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Bytes that live.
    InUseBytes,
    /// Objects that live.
    InUseObjects,
    /// Bytes ever allocated.
    AllocatedBytes,
    /// Objects ever allocated.
    AllocatedObjects,
    /// Bytes promoted in completed cycles.
    PromotedBytes,
    /// Bytes that died young in completed cycles: minor-allocated less promoted.
    ShortLivedBytes,
}

/// Columns of the callsites screen: what rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    /// The callsite's name.
    Callsite,
    /// Bytes in use.
    InUseBytes,
    /// Objects in use.
    InUseObjects,
    /// Bytes ever allocated.
    AllocatedBytes,
    /// Objects ever allocated.
    AllocatedObjects,
    /// Bytes allocated per second over the last ten seconds.
    AllocatedRate,
    /// Objects allocated per second over the last ten seconds.
    ObjectRate,
    /// Promoted share of what was born young.
    Promoted,
    /// Share that died young.
    ShortLived,
    /// Median lifetime.
    Lifetime,
    /// Mean lifetime.
    MeanLifetime,
    /// Growth in bytes since a mark.
    Growth,
    /// Bytes in use by a function and all that it calls.
    Cum,
    /// In use over the last minutes.
    Trend,
}

impl Column {
    /// All of them, in the order of the screen.
    pub const ALL: [Self; 14] = [
        Self::Callsite,
        Self::InUseBytes,
        Self::Cum,
        Self::InUseObjects,
        Self::AllocatedBytes,
        Self::AllocatedObjects,
        Self::AllocatedRate,
        Self::ObjectRate,
        Self::Promoted,
        Self::ShortLived,
        Self::Lifetime,
        Self::MeanLifetime,
        Self::Growth,
        Self::Trend,
    ];
}

/// How the rows are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Column to sort by.
    pub sort: Column,
    /// Largest first.
    pub descending: bool,
    /// Plain filter: rows whose callsite, file or callers contain this, ignoring
    /// case. Empty: all rows.
    pub filter: String,
    /// The moment, or stretch of time.
    pub when: When,
    /// What a row is.
    pub group: Grouping,
    /// Of callsites those alone that are in this class.
    pub within: Option<(Together, NodeKey)>,
    /// Growth is counted from here on, in nanoseconds since the agent's start, where a
    /// moment is asked about; `None`: nobody wants it.
    pub growth_from_ns: Option<u64>,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            sort: Column::InUseBytes,
            descending: true,
            filter: String::new(),
            when: When::Now,
            group: Grouping::Callsite,
            within: None,
            growth_from_ns: None,
        }
    }
}

impl Question {
    /// The same of all that there is at the moment, for counting its rows.
    pub(crate) fn of_all(&self) -> Self {
        Self { filter: String::new(), within: None, growth_from_ns: None, ..self.clone() }
    }
}

/// What a row of the first screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Grouping {
    /// A function and line.
    #[default]
    Callsite,
    /// A function: what is allocated at it, and what by all that it calls.
    Function,
    /// A source file.
    File,
    /// A crate, package or namespace, else a module.
    Crate,
    /// Blocks of about the same size.
    Size,
    /// The thread that allocated.
    Thread,
}

impl Grouping {
    /// All of them, in the order of their key.
    pub const ALL: [Self; 6] =
        [Self::Callsite, Self::Function, Self::File, Self::Crate, Self::Size, Self::Thread];

    /// What one row is, and what many are.
    #[must_use]
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Callsite => ["callsite", "callsites"],
            Self::Function => ["function", "functions"],
            Self::File => ["file", "files"],
            Self::Crate => ["crate or module", "crates and modules"],
            Self::Size => ["size class", "size classes"],
            Self::Thread => ["thread", "threads"],
        }
    }
}

/// Identity of a callsite or of a node in a tree: stable while names stand. It
/// is a number for a function and line, or for a bare frame until it has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKey(pub u64);

impl NodeKey {
    /// The root of a tree over everything.
    pub const ALL: Self = Self(0);
    /// `(N smaller)`: what a tree had no room for.
    pub const SMALLER: Self = Self(1);
}

/// Makes ahead what a question needs of the past, and what the header says of it: `most` lives
/// and blocks are gone through at most. How far it is, in percent; `None`: now asking takes no
/// longer than that.
#[must_use]
pub fn make_ahead(session: &Session, question: &Question, most: usize) -> Option<u8> {
    numbers::Numbers::make_ahead(session, question, most)
}

/// What a callsite or frame is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Function, or `module+0x1234` until it has a name.
    pub function: Arc<str>,
    /// `file:line`, shortened to the path's telling end; empty when unknown.
    pub location: Arc<str>,
    /// Whether it has a name.
    pub named: bool,
}

/// The figures of a group of callstacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Bytes that live.
    pub in_use_bytes: Estimate,
    /// Objects that live.
    pub in_use_objects: Estimate,
    /// Bytes ever allocated.
    pub allocated_bytes: Estimate,
    /// Objects ever allocated.
    pub allocated_objects: Estimate,
    /// Bytes allocated per second over the rate window.
    pub allocated_rate: Estimate,
    /// Objects allocated per second over the rate window.
    pub object_rate: Estimate,
    /// Promoted share, in bytes, of the blocks born young in completed cycles.
    pub promoted: Ratio,
    /// The rest of them: died before promotion.
    pub short_lived: Ratio,
    /// Median lifetime.
    pub lifetime: Lifetime,
    /// Mean lifetime, in nanoseconds.
    pub mean: Followed,
    /// Bytes in use by a function and all that it calls; unknown of other rows.
    pub cum: Estimate,
    /// By how many bytes in use it grew over the range that was asked about, or since
    /// [`Question::growth_from_ns`].
    pub growth: Change,
    /// Whether it grew with evidence: of all rows that are said to have grown, the chance
    /// that even one has not is 5 % at most.
    pub grew: bool,
    /// In use in bytes at equal steps in time, oldest first, ending at the moment asked
    /// about; empty while nothing is known.
    pub trend: Vec<f64>,
}

/// One row of the callsites screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Its figures.
    pub figures: Figures,
}

/// The callsites screen's content: a part of the rows, and the sum of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The place of the first of `rows`.
    pub first: usize,
    /// Rows in order.
    pub rows: Vec<Row>,
    /// The sum over all rows that there are.
    pub total: Figures,
    /// What the agent's totals hold and no event told of, at present; `None` where no
    /// event was lost.
    pub unattributed: Option<Unattributed>,
    /// How many rows there are.
    pub len: usize,
    /// Callsites before the filter.
    pub of: usize,
}

/// What events that were lost on their way would have told: it is in the totals, and in
/// nothing that is asked about the past.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unattributed {
    /// Bytes in use.
    pub in_use_bytes: Estimate,
    /// Bytes allocated.
    pub allocated_bytes: Estimate,
}

impl Table {
    /// The row at a place, if it is here.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<&Row> {
        self.rows.get(place.checked_sub(self.first)?)
    }

    /// Whether of `places` every row is here that there is.
    #[must_use]
    pub fn covers(&self, places: &std::ops::Range<usize>) -> bool {
        let end = places.end.min(self.len);
        places.start >= end || self.first <= places.start && end <= self.first + self.rows.len()
    }
}

/// Which way a tree opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Bottom-up: who calls it.
    Callers,
    /// Top-down: what it calls.
    Callees,
}

/// A node of a caller tree. `children` are in order of the metric, largest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Which function and line.
    pub key: NodeKey,
    /// The way to it from the root, as a number.
    pub path: u64,
    /// Its name.
    pub label: Label,
    /// The share of the focus that goes through this node, in the metric.
    /// Recursion counts once a stack.
    pub cum: Estimate,
    /// What is allocated at this node itself, in the metric.
    pub flat: Estimate,
    /// `cum` over the root's `cum`, 0 to 1; for bars and percentages.
    pub share: f64,
    /// Whether there are nodes below.
    pub branches: bool,
    /// Nodes below; none where nobody wanted them.
    pub children: Vec<Node>,
}

/// The figures of everything together, but for lifetimes.
#[must_use]
pub fn whole(session: &Session, when: When) -> Figures {
    let numbers = numbers::Numbers::of(session, when);
    numbers.whole().figures(&numbers, numbers::Lived::UNKNOWN)
}

/// The name behind a key; `None` if no such node was ever seen.
#[must_use]
pub fn find(session: &Session, key: NodeKey) -> Option<Label> {
    if key == NodeKey::ALL {
        return Some(tree::all_label());
    }
    let at = session.book().node(key)?;
    Some(session.book().nodes()[at as usize].label.clone())
}
