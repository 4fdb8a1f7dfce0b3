//! What a filter means in a session: which callstacks, which blocks, which frames.
//!
//! It is asked for with every drawing. So the last filters are kept as they were
//! understood, with what each name says to them: names that were judged stay so until
//! names change, and new ones are looked at as they come. What time alone changes (phases,
//! and times before the end) is made anew once a second at most.

use super::blocks::{self, Resolved};
use super::{Filter, NameTest, Names, Wrong, parse};
use crate::session::book::{Book, NodeInfo, Stack};
use crate::session::partition::crate_of;
use crate::session::then::by::{By, Cut};
use crate::session::then::only::Only;
use crate::session::{Connection, Session};
use std::cell::RefCell;
use std::sync::Arc;

/// So many filters are kept.
const KEPT: usize = 4;
/// See the module, in nanoseconds of the target's time.
const AGAIN_NS: u64 = 1_000_000_000;

/// The last filters, the latest first.
#[derive(Debug, Default)]
pub struct Kept(RefCell<Vec<Entry>>);

/// A filter, and what is known of it.
#[derive(Debug)]
struct Entry {
    text: String,
    parsed: Result<Filter, Wrong>,
    /// As of these names, by node: which tests its function and its place hold for.
    renamed: u64,
    nodes: Vec<[u32; 2]>,
    hidden: Vec<bool>,
    stacks: Vec<bool>,
    paths: Vec<Box<[u32]>>,
    resolved: Option<(u64, Result<Resolved, Wrong>)>,
    selection: Option<(Made, Arc<Selection>)>,
}

/// What a selection was made of.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    renamed: u64,
    stacks: usize,
    resolved: Result<Resolved, Wrong>,
}

/// How much of a callsite is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// No callstack of it.
    None,
    /// Some.
    Some,
    /// Every one.
    All,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Selection {
    /// By callstack; `None`: all.
    stacks: Option<Arc<[bool]>>,
    /// By group, if callstacks are chosen.
    groups: Vec<Share>,
    /// Callstacks without the frames that are hidden; empty: none are.
    paths: Vec<Box<[u32]>>,
    /// Of blocks, whatever their callstack.
    tests: Option<Arc<Only>>,
    /// Of blocks and callstacks.
    both: Option<Arc<Only>>,
}

/// Whether a filter can be understood, and says something in this session.
pub fn check(session: &Session, text: &str) -> Result<(), Wrong> {
    blocks::resolve(&parse(text)?.blocks, session).map(|_| ())
}

impl Selection {
    /// What `text` means now. What cannot be understood takes nothing: who asks has
    /// [`check`]ed it.
    #[must_use]
    pub fn of(session: &Session, text: &str) -> Arc<Self> {
        if text.is_empty() {
            return Arc::default();
        }
        let mut kept = session.filters.0.borrow_mut();
        if let Some(at) = kept.iter().position(|entry| entry.text == text) {
            kept[..=at].rotate_right(1);
        } else {
            kept.truncate(KEPT - 1);
            kept.insert(0, Entry::new(text));
        }
        kept[0].selection(session)
    }

    /// Whether a callstack is wanted.
    #[must_use]
    pub fn takes(&self, stack: u32) -> bool {
        self.stacks.as_ref().is_none_or(|taken| taken.get(stack as usize).is_some_and(|t| *t))
    }

    /// How much of a group is.
    #[must_use]
    pub fn share(&self, group: u32) -> Share {
        match &self.stacks {
            None => Share::All,
            Some(_) => self.groups.get(group as usize).copied().unwrap_or(Share::None),
        }
    }

    /// Whether any callstack of a group is.
    #[must_use]
    pub fn takes_any_of(&self, group: u32) -> bool {
        self.share(group) != Share::None
    }

    /// Whether callstacks are chosen, not all taken.
    #[must_use]
    pub const fn chooses_stacks(&self) -> bool {
        self.stacks.is_some()
    }

