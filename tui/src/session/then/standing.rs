//! Sums of the living that are kept up with each event: no answer about the present needs a
//! pass over all that lives.
//!
//! The living are put together by class and by the *stretch* of time that they were born in.
//! A stretch ends at a moment; behind the last of them is one more, which has no end. So
//!
//! | asked for | stretches |
//! |---|---|
//! | growth from a moment on | until the moment, and after it: what was gained |
//! | what is old | until a moment that moves with time |
//! | generations | until each of the marks, or of moments that move with time |
//!
//! and all of them together are in use. A birth adds to one sum, a death takes from it. Where
//! moments move, blocks born between the old and the new one move with them, which the
//! column of births finds ([`Blocks::born`]).
//!
//! **Subtracted.** A sum that blocks leave keeps the bounds of their sizes until it is empty,
//! as those of the agent do ([`Total::sub`]): they err to the safe side.
//!
//! **Kept as long as they are asked for.** Sums are made by one pass when they are first asked
//! for, and again when callstacks came to other groups or the agent has thinned its blocks.
//! A screen that needs several has them made one after the other, with keys heard in between
//! ([`Session::make_standing`]): together they leave the cache, and take longer than alone.
//! Those that nobody asked for in [`KEPT_NS`] go: events cost nothing for screens that nobody
//! looks at.
//!
//! [`Blocks::born`]: crate::session::blocks::Blocks::born

use super::Session;
use super::When;
use super::bounds::Bounds;
use super::by::{By, Cut, Kind};
use super::weights::Weights;
use crate::session::blocks::Block;
use crate::session::book::Book;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::totals::Total;
use std::cell::{Ref, RefMut};
use std::sync::Arc;

/// See the module, in nanoseconds of the target's time.
const KEPT_NS: u64 = 5_000_000_000;
/// Most that are kept: of a screen, and of details over it.
const MOST: usize = 6;

/// What sums are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Growth from a moment on. Of each moment that is asked about there are sums.
    Growth,
    /// What is old: one moment, which moves.
    Old,
    /// Generations: moments that may move.
    Generations,
}

/// A block, as far as sums know it.
#[derive(Debug, Clone, Copy)]
pub struct One<'a> {
    pub id: BlockId,
    pub stack: u32,
    pub size: u64,
    pub thread: ThreadId,
    pub born_us: u64,
    /// G before it, as lives keep it.
    pub born_clock: u64,
    pub born_young: bool,
    pub young: bool,
    /// Whether it was first seen in a snapshot, after its birth.
    pub listed: bool,
    pub weight: &'a Weight,
}

