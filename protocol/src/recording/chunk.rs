//! Header and chunks: bytes in, bytes out.

use super::{CHUNK_HEADER, CODED_ANEW, HEADER, MAGIC, MAX_FRAMES, RecordingError, VERSION, ZSTD};

const CHUNK_MAGIC: [u8; 4] = *b"chnk";

/// Appends the header of a recording.
pub fn write_header(out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend([0, 0]);
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_le_bytes());
}

/// Appends a chunk whose frames take `frames` bytes, and are `stored` like this; `false`,
/// and nothing, if either is more than [`MAX_FRAMES`].
#[must_use]
pub fn write_chunk(out: &mut Vec<u8>, codec: u8, shape: u8, frames: usize, stored: &[u8]) -> bool {
    if frames > MAX_FRAMES || stored.len() > MAX_FRAMES {
        return false;
    }
    let start = out.len();
    out.extend(CHUNK_MAGIC);
    out.extend([codec, shape, 0, 0]);
    out.extend((stored.len() as u32).to_le_bytes());
    out.extend((frames as u32).to_le_bytes());
    out.extend(crc32fast::hash(stored).to_le_bytes());
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_le_bytes());
    out.extend_from_slice(stored);
    true
}

/// A chunk that is whole and undamaged.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Bytes into the file.
    pub offset: u64,
    /// [`super::RAW`] or [`super::ZSTD`].
    pub codec: u8,
    /// [`super::PLAIN`], [`super::CODED`] or [`super::CODED_ANEW`].
    pub shape: u8,
    /// Bytes of its frames.
    pub frames: usize,
    /// What is stored.
    pub stored: &'a [u8],
}

/// Cuts a file into chunks.
///
/// `taken ≤ buffer.len()`; bytes before `taken` were given out; `offset` is the file's
/// position of `buffer[0]`. It holds no more than what was fed since the last chunk.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    taken: usize,
    offset: u64,
    begun: bool,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

impl Reader {
    /// Takes the file's next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.offset += self.taken as u64;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole chunk, or `None` when more bytes are needed. After an error there
    /// is nothing more: every further call gives the same error.
    // Not an iterator: chunks borrow from the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>, RecordingError> {
        if !self.begun {
            let Some(()) = check_header(&self.buffer)? else { return Ok(None) };
            self.begun = true;
            self.taken = HEADER;
        }
        let offset = self.offset + self.taken as u64;
        let rest = &self.buffer[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<CHUNK_HEADER>() else {
            return Ok(None);
        };
        if !header.starts_with(&CHUNK_MAGIC) || crc32fast::hash(&header[..20]) != word(header, 20) {
            return Err(RecordingError::ChunkHeader { offset });
        }
        let (stored, frames) = (word(header, 8), word(header, 12));
        let length = stored.max(frames);
        if length as usize > MAX_FRAMES {
            return Err(RecordingError::TooLong { offset, length });
        }
        let (codec, shape) = (header[4], header[5]);
        if codec > ZSTD || shape > CODED_ANEW {
            return Err(RecordingError::Unknown { offset, how: (codec, shape) });
        }
        let Some(content) = rest.get(..stored as usize) else { return Ok(None) };
        if crc32fast::hash(content) != word(header, 16) {
            return Err(RecordingError::Checksum { offset });
        }
        self.taken += CHUNK_HEADER + stored as usize;
        Ok(Some(Chunk { offset, codec, shape, frames: frames as usize, stored: content }))
    }

    /// Bytes fed and not yet given out: 0 at a clean end of the file.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Bytes into the file of the next chunk.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset + self.taken as u64
    }
}