    /// Whether blocks are chosen one by one.
    #[must_use]
    pub const fn has_tests(&self) -> bool {
        self.tests.is_some()
    }

    /// Whether all is taken.
    #[must_use]
    pub const fn takes_all(&self) -> bool {
        self.stacks.is_none() && self.tests.is_none()
    }

    /// Whether it judges the first `seen` callstacks as one of the same filter and names did
    /// before: not where one of the two could not be understood.
    #[must_use]
    pub fn continues(&self, before: &Self, seen: usize) -> bool {
        self.hides() == before.hides()
            && match (&self.stacks, &before.stacks) {
                (None, None) => true,
                (Some(now), Some(before)) => now.get(..seen) == before.get(..seen),
                _ => false,
            }
    }

    /// Whether frames are taken out.
    #[must_use]
    pub const fn hides(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The path of callstack number `at` without the frames that are hidden; empty where it
    /// has no other.
    #[must_use]
    pub fn path<'a>(&'a self, at: u32, stack: &'a Stack) -> &'a [u32] {
        self.paths.get(at as usize).map_or(&stack.path, |path| path)
    }

    /// What is asked for where callstacks are counted one by one.
    #[must_use]
    pub fn by_stack(&self) -> Cut {
        Cut { by: By::Group, only: self.tests.clone() }
    }

    /// What is asked for where callsites are counted: where each is taken whole or not at
    /// all the numbers of all serve as well.
    #[must_use]
    pub fn by_group(&self) -> Cut {
        let whole = !self.groups.contains(&Share::Some);
        Cut { by: By::Group, only: if whole { &self.tests } else { &self.both }.clone() }
    }

    /// What is asked for where blocks are put together otherwise, or callsites.
    #[must_use]
    pub fn by(&self, by: By) -> Cut {
        Cut { by, only: self.both.clone() }
    }
}

impl Entry {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            parsed: parse(text),
            renamed: 0,
            nodes: Vec::new(),
            hidden: Vec::new(),
            stacks: Vec::new(),
            paths: Vec::new(),
            resolved: None,
            selection: None,
        }
    }

    fn selection(&mut self, session: &Session) -> Arc<Selection> {
        let Ok(filter) = &self.parsed else { return nothing() };
        let book = session.book();
        let now = session.now_ns();
        let gone = matches!(session.connection(), Connection::Lost(_) | Connection::Ended(_));
        let moves = filter.blocks.iter().any(|test| test.of.moves());
        let good = |made: u64| moves && !gone && (made..made + AGAIN_NS).contains(&now);
        let resolved = match &self.resolved {
            Some((made, resolved)) if good(*made) => resolved.clone(),
            _ => blocks::resolve(&filter.blocks, session),
        };
        if !self.resolved.as_ref().is_some_and(|(made, _)| good(*made)) {
            self.resolved = Some((now, resolved.clone()));
        }
        let made = Made { renamed: book.renamed(), stacks: book.stacks().len(), resolved };
        if let Some((known, selection)) = &self.selection
            && *known == made
        {
            return Arc::clone(selection);
        }
        if self.renamed != book.renamed() {
            self.renamed = book.renamed();
            (self.nodes, self.hidden) = <_>::default();
            (self.stacks, self.paths) = <_>::default();
        }
        let selection = match &made.resolved {
            Ok(resolved) => Arc::new(self.select(book, resolved)),
            Err(_) => nothing(),
        };
        self.selection = Some((made, Arc::clone(&selection)));
        selection
    }

    fn select(&mut self, book: &Book, resolved: &Resolved) -> Selection {
        let Ok(filter) = &self.parsed else { return Selection::default() };
        self.nodes.extend(book.nodes()[self.nodes.len()..].iter().map(|node| filter.judge(node)));
        let hidden = book.nodes()[self.hidden.len()..].iter().map(|node| {
            let function = &node.label.function;
            filter.hidden.iter().any(|pattern| pattern.fits(function, &node.lower()[0]))
        });
        self.hidden.extend(hidden);
        let new = (0u32..).zip(book.stacks()).skip(self.stacks.len());
        let taken = new.map(|(at, stack)| filter.takes(book, at, stack, &self.nodes));
        self.stacks.extend(taken);
        if !filter.hidden.is_empty() {
            let paths = book.stacks()[self.paths.len()..].iter().map(|stack| {
                let seen = stack.path.iter().copied().filter(|node| !self.hidden[*node as usize]);
                seen.collect()
            });
            self.paths.extend(paths);
        }
        let stacks: Option<Arc<[bool]>> =
            (!filter.names.is_empty()).then(|| self.stacks.as_slice().into());
        let mut groups = Vec::new();
        if stacks.is_some() {
            groups.resize(book.groups().numbers(), Share::None);
            for (at, group) in book.groups().iter() {
                let taken = |&&stack: &&u32| self.stacks[stack as usize];
                let n = group.stacks().iter().filter(taken).count();
                groups[at as usize] = match n {
                    0 => Share::None,
                    _ if n == group.stacks().len() => Share::All,
                    _ => Share::Some,
                };
            }
        }
        let [names, blocks] = &filter.source;
        let only = |source: Arc<str>, stacks: Option<Arc<[bool]>>| {
            let Resolved { tests, stamp } = resolved.clone();
            let any = !tests.is_empty() || stacks.is_some();
            any.then(|| Arc::new(Only::new(source, stamp, tests, stacks)))
        };
        let both = only(format!("{names}\n{blocks}").into(), stacks.clone());
        let tests = only(Arc::clone(blocks), None);
        Selection { stacks, groups, paths: self.paths.clone(), tests, both }
    }
}

