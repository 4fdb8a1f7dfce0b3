//! What chunks store: frames, their events coded and the rest compressed, and back. The
//! only file that names the compression library.

use heaptop_protocol::recording::{
    self, CODED, CODED_ANEW, Chunk, Learnt, MAX_FRAMES, PLAIN, RAW, RecordingError, ZSTD,
};
use zstd::bulk::{Compressor, Decompressor};

/// Beyond this level a recorder would not keep up on a small machine.
const LEVEL: i32 = 12;
/// What is worth the effort when there is time.
const SEAL_LEVEL: i32 = 19;
/// After so many chunks, what was learnt is forgotten: then or at the next time is where a
/// file can be read on behind a damaged place.
const CHUNKS: u32 = 64;
/// And after so many bytes of frames.
const BYTES: usize = 4 << 20;
/// Bytes of the lengths in front of a coded chunk.
const LENGTHS: usize = 8;

/// Makes chunks.
pub(crate) struct Packer {
    /// `None`: not to be had, and chunks are stored as they are.
    compressor: Option<Compressor<'static>>,
    learnt: Box<Learnt>,
    /// Chunks and bytes of frames since it began anew.
    since: (u32, usize),
    stored: Vec<u8>,
}

impl Packer {
    /// For a recorder that has to keep up.
    pub(crate) fn live() -> Self {
        Self::with(LEVEL)
    }

    /// For one that has time.
    pub(crate) fn patient() -> Self {
        Self::with(SEAL_LEVEL)
    }

    fn with(level: i32) -> Self {
        let compressor = Compressor::new(level).ok();
        Self { compressor, learnt: Box::default(), since: (0, 0), stored: Vec::new() }
    }

    /// Appends a chunk of whole `frames`, at most [`MAX_FRAMES`] bytes of them, to `out`.
    pub(crate) fn pack(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        let (chunks, bytes) = self.since;
        if chunks >= CHUNKS || bytes >= BYTES {
            self.forget();
        }
        let (skeleton, events) = self.learnt.encode(frames);
        let packed = self.compressor.as_mut().and_then(|c| c.compress(&skeleton).ok());
        // What grows by compression is stored as it is.
        let (how, packed) = match packed.filter(|packed| packed.len() < skeleton.len()) {
            Some(packed) => (ZSTD, packed),
            None => (RAW, skeleton.clone()),
        };
        self.stored.clear();
        self.stored.extend((skeleton.len() as u32).to_le_bytes());
        self.stored.extend((packed.len() as u32).to_le_bytes());
        self.stored.extend(packed);
        self.stored.extend(events);
        let shape = if self.since.0 == 0 { CODED_ANEW } else { CODED };
        self.since = (self.since.0 + 1, self.since.1 + frames.len());
        if !recording::write_chunk(out, how, shape, frames.len(), &self.stored) {
            // Hardly ever: events that cost more in code than as they were.
            let written = recording::write_chunk(out, RAW, PLAIN, frames.len(), frames);
            debug_assert!(written, "chunks are cut before they are too long");
            self.forget();
        }
    }

    fn forget(&mut self) {
        (*self.learnt, self.since) = (Learnt::default(), (0, 0));
    }
}

/// Opens chunks.
#[derive(Default)]
pub(crate) struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
    /// `None`: no chunk began anew yet.
    learnt: Option<Box<Learnt>>,
    skeleton: Vec<u8>,
}

impl Unpacker {
    /// Whether a chunk can be opened without those that came before it, where they are lost.
    pub(crate) fn can_open(&self, chunk: &Chunk<'_>) -> bool {
        self.learnt.is_some() || chunk.shape != CODED
    }

    /// Chunks are missing: what was learnt is not what comes next was coded by.
    pub(crate) fn forget(&mut self) {
        self.learnt = None;
    }

