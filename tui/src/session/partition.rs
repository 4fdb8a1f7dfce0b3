//! Callsites put together: by function, by file, by crate or module.
//!
//! Made when somebody asks, and kept until a name changes or a callstack is defined anew.
//! Callstacks that come are taken in, one by one: with many of them, and new ones all the time,
//! a partition would else be made anew with every drawing. Figures are not in it: they are
//! added up from the groups of its classes.
//!
//! Of functions there are more than callsites have: whoever calls has a class as well,
//! without groups of its own. What goes through a class is in [`Partition::through`].

use super::book::{Book, Stack};
use crate::query::{Label, NodeKey};
use rustc_hash::{FxHashMap, FxHasher};
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// What callsites are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Together {
    /// The function, whatever its line.
    Function,
    /// The source file.
    File,
    /// The crate, package or namespace by the function's name, else the module.
    Crate,
}

/// A class of callsites.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Stable while names stand.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Its groups, in order.
    pub groups: Vec<u32>,
}

/// All classes.
#[derive(Debug, Clone)]
pub struct Partition {
    together: Together,
    /// In no order: those that come are behind those that were there.
    pub classes: Vec<Class>,
    by_name: FxHashMap<Arc<str>, u32>,
    /// By group, whether it is in a class.
    taken: Vec<bool>,
    /// Of functions: by node, its class; `u32::MAX` of one that no path has.
    of_node: Vec<u32>,
    /// How many callstacks are in it.
    stacks: usize,
    /// Of functions, by class: who goes through it, in order. Made when somebody asks.
    passing: OnceLock<Vec<Vec<u32>>>,
    /// Another one of each state.
    stamp: u64,
}

/// The last one.
#[derive(Debug, Default)]
pub struct Kept(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    partition: Option<Arc<Partition>>,
    stamps: u64,
}

impl Kept {
    /// Names have changed, or callstacks that were known.
    pub fn forget(&mut self) {
        self.0.get_mut().partition = None;
    }

    /// The partition of `book`.
    pub fn of(&self, book: &Book, together: Together) -> Arc<Partition> {
        let State { partition, stamps } = &mut *self.0.borrow_mut();
        if partition.as_ref().is_none_or(|kept| kept.together != together) {
            *partition = Some(Arc::new(Partition::new(together)));
        }
        let kept = partition.get_or_insert_with(|| Arc::new(Partition::new(together)));
        if kept.stamp == 0 || kept.stacks < book.stacks().len() {
            *stamps += 1;
            let partition = Arc::make_mut(kept);
            partition.take_in(book);
            partition.stamp = *stamps;
        }
        Arc::clone(kept)
    }
}

impl Partition {
    /// Without any callstack.
    fn new(together: Together) -> Self {
        Self {
            together,
            classes: Vec::new(),
            by_name: FxHashMap::default(),
            taken: Vec::new(),
            of_node: Vec::new(),
            stacks: 0,
            passing: OnceLock::new(),
            stamp: 0,
        }
    }

    /// Takes in the callstacks that have come.
    fn take_in(&mut self, book: &Book) {
        let all = book.stacks();
        let first = std::mem::replace(&mut self.stacks, all.len());
        self.of_node.resize(book.nodes().len(), u32::MAX);
        self.taken.resize(book.groups().numbers(), false);
        let mut passing = self.passing.take();
        let mut of_stack = Vec::new();
        for (at, stack) in (first as u32..).zip(&all[first..]) {
            if self.together == Together::Function {
                self.take_path(book, stack);
            }
            let group = stack.group();
            if !std::mem::replace(&mut self.taken[group as usize], true) {
                let class = self.class_of(book, group);
                let groups = &mut self.classes[class as usize].groups;
                // A group that had lost its callstacks comes back to its place.
                groups.insert(groups.partition_point(|known| *known < group), group);
            }
            if let Some(passing) = &mut passing {
                passing.resize_with(self.classes.len(), Vec::new);
                of_stack.clear();
                of_stack.extend(stack.path.iter().map(|&node| self.of_node[node as usize]));
                of_stack.sort_unstable();
                of_stack.dedup();
                for &class in &of_stack {
                    passing[class as usize].push(at);
                }
            }
        }
        self.passing = passing.map_or_else(OnceLock::new, OnceLock::from);
    }

    /// The functions on a path have classes.
    fn take_path(&mut self, book: &Book, stack: &Stack) {
        for &node in &stack.path {
            if self.of_node[node as usize] == u32::MAX {
                let label = &book.nodes()[node as usize].label;
                self.of_node[node as usize] = self.class(&label.function, label.named);
            }
        }
    }

    /// The class of a group.
    fn class_of(&mut self, book: &Book, group: u32) -> u32 {
        let callsite = book.groups().group(group).callsite() as usize;
        let label = &book.nodes()[callsite].label;
        match self.together {
            Together::Function => self.of_node[callsite],
            Together::File => match label.location.rsplit_once(':') {
                Some((file, line)) if line.bytes().all(|b| b.is_ascii_digit()) => {
                    self.class(file, true)
                }
                _ if label.location.is_empty() => self.class("(no file)", false),
                _ => self.class(&label.location, true),
            },
            Together::Crate => match crate_of(&label.function, label.named) {
                Some(name) => self.class(name, true),
                None => self.class(book.module_of(group).unwrap_or("(no module)"), false),
            },
        }
    }

