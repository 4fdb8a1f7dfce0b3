//! In which callstacks a text is found.

use crate::session::book::Book;
use std::sync::Arc;

/// Ignoring case: the callsite's function or place, or a caller's function, has a text.
#[derive(Debug)]
pub struct Found(Option<Arc<[bool]>>);

impl Found {
    pub fn new(book: &Book, text: &str) -> Self {
        Self((!text.is_empty()).then(|| book.containing(text)))
    }

    /// Whether callstack number `at` has it.
    pub fn has(&self, at: u32) -> bool {
        self.0.as_ref().is_none_or(|found| found[at as usize])
    }
}
