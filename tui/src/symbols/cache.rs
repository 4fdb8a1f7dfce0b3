//! What was found, kept in memory: by file and offset, so that a file that two
//! targets share, or that is met again after a new attach, is read once.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::files::FileId;
use crate::session::names::Symbol;

/// Results kept at most. Beyond, everything is forgotten and found anew: a
/// viewer that has seen so many has long shown the old ones.
const MOST: usize = 1 << 20;

/// Symbols by file and offset, and the strings in them, each once.
#[derive(Default)]
pub(super) struct Cache {
    found: FxHashMap<(Arc<FileId>, u64), Arc<[Symbol]>>,
    strings: FxHashSet<Arc<str>>,
}

impl Cache {
    /// What was found at `offset` of `file`.
    pub(super) fn find(&self, file: &Arc<FileId>, offset: u64) -> Option<Arc<[Symbol]>> {
        self.found.get(&(Arc::clone(file), offset)).cloned()
    }

    /// Remembers what was found.
    pub(super) fn insert(&mut self, file: &Arc<FileId>, offset: u64, symbols: Arc<[Symbol]>) {
        if self.found.len() >= MOST {
            self.found.clear();
            self.strings.clear();
        }
        self.found.insert((Arc::clone(file), offset), symbols);
    }

    /// `text`, shared with all that are equal to it.
    pub(super) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.strings.insert(Arc::clone(&new));
        new
    }
}
