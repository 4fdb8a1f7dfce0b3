//! The language of filters.
//!
//! One line: words with spaces between them, all of which must hold.
//!
//! ```text
//! FILTER = { ["!"] WORD }              "!": where it does not hold
//! WORD   = TEXT                        fuzzy, on names
//!        | "re:" TEXT                  a regular expression on them
//!        | NAME ":" TEXT               a predicate on callstacks or blocks
//!        | NAME ("<"|"<="|"="|">="|">") NUMBER
//! TEXT   = letters up to a space | '"' letters, \" and \\ '"'
//! ```
//!
//! A text in quotes is taken as it is: contained letter by letter, or, of threads and
//! phases, the whole name. `std::vec` and `Vec<u8>` are words, since no predicate is called
//! so.
//!
//! **Two kinds.** What is asked of *callstacks* picks those whose totals are counted: known
//! as far as totals are, from the target's start on. What is asked of *blocks* is known of
//! single ones alone: all numbers then come from a pass over blocks ([`crate::session::then::only`]), and
//! of what was over before heaptop came there are none. [`Selection`] is what a filter
//! means in a session at this moment.
//!
//! `filter(x)` and `filter(!x)` together count everything, whatever `x` is.

mod blocks;
mod parse;
mod selection;
#[cfg(test)]
mod tests;
mod words;

pub use parse::{parse, with_thread, without_thread};
pub use selection::{Kept, Selection, Share, check};

pub(crate) use blocks::thread_name;
pub use blocks::unknown;

use blocks::BlockTest;
use std::sync::Arc;
use words::Pattern;

/// Longest filter, in characters.
pub const LONGEST: usize = 200;
/// Most tests of names: each is a bit.
const MOST_NAMES: usize = 32;

/// What is wrong with a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Where, in characters from the beginning.
    pub at: usize,
    /// What: part of a sentence.
    pub says: String,
}

impl Wrong {
    fn new(at: usize, says: impl Into<String>) -> Self {
        Self { at, says: says.into() }
    }

    /// The sentence on one line, with what stands where it is wrong.
    #[must_use]
    pub fn shown(&self, filter: &str) -> String {
        let rest: String = filter.chars().skip(self.at).collect();
        format!("{}: at character {}, “{rest}”", self.says, self.at + 1)
    }
}

/// A filter, as it was understood.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    names: Vec<NameTest>,
    blocks: Vec<Placed<BlockTest>>,
    /// Frames that are taken out.
    hidden: Vec<Pattern>,
    /// What of it is asked of names, as it was typed, and what of blocks.
    source: [Arc<str>; 2],
}

/// Something that must hold, or must not, and where it was typed.
#[derive(Debug, Clone)]
struct Placed<T> {
    holds: bool,
    at: usize,
    of: T,
}

/// What is asked of a callstack.
#[derive(Debug, Clone)]
struct NameTest {
    holds: bool,
    of: Names,
    pattern: Pattern,
}

/// Which of a callstack's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Functions, and the callsite's location.
    Any,
    /// Functions.
    Functions,
    /// The callsite's file.
    File,
    /// The callsite's module, or its crate.
    Module,
    /// What memory outside the heap it is of; without a pattern: any.
    External,
}

/// What may be asked for, for the help: how it is written, and what it says.
#[derive(Debug)]
pub struct Predicate {
    /// How it is written.
    pub shown: &'static str,
    /// What it takes.
    pub says: &'static str,
    /// Its name, `""` of a plain word.
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Regex,
    Not,
    Name(Names),
    Hide,
    Thread,
    Phase,
    Cause,
    Size,
    Age,
    Lifetime,
    Born,
    Died,
    Promoted,
}

macro_rules! predicates {
    ($($shown:literal $name:literal $kind:expr, $says:literal;)*) => {
        &[$(Predicate { shown: $shown, says: $says, name: $name, kind: $kind }),*]
    };
}

/// All predicates, in the order of the help. The parser knows no others.
pub const PREDICATES: &[Predicate] = predicates! {
    "word" "" Kind::Word, "fuzzy: letters in order, each next to the last or where a word begins: fc finds fill_cache";
    "\"a b\"" "" Kind::Word, "contained as it is; words are looked for in all functions and the callsite's location";
    "!…" "" Kind::Not, "what follows does not hold; words and predicates with spaces between must all hold";
    "re:EXPR" "re" Kind::Regex, "a regular expression in those names; (?i) ignores case";
    "via:FN" "via" Kind::Name(Names::Functions), "callstacks with this function";
    "file:F" "file" Kind::Name(Names::File), "the callsite's file";
    "module:M" "module" Kind::Name(Names::Module), "the callsite's module or crate";
    "hide:FN" "hide" Kind::Hide, "takes frames out of trees, flamegraphs and exports: their callers have what is theirs";
    "thread:NAME" "thread" Kind::Thread, "blocks that this thread allocated; in quotes: the whole name";
    "phase:NAME" "phase" Kind::Phase, "blocks born in this phase of the program; in quotes: the whole name";
    "cause:C" "cause" Kind::Cause, "malloc, calloc, realloc, aligned; external or mmap: memory outside the heap";
    "size>4K" "size" Kind::Size, "bytes asked for; also < <= = >=";
    "age>10s" "age" Kind::Age, "how long blocks have lived, or lived until they were over";
    "lifetime<1ms" "lifetime" Kind::Lifetime, "the same of blocks that are over alone";
    "born:A..B" "born" Kind::Born, "born from one time to another: 90s -10s 12:34:56 a mark's name";
    "died:A..B" "died" Kind::Died, "died from one time to another";
    "promoted:yes" "promoted" Kind::Promoted, "born young and outlived the nursery's cycle; no: did not";
};

impl Filter {
    /// Whether it takes everything as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.blocks.is_empty() && self.hidden.is_empty()
    }

    /// Whether it takes frames out of callstacks.
    #[must_use]
    pub fn hides(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether it asks for something of single blocks.
    #[must_use]
    pub fn is_of_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }
}
