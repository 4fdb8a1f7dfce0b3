//! The first packet: what a trace is of.

use super::bytes::Bytes;
use super::error::{CtfError, Why};
use super::packet::Header;

/// What a trace is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// Microseconds since 1970 at its start.
    pub start_us: i64,
    /// λ: the probability that a word is sampled.
    pub sample_rate: f64,
    /// Bits of a word.
    pub word_size: u8,
    /// The program's path.
    pub executable: Vec<u8>,
    /// The machine's name.
    pub host: Vec<u8>,
    /// Settings of OCaml's runtime: `s=262144,…`.
    pub parameters: Vec<u8>,
    /// The process.
    pub pid: i64,
    /// A word of the user's; empty: none.
    pub context: Vec<u8>,
    /// Version of the format, 1 to 3.
    pub version: u16,
}

/// Reads the first packet.
pub(super) fn read(mut bytes: Bytes<'_>, header: &Header) -> Result<Info, CtfError> {
    let start = bytes;
    let word = bytes.u32()?;
    if word >> 25 != 0 {
        return Err(start.error(Why::NoInfo));
    }
    let at_rate = bytes;
    let sample_rate = bytes.f64()?;
    if !(sample_rate > 0.0 && sample_rate <= 1.0) {
        return Err(at_rate.error(Why::Rate(sample_rate)));
    }
    let at_size = bytes;
    let word_size = bytes.u8()?;
    if word_size != 32 && word_size != 64 {
        return Err(at_size.error(Why::WordSize(word_size)));
    }
    let info = Info {
        start_us: header.begin_us,
        sample_rate,
        word_size,
        executable: bytes.text()?.to_vec(),
        host: bytes.text()?.to_vec(),
        parameters: bytes.text()?.to_vec(),
        pid: bytes.i64()?,
        context: if header.version < 2 { Vec::new() } else { bytes.text()?.to_vec() },
        version: header.version,
    };
    if bytes.is_empty() { Ok(info) } else { Err(bytes.error(Why::NoInfo)) }
}
