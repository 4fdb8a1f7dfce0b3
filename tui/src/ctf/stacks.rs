//! Callstacks of all domains by number.
//!
//! A tree, whose paths from the root they are: a node is a frame and what lies outside of
//! it, so a callstack that shares its outer frames with the last one of its domain is
//! followed from there. Equal callstacks have equal numbers, whoever they are of.
//!
//! Of a callstack deeper than [`Stacks::with_depth`] says only the innermost frames are
//! kept, and those as a list: a damaged file can ask for 85 frames with a byte, and the
//! tree would hold them all.
//!
//! Both are bounded: what finds no room is [`Stack::OTHER`], and counted.

use super::event::Alloc;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most nodes, 150 MB.
const MOST_NODES: usize = 1 << 22;
/// Most frames in lists, 128 MB.
const MOST_LISTED: usize = 1 << 24;
/// What tells the number of a list from that of a node.
const LIST: u32 = 1 << 31;

/// The number of a callstack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stack(u32);

impl Stack {
    /// The empty one.
    const ROOT: Self = Self(0);
    /// One that found no room.
    pub const OTHER: Self = Self(u32::MAX);

    /// Whether it lacks its outer frames.
    pub const fn is_cut(self) -> bool {
        self.0 & LIST != 0
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Stacks {
    depth: usize,
    /// By number: the number of what lies outside, and the innermost code.
    nodes: Vec<(Stack, u64)>,
    by_frame: FxHashMap<(Stack, u64), Stack>,
    /// Root first.
    lists: Vec<Arc<[u64]>>,
    by_list: FxHashMap<Arc<[u64]>, Stack>,
    listed: usize,
    /// By domain: the numbers along the outer frames of its last callstack.
    last: FxHashMap<u16, Vec<Stack>>,
    refused: u64,
}

impl Stacks {
    /// Those of which the `depth` innermost frames are wanted.
    pub fn with_depth(depth: usize) -> Self {
        Self {
            depth,
            nodes: vec![(Stack::ROOT, 0)],
            by_frame: FxHashMap::default(),
            lists: Vec::new(),
            by_list: FxHashMap::default(),
            listed: 0,
            last: FxHashMap::default(),
            refused: 0,
        }
    }

    /// The number of a birth's callstack.
    pub fn number(&mut self, domain: u16, alloc: &Alloc<'_>) -> Stack {
        let path = self.last.entry(domain).or_default();
        path.truncate(alloc.kept);
        let number = if let Some(cut) = alloc.stack.len().checked_sub(self.depth)
            && cut > 0
        {
            self.list(&alloc.stack[cut..])
        } else {
            self.follow(domain, alloc.stack)
        };
        number.unwrap_or_else(|| {
            self.refused += 1;
            Stack::OTHER
        })
    }

    /// The number of a path that begins as the domain's last one.
    fn follow(&mut self, domain: u16, stack: &[u64]) -> Option<Stack> {
        let path = self.last.entry(domain).or_default();
        let mut at = path.last().copied().unwrap_or(Stack::ROOT);
        for &code in stack.get(path.len()..)? {
            at = match self.by_frame.get(&(at, code)) {
                Some(&inner) => inner,
                None if self.nodes.len() >= MOST_NODES => return None,
                None => {
                    let inner = Stack(self.nodes.len() as u32);
                    self.nodes.push((at, code));
                    self.by_frame.insert((at, code), inner);
                    inner
                }
            };
            path.push(at);
        }
        Some(at)
    }

    fn list(&mut self, frames: &[u64]) -> Option<Stack> {
        if let Some(&known) = self.by_list.get(frames) {
            return Some(known);
        }
        self.listed += frames.len();
        if self.listed > MOST_LISTED {
            return None;
        }
        let number = Stack(self.lists.len() as u32 | LIST);
        let frames: Arc<[u64]> = frames.into();
        self.lists.push(frames.clone());
        self.by_list.insert(frames, number);
        Some(number)
    }

    /// The frames of a callstack, root first.
    pub fn frames(&self, stack: Stack, frames: &mut Vec<u64>) {
        frames.clear();
        if stack.is_cut() {
            let list = self.lists.get((stack.0 & !LIST) as usize);
            frames.extend_from_slice(list.map_or(&[], |list| list));
            return;
        }
        let mut at = stack;
        while at != Stack::ROOT
            && let Some(&(outside, code)) = self.nodes.get(at.0 as usize)
        {
            frames.push(code);
            at = outside;
        }
        frames.reverse();
    }

    /// Births whose callstacks found no room.
    pub const fn refused(&self) -> u64 {
        self.refused
    }
}
