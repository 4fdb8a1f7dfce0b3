//! What heaptop's agent and viewer say to each other.
//!
//! ```text
//! ids ─► event ─┐
//! callstack ────┼─► message ─► codec ─► frame ─► (a socket, not ours)
//! totals ───────┘                └─► recording ─► (a file, not ours)
//! estimate: the weight of a sampled block, used at both ends
//! endpoint: where sockets are looked for
//! recording: the same bytes in a file, and what only a file has
//! remains: the agent's memory, as it is read after the target's death
//! ```
//!
//! Deliberately absent: sockets, files, clocks. [`codec`] alone names the
//! serialisation library. Everything that comes in is treated as hostile:
//! lengths are bounded before memory is taken, and every refusal is a typed
//! error with a sentence.

#![forbid(unsafe_code)]

pub mod callstack;
pub mod codec;
pub mod endpoint;
pub mod estimate;
pub mod event;
pub mod frame;
pub mod ids;
pub mod message;
pub mod recording;
pub mod remains;
pub mod totals;
pub mod weights;

/// Version of the conversation. A peer with another major version is refused
/// with a sentence; a higher minor version only adds message kinds, which are
/// skipped and counted by those who do not know them.
pub const VERSION: Version = Version { major: 1, minor: 0 };

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, codec::Encode, codec::Decode)]
pub struct Version {
    /// Changes when a known message changes its meaning.
    pub major: u16,
    /// Changes when message kinds are added.
    pub minor: u16,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
