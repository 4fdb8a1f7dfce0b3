//! Names, callstacks and their grouping by callsite.
//!
//! Data, each in a dense vector and named by its place in it:
//!
//! - *nodes*: what a row or a branch of a tree is: a function and line, a frame
//!   without a name, or one of the words in brackets. Never removed, so that a
//!   [`NodeKey`] (a hash of what the node is) stands while names stand;
//! - *frames*: each distinct frame once, with the nodes it expands to (inlined
//!   functions), and the callstacks it occurs in;
//! - *stacks*: frames as sent, and the *path* made of them: nodes, root first,
//!   ending with the callsite. What lies behind it is an allocator's or the
//!   runtime's and shows nowhere; nor does what Rust's runtime does before it
//!   enters `main` or a thread's function, which ends with a frame that exists to
//!   say so ([`BEGIN`]).
//!
//! A name that arrives re-derives the paths of the callstacks with that frame,
//! and moves them to their new group. So a query finds groups ready.

use super::callsite::{Owner, Rules};
use super::groups::Groups;
use super::names::{Named, Symbol};
use super::partition::{self, Partition, Together};
use super::sane;
use super::search::{Lower, Search};
use crate::query::{Label, NodeKey};
use heaptop_protocol::callstack::{Callstack, EXTERNAL, End, Frame, Module};
use heaptop_protocol::ids::{ModuleId, StackId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Most callstacks; further ones count as `(other stacks)`.
pub const MOST_STACKS: usize = 1 << 20;
/// Most frames of all callstacks together.
const MOST_FRAMES: usize = 1 << 25;
/// Most different frames.
const MOST_DIFFERENT_FRAMES: usize = 1 << 22;
/// Most frames of one callstack; more are cut at the root end.
const MOST_DEPTH: usize = 512;
/// The frame of Rust's runtime from which on a stack is the program's.
const BEGIN: &str = "__rust_begin_short_backtrace";
/// Most functions inlined into one frame; more are cut inside.
const MOST_INLINED: usize = 64;

/// A node.
#[derive(Debug, Clone)]
pub struct NodeInfo {
    /// Its key.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// File and line, as the debug information has them.
    pub place: Option<(Arc<str>, Option<u32>)>,
    lower: Lower,
}

impl NodeInfo {
    /// Function and location in lower case.
    pub(crate) fn lower(&self) -> &[Box<str>; 2] {
        self.lower.get_or_init(|| {
            [&self.label.function, &self.label.location].map(|name| name.to_lowercase().into())
        })
    }
}

#[derive(Debug, Clone)]
struct FrameInfo {
    frame: Frame,
    /// Outermost first; never empty.
    nodes: Vec<(u32, Owner)>,
    stacks: Vec<u32>,
    /// Its names were looked for, and there are none.
    nameless: bool,
}

/// A callstack.
#[derive(Debug, Clone)]
pub struct Stack {
    /// Its id.
    pub id: StackId,
    frames: Box<[u32]>,
    /// Nodes, root first, the callsite last; never empty.
    pub path: Box<[u32]>,
    /// Why it ends at the root end; `None` for one that was never defined.
    pub end: Option<End>,
    /// Its group, and its place there.
    group: u32,
    place: u32,
}

impl Stack {
    /// The node it is counted at.
    #[must_use]
    pub fn callsite(&self) -> u32 {
        self.path[self.path.len() - 1]
    }

    /// The number of its callsite's group.
    #[must_use]
    pub const fn group(&self) -> u32 {
        self.group
    }
}

/// Names, callstacks, groups.
#[derive(Debug, Default)]
pub struct Book {
    rules: Rules,
    modules: FxHashMap<ModuleId, Module>,
    nodes: Vec<NodeInfo>,
    by_key: FxHashMap<NodeKey, u32>,
    frames: Vec<FrameInfo>,
    by_frame: FxHashMap<Frame, u32>,
    stacks: Vec<Stack>,
    /// By callstack, its group: who looks at all blocks reads nothing else of them.
    group_of: Vec<u32>,
    by_id: FxHashMap<StackId, u32>,
    groups: Groups,
    search: Search,
    partitions: partition::Kept,
    wanted: Vec<Frame>,
    frames_held: usize,
    regrouped: u64,
    renamed: u64,
    /// Callstacks that found no room here.
    pub refused: u64,
}

impl Book {
    /// The modules by id.
    #[must_use]
    pub const fn modules(&self) -> &FxHashMap<ModuleId, Module> {
        &self.modules
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[NodeInfo] {
        &self.nodes
    }

    /// The node of a key.
    #[must_use]
    pub fn node(&self, key: NodeKey) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The callstacks.
    #[must_use]
    pub fn stacks(&self) -> &[Stack] {
        &self.stacks
    }

    /// The number of each callstack's group.
    #[must_use]
    pub fn group_of(&self) -> &[u32] {
        &self.group_of
    }

    /// Callsites with the callstacks that end there.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// By callstack: whether, ignoring case, the function of a node on its path has
    /// `text`, or its callsite's location.
    #[must_use]
    pub fn containing(&self, text: &str) -> Arc<[bool]> {
        self.search.containing(text, &self.nodes, &self.stacks)
    }

    /// Callsites put together.
    #[must_use]
    pub fn partition(&self, together: Together) -> Arc<Partition> {
        self.partitions.of(self, together)
    }

    /// The file name of the module that a group's callsite is in.
    #[must_use]
    pub fn module_of(&self, group: u32) -> Option<&str> {
        let group = self.groups.group(group);
        let stack = &self.stacks[*group.stacks().first()? as usize];
        let here = |frame: &&u32| {
            let nodes = &self.frames[**frame as usize].nodes;
            nodes.iter().any(|(node, _)| *node == group.callsite())
        };
        let frame = stack.frames.iter().rev().find(here).or_else(|| stack.frames.last())?;
        let module = self.modules.get(&self.frames[*frame as usize].frame.module)?;
        module.path.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// Names have changed, or callstacks that were known.
    fn forget(&mut self) {
        self.search.forget();
        self.partitions.forget();
    }

    /// The totals of a callstack are others.
    pub(super) fn count_anew(&mut self, stack: u32) {
        let stack = &self.stacks[stack as usize];
        self.groups.count_anew(stack.group, stack.place);
    }

    /// Changes when callstacks that were known have come to other groups.
    #[must_use]
    pub const fn regrouped(&self) -> u64 {
        self.regrouped
    }

    /// Changes when callstacks or names have changed that were known.
    #[must_use]
    pub const fn renamed(&self) -> u64 {
        self.renamed
    }

    /// By callstack, the kind of memory outside the heap that its blocks are.
    #[must_use]
    pub fn external(&self, stack: u32) -> Option<&str> {
        let innermost = self.stacks.get(stack as usize)?.frames.last()?;
        let module = self.modules.get(&self.frames[*innermost as usize].frame.module)?;
        module.path.strip_prefix(EXTERNAL).map(|kind| kind.trim_end_matches(']'))
    }

    /// Frames not handed out before.
    pub fn take_wanted(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.wanted)
    }

    /// A module is defined, or defined anew.
    pub fn define_module(&mut self, module: Module) {
        let id = module.id;
        let module = Module { path: sane::text(&module.path).into_owned(), ..module };
        let known = self.modules.insert(id, module.clone());
        if known.is_some_and(|old| old.path != module.path) {
            let bare = |f: &&FrameInfo| f.frame.module == id;
            let frames: Vec<Frame> = self.frames.iter().filter(bare).map(|f| f.frame).collect();
            self.wanted.extend(&frames);
            self.rename(frames.into_iter().map(|frame| Named { frame, symbols: Vec::new() }));
        }
    }

    /// A callstack is defined, or defined anew. Its place in [`Self::stacks`].
    pub fn define_stack(&mut self, stack: &Callstack) -> u32 {
        let cut = stack.frames.len().saturating_sub(MOST_DEPTH);
        let frames = &stack.frames[cut..];
        if self.frames.len() + frames.len() > MOST_DIFFERENT_FRAMES {
            self.refused += 1;
            return self.stack(StackId::OTHER);
        }
        let frames: Box<[u32]> = frames.iter().map(|frame| self.frame(*frame)).collect();
        let end = if cut > 0 { End::Truncated } else { stack.end };
        self.put_stack(stack.id, frames, Some(end))
    }

    /// The place of a callstack; one that was never defined gets a place of its own.
    pub fn stack(&mut self, id: StackId) -> u32 {
        match self.by_id.get(&id) {
            Some(&place) => place,
            None => self.put_stack(id, Box::default(), None),
        }
    }

    fn put_stack(&mut self, id: StackId, frames: Box<[u32]>, end: Option<End>) -> u32 {
        let known = self.by_id.get(&id).copied();
        if let Some(at) = known {
            let old = &self.stacks[at as usize];
            if old.frames == frames && old.end == end {
                return at;
            }
        }
        let full = self.frames_held + frames.len() > MOST_FRAMES
            || (known.is_none() && self.stacks.len() >= MOST_STACKS);
        if full && id != StackId::OTHER {
            self.refused += 1;
            return known.unwrap_or_else(|| self.stack(StackId::OTHER));
        }
        self.search.forget();
        if known.is_some() {
            self.forget();
        }
        // Of a stack defined anew the old frames stay counted: their lists keep it.
        self.frames_held += frames.len();
        let at = known.unwrap_or(self.stacks.len() as u32);
        for &frame in frames.iter().collect::<FxHashSet<_>>() {
            self.frames[frame as usize].stacks.push(at);
        }
        if known.is_some() {
            self.renamed += 1;
            self.leave_group(at);
            let old = &mut self.stacks[at as usize];
            old.frames = frames;
            old.end = end;
        } else {
            self.group_of.push(0);
            self.stacks.push(Stack { id, frames, path: Box::default(), end, group: 0, place: 0 });
            self.by_id.insert(id, at);
        }
        self.derive(at);
        self.join_group(at);
        at
    }

    /// Modules with frames that have no names, though they were looked for: the path, and
    /// how many frames; most frames first.
    #[must_use]
    pub fn unnamed(&self) -> Vec<(String, usize)> {
        let mut by_module: FxHashMap<ModuleId, usize> = FxHashMap::default();
        for info in self.frames.iter().filter(|info| info.nameless) {
            *by_module.entry(info.frame.module).or_default() += 1;
        }
        let path = |id: &ModuleId| match self.modules.get(id) {
            // Memory outside the heap has no code.
            Some(module) if module.path.starts_with(EXTERNAL) => None,
            Some(module) => Some(sane::text(&module.path).into_owned()),
            None => Some("code outside of all modules".to_owned()),
        };
        let mut unnamed: Vec<_> =
            by_module.iter().filter_map(|(id, n)| Some((path(id)?, *n))).collect();
        unnamed.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        unnamed
    }

    /// Names have come. Whether anything changed.
    pub fn rename(&mut self, names: impl Iterator<Item = Named>) -> bool {
        self.forget();
        self.renamed += 1;
        let mut touched = FxHashSet::default();
        for Named { frame, symbols } in names {
            let Some(&at) = self.by_frame.get(&frame) else { continue };
            let nodes = self.expand(frame, &symbols);
            let info = &mut self.frames[at as usize];
            info.nameless = symbols.is_empty();
            if info.nodes != nodes {
                info.nodes = nodes;
                touched.extend(info.stacks.iter().copied());
            }
        }
        for &stack in &touched {
            self.leave_group(stack);
            self.derive(stack);
            self.join_group(stack);
        }
        !touched.is_empty()
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        if let Some(&at) = self.by_frame.get(&frame) {
            return at;
        }
        let nodes = self.expand(frame, &[]);
        let at = self.frames.len() as u32;
        self.frames.push(FrameInfo { frame, nodes, stacks: Vec::new(), nameless: false });
        self.by_frame.insert(frame, at);
        self.wanted.push(frame);
        at
    }

    /// The nodes of a frame, outermost first.
    fn expand(&mut self, frame: Frame, symbols: &[Symbol]) -> Vec<(u32, Owner)> {
        let path = self.modules.get(&frame.module).map_or("", |m| m.path.as_str());
        if symbols.is_empty() {
            let owner = self.rules.of_module(path);
            let function: Arc<str> = match path.rsplit('/').next() {
                Some(name) if name.starts_with(EXTERNAL) => name.into(),
                Some(name) if !name.is_empty() => format!("{name}+{:#x}", frame.offset).into(),
                _ => format!("{:#x}", frame.offset).into(),
            };
            let label = Label { function, location: "".into(), named: false };
            return vec![(self.intern(&(0u8, frame), label), owner)];
        }
        // The innermost end decides the callsite: what is cut lies outside.
        let cut = symbols.len().saturating_sub(MOST_INLINED);
        let owners: Vec<Owner> =
            symbols[cut..].iter().map(|s| self.rules.of_symbol(s, path)).collect();
        let nodes = symbols[cut..].iter().map(|symbol| self.symbol(symbol));
        nodes.zip(owners).collect()
    }

    fn symbol(&mut self, symbol: &Symbol) -> u32 {
        let clean = sane::text(&symbol.function);
        let function = without_hash(&clean);
        let location = symbol.file.as_deref().map_or(String::new(), |file| {
            let file = sane::text(file);
            let end = telling_end(&file);
            symbol.line.map_or_else(|| end.to_owned(), |line| format!("{end}:{line}"))
        });
        let identity = (1u8, function, &symbol.file, symbol.line);
        let label = Label { function: function.into(), location: location.into(), named: true };
        let place = symbol.file.clone().map(|file| (file, symbol.line));
        let at = self.intern(&identity, label);
        self.nodes[at as usize].place = place;
        at
    }

    fn words(&mut self, words: &str) -> u32 {
        let label = Label { function: words.into(), location: "".into(), named: true };
        self.intern(&(2u8, words), label)
    }

    fn intern(&mut self, identity: &impl Hash, label: Label) -> u32 {
        let mut hasher = DefaultHasher::new();
        identity.hash(&mut hasher);
        let key = NodeKey(hasher.finish());
        if let Some(&at) = self.by_key.get(&key) {
            let node = &mut self.nodes[at as usize];
            if node.label != label {
                node.label = label;
                node.lower.take();
            }
            return at;
        }
        let at = self.nodes.len() as u32;
        self.nodes.push(NodeInfo { key, label, place: None, lower: Lower::new() });
        self.by_key.insert(key, at);
        at
    }

    fn derive(&mut self, at: u32) {
        // A stack that does not reach its thread's first function says so.
        let cut = match self.stacks[at as usize].end {
            Some(End::Truncated) => Some(self.words("(cut: deeper than is captured)")),
            Some(End::NoUnwindInfo) => Some(self.words("(no unwind information)")),
            Some(End::Complete) | None => None,
        };
        let stack = &self.stacks[at as usize];
        let mut path: Vec<u32> = Vec::with_capacity(stack.frames.len() + 1);
        // How long the path is up to the innermost frame of each owner.
        let (mut program, mut runtime) = (0, 0);
        // Where the program's own part begins, once `BEGIN` was passed.
        let (mut begin, mut passed) = (0, false);
        for &frame in &stack.frames {
            for &(node, owner) in &self.frames[frame as usize].nodes {
                if passed && owner == Owner::Program {
                    (begin, passed) = (path.len(), false);
                }
                passed |= begin == 0 && self.nodes[node as usize].label.function.ends_with(BEGIN);
                path.push(node);
                match owner {
                    Owner::Program => program = path.len(),
                    Owner::Runtime => runtime = path.len(),
                    Owner::Allocator => {}
                }
            }
        }
        if path.is_empty() {
            let words = match (stack.id, stack.end) {
                (StackId::OTHER, _) => "(other stacks)",
                (_, None) => "(undefined callstack)",
                _ => "(no callstack)",
            };
            path.push(self.words(words));
        } else if program > 0 {
            path.truncate(program);
            path.drain(..begin);
        } else {
            // No code of the program's: what the runtime was asked to do at the
            // innermost, or else the outermost that is known.
            path.truncate(runtime.max(1));
            let last = path.len() - 1;
            let inner = self.nodes[path[last] as usize].label.clone();
            let label = Label { function: format!("{} (runtime)", inner.function).into(), ..inner };
            let key = self.nodes[path[last] as usize].key;
            path[last] = self.intern(&(3u8, key.0), label);
        }
        if !self.stacks[at as usize].frames.is_empty() {
            path.splice(..0, cut);
        }
        self.stacks[at as usize].path = path.into();
    }

    fn leave_group(&mut self, at: u32) {
        self.regrouped += 1;
        let stack = &self.stacks[at as usize];
        let place = stack.place;
        if let Some(moved) = self.groups.leave(stack.group, place) {
            self.stacks[moved as usize].place = place;
        }
    }

    fn join_group(&mut self, at: u32) {
        let stack = &mut self.stacks[at as usize];
        (stack.group, stack.place) = self.groups.join(stack.callsite(), at);
        self.group_of[at as usize] = stack.group;
    }
}

/// A legacy symbol's name without `::h0123456789abcdef`.
fn without_hash(function: &str) -> &str {
    match function.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name
        }
        _ => function,
    }
}

