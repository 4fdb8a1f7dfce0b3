//! Values to bytes and back. The only file that names the serialisation
//! library: payloads are bincode 2's standard configuration (little endian,
//! varints), frozen by the golden bytes in `tests/golden.rs`.

use bincode::config;
/// The derives by which types become payloads.
pub use bincode::{Decode, Encode};

/// Most bytes a decoded payload may ask for in memory. Payloads are at most
/// [`crate::frame::MAX_PAYLOAD`]; their decoded form is a small multiple.
const MAX_DECODED: usize = 16 << 20;

/// What can be encoded.
pub trait Payload: Encode + Decode<()> {}
impl<T: Encode + Decode<()>> Payload for T {}

/// A payload that does not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecError {
    /// The bytes are not of this type.
    Malformed(String),
    /// The value ends before the payload does.
    Trailing {
        /// Bytes left over.
        bytes: usize,
    },
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "the payload does not decode: {why}"),
            Self::Trailing { bytes } => write!(f, "{bytes} bytes are left over in the payload"),
        }
    }
}

impl std::error::Error for CodecError {}

/// Appends `value` to `out`.
///
/// # Panics
///
/// Never: no type here has an encoding that can fail on a growing buffer.
pub fn encode_into<T: Payload>(value: &T, out: &mut Vec<u8>) {
    let encoded = bincode::encode_into_std_write(value, out, config::standard());
    debug_assert!(encoded.is_ok(), "payload types encode without failure: {encoded:?}");
}

/// Reads a value that fills `bytes` exactly.
pub fn decode<T: Payload>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, used) =
        bincode::decode_from_slice(bytes, config::standard().with_limit::<MAX_DECODED>())
            .map_err(|e| CodecError::Malformed(e.to_string()))?;
    if used != bytes.len() {
        return Err(CodecError::Trailing { bytes: bytes.len() - used });
    }
    Ok(value)
}
