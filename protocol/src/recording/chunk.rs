//! Header and chunks: bytes in, bytes out.

use super::mend::{mend_header, mend_stored};
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

/// A chunk that is whole and undamaged, or is again.
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
    /// Bytes into the file of a byte of which a bit had turned over, and was set right.
    pub mended: Option<u64>,
    /// What is stored.
    pub stored: &'a [u8],
}

/// Cuts a file into chunks.
///
/// `taken ≤ buffer.len()`; bytes before `taken` were given out; `offset` is the file's
/// position of `buffer[0]`. It holds no more than what was fed since the last chunk.
///
/// Damage: one bit that has turned over is set right by the checksum ([`super::mend`]);
/// any other is an error, and what comes behind it is found by [`Self::pass`].
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    taken: usize,
    offset: u64,
    begun: bool,
    /// Looking for the next chunk, whose header must be without a fault.
    seeking: bool,
    /// Bytes of the chunk in front of which an error was found, if they are known.
    faulty: Option<usize>,
    /// A bit was set right at this byte of the file, in what is not given out yet.
    mended: Option<u64>,
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

    /// The next whole chunk, or `None` when more bytes are needed. An error comes with
    /// every further call, until it is passed.
    // Not an iterator: chunks borrow from the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>, RecordingError> {
        if !self.begun {
            let Some(header) = check_header(&self.buffer)? else { return Ok(None) };
            self.begun = true;
            self.mended = header.mended;
            self.taken = HEADER;
        }
        if self.seeking && !self.seek() {
            return Ok(None);
        }
        let offset = self.offset + self.taken as u64;
        let Some(header) = self.buffer[self.taken..].first_chunk_mut::<CHUNK_HEADER>() else {
            return Ok(None);
        };
        if !is_chunk(header) {
            let Some(at) = mend_header(header, 20, is_chunk) else {
                return Err(RecordingError::ChunkHeader { offset });
            };
            self.mended.get_or_insert(offset + at as u64);
        }
        let header = *header;
        let (stored, frames) = (word(&header, 8), word(&header, 12));
        let length = stored.max(frames);
        if length as usize > MAX_FRAMES {
            return Err(RecordingError::TooLong { offset, length });
        }
        let size = CHUNK_HEADER + stored as usize;
        let (codec, shape) = (header[4], header[5]);
        if codec > ZSTD || shape > CODED_ANEW {
            return Err(RecordingError::Unknown { offset, how: (codec, shape) });
        }
        let from = self.taken + CHUNK_HEADER;
        let Some(content) = self.buffer.get_mut(from..self.taken + size) else { return Ok(None) };
        let expected = word(&header, 16);
        if crc32fast::hash(content) != expected {
            let Some(at) = mend_stored(content, expected) else {
                self.faulty = Some(size);
                return Err(RecordingError::Checksum { offset });
            };
            self.mended.get_or_insert(offset + (CHUNK_HEADER + at) as u64);
        }
        self.taken += size;
        let mended = self.mended.take();
        let stored = &self.buffer[from..from + stored as usize];
        Ok(Some(Chunk { offset, codec, shape, frames: frames as usize, mended, stored }))
    }

    /// Gives up what the last error was about: the next chunk is the one behind it or, where
    /// nobody knows where that would begin, the next whose header is sound.
    pub fn pass(&mut self) {
        self.mended = None;
        if let Some(size) = self.faulty.take() {
            self.taken += size;
        } else {
            // Not the same place again.
            self.taken = (self.taken + 1).min(self.buffer.len());
            self.seeking = true;
        }
    }

    /// Goes on to the next sound header, or as far as there can be none.
    fn seek(&mut self) -> bool {
        let rest = &self.buffer[self.taken..];
        match rest.windows(CHUNK_HEADER).position(is_chunk_at) {
            Some(at) => {
                self.taken += at;
                self.seeking = false;
            }
            None => self.taken += rest.len().saturating_sub(CHUNK_HEADER - 1),
        }
        !self.seeking
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

/// Whether a chunk's header is without a fault.
fn is_chunk(header: &[u8; CHUNK_HEADER]) -> bool {
    header.starts_with(&CHUNK_MAGIC) && crc32fast::hash(&header[..20]) == word(header, 20)
}

fn is_chunk_at(window: &[u8]) -> bool {
    window.first_chunk().is_some_and(is_chunk)
}

/// Whether a file that begins so is a recording, or may become one: at most one bit is wrong.
#[must_use]
pub fn is_recording(first: &[u8]) -> bool {
    let wrong: u32 = first.iter().zip(MAGIC).map(|(a, b)| (a ^ b).count_ones()).sum();
    wrong <= 1
}

/// A file's header that is right.
struct Header {
    /// In which byte a bit was wrong.
    mended: Option<u64>,
}

/// `None`: more bytes are needed.
fn check_header(bytes: &[u8]) -> Result<Option<Header>, RecordingError> {
    if !is_recording(bytes) {
        return Err(RecordingError::Foreign);
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let is_sound = |header: &[u8; HEADER]| {
        header.starts_with(&MAGIC) && crc32fast::hash(&header[..12]) == word(header, 12)
    };
    let (mut header, mut mended) = (*header, None);
    if !is_sound(&header) {
        let at = mend_header(&mut header, 12, is_sound).ok_or(RecordingError::Header)?;
        mended = Some(at as u64);
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version > VERSION {
        return Err(RecordingError::Newer { version });
    }
    Ok(Some(Header { mended }))
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
        // Not by a single bit: that is set right.
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
        bytes[8] = 6;
        assert_eq!(read(&bytes, 100).1, Some(RecordingError::Header));
        bytes[8] = 9;
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
        fn a_flipped_bit_is_set_right(
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..60), 1..4),
            bit in any::<prop::sample::Index>(),
        ) {
            let mut bytes = file(&chunks);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (got, error, pending) = read(&bytes, 50);
            prop_assert_eq!((got, error, pending), (chunks, None, 0));
            let mut reader = Reader::default();
            reader.feed(&bytes);
            let mut mended = Vec::new();
            while let Some(chunk) = reader.next().unwrap() {
                mended.extend(chunk.mended);
            }
            prop_assert_eq!(mended, [bit as u64 / 8]);
        }

        #[test]
        fn what_is_behind_a_damaged_place_is_found(
            chunks in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..60), 1..9),
            from in any::<prop::sample::Index>(),
            junk in proptest::collection::vec(any::<u8>(), 4..90),
            piece in 1usize..200,
        ) {
            let mut bytes = file(&chunks);
            // Two bits of each byte at least: one would be set right.
            let from = HEADER + from.index(bytes.len() - HEADER - 3);
            for (byte, junk) in bytes[from..].iter_mut().zip(&junk) {
                *byte ^= junk | 3;
            }
            let damaged = from..(from + junk.len()).min(bytes.len());
            let mut at = HEADER;
            let sound: Vec<_> = chunks
                .iter()
                .filter(|chunk| {
                    let place = at..at + CHUNK_HEADER + chunk.len();
                    at = place.end;
                    place.end <= damaged.start || damaged.end <= place.start
                })
                .collect();
            let mut reader = Reader::default();
            let mut got = Vec::new();
            let mut errors = 0;
            for piece in bytes.chunks(piece) {
                reader.feed(piece);
                loop {
                    match reader.next() {
                        Ok(Some(chunk)) => got.push(chunk.stored.to_vec()),
                        Ok(None) => break,
                        Err(error) => {
                            prop_assert_eq!(reader.next().unwrap_err(), error, "until it is passed");
                            reader.pass();
                            errors += 1;
                        }
                    }
                }
            }
            prop_assert!(errors > 0);
            prop_assert_eq!(got.iter().collect::<Vec<_>>(), sound);
        }
    }
}
