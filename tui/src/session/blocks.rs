//! The sampled blocks that live, by id.
//!
//! A snapshot is fuzzy: between its begin and its end events come in and are
//! applied as ever. A death wins over a block listed later, so deaths inside a
//! snapshot are remembered until its end. At the end, blocks that were neither
//! listed nor born since the begin are gone: their deaths were lost. Nothing is
//! swept when fewer blocks were listed than the end announces.
//!
//! **Side by side.** Blocks lie in slots, one behind the other, and a table tells the
//! slot of an id. So events touch a small table, and who looks at all blocks, as every
//! answer about the past does, reads memory in order. The slot of a dead block is the next
//! one that is given away. When hardly any are taken they are closed up.
//!
//! **Columns.** Who looks for the few blocks of some callstacks, or for those born in some
//! stretch of time, reads the column of that alone: a tenth of the memory.

use super::then::weights::Weights;
use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::message::LiveBlock;
use heaptop_protocol::{
    estimate::{Interval, Weight},
    event::Moment,
    totals::Total,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most blocks that are kept: 230 MB with all spare room.
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
    /// Microseconds since the agent's start at its birth.
    #[must_use]
    pub const fn born_us(&self) -> u64 {
        self.born_ns / 1000
    }

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
    pub gone: Vec<(BlockId, Block)>,
    /// The agent has thinned its blocks: those that are gone may live, and others stand
    /// for them.
    pub thinned: bool,
}

/// In the columns of an empty slot: no callstack has this place, and nobody is born then.
const EMPTY: (u32, u64) = (u32::MAX, u64::MAX);

/// Fewer slots than these are never closed up.
const FEW_SLOTS: usize = 1 << 12;

/// The living.
#[derive(Debug, Default)]
pub struct Blocks {
    /// By id, its slot.
    slot_of: FxHashMap<BlockId, u32>,
    slots: Vec<Option<(BlockId, Block)>>,
    /// By slot, the callstack of its block,
    stacks: Vec<u32>,
    /// and when it was born, in microseconds.
    born_us: Vec<u64>,
    /// Slots that are empty.
    free: Vec<u32>,
    weights: Weights,
    total: Total,
    snapshot: Option<Snapshot>,
    snapshots: u32,
    thinned: u64,
    promoted_unheard: u64,
    latest_us: u64,
    /// Blocks that found no room here.
    pub refused: u64,
}

