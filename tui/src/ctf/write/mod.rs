//! The writer: one stream of version 2 that the strictest reader takes.
//!
//! 1. Whole packets only, none above 32 KiB: what is written is readable at any moment.
//! 2. Times never go back, also over packets: an event that comes late gets the time of
//!    the one before it. A packet ends before its events lie 30 s apart.
//! 3. Objects are numbered from 0 in the order of their births, without a gap.
//! 4. Codes that an event packet is the first to use are defined in packets just before
//!    it, which bear its first event's time and have no births.
//! 5. From the second event packet on, each checks a bucket of the reader's table of
//!    callstacks: 4242 and then 5413 further each time, as memtrace does it.

mod callstacks;
mod locations;
mod numbers;

use super::event::Source;
use super::info::Info;
use super::location::Location;
use super::packet::{MAGIC, MOST_BYTES, SPAN_US, UNCHECKED, header_bytes};
use callstacks::Callstacks;
use locations::Tables;
use numbers::{count, text};
use rustc_hash::FxHashSet;
use std::io::{self, Write};
use std::ops::Range;

/// The version that is written.
const VERSION: u16 = 2;
/// Bytes of a packet that events can take.
const BODY: usize = MOST_BYTES - header_bytes(VERSION);
/// Longest time between a packet's first event and its last.
const FLUSH_US: i64 = 30_000_000;
const FIRST_CHECK: u16 = 4242;
const CHECK_STEP: u16 = 5413;
/// Buckets of the table of callstacks.
const BUCKETS: u16 = 1 << 14;

/// A birth to be written.
#[derive(Debug, Clone, Copy)]
pub struct Birth<'a> {
    /// Microseconds since 1970.
    pub time_us: i64,
    /// Words without the header; of an external object all words.
    pub length: u64,
    /// Samples in it, at least 1.
    pub n_samples: u64,
    /// Where it was born.
    pub source: Source,
    /// Frames shared with the birth before, if the caller knows the number that stood in
    /// the file it reads.
    pub common: Option<u64>,
    /// Codes, root first.
    pub stack: &'a [u64],
}

/// A check of the reader's table: a bucket, and what it must hold.
type Check = (u16, u16, u64);

