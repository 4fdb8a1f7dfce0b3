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
//! 2. **It ends with a sentence**, whatever the file holds: how the target ended, or that
//!    the file breaks off. What is sound is told, before and behind damaged places ([`harm`]),
//!    which are told where they stand.
//! 3. **Names** that are in the file are believed. Where none were looked for when it was
//!    recorded, by the agent alone, they are found when it is opened, as far as the very same binaries are
//!    still there: by build id, since anything may lie at their paths by now.

mod harm;
mod names;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use heaptop_protocol::frame;
use heaptop_protocol::message::{FromAgent, check_greeting};
use heaptop_protocol::recording::{InRecording, Reader, Recorded};

use super::file::{self, FileError};
use super::tell::{Progress, Tell};
use super::{STILL_WRITTEN, SourceEvent, State};
use crate::record::packing::Unpacker;
use crate::session::{Damage, Missing};
use harm::{Harm, can_be_passed};
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
    /// Nobody: the file is damaged here.
    Damage(Damage),
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
    harm: Harm,
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
        let mut damaged = None;
        while !teller.greeted {
            let why = match teller.said() {
                Ok(Some(said)) => {
                    if let Said::Damage(Damage { how, missing: Missing::Between }) = &said {
                        damaged.get_or_insert_with(|| how.clone());
                    }
                    teller.hear(said);
                    if teller.over.is_none() || teller.greeted {
                        continue;
                    }
                    teller.over.unwrap_or_default()
                }
                Ok(None) => teller.over.unwrap_or_default(),
                Err(why) => why,
            };
            let why = damaged.unwrap_or(why);
            return Err(FileError::Unusable { path: path.into(), why });
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
            harm: Harm::default(),
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

    /// The next frame, as it is, or where the file is damaged; `None` at the end, whose
    /// reason stands in `over`. An error where it cannot be read on, as a sentence.
    pub(crate) fn said(&mut self) -> Result<Option<Said>, String> {
        loop {
            if let Some(damage) = self.harm.take() {
                return Ok(Some(Said::Damage(damage)));
            }
            let rest = &self.frames[self.at..];
            if rest.is_empty() {
                if self.over.is_some() || !self.unpack()? {
                    // What is seen at the end of it is told first.
                    return Ok(self.harm.take().map(Said::Damage));
                }
                continue;
            }
            match first(rest) {
                Ok((said, length)) => {
                    self.at += length;
                    return Ok(Some(said));
                }
                Err(what) => {
                    self.harm.senseless(format!(
                        "the recording is damaged in its chunk at byte {}: {what}",
                        self.chunk
                    ));
                    self.at = self.frames.len();
                }
            }
        }
    }

    /// Unpacks the next chunk that can be; `false` at the end of the file, which is then told
    /// in `over`.
    fn unpack(&mut self) -> Result<bool, String> {
        loop {
            match self.chunks.next() {
                Ok(Some(chunk)) => {
                    let offset = chunk.offset;
                    // Where what was learnt before is lost, the next that begins anew is it.
                    if self.harm.is_open() && !self.unpacker.can_open(&chunk) {
                        continue;
                    }
                    self.harm.ends(offset);
                    if let Some(at) = chunk.mended {
                        self.harm.mended(at);
                    }
                    self.frames.clear();
                    (self.at, self.chunk) = (0, offset);
                    match self.unpacker.unpack(&chunk, &mut self.frames) {
                        Ok(()) => return Ok(true),
                        Err(error) => {
                            self.frames.clear();
                            self.unpacker.forget();
                            self.harm.begins(offset, &error);
                        }
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) if can_be_passed(error) => {
                    self.harm.begins(self.chunks.offset(), &error);
                    self.unpacker.forget();
                    self.chunks.pass();
                    continue;
                }
                Err(error) => return Err(error.to_string()),
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

    fn how_it_ends(&mut self) -> String {
        // What cannot be opened up to the end is damage, whatever it was to be.
        let torn = self.chunks.pending() > 0 && !self.harm.is_open();
        self.harm.ends(self.read);
        let how = match &self.ended {
            Some(how) if !torn => how.clone(),
            _ if file::is_busy(&self.path) => {
                format!("{STILL_WRITTEN}: this is what it has at byte {}", self.read)
            }
            _ => {
                let within = if torn { " within a chunk" } else { "" };
                let how = format!(
                    "the recording breaks off{within} at byte {}: whoever wrote it was killed or found no more room",
                    self.read
                );
                if torn {
                    self.harm.torn(&how);
                }
                how
            }
        };
        match self.harm.sum() {
            Some(damaged) => format!("{how}; the recording is {damaged}"),
            None => how,
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
                InRecording::Missing(missing) => self.harm.was(missing.why),
            },
            Said::Damage(damage) => self.next.push_back(SourceEvent::Damage(damage)),
        }
    }

    fn agent(&mut self, message: FromAgent) {
        if let FromAgent::Hello(hello) = &message {
            if let Err(why) = check_greeting(hello.magic, hello.version) {
                self.over = Some(format!("the recording cannot be read on: {why}"));
                return;
            }
            if !std::mem::replace(&mut self.greeted, true) {
                // The greeting is the first that is told, but for what it took to find it.
                self.next.retain(|event| matches!(event, SourceEvent::Damage(_)));
            }
        }
        if let Some(finder) = &mut self.finder {
            finder.see(&message);
        }
        self.next.push_back(SourceEvent::Message(message));
    }
}

/// The first of some frames, and the bytes that it takes; what is wrong with it.
fn first(frames: &[u8]) -> Result<(Said, usize), String> {
    let found = frame::first(frames).map_err(|e| e.to_string())?;
    let (frame, length) = found.ok_or("a message is cut short")?;
    let said = if let Some(message) = FromAgent::read(&frame).map_err(|e| e.to_string())? {
        Said::Agent(message)
    } else if let Some(said) = InRecording::read(&frame).map_err(|e| e.to_string())? {
        Said::Recorder(said)
    } else {
        Said::Unknown(frame.kind, frame.payload.to_vec())
    };
    Ok((said, length))
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
                    Err(why) => {
                        self.over = Some(format!("{why}; what comes before is shown"));
                        let damage = Damage { how: why, missing: Missing::End };
                        return Some(SourceEvent::Damage(damage));
                    }
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
