//! The agent's memory as it lies: read by a viewer after the target's death.
//!
//! A target that is killed cannot send its last events. But its agent keeps all it
//! knows in one region, which is a file without a name; a viewer that was attached
//! holds a descriptor of it ([`crate::message::Memory`]) and reads it when the
//! target is gone: what lives, what was born and died since the books were last
//! done, and the books.
//!
//! ```text
//! Header │ entries: a tracked block each │ places, frames: callstacks │ records: books
//! ```
//!
//! The numbers here are the promise. The agent's own types must lie so: it checks
//! that when it is compiled. All is little-endian, as are all machines it runs on.
//!
//! **Torn.** The target may have died at any instruction. An entry's state is the
//! last to be written at a birth, and the first at a death, whose number is then
//! still 0. If the agent's thread died while it did the books, the block at hand may
//! be counted once too often or too little: one block, not more.

use crate::callstack::{End, Frame};
use crate::estimate::Interval;
use crate::ids::ModuleId;
use crate::totals::{Moments, Total, Totals};

/// Opens the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"heaptop\0");
/// The layout that is described here.
pub const LAYOUT: u64 = 1;

/// Words of the header, all of them of 64 bits. Arrays have two words: their offset
/// from the beginning, in bytes, and their length, in elements.
pub mod word {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`super::LAYOUT`].
    pub const LAYOUT: usize = 1;
    /// Entries.
    pub const ENTRIES: usize = 2;
    /// Places of callstacks: flags, length and first frame.
    pub const PLACES: usize = 4;
    /// Frames.
    pub const FRAMES: usize = 6;
    /// Records: the books of a callstack each.
    pub const RECORDS: usize = 8;
    /// Records in use.
    pub const KNOWN: usize = 10;
    /// The minor cycle up to which the books are done.
    pub const CYCLE: usize = 11;
    /// Blocks below this number were discarded.
    pub const FORGET_BEFORE: usize = 12;
    /// How the target ended, if it did so in an orderly way: [`super::EXITED`] and its code.
    pub const ENDED: usize = 13;
    /// When the agent started, on the monotonic clock of the machine, in nanoseconds.
    pub const STARTED_NS: usize = 14;
    /// Births that found no room.
    pub const LOST: usize = 15;
    /// G.
    pub const CLOCK: usize = 16;
    /// The next number of a birth or death.
    pub const SEQ: usize = 17;
    /// Samples taken.
    pub const SAMPLES: usize = 18;
    /// Words in all.
    pub const COUNT: usize = 24;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = word::COUNT * 8;
/// In [`word::ENDED`]: the lower 32 bits are the code given to `exit`.
pub const EXITED: u64 = 1 << 32;

/// Offsets in an entry, in bytes. Numbers of 64 bits, unless said otherwise.
pub mod entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 128;
    /// The block's number, above two bits of its state.
    pub const STATE: usize = 0;
    /// G before its birth.
    pub const BORN_CLOCK: usize = 8;
    /// The number of its death; 0 before it is known.
    pub const DIED_SEQ: usize = 16;
    /// G at its death.
    pub const DIED_CLOCK: usize = 24;
    /// Bytes asked for.
    pub const SIZE: usize = 32;
    /// 32 bits: the callstack's place, plus one; 0 for `(other stacks)`.
    pub const STACK: usize = 40;
    /// 32 bits: R.
    pub const INTERVAL: usize = 44;
    /// 32 bits, of which the lower 10 are cause, [`YOUNG`], [`WAS_MAJOR`].
    pub const FLAGS: usize = 48;
    /// 32 bits, of which the lower 8 are 1 once the birth is in the books, and 2 where it
    /// comes into them with its promotion.
    pub const KNOWN: usize = 60;
    /// Its address.
    pub const ADDRESS: usize = 64;
    /// Samples in it.
    pub const SAMPLES: usize = 72;
    /// Monotonic time of its birth.
    pub const BORN_NS: usize = 80;
    /// Monotonic time of its death.
    pub const DIED_NS: usize = 88;
    /// The number of the sampled block that it replaces; 0 for none.
    pub const REPLACES: usize = 96;
    /// 32 bits: the thread of its birth.
    pub const THREAD: usize = 104;
    /// 32 bits: the thread of its death.
    pub const DIED_THREAD: usize = 108;

    /// States, in the lower two bits of [`STATE`]: no block.
    pub const FREE: u64 = 0;
    /// Lives and is young.
    pub const LIVES_YOUNG: u64 = 1;
    /// Lives and is major.
    pub const LIVES_MAJOR: u64 = 2;
    /// Was freed.
    pub const DYING: u64 = 3;
    /// In [`FLAGS`]: it was born young.
    pub const YOUNG: u32 = 1 << 8;
    /// In [`FLAGS`]: it was major when it died.
    pub const WAS_MAJOR: u32 = 1 << 9;
}

