//! Traces for memtrace's viewers, of what is read from a file: all of its events, whatever
//! part of them is on the screen.

use std::path::PathBuf;

use super::shown::Format;
use super::{Names, Shown};
use crate::cli::write_trace;

/// Makes and writes a new file of the first of these names that is free: its path, and what
/// of the recording it could not hold; or a sentence.
pub fn trace(shown: &Shown, names: &Names) -> Result<(PathBuf, Vec<String>), String> {
    let Some(recording) = &shown.recording else {
        return Err("a trace is made of a recording, and this is none".into());
    };
    let path = names.free(shown, Format::Ctf)?;
    let left_out = write_trace(recording, &path)?;
    Ok((path, left_out))
}
