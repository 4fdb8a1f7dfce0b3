//! Domains, callstacks and their names, each told before it is used.

use crate::ctf::info::Info;
use crate::ctf::location::{Location, Locations};
use crate::ctf::stacks::{Stack, Stacks};
use crate::session::book::MOST_STACKS;
use crate::session::names::{Named, Symbol};
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::ids::{ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{FromAgent, Thread};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The program: the one module of a trace.
const PROGRAM: ModuleId = ModuleId(1);

/// What was told, and what is to be told before the next events.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_stack: FxHashMap<Stack, StackId>,
    codes: FxHashSet<u64>,
    /// Codes that were used and are not defined.
    nameless: Vec<u64>,
    /// How many codes were defined when those were last looked for.
    defined: usize,
    texts: FxHashMap<Arc<[u8]>, Arc<str>>,
    threads: FxHashSet<u16>,
    definitions: Vec<FromAgent>,
    named: Vec<Named>,
    /// Births of callstacks that found no room.
    pub unplaced: u64,
}

/// The program as a module.
pub(super) fn program(info: &Info) -> Module {
    Module {
        id: PROGRAM,
        path: String::from_utf8_lossy(&info.executable).into_owned(),
        build_id: Vec::new(),
        load_bias: 0,
        range: (0, u64::MAX),
    }
}

impl Names {
    /// A domain, as a thread.
    pub fn thread(&mut self, domain: u16) -> ThreadId {
        let id = ThreadId(domain.into());
        if self.threads.insert(domain) {
            // It is no thread of the system's: none is known.
            let name = format!("domain {domain}");
            self.definitions.push(Thread { id, tid: 0, name }.into());
        }
        id
    }

    /// A callstack.
    pub fn stack(&mut self, stack: Stack, stacks: &Stacks, locations: &Locations) -> StackId {
        if let Some(&id) = self.by_stack.get(&stack) {
            return id;
        }
        if stack == Stack::OTHER || self.by_stack.len() + 1 >= MOST_STACKS {
            self.unplaced += 1;
            return StackId::OTHER;
        }
        let id = StackId(self.by_stack.len() as u32 + 1);
        self.by_stack.insert(stack, id);
        let mut frames = Vec::new();
        stacks.frames(stack, &mut frames);
        for &code in &frames {
            if self.codes.insert(code) {
                match locations.get(code) {
                    Some(places) => self.name(code, places),
                    None => self.nameless.push(code),
                }
            }
        }
        let frames = frames.iter().map(|&code| Frame { module: PROGRAM, offset: code }).collect();
        let end = if stack.is_cut() { End::Truncated } else { End::Complete };
        self.definitions.push(Callstack { id, frames, end }.into());
        id
    }

    /// Codes that have been defined after their first use.
    pub fn name_late(&mut self, locations: &Locations) {
        if std::mem::replace(&mut self.defined, locations.len()) == locations.len() {
            return;
        }
        for code in std::mem::take(&mut self.nameless) {
            match locations.get(code) {
                Some(places) => self.name(code, places),
                None => self.nameless.push(code),
            }
        }
    }

    fn name(&mut self, code: u64, places: &[Location]) {
        if places.is_empty() {
            return;
        }
        let mut text = |text: &Arc<[u8]>| {
            let known = self.texts.get(text).cloned();
            known.unwrap_or_else(|| {
                let shown: Arc<str> = String::from_utf8_lossy(text).into();
                self.texts.insert(text.clone(), shown.clone());
                shown
            })
        };
        let symbols = places.iter().map(|place| Symbol {
            function: text(&place.function),
            file: Some(text(&place.file)).filter(|file| !file.is_empty()),
            line: Some(place.line),
        });
        let symbols = symbols.collect();
        self.named.push(Named { frame: Frame { module: PROGRAM, offset: code }, symbols });
    }

    /// What is to be told before events that use it.
    pub fn take(&mut self) -> (Vec<FromAgent>, Vec<Named>) {
        (std::mem::take(&mut self.definitions), std::mem::take(&mut self.named))
    }
}
