//! The sampled blocks that live, by id.
//!
//! A snapshot is fuzzy: between its begin and its end events come in and are
//! applied as ever. A death wins over a block listed later, so deaths inside a
//! snapshot are remembered until its end. At the end, blocks that were neither
//! listed nor born since the begin are gone: their deaths were lost. Nothing is
//! swept when fewer blocks were listed than the end announces.

use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::message::LiveBlock;
use heaptop_protocol::{
    estimate::{Interval, Weight},
    event::Moment,
    totals::Total,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most blocks that are kept, 340 MB with the table's spare room.
pub const MOST_BLOCKS: usize = 2_000_000;

/// A block that lives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Nanoseconds since the agent's start at its birth.
    pub born_ns: u64,
    /// G before it.
    pub born_clock: u64,
    /// The thread that allocated it.
    pub thread: ThreadId,
    /// Its callstack's place in the session.
    pub stack: u32,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in it.
    pub n_samples: u64,
    /// R that it stands for: that of its birth, or a coarser one that the agent has
    /// thinned it to.
    pub interval: Interval,
    /// R that it had when it was first heard of.
    heard: Interval,
    /// How it was born.
    pub cause: Cause,
    /// Where it lies.
    pub address: u64,
    /// Whether it is still young.
    pub young: bool,
    /// Whether it was born young.
    pub born_young: bool,
    /// Whether a snapshot told of it that began after its birth.
    pub listed: bool,
    /// The last snapshot it is known from, by listing or by birth.
    snapshot: u32,
}

impl Block {
    /// What it stands for.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.interval.weight(self.size)
    }

    /// Objects that it stood for when it was first heard of: lifetimes count it so from
    /// beginning to end.
    #[must_use]
    pub fn weight_as_heard(&self) -> f64 {
        self.heard.weight(self.size).objects
    }
}

/// A snapshot under way.
#[derive(Debug)]
struct Snapshot {
    begin: Moment,
    listed: u64,
    dead: FxHashSet<BlockId>,
    /// A block that was known is listed with a coarser R: the agent has thinned.
    thinned: bool,
}

/// What a snapshot showed at its end.
#[derive(Debug)]
pub struct Shown {
    /// When it began.
    pub begin: Moment,
    /// Blocks that are gone.
    pub gone: Vec<Block>,
    /// The agent has thinned its blocks: those that are gone may live, and others stand
    /// for them.
    pub thinned: bool,
}

/// The living.
#[derive(Debug, Default)]
pub struct Blocks {
    living: FxHashMap<BlockId, Block>,
    total: Total,
    snapshot: Option<Snapshot>,
    snapshots: u32,
    /// Blocks that found no room here.
    pub refused: u64,
}

impl Blocks {
    /// The blocks.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &Block)> + '_ {
        self.living.iter().map(|(id, block)| (*id, block))
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.living.len()
    }

    /// What they stand for together.
    #[must_use]
    pub const fn total(&self) -> &Total {
        &self.total
    }

    /// A birth, of callstack `stack`. Whether the block is new here. A block's
    /// events keep their order, so it cannot be dead already.
    pub fn birth(&mut self, block: &LiveBlock, stack: u32) -> bool {
        self.insert(block, stack, false)
    }

    /// A promotion.
    pub fn promote(&mut self, id: BlockId) {
        if let Some(block) = self.living.get_mut(&id) {
            block.young = false;
        }
    }

    /// A block that lives.
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Block> {
        self.living.get(&id)
    }

    /// A death.
    pub fn death(&mut self, id: BlockId) -> Option<Block> {
        if let Some(snapshot) = &mut self.snapshot
            && snapshot.dead.len() < MOST_BLOCKS
        {
            snapshot.dead.insert(id);
        }
        let block = self.living.remove(&id)?;
        self.total.sub(&block.weight());
        Some(block)
    }

    /// A snapshot begins; one that was under way is void.
    pub fn begin(&mut self, begin: Moment) {
        self.snapshots = self.snapshots.wrapping_add(1);
        self.snapshot =
            Some(Snapshot { begin, listed: 0, dead: FxHashSet::default(), thinned: false });
    }

    /// A block is listed. When the snapshot began, if the block is new here.
    pub fn list(&mut self, block: &LiveBlock, stack: u32) -> Option<Moment> {
        let snapshot = self.snapshot.as_mut()?;
        snapshot.listed += 1;
        let begin = snapshot.begin;
        if let Some(known) = self.living.get_mut(&block.id) {
            known.snapshot = self.snapshots;
            // A promotion wins over what was listed before it.
            known.young &= block.young;
            if block.interval > known.interval {
                self.total.sub(&known.weight());
                self.total.add(&block.interval.weight(known.size));
                known.interval = block.interval;
                known.n_samples = block.n_samples;
                snapshot.thinned = true;
            }
            return None;
        }
        let late = block.born_ns < begin.time_ns;
        (!self.is_dead(block.id) && self.insert(block, stack, late)).then_some(begin)
    }

    /// The snapshot ends.
    pub fn end(&mut self, announced: u64) -> Option<Shown> {
        let snapshot = self.snapshot.take()?;
        let mut gone = Vec::new();
        if snapshot.listed >= announced {
            let current = self.snapshots;
            self.living.retain(|id, block| {
                let lives = block.snapshot == current || id.0 >= snapshot.begin.seq;
                if !lives {
                    self.total.sub(&block.weight());
                    gone.push(*block);
                }
                lives
            });
        }
        Some(Shown { begin: snapshot.begin, gone, thinned: snapshot.thinned })
    }

    fn is_dead(&self, id: BlockId) -> bool {
        self.snapshot.as_ref().is_some_and(|s| s.dead.contains(&id))
    }

    fn insert(&mut self, block: &LiveBlock, stack: u32, listed: bool) -> bool {
        if self.living.len() >= MOST_BLOCKS {
            self.refused += 1;
            return false;
        }
        let snapshot = self.snapshots;
        let new = Block {
            born_ns: block.born_ns,
            born_clock: block.born_clock,
            thread: block.thread,
            stack,
            size: block.size,
            n_samples: block.n_samples,
            interval: block.interval,
            heard: block.interval,
            cause: block.cause,
            address: block.address,
            young: block.young,
            born_young: block.born_young,
            listed,
            snapshot,
        };
        match self.living.entry(block.id) {
            // An id comes twice from a broken peer alone: the first stands.
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(room) => {
                self.total.add(&new.weight());
                room.insert(new);
                true
            }
        }
    }
}
