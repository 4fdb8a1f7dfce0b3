//! Which callstacks a text occurs in.
//!
//! The same text is asked for again and again while numbers move. So the last
//! answers are kept until a callstack or a name changes; lower-cased names are kept
//! with their nodes.

use super::book::{NodeInfo, Stack};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

/// A node's names in lower case: function and location.
pub type Lower = OnceCell<[Box<str>; 2]>;

/// So many answers are kept: one for a filter, one for what is looked for.
const KEPT: usize = 2;

/// The last searches, the latest first.
#[derive(Debug, Default)]
pub struct Search {
    /// Emptied by [`Search::forget`].
    last: RefCell<Vec<(String, Arc<[bool]>)>>,
}

impl Search {
    /// Callstacks or names have changed.
    pub fn forget(&mut self) {
        self.last.get_mut().clear();
    }

    /// By callstack: whether, ignoring case, the function of a node on its path has
    /// `text`, or its callsite's location.
    pub fn containing(&self, text: &str, nodes: &[NodeInfo], stacks: &[Stack]) -> Arc<[bool]> {
        let text = text.to_lowercase();
        let mut last = self.last.borrow_mut();
        if let Some(at) = last.iter().position(|(last, _)| *last == text) {
            last[..=at].rotate_right(1);
            return last[0].1.clone();
        }
        let has: Vec<[bool; 2]> =
            nodes.iter().map(|node| node.lower().each_ref().map(|s| s.contains(&text))).collect();
        let found: Arc<[bool]> = stacks
            .iter()
            .map(|stack| {
                has[stack.callsite() as usize][1]
                    || stack.path.iter().any(|node| has[*node as usize][0])
            })
            .collect();
        last.truncate(KEPT - 1);
        last.insert(0, (text, found.clone()));
        found
    }
}
