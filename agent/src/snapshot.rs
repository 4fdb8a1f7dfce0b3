//! A recording of now, for a program that wants to keep one: a service that is about to
//! run out of memory, a test that failed.
//!
//! The program is its own viewer for a moment: it connects to its agent's socket, asks
//! for a snapshot and keeps what it is told. So a snapshot holds what a viewer that
//! comes now would see, and there is no second way to tell it.

use crate::engine::{Engine, domain};
use crate::stream::record;
use heaptop_protocol::VERSION;
use heaptop_protocol::frame::Reader;
use heaptop_protocol::message::{FromAgent, FromViewer, MAGIC, ViewerHello, WantSnapshot};
use heaptop_protocol::recording::{self, Ended, InRecording, PLAIN, RAW};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long the agent may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// Why there is no snapshot.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// There is no agent: the sentence says why.
    NoAgent(crate::Off),
    /// The agent does not answer.
    Agent(io::Error),
    /// It cannot be written.
    Write(io::Error),
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoAgent(why) => write!(f, "there is nothing to take a snapshot of: {why}"),
            Self::Agent(error) => write!(f, "the agent does not answer on its socket: {error}"),
            Self::Write(error) => write!(f, "the snapshot cannot be written: {error}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// Writes a recording of this moment: what is in use and was allocated, by callstack, the
/// live sampled blocks, the curve, the peak, phases and marks. `heaptop report` and
/// `heaptop open` read it. Takes up to some tenths of a second, and blocks nobody else;
/// what it allocates for itself is not sampled.
///
/// Not for a callback of [`crate::memprof`]'s, which the agent may be waiting for.
pub fn snapshot(mut writer: impl Write) -> Result<(), SnapshotError> {
    let path = crate::start().map_err(SnapshotError::NoAgent)?;
    let engine = Engine::running().ok_or_else(|| SnapshotError::NoAgent(crate::why_off()))?;
    let file =
        domain::here(|d| d.outside(engine, || packed(path))).map_err(SnapshotError::Agent)?;
    writer.write_all(&file).and_then(|()| writer.flush()).map_err(SnapshotError::Write)
}

fn packed(path: &std::path::Path) -> io::Result<Vec<u8>> {
    let mut frames = Vec::new();
    let mut fits = record::File::about().write(&mut frames);
    fits &= told(path, &mut frames)?;
    let how = "a snapshot ends here; the target goes on".to_owned();
    fits &= InRecording::from(Ended { how, target_lives: true }).write(&mut frames);
    let mut file = Vec::new();
    recording::write_header(&mut file);
    let mut rest = &frames[..];
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at(record::whole(rest));
        fits &= recording::write_chunk(&mut file, RAW, PLAIN, chunk.len(), chunk);
        rest = more;
    }
    if fits { Ok(file) } else { Err(io::Error::other("a message is too long")) }
}

/// Appends the frames of all that a viewer is told up to the end of a snapshot.
fn told(path: &std::path::Path, frames: &mut Vec<u8>) -> io::Result<bool> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut out = Vec::new();
    let client = concat!("heaptop_agent::snapshot ", env!("CARGO_PKG_VERSION")).to_owned();
    let hello = ViewerHello { magic: MAGIC, version: VERSION, client };
    let mut fits = FromViewer::from(hello).write(&mut out);
    fits &= FromViewer::from(WantSnapshot {}).write(&mut out);
    stream.write_all(&out)?;
    let mut reader = Reader::default();
    let mut buffer = vec![0; 64 << 10];
    let (mut ended, mut status) = (false, false);
    // A status is told behind the snapshot, and with it the peak.
    while !(ended && status) {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => reader.feed(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        while let Some(frame) = reader.next().map_err(io::Error::other)? {
            let Some(message) = FromAgent::read(&frame).map_err(io::Error::other)? else {
                continue;
            };
            match &message {
                FromAgent::SnapshotEnd(_) => ended = true,
                FromAgent::Status(_) => status |= ended,
                // The file outlives the memory that it names.
                FromAgent::Memory(_) => continue,
                _ => {}
            }
            fits &= message.write(frames);
        }
    }
    Ok(fits)
}
