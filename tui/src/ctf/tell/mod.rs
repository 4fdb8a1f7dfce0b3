//! A trace told as an agent would tell it: what a session hears.
//!
//! ```text
//! reader ─► stacks ─► merge ─► books ─┬─► events, as they happen
//!                                     └─► totals, status, the curve: four times a second
//! ```
//!
//! **Weights.** A trace samples words, headers included, with probability λ; a session
//! knows bytes and R. An object of w words has (w + 1) times the word's bytes here (an
//! external one has no header), and R is such that a word is met as often:
//! (1 − 1/R)^bytes = 1 − λ.
//!
//! **The allocation clock** is estimated: each sample stands for 1/λ words.
//!
//! **Young** is what was born in the minor heap. It is promoted when the runtime says
//! so, and has died young if it never does: OCaml's own nursery, not a virtual one.
//!
//! **Time** is the trace's; four times a second of it, and at the end, all that changed
//! is told. A program that sleeps for an hour costs nothing.

mod books;
pub(super) mod greeting;
mod names;

use super::error::CtfError;
use super::event::Source;
use super::merge::{Happens, Merge, Told};
use super::reader::Reader;
use super::stacks::Stacks;
use crate::session::names::Named;
use crate::session::{Damage, Missing};
use crate::source::tell::{Progress, Tell};
use crate::source::{SourceEvent, State};
use books::{Books, Born};
use greeting::{DEPTH, Measures};
use heaptop_protocol::event::{Batch, Event, Moment};
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::message::{
    FromAgent, History, HistoryPoint, Losses, Peak, Sampling, SnapshotBegin, SnapshotEnd, Status,
    TotalsUpdate,
};
use names::Names;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Read;

/// Most trace time between two reports.
const STEP_NS: u64 = 250_000_000;
/// And most events: a trace may be over in less.
const STEP_EVENTS: u64 = 2000;
/// Elements of one message.
const CHUNK: usize = 1000;

/// How far the file is.
enum Reading {
    On,
    Over,
    Broken(CtfError),
}

/// A trace that is told.
pub struct Teller {
    reader: Reader<Box<dyn Read + Send>>,
    len: u64,
    stacks: Stacks,
    merge: Merge,
    measures: Measures,
    books: Books,
    names: Names,
    nursery_bytes: u64,
    start_us: i64,
    now: Moment,
    /// Bytes allocated, as far as is known.
    clock: f64,
    next_report_ns: u64,
    events: Vec<Event>,
    told: u64,
    out: VecDeque<SourceEvent>,
    reading: Reading,
    ended: bool,
}

/// A trace of `len` bytes (0 where that is not known) as a target would have told it.
pub fn tell(input: impl Read + Send + 'static, len: u64) -> Result<Teller, CtfError> {
    let reader = Reader::new(Box::new(input) as Box<dyn Read + Send>)?;
    let info = reader.info();
    let measures = Measures::new(info);
    let hello = greeting::hello(info, &measures);
    let mut teller = Teller {
        merge: Merge::new(info),
        start_us: info.start_us,
        nursery_bytes: hello.nursery_bytes,
        books: Books::new(measures.interval),
        reader,
        len,
        stacks: Stacks::with_depth(DEPTH),
        measures,
        names: Names::default(),
        now: Moment { seq: 0, time_ns: 0, clock: 0 },
        clock: 0.0,
        next_report_ns: STEP_NS,
        events: Vec::new(),
        told: 0,
        out: VecDeque::new(),
        reading: Reading::On,
        ended: false,
    };
    teller.begin(hello);
    Ok(teller)
}

impl Iterator for Teller {
    type Item = SourceEvent;

    fn next(&mut self) -> Option<SourceEvent> {
        while self.out.is_empty() && !self.ended {
            self.go_on();
        }
        self.out.pop_front()
    }
}

impl Tell for Teller {
    fn progress(&self) -> Progress {
        Progress { read: self.reader.bytes_read(), of: self.len }
    }
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Teller").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Teller {
    fn say(&mut self, message: impl Into<FromAgent>) {
        self.out.push_back(SourceEvent::Message(message.into()));
    }

    /// A greeting, and that nothing lives yet.
    fn begin(&mut self, hello: heaptop_protocol::message::Hello) {
        self.say(hello);
        self.say(names::program(self.reader.info()));
        let at = self.now;
        self.say(SnapshotBegin { at });
        self.say(SnapshotEnd { at, blocks: 0 });
        self.report();
    }

    /// Reads or takes one event on, or ends.
    fn go_on(&mut self) {
        if let Some(told) = self.merge.take(!matches!(self.reading, Reading::On)) {
            self.happen(told);
            return;
        }
        match std::mem::replace(&mut self.reading, Reading::On) {
            Reading::On => match self.reader.next_event() {
                Ok(Some(event)) => self.merge.put(Told::new(&event, &mut self.stacks)),
                Ok(None) => self.reading = Reading::Over,
                Err(error) => self.reading = Reading::Broken(error),
            },
            Reading::Over => self.end(None),
            Reading::Broken(error) => self.end(Some(&error)),
        }
    }

