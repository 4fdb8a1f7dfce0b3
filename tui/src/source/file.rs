//! Files that can be told: which format is it, and whether it can be read at all.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use heaptop_protocol::recording::is_recording;
use rustix::fs::{FlockOperation, flock};

use super::recording::{Names, Teller};
use super::tell::Tell;
use crate::ctf;

/// Why a file cannot be told.
#[derive(Debug)]
pub enum FileError {
    /// There is none of this name.
    Missing(PathBuf),
    /// It is a directory.
    Directory(PathBuf),
    /// There is nothing in it.
    Empty(PathBuf),
    /// It is of no format that is known.
    Foreign(PathBuf),
    /// It is of a known format, and nothing in it can be shown.
    Unusable {
        /// Which.
        path: PathBuf,
        /// What is wrong: a sentence.
        why: String,
    },
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
            Self::Missing(path) => {
                write!(f, "there is no file {}: check its name", path.display())
            }
            Self::Directory(path) => {
                write!(f, "{} is a directory: name a file in it", path.display())
            }
            Self::Empty(path) => {
                write!(f, "{} is empty: nothing was recorded into it, or not yet", path.display())
            }
            Self::Foreign(path) => write!(
                f,
                "{} is neither a recording of heaptop nor a trace of memtrace: `heaptop record` makes one",
                path.display()
            ),
            Self::Unusable { path, why } => {
                write!(f, "nothing in {} can be shown: {why}", path.display())
            }
            Self::Io { path, error } => write!(f, "cannot read {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileError {}

/// Bytes by which a format is known.
const FIRST: u64 = 16;

/// Opens `path`, whatever its format, to be told from its beginning.
pub fn open(path: &Path) -> Result<Box<dyn Tell>, FileError> {
    let (file, first, bytes) = sniff(path)?;
    if is_recording(&first) {
        return Ok(Box::new(Teller::open(path, file, bytes, Names::Look)?));
    }
    if ctf::is_ctf(&first) {
        let unusable = |error: ctf::CtfError| FileError::Unusable {
            path: path.into(),
            why: error.to_string(),
        };
        return Ok(Box::new(ctf::tell(file, bytes).map_err(unusable)?));
    }
    Err(FileError::Foreign(path.into()))
}

/// The same for what is to be a recording of heaptop, without looking for names.
pub(crate) fn recording(path: &Path) -> Result<Teller, FileError> {
    let (file, first, bytes) = sniff(path)?;
    if !is_recording(&first) {
        return Err(FileError::Foreign(path.into()));
    }
    Teller::open(path, file, bytes, Names::Leave)
}

/// The same, from its first frame on: to be copied.
pub(crate) fn frames(path: &Path) -> Result<Teller, FileError> {
    let (file, _, bytes) = sniff(path)?;
    Ok(Teller::unread(path, file, bytes, Names::Leave))
}

/// Whether somebody is writing a recording; `false` where there are no locks.
pub(crate) fn is_busy(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// A file from its beginning, its first bytes, and how many it has.
type Sniffed = (Box<dyn Read + Send>, Vec<u8>, u64);

/// Opens `path`; it must be something that can be read, and not be empty.
pub(crate) fn sniff(path: &Path) -> Result<Sniffed, FileError> {
    let io = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => FileError::Missing(path.into()),
        ErrorKind::IsADirectory => FileError::Directory(path.into()),
        _ => FileError::Io { path: path.into(), error },
    };
    // Not to wait for a writer where the path is a fifo: that is then an empty file.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(nonblock).open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if metadata.is_dir() {
        return Err(FileError::Directory(path.into()));
    }
    let mut first = Vec::new();
    (&mut file).take(FIRST).read_to_end(&mut first).map_err(io)?;
    if first.is_empty() {
        return Err(FileError::Empty(path.into()));
    }
    let bytes = if metadata.is_file() { metadata.len() } else { 0 };
    Ok((Box::new(io::Cursor::new(first.clone()).chain(file)), first, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::recording::{MAGIC, write_header};

    fn sentence(path: &Path) -> String {
        open(path).err().expect("it cannot be told").to_string()
    }

    #[test]
    fn what_is_no_recording_gets_a_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.heaptop");
        assert!(sentence(&path).contains("there is no file"), "{}", sentence(&path));
        assert!(sentence(directory.path()).contains("is a directory"));
        std::fs::write(&path, b"").unwrap();
        assert!(sentence(&path).contains("is empty"), "{}", sentence(&path));
        std::fs::write(&path, b"\x7fELF and so on").unwrap();
        assert!(sentence(&path).contains("neither a recording of heaptop"));
        std::fs::write(&path, &MAGIC[..5]).unwrap();
        assert!(sentence(&path).contains("breaks off"), "{}", sentence(&path));
        let mut newer = Vec::new();
        write_header(&mut newer);
        newer[8] = 6;
        std::fs::write(&path, &newer).unwrap();
        assert!(sentence(&path).contains("header is damaged"), "{}", sentence(&path));
    }
}
