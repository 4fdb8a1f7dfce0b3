//! Recordings: the bytes of a session in a file.
//!
//! ```text
//! file:    │ header │ chunk │ chunk │ … │
//! header:  │ magic 8 │ version 2 │ 0 0 │ checksum of these 12 bytes 4 │
//! chunk:   │ "chnk" │ codec 1 │ shape 1 │ 0 0 │ stored 4 │ frames 4 │
//!          │ checksum of what is stored 4 │ checksum of these 20 bytes 4 │ stored bytes … │
//! ```
//!
//! Little endian; checksums are CRC-32.
//!
//! 1. **What is in it.** The chunks' contents, joined, are frames exactly as on the
//!    wire (kinds 1 to 999, those too that the writer does not know), and frames that only a
//!    recording has ([`InRecording`], kinds from 2,000 on).
//! 2. **A chunk is whole or is not.** It holds whole frames, at most [`MAX_FRAMES`] bytes
//!    of them, and is written in one piece. So whatever ends the writer, all but the last
//!    piece is there, and a torn one is known as torn. Chunks are opened in order.
//! 3. **Codec** says how what is stored was compressed: [`RAW`] not at all, [`ZSTD`] as a
//!    Zstandard frame. This package compresses nothing: the agent needs no compression,
//!    and whoever opens recordings brings it.
//! 4. **Shape** says what was done before that: [`PLAIN`] nothing, [`CODED`] events were
//!    taken out and coded by what is likely ([`Learnt`]), which takes half the bytes.
//!    What comes out is the same to the byte.
//! 5. **Hostile bytes.** Both lengths are bounded and their checksum is right before
//!    memory is taken for them; a damaged chunk is an error with its place in the file.
//!    A single bit that has turned over is set right ([`mend`]). Other damage costs the
//!    chunks up to the next that can be opened without those before it, so whoever codes
//!    events begins anew now and then.
//! 6. **Evolution.** A reader refuses a greater [`VERSION`], codec or shape with a
//!    sentence; new messages are new kinds, which are skipped and counted.

mod chunk;
mod coder;
mod events;
mod mend;
mod message;

pub use chunk::{Chunk, Reader, is_recording, write_chunk, write_header};
pub use events::{Learnt, NotEvents};
pub use message::{
    By, ConnectionLost, Ended, FrameNames, InRecording, Missing, Names, NewConnection, Recorded,
    SymbolName,
};

/// The first bytes of every recording. The first is no text, so that no text is one.
pub const MAGIC: [u8; 8] = *b"\x9bheaptop";
/// Version of header and chunks. What is in them has versions of its own: the
/// protocol's, in its greeting.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER: usize = 16;
/// Bytes in front of what a chunk stores.
pub const CHUNK_HEADER: usize = 24;
/// A chunk is written once it has so many bytes of frames, or by the clock.
pub const CHUNK: usize = 256 << 10;
/// Most bytes of frames in a chunk, and most that it stores: a chunk that is due, and
/// the greatest frame.
pub const MAX_FRAMES: usize = CHUNK + crate::frame::HEADER + crate::frame::MAX_PAYLOAD;

/// Codec: not compressed.
pub const RAW: u8 = 0;
/// Codec: a Zstandard frame.
pub const ZSTD: u8 = 1;
/// Shape: frames as they are.
pub const PLAIN: u8 = 0;
/// Shape: events coded, by what was learnt in the chunks before: see [`Learnt`].
pub const CODED: u8 = 1;
/// Shape: the same, and nothing was learnt before.
pub const CODED_ANEW: u8 = 2;

/// What is wrong with a recording, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingError {
    /// It does not begin like one.
    Foreign,
    /// Its header is damaged.
    Header,
    /// A later release wrote it.
    Newer {
        /// Its version.
        version: u16,
    },
    /// The chunk's header is damaged.
    ChunkHeader {
        /// Bytes into the file.
        offset: u64,
    },
    /// A length is above [`MAX_FRAMES`].
    TooLong {
        /// Bytes into the file.
        offset: u64,
        /// What the chunk claims.
        length: u32,
    },
    /// Checksum and content disagree.
    Checksum {
        /// Bytes into the file.
        offset: u64,
    },
    /// The chunk is compressed or laid out in a way that this version does not know.
    Unknown {
        /// Bytes into the file.
        offset: u64,
        /// Codec and shape.
        how: (u8, u8),
    },
    /// What is stored does not give the frames that are promised.
    Content {
        /// Bytes into the file.
        offset: u64,
    },
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign => f.write_str("this is no recording of heaptop"),
            Self::Header => f.write_str("the recording's header is damaged"),
            Self::Newer { version } => write!(
                f,
                "the recording has version {version} and this heaptop reads up to {VERSION}: open it with the release that wrote it, or a later one"
            ),
            Self::ChunkHeader { offset } => write!(
                f,
                "the recording is damaged at byte {offset}: what comes next is no chunk of it"
            ),
            Self::TooLong { offset, length } => write!(
                f,
                "the recording is damaged at byte {offset}: a chunk claims {length} bytes, more than {MAX_FRAMES}"
            ),
            Self::Checksum { offset } => write!(
                f,
                "the recording is damaged at byte {offset}: a chunk's checksum does not match"
            ),
            Self::Unknown { offset, how: (codec, shape) } => write!(
                f,
                "the chunk at byte {offset} is stored in a way that this heaptop does not know (codec {codec}, shape {shape}): open it with the release that wrote it"
            ),
            Self::Content { offset } => write!(
                f,
                "the recording is damaged at byte {offset}: a chunk does not hold what it promises"
            ),
        }
    }
}

impl std::error::Error for RecordingError {}
