//! A trace of a trace.

use crate::ctf::backtrace::MOST_DEPTH;
use crate::ctf::dump::DumpError;
use crate::ctf::error::CtfError;
use crate::ctf::event::{Event, What};
use crate::ctf::merge::{Happens, Merge, Told};
use crate::ctf::reader::Reader;
use crate::ctf::stacks::Stacks;
use crate::ctf::write::{Birth, Writer};
use rustc_hash::FxHashMap;
use std::io::{self, Read, Write};

/// What became of a trace.
#[derive(Debug)]
pub struct Converted {
    /// Events that were written.
    pub events: u64,
    /// Why it is not whole: what is sound was written.
    pub error: Option<CtfError>,
    /// What the trace had and the new one lacks: a few words each.
    pub lost: Vec<String>,
}

/// Writes the events of a trace as one stream of version 2, as far as it is sound.
pub fn convert<R: Read, W: Write>(reader: &mut Reader<R>, out: W) -> io::Result<Converted> {
    let mut writer = Writer::new(out, reader.info())?;
    let domains = reader.info().version >= 3;
    let mut lost = Vec::new();
    let ended =
        if domains { several(reader, &mut writer, &mut lost) } else { one(reader, &mut writer) };
    let error = match ended {
        Ok(()) => None,
        Err(DumpError::Trace(error)) => Some(error),
        Err(DumpError::Write(error)) => return Err(error),
    };
    if writer.cut() > 0 {
        lost.push(format!(
            "the innermost frames of {} callstacks: they are too deep",
            writer.cut()
        ));
    }
    if reader.skipped() > 0 {
        lost.push(format!("{} packets of other processes", reader.skipped()));
    }
    let events = writer.events();
    writer.finish()?;
    Ok(Converted { events, error, lost })
}

fn one<R: Read, W: Write>(reader: &mut Reader<R>, writer: &mut Writer<W>) -> Result<(), DumpError> {
    while let Some(Event { time_us, what, locations, .. }) = reader.next_event()? {
        match what {
            What::Promote(id) => writer.promote(time_us, id)?,
            What::Collect(id) => writer.collect(time_us, id)?,
            What::Alloc(a) => {
                let birth = Birth {
                    time_us,
                    length: a.length,
                    n_samples: a.n_samples,
                    source: a.source,
                    common: Some(a.common),
                    stack: a.stack,
                };
                writer.alloc(&birth, |code| locations.get(code).unwrap_or(&[]))?;
            }
        }
    }
    Ok(())
}

fn several<R: Read, W: Write>(
    reader: &mut Reader<R>,
    writer: &mut Writer<W>,
    lost: &mut Vec<String>,
) -> Result<(), DumpError> {
    let mut merge = Merge::new(reader.info());
    let mut stacks = Stacks::with_depth(MOST_DEPTH);
    let mut ids = FxHashMap::default();
    let (mut frames, mut strange) = (Vec::new(), 0u64);
    let mut ended = Ok(());
    let mut over = false;
    loop {
        let Some(Told { time_us, what, .. }) = merge.take(over) else {
            if over {
                break;
            }
            match reader.next_event() {
                Ok(Some(event)) => merge.put(Told::new(&event, &mut stacks)),
                Ok(None) => over = true,
                Err(error) => (over, ended) = (true, Err(error.into())),
            }
            continue;
        };
        match what {
            Happens::Alloc { id, length, n_samples, source, stack } => {
                stacks.frames(stack, &mut frames);
                let birth =
                    Birth { time_us, length, n_samples, source, common: None, stack: &frames };
                let locations = reader.locations();
                let new = writer.alloc(&birth, |code| locations.get(code).unwrap_or(&[]))?;
                ids.insert(id, new);
            }
            Happens::Promote(id) => match ids.get(&id) {
                Some(&new) => writer.promote(time_us, new)?,
                None => strange += 1,
            },
            Happens::Collect(id) => match ids.remove(&id) {
                Some(new) => writer.collect(time_us, new)?,
                None => strange += 1,
            },
        }
    }
    lost.push("which domain an event is of, and its object numbers".into());
    for (n, what) in [
        (merge.late(), "events came out of order, and have a later time"),
        (strange, "events are of objects that are not known"),
        (stacks.refused(), "births lack their callstacks: there are too many"),
    ] {
        if n > 0 {
            lost.push(format!("{n} {what}"));
        }
    }
    ended
}