/// Offsets in a record, in bytes.
pub mod record {
    /// Bytes of a record.
    pub const BYTES: usize = 552;
    /// 32 bits: the callstack's place, plus one.
    pub const PLACE: usize = 0;
    /// A [`crate::totals::Totals`].
    pub const TOTALS: usize = 8;
    /// A [`crate::totals::Total`]: blocks of the cycle [`super::word::CYCLE`] that died young in it.
    pub const PENDING: usize = 360;
}

/// Bits of a place.
pub mod place {
    /// The frames are there.
    pub const PUBLISHED: u64 = 2;
    /// They were cut at the root end.
    pub const TRUNCATED: u64 = 4;
    /// The unwinder found no way on.
    pub const NO_UNWIND_INFO: u64 = 8;
    /// From this bit on, in 16 bits: how many.
    pub const LEN_SHIFT: u32 = 8;
    /// From this bit on: the first.
    pub const FIRST_SHIFT: u32 = 24;
}

/// Why the memory cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    /// It does not begin as it should.
    Stranger,
    /// It is laid out in another way.
    Layout(u64),
    /// An array does not lie in it.
    Bounds,
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stranger => f.write_str("the agent's memory is not what it should be"),
            Self::Layout(n) => write!(
                f,
                "the agent's memory has layout {n} and this is {LAYOUT}: use viewer and agent of the same release"
            ),
            Self::Bounds => f.write_str("the agent's memory is damaged"),
        }
    }
}

impl std::error::Error for Damaged {}

/// Where an array lies, in bytes, and its length in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From the beginning, in bytes.
    pub offset: u64,
    /// Elements.
    pub count: u64,
}

/// The header, checked: its arrays lie in the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    words: [u64; word::COUNT],
}

impl Header {
    /// Reads a header of a memory of `bytes` bytes.
    pub fn read(head: &[u8; HEADER_BYTES], bytes: u64) -> Result<Self, Damaged> {
        let words = std::array::from_fn(|i| u64_at(head, i * 8));
        let header = Self { words };
        if words[word::MAGIC] != MAGIC {
            return Err(Damaged::Stranger);
        }
        if words[word::LAYOUT] != LAYOUT {
            return Err(Damaged::Layout(words[word::LAYOUT]));
        }
        let arrays = [
            (header.entries(), entry::BYTES),
            (header.places(), 8),
            (header.frames(), 8),
            (header.records(), record::BYTES),
        ];
        let lies_within = |(span, size): (Span, usize)| {
            let end = span.count.checked_mul(size as u64).and_then(|b| b.checked_add(span.offset));
            end.is_some_and(|end| end <= bytes)
        };
        if arrays.into_iter().all(lies_within) { Ok(header) } else { Err(Damaged::Bounds) }
    }

    /// One of the words: see [`word`].
    #[must_use]
    pub const fn word(&self, at: usize) -> u64 {
        self.words[at]
    }

    const fn span(&self, at: usize) -> Span {
        Span { offset: self.words[at], count: self.words[at + 1] }
    }

    /// The entries.
    #[must_use]
    pub const fn entries(&self) -> Span {
        self.span(word::ENTRIES)
    }

    /// The places of callstacks.
    #[must_use]
    pub const fn places(&self) -> Span {
        self.span(word::PLACES)
    }

    /// The frames of callstacks.
    #[must_use]
    pub const fn frames(&self) -> Span {
        self.span(word::FRAMES)
    }

