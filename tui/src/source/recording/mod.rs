//! A recording, told as its target told it: see [`heaptop_protocol::recording`] for what
//! is in the file.
//!
//! ```text
//! file ─► chunks ─► unpacked frames ─► messages ─► SourceEvent
//!                                        └ names wanted ─► symbolizer ─► SourceEvent::Names
//! ```
//!
//! 1. **It streams.** What is held is a chunk, packed and unpacked, and one message;
//!    however large the file is.
//! 2. **It ends with a sentence**, whatever the file holds: how the target ended, that
//!    the file breaks off, or where it is damaged. What is sound before that is told.
//! 3. **Names** that are in the file are believed. Where none were looked for when it was
//!    recorded, by the agent alone, they are found when it is opened, as far as the very same binaries are
//!    still there: by build id, since anything may lie at their paths by now.

mod names;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use heaptop_protocol::frame;
use heaptop_protocol::message::{FromAgent, MessageError, check_greeting};
use heaptop_protocol::recording::{InRecording, Reader, Recorded};

use super::file::FileError;
use super::tell::{Progress, Tell};
use super::{SourceEvent, State};
use crate::record::packing::Unpacker;
pub(crate) use names::Finder;
use names::named;

/// Bytes read at once.
const PIECE: usize = 16 << 10;

/// Whether names that are not in the file are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// They are.
    Look,
    /// They are not.
    Leave,
}

/// What a file says next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Said {
    /// The agent.
    Agent(FromAgent),
    /// The recorder.
    Recorder(InRecording),
    /// Something that this version does not know.
    Unknown(u16, Vec<u8>),
}

/// See the module.
pub(crate) struct Teller {
    path: PathBuf,
    file: Box<dyn Read + Send>,
    bytes: u64,
    read: u64,
    chunks: Reader,
    unpacker: Unpacker,
    /// Unpacked frames, told up to `at`.
    frames: Vec<u8>,
    at: usize,
    /// Where the chunk lies that they are from.
    chunk: u64,
    recorded: Option<Recorded>,
    greeted: bool,
    /// How it ended, as the file says.
    ended: Option<String>,
    /// What is told next.
    next: VecDeque<SourceEvent>,
    /// Why nothing more is read.
    over: Option<String>,
    told: bool,
    wish: Names,
    finder: Option<Finder>,
}

impl Teller {
    /// Reads up to the greeting; an error if none can be had.
    pub(super) fn open(
        path: &Path,
        file: Box<dyn Read + Send>,
        bytes: u64,
        names: Names,
    ) -> Result<Self, FileError> {
        let mut teller = Self::unread(path, file, bytes, names);
        while !teller.greeted {
            match teller.said() {
                Ok(Some(said)) => teller.hear(said),
                Ok(None) => {
                    let why = teller.over.unwrap_or_default();
                    return Err(FileError::Unusable { path: path.into(), why });
                }
                Err(why) => return Err(FileError::Unusable { path: path.into(), why }),
            }
        }
        Ok(teller)
    }

    /// The file from its first frame on, for [`Self::said`].
    pub(super) fn unread(
        path: &Path,
        file: Box<dyn Read + Send>,
        bytes: u64,
        names: Names,
    ) -> Self {
        Self {
            path: path.into(),
            file,
            bytes,
            read: 0,
            chunks: Reader::default(),
            unpacker: Unpacker::default(),
            frames: Vec::new(),
            at: 0,
            chunk: 0,
            recorded: None,
            greeted: false,
            ended: None,
            next: VecDeque::new(),
            over: None,
            told: false,
            wish: names,
            finder: None,
        }
    }

