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
//! [`MOST_BYTES`] at most, or it is one alone: of many callstacks there are fewer. Of sizes
//! and threads, which are few, there is one for each chunk, and they are made ahead of
//! their being asked for, a chunk a refresh of the screen ([`Session::look_ahead`]).

use super::ages;
use super::bounds::Bounds;
use super::by::{By, Classes};
use super::totals::{OfGroup, Sets, dead};
use super::weights::Weights;
use super::{Session, When};
use crate::session::lifetimes::Ages;
use crate::session::lives::MOST_CHUNKS;
use heaptop_protocol::totals::Totals;
use std::sync::Arc;

/// See the module.
const MOST_BYTES: usize = 48 << 20;
/// Chunks from one to the next, at least, of callstacks: half a million lives.
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
    /// By callstack, or by another class; nothing in use.
    pub totals: Vec<Totals>,
    /// By group, or by another class.
    pub ages: Vec<Ages>,
}

/// All that are kept, of one kind of classes.
#[derive(Debug, Default)]
pub struct Settled {
    key: (u64, u64),
    checkpoints: Vec<Arc<Checkpoint>>,
}

impl Settled {
    /// The latest that is before the moment and its window of rates.
    fn before(&mut self, session: &Session, bounds: &Bounds, by: By) -> Option<Arc<Checkpoint>> {
        self.go_on(session, bounds, by, usize::MAX);
        let fits = |c: &&Arc<Checkpoint>| {
            c.last_end_us <= bounds.window_us && c.last_cycle <= bounds.cycles_until
        };
        self.checkpoints.iter().rev().find(fits).map(Arc::clone)
    }

    /// Makes those that can be made, `most` of them.
    fn go_on(&mut self, session: &Session, bounds: &Bounds, by: By, most: usize) {
        let key = (session.lives.rewritten(), session.classes_revision(by));
        if self.key != key {
            *self = Self { key, checkpoints: Vec::new() };
        }
        // The last chunk is not full.
        let full = session.lives.chunks().saturating_sub(1);
        let made = self.checkpoints.last().map_or(0, |last| last.chunks);
        let least = if by == By::Group { SPACING } else { 1 };
        if made + least > full {
            return;
        }
        let classes = Classes::of(session, by);
        let groups = classes.count(session);
        let places = if by == By::Group { session.book.stacks().len() } else { groups };
        let bytes = places * size_of::<Totals>() + groups * GROUP_BYTES;
        let room = (MOST_BYTES / bytes.max(1)).max(1);
        let spacing = least.max(MOST_CHUNKS / (room + 1));
        if made + spacing > full {
            return;
        }
        let mut next = self.checkpoints.last().map(|c| Checkpoint::clone(c)).unwrap_or_default();
        let mut weights = Weights::new();
        let settled = bounds.settled();
        let mut sets = Sets::default();
        next.totals.resize(places, Totals::default());
        if by == By::Group {
            sets.stacks = std::mem::take(&mut next.totals);
        } else {
            let totals = next.totals.drain(..);
            sets.groups = totals.map(|totals| OfGroup { totals, ..OfGroup::default() }).collect();
        }
        next.ages.resize_with(groups, Ages::default);
        for _ in 0..most {
            if next.chunks + spacing > full {
                break;
            }
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
            if by == By::Group {
                next.totals.clone_from(&sets.stacks);
            } else {
                next.totals = sets.groups.iter().map(|group| group.totals).collect();
            }
            self.checkpoints.push(Arc::new(next.clone()));
        }
    }
}

/// By kind of classes.
#[derive(Debug, Default)]
pub struct All {
    groups: Settled,
    sizes: Settled,
    threads: Settled,
}

impl All {
    const fn of(&mut self, by: By) -> &mut Settled {
        match by {
            By::Group => &mut self.groups,
            By::Size => &mut self.sizes,
            By::Thread => &mut self.threads,
        }
    }
}

impl Session {
    /// What of a moment needs not be added up again.
    pub(super) fn settled(&self, bounds: &Bounds, by: By) -> Option<Arc<Checkpoint>> {
        if !matches!(bounds.when, When::At(_)) {
            return None;
        }
        self.then.settled.borrow_mut().of(by).before(self, bounds, by)
    }

    /// Adds up a little of what will be asked for when a screen is opened that needs the
    /// past: at most a chunk of lives of each kind.
    pub fn look_ahead(&self) {
        let full = self.lives.chunks().saturating_sub(1);
        if full == 0 || self.span().is_none() {
            return;
        }
        let bounds = Bounds::new(self, When::At(self.now_ns));
        let mut settled = self.then.settled.borrow_mut();
        for by in [By::Size, By::Thread] {
            settled.of(by).go_on(self, &bounds, by, 1);
        }
        self.look_ahead_at_minor_lives();
    }
}