    /// The class of a name.
    fn class(&mut self, name: &str, named: bool) -> u32 {
        if let Some(&class) = self.by_name.get(name) {
            return class;
        }
        let name: Arc<str> = name.into();
        let mut hasher = FxHasher::default();
        (self.together, &name).hash(&mut hasher);
        let class = self.classes.len() as u32;
        self.classes.push(Class {
            key: NodeKey(hasher.finish()),
            label: Label { function: Arc::clone(&name), location: "".into(), named },
            groups: Vec::new(),
        });
        self.by_name.insert(name, class);
        class
    }

    /// Another number when it has changed, or is another one.
    #[must_use]
    pub const fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The callstacks that go through a class of functions, each once, in order.
    pub fn through(&self, book: &Book, class: u32) -> &[u32] {
        let passing = self.passing.get_or_init(|| self.passing(book));
        passing.get(class as usize).map_or(&[], Vec::as_slice)
    }

    fn passing(&self, book: &Book) -> Vec<Vec<u32>> {
        let mut counts = vec![0usize; self.classes.len()];
        self.each_passing(book, |_, class| counts[class as usize] += 1);
        let mut passing: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
        self.each_passing(book, |stack, class| passing[class as usize].push(stack));
        passing
    }

    /// Tells of each callstack which functions it goes through, each once.
    fn each_passing(&self, book: &Book, mut one: impl FnMut(u32, u32)) {
        let mut seen = vec![u32::MAX; self.classes.len()];
        for (stack, of) in (0..).zip(&book.stacks()[..self.stacks]) {
            for &node in &of.path {
                let class = self.of_node.get(node as usize).copied().unwrap_or(u32::MAX);
                let Some(seen) = seen.get_mut(class as usize) else { continue };
                if std::mem::replace(seen, stack) != stack {
                    one(stack, class);
                }
            }
        }
    }
}

/// The crate or namespace in a function's name: what stands before the first `::`, of a
/// method's type if it is one; of OCaml's names what stands before the first dot. `None`
/// where the name has neither.
#[must_use]
pub fn crate_of(function: &str, named: bool) -> Option<&str> {
    if !named {
        // `module+0x1234`.
        return None;
    }
    let mut name = function;
    loop {
        name = name.trim_start_matches(['<', '&', '*', '[', '(', ' ']);
        let words = ["mut ", "const ", "dyn ", "impl "];
        let Some(rest) = words.iter().find_map(|word| name.strip_prefix(word)) else { break };
        name = rest;
    }
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    let (first, rest) = name.split_at(end);
    if first.is_empty() {
        return None;
    }
    if rest.starts_with("::") || rest.starts_with('.') {
        return Some(first);
    }
    // Of `<T as orders::Codec>::f` and `<[T] as …>` it is the trait's.
    rest.split_once(" as ").and_then(|(_, of_trait)| crate_of(of_trait, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;

    /// Callstacks that come one by one make what is made of all of them: the same classes with
    /// the same groups and callstacks, also when groups were empty for a while.
    #[test]
    fn what_is_taken_in_is_what_is_made_anew() {
        let mut f = Fixture::new(1);
        let site = |i: u64| format!("crate{}::site{}", i % 3, i * i % 17);
        let caller = |i: u64| format!("crate{}::caller{}", i % 5, i * 7 % 11);
        let said = |partition: &Partition, book: &Book| {
            let classes = (0..).zip(&partition.classes).map(|(at, class)| {
                let through = match partition.together {
                    Together::Function => partition.through(book, at).to_vec(),
                    Together::File | Together::Crate => Vec::new(),
                };
                (class.key, class.label.clone(), class.groups.clone(), through)
            });
            let mut classes: Vec<_> = classes.collect();
            classes.sort_by_key(|class| class.0);
            classes
        };
        let mut seen = 0;
        for i in 0..160 {
            // One of them calls itself.
            let path = ["main".to_owned(), caller(i), caller(i / 3), caller(i), site(i)];
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            if i % 2 == 0 {
                // A name comes later: the callstack moves from one group to another.
                f.bare_stack(&path);
                if i % 20 == 0 {
                    f.name(&path);
                }
            } else {
                f.stack(&path);
            }
            // Each is looked at for a while, and not at every change.
            let together =
                [Together::Function, Together::File, Together::Crate][i as usize / 40 % 3];
            if i % 4 == 1 {
                continue;
            }
            let book = f.session.book();
            let before = book.partition(together).stamp();
            assert_eq!(book.partition(together).stamp(), before, "nothing has come");
            let mut anew = Partition::new(together);
            anew.take_in(book);
            let kept = book.partition(together);
            assert_eq!(said(&kept, book), said(&anew, book), "{together:?} {i}");
            assert!(kept.classes.iter().all(|class| class.groups.is_sorted()), "{i}");
            let groups = kept.classes.iter().map(|class| class.groups.len()).sum::<usize>();
            assert_eq!(groups, book.groups().count(), "each in one class, {together:?} {i}");
            seen += kept.classes.len();
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn names_tell_their_crate() {
        for (function, name) in [
            ("orders::cache::fill_cache", Some("orders")),
            ("<orders::Foo as core::clone::Clone>::clone", Some("orders")),
            ("<&mut orders::Foo>::f", Some("orders")),
            ("<T as orders::Codec>::encode", Some("orders")),
            ("<[T] as orders::Codec>::encode", Some("orders")),
            ("std::vector<int>::push_back(int)", Some("std")),
            ("Stdlib__List.init_aux", Some("Stdlib__List")),
            ("main", None),
            ("grow(int)", None),
            ("", None),
            ("<", None),
        ] {
            assert_eq!(crate_of(function, true), name, "{function}");
        }
        assert_eq!(crate_of("libfoo.so+0x12", false), None);
    }
}