    /// Who recorded it, if that is known.
    pub(crate) const fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_ref()
    }

    /// Bytes of the file that were read.
    pub(crate) const fn bytes_read(&self) -> u64 {
        self.read
    }

    /// How much that is of all, in percent.
    pub(crate) fn percent(&self) -> u8 {
        (self.read.min(self.bytes) as f64 / self.bytes.max(1) as f64 * 100.0) as u8
    }

    /// How the file ends, once it is read to its end.
    pub(crate) fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// The next frame, as it is; `None` at the end, whose reason stands in `over`. An
    /// error where it is damaged, as a sentence.
    pub(crate) fn said(&mut self) -> Result<Option<Said>, String> {
        loop {
            let rest = &self.frames[self.at..];
            if rest.is_empty() {
                if !self.unpack()? {
                    return Ok(None);
                }
                continue;
            }
            let damaged = |what: String| {
                format!("the recording is damaged in its chunk at byte {}: {what}", self.chunk)
            };
            let Some((frame, length)) = frame::first(rest).map_err(|e| damaged(e.to_string()))?
            else {
                return Err(damaged("a message is cut short".into()));
            };
            let message = |e: MessageError| damaged(e.to_string());
            let said = if let Some(message) = FromAgent::read(&frame).map_err(message)? {
                Said::Agent(message)
            } else if let Some(said) = InRecording::read(&frame).map_err(message)? {
                Said::Recorder(said)
            } else {
                Said::Unknown(frame.kind, frame.payload.to_vec())
            };
            self.at += length;
            return Ok(Some(said));
        }
    }

    /// Unpacks the next chunk; `false` at the end of the file, which is then told in
    /// `over`.
    fn unpack(&mut self) -> Result<bool, String> {
        loop {
            if let Some(chunk) = self.chunks.next().map_err(|e| e.to_string())? {
                self.frames.clear();
                self.at = 0;
                self.chunk = chunk.offset;
                self.unpacker.unpack(&chunk, &mut self.frames).map_err(|e| e.to_string())?;
                return Ok(true);
            }
            let mut piece = [0; PIECE];
            match self.file.read(&mut piece) {
                Ok(0) => {
                    self.over = Some(self.how_it_ends());
                    return Ok(false);
                }
                Ok(n) => {
                    self.read += n as u64;
                    self.chunks.feed(&piece[..n]);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    return Err(format!("cannot read on at byte {}: {e}", self.read));
                }
            }
        }
    }

    fn how_it_ends(&self) -> String {
        let torn = self.chunks.pending() > 0;
        match &self.ended {
            Some(how) if !torn => how.clone(),
            _ => {
                let within = if torn { " within a chunk" } else { "" };
                format!(
                    "the recording breaks off{within} at byte {}: whoever wrote it was killed, found no more room, or is still writing",
                    self.read
                )
            }
        }
    }

    /// What was read becomes what is told.
    fn hear(&mut self, said: Said) {
        match said {
            Said::Agent(message) => self.agent(message),
            Said::Unknown(kind, payload) => {
                self.next.push_back(SourceEvent::UnknownMessage { kind, payload });
            }
            Said::Recorder(said) => match said {
                InRecording::Recorded(recorded) => {
                    if self.wish == Names::Look && !recorded.sealed {
                        self.finder.get_or_insert_with(Finder::new);
                    }
                    self.recorded = Some(recorded);
                }
                InRecording::Names(names) => {
                    let found = names.names.into_iter().map(named).collect();
                    self.next.push_back(SourceEvent::Names(found));
                }
                InRecording::ConnectionLost(lost) => {
                    self.next.push_back(SourceEvent::Connection(State::Lost(lost.why)));
                }
                InRecording::NewConnection(_) => {
                    self.next.push_back(SourceEvent::Connection(State::Connecting));
                }
                InRecording::Ended(ended) => self.ended = Some(ended.how),
            },
        }
    }

    fn agent(&mut self, message: FromAgent) {
        if let FromAgent::Hello(hello) = &message {
            if let Err(why) = check_greeting(hello.magic, hello.version) {
                self.over = Some(format!("the recording cannot be read on: {why}"));
                return;
            }
            if !std::mem::replace(&mut self.greeted, true) {
                // The greeting is the first that is told.
                self.next.clear();
            }
        }
        if let Some(finder) = &mut self.finder {
            finder.see(&message);
        }
        self.next.push_back(SourceEvent::Message(message));
    }
}

impl Iterator for Teller {
    type Item = SourceEvent;

    fn next(&mut self) -> Option<SourceEvent> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Some(event);
            }
            if self.told {
                return None;
            }
            if let Some(named) = self.finder.as_mut().and_then(Finder::found) {
                return Some(SourceEvent::Names(named));
            }
            if self.over.is_none() {
                match self.said() {
                    Ok(Some(said)) => self.hear(said),
                    Ok(None) => {}
                    Err(why) => self.over = Some(format!("{why}; what comes before is shown")),
                }
                continue;
            }
            if let Some(named) = self.finder.as_mut().and_then(Finder::wait) {
                return Some(SourceEvent::Names(named));
            }
            self.told = true;
            let how = self.over.clone().unwrap_or_default();
            return Some(SourceEvent::Connection(State::Ended(how)));
        }
    }
}

impl Tell for Teller {
    fn progress(&self) -> Progress {
        Progress { read: self.read, of: self.bytes }
    }
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Teller").field("path", &self.path).finish_non_exhaustive()
    }
}
