//! What a screen shows, as text, JSON or CSV.
//!
//! [`views`] asks `query` and makes a [`Report`]: a heading, columns, and rows of cells
//! that still are figures. [`text`], [`json`] and [`csv`] write it. So the three say the
//! same, and the same as the screens.
//!
//! **Stable.** A column's `id` is its name in JSON and CSV, with its unit in it; ids are
//! never given another meaning. JSON says `"format": 1`.

mod course;
pub mod csv;
pub mod json;
pub mod leaks;
#[cfg(test)]
mod tests;
pub mod text;
pub mod views;

use crate::query::{Grouping, Label, Metric, When};
use crate::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};
use crate::system::Memory;
use crate::view::format::Unit;

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Where memory is allocated.
    Callsites,
    /// Who calls it: the tree of a function's callers, or of everything from the root.
    Callers,
    /// What survives the nursery.
    Promotion,
    /// What each thread allocated, and what of it others freed.
    Threads,
    /// What was in use at the highest moment.
    Peak,
    /// What is old and alive, and what grew.
    Leaks,
    /// What the program said of its course: phases and marks.
    Course,
    /// Memory outside the heap that the program reports.
    External,
}

impl View {
    /// Its name, as the command line and JSON have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Callsites => "callsites",
            Self::Callers => "callers",
            Self::Promotion => "promotion",
            Self::Threads => "threads",
            Self::Peak => "peak",
            Self::Leaks => "leaks",
            Self::Course => "course",
            Self::External => "external",
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Which table.
    pub view: View,
    /// What rows are ordered by, and what a tree counts.
    pub metric: Metric,
    /// Most rows.
    pub top: usize,
    /// Functions of a tree's root, callee first; empty: all callstacks, from the root.
    pub focus: Vec<String>,
    /// As on the screen.
    pub filter: String,
    /// Of when.
    pub when: When,
    /// What a row of the callsites is.
    pub group: Grouping,
    /// A limit of bytes in use, for the forecast of leaks.
    pub limit: Option<u64>,
    /// What the system knows of the target's memory, for the same, where it runs.
    pub memory: Option<Memory>,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs, with its unit.
    pub id: &'static str,
    /// Its heading for people.
    pub title: &'static str,
}

/// What stands in a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A function, so many steps down in a tree.
    Function(Label, usize),
    /// Text, such as a place or a thread's name.
    Text(String),
    /// An estimate.
    Estimate(Estimate, Unit),
    /// A share between 0 and 1.
    Share(Ratio),
    /// A part of a whole, without an interval of its own.
    Part(f64),
    /// A lifetime, or an age.
    Lifetime(Lifetime),
    /// A mean life in nanoseconds, as far as blocks could be followed.
    Followed(Followed),
    /// Growth in bytes.
    Change(Change),
    /// A time since the target's start, in nanoseconds.
    Time(Option<u64>),
    /// Bytes without error.
    Bytes(u64),
    /// A number without error.
    Number(Option<u64>),
    /// Something that is so, or is not: its word where it is.
    Mark(bool, &'static str),
}

/// What is reported, for all formats.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Which table.
    pub view: View,
    /// What stands above it.
    pub heading: Heading,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// The sum over all rows that there are; none of trees and threads.
    pub total: Option<Vec<Cell>>,
    /// How many rows there are.
    pub len: usize,
    /// What else must be known, a sentence each.
    pub notes: Vec<String>,
    /// Id of the column that rows are ordered by; empty where that is not asked.
    pub sorted: &'static str,
}

/// What a report is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Heading {
    /// The target's name.
    pub target: String,
    /// Its pid.
    pub pid: Option<u32>,
    /// Wall clock at the agent's start, in nanoseconds since 1970; 0 if unknown.
    pub started_unix_ns: u64,
    /// The moment or range, as it was understood.
    pub when: When,
    /// The end of it, in nanoseconds since the agent's start.
    pub at_ns: u64,
    /// Whether that is the highest moment that is known.
    pub is_peak: bool,
    /// From when to when any moment can be asked about.
    pub span: Option<(u64, u64)>,
    /// R in bytes.
    pub interval_bytes: Option<u32>,
    /// Births lost in the target: in no figure.
    pub lost_births: u64,
    /// Births charged to `(other stacks)`.
    pub lost_stacks: u64,
    /// Events that did not arrive.
    pub lost_events: u64,
    /// How often the agent doubled R at its memory bound.
    pub thinned: u32,
    /// The filter; empty: none.
    pub filter: String,
    /// What lost events would have told, in bytes in use and allocated.
    pub unattributed: Option<(Estimate, Estimate)>,
    /// How the target or the file ended, if it did.
    pub ended: Option<String>,
    /// Where the file is damaged, a sentence each.
    pub damage: Vec<String>,
}
