//! How blocks grow: reallocs of which both the block before and the one after were sampled.
//!
//! The death of the one comes before the birth of the other, a few events apart, so the last
//! deaths are kept for as long as that. What is known of a realloc then is kept apart from
//! lives, which have no room for it: few programs' blocks grow.
//!
//! Both blocks are sampled by themselves: a pair is seen with π = p₁p₂, and stands for 1/π.
//! Two pairs that follow each other share a block, and do not vary by themselves: if π₁ and
//! π₂ are seen together, the variance of a sum has 2x₁x₂(1 − p)/(π₁π₂) more, p being that of
//! the block between. Pairs of blocks ≪ R are hardly ever seen, so such sums are bounds from
//! below but at R = 1.
//!
//! **Bounded.** When there are [`MOST`], each is kept with chance ½, and stands for twice as
//! much.

use super::Session;
use super::blocks::Block;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::Alloc;
use heaptop_protocol::ids::BlockId;

/// Most reallocs that are kept: 6 MiB.
const MOST: usize = 1 << 17;
/// The last deaths, by the low bits of their numbers: so many events may lie between the
/// death and the birth of a realloc.
const RECENT: usize = 1 << 12;

/// A block that became another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Realloc {
    /// When, in microseconds since the agent's start.
    pub at_us: u64,
    /// The callstack of the new block: its place in the session.
    pub stack: u32,
    /// Bytes before.
    pub from: u64,
    /// Bytes after.
    pub to: u64,
    /// Whether it lies elsewhere since: then what it held was copied, or its pages moved.
    pub moved: bool,
    /// R that both stand for.
    intervals: [Interval; 2],
    /// Bytes of the block before the block before, if that realloc was seen as well; else 0.
    earlier: u64,
}

impl Realloc {
    /// Whether the block before had not come by realloc, as far as that was seen.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.earlier == 0
    }

    /// Bytes that have to be copied where it moves.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.from.min(self.to)
    }
}

/// A block that has just died.
#[derive(Debug, Clone, Copy)]
struct Dead {
    id: BlockId,
    size: u64,
    address: u64,
    interval: Interval,
    earlier: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Reallocs {
    all: Vec<Realloc>,
    /// How often they were thinned.
    halvings: u32,
    /// Reallocs of sampled blocks of which nothing was known.
    unknown: u64,
    /// Empty until a block dies.
    recent: Vec<Option<Dead>>,
    /// Sizes before, of the living that are seen to have grown.
    grown: rustc_hash::FxHashMap<BlockId, u64>,
}

impl Reallocs {
    /// A block has died, perhaps by realloc.
    #[inline]
    pub fn death(&mut self, id: BlockId, block: &Block) {
        if self.recent.is_empty() {
            self.recent = vec![None; RECENT];
        }
        let earlier = if self.grown.is_empty() { 0 } else { self.grown.remove(&id).unwrap_or(0) };
        let (size, address, interval) = (block.size, block.address, block.interval);
        self.recent[id.0 as usize % RECENT] = Some(Dead { id, size, address, interval, earlier });
    }

    fn recent(&self, id: BlockId) -> Option<Dead> {
        self.recent.get(id.0 as usize % RECENT).copied()?.filter(|dead| dead.id == id)
    }

    fn keep(&mut self, realloc: Realloc, new: BlockId) {
        if self.grown.len() < MOST {
            self.grown.insert(new, realloc.from);
        }
        if coin(&realloc) < self.halvings {
            return;
        }
        self.all.push(realloc);
        while self.all.len() > MOST {
            self.halvings += 1;
            let halvings = self.halvings;
            self.all.retain(|realloc| coin(realloc) >= halvings);
        }
    }

    /// Those that are kept.
    #[must_use]
    pub fn all(&self) -> &[Realloc] {
        &self.all
    }

    /// Reallocs of sampled blocks of which nothing was known.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// What a realloc stands for: as many, and `bytes` for each of them.
    #[must_use]
    pub fn weight(&self, realloc: &Realloc, bytes: u64) -> Weight {
        let middle = realloc.intervals[0].inclusion(realloc.from);
        let p = realloc.intervals[1].inclusion(realloc.to);
        let thinned = (-f64::from(self.halvings)).exp2();
        let share = p * middle * thinned;
        if share <= 0.0 {
            return Weight::default();
        }
        let (objects, x) = (1.0 / share, bytes as f64);
        let mut weight = Weight {
            size: bytes,
            bytes: x * objects,
            objects,
            bytes_variance: x * x * objects * objects * (1.0 - share),
            objects_variance: objects * objects * (1.0 - share),
        };
        if realloc.earlier > 0 {
            // That it moved as well is on the safe side.
            let first = realloc.intervals[0].inclusion(realloc.earlier) * middle * thinned;
            let held = realloc.earlier.min(realloc.from) as f64;
            let both = 2.0 * (1.0 - middle) / (first * share);
            weight.objects_variance += both;
            weight.bytes_variance += both * x * held;
        }
        weight
    }
}

/// How often a realloc outlives a halving: a hash of it alone.
fn coin(realloc: &Realloc) -> u32 {
    let mut x = realloc.at_us ^ realloc.from.rotate_left(40) ^ realloc.to.rotate_left(20);
    x ^= u64::from(realloc.stack) << 48;
    // splitmix64
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        x = (x ^ x >> 30).wrapping_mul(factor);
    }
    (x ^ x >> 31).trailing_zeros()
}