impl Blocks {
    /// The blocks.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &Block)> + '_ {
        self.slots.iter().flatten().map(|(id, block)| (*id, block))
    }

    /// Those of the callstacks that are wanted.
    pub fn of_stacks(
        &self,
        wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (BlockId, &Block)> {
        self.stacks
            .iter()
            .enumerate()
            .filter(move |(_, stack)| **stack != EMPTY.0 && wanted(**stack))
            .filter_map(|(slot, _)| self.at(slot))
    }

    /// Those whose births, in microseconds since the agent's start, are wanted.
    pub fn born(&self, wanted: impl Fn(u64) -> bool) -> impl Iterator<Item = (BlockId, &Block)> {
        let births = self.born_us.iter().enumerate();
        births
            .filter(move |(_, born)| **born != EMPTY.1 && wanted(**born))
            .filter_map(|(slot, _)| self.at(slot))
    }

    fn at(&self, slot: usize) -> Option<(BlockId, &Block)> {
        self.slots[slot].as_ref().map(|(id, block)| (*id, block))
    }

    /// No block was born later, in microseconds since the agent's start.
    #[must_use]
    pub const fn latest_us(&self) -> u64 {
        self.latest_us
    }

    /// Changes when a block that is known stands for more than before.
    #[must_use]
    pub const fn thinned(&self) -> u64 {
        self.thinned
    }

    /// Changes when a snapshot tells that a block that is known was promoted.
    #[must_use]
    pub const fn promoted_unheard(&self) -> u64 {
        self.promoted_unheard
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slot_of.len()
    }

    /// What they stand for together.
    #[must_use]
    pub const fn total(&self) -> &Total {
        &self.total
    }

    /// A birth, of callstack `stack`. What the block stands for, if it is new here. A
    /// block's events keep their order, so it cannot be dead already.
    pub fn birth(&mut self, block: &LiveBlock, stack: u32) -> Option<Weight> {
        self.insert(block, stack, false)
    }

    /// A promotion: the block, if it was young.
    pub fn promote(&mut self, id: BlockId) -> Option<&Block> {
        let block = self.get_mut(id).filter(|block| block.young)?;
        block.young = false;
        Some(block)
    }

    /// A block that lives.
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Block> {
        let slot = *self.slot_of.get(&id)?;
        self.slots[slot as usize].as_ref().map(|(_, block)| block)
    }

    fn get_mut(&mut self, id: BlockId) -> Option<&mut Block> {
        let slot = *self.slot_of.get(&id)?;
        self.slots[slot as usize].as_mut().map(|(_, block)| block)
    }

    /// A death: the block, what it stands for, and the objects that it stood for when it was
    /// first heard of.
    pub fn death(&mut self, id: BlockId) -> Option<(Block, Weight, f64)> {
        if let Some(snapshot) = &mut self.snapshot
            && snapshot.dead.len() < MOST_BLOCKS
        {
            snapshot.dead.insert(id);
        }
        let slot = self.slot_of.remove(&id)?;
        let (_, block) = self.slots[slot as usize].take()?;
        self.vacate(slot);
        let weight = *self.weights.of(block.interval, block.size);
        self.total.sub(&weight);
        let heard = self.weights.of(block.heard, block.size).objects;
        if self.slots.len() > FEW_SLOTS && self.slot_of.len() < self.slots.len() / 4 {
            self.close_up();
        }
        Some((block, weight, heard))
    }

    /// Nobody is in a slot any more.
    fn vacate(&mut self, slot: u32) {
        (self.stacks[slot as usize], self.born_us[slot as usize]) = EMPTY;
        self.free.push(slot);
    }

    /// Leaves no slot empty.
    fn close_up(&mut self) {
        self.slots.retain(Option::is_some);
        let blocks = || self.slots.iter().flatten().map(|(_, block)| block);
        self.stacks = blocks().map(|block| block.stack).collect();
        self.born_us = blocks().map(Block::born_us).collect();
        self.slots.shrink_to(self.slots.len() * 2);
        self.free = Vec::new();
        self.slot_of = FxHashMap::default();
        self.slot_of.reserve(self.slots.len());
        for ((id, _), slot) in self.slots.iter().flatten().zip(0..) {
            self.slot_of.insert(*id, slot);
        }
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
        let known = self.slot_of.get(&block.id);
        if let Some((_, known)) = known.and_then(|slot| self.slots[*slot as usize].as_mut()) {
            known.snapshot = self.snapshots;
            // A promotion wins over what was listed before it.
            if known.young && !block.young {
                known.young = false;
                self.promoted_unheard += 1;
            }
            if block.interval > known.interval {
                self.total.sub(&known.weight());
                self.total.add(&block.interval.weight(known.size));
                known.interval = block.interval;
                known.n_samples = block.n_samples;
                snapshot.thinned = true;
                self.thinned += 1;
            }
            return None;
        }
        let late = block.born_ns < begin.time_ns;
        (!self.is_dead(block.id) && self.insert(block, stack, late).is_some()).then_some(begin)
    }

    /// The snapshot ends.
    pub fn end(&mut self, announced: u64) -> Option<Shown> {
        let snapshot = self.snapshot.take()?;
        let mut gone = Vec::new();
        if snapshot.listed >= announced {
            let current = self.snapshots;
            for slot in 0..self.slots.len() {
                let Some((id, block)) = &self.slots[slot] else { continue };
                if block.snapshot != current && id.0 < snapshot.begin.seq {
                    self.total.sub(&block.weight());
                    self.slot_of.remove(id);
                    gone.extend(self.slots[slot].take());
                    self.vacate(slot as u32);
                }
            }
        }
        Some(Shown { begin: snapshot.begin, gone, thinned: snapshot.thinned })
    }

    fn is_dead(&self, id: BlockId) -> bool {
        self.snapshot.as_ref().is_some_and(|s| s.dead.contains(&id))
    }

    fn insert(&mut self, block: &LiveBlock, stack: u32, listed: bool) -> Option<Weight> {
        if self.slot_of.len() >= MOST_BLOCKS {
            self.refused += 1;
            return None;
        }
        // An id comes twice from a broken peer alone: the first stands.
        let std::collections::hash_map::Entry::Vacant(room) = self.slot_of.entry(block.id) else {
            return None;
        };
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
            snapshot: self.snapshots,
        };
        let (born_us, new) = (new.born_us(), Some((block.id, new)));
        self.latest_us = self.latest_us.max(born_us);
        if let Some(slot) = self.free.pop() {
            room.insert(slot);
            let slot = slot as usize;
            (self.slots[slot], self.stacks[slot], self.born_us[slot]) = (new, stack, born_us);
        } else {
            room.insert(self.slots.len() as u32);
            self.slots.push(new);
            self.stacks.push(stack);
            self.born_us.push(born_us);
        }
        let weight = *self.weights.of(block.interval, block.size);
        self.total.add(&weight);
        Some(weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: u64) -> LiveBlock {
        LiveBlock {
            id: BlockId(id),
            born_ns: id,
            born_clock: 0,
            thread: ThreadId(1),
            stack: heaptop_protocol::ids::StackId(1),
            size: 16 + id % 7,
            n_samples: 1,
            interval: Interval::DEFAULT,
            cause: Cause::Malloc,
            address: id * 64,
            young: true,
            born_young: true,
        }
    }

    /// Slots are given away again, and closed up; ids find their blocks all the time.
    #[test]
    fn slots_are_those_of_the_living() {
        let mut blocks = Blocks::default();
        let n = 4 * FEW_SLOTS as u64;
        for id in 0..n {
            assert!(blocks.birth(&block(id), id as u32).is_some());
        }
        assert!(blocks.birth(&block(5), 9).is_none(), "the first stands");
        // All but every hundredth die, and then new ones come.
        for id in (0..n).filter(|id| id % 100 > 0) {
            let (dead, weight, objects) = blocks.death(BlockId(id)).unwrap();
            assert_eq!((dead.stack, dead.born_ns), (id as u32, id));
            assert_eq!(weight, dead.weight());
            assert_eq!(objects, dead.weight_as_heard());
        }
        assert!(blocks.death(BlockId(1)).is_none(), "once");
        assert!(blocks.slots.len() <= FEW_SLOTS, "{} slots", blocks.slots.len());
        for id in n..n + 1000 {
            blocks.birth(&block(id), id as u32);
        }
        assert!(blocks.slots.len() <= FEW_SLOTS, "{} slots", blocks.slots.len());
        let want = || (0..n).step_by(100).chain(n..n + 1000);
        let mut ids: Vec<u64> = blocks.iter().map(|(id, _)| id.0).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(want()));
        assert!(want().all(|id| blocks.get(BlockId(id)).is_some_and(|b| b.stack == id as u32)));
        assert_eq!((blocks.count(), blocks.total().n), (want().count(), want().count() as u64));
        // Columns say what the blocks say.
        let few = |stack: u32| stack.is_multiple_of(300) || u64::from(stack) >= n + 990;
        let mut of_few: Vec<u64> = blocks.of_stacks(few).map(|(id, _)| id.0).collect();
        of_few.sort_unstable();
        assert!(of_few.into_iter().eq(want().filter(|id| few(*id as u32))));
        for (after, until) in [(0, n), (n / 2000, n / 1000), (n / 1000, u64::MAX)] {
            let within = |us: u64| after < us && us <= until;
            let mut born: Vec<u64> = blocks.born(within).map(|(id, _)| id.0).collect();
            born.sort_unstable();
            let want = want().filter(|id| within(id / 1000));
            assert!(born.into_iter().eq(want), "{after}..{until}");
        }
    }
}