/// Writes a trace.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    pid: i64,
    /// Time of the last event, microseconds since 1970.
    last_us: i64,
    tables: Tables,
    callstacks: Callstacks,
    defined: FxHashSet<u64>,
    definitions: Vec<u8>,
    /// Where each definition begins.
    starts: Vec<usize>,
    events: Vec<u8>,
    begin_us: i64,
    end_us: i64,
    check: Check,
    next_check: u16,
    first: bool,
    /// Number of the packet's first object, and of the next one.
    ids: (i64, i64),
    scratch: Vec<u8>,
    cut: u64,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the beginning of a trace; `info.version` does not matter.
    pub fn new(mut out: W, info: &Info) -> io::Result<Self> {
        let mut body = event_word(0, info.start_us).to_le_bytes().to_vec();
        body.extend(info.sample_rate.to_le_bytes());
        body.push(info.word_size);
        for name in [&info.executable, &info.host, &info.parameters] {
            text(&mut body, cut_to(name, 8000));
        }
        body.extend(info.pid.to_le_bytes());
        text(&mut body, cut_to(&info.context, 8000));
        let check = (UNCHECKED, 0, 0);
        packet(&mut out, &body, (info.start_us, info.start_us), info.pid, check, (0, 0))?;
        Ok(Self {
            out,
            pid: info.pid,
            last_us: info.start_us,
            tables: Tables::default(),
            callstacks: Callstacks::new(),
            defined: FxHashSet::default(),
            definitions: Vec::new(),
            starts: Vec::new(),
            events: Vec::new(),
            begin_us: info.start_us,
            end_us: info.start_us,
            check,
            next_check: FIRST_CHECK,
            first: true,
            ids: (0, 0),
            scratch: Vec::new(),
            cut: 0,
            written: 0,
        })
    }

    /// Writes a birth; the object's number. `locations` says what a code stands for that
    /// was not used before.
    pub fn alloc<'l>(
        &mut self,
        birth: &Birth<'_>,
        locations: impl Fn(u64) -> &'l [Location],
    ) -> io::Result<i64> {
        let time_us = self.time(birth.time_us)?;
        let last = self.callstacks.last();
        let shared = || last.iter().zip(birth.stack).take_while(|(a, b)| a == b).count();
        // What was shared with a callstack that had been cut stays as it was: the reader
        // takes the one before for this one.
        let (common, kept) = match birth.common {
            Some(common) if common > last.len() as u64 => (common, None),
            Some(common) => (common, Some(common as usize)),
            None => {
                let shared = shared();
                (shared as u64, Some(shared))
            }
        };
        let new = kept.map_or(&[][..], |kept| birth.stack.get(kept..).unwrap_or(&[]));
        for &code in new {
            self.define(code, &locations);
        }
        let check = self.next_check();
        let mut codes = std::mem::take(&mut self.scratch);
        codes.clear();
        let written = match kept {
            Some(kept) => self.callstacks.write(&mut codes, kept, new),
            None => callstacks::Written { codes: 0, cut: false },
        };
        self.cut += u64::from(written.cut);
        let mut event = Vec::with_capacity(40);
        let short = birth.source == Source::Minor
            && birth.n_samples == 1
            && (1..=16).contains(&birth.length);
        if let (true, Ok(few)) = (short, u8::try_from(written.codes)) {
            event.extend(event_word(100 + birth.length as u32, time_us).to_le_bytes());
            count(&mut event, common);
            event.push(few);
        } else {
            event.extend(event_word(2, time_us).to_le_bytes());
            count(&mut event, birth.length);
            count(&mut event, birth.n_samples);
            event.push(match birth.source {
                Source::Minor => 0,
                Source::Major => 1,
                Source::External => 2,
            });
            count(&mut event, common);
            event.extend(written.codes.to_le_bytes());
        }
        event.extend_from_slice(&codes);
        self.scratch = codes;
        self.put(time_us, check, &event)?;
        let id = self.ids.1;
        self.ids.1 += 1;
        Ok(id)
    }

    /// Writes that an object survives a minor collection.
    pub fn promote(&mut self, time_us: i64, id: i64) -> io::Result<()> {
        self.about(3, time_us, id)
    }

    /// Writes that an object is dead.
    pub fn collect(&mut self, time_us: i64, id: i64) -> io::Result<()> {
        self.about(4, time_us, id)
    }

    /// Writes what is left; the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Callstacks whose innermost frames found no room.
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.written
    }

    fn about(&mut self, kind: u32, time_us: i64, id: i64) -> io::Result<()> {
        // Of an object that was not born there is nothing to be said.
        let Ok(back) = u64::try_from(self.ids.1 - 1 - id) else { return Ok(()) };
        let time_us = self.time(time_us)?;
        let check = self.next_check();
        let mut event = event_word(kind, time_us).to_le_bytes().to_vec();
        count(&mut event, back);
        self.put(time_us, check, &event)
    }

    /// The time that an event gets; a packet that has become too old for it is written.
    fn time(&mut self, time_us: i64) -> io::Result<i64> {
        let time_us = time_us.max(self.last_us);
        if !self.events.is_empty() && time_us.saturating_sub(self.begin_us) > FLUSH_US {
            self.flush()?;
        }
        self.last_us = time_us;
        Ok(time_us)
    }

    /// What a packet would check that began with the next event.
    fn next_check(&self) -> Check {
        if self.first { (UNCHECKED, 0, 0) } else { self.callstacks.check(self.next_check) }
    }

    fn define<'l>(&mut self, code: u64, locations: &impl Fn(u64) -> &'l [Location]) {
        if !self.defined.insert(code) {
            return;
        }
        self.starts.push(self.definitions.len());
        // The word is written when the packet's time is known.
        self.definitions.extend([0; 4]);
        self.tables.write(&mut self.definitions, code, locations(code));
    }

    /// Appends an event to the packet, or begins another with it, which is to `check`.
    fn put(&mut self, time_us: i64, check: Check, event: &[u8]) -> io::Result<()> {
        if self.events.len() + event.len() > BODY {
            self.flush()?;
        }
        if self.events.is_empty() {
            self.begin_us = time_us;
            self.check = check;
            if !std::mem::take(&mut self.first) {
                self.next_check = (self.next_check + CHECK_STEP) % BUCKETS;
            }
        }
        self.end_us = time_us;
        self.written += 1;
        self.events.extend_from_slice(event);
        Ok(())
    }

    /// Writes the packet, and before it what its codes stand for.
    fn flush(&mut self) -> io::Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let (begin_us, word) = (self.begin_us, event_word(1, self.begin_us).to_le_bytes());
        for &start in &self.starts {
            self.definitions[start..start + 4].copy_from_slice(&word);
        }
        let (ids, end, mut from) = (self.ids, self.definitions.len(), 0);
        // As many as a packet takes: up to the last one that ends within it.
        while from < end {
            let within = |to: &usize| *to > from && *to - from <= BODY;
            let ends = self.starts.iter().copied().chain([end]);
            let to = ends.filter(within).max().unwrap_or(end);
            self.define_packet(from..to)?;
            from = to;
        }
        self.definitions.clear();
        self.starts.clear();
        packet(&mut self.out, &self.events, (begin_us, self.end_us), self.pid, self.check, ids)?;
        self.events.clear();
        self.ids.0 = self.ids.1;
        Ok(())
    }

    fn define_packet(&mut self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (time, first) = ((self.begin_us, self.begin_us), self.ids.0);
        let unchecked = (UNCHECKED, 0, 0);
        packet(&mut self.out, &self.definitions[range], time, self.pid, unchecked, (first, first))
    }
}

/// Writes one packet, in one piece.
fn packet(
    out: &mut impl Write,
    body: &[u8],
    (begin_us, end_us): (i64, i64),
    pid: i64,
    (bucket, next, code): Check,
    (first, end): (i64, i64),
) -> io::Result<()> {
    let bytes = header_bytes(VERSION) + body.len();
    let mut packet = Vec::with_capacity(bytes);
    packet.extend(MAGIC.to_le_bytes());
    packet.extend((bytes as u32 * 8).to_le_bytes());
    packet.extend(begin_us.to_le_bytes());
    packet.extend(end_us.to_le_bytes());
    packet.extend(0u32.to_le_bytes());
    packet.extend(VERSION.to_le_bytes());
    packet.extend(pid.to_le_bytes());
    packet.extend(bucket.to_le_bytes());
    packet.extend(next.to_le_bytes());
    packet.extend(code.to_le_bytes());
    packet.extend(first.to_le_bytes());
    packet.extend(end.to_le_bytes());
    packet.extend_from_slice(body);
    out.write_all(&packet)
}

/// What an event begins with: its kind, and as much of its time as there is room for.
const fn event_word(kind: u32, time_us: i64) -> u32 {
    kind << 25 | (time_us & (SPAN_US - 1)) as u32
}

fn cut_to(text: &[u8], most: usize) -> &[u8] {
    &text[..text.len().min(most)]
}
