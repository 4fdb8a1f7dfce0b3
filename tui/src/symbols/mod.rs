//! Names for frames: found in this process, never in the target, and in the
//! background, so that nothing waits for debug information.
//!
//! ```text
//! want(frames) ─► queue ─► worker ─► files ─► lookup ─► demangle ─► answer(named)
//!                            │         └ which file is it? (build id)
//!                            ├ cache: by (build id, offset), over all targets
//!                            └ perf_map: code outside every file (JIT)
//! ```
//!
//! 1. **One worker owns everything.** The library behind [`lookup`] cannot be
//!    sent between threads: it is made on the worker and stays there. The only
//!    thing shared is the queue.
//! 2. **Order.** The newest request first: it is what the user looks at. Within
//!    a request the order given is kept. A frame waits in the queue once.
//! 3. **Answers** go out when [`worker::BATCH`] frames are named or
//!    [`worker::PATIENCE`] has passed, so that first names do not wait for last.
//! 4. **Unknown is an answer**: a frame without a name comes back with no
//!    symbols, exactly once for each request, and is not tried again until it is
//!    asked for again.
//! 5. **Files are hostile.** They may be replaced, cut short, or made to break a
//!    parser. The worker reads the very file whose build id it has checked (it
//!    holds it open), and catches panics, file by file.
//!
//! Deliberately absent: reading the target's memory, and debuginfod.

mod cache;
mod demangle;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lookup;
mod perf_map;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use perf_map::inner_pid;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use heaptop_protocol::callstack::{Frame, Module};
use heaptop_protocol::ids::ModuleId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::session::names::Named;

/// A frame of one target.
type Key = (u32, Frame);

/// A frame to be named, with the module it lies in, if that was told.
struct Task {
    pid: u32,
    frame: Frame,
    module: Option<Arc<Module>>,
}

/// What waits for the worker.
#[derive(Default)]
struct Waiting {
    /// Requests, oldest first: each with its frames in order.
    requests: Vec<(u32, VecDeque<Frame>)>,
    /// The frames in `requests`.
    queued: FxHashSet<Key>,
    /// Modules as last told, by target.
    modules: FxHashMap<(u32, ModuleId), Arc<Module>>,
    /// The handle is gone: the worker ends.
    closed: bool,
}

/// The queue between handle and worker.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

impl Queue {
    /// No code that holds the lock can leave `Waiting` half changed, so a lock
    /// poisoned by a panic is as good as any.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next frames to name: at most `most`, of one target, from the newest
    /// request, with the modules they lie in. Waits when there are none and
    /// `wait` is set; an empty answer means that nothing waits, `None` the end.
    fn take(&self, most: usize, wait: bool) -> Option<Vec<Task>> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return None;
            }
            if let Some((pid, frames)) = waiting.requests.last_mut() {
                let pid = *pid;
                let taken: Vec<Frame> = frames.drain(..most.min(frames.len())).collect();
                if frames.is_empty() {
                    waiting.requests.pop();
                }
                return Some(
                    taken
                        .into_iter()
                        .map(|frame| {
                            waiting.queued.remove(&(pid, frame));
                            Task {
                                pid,
                                frame,
                                module: waiting.modules.get(&(pid, frame.module)).cloned(),
                            }
                        })
                        .collect(),
                );
            }
            if !wait {
                return Some(Vec::new());
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Names frames in the background. Dropping it ends its worker after the
/// look-up at hand.
pub struct Symbolizer {
    queue: Arc<Queue>,
}

impl Symbolizer {
    /// Starts the worker. `answer` is called on it with names in batches; it may
    /// block, which delays names and nothing else.
    #[must_use]
    pub fn start(answer: impl Fn(Vec<Named>) + Send + 'static) -> Self {
        let queue = Arc::new(Queue::default());
        let shared = Arc::clone(&queue);
        // Without a thread there are no names: everything else goes on.
        let _ = std::thread::Builder::new()
            .name("heaptop-symbols".into())
            .spawn(move || worker::Worker::default().run(&shared, &answer));
        Self { queue }
    }

    /// Asks for the names of `frames` of the process with the peer's `pid`.
    /// `modules` defines those modules of the frames that were not told before,
    /// or that changed. Never blocks, and may be called as often as one likes:
    /// frames that wait already are not queued again, and frames that were named
    /// are answered from memory.
    pub fn want(&self, pid: u32, modules: &[Module], frames: Vec<Frame>) {
        let mut waiting = self.queue.lock();
        for module in modules {
            let known = waiting.modules.get(&(pid, module.id));
            if known.is_none_or(|known| **known != *module) {
                waiting.modules.insert((pid, module.id), Arc::new(module.clone()));
            }
        }
        let fresh: VecDeque<Frame> =
            frames.into_iter().filter(|frame| waiting.queued.insert((pid, *frame))).collect();
        if !fresh.is_empty() {
            waiting.requests.push((pid, fresh));
            self.queue.more.notify_one();
        }
    }

    /// The same of frames in modules that are known by their numbers; how many names that are.
    #[must_use]
    pub fn want_of(
        &self,
        pid: u32,
        known: &FxHashMap<ModuleId, Module>,
        frames: Vec<Frame>,
    ) -> usize {
        let count = frames.len();
        let concerned: FxHashSet<_> = frames.iter().map(|frame| frame.module).collect();
        let modules: Vec<Module> =
            concerned.iter().filter_map(|id| known.get(id)).cloned().collect();
        self.want(pid, &modules, frames);
        count
    }
}

impl Drop for Symbolizer {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.more.notify_all();
    }
}
