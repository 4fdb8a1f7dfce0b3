//! Callstacks by what they begin with, kept from one flamegraph to the next.
//!
//! A flamegraph asks with every drawing how much goes through each frame that is wide enough
//! to be seen. A pass over a hundred thousand callstacks for each row of frames takes longer
//! than a drawing may, and hardly any of them has changed since the one before. So what was
//! added up stays:
//!
//! - a *prefix* is a way from the root, with the callstacks that begin so. As long as nobody
//!   looks below it they lie in it; then it is divided, and they lie in its children, but for
//!   those that end at it;
//! - by callstack it is known which prefix it lies in;
//! - a prefix has the sums of all that begins so. When the totals of a callstack change, its
//!   prefix and those above it are *stale*, and are added up anew before the next drawing,
//!   from their children or from their callstacks. Nothing is ever subtracted, so no rounding
//!   stays behind.
//!
//! Callstacks that come later join. All is made anew when names change or another filter is
//! asked about, the sums when it is another moment or metric.
//!
//! **Bounded.** Shares move, so with time more and more prefixes are divided that are too
//! narrow by now. With more than [`MOST`], and twice as many as a drawing needs, all is made
//! anew. Children stand behind their parents: from the end on, those of a prefix are added up
//! when it is reached.

mod division;
mod growing;
mod sums;

use super::filter::Selection;
use super::grow::Split;
use crate::session::Session;
use crate::session::book::Book;
pub use growing::Growing;
use heaptop_protocol::totals::Total;
use std::cell::{RefCell, RefMut};
use std::sync::Arc;
pub use sums::Asked;
use sums::{Counted, Sums};

/// See the module: 25 MB.
const MOST: usize = 1 << 16;
/// Of a callstack that the filter does not take.
const NOWHERE: u32 = u32::MAX;

/// Those of the last filter that was asked about.
#[derive(Debug, Default)]
pub struct Kept(RefCell<Option<Prefixes>>);

/// See the module.
#[derive(Debug)]
pub struct Prefixes {
    filter: String,
    renamed: u64,
    selection: Arc<Selection>,
    /// The first is empty: all callstacks begin so.
    all: Vec<Prefix>,
    /// By prefix. Above a stale one all are.
    stale: Vec<bool>,
    /// By callstack, the prefix that it lies in.
    lies_in: Vec<u32>,
    counted: Option<Counted>,
    /// By node of the book, a place among prefixes that are just made; else [`NOWHERE`].
    places: Vec<u32>,
    /// More are too many; 0: nobody knows yet how many are needed.
    most: usize,
}

/// A way from the root.
#[derive(Debug, Default)]
struct Prefix {
    /// Its last node,
    node: u32,
    /// so many from the root.
    depth: u32,
    parent: u32,
    divided: bool,
    /// In order of their nodes.
    children: Vec<u32>,
    /// The callstacks that end at it.
    ends: Vec<u32>,
    /// Those that go on, until it is divided.
    stacks: Vec<u32>,
    sums: Sums,
}

impl Kept {
    /// The prefixes of the callstacks that a filter takes, by now.
    pub fn of(
        &self,
        session: &Session,
        filter: &str,
        selection: &Arc<Selection>,
    ) -> RefMut<'_, Prefixes> {
        let (book, mut kept) = (session.book(), self.0.borrow_mut());
        let good = |kept: &mut Prefixes| {
            if kept.most == 0 {
                kept.most = MOST.max(kept.all.len() * 2);
            }
            kept.renamed == book.renamed()
                && kept.filter == filter
                && kept.all.len() <= kept.most
                && selection.continues(&kept.selection, kept.lies_in.len())
        };
        if !kept.as_mut().is_some_and(good) {
            *kept = Some(Prefixes::new(filter, book.renamed()));
        }
        RefMut::map(kept, |kept| {
            let kept = kept.get_or_insert_with(|| Prefixes::new(filter, book.renamed()));
            kept.selection = Arc::clone(selection);
            kept.join_new(book);
            kept
        })
    }
}

impl Prefixes {
    fn new(filter: &str, renamed: u64) -> Self {
        Self {
            filter: filter.to_owned(),
            renamed,
            selection: Arc::default(),
            all: vec![Prefix::default()],
            stale: vec![true],
            lies_in: Vec::new(),
            counted: None,
            places: Vec::new(),
            most: 0,
        }
    }

    /// Takes in the callstacks that have come since.
    fn join_new(&mut self, book: &Book) {
        let selection = Arc::clone(&self.selection);
        for (at, stack) in book.stacks().iter().enumerate().skip(self.lies_in.len()) {
            let at = at as u32;
            if selection.takes(at) {
                let prefix = self.join(at, selection.path(at, stack));
                self.lies_in.push(prefix);
                self.mark_stale(prefix);
            } else {
                self.lies_in.push(NOWHERE);
            }
        }
    }

    /// A callstack joins: where it lies.
    fn join(&mut self, stack: u32, path: &[u32]) -> u32 {
        let mut at = 0;
        loop {
            let prefix = &mut self.all[at as usize];
            let Some(&node) = path.get(prefix.depth as usize) else {
                prefix.ends.push(stack);
                return at;
            };
            if !prefix.divided {
                prefix.stacks.push(stack);
                return at;
            }
            at = match self.place_of(at, node) {
                Ok(place) => self.all[at as usize].children[place],
                Err(place) => {
                    let child = self.make(at, node);
                    self.all[at as usize].children.insert(place, child);
                    child
                }
            };
        }
    }

    /// The place of a node among the children of a prefix; where it would stand if it is none.
    fn place_of(&self, parent: u32, node: u32) -> Result<usize, usize> {
        let children = &self.all[parent as usize].children;
        children.binary_search_by_key(&node, |&child| self.all[child as usize].node)
    }

    /// A prefix that goes on from another.
    fn make(&mut self, parent: u32, node: u32) -> u32 {
        let depth = self.all[parent as usize].depth + 1;
        self.all.push(Prefix { node, depth, parent, ..Prefix::default() });
        self.stale.push(false);
        self.all.len() as u32 - 1
    }

    fn mark_stale(&mut self, mut at: u32) {
        while !std::mem::replace(&mut self.stale[at as usize], true) {
            at = self.all[at as usize].parent;
        }
    }

    /// The prefixes on the way to the zoom, the root and the zoom included; `None` where no
    /// callstack begins so.
    pub fn way(&mut self, asked: &Asked<'_>) -> Option<Vec<u32>> {
        let mut way = vec![0];
        let mut at = 0;
        for &node in asked.zoom {
            self.divide(at, asked);
            at = self.all[at as usize].children[self.place_of(at, node).ok()?];
            way.push(at);
        }
        Some(way)
    }

    /// All that begins with a prefix.
    pub fn total(&self, at: u32) -> &Total {
        &self.all[at as usize].sums.cum
    }

    /// The value of that part of it that has what is looked for.
    pub fn found(&self, at: u32) -> f64 {
        self.all[at as usize].sums.found
    }

    /// The child of a prefix that is divided.
    pub fn child(&self, at: u32, node: u32) -> Option<u32> {
        let place = self.place_of(at, node).ok()?;
        Some(self.all[at as usize].children[place])
    }

    /// The root of a tree that is grown from a prefix.
    pub fn root(&self, at: u32) -> Split<u32> {
        let Prefix { node, ref sums, .. } = self.all[at as usize];
        Split { node, part: at, cum: sums.cum, flat: sums.flat }
    }
}
