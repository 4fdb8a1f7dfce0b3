//! Callstacks of all domains by number: a tree whose paths from the root they are.
//!
//! A node is a frame and what lies outside of it, so a callstack that shares its outer
//! frames with the last one of its domain is followed from there. Equal callstacks have
//! equal numbers, whoever they are of.
//!
//! The tree is bounded: beyond [`MOST_NODES`] a callstack gets the number of its outer
//! frames that are known, and is counted.

use super::reader::Alloc;
use rustc_hash::FxHashMap;

/// Most nodes, 150 MB: a file can ask for 85 frames with a byte.
const MOST_NODES: usize = 1 << 22;

/// The number of a callstack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stack(pub u32);

impl Stack {
    /// The empty one.
    pub const ROOT: Self = Self(0);
}

/// The tree.
#[derive(Debug)]
pub struct Stacks {
    /// By number: the number of what lies outside, and the innermost code.
    nodes: Vec<(Stack, u64)>,
    by_frame: FxHashMap<(Stack, u64), Stack>,
    /// By domain: the numbers along its last callstack.
    last: FxHashMap<u16, Vec<Stack>>,
    refused: u64,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            nodes: vec![(Stack::ROOT, 0)],
            by_frame: FxHashMap::default(),
            last: FxHashMap::default(),
            refused: 0,
        }
    }
}

impl Stacks {
    /// The number of a birth's callstack.
    pub fn number(&mut self, domain: u16, alloc: &Alloc<'_>) -> Stack {
        let path = self.last.entry(domain).or_default();
        path.truncate(alloc.kept);
        // Where the last one had found no room it is shorter than the trace's.
        let known = path.len();
        let mut at = path.last().copied().unwrap_or(Stack::ROOT);
        for &code in alloc.stack.get(known..).unwrap_or(&[]) {
            let next = Stack(self.nodes.len() as u32);
            if let Some(&inner) = self.by_frame.get(&(at, code)) {
                at = inner;
            } else if self.nodes.len() < MOST_NODES {
                self.nodes.push((at, code));
                self.by_frame.insert((at, code), next);
                at = next;
            } else {
                self.refused += 1;
                break;
            }
            path.push(at);
        }
        at
    }

    /// The frames of a callstack, innermost first.
    pub fn frames(&self, stack: Stack) -> impl Iterator<Item = u64> + '_ {
        let mut at = stack;
        std::iter::from_fn(move || {
            let &(outside, code) = self.nodes.get(at.0 as usize)?;
            let here = std::mem::replace(&mut at, outside);
            (here != Stack::ROOT).then_some(code)
        })
    }

    /// Callstacks whose innermost frames found no room.
    pub const fn refused(&self) -> u64 {
        self.refused
    }
}
