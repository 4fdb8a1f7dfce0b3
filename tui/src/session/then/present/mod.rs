//! The present of sizes and threads, without a pass over all blocks.
//!
//! Of callsites the agent keeps totals; of sizes and threads it does not. What a pass over
//! all blocks would say of them is kept up instead, in two halves:
//!
//! | | who is over ([`over`]) | who lives ([`living`]) |
//! |---|---|---|
//! | goes on | from life to life, when it is asked for, and a little ahead | with each event, while it is asked for |
//! | in use | – | all |
//! | allocated | born since the viewer came | born since the viewer came |
//! | minor, promoted | whose cycle is over | the same: all of them are promoted |
//! | lifetimes | by age at the end | by time of birth, since ages move |
//! | trend | births and ends, step by step | births |
//!
//! What is left is the window of rates: the blocks that were born in the last seconds are
//! looked at one by one.
//!
//! **Cycles end without an event.** A block whose cycle is not over is put aside, and counted
//! when the clock has passed its end.
//!
//! **Steps of trends** lie on a grid ([`grid`]), as those of callsites do: what happened in a
//! step stays in it. The first and the last may be shorter than others.
//!
//! Of some blocks alone (a filter's) there are passes as for any other moment.

pub mod grid;
mod living;
mod over;

use super::bounds::Bounds;
use super::by::{By, Cut, SIZES, size_class};
use super::only::Seen;
use super::standing::One;
use super::threads::OTHERS;
use super::totals::{OfGroup, Sets};
use super::trend::Trend;
use super::weights::Weights;
use super::{Session, Then, When};
use crate::session::blocks::Blocks;
use crate::session::lifetimes::Ages;
use crate::session::lives::Lives;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::totals::{Total, Totals};
use living::Living;
use over::Over;
use rustc_hash::FxHashMap;

/// What is kept of sizes, and of threads.
#[derive(Debug, Default)]
pub struct Kept {
    over: [Over; 2],
    living: [Option<Living>; 2],
}

/// What blocks are put together by. Threads have a number when they are first seen: those
/// that come later change none.
#[derive(Debug)]
enum Kind {
    Sizes,
    Threads(FxHashMap<ThreadId, u32>),
}

impl Kind {
    fn new(at: usize) -> Self {
        if at == 0 { Self::Sizes } else { Self::Threads(FxHashMap::default()) }
    }

    fn class(&mut self, size: u64, thread: ThreadId) -> usize {
        match self {
            Self::Sizes => size_class(size) as usize,
            Self::Threads(numbers) => {
                let next = numbers.len() as u32;
                // As lives keep it.
                *numbers.entry(ThreadId(thread.0.min(OTHERS.0))).or_insert(next) as usize
            }
        }
    }

    /// By number, the class that is asked for.
    fn asked(&self, session: &Session) -> Vec<u32> {
        match self {
            Self::Sizes => (0..SIZES).collect(),
            Self::Threads(numbers) => {
                let ids = session.thread_classes();
                // Who was not told of yet has no class of his own.
                let mut classes = vec![ids.len() as u32; numbers.len()];
                for (class, id) in (0..).zip(&ids) {
                    if let Some(&number) = numbers.get(id) {
                        classes[number as usize] = class;
                    }
                }
                classes
            }
        }
    }
}

/// The place of sums that grow as they are needed.
fn of<T: Default>(all: &mut Vec<T>, class: usize) -> &mut T {
    if all.len() <= class {
        all.resize_with(class + 1, T::default);
    }
    &mut all[class]
}

impl Kept {
    /// A block is heard of.
    pub fn birth(&mut self, one: &One<'_>, lives: &Lives, blocks: &Blocks) {
        for living in self.living.iter_mut().flatten() {
            living.birth(one, lives, blocks);
        }
    }

    /// A block that was heard of is gone.
    pub fn end(&mut self, one: &One<'_>, lives: &Lives) {
        for living in self.living.iter_mut().flatten() {
            living.end(one, lives);
        }
    }