    fn happen(&mut self, told: Told) {
        let since_us = told.time_us.saturating_sub(self.start_us).max(0).cast_unsigned();
        let time_ns = since_us.saturating_mul(1000);
        if time_ns > self.next_report_ns {
            // As of its own time: nothing has happened since the last event.
            self.now.time_ns = self.next_report_ns;
            self.report();
            self.next_report_ns = time_ns - time_ns % STEP_NS;
            self.next_report_ns = self.next_report_ns.saturating_add(STEP_NS);
        }
        self.now = Moment { seq: self.now.seq + 1, time_ns, clock: self.clock as u64 };
        let thread = self.names.thread(told.domain);
        let event = match told.what {
            Happens::Promote(id) => self.books.promote(self.now, id),
            Happens::Collect(id) => self.books.collect(self.now, id, thread),
            Happens::Alloc { .. } => self.birth(told.what, thread),
        };
        self.told += 1;
        self.events.extend(event);
        if self.told.is_multiple_of(STEP_EVENTS) {
            self.report();
        }
    }

    fn birth(&mut self, what: Happens, thread: ThreadId) -> Option<Event> {
        let Happens::Alloc { id, length, n_samples, source, stack } = what else { return None };
        self.clock += n_samples as f64 * self.measures.bytes_per_sample;
        let stack = self.names.stack(stack, &self.stacks, self.reader.locations());
        let header = if source == Source::External { 0 } else { self.measures.header };
        let words = length.saturating_add(header);
        let size = words.saturating_mul(self.measures.word_bytes);
        let young = source == Source::Minor;
        self.books.alloc(self.now, &Born { id, thread, stack, size, n_samples, young })
    }

    /// What events use, and the events.
    fn send_events(&mut self) {
        self.names.name_late(self.reader.locations());
        let (definitions, named): (Vec<FromAgent>, Vec<Named>) = self.names.take();
        self.out.extend(definitions.into_iter().map(SourceEvent::Message));
        if !named.is_empty() {
            self.out.push_back(SourceEvent::Names(named));
        }
        for events in self.events.chunks(Batch::MOST) {
            self.out.push_back(SourceEvent::Message(Batch::pack(events).into()));
        }
        self.events.clear();
    }

    /// All that changed since the last report.
    fn report(&mut self) {
        self.send_events();
        let at = Moment { clock: self.clock as u64, ..self.now };
        for stacks in self.books.take_changed().chunks(CHUNK) {
            self.say(TotalsUpdate { at, stacks: stacks.to_vec() });
        }
        let totals = self.books.totals;
        let interval = self.measures.interval;
        self.say(Status {
            at,
            cycle: at.clock / self.nursery_bytes.max(1),
            sampling: Sampling::On,
            interval,
            coarsest: interval,
            governed: false,
            gap: false,
            samples: self.books.samples,
            totals,
            live_blocks: self.books.living(),
            rss_bytes: None,
            agent_bytes: 0,
            agent_cpu_ns: 0,
            process_cpu_ns: 0,
            losses: Losses { stacks: self.names.unplaced, ..Losses::default() },
        });
        let point = HistoryPoint {
            time_ns: at.time_ns,
            in_use_bytes: totals.in_use.bytes.sum,
            allocated_bytes: totals.allocated.bytes.sum,
            promoted_bytes: totals.promoted.bytes.sum,
            rss_bytes: None,
        };
        self.say(History { whole: false, points: vec![point] });
    }

    fn end(&mut self, error: Option<&CtfError>) {
        let (time_ns, in_use, table) = self.books.peak();
        self.report();
        let mut parts = table.chunks(CHUNK).peekable();
        while let Some(part) = parts.next() {
            let more = parts.peek().is_some();
            self.say(Peak { time_ns, in_use, stacks: part.to_vec(), more });
        }
        if let Some(error) = error {
            let (how, missing) = (error.to_string(), Missing::End);
            self.out.push_back(SourceEvent::Damage(Damage { how, missing }));
        }
        let sentence = self.last_words(error);
        self.out.push_back(SourceEvent::Connection(State::Ended(sentence)));
        self.ended = true;
    }

    fn last_words(&self, error: Option<&CtfError>) -> String {
        let mut sentence = match error {
            None => "the trace is over".to_owned(),
            Some(error) if self.told == 0 => format!("nothing of the trace is sound: {error}"),
            Some(error) => format!("the trace is sound up to here: {error}"),
        };
        let left_out = [
            (self.reader.skipped(), "packets of other processes are left out"),
            (self.books.strange, "events are of objects that are not known"),
            (self.merge.late(), "events came out of order"),
        ];
        for (n, what) in left_out.into_iter().filter(|(n, _)| *n > 0) {
            let _ = write!(sentence, "; {n} {what}");
        }
        sentence
    }
}
