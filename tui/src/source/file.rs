//! Files that can be told: which format is it, and whether it can be read at all.

use std::io;
use std::path::{Path, PathBuf};

use super::tell::Tell;

/// Why a file cannot be told.
#[derive(Debug)]
pub enum FileError {
    /// It is of no format that is known.
    Foreign(PathBuf),
    /// The system refuses to read it.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign(path) => {
                write!(f, "{} is no recording that heaptop knows", path.display())
            }
            Self::Io { path, error } => write!(f, "cannot read {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileError {}

/// Opens `path`, whatever its format, to be told from its beginning.
pub fn open(path: &Path) -> Result<Box<dyn Tell>, FileError> {
    match std::fs::File::open(path) {
        Ok(_) => Err(FileError::Foreign(path.into())),
        Err(error) => Err(FileError::Io { path: path.into(), error }),
    }
}
