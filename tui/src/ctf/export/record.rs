//! From messages to births, promotions and deaths in the order of time.
//!
//! - What lives when the recording begins is born at its own time, all sorted; what a
//!   later snapshot lists and nobody knows is born then, and what it should list and does
//!   not is dead.
//! - A realloc is the death of the block that it replaces, and a birth.
//! - Threads' events come a little out of order: [`MOST_WAITING`] wait, sorted. A block's
//!   own events keep their order.

use heaptop_protocol::event::{Event, Moment};
use heaptop_protocol::ids::BlockId;
use heaptop_protocol::message::{FromAgent, LiveBlock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events that wait to be sorted.
const MOST_WAITING: usize = 1 << 16;
/// The same while the first snapshot is not whole: all that lives may wait.
const MOST_BLOCKS: usize = 1 << 21;

/// What happens to a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Record {
    Birth(LiveBlock),
    Promote(BlockId),
    Death(BlockId),
}

#[derive(Debug)]
struct Waiting {
    time_ns: u64,
    count: u64,
    record: Record,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time_ns, self.count).cmp(&(other.time_ns, other.count))
    }
}

/// A snapshot under way.
#[derive(Debug)]
struct Snapshot {
    begin: Moment,
    listed: FxHashSet<BlockId>,
    /// Died since it began.
    dead: FxHashSet<BlockId>,
    count: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Records {
    waiting: BinaryHeap<Reverse<Waiting>>,
    count: u64,
    /// Those that live, with the time of their birth.
    living: FxHashMap<BlockId, u64>,
    snapshot: Option<Snapshot>,
    /// Whether a snapshot was whole.
    synced: bool,
}

impl Records {
    fn put(&mut self, time_ns: u64, record: Record) {
        self.count += 1;
        self.waiting.push(Reverse(Waiting { time_ns, count: self.count, record }));
    }

    fn birth(&mut self, block: LiveBlock) {
        if self.living.contains_key(&block.id) {
            return;
        }
        self.living.insert(block.id, block.born_ns);
        self.put(block.born_ns, Record::Birth(block));
        if block.born_young && !block.young {
            self.put(block.born_ns, Record::Promote(block.id));
        }
    }

    fn death(&mut self, id: BlockId, time_ns: u64) {
        if let Some(snapshot) = &mut self.snapshot
            && snapshot.dead.len() < MOST_BLOCKS
        {
            snapshot.dead.insert(id);
        }
        if let Some(born_ns) = self.living.remove(&id) {
            self.put(time_ns.max(born_ns), Record::Death(id));
        }
    }

    /// Takes in a message.
    pub fn hear(&mut self, message: &FromAgent) {
        match message {
            FromAgent::Events(batch) => batch.iter().for_each(|event| self.event(&event)),
            FromAgent::SnapshotBegin(begin) => {
                let (listed, dead) = (FxHashSet::default(), FxHashSet::default());
                self.snapshot = Some(Snapshot { begin: begin.at, listed, dead, count: 0 });
            }
            FromAgent::SnapshotBlocks(some) => {
                for block in &some.blocks {
                    let Some(snapshot) = &mut self.snapshot else { return };
                    snapshot.count += 1;
                    if snapshot.listed.len() < MOST_BLOCKS {
                        snapshot.listed.insert(block.id);
                    }
                    if !snapshot.dead.contains(&block.id) && self.living.len() < MOST_BLOCKS {
                        self.birth(*block);
                    }
                }
            }
            FromAgent::SnapshotEnd(end) => self.snapshot_ends(end.blocks),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Alloc(e) => {
                if let Some(replaced) = e.replaces {
                    self.death(replaced, e.at.time_ns);
                }
                if self.living.len() < MOST_BLOCKS {
                    self.birth(LiveBlock::from(e));
                }
            }
            Event::Promote(e) => {
                if let Some(born_ns) = self.living.get(&e.id) {
                    self.put(e.at.time_ns.max(*born_ns), Record::Promote(e.id));
                }
            }
            Event::Dealloc(e) => self.death(e.id, e.at.time_ns),
        }
    }

    fn snapshot_ends(&mut self, announced: u64) {
        let Some(snapshot) = self.snapshot.take() else { return };
        self.synced = true;
        if snapshot.count < announced {
            return;
        }
        let Moment { seq, time_ns, .. } = snapshot.begin;
        let gone = |id: &&BlockId| id.0 < seq && !snapshot.listed.contains(*id);
        let mut gone: Vec<BlockId> = self.living.keys().filter(gone).copied().collect();
        gone.sort_unstable();
        for id in gone {
            self.death(id, time_ns);
        }
    }

    /// The next one that need not wait, with its time; if all is `over`, the next one.
    pub fn take(&mut self, over: bool) -> Option<(u64, Record)> {
        let most = if self.synced { MOST_WAITING } else { MOST_BLOCKS };
        if !over && self.waiting.len() <= most {
            return None;
        }
        let Reverse(Waiting { time_ns, record, .. }) = self.waiting.pop()?;
        Some((time_ns, record))
    }
}