/// `None`: more bytes are needed.
fn check_header(bytes: &[u8]) -> Result<Option<()>, RecordingError> {
    let magic = bytes.len().min(MAGIC.len());
    if bytes[..magic] != MAGIC[..magic] {
        return Err(RecordingError::Foreign);
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    if crc32fast::hash(&header[..12]) != word(header, 12) {
        return Err(RecordingError::Header);
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version > VERSION {
        return Err(RecordingError::Newer { version });
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use super::super::{PLAIN, RAW};
    use super::*;
    use proptest::prelude::*;

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        write_header(&mut out);
        for chunk in chunks {
            assert!(write_chunk(&mut out, RAW, PLAIN, chunk.len(), chunk));
        }
        out
    }

    /// All that can be read, and the error if there is one.
    fn read(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<RecordingError>, usize) {
        let mut reader = Reader::default();
        let mut got = Vec::new();
        for piece in bytes.chunks(piece) {
            reader.feed(piece);
            loop {
                match reader.next() {
                    Ok(Some(chunk)) => got.push(chunk.stored.to_vec()),
                    Ok(None) => break,
                    Err(error) => return (got, Some(error), reader.pending()),
                }
            }
        }
        (got, None, reader.pending())
    }

    #[test]
    fn what_is_too_long_is_refused_on_both_sides() {
        let mut out = vec![7];
        assert!(!write_chunk(&mut out, RAW, PLAIN, MAX_FRAMES + 1, &[]));
        assert!(!write_chunk(&mut out, RAW, PLAIN, 0, &vec![0; MAX_FRAMES + 1]));
        assert_eq!(out, [7]);
        let mut bytes = file(&[vec![1, 2, 3]]);
        bytes[HEADER + 8..HEADER + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        let (_, error, _) = read(&bytes, 1000);
        assert_eq!(error, Some(RecordingError::ChunkHeader { offset: HEADER as u64 }));
        let sum = crc32fast::hash(&bytes[HEADER..HEADER + 20]);
        bytes[HEADER + 20..HEADER + 24].copy_from_slice(&sum.to_le_bytes());
        let (_, error, _) = read(&bytes, 1000);
        let too_long = RecordingError::TooLong { offset: HEADER as u64, length: u32::MAX };
        assert_eq!(error, Some(too_long));
    }

    #[test]
    fn others_and_later_ones_get_a_sentence() {
        assert_eq!(read(b"\x9bheapto", 3).1, None, "it may yet become one");
        assert_eq!(read(b"\x7fELF", 4).1, Some(RecordingError::Foreign));
        let mut bytes = file(&[]);
        bytes[8] = 9;
        assert_eq!(read(&bytes, 100).1, Some(RecordingError::Header));
        let sum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        let error = read(&bytes, 100).1.unwrap();
        assert_eq!(error, RecordingError::Newer { version: 9 });
        assert!(error.to_string().contains("a later one"), "{error}");
        let mut bytes = file(&[]);
        assert!(write_chunk(&mut bytes, 2, PLAIN, 0, &[]));
        let unknown = RecordingError::Unknown { offset: HEADER as u64, how: (2, 0) };
        assert_eq!(read(&bytes, 100).1, Some(unknown));
    }

    proptest! {
        #[test]
        fn chunks_survive_any_cutting(
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..100), 0..10),
            piece in 1usize..200,
        ) {
            let (got, error, pending) = read(&file(&chunks), piece);
            prop_assert_eq!((got, error, pending), (chunks, None, 0));
        }

        #[test]
        fn a_torn_file_gives_all_whole_chunks(
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..100), 1..10),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes = file(&chunks);
            let cut = cut.index(bytes.len());
            let (got, error, pending) = read(&bytes[..cut], 64);
            prop_assert_eq!(error, None);
            prop_assert!(got.len() < chunks.len());
            prop_assert_eq!(&chunks[..got.len()], &got[..]);
            let whole = HEADER + got.iter().map(|c| CHUNK_HEADER + c.len()).sum::<usize>();
            prop_assert_eq!(pending, cut.checked_sub(whole).unwrap_or(cut));
        }

        #[test]
        fn a_flipped_bit_never_gives_a_false_chunk(
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..60), 1..4),
            bit in any::<prop::sample::Index>(),
        ) {
            let mut bytes = file(&chunks);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (got, error, _) = read(&bytes, 50);
            prop_assert!(error.is_some());
            prop_assert_eq!(&chunks[..got.len()], &got[..]);
        }
    }
}
