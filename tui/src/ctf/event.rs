//! Events, as they are told and as they stand in a packet.

use super::bytes::Bytes;
use super::error::{CtfError, Why};
use super::location::Locations;
use super::packet::SPAN_US;

/// Where an object was born.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The minor heap.
    Minor,
    /// The major heap.
    Major,
    /// Outside of the heap.
    External,
}

/// A birth.
#[derive(Debug, Clone, Copy)]
pub struct Alloc<'a> {
    /// Which object.
    pub id: i64,
    /// Words without the header; of an external one all words.
    pub length: u64,
    /// Samples in it, at least 1.
    pub n_samples: u64,
    /// Where.
    pub source: Source,
    /// Frames shared with the last callstack of the domain, as the file has it.
    pub common: u64,
    /// So many frames of `stack` are those of the last callstack.
    pub kept: usize,
    /// Codes, root first.
    pub stack: &'a [u64],
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Microseconds since 1970.
    pub time_us: i64,
    /// The domain whose packet it is in.
    pub domain: u16,
    /// What happens.
    pub what: What<'a>,
    /// What codes stand for, as far as they were defined.
    pub locations: &'a Locations,
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// A birth.
    Alloc(Alloc<'a>),
    /// An object survives a minor collection.
    Promote(i64),
    /// An object is dead.
    Collect(i64),
}

/// An event without its callstack, which the domain has.
pub(super) struct Raw {
    pub time_us: i64,
    pub domain: u16,
    pub what: RawWhat,
}

pub(super) enum RawWhat {
    Alloc { id: i64, birth: Birth, kept: usize },
    Promote(i64),
    Collect(i64),
}

/// What stands before the codes of a birth.
pub(super) struct Birth {
    pub length: u64,
    pub n_samples: u64,
    pub source: Source,
    pub common: u64,
    pub codes: u16,
}

impl Birth {
    pub fn read(code: u8, bytes: &mut Bytes<'_>) -> Result<Self, CtfError> {
        if code > 100 {
            let common = bytes.count()?;
            let codes = u16::from(bytes.u8()?);
            let length = u64::from(code - 100);
            return Ok(Self { length, n_samples: 1, source: Source::Minor, common, codes });
        }
        let (length, n_samples) = (bytes.count()?, bytes.count()?);
        let before = *bytes;
        let source = match bytes.u8()? {
            0 => Source::Minor,
            1 => Source::Major,
            2 => Source::External,
            kind => return Err(before.error(Why::Source(kind))),
        };
        let (common, codes) = (bytes.count()?, bytes.u16()?);
        Ok(Self { length, n_samples, source, common, codes })
    }
}

/// The time that 25 bits of `word` mean in a packet that begins then.
pub(super) const fn event_time(word: u32, begin_us: i64) -> i64 {
    let low = (word as i64) & (SPAN_US - 1);
    let begin_low = begin_us & (SPAN_US - 1);
    let turn = if low < begin_low { SPAN_US } else { 0 };
    // At the end of time it wraps, and lies outside of the packet.
    (begin_us - begin_low).wrapping_add(low + turn)
}
