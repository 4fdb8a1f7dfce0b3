//! Which callstacks a question is about.

use crate::session::book::Book;
use std::sync::Arc;

/// A plain filter, ignoring case: the callsite's function or place, or a caller's
/// function, has a text.
#[derive(Debug)]
pub struct Filter(Option<Arc<[bool]>>);

impl Filter {
    pub fn new(book: &Book, text: &str) -> Self {
        Self((!text.is_empty()).then(|| book.containing(text)))
    }

    /// Whether callstack number `at` is wanted.
    pub fn takes(&self, at: u32) -> bool {
        self.0.as_ref().is_none_or(|taken| taken[at as usize])
    }
}
