//! A trace is packets and nothing else: each is read whole, and is at most 32 KiB.

use super::bytes::Bytes;
use super::error::{CtfError, Why};
use std::io::{BufReader, ErrorKind, Read};

/// Most bytes of a packet, its header included: memtrace's own buffer.
pub(super) const MOST_BYTES: usize = 32_768;
/// The first four bytes of every packet.
pub(super) const MAGIC: u32 = 0xC1FC_1FC1;
/// Microseconds that a packet's events can lie apart: their times have so many bits.
pub(super) const SPAN_US: i64 = 1 << 25;
/// No check, in a header's first field about the table of callstacks.
pub(super) const UNCHECKED: u16 = 0xFFFF;

/// Bytes of a header up to the version, which tells how long it is.
const UP_TO_VERSION: usize = 30;

/// What stands before a packet's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Where it lies in the file.
    pub offset: u64,
    /// Microseconds since 1970.
    pub begin_us: i64,
    pub end_us: i64,
    pub version: u16,
    pub pid: i64,
    pub domain: u16,
    /// A bucket of the table of callstacks, with what it must hold; [`UNCHECKED`].
    pub verify: (u16, u16, u64),
    /// Number of the first object born in the packet, and behind the last.
    pub ids: (i64, i64),
}

/// Bytes of a header of this version.
pub(super) const fn header_bytes(version: u16) -> usize {
    if version < 3 { 66 } else { 68 }
}

/// The packets of a file.
pub(super) struct Packets<R> {
    input: BufReader<R>,
    /// Bytes read, of whole packets and of the one that is read.
    offset: u64,
    version: Option<u16>,
    bytes: Vec<u8>,
}

impl<R: Read> Packets<R> {
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(2 * MOST_BYTES, input),
            offset: 0,
            version: None,
            bytes: Vec::new(),
        }
    }

    /// Bytes read so far.
    pub const fn read(&self) -> u64 {
        self.offset
    }

    /// Bytes of the last packet, which lie behind its header.
    pub fn body(&self, header: &Header) -> Bytes<'_> {
        let start = header_bytes(header.version).min(self.bytes.len());
        Bytes::new(&self.bytes[start..], header.offset + start as u64)
    }

    /// Reads the next packet; `None` at the file's end.
    pub fn next(&mut self) -> Result<Option<Header>, CtfError> {
        let offset = self.offset;
        let error = |why| CtfError::new(offset, why);
        self.bytes.clear();
        match (self.fill(UP_TO_VERSION)?, self.version) {
            (0, None) => return Err(error(Why::Empty)),
            (0, Some(_)) => return Ok(None),
            (UP_TO_VERSION, _) => {}
            // Too short to be known by more than its beginning.
            (_, None) if !super::is_ctf(&self.bytes) => return Err(error(Why::Stranger)),
            _ => return Err(error(Why::CutHeader)),
        }
        let mut bytes = Bytes::new(&self.bytes, offset);
        if bytes.u32()? != MAGIC {
            let why = if self.version.is_none() { Why::Stranger } else { Why::NoPacket };
            return Err(error(why));
        }
        let bits = bytes.u32()?;
        let (begin_us, end_us) = (bytes.i64()?, bytes.i64()?);
        bytes.u32()?;
        let version = bytes.u16()?;
        if !(1..=3).contains(&version) {
            return Err(error(Why::Version(version)));
        }
        if let Some(from) = self.version
            && from != version
        {
            return Err(error(Why::VersionChange { from, to: version }));
        }
        let most = MOST_BYTES as u32;
        let length = bits / 8;
        if !(header_bytes(version) as u32..=most).contains(&length) || bits % 8 != 0 {
            return Err(error(Why::Length(bits)));
        }
        if self.fill(header_bytes(version) - UP_TO_VERSION)? < header_bytes(version) {
            return Err(error(Why::CutHeader));
        }
        let mut bytes = Bytes::new(&self.bytes[UP_TO_VERSION..], offset + UP_TO_VERSION as u64);
        let header = Header {
            offset,
            begin_us,
            end_us,
            version,
            pid: bytes.i64()?,
            domain: if version < 3 { 0 } else { bytes.u16()? },
            verify: (bytes.u16()?, bytes.u16()?, bytes.u64()?),
            ids: (bytes.i64()?, bytes.i64()?),
        };
        if self.fill(length as usize - header_bytes(version))? < length as usize {
            return Err(error(Why::CutPacket { bytes: length }));
        }
        // Not how long it lasts: a packet may be ended long after its last event.
        if end_us < begin_us {
            return Err(error(Why::Span));
        }
        if header.ids.0 < 0 || header.ids.1 < header.ids.0 {
            return Err(error(Why::IdRange));
        }
        self.version = Some(version);
        Ok(Some(header))
    }

    /// Reads so many bytes more of the packet, less at the file's end; how many it has.
    fn fill(&mut self, more: usize) -> Result<usize, CtfError> {
        let mut at = self.bytes.len();
        let wanted = at + more;
        self.bytes.resize(wanted, 0);
        while at < wanted {
            match self.input.read(&mut self.bytes[at..]) {
                Ok(0) => break,
                Ok(n) => {
                    at += n;
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(CtfError::new(self.offset, Why::Read(e))),
            }
        }
        self.bytes.truncate(at);
        Ok(at)
    }
}

impl<R> std::fmt::Debug for Packets<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packets").field("offset", &self.offset).finish_non_exhaustive()
    }
}
