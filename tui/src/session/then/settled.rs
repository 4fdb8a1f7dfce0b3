//! What no moment from some time on needs to add up again.
//!
//! A life that was over well before a moment adds to what was allocated, promoted and
//! followed by then, and the same to every later one. So sums over all lives up to the
//! end of every few chunks of the store are kept, and a moment takes the latest of them
//! that fits, and adds up what is behind it. Without them, a step of the cursor would
//! cost a pass over everything.
//!
//! They are made when they are first wanted, go on as chunks fill, and are thrown away
//! when the store is thinned or callstacks change their groups. Together they take
//! [`MOST_BYTES`] at most, or it is one alone: of many callstacks there are fewer.

use super::ages;
use super::bounds::Bounds;
use super::by::{By, Classes};
use super::totals::{Sets, dead};
use super::weights::Weights;
use super::{Session, When};
use crate::session::lifetimes::Ages;
use crate::session::lives::MOST_CHUNKS;
use heaptop_protocol::totals::Totals;
use std::sync::Arc;

/// See the module.
const MOST_BYTES: usize = 48 << 20;
/// Chunks from one to the next, at least: half a million lives.
const SPACING: usize = 8;
/// What the ages of a group take, about.
const GROUP_BYTES: usize = 1536;

/// Sums over the lives of the first chunks.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    /// How many chunks.
    pub chunks: usize,
    /// No life in them ended later.
    last_end_us: u64,
    /// No cycle of them ended later, on G.
    last_cycle: u64,
    /// By callstack, nothing in use.
    pub stacks: Vec<Totals>,
    /// By group.
    pub ages: Vec<Ages>,
}

/// All that are kept.
#[derive(Debug, Default)]
pub struct Settled {
    key: (u64, u64),
    checkpoints: Vec<Arc<Checkpoint>>,
}

impl Settled {
    /// The latest that is before the moment and its window of rates.
    pub fn before(&mut self, session: &Session, bounds: &Bounds) -> Option<Arc<Checkpoint>> {
        let key = (session.lives.rewritten(), session.book.regrouped());
        if self.key != key {
            *self = Self { key, checkpoints: Vec::new() };
        }
        self.go_on(session, bounds);
        let fits = |c: &&Arc<Checkpoint>| {
            c.last_end_us <= bounds.window_us && c.last_cycle <= bounds.cycles_until
        };
        self.checkpoints.iter().rev().find(fits).map(Arc::clone)
    }

    fn go_on(&mut self, session: &Session, bounds: &Bounds) {
        let (stacks, groups) = (session.book.stacks().len(), session.book.groups().numbers());
        let bytes = stacks * size_of::<Totals>() + groups * GROUP_BYTES;
        let most = (MOST_BYTES / bytes.max(1)).max(1);
        // The last chunk is not full.
        let full = session.lives.chunks().saturating_sub(1);
        let spacing = SPACING.max(MOST_CHUNKS / (most + 1));
        let mut next = match self.checkpoints.last() {
            Some(last) if last.chunks + spacing <= full => Checkpoint::clone(last),
            None if spacing <= full => Checkpoint::default(),
            _ => return,
        };
        let classes = Classes::of(session, By::Group);
        let mut weights = Weights::new();
        let settled = bounds.settled();
        let mut sets = Sets { stacks: std::mem::take(&mut next.stacks), ..Sets::default() };
        sets.fit(session);
        next.ages.resize_with(groups, Ages::default);
        while next.chunks + spacing <= full {
            for chunk in next.chunks..next.chunks + spacing {
                for life in session.lives.of_chunk(chunk) {
                    next.last_end_us = next.last_end_us.max(life.ended_us);
                    if life.born_young {
                        next.last_cycle = next.last_cycle.max(settled.cycle_end(life.born_clock));
                    }
                    let weight = weights.of(life.interval, life.size);
                    sets.add(&settled, &classes, &dead(&life, weight));
                    let class = classes.class(life.stack, life.size, life.thread);
                    if let Some(ages) = class.and_then(|class| next.ages.get_mut(class as usize)) {
                        let followed = ages::Followed::dead(&life, weight.objects);
                        ages::add(ages, &settled, &session.lives, &followed);
                    }
                }
            }
            next.chunks += spacing;
            next.stacks.clone_from(&sets.stacks);
            self.checkpoints.push(Arc::new(next.clone()));
        }
    }
}

impl Session {
    /// What of a moment needs not be added up again.
    pub(super) fn settled(&self, bounds: &Bounds) -> Option<Arc<Checkpoint>> {
        if !matches!(bounds.when, When::At(_)) {
            return None;
        }
        self.then.settled.borrow_mut().before(self, bounds)
    }
}
