//! A recording as text: a line an event, with all that it says.

use std::io::{self, Write};
use std::path::Path;

use heaptop_protocol::callstack::Frame;
use heaptop_protocol::event::{Event, Moment};
use heaptop_protocol::ids::{ModuleId, StackId};
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::InRecording;
use rustc_hash::FxHashMap;

use crate::session::Damage;
use crate::session::names::Symbol;
use crate::source::file::{self, FileError};
use crate::source::{SourceEvent, State};
use crate::view::text;

/// Callstacks that are remembered for their names.
const MOST_STACKS: usize = 1 << 20;

/// Bytes of names that are remembered.
const MOST_NAMES_BYTES: usize = 256 << 20;

/// Why there is no text.
#[derive(Debug)]
pub enum DumpError {
    /// The file cannot be read.
    File(FileError),
    /// The text cannot be written.
    Print(io::Error),
}

/// What was defined so far.
#[derive(Default)]
struct Known {
    modules: FxHashMap<ModuleId, String>,
    stacks: FxHashMap<StackId, Vec<Frame>>,
    names: FxHashMap<Frame, Vec<Symbol>>,
}

impl Known {
    /// Innermost first, as one reads where a block was allocated. Names that the file
    /// tells later are not known yet.
    fn stack(&self, id: StackId) -> String {
        let Some(frames) = self.stacks.get(&id) else { return format!("stack {}", id.0) };
        let mut said = Vec::new();
        for frame in frames.iter().rev() {
            match self.names.get(frame).filter(|symbols| !symbols.is_empty()) {
                Some(symbols) => said.extend(symbols.iter().rev().map(|s| s.function.to_string())),
                None => said.push(match self.modules.get(&frame.module) {
                    Some(module) => format!("{module}+{:#x}", frame.offset),
                    None => format!("{:#x}", frame.offset),
                }),
            }
        }
        said.join(" < ")
    }
}

fn at(at: Moment) -> String {
    format!("{:>14.6} s  G {:>14}", at.time_ns as f64 / 1e9, at.clock)
}

/// Writes all of `path` to `out`; where it is damaged.
///
/// Names come late in a recording: the file is read twice, first for them alone.
pub fn dump(path: &Path, out: &mut impl Write) -> Result<Vec<Damage>, DumpError> {
    let mut known = Known::default();
    let mut room = MOST_NAMES_BYTES;
    for event in file::open(path).map_err(DumpError::File)? {
        if let SourceEvent::Names(names) = event {
            for named in names {
                let bytes = |s: &Symbol| s.function.len() + size_of::<Symbol>();
                let bytes: usize = named.symbols.iter().map(bytes).sum();
                if bytes <= room {
                    room -= bytes;
                    known.names.insert(named.frame, named.symbols);
                }
            }
        }
    }
    let mut out = io::BufWriter::new(out);
    let (mut how, mut damages) = (String::new(), Vec::new());
    let mut teller = file::recording(path).map_err(DumpError::File)?;
    if let Some(about) = teller.recorded() {
        said(&mut out, &InRecording::Recorded(about.clone())).map_err(DumpError::Print)?;
    }
    for event in &mut teller {
        match event {
            SourceEvent::Message(message) => {
                line(&mut out, &mut known, &message).map_err(DumpError::Print)?;
            }
            SourceEvent::UnknownMessage { kind, payload } => {
                writeln!(out, "unknown message of kind {kind}, {} bytes", payload.len())
                    .map_err(DumpError::Print)?;
            }
            SourceEvent::Names(names) => {
                writeln!(out, "names of {} frames", names.len()).map_err(DumpError::Print)?;
            }
            SourceEvent::Connection(State::Ended(sentence)) => how = sentence,
            SourceEvent::Damage(damage) => {
                writeln!(out, "damaged: {}", text::clean(&damage.how)).map_err(DumpError::Print)?;
                damages.push(damage);
            }
            SourceEvent::Connection(state) => {
                writeln!(out, "connection {}", text::clean(&format!("{state:?}")))
                    .map_err(DumpError::Print)?;
            }
        }
    }
    writeln!(out, "end: {}", text::clean(&how)).map_err(DumpError::Print)?;
    out.flush().map_err(DumpError::Print)?;
    Ok(damages)
}

fn said(out: &mut impl Write, said: &InRecording) -> io::Result<()> {
    writeln!(out, "{}", text::clean(&format!("{said:?}")))
}

fn line(out: &mut impl Write, known: &mut Known, message: &FromAgent) -> io::Result<()> {
    match message {
        FromAgent::Events(batch) => {
            for event in batch.iter() {
                self::event(out, known, &event)?;
            }
            return Ok(());
        }
        FromAgent::Module(module) => {
            known.modules.insert(module.id, text::clean(&module.path).into_owned());
        }
        FromAgent::Stack(stack) => {
            if known.stacks.len() < MOST_STACKS {
                known.stacks.insert(stack.id, stack.frames.clone());
            }
            let names = known.stack(stack.id);
            return writeln!(out, "stack {} {:?}  {}", stack.id.0, stack.end, text::clean(&names));
        }
        FromAgent::SnapshotBlocks(listed) => {
            for b in &listed.blocks {
                writeln!(
                    out,
                    "live    block {}  born {:.6} s  G {}  {} bytes  {} samples  1 in {}  {:?}  thread {}  {}{:#x}  {}",
                    b.id.0,
                    b.born_ns as f64 / 1e9,
                    b.born_clock,
                    b.size,
                    b.n_samples,
                    b.interval.bytes(),
                    b.cause,
                    b.thread.0,
                    if b.young { "young  " } else { "" },
                    b.address,
                    text::clean(&known.stack(b.stack)),
                )?;
            }
            return Ok(());
        }
        _ => {}
    }
    writeln!(out, "{}", text::clean(&format!("{message:?}")))
}

fn event(out: &mut impl Write, known: &Known, event: &Event) -> io::Result<()> {
    let young = |young: bool| if young { "minor" } else { "major" };
    match event {
        Event::Alloc(e) => {
            let replaces = e.replaces.map_or_else(String::new, |id| format!("  replaces {}", id.0));
            writeln!(
                out,
                "{}  alloc   block {}  {}  {} bytes  {} samples  1 in {}  {:?}{replaces}  thread {}  {:#x}  {}",
                at(e.at),
                e.id().0,
                young(e.young),
                e.size,
                e.n_samples,
                e.interval.bytes(),
                e.cause,
                e.thread.0,
                e.address,
                text::clean(&known.stack(e.stack)),
            )
        }
        Event::Promote(e) => writeln!(out, "{}  promote block {}", at(e.at), e.id.0),
        Event::Dealloc(e) => {
            let young = young(e.young);
            writeln!(out, "{}  dealloc block {}  {young}  thread {}", at(e.at), e.id.0, e.thread.0)
        }
    }
}
