//! Names of a recording: those in it, and those that are looked for when it is opened.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use heaptop_protocol::callstack::{Callstack, Frame, Module};
use heaptop_protocol::ids::ModuleId;
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::FrameNames;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::session::names::{Named, Symbol};
use crate::session::sane;
use crate::symbols::Symbolizer;

/// How long the last names are waited for once all else is read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Frames whose names are looked for at most.
const MOST_FRAMES: usize = 1 << 20;
/// A process that there is not: the target's number may be another's by now.
const NOBODY: u32 = u32::MAX;

/// Names as they stand in a file, which is a stranger's.
pub(super) fn named(names: FrameNames) -> Named {
    let clean = |text: String| sane::text(&text).into();
    let symbols = names.symbols.into_iter().map(|s| Symbol {
        function: clean(s.function),
        file: s.file.map(clean),
        line: s.line,
    });
    Named { frame: names.frame, symbols: symbols.collect() }
}

/// Looks for names in the binaries that are still there.
pub(crate) struct Finder {
    symbols: Symbolizer,
    answers: Receiver<Vec<Named>>,
    modules: FxHashMap<ModuleId, Module>,
    asked: FxHashSet<Frame>,
    awaited: usize,
    /// When all else had been read.
    since: Option<Instant>,
}

impl Finder {
    pub(crate) fn new() -> Self {
        let (answer, answers) = channel();
        // Nobody takes them once the file is closed.
        let symbols = Symbolizer::start(move |named| drop(answer.send(named)));
        Self {
            symbols,
            answers,
            modules: FxHashMap::default(),
            asked: FxHashSet::default(),
            awaited: 0,
            since: None,
        }
    }

    /// Takes note of what a message defines, and asks for what it needs.
    pub(crate) fn see(&mut self, message: &FromAgent) {
        match message {
            // Modules get new numbers.
            FromAgent::Hello(_) => {
                self.modules.clear();
                self.asked.clear();
            }
            FromAgent::Module(module) => {
                self.modules.insert(module.id, module.clone());
            }
            FromAgent::Stack(stack) => self.stack(stack),
            _ => {}
        }
    }

    fn stack(&mut self, stack: &Callstack) {
        let room = MOST_FRAMES.saturating_sub(self.asked.len());
        // Only a build id says that a file is still the same.
        let known = |f: &Frame| self.modules.get(&f.module).is_some_and(|m| !m.build_id.is_empty());
        let new = stack.frames.iter().copied().filter(known);
        let frames: Vec<Frame> = new.filter(|f| self.asked.insert(*f)).take(room).collect();
        if !frames.is_empty() {
            self.awaited += self.symbols.want_of(NOBODY, &self.modules, frames);
        }
    }

    /// Names that were found by now.
    pub(crate) fn found(&mut self) -> Option<Vec<Named>> {
        let named = self.answers.try_recv().ok()?;
        self.awaited = self.awaited.saturating_sub(named.len());
        Some(named)
    }

    /// The next names, waited for; `None` when there are no more, or they take too long.
    pub(crate) fn wait(&mut self) -> Option<Vec<Named>> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = PATIENCE.checked_sub(since.elapsed()).filter(|_| self.awaited > 0)?;
        let named = self.answers.recv_timeout(left).ok()?;
        self.awaited = self.awaited.saturating_sub(named.len());
        Some(named)
    }
}