    /// A block that was young is promoted by the runtime.
    pub fn promote(&mut self, one: &One<'_>) {
        for living in self.living.iter_mut().flatten() {
            living.promote(one);
        }
    }

    /// Whether anybody has to be told what happens to blocks.
    pub fn listens(&self) -> bool {
        self.living.iter().any(Option::is_some)
    }

    /// Those that nobody asks for any more go.
    pub fn forget(&mut self, now_ns: u64) {
        for living in &mut self.living {
            living.take_if(|living| living.is_forgotten(now_ns));
        }
    }
}

const fn place(by: By) -> Option<usize> {
    match by {
        By::Size => Some(0),
        By::Thread => Some(1),
        By::Group | By::Stack => None,
    }
}

impl Session {
    /// The present of all sizes or threads. `None` of anything else, and where it takes a
    /// pass: before the first snapshot has ended, and if an agent tells of more cycles at
    /// once than there can be.
    pub(super) fn present(&self, cut: &Cut) -> Option<Then> {
        let at = place(cut.by).filter(|_| cut.only.is_none())?;
        let bounds = Bounds::new(self, When::At(self.now_ns)).on_grid();
        if !bounds.in_use || self.blocks.latest_us() > bounds.end_us {
            return None;
        }
        let mut kept = self.then.present.borrow_mut();
        let Kept { over, living } = &mut *kept;
        let over = &mut over[at];
        over.go_on(self, &bounds, at, usize::MAX);
        if !over.is_whole() {
            return None;
        }
        let living = match &mut living[at] {
            Some(living) if living.is_of(self, &bounds) => living,
            other => other.insert(Living::new(self, &bounds, at)),
        };
        living.go_on(self, &bounds);

        let count = super::by::Kind::of(self, cut.by).count(self);
        let mut groups = vec![OfGroup::default(); count];
        let mut ages = Vec::new();
        ages.resize_with(count, Ages::default);
        let mut trend = Trend::on_grid(&bounds, count);
        over.add_to(self, &mut groups, &mut ages, &mut trend);
        living.add_to(self, &mut groups, &mut ages, &mut trend);
        self.add_windows(&bounds, cut.by, &mut groups);
        let mut sets = Sets { groups, ..Sets::default() };
        sets.add_whole();
        Some(Then::whole_of(cut.clone(), bounds, sets, ages, trend))
    }

    /// What was allocated in the window of rates, and what of it was promoted.
    fn add_windows(&self, bounds: &Bounds, by: By, groups: &mut [OfGroup]) {
        let kind = super::by::Kind::of(self, by);
        let mut weights = Weights::new();
        let mut add = |one: &Seen, weight: &Weight| {
            let class = kind.class(one.stack, one.size, one.thread);
            let Some(group) = class.and_then(|class| groups.get_mut(class as usize)) else {
                return;
            };
            group.window.add(weight);
            if one.promoted && bounds.counts(one.born_clock, true) {
                group.survived.add(weight);
            }
        };
        for life in self.lives.born_within(bounds.window_us, bounds.window_end_us) {
            add(&Seen::life(&life), weights.of(life.interval, life.size));
        }
        for (_, block) in self.blocks.born(|us| bounds.in_window(us)) {
            add(&Seen::living(block, bounds), weights.of(block.interval, block.size));
        }
    }

    /// Goes through some lives ahead of their being asked for. How many are left.
    pub(super) fn look_ahead_at_present(&self, bounds: &Bounds, most: usize) -> usize {
        let mut kept = self.then.present.borrow_mut();
        let over = kept.over.iter_mut().enumerate();
        over.fold(most, |left, (at, over)| over.go_on(self, bounds, at, left))
    }
}

/// Another part of a class' totals.
fn merge(totals: &mut Totals, [in_use, allocated, minor, promoted]: [&Total; 4]) {
    totals.in_use.merge(in_use);
    totals.allocated.merge(allocated);
    totals.minor.merge(minor);
    totals.promoted.merge(promoted);
}
