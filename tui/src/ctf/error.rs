//! What can be wrong with a trace, each with the byte where it was met.

use std::fmt;
use std::io;

/// Why a trace could not be read, or not beyond a point.
#[derive(Debug)]
pub struct CtfError {
    /// Bytes of the file before the place.
    pub offset: u64,
    /// What is wrong there.
    pub why: Why,
}

/// What is wrong with a trace.
#[derive(Debug)]
pub enum Why {
    /// The file cannot be read.
    Read(io::Error),
    /// There is not a single byte.
    Empty,
    /// It does not begin as a trace does.
    Stranger,
    /// It ends inside a packet's header.
    CutHeader,
    /// It ends inside a packet.
    CutPacket {
        /// Bytes that the packet should have.
        bytes: u32,
    },
    /// Where a packet should begin there is none.
    NoPacket,
    /// A packet of an impossible length, in bits.
    Length(u32),
    /// A version that is not known.
    Version(u16),
    /// A packet of another version than those before it.
    VersionChange {
        /// Of the packets before.
        from: u16,
        /// Of this one.
        to: u16,
    },
    /// A packet that ends before it begins.
    Span,
    /// Object numbers that end before they begin.
    IdRange,
    /// The trace does not begin with what it is of.
    NoInfo,
    /// A second description of the trace.
    SecondInfo,
    /// A sampling rate that is none.
    Rate(f64),
    /// A word size that is none.
    WordSize(u8),
    /// A packet's contents end too early.
    Short,
    /// An event of an unknown kind.
    Kind(u8),
    /// An object from nowhere.
    Source(u8),
    /// An event outside its packet's time.
    Outside,
    /// Time goes back, by so many microseconds.
    Back(i64),
    /// Objects are missing between two packets.
    IdGap {
        /// The number that should have come.
        expected: i64,
        /// The number that came.
        found: i64,
    },
    /// A packet with fewer or more births than it says.
    IdCount {
        /// As the packet says.
        said: i64,
        /// As they were counted.
        counted: i64,
    },
    /// An index into a table of names that is not so long.
    NoName,
    /// A location defined twice, and differently.
    Redefined,
    /// The table of callstacks is not the writer's.
    Drift,
    /// A domain whose tables were given away.
    Domains {
        /// Domains that are followed at once.
        most: usize,
    },
    /// A number that can only be negative by damage.
    Negative,
    /// An object before the first one.
    NoObject,
    /// A callstack deeper than any.
    Depth,
    /// More places than any program has.
    Places,
}

impl CtfError {
    pub(super) const fn new(offset: u64, why: Why) -> Self {
        Self { offset, why }
    }
}

impl std::error::Error for CtfError {}

impl fmt::Display for CtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Read(error) => write!(f, "reading fails behind byte {}: {error}", self.offset),
            Why::Empty => f.write_str("it is empty: memtrace was stopped before its first write"),
            Why::Stranger => f.write_str("it is no memtrace trace: its first bytes are others"),
            why => write!(f, "at byte {} {}", self.offset, Sentence(why)),
        }
    }
}

/// What stands behind "at byte N".
struct Sentence<'a>(&'a Why);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Why::Read(_) | Why::Empty | Why::Stranger => Ok(()),
            Why::CutHeader => f.write_str("the file ends inside a packet's header: it was cut"),
            Why::CutPacket { bytes } => {
                write!(f, "the file ends inside a packet of {bytes} bytes: it was cut")
            }
            Why::NoPacket => {
                f.write_str("there should be a packet and is none: the file is damaged")
            }
            Why::Length(bits) => {
                write!(f, "a packet says that it is {bits} bits long: it is damaged")
            }
            Why::Version(v) => write!(
                f,
                "a packet is of version {v}, and 1 to 3 are known: use a newer heaptop, \
                 or the file is damaged"
            ),
            Why::VersionChange { from, to } => write!(
                f,
                "a packet of version {to} follows those of version {from}: the file is damaged"
            ),
            Why::Span => f.write_str("a packet ends before it begins: it is damaged"),
            Why::IdRange => f.write_str("a packet's object numbers are impossible: it is damaged"),
            Why::NoInfo => {
                f.write_str("the trace does not say what program it is of: it is damaged")
            }
            Why::SecondInfo => f.write_str("another trace begins: two files were written into one"),
            Why::Rate(rate) => {
                write!(f, "the sampling rate is {rate}, and must be above 0 and at most 1")
            }
            Why::WordSize(bits) => write!(f, "words have {bits} bits, and must have 32 or 64"),
            Why::Short => f.write_str("an event goes beyond its packet: it is damaged"),
            Why::Kind(code) => write!(f, "an event is of unknown kind {code}: it is damaged"),
            Why::Source(kind) => write!(f, "a birth is of unknown source {kind}: it is damaged"),
            Why::Outside => f.write_str("an event lies outside its packet's time: it is damaged"),
            Why::Back(us) => write!(
                f,
                "time goes back by {us} µs: the machine's clock was set, or the file is damaged"
            ),
            Why::IdGap { expected, found } => write!(
                f,
                "object {found} follows where {expected} should: packets are missing or damaged"
            ),
            Why::IdCount { said, counted } => {
                write!(f, "a packet has {counted} births and says {said}: it is damaged")
            }
            Why::NoName => f.write_str(
                "a location names what was never defined: the file is damaged \
                 (memtrace up to 0.2.3 does so where lines are wider than 255 columns)",
            ),
            Why::Redefined => {
                f.write_str("a location is defined anew and otherwise: the file is damaged")
            }
            Why::Domains { most } => write!(
                f,
                "a domain speaks again after {most} others: no more can be followed at once"
            ),
            Why::Drift => f.write_str(
                "the table of callstacks is not the writer's: something before it is damaged",
            ),
            Why::Negative => f.write_str("a number is negative: the event is damaged"),
            Why::NoObject => f.write_str("an event is of an object that cannot be: it is damaged"),
            Why::Places => f.write_str("there are more places than any program has: it is damaged"),
            Why::Depth => f.write_str("a callstack is deeper than any can be: it is damaged"),
        }
    }
}
