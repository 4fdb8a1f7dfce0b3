//! Connections to targets: finding them, talking to them, staying with them.
//!
//! ```text
//! discover ─► handshake ─► link ─► inbox ─► (the thread that draws)
//!    socket ─────┘           └ one thread reads and comes back, one writes
//! wanted: the one target that is meant     demo: a target of our own
//! process, remains: how a target ended, and what it left
//! tell: files, told like targets     file: which format     recording: our own
//! ```
//!
//! 1. **Nothing here waits for ever.** Connecting and greeting have deadlines;
//!    the reading thread waits for the target alone, and dropping the [`Link`]
//!    wakes it.
//! 2. **Memory is bounded.** The [`inbox::Inbox`] takes so many bytes of
//!    messages; beyond, the reader waits, the socket fills, and the agent drops
//!    and counts. Commands to the agent are few and may be refused.
//! 3. **Every peer is hostile** until its uid is ours or root's, and after that
//!    it may still be broken: lengths are bounded by the frames, and whatever
//!    goes wrong is one sentence.
//! 4. **The pid is the kernel's**: from the socket's credentials, never from
//!    what a peer says.

pub mod demo;
pub mod discover;
mod error;
#[cfg(test)]
pub(crate) mod fake;
pub mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handshake;
pub mod inbox;
mod link;
mod process;
pub(crate) mod recording;
mod remains;
mod socket;
pub mod tell;
#[cfg(test)]
mod tests;
pub mod wanted;

pub use error::LinkError;
pub use link::{Link, Target};

use heaptop_protocol::message::FromAgent;

use crate::session::names::Named;
use crate::session::{self, Connection, Damage};

/// How the end of a recording begins that is none yet.
pub(crate) const STILL_WRITTEN: &str = "the recording is still being written";

/// What comes from a target and about it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few wait at a time; a box for each would cost more")]
pub enum SourceEvent {
    /// A message, in the order of the wire. After a new connection the first one
    /// is a `Hello` again.
    Message(FromAgent),
    /// A message of a kind that this version does not know: to be counted, and kept in a
    /// recording.
    UnknownMessage {
        /// The frame's kind.
        kind: u16,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// How the connection stands now.
    Connection(State),
    /// Names that were asked for.
    Names(Vec<Named>),
    /// A file is damaged here.
    Damage(Damage),
}

impl From<SourceEvent> for session::Input {
    fn from(event: SourceEvent) -> Self {
        match event {
            SourceEvent::Message(message) => Self::Agent(message),
            SourceEvent::UnknownMessage { .. } => Self::UnknownMessage,
            SourceEvent::Names(names) => Self::Names(names),
            SourceEvent::Damage(damage) => Self::Damage(damage),
            SourceEvent::Connection(state) => Self::Connection(match state {
                State::Connecting => Connection::Connecting,
                State::Connected => Connection::Connected,
                State::Lost(why) => Connection::Lost(why),
                State::Ended(how) => Connection::Ended(how),
            }),
        }
    }
}

/// How a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Trying to come back.
    Connecting,
    /// Messages flow.
    Connected,
    /// The connection is lost while the target lives: it will be tried again.
    /// With a sentence.
    Lost(String),
    /// It will not come back. With a sentence.
    Ended(String),
}
