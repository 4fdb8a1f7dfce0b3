//! The file that is being recorded: frames are gathered into chunks, and each chunk is
//! written in one piece, so that the file can be read at any moment.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptop_protocol::recording::{CHUNK, write_header};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::packing::Packer;

/// The longest that a frame waits to be written.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Why nothing more is recorded.
#[derive(Debug)]
pub enum RecordError {
    /// The file cannot be made.
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot be written to any more.
    Write {
        /// Which.
        path: PathBuf,
        /// Bytes that are in it.
        bytes: u64,
        /// Why.
        error: io::Error,
    },
    /// Somebody else records into it.
    Taken {
        /// Which.
        path: PathBuf,
    },
    /// There is no thread for it.
    Thread(io::Error),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create { path, error } if error.kind() == ErrorKind::AlreadyExists => {
                write!(
                    f,
                    "{} exists: name another file with -o, or have it replaced with --force",
                    path.display()
                )
            }
            Self::Create { path, error } => {
                write!(f, "cannot record into {}: {error}", path.display())
            }
            Self::Taken { path } => {
                write!(f, "{} is being recorded into: name another file with -o", path.display())
            }
            Self::Write { path, bytes, error } => {
                let why = match Errno::from_io_error(error) {
                    Some(Errno::NOSPC) => "the disk is full".to_owned(),
                    Some(Errno::DQUOT) => "the disk quota is used up".to_owned(),
                    Some(Errno::FBIG) => "the file may not grow any more".to_owned(),
                    _ => error.to_string(),
                };
                write!(f, "cannot write {} any further: {why}", path.display())?;
                if *bytes > 0 {
                    write!(f, "; what is in it, {bytes} bytes, can be opened")?;
                }
                Ok(())
            }
            Self::Thread(error) => write!(f, "cannot record: no thread is to be had: {error}"),
        }
    }
}

impl std::error::Error for RecordError {}

/// Whether what is at `path` may be written to, since nothing would be replaced.
pub(super) fn loses_nothing(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| !there.is_file() || there.len() == 0)
}

/// See the module.
pub(super) struct Output {
    file: File,
    path: PathBuf,
    packer: Packer,
    /// Whole frames that wait.
    frames: Vec<u8>,
    /// When the first of them came.
    since: Option<Instant>,
    chunk: Vec<u8>,
    bytes: u64,
}

impl Output {
    /// Makes the file; one that exists and has something in it is replaced only where
    /// `replace` says so. Pipes and devices are written to.
    pub(super) fn create(path: &Path, replace: bool, packer: Packer) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Create { path: path.into(), error };
        let mut options = OpenOptions::new();
        // A recording says much of its program. A fifo that nobody reads is not waited at.
        options.write(true).mode(0o600).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        if replace || loses_nothing(path) {
            options.create(true).truncate(false);
        } else {
            options.create_new(true);
        }
        let file = options.open(path).map_err(failed)?;
        // One writer at a time. Where there are no locks, it is not known.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(RecordError::Taken { path: path.into() });
        }
        if file.metadata().map_err(failed)?.is_file() {
            file.set_len(0).map_err(failed)?;
        }
        let mut output = Self {
            file,
            path: path.into(),
            packer,
            frames: Vec::new(),
            since: None,
            chunk: Vec::new(),
            bytes: 0,
        };
        write_header(&mut output.chunk);
        output.write()?;
        Ok(output)
    }

    /// The same for one that has time: chunks are cut by their size alone, so that the
    /// same frames make the same file.
    pub(super) fn patient(path: &Path, packer: Packer) -> Result<Self, RecordError> {
        Self::create(path, true, packer)
    }

    /// Adds a frame, which `write` appends; `false` from it: there is none.
    pub(super) fn put(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<(), RecordError> {
        // One that is too large for a frame came in none.
        if write(&mut self.frames) {
            self.since.get_or_insert_with(Instant::now);
        }
        if self.frames.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// When what waits is to be written.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + PATIENCE)
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) -> Result<(), RecordError> {
        self.since = None;
        if self.frames.is_empty() {
            return Ok(());
        }
        self.packer.pack(&self.frames, &mut self.chunk);
        self.frames.clear();
        self.write()
    }

    /// Bytes in the file.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `chunk`, and empties it.
    fn write(&mut self) -> Result<(), RecordError> {
        let written = self.file.write_all(&self.chunk);
        let length = self.chunk.len() as u64;
        self.chunk.clear();
        if let Err(error) = written {
            // What was written of it is taken back; a reader would pass over it as well.
            let _ = self.file.set_len(self.bytes);
            return Err(RecordError::Write { path: self.path.clone(), bytes: self.bytes, error });
        }
        self.bytes += length;
        Ok(())
    }
}
