//! Which callstacks a question is about.

use super::Label;
use crate::session::book::{Book, Stack};

/// A plain filter, ignoring case, looked up once for each node.
#[derive(Debug)]
pub struct Filter {
    /// By node: the function's name has it; the location has it. Empty: no filter.
    nodes: Vec<(bool, bool)>,
}

impl Filter {
    pub fn new(book: &Book, text: &str) -> Self {
        if text.is_empty() {
            return Self { nodes: Vec::new() };
        }
        let text = text.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&text);
        let of = |label: &Label| (has(&label.function), has(&label.location));
        Self { nodes: book.nodes().iter().map(|node| of(&node.label)).collect() }
    }

    /// Whether the callsite's function or place, or a caller's function has it.
    pub fn takes(&self, stack: &Stack) -> bool {
        if self.nodes.is_empty() {
            return true;
        }
        self.nodes[stack.callsite() as usize].1
            || stack.path.iter().any(|node| self.nodes[*node as usize].0)
    }
}
