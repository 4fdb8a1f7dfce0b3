//! Frames: length, kind, checksum, payload.
//!
//! ```text
//! 0        4      6      8           12
//! │ length │ kind │  0   │  checksum  │ payload … │
//! ```
//!
//! Little endian. `length` counts the payload; the checksum is CRC-32 over
//! kind, the two zero bytes and the payload. [`Reader`] takes bytes as they
//! come and gives frames; it reads no socket itself. It never holds more than
//! one frame of the greatest size and what was fed behind it.

/// Most bytes of payload in a frame.
pub const MAX_PAYLOAD: usize = 4 << 20;
/// Bytes in front of the payload.
pub const HEADER: usize = 12;

/// A frame that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The length is above [`MAX_PAYLOAD`].
    TooLong {
        /// Bytes into the stream.
        offset: u64,
        /// What the frame claims.
        length: u32,
    },
    /// Checksum and content disagree.
    Checksum {
        /// Bytes into the stream.
        offset: u64,
    },
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { offset, length } => write!(
                f,
                "the frame at byte {offset} claims {length} bytes, more than {MAX_PAYLOAD}: this is no heaptop stream"
            ),
            Self::Checksum { offset } => {
                write!(f, "the frame at byte {offset} is damaged: its checksum does not match")
            }
        }
    }
}

impl std::error::Error for FrameError {}

fn checksum(kind_and_zero: [u8; 4], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&kind_and_zero);
    crc.update(payload);
    crc.finalize()
}

/// Appends a frame to `out`; `fill` appends its payload.
///
/// A payload above [`MAX_PAYLOAD`] is taken back whole, and `false` returned.
#[must_use]
pub fn write(out: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) -> bool {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    fill(out);
    let length = out.len() - start - HEADER;
    if length > MAX_PAYLOAD {
        out.truncate(start);
        return false;
    }
    let [k0, k1] = kind.to_le_bytes();
    let sum = checksum([k0, k1, 0, 0], &out[start + HEADER..]);
    out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&[k0, k1, 0, 0]);
    out[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
    true
}

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What kind of message it holds.
    pub kind: u16,
    /// The message.
    pub payload: &'a [u8],
}

/// The frame that `bytes` begin with, and how many of them it takes, or `None` when more
/// are needed. Offsets of errors count from here.
pub fn first(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let length = u32::from_le_bytes(word(0));
    if length as usize > MAX_PAYLOAD {
        return Err(FrameError::TooLong { offset: 0, length });
    }
    let Some(payload) = rest.get(..length as usize) else {
        return Ok(None);
    };
    if checksum(word(4), payload) != u32::from_le_bytes(word(8)) {
        return Err(FrameError::Checksum { offset: 0 });
    }
    let frame = Frame { kind: u16::from_le_bytes([header[4], header[5]]), payload };
    Ok(Some((frame, HEADER + length as usize)))
}

/// Cuts a stream into frames.
///
/// `taken ≤ buffer.len()`; bytes before `taken` were given out; `offset` is the
/// stream's position of `buffer[0]`.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    taken: usize,
    offset: u64,
}

impl Reader {
    /// Takes the stream's next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.offset += self.taken as u64;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` when more bytes are needed. After an
    /// error the stream is lost: every further call gives the same error.
    // Not an iterator: frames borrow from the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let offset = self.offset + self.taken as u64;
        let at = |error| match error {
            FrameError::TooLong { length, .. } => FrameError::TooLong { offset, length },
            FrameError::Checksum { .. } => FrameError::Checksum { offset },
        };
        let Some((frame, length)) = first(&self.buffer[self.taken..]).map_err(at)? else {
            return Ok(None);
        };
        self.taken += length;
        Ok(Some(frame))
    }

    /// Bytes fed and not yet given out: 0 at a clean end of the stream.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(frames: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, payload) in frames {
            assert!(write(&mut out, *kind, |o| o.extend_from_slice(payload)));
        }
        out
    }

    #[test]
    fn a_payload_too_large_is_taken_back() {
        let mut out = vec![7];
        assert!(!write(&mut out, 1, |o| o.resize(o.len() + MAX_PAYLOAD + 1, 0)));
        assert_eq!(out, [7]);
    }

    #[test]
    fn a_hostile_length_is_refused_before_memory_is_taken() {
        let mut reader = Reader::default();
        reader.feed(&[0xff; HEADER]);
        assert_eq!(reader.next(), Err(FrameError::TooLong { offset: 0, length: u32::MAX }));
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(
            frames in proptest::collection::vec(
                (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..100)), 0..10),
            cuts in proptest::collection::vec(1usize..50, 1..40),
        ) {
            let bytes = stream(&frames);
            let (mut reader, mut got, mut at, mut cut) = (Reader::default(), vec![], 0, cuts.iter().cycle());
            while at < bytes.len() {
                let end = (at + cut.next().unwrap()).min(bytes.len());
                reader.feed(&bytes[at..end]);
                at = end;
                while let Some(frame) = reader.next().unwrap() {
                    got.push((frame.kind, frame.payload.to_vec()));
                }
            }
            prop_assert_eq!(got, frames);
            prop_assert_eq!(reader.pending(), 0);
        }

        #[test]
        fn a_flipped_bit_never_gives_a_false_frame(
            payload in proptest::collection::vec(any::<u8>(), 1..100), bit in any::<usize>(),
        ) {
            let mut bytes = stream(&[(3, payload)]);
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut reader = Reader::default();
            reader.feed(&bytes);
            prop_assert!(!matches!(reader.next(), Ok(Some(_))));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = Reader::default();
            reader.feed(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
