//! Callsites put together: by function, by file, by crate or module.
//!
//! Made when somebody asks, and kept until a callstack or a name changes. Figures are not
//! in it: they are added up from the groups of its classes.
//!
//! Of functions there are more than callsites have: whoever calls has a class as well,
//! without groups of its own. What goes through a class is in [`Partition::through`].

use super::book::Book;
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
    /// Its groups.
    pub groups: Vec<u32>,
}

/// All classes.
#[derive(Debug, Default)]
pub struct Partition {
    /// In no order.
    pub classes: Vec<Class>,
    /// Of functions: by node, its class.
    of_node: Vec<u32>,
    /// Of functions: who goes through them, made when somebody asks.
    passing: OnceLock<Passing>,
}

/// By class, the callstacks that go through it, side by side.
#[derive(Debug, Default)]
struct Passing {
    /// Where a class' callstacks begin; one more than there are classes.
    begins: Vec<u32>,
    stacks: Vec<u32>,
}

/// The last one.
#[derive(Debug, Default)]
pub struct Kept(RefCell<Option<(Together, Arc<Partition>)>>);

impl Kept {
    /// Callstacks or names have changed.
    pub fn forget(&mut self) {
        *self.0.get_mut() = None;
    }

    /// The partition of `book`.
    pub fn of(&self, book: &Book, together: Together) -> Arc<Partition> {
        if let Some((kept, partition)) = &*self.0.borrow()
            && *kept == together
        {
            return Arc::clone(partition);
        }
        let partition = Arc::new(Partition::of(book, together));
        *self.0.borrow_mut() = Some((together, Arc::clone(&partition)));
        partition
    }
}

impl Partition {
    fn of(book: &Book, together: Together) -> Self {
        let mut making =
            Making { together, partition: Self::default(), by_name: FxHashMap::default() };
        let nodes = book.nodes();
        if together == Together::Function {
            // Nodes stay when names have come for them: those on a path alone are rows.
            let mut on_path = vec![false; nodes.len()];
            for node in book.stacks().iter().flat_map(|stack| &stack.path) {
                on_path[*node as usize] = true;
            }
            let of_node = nodes.iter().zip(on_path).map(|(node, on_path)| {
                if on_path {
                    making.class(&node.label.function, node.label.named)
                } else {
                    u32::MAX
                }
            });
            making.partition.of_node = of_node.collect();
        }
        for (at, group) in book.groups().iter() {
            let label = &nodes[group.callsite() as usize].label;
            let class = match together {
                Together::Function => making.partition.of_node[group.callsite() as usize],
                Together::File => match label.location.rsplit_once(':') {
                    Some((file, line)) if line.bytes().all(|b| b.is_ascii_digit()) => {
                        making.class(file, true)
                    }
                    _ if label.location.is_empty() => making.class("(no file)", false),
                    _ => making.class(&label.location, true),
                },
                Together::Crate => match crate_of(&label.function, label.named) {
                    Some(name) => making.class(name, true),
                    None => making.class(book.module_of(at).unwrap_or("(no module)"), false),
                },
            };
            making.partition.classes[class as usize].groups.push(at);
        }
        making.partition
    }

    /// The callstacks that go through a class of functions, each once, in order.
    pub fn through(&self, book: &Book, class: u32) -> &[u32] {
        let Passing { begins, stacks } = self.passing.get_or_init(|| self.passing(book));
        let place = |class: usize| begins.get(class).map_or(stacks.len(), |at| *at as usize);
        &stacks[place(class as usize)..place(class as usize + 1)]
    }

    fn passing(&self, book: &Book) -> Passing {
        let mut begins = vec![0u32; self.classes.len() + 1];
        self.each_passing(book, |_, class| begins[class as usize + 1] += 1);
        for class in 1..begins.len() {
            begins[class] += begins[class - 1];
        }
        let mut next = begins.clone();
        let mut stacks = vec![0; begins.last().map_or(0, |all| *all as usize)];
        self.each_passing(book, |stack, class| {
            let place = &mut next[class as usize];
            stacks[*place as usize] = stack;
            *place += 1;
        });
        Passing { begins, stacks }
    }

    /// Tells of each callstack which functions it goes through, each once.
    fn each_passing(&self, book: &Book, mut one: impl FnMut(u32, u32)) {
        let mut seen = vec![u32::MAX; self.classes.len()];
        for (stack, of) in (0..).zip(book.stacks()) {
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

struct Making {
    together: Together,
    partition: Partition,
    by_name: FxHashMap<Arc<str>, u32>,
}

impl Making {
    fn class(&mut self, name: &str, named: bool) -> u32 {
        if let Some(&class) = self.by_name.get(name) {
            return class;
        }
        let name: Arc<str> = name.into();
        let mut hasher = FxHasher::default();
        (self.together, &name).hash(&mut hasher);
        let class = self.partition.classes.len() as u32;
        self.partition.classes.push(Class {
            key: NodeKey(hasher.finish()),
            label: Label { function: Arc::clone(&name), location: "".into(), named },
            groups: Vec::new(),
        });
        self.by_name.insert(name, class);
        class
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
