//! The worker's loop: takes frames, finds modules, answers in batches.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptop_protocol::callstack::{Frame, Module};
use heaptop_protocol::ids::ModuleId;
use rustc_hash::FxHashMap;

use super::cache::Cache;
use super::files::FileId;
use super::lookup::Lookup;
use super::perf_map::PerfMap;
use super::{Queue, Task};
use crate::session::names::{Named, Symbol};

/// Frames in an answer at most.
pub(super) const BATCH: usize = 256;
/// How long a name waits for others to come along.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Frames taken from the queue at once: few, so that a newer request is served
/// soon.
const TAKE: usize = 16;

/// A module of a target: what was told, and what its files are.
struct Known {
    told: Arc<Module>,
    file: Option<Arc<FileId>>,
}

/// The state of the worker's thread.
#[derive(Default)]
pub(super) struct Worker {
    cache: Cache,
    modules: FxHashMap<(u32, ModuleId), Known>,
    /// Opened files, each once however many targets have it.
    lookups: FxHashMap<Arc<FileId>, Lookup>,
    perf_maps: FxHashMap<u32, PerfMap>,
}

impl Worker {
    pub(super) fn run(mut self, queue: &Queue, answer: &impl Fn(Vec<Named>)) {
        let mut named = Vec::new();
        let mut since = Instant::now();
        while let Some(frames) = queue.take(TAKE, named.is_empty()) {
            let idle = frames.is_empty();
            if named.is_empty() {
                since = Instant::now();
            }
            // New code may have come since: one look for all these frames.
            let outside = frames.iter().find(|task| task.frame.module == ModuleId::UNKNOWN);
            if let Some(task) = outside {
                self.perf_maps.entry(task.pid).or_default().refresh(task.pid);
            }
            for Task { pid, frame, module } in frames {
                let symbols = self.name(pid, frame, module.as_ref());
                named.push(Named { frame, symbols });
                if since.elapsed() >= PATIENCE {
                    answer(std::mem::take(&mut named));
                    since = Instant::now();
                }
            }
            if !named.is_empty() && (idle || named.len() + TAKE > BATCH) {
                answer(std::mem::take(&mut named));
            }
        }
    }

    fn name(&mut self, pid: u32, frame: Frame, module: Option<&Arc<Module>>) -> Vec<Symbol> {
        if frame.module == ModuleId::UNKNOWN {
            let address = frame.offset.saturating_sub(1);
            let name = self.perf_maps.get(&pid).and_then(|map| map.find(address));
            return name
                .map(|name| Symbol { function: self.cache.intern(&name), file: None, line: None })
                .into_iter()
                .collect();
        }
        let Some(module) = module else { return Vec::new() };
        let Some(lookup) = self.lookup(pid, module) else { return Vec::new() };
        // A lookup is found by the id it has itself: it is there.
        let Some(lookup) = self.lookups.get_mut(&lookup) else { return Vec::new() };
        lookup.find(frame.offset, &mut self.cache).to_vec()
    }

    /// The identity of the module's file, which is then among `lookups`.
    fn lookup(&mut self, pid: u32, module: &Arc<Module>) -> Option<Arc<FileId>> {
        let known = self.modules.entry((pid, module.id));
        if let Entry::Occupied(known) = &known
            && known.get().told == *module
        {
            return known.get().file.clone();
        }
        let opened = Lookup::open(pid, module);
        let file = opened.as_ref().map(|lookup| Arc::clone(lookup.id()));
        if let Some(lookup) = opened {
            self.lookups.entry(Arc::clone(lookup.id())).or_insert(lookup);
        }
        let told = Arc::clone(module);
        known.insert_entry(Known { told, file: file.clone() });
        file
    }
}