/// The end of a path that tells a reader where he is: from the package's folder on.
fn telling_end(path: &str) -> &str {
    let mut starts: Vec<usize> =
        path.match_indices('/').map(|(i, _)| i + 1).filter(|i| *i < path.len()).collect();
    if !path.starts_with('/') {
        starts.insert(0, 0);
    }
    let package = starts
        .iter()
        .rposition(|&i| path[i..].starts_with("src/"))
        .map(|src| src.saturating_sub(1));
    let shown = package.unwrap_or(starts.len().saturating_sub(2));
    starts.get(shown).map_or(path, |&i| &path[i..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_where_they_tell() {
        for (path, end) in [
            ("/home/me/orders/src/cache.rs", "orders/src/cache.rs"),
            ("/home/me/src/orders/src/db/mod.rs", "orders/src/db/mod.rs"),
            ("src/main.rs", "src/main.rs"),
            ("/src/main.rs", "src/main.rs"),
            ("/rustc/5980/library/alloc/src/vec/mod.rs", "alloc/src/vec/mod.rs"),
            ("/usr/include/c++/13/bits/vector.tcc", "bits/vector.tcc"),
            ("main.c", "main.c"),
            ("", ""),
            ("/", "/"),
            ("é/ü/ö.rs", "ü/ö.rs"),
        ] {
            assert_eq!(telling_end(path), end, "{path}");
        }
    }

    #[test]
    fn the_hash_of_old_names_goes() {
        assert_eq!(without_hash("a::b::h0123456789abcdef"), "a::b");
        assert_eq!(without_hash("a::b::hello"), "a::b::hello");
    }
}