    /// The records in use.
    #[must_use]
    pub fn records(&self) -> Span {
        let all = self.span(word::RECORDS);
        Span { count: self.words[word::KNOWN].min(all.count), ..all }
    }

    /// The code given to `exit`, if the target ended so.
    #[must_use]
    pub const fn exit_code(&self) -> Option<i32> {
        let ended = self.words[word::ENDED];
        if ended & EXITED == 0 { None } else { Some((ended as u32).cast_signed()) }
    }
}

/// A tracked block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a>(&'a [u8; entry::BYTES]);

impl<'a> Entry<'a> {
    /// The entries in `bytes`, those without a block left out.
    pub fn all(bytes: &'a [u8]) -> impl Iterator<Item = Self> {
        bytes
            .as_chunks::<{ entry::BYTES }>()
            .0
            .iter()
            .map(Self)
            .filter(|e| e.state() != entry::FREE && e.number() != 0 && e.u64(entry::SIZE) != 0)
    }

    /// The block's number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.u64(entry::STATE) >> 2
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.u64(entry::STATE) & 3
    }

    /// A number of 64 bits: see [`entry`].
    #[must_use]
    pub fn u64(&self, at: usize) -> u64 {
        u64_at(self.0, at)
    }

    /// A number of 32 bits: see [`entry`].
    #[must_use]
    pub fn u32(&self, at: usize) -> u32 {
        u32_at(self.0, at)
    }

    /// Whether its birth is in the books.
    #[must_use]
    pub fn is_booked(&self) -> bool {
        self.u32(entry::KNOWN) & 0xff == 1
    }

    /// R at its birth.
    #[must_use]
    pub fn interval(&self) -> Interval {
        Interval::new(u64::from(self.u32(entry::INTERVAL))).unwrap_or(Interval::DEFAULT)
    }
}

/// The books of a callstack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// The callstack's place, plus one; 0 for `(other stacks)`.
    pub place: u32,
    /// Its totals.
    pub totals: Totals,
    /// Blocks of the running cycle that died young in it.
    pub pending: Total,
}

impl Record {
    /// The records in `bytes`, in order.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.as_chunks::<{ record::BYTES }>().0.iter().map(|bytes| {
            const TOTAL: usize = size_of::<Total>();
            let of = |n: usize| total_at(bytes, record::TOTALS + n * TOTAL);
            Self {
                place: u32_at(bytes, record::PLACE),
                totals: Totals { in_use: of(0), allocated: of(1), minor: of(2), promoted: of(3) },
                pending: total_at(bytes, record::PENDING),
            }
        })
    }
}

/// Where the frames of a callstack lie among all frames, and why it ends; `None` for
/// one that was not written to the end.
#[must_use]
pub fn frames_of(place: u64) -> Option<(std::ops::Range<usize>, End)> {
    if place & place::PUBLISHED == 0 {
        return None;
    }
    let first = (place >> place::FIRST_SHIFT) as usize;
    let len = (place >> place::LEN_SHIFT) as usize & 0xffff;
    let end = match place & (place::TRUNCATED | place::NO_UNWIND_INFO) {
        0 => End::Complete,
        place::TRUNCATED => End::Truncated,
        _ => End::NoUnwindInfo,
    };
    Some((first..first + len, end))
}

/// Frames in the arena: the module above, the offset below. Without a module it is an
/// address that was not placed yet.
pub const MODULE_SHIFT: u32 = 48;

/// Packs a frame.
#[must_use]
pub const fn pack(frame: Frame) -> u64 {
    (frame.module.0 as u64) << MODULE_SHIFT | frame.offset & ((1 << MODULE_SHIFT) - 1)
}

/// Unpacks a frame.
#[must_use]
pub const fn unpack(word: u64) -> Frame {
    let offset = word & ((1 << MODULE_SHIFT) - 1);
    Frame { module: ModuleId((word >> MODULE_SHIFT) as u32), offset }
}

/// The number of 64 bits at `at`, 0 where there is none.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

