//! Traces for memtrace's viewers, of what is read from a file: all of its events, whatever
//! part of them is on the screen.

use std::path::{Path, PathBuf};

use super::Shown;
use super::shown::{Format, MOST_NUMBERS};
use crate::cli::write_trace;

/// Makes and writes a new file in `directory`: its path, and what of the recording it could
/// not hold; or a sentence.
pub fn trace(shown: &Shown, directory: &Path) -> Result<(PathBuf, Vec<String>), String> {
    let Some(recording) = &shown.recording else {
        return Err("a trace is made of a recording, and this is none".into());
    };
    let path = (1..=MOST_NUMBERS)
        .map(|n| directory.join(shown.file_name(Format::Ctf, n)))
        .find(|path| !path.exists())
        .ok_or_else(|| {
            format!("{MOST_NUMBERS} traces of this name are here already: move some away")
        })?;
    let left_out = write_trace(recording, &path)?;
    Ok((path, left_out))
}
