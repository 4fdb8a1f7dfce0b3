//! A trace as text, a line an event: byte for byte what memtrace's own tool prints.
//!
//! Callstacks change little from birth to birth, and can be thousands of frames deep: a
//! line is kept with the end of each frame in it, and only what is new is written anew.

use super::error::CtfError;
use super::event::{Alloc, Event, Source, What};
use super::location::{Location, Locations};
use super::reader::Reader;
use rustc_hash::FxHashMap;
use std::io::{self, Read, Write};

/// Why a dump is not whole.
#[derive(Debug)]
pub enum DumpError {
    /// The trace is sound up to there.
    Trace(CtfError),
    /// Nothing more can be written.
    Write(io::Error),
}

impl From<CtfError> for DumpError {
    fn from(error: CtfError) -> Self {
        Self::Trace(error)
    }
}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Prints the events of a trace, as far as it is sound.
pub fn dump<R: Read>(reader: &mut Reader<R>, out: &mut impl Write) -> Result<(), DumpError> {
    let start_us = reader.info().start_us;
    let domains = reader.info().version >= 3;
    let mut slots = Slots::default();
    let mut line = Line::default();
    let mut head = Vec::new();
    loop {
        let Some(event) = reader.next_event()? else { return Ok(()) };
        let Event { time_us, domain, what, locations } = event;
        head.clear();
        write!(head, "{:010} ", time_us.saturating_sub(start_us))?;
        match what {
            What::Promote(id) => writeln!(head, "{id:010} promote")?,
            What::Collect(id) => writeln!(head, "{id:010} collect")?,
            What::Alloc(a) => {
                let source = match a.source {
                    Source::Minor => "alloc",
                    Source::Major => "alloc_major",
                    Source::External => "alloc_ext",
                };
                write!(head, "{:010} {source} {} len={}", a.id, a.n_samples, a.length)?;
                if domains {
                    write!(head, " dom={domain}")?;
                }
                write!(head, "  {:3}:", a.common)?;
                out.write_all(&head)?;
                line.set(domain, &a, |code, text| {
                    text.extend_from_slice(slots.text(code, locations));
                });
                out.write_all(&line.text)?;
                head.clear();
                head.push(b'\n');
            }
        }
        out.write_all(&head)?;
    }
}

/// The callstack of the last birth.
#[derive(Debug, Default)]
struct Line {
    domain: Option<u16>,
    text: Vec<u8>,
    /// By frame, where it ends.
    ends: Vec<usize>,
}

impl Line {
    fn set(&mut self, domain: u16, a: &Alloc<'_>, mut slot: impl FnMut(u64, &mut Vec<u8>)) {
        let kept = if self.domain == Some(domain) { a.kept.min(self.ends.len()) } else { 0 };
        self.domain = Some(domain);
        self.ends.truncate(kept);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
        for &code in &a.stack[kept..] {
            slot(code, &mut self.text);
            self.ends.push(self.text.len());
        }
    }
}

/// Codes as text.
#[derive(Debug, Default)]
struct Slots(FxHashMap<u64, Box<[u8]>>);

impl Slots {
    fn text(&mut self, code: u64, locations: &Locations) -> &[u8] {
        self.0.entry(code).or_insert_with(|| {
            let mut text = Vec::new();
            let places = locations.get(code).unwrap_or(&[]);
            for Location { file, function, line, start, end } in places {
                text.push(b' ');
                text.extend_from_slice(function);
                text.push(b'@');
                text.extend_from_slice(file);
                text.extend_from_slice(format!(":{line}:{start}-{end}").as_bytes());
            }
            if places.is_empty() {
                text.extend_from_slice(format!(" ${code}").as_bytes());
            }
            text.into()
        })
    }
}