impl Session {
    /// A block was born that replaces another.
    pub(super) fn replaced(&mut self, e: &Alloc, stack: u32, old: BlockId) {
        // Its death comes first, but from a broken peer.
        let living = self.blocks.get(old).map(|block| Dead {
            id: old,
            size: block.size,
            address: block.address,
            interval: block.interval,
            earlier: 0,
        });
        let Some(dead) = self.reallocs.recent(old).or(living) else {
            self.reallocs.unknown += 1;
            return;
        };
        let realloc = Realloc {
            at_us: e.at.time_ns / 1000,
            stack,
            from: dead.size,
            to: e.size,
            moved: dead.address != e.address,
            intervals: [dead.interval, e.interval],
            earlier: dead.earlier,
        };
        self.reallocs.keep(realloc, e.id());
    }

    /// How blocks grew.
    #[must_use]
    pub const fn reallocs(&self) -> &Reallocs {
        &self.reallocs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;

    fn pairs(f: &Fixture) -> Vec<(u64, u64, bool)> {
        f.session.reallocs().all().iter().map(|r| (r.from, r.to, r.moved)).collect()
    }

    #[test]
    fn each_step_of_a_chain_is_a_pair() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "grow"]);
        let mut id = f.alloc(stack, 8);
        for size in [16, 32, 64] {
            id = f.realloc(id, stack, size, size != 32);
        }
        f.free(id);
        assert_eq!(pairs(&f), [(8, 16, true), (16, 32, false), (32, 64, true)]);
        assert_eq!(f.session.reallocs().unknown(), 0);
        let reallocs = f.session.reallocs();
        let w = reallocs.weight(&reallocs.all()[2], 32);
        assert_eq!((w.objects, w.bytes, w.bytes_variance), (1.0, 32.0, 0.0));
        assert!(reallocs.grown.is_empty(), "nobody lives who has grown");
    }

    /// A block that was never heard of is no pair, and is counted.
    #[test]
    fn what_replaces_the_unknown_is_counted() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "grow"]);
        let unheard = f.birth(stack, 8).id();
        f.realloc(unheard, stack, 16, true);
        assert_eq!((pairs(&f).len(), f.session.reallocs().unknown()), (0, 1));
    }

    /// Of blocks that are sampled by chance, sums are right in the mean, and vary as they say.
    #[test]
    fn pairs_stand_for_the_unseen() {
        let r = Interval::new(4096).unwrap();
        // Three steps, moved each: 7,168 bytes.
        let sizes = [1024_u64, 2048, 4096, 8192];
        let mut random = 1_u64;
        let mut uniform = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut sum, mut squares, mut said) = (0.0, 0.0, 0.0);
        let runs = 40_000;
        for _ in 0..runs {
            let seen = sizes.map(|size| uniform() < r.inclusion(size));
            let (mut estimate, mut variance) = (0.0, 0.0);
            let reallocs = Reallocs::default();
            for step in 0..3 {
                if seen[step] && seen[step + 1] {
                    let earlier = if step > 0 && seen[step - 1] { sizes[step - 1] } else { 0 };
                    let (from, to) = (sizes[step], sizes[step + 1]);
                    let intervals = [r, r];
                    let pair =
                        Realloc { at_us: 0, stack: 0, from, to, moved: true, intervals, earlier };
                    let w = reallocs.weight(&pair, from);
                    estimate += w.bytes;
                    variance += w.bytes_variance;
                }
            }
            sum += estimate;
            squares += estimate * estimate;
            said += variance;
        }
        let runs = f64::from(runs);
        let (mean, said) = (sum / runs, said / runs);
        let variance = squares / runs - mean * mean;
        assert!((mean / 7168.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((said / variance - 1.0).abs() < 0.06, "{said} for {variance}");
    }

    #[test]
    fn beyond_the_bound_each_stands_for_more() {
        let mut reallocs = Reallocs::default();
        let n = MOST as u64 * 3;
        for at_us in 0..n {
            let intervals = [Interval::EXACT; 2];
            let pair =
                Realloc { at_us, stack: 1, from: 8, to: 16, moved: true, intervals, earlier: 0 };
            reallocs.keep(pair, BlockId(at_us));
        }
        assert!(reallocs.all().len() <= MOST && reallocs.halvings == 2);
        let sum: f64 = reallocs.all().iter().map(|r| reallocs.weight(r, 8).objects).sum();
        assert!((sum / n as f64 - 1.0).abs() < 0.02, "{sum} of {n}");
    }
}
