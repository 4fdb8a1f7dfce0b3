//! What comes from a target goes into a file as it comes; the names of its frames are
//! looked for meanwhile.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use heaptop_protocol::callstack::{Callstack, Frame, Module};
use heaptop_protocol::event::Event;
use heaptop_protocol::frame;
use heaptop_protocol::ids::ModuleId;
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::{
    By, ConnectionLost, Ended, FrameNames, InRecording, Names, NewConnection, Recorded, SymbolName,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::file::{Output, RecordError};
use super::thin::Thin;
use super::{How, Progress};
use crate::session::names::Named;
use crate::source::{SourceEvent, State};
use crate::symbols::Symbolizer;

/// Frames whose names are looked for; those beyond stay without.
const MOST_FRAMES: usize = 1 << 20;

/// What a recording says of itself.
pub(super) fn recorded(by: By, pid: u32, part: u32, sealed: bool) -> Recorded {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Recorded {
        by,
        version: env!("CARGO_PKG_VERSION").into(),
        pid,
        started_unix_ns: now.map_or(0, |now| now.as_nanos() as u64),
        part,
        sealed,
    }
}

/// Names as a recording holds them.
pub(super) fn names(named: Vec<Named>) -> Names {
    let symbol = |s: crate::session::names::Symbol| SymbolName {
        function: s.function.to_string(),
        file: s.file.map(|file| file.to_string()),
        line: s.line,
    };
    let frames = named.into_iter().map(|n| FrameNames {
        frame: n.frame,
        symbols: n.symbols.into_iter().map(symbol).collect(),
    });
    Names { names: frames.collect() }
}

/// The frames that a stream defines, and what of their names is still awaited.
#[derive(Default)]
pub(super) struct Wanted {
    modules: FxHashMap<ModuleId, Module>,
    asked: FxHashSet<Frame>,
    awaited: usize,
}

impl Wanted {
    /// A module, as last told.
    pub(super) fn module(&mut self, module: &Module) {
        self.modules.insert(module.id, module.clone());
    }

    /// Asks for the names of the frames that are new.
    pub(super) fn stack(&mut self, stack: &Callstack, pid: u32, symbols: &Symbolizer) {
        let room = MOST_FRAMES.saturating_sub(self.asked.len());
        let new = stack.frames.iter().copied().filter(|frame| self.asked.insert(*frame));
        let frames: Vec<Frame> = new.take(room).collect();
        if !frames.is_empty() {
            self.awaited += symbols.want_of(pid, &self.modules, frames);
        }
    }

    /// So many answers came.
    pub(super) fn answered(&mut self, names: usize) {
        self.awaited = self.awaited.saturating_sub(names);
    }

    /// Frames whose names are awaited.
    pub(super) const fn awaited(&self) -> usize {
        self.awaited
    }
}

/// Records, until something fails.
fn put(output: &mut Output, message: &FromAgent, written: &mut Result<(), RecordError>) {
    if written.is_ok() {
        *written = output.put(|out| message.write(out));
    }
}

/// The recorder of one file.
pub(super) struct Tee {
    output: Output,
    pid: u32,
    wanted: Wanted,
    thin: Thin,
    /// The target's end, once it is known.
    ended: Option<String>,
    connected: bool,
}

impl Tee {
    pub(super) fn new(mut output: Output, pid: u32, part: u32) -> Result<Self, RecordError> {
        let about = InRecording::from(recorded(By::Recorder, pid, part, true));
        output.put(|out| about.write(out))?;
        let (wanted, thin) = (Wanted::default(), Thin::default());
        Ok(Self { output, pid, wanted, thin, ended: None, connected: true })
    }

    /// When [`Self::flush`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.output.due()
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self, progress: &Progress) -> Result<(), RecordError> {
        self.output.flush()?;
        progress.bytes.store(self.output.bytes(), Relaxed);
        Ok(())
    }

    /// The target's end, once it is known.
    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// Whether names are still to come.
    pub(super) const fn awaits_names(&self) -> bool {
        self.wanted.awaited() > 0
    }

    /// Takes in what came.
    pub(super) fn take(
        &mut self,
        event: SourceEvent,
        symbols: &Symbolizer,
        progress: &Progress,
    ) -> Result<(), RecordError> {
        match event {
            SourceEvent::Message(message) => {
                self.look(&message, symbols, progress);
                let (output, mut written) = (&mut self.output, Ok(()));
                self.thin.pass(message, |message| put(output, &message, &mut written));
                written?;
            }
            SourceEvent::UnknownMessage { kind, payload } => {
                self.output
                    .put(|out| frame::write(out, kind, |out| out.extend_from_slice(&payload)))?;
            }
            SourceEvent::Names(named) => {
                self.wanted.answered(named.len());
                let said = InRecording::from(names(named));
                self.output.put(|out| said.write(out))?;
            }
            // A target is no file that could be damaged.
            SourceEvent::Connection(State::Connecting) | SourceEvent::Damage(_) => {}
            SourceEvent::Connection(State::Connected) => {
                if !std::mem::replace(&mut self.connected, true) {
                    let back = InRecording::from(NewConnection {});
                    self.output.put(|out| back.write(out))?;
                }
            }
            SourceEvent::Connection(State::Lost(why)) => {
                self.connected = false;
                let lost = InRecording::from(ConnectionLost { why });
                self.output.put(|out| lost.write(out))?;
            }
            SourceEvent::Connection(State::Ended(how)) => self.ended = Some(how),
        }
        progress.bytes.store(self.output.bytes(), Relaxed);
        Ok(())
    }

    fn look(&mut self, message: &FromAgent, symbols: &Symbolizer, progress: &Progress) {
        match message {
            FromAgent::Hello(_) => {
                // The numbers of modules may mean others from here on.
                let awaited = self.wanted.awaited;
                self.wanted = Wanted { awaited, ..Wanted::default() };
            }
            FromAgent::Module(module) => self.wanted.module(module),
            FromAgent::Stack(stack) => self.wanted.stack(stack, self.pid, symbols),
            FromAgent::Events(batch) => {
                progress.events.fetch_add(batch.len() as u64, Relaxed);
                let births = batch.iter().filter(|e| matches!(e, Event::Alloc(_))).count();
                progress.samples.fetch_add(births as u64, Relaxed);
            }
            FromAgent::Dropped(dropped) => {
                progress.lost.fetch_add(dropped.events, Relaxed);
            }
            FromAgent::SnapshotEnd(_) => progress.synced.store(true, Relaxed),
            _ => {}
        }
    }

    /// Writes how it ended, and ends.
    pub(super) fn finish(mut self, progress: &Progress) -> Result<(PathBuf, How), RecordError> {
        let how = match self.ended.take() {
            Some(how) => How::Target(how),
            None => How::Stopped,
        };
        let (output, mut written) = (&mut self.output, Ok(()));
        self.thin.all(|message| put(output, &message, &mut written));
        written?;
        let ended = InRecording::from(Ended {
            how: how.to_string(),
            target_lives: matches!(how, How::Stopped),
        });
        self.output.put(|out| ended.write(out))?;
        self.flush(progress)?;
        Ok((self.output.path().to_owned(), how))
    }
}
