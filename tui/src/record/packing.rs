//! What chunks store: frames compressed, and back. The only file that names the
//! compression library.

use heaptop_protocol::recording::{self, Chunk, MAX_FRAMES, PLAIN, RAW, RecordingError, ZSTD};
use zstd::bulk::{Compressor, Decompressor};

/// Beyond this level a recorder would not keep up on a small machine.
const LEVEL: i32 = 9;
/// What is worth the effort when there is time.
const SEAL_LEVEL: i32 = 19;

/// Makes chunks.
pub(crate) struct Packer {
    /// `None`: not to be had, and chunks are stored as they are.
    compressor: Option<Compressor<'static>>,
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
        Self { compressor: Compressor::new(level).ok() }
    }

    /// Appends a chunk of whole `frames`, at most [`MAX_FRAMES`] bytes of them, to `out`.
    pub(crate) fn pack(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        let packed = self.compressor.as_mut().and_then(|c| c.compress(frames).ok());
        // What grows by compression is stored as it is.
        let written = match packed.filter(|packed| packed.len() < frames.len()) {
            Some(packed) => recording::write_chunk(out, ZSTD, PLAIN, frames.len(), &packed),
            None => recording::write_chunk(out, RAW, PLAIN, frames.len(), frames),
        };
        debug_assert!(written, "chunks are cut before they are too long");
    }
}

/// Opens chunks.
#[derive(Default)]
pub(crate) struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
}

impl Unpacker {
    /// Appends the frames of `chunk` to `out`: at most as many bytes as it promises.
    pub(crate) fn unpack(
        &mut self,
        chunk: &Chunk<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordingError> {
        let damaged = RecordingError::Content { offset: chunk.offset };
        let before = out.len();
        match chunk.codec {
            RAW => out.extend_from_slice(chunk.stored),
            _ => {
                let most = chunk.frames.min(MAX_FRAMES);
                out.resize(before + most, 0);
                let decompressor = match &mut self.decompressor {
                    Some(decompressor) => decompressor,
                    none => none.insert(Decompressor::new().map_err(|_| damaged)?),
                };
                let n = decompressor
                    .decompress_to_buffer(chunk.stored, &mut out[before..])
                    .map_err(|_| damaged)?;
                out.truncate(before + n);
            }
        }
        if out.len() - before == chunk.frames { Ok(()) } else { Err(damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let even = vec![7; 100_000];
        let noise: Vec<u8> =
            (0..1000u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        packer.pack(&even, &mut file);
        packer.pack(&noise, &mut file);
        assert!(file.len() < 6000, "{}", file.len());
        assert_eq!(opened(&file), Ok([even, noise].concat()));
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
