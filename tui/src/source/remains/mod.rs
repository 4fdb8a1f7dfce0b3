//! What a dead target left: the last of its events, and its books, read from the
//! agent's memory and told as messages, as the agent would have told them.
//!
//! ```text
//! entries ─┬─ births and deaths that the books lack ─► events, totals put right
//!          └─ blocks that live ───────────────────────► a snapshot
//! records, places, frames ────────────────────────────► totals, callstacks
//! ```
//!
//! The memory is opened while the target lives, by way of its descriptor, and is
//! read when it is dead and changes no more. It is as hostile as any peer: bounded
//! reads, checked ranges, and what comes of it goes through [`Session::apply`] like
//! all else.
//!
//! [`Session::apply`]: crate::session::Session::apply

mod left;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use heaptop_protocol::callstack::{Callstack, Frame, Module};
use heaptop_protocol::ids::{ModuleId, StackId};
use heaptop_protocol::message::{FromAgent, Hello, Memory, Status, Track};
use heaptop_protocol::remains::{
    Damaged, Entry, HEADER_BYTES, Header, Record, Span, entry, frames_of, record, u64_at, unpack,
};
use left::Left;

/// Elements read at once.
const AT_ONCE: u64 = 8192;

/// The memory of a target that may still live.
#[derive(Debug)]
pub(super) struct Remains {
    file: File,
    bytes: u64,
}

/// What was known of the target when it died.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Its greeting.
    pub hello: Option<Hello>,
    /// Its modules.
    pub modules: Vec<Module>,
    /// Callstacks below this were defined.
    pub stacks: u32,
    /// Its last status.
    pub status: Option<Status>,
}

impl Known {
    /// Keeps of a message what will be needed.
    pub fn see(&mut self, message: &FromAgent) {
        match message {
            FromAgent::Hello(hello) => {
                *self = Self { hello: Some(hello.clone()), ..Self::default() }
            }
            FromAgent::Module(module) => self.modules.push(module.clone()),
            FromAgent::Stack(stack) => self.stacks = self.stacks.max(stack.id.0.saturating_add(1)),
            FromAgent::Status(status) => self.status = Some(*status),
            _ => {}
        }
    }

    /// What its books are of.
    fn track(&self) -> Track {
        self.hello.as_ref().map_or_else(Track::default, |hello| hello.track)
    }

    /// The place of an address that the agent had no time to place.
    fn place(&self, frame: Frame) -> Frame {
        let holds = |m: &&Module| m.range.0 < frame.offset && frame.offset <= m.range.1;
        match self.modules.iter().rev().find(holds) {
            Some(m) if frame.module == ModuleId::UNKNOWN => {
                Frame { module: m.id, offset: frame.offset.wrapping_sub(m.load_bias) }
            }
            _ => frame,
        }
    }

    fn cycle(&self, clock: u64) -> u64 {
        self.hello
            .as_ref()
            .map_or(0, |hello| clock.wrapping_add(hello.phase_bytes) / hello.nursery_bytes.max(1))
    }
}

impl Remains {
    /// Opens the memory of process `pid`, if we may, and it is the one that is meant.
    pub fn open(pid: u32, memory: Memory) -> Option<Self> {
        let Memory { fd, tid, device, inode } = memory;
        // The agent's thread has a table to itself, from which no program takes it; but
        // its number means nothing in another namespace.
        let paths = [format!("/proc/{pid}/task/{tid}/fd/{fd}"), format!("/proc/{pid}/fd/{fd}")];
        paths.into_iter().find_map(|path| {
            let file = File::open(path).ok()?;
            let found = file.metadata().ok()?;
            let meant = (found.dev(), found.ino()) == (device, inode);
            meant.then_some(Self { file, bytes: found.len() })
        })
    }

    fn header(&self) -> io::Result<Result<Header, Damaged>> {
        let mut head = [0; HEADER_BYTES];
        self.file.read_exact_at(&mut head, 0)?;
        Ok(Header::read(&head, self.bytes))
    }

    /// The code given to `exit`, if the target ended so.
    pub fn exit_code(&self) -> Option<i32> {
        self.header().ok()?.ok()?.exit_code()
    }

    /// Tells what is left as messages; `tell` says whether somebody listens. An error
    /// where it cannot be read, as a sentence.
    pub fn tell(
        &self,
        known: &Known,
        tell: &mut dyn FnMut(FromAgent) -> bool,
    ) -> Result<(), String> {
        let cannot = |e: io::Error| format!("the agent's memory cannot be read: {e}");
        let header = self.header().map_err(cannot)?.map_err(|e| e.to_string())?;
        let mut left = Left::new(known, &header);
        self.each(header.records(), record::BYTES, |bytes| {
            Record::all(bytes).for_each(|r| left.record(&r));
        })
        .map_err(cannot)?;
        left.index();
        let mut places = Vec::new();
        self.each(header.places(), 8, |bytes| {
            places.extend(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)));
        })
        .map_err(cannot)?;
        self.each(header.entries(), entry::BYTES, |bytes| {
            Entry::all(bytes).for_each(|e| left.take(e));
        })
        .map_err(cannot)?;
        for id in known.stacks.max(1)..left.stacks() {
            let stack = self.stack(&header, &places, left.place(id), id, known).map_err(cannot)?;
            if let Some(stack) = stack
                && !tell(stack.into())
            {
                return Ok(());
            }
        }
        left.finish(tell);
        Ok(())
    }

    /// Reads an array of elements of `size` bytes, part by part.
    fn each(&self, span: Span, size: usize, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut done = 0;
        while done < span.count {
            let some = (span.count - done).min(AT_ONCE);
            buffer.resize(some as usize * size, 0);
            self.file.read_exact_at(&mut buffer, span.offset + done * size as u64)?;
            take(&buffer);
            done += some;
        }
        Ok(())
    }

    fn stack(
        &self,
        header: &Header,
        places: &[u64],
        place: u32,
        id: u32,
        known: &Known,
    ) -> io::Result<Option<Callstack>> {
        let place = (place as usize).checked_sub(1).and_then(|at| places.get(at));
        let Some((range, end)) = place.and_then(|place| frames_of(*place)) else { return Ok(None) };
        let all = header.frames();
        if range.end as u64 > all.count {
            return Ok(None);
        }
        let mut bytes = vec![0; range.len() * 8];
        self.file.read_exact_at(&mut bytes, all.offset + range.start as u64 * 8)?;
        let frame = |at: usize| known.place(unpack(u64_at(&bytes, at * 8)));
        // They lie innermost first.
        let frames = (0..range.len()).rev().map(frame).collect();
        Ok(Some(Callstack { id: StackId(id), frames, end }))
    }
}