fn total_at(bytes: &[u8], at: usize) -> Total {
    let word = |n: usize| u64_at(bytes, at + n * 8);
    let float = |n: usize| f64::from_bits(word(n));
    let moments = |n: usize| Moments {
        sum: float(n),
        sum_sq: float(n + 1),
        variance: float(n + 2),
        largest: float(n + 3),
    };
    Total {
        n: word(0),
        bytes: moments(1),
        objects: moments(5),
        smallest_size: word(9),
        largest_size: word(10),
    }
}

// `total_at` follows these.
const _: () = assert!(
    std::mem::offset_of!(Total, bytes) == 8
        && std::mem::offset_of!(Total, objects) == 40
        && std::mem::offset_of!(Total, smallest_size) == 72
        && std::mem::offset_of!(Total, largest_size) == 80
        && std::mem::offset_of!(Moments, sum_sq) == 8
        && std::mem::offset_of!(Moments, variance) == 16
        && std::mem::offset_of!(Moments, largest) == 24
        && std::mem::offset_of!(Totals, allocated) == size_of::<Total>()
        && std::mem::offset_of!(Totals, minor) == 2 * size_of::<Total>()
        && std::mem::offset_of!(Totals, promoted) == 3 * size_of::<Total>()
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(set: &[(usize, u64)]) -> [u8; HEADER_BYTES] {
        let mut head = [0; HEADER_BYTES];
        let first = [(word::MAGIC, MAGIC), (word::LAYOUT, LAYOUT)];
        for &(at, value) in first.iter().chain(set) {
            head[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
        }
        head
    }

    #[test]
    fn only_a_memory_of_this_layout_is_read() {
        assert_eq!(Header::read(&[0; HEADER_BYTES], 1 << 20), Err(Damaged::Stranger));
        let other = Header::read(&head(&[(word::LAYOUT, 2)]), 1 << 20);
        assert_eq!(other, Err(Damaged::Layout(2)));
        assert!(Header::read(&head(&[]), 0).is_ok());
    }

    #[test]
    fn arrays_lie_within_the_memory() {
        for (array, size) in [(word::ENTRIES, 128), (word::PLACES, 8), (word::FRAMES, 8)] {
            let fits = head(&[(array, 1000), (array + 1, 10)]);
            assert!(Header::read(&fits, 1000 + 10 * size).is_ok());
            assert_eq!(Header::read(&fits, 1000 + 10 * size - 1), Err(Damaged::Bounds));
            let huge = head(&[(array, 1000), (array + 1, u64::MAX / 8 + 2)]);
            assert_eq!(Header::read(&huge, 1 << 20), Err(Damaged::Bounds));
        }
        let known = [(word::RECORDS, 0), (word::RECORDS + 1, 5), (word::KNOWN, 9)];
        let header = Header::read(&head(&known), 1 << 20).unwrap();
        assert_eq!(header.records().count, 5, "no more than there are");
    }

    #[test]
    fn an_orderly_end_has_a_code() {
        let ended = |word| Header::read(&head(&[(word::ENDED, word)]), 0).unwrap().exit_code();
        assert_eq!(ended(0), None);
        assert_eq!(ended(EXITED), Some(0));
        assert_eq!(ended(EXITED | 7), Some(7));
        assert_eq!(ended(EXITED | u64::from(u32::MAX)), Some(-1));
    }

    #[test]
    fn hints_above_the_mark_do_not_book_a_birth() {
        for (mark, booked) in
            [(0, false), (1, true), (0xabcd_ef00, false), (0xabcd_ef01, true), (2, false)]
        {
            let mut bytes = [0; entry::BYTES];
            bytes[entry::STATE] = 1 << 2 | entry::LIVES_MAJOR as u8;
            bytes[entry::SIZE] = 1;
            bytes[entry::KNOWN..entry::KNOWN + 4].copy_from_slice(&u32::to_le_bytes(mark));
            let one = Entry::all(&bytes).next().unwrap();
            assert_eq!(one.is_booked(), booked, "{mark:x}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000), place: u64) {
            for e in Entry::all(&bytes) {
                let _ = (e.number(), e.interval().weight(e.u64(entry::SIZE)));
            }
            prop_assert_eq!(Record::all(&bytes).count(), bytes.len() / record::BYTES);
            if let Some((range, _)) = frames_of(place) {
                prop_assert!(range.len() <= 0xffff);
            }
        }
    }
}
