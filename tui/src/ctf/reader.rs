//! The reader: from bytes to events, a packet at a time.
//!
//! ```text
//! packet ─► header: is it ours, does it go on where the last one ended, is our table
//!   │               of callstacks the writer's?
//!   └─► bytes ─► events ─► locations (names), backtrace (callstacks)
//! ```
//!
//! **What is believed.** All that stands before the first fault; there the reader stops,
//! and says where and why. Packets of another process (a fork that wrote into the same
//! file) are skipped and counted. The end of the file inside a packet is a fault like
//! others: the whole packets before it are sound.
//!
//! **Domains.** From version 3 on a packet belongs to a domain, which has a clock, tables
//! and a last callstack of its own. What codes mean is known to all of them.
//!
//! **Bounds.** One packet, the codes that were defined, and for each domain 160 KiB and
//! its last callstack. A program may make any number of domains, one after the other:
//! [`MOST_DOMAINS`] are followed at once, and the one longest silent gives way.

use super::backtrace::{Cache, MOST_DEPTH};
use super::error::{CtfError, Why};
use super::event::{Alloc, Birth, Event, Raw, RawWhat, What, event_time};
use super::info::{self, Info};
use super::location::{Locations, Tables};
use super::packet::{Header, MAGIC, Packets, UNCHECKED};
use rustc_hash::FxHashMap;
use std::io::Read;

/// Most domains whose tables are kept.
const MOST_DOMAINS: usize = 256;
/// Most frames of the last callstacks of all domains together, 32 MB and those that are
/// a quarter of [`MOST_DEPTH`] at most.
const MOST_FRAMES: usize = 4 * MOST_DEPTH;

/// Whether a file that begins so is a trace; four bytes tell.
#[must_use]
pub fn is_ctf(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(&MAGIC.to_le_bytes())
}

/// What is kept of a domain.
#[derive(Debug, Default)]
struct Domain {
    tables: Tables,
    /// Made at the first birth.
    cache: Option<Cache>,
    /// Time of its last event.
    last_us: Option<i64>,
    /// Number of the packet it spoke in last.
    packet: u64,
    /// Its tables were given away.
    gone: bool,
}

/// A packet under way.
#[derive(Debug, Clone, Copy)]
struct Packet {
    header: Header,
    /// Bytes of it that are left.
    left: usize,
    /// Number of the next object.
    next_id: i64,
}

/// The events of a file.
#[derive(Debug)]
pub struct Reader<R> {
    packets: Packets<R>,
    info: Info,
    domains: FxHashMap<u16, Domain>,
    locations: Locations,
    packet: Option<Packet>,
    count: u64,
    /// Number of the next object, of one stream.
    next_id: i64,
    skipped: u64,
}

impl<R: Read> Reader<R> {
    /// Begins with a file: reads its first packet.
    pub fn new(input: R) -> Result<Self, CtfError> {
        let mut packets = Packets::new(input);
        let Some(header) = packets.next()? else { return Err(CtfError::new(0, Why::Empty)) };
        let info = info::read(packets.body(&header), &header)?;
        Ok(Self {
            packets,
            info,
            domains: FxHashMap::default(),
            locations: Locations::default(),
            packet: None,
            count: 0,
            next_id: 0,
            skipped: 0,
        })
    }

    /// What the trace is of.
    pub const fn info(&self) -> &Info {
        &self.info
    }

    /// What codes stand for.
    pub const fn locations(&self) -> &Locations {
        &self.locations
    }

    /// Bytes read so far.
    pub const fn bytes_read(&self) -> u64 {
        self.packets.read()
    }

