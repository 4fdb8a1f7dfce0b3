//! The numbers and texts that events are made of, taken from one packet.

use super::error::{CtfError, Why};

/// What is left of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    /// Of the packet's end, in the file.
    end: u64,
}

impl<'a> Bytes<'a> {
    /// All of `bytes`, which lie at `offset` in the file.
    pub const fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, end: offset + bytes.len() as u64 }
    }

    /// Where the next byte lies in the file.
    pub const fn offset(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The last `left` of them.
    pub fn last(self, left: usize) -> Self {
        let skip = self.rest.len().saturating_sub(left);
        Self { rest: &self.rest[skip..], ..self }
    }

    /// How many are left.
    pub const fn len(&self) -> usize {
        self.rest.len()
    }

    /// An error here.
    pub const fn error(&self, why: Why) -> CtfError {
        CtfError::new(self.offset(), why)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], CtfError> {
        let Some((first, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(Why::Short));
        };
        self.rest = rest;
        Ok(*first)
    }

    pub fn u8(&mut self) -> Result<u8, CtfError> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, CtfError> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, CtfError> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, CtfError> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, CtfError> {
        self.take().map(i64::from_le_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, CtfError> {
        self.take().map(f64::from_le_bytes)
    }

    /// A number of variable length. 32 bits are signed: memtrace reads them so.
    pub fn vint(&mut self) -> Result<i64, CtfError> {
        Ok(match self.u8()? {
            253 => i64::from(self.u16()?),
            254 => i64::from(self.u32()?.cast_signed()),
            255 => self.i64()?,
            small => i64::from(small),
        })
    }

    /// A number of variable length that counts something.
    pub fn count(&mut self) -> Result<u64, CtfError> {
        let before = *self;
        u64::try_from(self.vint()?).map_err(|_| before.error(Why::Negative))
    }

    /// A text up to its NUL, which is taken as well.
    pub fn text(&mut self) -> Result<&'a [u8], CtfError> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(self.error(Why::Short));
        };
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(text)
    }
}