/// What a filter takes that means nothing.
fn nothing() -> Arc<Selection> {
    let stacks: Arc<[bool]> = [].into();
    let none = Only::new("".into(), Vec::new(), Vec::new(), Some(Arc::clone(&stacks)));
    let both = Some(Arc::new(none));
    Arc::new(Selection { stacks: Some(stacks), tests: None, both, ..Selection::default() })
}

impl Filter {
    /// By test, whether a node's function, and its place, has it.
    fn judge(&self, node: &NodeInfo) -> [u32; 2] {
        let [function, location] = node.lower();
        let mut bits = [0; 2];
        for (i, NameTest { of, pattern, .. }) in self.names.iter().enumerate() {
            let (here, there) = match of {
                Names::Any => (
                    pattern.fits(&node.label.function, function),
                    pattern.fits(&node.label.location, location),
                ),
                Names::Functions => (pattern.fits(&node.label.function, function), false),
                Names::File => match &node.place {
                    Some((file, _)) => (false, pattern.has(file)),
                    None => (false, pattern.fits(&node.label.location, location)),
                },
                Names::Module => {
                    let label = &node.label;
                    let of = crate_of(&label.function, label.named);
                    (false, of.is_some_and(|name| pattern.has(name)))
                }
                Names::External => (false, false),
            };
            bits[0] |= u32::from(here) << i;
            bits[1] |= u32::from(there) << i;
        }
        bits
    }

    fn takes(&self, book: &Book, at: u32, stack: &Stack, nodes: &[[u32; 2]]) -> bool {
        let functions = stack.path.iter().fold(0, |all, node| all | nodes[*node as usize][0]);
        let found = functions | nodes[stack.callsite() as usize][1];
        self.names.iter().enumerate().all(|(i, test)| {
            let here = found >> i & 1 == 1;
            let has = |name: Option<&str>| name.is_some_and(|name| test.pattern.has(name));
            let found = match test.of {
                Names::Module => here || has(book.module_of(stack.group())),
                Names::External => has(book.external(at)),
                Names::Any | Names::Functions | Names::File => here,
            };
            found == test.holds
        })
    }
}
