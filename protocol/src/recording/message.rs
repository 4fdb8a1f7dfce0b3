//! What only a recording has: kinds from 2,000 on.
//!
//! [`Recorded`] opens each file. It stands before the agent's greeting, so that who
//! looks at a file knows what it is of before it knows what is in it. Names come as they
//! are found, each frame at most once a file; [`Ended`] is the last message of a
//! recorder that had the time to write it.

use crate::callstack::Frame;
use crate::codec::{Decode, Encode};
use crate::message::messages;

/// Who wrote a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum By {
    /// `heaptop record`, or the viewer.
    Recorder,
    /// The agent alone, without names.
    Agent,
    /// `heaptop seal`, from a recording of either.
    Seal,
}

/// Who recorded what, and when.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Recorded {
    /// Who.
    pub by: By,
    /// Version of heaptop's or the agent's package.
    pub version: String,
    /// The target's pid, as who recorded saw it.
    pub pid: u32,
    /// Wall clock at the recording's beginning, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Which file of a recording in several it is, from 1 on; 0: it is one file.
    pub part: u32,
    /// Whether names were looked for by who wrote it: nobody needs to do it anew.
    pub sealed: bool,
}

/// One function at a frame.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SymbolName {
    /// Its demangled name.
    pub function: String,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

/// The names of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FrameNames {
    /// Which.
    pub frame: Frame,
    /// Outermost first, inlined functions behind those they are inlined into. Empty:
    /// there was no name to be had.
    pub symbols: Vec<SymbolName>,
}

/// Names of frames.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Names {
    /// Some of them.
    pub names: Vec<FrameNames>,
}

/// The connection was lost while the target lived.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ConnectionLost {
    /// A sentence.
    pub why: String,
}

/// It came back: the agent greets anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NewConnection {}

/// How the recording, or its target, ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Ended {
    /// A sentence.
    pub how: String,
    /// Whether the target lived on.
    pub target_lives: bool,
}

/// Here something is missing that could not be read when the file was copied.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Missing {
    /// A sentence.
    pub why: String,
}

messages! {
    /// In recordings alone. Kinds from 2,000 on.
    InRecording {
        /// First of all.
        2000 Recorded(Recorded),
        /// Names of frames.
        2001 Names(Names),
        /// The connection was lost.
        2002 ConnectionLost(ConnectionLost),
        /// It came back.
        2003 NewConnection(NewConnection),
        /// Last of all.
        2004 Ended(Ended),
        /// Something is missing.
        2005 Missing(Missing),
    }
}