    /// Appends the frames of `chunk` to `out`: at most as many bytes as it promises.
    pub(crate) fn unpack(
        &mut self,
        chunk: &Chunk<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordingError> {
        let before = out.len();
        let done = self.take(chunk, out);
        if done.is_some() && out.len() - before == chunk.frames {
            Ok(())
        } else {
            Err(RecordingError::Content { offset: chunk.offset })
        }
    }

    fn take(&mut self, chunk: &Chunk<'_>, out: &mut Vec<u8>) -> Option<()> {
        let most = chunk.frames.min(MAX_FRAMES);
        if chunk.shape == PLAIN {
            return self.decompress(chunk.codec, chunk.stored, most, out);
        }
        let (lengths, rest) = chunk.stored.split_first_chunk::<LENGTHS>()?;
        let word = |at: usize| lengths[at..].first_chunk().map(|b| u32::from_le_bytes(*b) as usize);
        let (length, packed) = (word(0)?, word(4)?);
        let (packed, coded) = rest.split_at_checked(packed)?;
        // For each frame the skeleton has half of what the frame's header takes.
        if length > most {
            return None;
        }
        let mut skeleton = std::mem::take(&mut self.skeleton);
        skeleton.clear();
        self.decompress(chunk.codec, packed, length, &mut skeleton)?;
        let learnt = match &mut self.learnt {
            Some(learnt) if chunk.shape == CODED => learnt,
            _ if chunk.shape == CODED => return None,
            learnt => learnt.insert(Box::default()),
        };
        let done = learnt.decode(&skeleton, coded, most, out);
        self.skeleton = skeleton;
        done.ok()
    }

    /// Appends at most `most` bytes to `out`.
    fn decompress(
        &mut self,
        codec: u8,
        stored: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let before = out.len();
        if codec == RAW {
            if stored.len() > most {
                return None;
            }
            out.extend_from_slice(stored);
            return Some(());
        }
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().ok()?),
        };
        out.resize(before + most, 0);
        let n = decompressor.decompress_to_buffer(stored, &mut out[before..]).ok()?;
        out.truncate(before + n);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::frame;
    use heaptop_protocol::recording::{Reader, write_header};

    fn opened(bytes: &[u8]) -> Result<Vec<u8>, RecordingError> {
        let (mut reader, mut out) = (Reader::default(), Vec::new());
        reader.feed(bytes);
        let mut unpacker = Unpacker::default();
        while let Some(chunk) = reader.next()? {
            unpacker.unpack(&chunk, &mut out)?;
        }
        Ok(out)
    }

    #[test]
    fn what_is_packed_comes_out() {
        let mut file = Vec::new();
        write_header(&mut file);
        let mut packer = Packer::live();
        let frames = |payload: &[u8]| {
            let mut frames = Vec::new();
            assert!(frame::write(&mut frames, 999, |out| out.extend_from_slice(payload)));
            frames
        };
        let even = frames(&vec![7; 100_000]);
        let noise: Vec<u8> =
            (0..1000u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let noise = frames(&noise);
        packer.pack(&even, &mut file);
        packer.pack(&noise, &mut file);
        assert!(file.len() < 6000, "{}", file.len());
        assert_eq!(opened(&file), Ok([even, noise].concat()));
    }

    /// What is behind a lost chunk is opened again from the next one that begins anew.
    #[test]
    fn now_and_then_it_begins_anew() {
        let mut packer = Packer::live();
        let (mut file, mut shapes) = (Vec::new(), Vec::new());
        write_header(&mut file);
        let small = [1u8; 40];
        let mut frames = Vec::new();
        assert!(frame::write(&mut frames, 999, |out| out.extend_from_slice(&small)));
        for _ in 0..=2 * CHUNKS {
            packer.pack(&frames, &mut file);
        }
        let mut large = Vec::new();
        while large.len() < BYTES / 8 {
            large.extend_from_slice(&frames);
        }
        for _ in 0..9 {
            packer.pack(&large, &mut file);
        }
        let mut reader = Reader::default();
        reader.feed(&file);
        while let Some(chunk) = reader.next().unwrap() {
            shapes.push(chunk.shape);
        }
        let anew: Vec<usize> = (0..shapes.len()).filter(|at| shapes[*at] == CODED_ANEW).collect();
        let chunks = CHUNKS as usize;
        // The last after 4 MiB.
        assert_eq!(anew, [0, chunks, 2 * chunks, 2 * chunks + 9], "{anew:?}");
    }

    #[test]
    fn a_promise_that_is_not_kept_is_damage() {
        let packed = zstd::bulk::compress(&[7; 1000], 3).unwrap();
        for promised in [0, 999, 1001, MAX_FRAMES] {
            let mut file = Vec::new();
            write_header(&mut file);
            assert!(recording::write_chunk(&mut file, ZSTD, PLAIN, promised, &packed));
            let offset = recording::HEADER as u64;
            assert_eq!(opened(&file), Err(RecordingError::Content { offset }), "{promised}");
        }
    }
}