impl<'a> One<'a> {
    /// A block that stands for `weight`.
    pub const fn of(id: BlockId, block: &Block, weight: &'a Weight) -> Self {
        let Block { stack, size, thread, born_young, young, listed, .. } = *block;
        let (born_us, born_clock) = (block.born_us(), block.born_clock & !0xfff);
        Self { id, stack, size, thread, born_us, born_clock, born_young, young, listed, weight }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    purpose: Purpose,
    by: By,
    classes: u64,
    thinned: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Standing {
    key: Key,
    classes: Kind,
    /// Where stretches end, in order.
    ends_us: Vec<u64>,
    /// By class and stretch. An answer that keeps them costs nothing: the next event that
    /// changes them makes a copy for itself, between two frames.
    totals: Arc<Vec<Total>>,
    asked_ns: u64,
}

impl Standing {
    fn new(session: &Session, key: Key, ends_us: &[u64]) -> Self {
        let classes = Kind::of(session, key.by);
        let totals = vec![Total::default(); classes.count(session) * (ends_us.len() + 1)];
        let totals = Arc::new(totals);
        let ends_us = ends_us.to_vec();
        let mut made = Self { key, classes, ends_us, totals, asked_ns: session.now_ns };
        let mut weights = Weights::new();
        for (id, block) in session.blocks.iter() {
            let weight = weights.of(block.interval, block.size);
            made.change(&One::of(id, block, weight), |total| total.add(weight));
        }
        made
    }

    /// Whether it is what is asked for, but for moments that may move.
    fn fits(&self, key: Key, ends_us: &[u64]) -> bool {
        let same = match key.purpose {
            Purpose::Growth => self.ends_us == ends_us,
            Purpose::Old | Purpose::Generations => self.ends_us.len() == ends_us.len(),
        };
        self.key == key && same
    }

    /// All sums as they are now, by class and stretch.
    pub fn totals(&self) -> Arc<Vec<Total>> {
        Arc::clone(&self.totals)
    }

    /// By class, the sums of its blocks in each stretch, the oldest first.
    pub fn classes(&self) -> impl Iterator<Item = &[Total]> {
        self.totals.chunks_exact(self.ends_us.len() + 1)
    }

    /// The same of a class.
    #[must_use]
    pub fn of(&self, class: u32) -> &[Total] {
        let each = self.ends_us.len() + 1;
        self.totals.get(class as usize * each..(class as usize + 1) * each).unwrap_or_default()
    }

    /// Changes the sum that a block is in.
    fn change(&mut self, one: &One<'_>, change: impl FnOnce(&mut Total)) {
        let Some(class) = self.classes.class(one.stack, one.size, one.thread) else { return };
        let stretch = self.ends_us.partition_point(|&end| end < one.born_us);
        let place = class as usize * (self.ends_us.len() + 1) + stretch;
        let totals = Arc::make_mut(&mut self.totals);
        if place >= totals.len() {
            let each = self.ends_us.len() + 1;
            totals.resize((class as usize + 1) * each, Total::default());
        }
        change(&mut totals[place]);
    }

    /// Stretches end elsewhere.
    fn move_to(&mut self, session: &Session, ends_us: &[u64]) {
        let moved: Vec<(u64, u64)> = self
            .ends_us
            .iter()
            .zip(ends_us)
            .filter(|(old, new)| old != new)
            .map(|(&old, &new)| (old.min(new), old.max(new)))
            .collect();
        let passed = |born_us: u64| moved.iter().any(|&(from, to)| from < born_us && born_us <= to);
        let mut weights = Weights::new();
        let mut of: Vec<u64> = std::mem::replace(&mut self.ends_us, ends_us.to_vec());
        for (id, block) in session.blocks.born(passed) {
            let born_us = block.born_us();
            let stretch = |ends: &[u64]| ends.partition_point(|&end| end < born_us);
            if stretch(&of) != stretch(ends_us) {
                let weight = weights.of(block.interval, block.size);
                let one = One::of(id, block, weight);
                std::mem::swap(&mut of, &mut self.ends_us);
                self.change(&one, |total| total.sub(weight));
                std::mem::swap(&mut of, &mut self.ends_us);
                self.change(&one, |total| total.add(weight));
            }
        }
    }
}

/// All that are kept, the last one that was asked for first.
#[derive(Debug, Default)]
pub struct Kept(Vec<Standing>);

impl Kept {
    /// A block is heard of.
    pub fn birth(&mut self, book: &Book, one: &One<'_>) {
        for standing in &mut self.0 {
            standing.classes.fit(book);
            standing.change(one, |total| total.add(one.weight));
        }
    }

    /// A block that was heard of is gone.
    pub fn end(&mut self, one: &One<'_>) {
        for standing in &mut self.0 {
            standing.change(one, |total| total.sub(one.weight));
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[cfg(test)]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    fn find(&self, key: Key, ends_us: &[u64]) -> Option<usize> {
        self.0.iter().position(|known| known.fits(key, ends_us))
    }

    /// Puts one first. What stood for another state of the same is of no use any more.
    fn put(&mut self, standing: Standing) {
        let Key { purpose, by, .. } = standing.key;
        self.0.retain(|known| {
            let same = (known.key.purpose, known.key.by) == (purpose, by);
            !same || purpose == Purpose::Growth && known.key == standing.key
        });
        self.0.truncate(MOST - 1);
        self.0.insert(0, standing);
    }

    /// Those that nobody asks for any more go.
    pub fn forget(&mut self, now_ns: u64) {
        self.0.retain(|standing| now_ns.saturating_sub(standing.asked_ns) < KEPT_NS);
    }
}

impl Session {
    /// Sums of the living; `ends_us` are in order. `None` where the moment is not the present,
    /// and of some blocks alone: what they are may change without an event.
    pub(super) fn standing(
        &self,
        bounds: &Bounds,
        cut: &Cut,
        purpose: Purpose,
        ends_us: &[u64],
    ) -> Option<Ref<'_, Standing>> {
        if !self.is_present(bounds, cut) {
            return None;
        }
        let key = self.standing_key(purpose, cut.by);
        let mut kept: RefMut<'_, Kept> = self.then.standing.borrow_mut();
        let mut found = match kept.find(key, ends_us) {
            Some(at) => kept.0.remove(at),
            None => Standing::new(self, key, ends_us),
        };
        if found.ends_us != ends_us {
            found.move_to(self, ends_us);
        }
        found.asked_ns = self.now_ns;
        kept.put(found);
        drop(kept);
        Ref::filter_map(self.then.standing.borrow(), |kept| kept.0.first()).ok()
    }

    /// Makes the first of these sums that is not kept yet. How far they are by then, in
    /// percent; `None`: all are kept, or there is nothing to keep.
    pub(super) fn make_standing(
        &self,
        bounds: &Bounds,
        cut: &Cut,
        asked: &[(Purpose, Vec<u64>)],
    ) -> Option<u8> {
        if !self.is_present(bounds, cut) {
            return None;
        }
        let is_kept = |(purpose, ends_us): &&(Purpose, Vec<u64>)| {
            let kept = self.then.standing.borrow();
            kept.find(self.standing_key(*purpose, cut.by), ends_us).is_some()
        };
        let (purpose, ends_us) = asked.iter().find(|one| !is_kept(one))?;
        self.standing(bounds, cut, *purpose, ends_us)?;
        // The answer that is made of them takes as long as one of them.
        Some((asked.iter().filter(is_kept).count() * 100 / (asked.len() + 1)) as u8)
    }

    fn standing_key(&self, purpose: Purpose, by: By) -> Key {
        Key { purpose, by, classes: self.classes_revision(by), thinned: self.blocks.thinned() }
    }

    /// Whether sums of the living are an answer: not at another moment, and not of some blocks
    /// alone.
    fn is_present(&self, bounds: &Bounds, cut: &Cut) -> bool {
        bounds.in_use
            && cut.only.is_none()
            && bounds.when != When::Peak
            && bounds.end_us == self.now_ns / 1000
            && self.blocks.latest_us() <= bounds.end_us
    }
}
