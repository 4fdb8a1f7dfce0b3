//! A trace of whatever can be told, of a recording above all.
//!
//! Two passes, since a trace begins with its one sampling rate, and a code must mean the
//! same from its first use on: the first finds the coarsest R and all names, the second
//! writes. Callstacks end at the callsite, as they do on the screens.

use super::record::{Record, Records};
use super::thin::{Coins, WORD, word_rate, words};
use crate::ctf::event::Source;
use crate::ctf::info::Info;
use crate::ctf::location::{Location, Text};
use crate::ctf::tell::greeting::NATIVE;
use crate::ctf::write::{Birth, Writer};
use crate::session::Damage;
use crate::session::book::Book;
use crate::source::tell::Tell;
use crate::source::{SourceEvent, State};
use crate::view::format;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Cause, Event};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{AgentKind, FromAgent, Hello, LiveBlock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::io::{self, Write};

/// Why there is no trace.
#[derive(Debug)]
pub enum ExportError {
    /// What is to be exported cannot be read: a sentence.
    Source(String),
    /// The trace cannot be written.
    Write(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(why) => f.write_str(why),
            Self::Write(error) => write!(f, "the trace cannot be written: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// How what was told ended: its own sentence.
    pub ended: String,
    /// Where it was damaged.
    pub damage: Vec<Damage>,
    /// What the format cannot hold, a few words each.
    pub lost: Vec<String>,
}

/// Writes what is told as a trace. `open` is called twice, and must tell the same.
pub fn from_told(
    mut open: impl FnMut() -> Result<Box<dyn Tell>, String>,
    out: impl Write,
) -> Result<Exported, ExportError> {
    let mut survey = Survey::default();
    for event in open().map_err(ExportError::Source)? {
        survey.see(&event);
    }
    let Some(hello) = survey.hello.take() else {
        return Err(ExportError::Source("there is nothing in it: no target has spoken".into()));
    };
    let coarsest = survey.coarsest.unwrap_or(Interval::DEFAULT);
    let mut records = Records::default();
    let mut pen = Pen::new(out, &hello, coarsest, std::mem::take(&mut survey.book))?;
    for event in open().map_err(ExportError::Source)? {
        if let SourceEvent::Message(message) = event {
            records.hear(&message);
        }
        while let Some((time_ns, record)) = records.take(false) {
            pen.write(time_ns, record)?;
        }
    }
    while let Some((time_ns, record)) = records.take(true) {
        pen.write(time_ns, record)?;
    }
    let lost = survey.lost(coarsest, pen.thinned, pen.writer.cut());
    pen.writer.finish()?;
    Ok(Exported { ended: survey.ended, damage: survey.damage, lost })
}

/// What the first pass finds.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether there was such a thing")]
struct Survey {
    hello: Option<Hello>,
    book: Book,
    coarsest: Option<Interval>,
    finest: Option<Interval>,
    threads: FxHashSet<ThreadId>,
    addresses: bool,
    causes: bool,
    odd_sizes: bool,
    /// Allocated before anything was told.
    before: bool,
    told: bool,
    marks: u64,
    rss: bool,
    lost: u64,
    ended: String,
    damage: Vec<Damage>,
}

impl Survey {
    fn see(&mut self, event: &SourceEvent) {
        match event {
            SourceEvent::Names(names) => {
                self.book.rename(names.iter().cloned());
            }
            SourceEvent::Connection(State::Ended(how)) => self.ended.clone_from(how),
            SourceEvent::Message(message) => self.hear(message),
            SourceEvent::Damage(damage) => self.damage.push(damage.clone()),
            SourceEvent::Connection(_) | SourceEvent::UnknownMessage { .. } => {}
        }
    }

    fn hear(&mut self, message: &FromAgent) {
        match message {
            FromAgent::Hello(hello) => {
                self.hello.get_or_insert_with(|| hello.clone());
            }
            FromAgent::Module(module) => self.book.define_module(module.clone()),
            FromAgent::Stack(stack) => {
                self.book.define_stack(stack);
            }
            FromAgent::Events(batch) => {
                for event in batch.iter() {
                    self.told = true;
                    match event {
                        Event::Alloc(e) => self.block(&LiveBlock::from(&e)),
                        Event::Dealloc(e) => {
                            self.threads.insert(e.thread);
                        }
                        Event::Promote(_) => {}
                    }
                }
            }
            FromAgent::SnapshotBlocks(some) => some.blocks.iter().for_each(|b| self.block(b)),
            FromAgent::Status(status) => {
                let allocated = status.totals.allocated.n;
                self.before |= !self.told && allocated > status.live_blocks;
                self.rss |= status.rss_bytes.is_some();
                self.lost = self.lost.max(status.losses.births + status.losses.unsent);
            }
            FromAgent::Mark(_) => self.marks += 1,
            _ => {}
        }
    }

    fn block(&mut self, block: &LiveBlock) {
        let r = block.interval;
        self.coarsest = Some(self.coarsest.map_or(r, |coarsest| coarsest.max(r)));
        self.finest = Some(self.finest.map_or(r, |finest| finest.min(r)));
        self.threads.insert(block.thread);
        self.addresses |= block.address != 0;
        self.causes |= block.cause != Cause::Malloc;
        self.odd_sizes |= !block.size.is_multiple_of(WORD);
    }

    fn lost(&self, coarsest: Interval, thinned: u64, cut: u64) -> Vec<String> {
        let mut lost = Vec::new();
        let mut say = |is: bool, what: &str| {
            if is {
                lost.push(what.to_owned());
            }
        };
        say(self.addresses, "addresses");
        say(self.threads.len() > 1, "threads, and who frees");
        say(self.causes, "how a block came to be: a realloc is a death and a birth");
        say(self.odd_sizes, "exact sizes: they are rounded up to 8 bytes");
        if self.finest.is_some_and(|finest| finest < coarsest) {
            let all = format::interval(coarsest.bytes());
            let what = format!("changes of the interval: all is thinned to {all}");
            say(true, &what);
        }
        say(thinned > 0, &format!("{thinned} blocks that were left without a sample"));
        say(self.before, "blocks that were dead before the recording began");
        say(self.marks > 0, "marks");
        say(self.rss, "resident memory");
        say(true, "the allocation clock");
        say(self.lost > 0, &format!("{} events that were lost while it was recorded", self.lost));
        say(cut > 0, &format!("the innermost frames of {cut} callstacks: they are too deep"));
        lost
    }
}

/// What writes.
struct Pen<W> {
    writer: Writer<W>,
    book: Book,
    start_us: i64,
    interval: Interval,
    /// Words of an object that a trace does not count in its length.
    header: u64,
    stacks: FxHashMap<StackId, Box<[u64]>>,
    codes: FxHashMap<u64, Box<[Location]>>,
    texts: FxHashMap<String, Text>,
    ids: FxHashMap<BlockId, i64>,
    thinned: u64,
}

impl<W: Write> Pen<W> {
    fn new(out: W, hello: &Hello, interval: Interval, book: Book) -> io::Result<Self> {
        let ocaml = hello.kind == AgentKind::Ocaml;
        let start_us = i64::try_from(hello.started_unix_ns / 1000).unwrap_or(0);
        let info = Info {
            start_us,
            sample_rate: word_rate(interval),
            word_size: 64,
            executable: hello.name.clone().into_bytes(),
            host: Vec::new(),
            parameters: format!("s={}", words(hello.nursery_bytes)).into_bytes(),
            pid: hello.pid.into(),
            context: if ocaml { Vec::new() } else { NATIVE.into() },
            version: 2,
        };
        Ok(Self {
            writer: Writer::new(out, &info)?,
            book,
            start_us,
            interval,
            header: u64::from(ocaml),
            stacks: FxHashMap::default(),
            codes: FxHashMap::default(),
            texts: FxHashMap::default(),
            ids: FxHashMap::default(),
            thinned: 0,
        })
    }

    fn write(&mut self, time_ns: u64, record: Record) -> io::Result<()> {
        let micros = i64::try_from(time_ns / 1000).unwrap_or(i64::MAX);
        let moment_us = self.start_us.saturating_add(micros);
        match record {
            Record::Birth(block) => self.birth(moment_us, &block),
            Record::Promote(id) => match self.ids.get(&id) {
                Some(&id) => self.writer.promote(moment_us, id),
                None => Ok(()),
            },
            Record::Death(id) => match self.ids.remove(&id) {
                Some(id) => self.writer.collect(moment_us, id),
                None => Ok(()),
            },
        }
    }

    fn birth(&mut self, time_us: i64, block: &LiveBlock) -> io::Result<()> {
        let mut coins = Coins::of(block.id.0);
        let kept = coins.thin(block.n_samples, block.interval, self.interval);
        if kept == 0 || block.size == 0 {
            self.thinned += 1;
            return Ok(());
        }
        self.know(block.stack);
        let Some(stack) = self.stacks.get(&block.stack) else { return Ok(()) };
        let birth = Birth {
            time_us,
            length: words(block.size) - self.header.min(words(block.size)),
            n_samples: coins.words_hit(kept, block.size),
            source: if block.born_young { Source::Minor } else { Source::Major },
            common: None,
            stack,
        };
        let codes = &self.codes;
        let id = self.writer.alloc(&birth, |code| codes.get(&code).map_or(&[][..], |l| l))?;
        self.ids.insert(block.id, id);
        Ok(())
    }

    /// The codes of a callstack: its nodes, a location each.
    fn know(&mut self, id: StackId) {
        if self.stacks.contains_key(&id) {
            return;
        }
        let place = self.book.stack(id) as usize;
        let Some(stack) = self.book.stacks().get(place) else { return };
        let codes: Box<[u64]> = stack.path.iter().map(|node| u64::from(*node) + 1).collect();
        for &code in &codes {
            let Some(node) = self.book.nodes().get(code as usize - 1) else { continue };
            let place = node.label.location.rsplit_once(':');
            let place = place.and_then(|(file, line)| Some((file, line.parse().ok()?)));
            let (file, line) = place.unwrap_or((&*node.label.location, 0));
            let texts = &mut self.texts;
            let mut text = |text: &str| {
                texts.entry(text.to_owned()).or_insert_with(|| text.as_bytes().into()).clone()
            };
            let (file, function) = (text(file), text(&node.label.function));
            let location = Location { file, function, line, start: 0, end: 0 };
            self.codes.entry(code).or_insert_with(|| Box::new([location]));
        }
        self.stacks.insert(id, codes);
    }
}