    /// Packets of other processes so far.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next event; `None` at the end of the file. After an error there is nothing
    /// more that could be believed.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, CtfError> {
        loop {
            let packet = match self.packet {
                Some(packet) => packet,
                None => match self.packets.next()? {
                    Some(header) => match self.enter(header)? {
                        Some(packet) => packet,
                        None => continue,
                    },
                    None => return Ok(None),
                },
            };
            self.packet = Some(packet);
            if packet.left == 0 {
                self.leave(&packet)?;
            } else if let Some(raw) = self.event(packet)? {
                return Ok(Some(self.show(&raw)));
            }
        }
    }

    /// A packet begins; `None` if it is another process's.
    fn enter(&mut self, header: Header) -> Result<Option<Packet>, CtfError> {
        if header.pid != self.info.pid {
            self.skipped += 1;
            return Ok(None);
        }
        let error = |why| CtfError::new(header.offset, why);
        let one_stream = header.version < 3;
        if one_stream && header.ids.0 != self.next_id {
            let why = Why::IdGap { expected: self.next_id, found: header.ids.0 };
            return Err(error(why));
        }
        self.count += 1;
        let domain = self.domains.entry(header.domain).or_default();
        domain.packet = self.count;
        if let Some(last_us) = domain.last_us
            && one_stream
            && header.begin_us < last_us
        {
            return Err(error(Why::Back(last_us.saturating_sub(header.begin_us))));
        }
        if header.verify.0 != UNCHECKED {
            let holds = match &domain.cache {
                Some(cache) => cache.holds(header.verify),
                // Nothing yet: all zero.
                None => header.verify.0 < 1 << 14 && (header.verify.1, header.verify.2) == (0, 0),
            };
            if domain.gone {
                return Err(error(Why::Domains { most: MOST_DOMAINS }));
            }
            if !holds {
                return Err(error(Why::Drift));
            }
        } else if header.ids.1 > header.ids.0 {
            // The first of a stream: also of a domain with the number of one long ended.
            domain.gone = false;
        }
        if header.ids.1 > header.ids.0 {
            self.make_room(header.domain);
        }
        let left = self.packets.body(&header).len();
        Ok(Some(Packet { header, left, next_id: header.ids.0 }))
    }

    /// A packet ends.
    fn leave(&mut self, packet: &Packet) -> Result<(), CtfError> {
        self.packet = None;
        let (first, end) = packet.header.ids;
        if packet.next_id != end {
            let why = Why::IdCount { said: end - first, counted: packet.next_id - first };
            return Err(CtfError::new(packet.header.offset, why));
        }
        self.next_id = end;
        Ok(())
    }

    /// Reads an event; `None` if it is a definition.
    fn event(&mut self, mut packet: Packet) -> Result<Option<Raw>, CtfError> {
        let header = packet.header;
        let mut bytes = self.packets.body(&header).last(packet.left);
        let start = bytes;
        let word = bytes.u32()?;
        let time_us = event_time(word, header.begin_us);
        if !(header.begin_us..=header.end_us).contains(&time_us) {
            return Err(start.error(Why::Outside));
        }
        let domain = self.domains.entry(header.domain).or_default();
        if let Some(last_us) = domain.last_us
            && time_us < last_us
        {
            return Err(start.error(Why::Back(last_us.saturating_sub(time_us))));
        }
        domain.last_us = Some(time_us);
        let what = match (word >> 25) as u8 {
            0 => return Err(start.error(Why::SecondInfo)),
            1 => {
                self.locations.read(&mut domain.tables, &mut bytes)?;
                None
            }
            code @ (2 | 101..=116) => {
                let birth = Birth::read(code, &mut bytes)?;
                let cache = domain.cache.get_or_insert_with(Cache::new);
                let kept = cache.read(&mut bytes, birth.common, birth.codes)?;
                let id = packet.next_id;
                packet.next_id = id.checked_add(1).ok_or_else(|| start.error(Why::NoObject))?;
                Some(RawWhat::Alloc { id, birth, kept })
            }
            code @ (3 | 4) => {
                let delta = bytes.vint()?;
                let id = packet.next_id.checked_sub(1).and_then(|id| id.checked_sub(delta));
                let id = id.filter(|id| *id >= 0 && (delta >= 0 || header.version >= 3));
                let id = id.ok_or_else(|| start.error(Why::NoObject))?;
                Some(if code == 3 { RawWhat::Promote(id) } else { RawWhat::Collect(id) })
            }
            code => return Err(start.error(Why::Kind(code))),
        };
        let deep = domain.cache.as_ref().is_some_and(|cache| cache.frames() > MOST_DEPTH / 4);
        let offset = start.offset();
        packet.left = bytes.len();
        self.packet = Some(packet);
        if deep && self.frames() > MOST_FRAMES {
            return Err(CtfError::new(offset, Why::Depth));
        }
        Ok(what.map(|what| Raw { time_us, domain: header.domain, what }))
    }

    /// Makes room for the tables of a domain that is about to have its first birth.
    fn make_room(&mut self, domain: u16) {
        let known = self.domains.get(&domain).is_some_and(|d| d.cache.is_some());
        let kept = self.domains.values_mut().filter(|d| d.cache.is_some());
        if known || kept.count() < MOST_DOMAINS {
            return;
        }
        let kept = self.domains.values_mut().filter(|d| d.cache.is_some());
        if let Some(silent) = kept.min_by_key(|d| d.packet) {
            (silent.cache, silent.gone) = (None, true);
        }
    }

    /// Frames that the last callstacks of all domains have room for.
    fn frames(&self) -> usize {
        self.domains.values().filter_map(|d| Some(d.cache.as_ref()?.frames())).sum()
    }

    fn show(&self, raw: &Raw) -> Event<'_> {
        let what = match raw.what {
            RawWhat::Promote(id) => What::Promote(id),
            RawWhat::Collect(id) => What::Collect(id),
            RawWhat::Alloc { id, ref birth, kept } => {
                let &Birth { length, n_samples, source, common, .. } = birth;
                let cache = self.domains.get(&raw.domain).and_then(|d| d.cache.as_ref());
                let stack = cache.map_or(&[][..], |cache| cache.last());
                What::Alloc(Alloc { id, length, n_samples, source, common, kept, stack })
            }
        };
        Event { time_us: raw.time_us, domain: raw.domain, what, locations: &self.locations }
    }
}
