//! Files that tell what happened, as a target would have told it.
//!
//! Whatever its format, a file is an iterator over what a [`Link`](super::Link) would
//! have brought: a greeting, definitions, snapshots, events, names. So sessions,
//! screens and reports know nothing of formats.
//!
//! A file is hostile: it may be cut, damaged, or no such file at all. What is sound is
//! told, also what comes behind a damaged place as far as the format allows it, and each such
//! place is told as [`Damage`](super::SourceEvent::Damage) where it stands. **The last item is always [`State::Ended`](super::State::Ended)**, with a
//! sentence that says how the file ends and, if it ends before its time, where and
//! why. After that there is nothing more.

use super::SourceEvent;

/// A file that is told from its beginning to its end.
pub trait Tell: Iterator<Item = SourceEvent> + Send {
    /// How far it has been read.
    fn progress(&self) -> Progress;
}

/// How far a file has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub read: u64,
    /// Bytes of the file; 0 where that is not known, as of a pipe.
    pub of: u64,
}
