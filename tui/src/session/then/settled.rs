//! What no moment from some time on needs to add up again.
//!
//! A life that was over well before a moment adds to what was allocated, promoted and
//! followed by then, and the same to every later one. So sums over all lives up to the
//! end of every few chunks of the store are kept, and a moment takes the latest of them
//! that fits, and adds up what is behind it. Without them, a step of the cursor would
//! cost a pass over everything.
//!
//! They are made ahead of their being asked for, a little with each refresh
//! ([`Session::look_ahead`]) and what is left with each slice of an answer
//! ([`super::making`]), go on as chunks fill, and are thrown away when the store is thinned or
//! callstacks change their groups. Together they take [`MOST_BYTES`] at most, or it is one
//! alone: of many callstacks there are fewer. Of sizes and threads, which are few, there is
//! one for each chunk. Of some blocks alone ([`super::only`]) they are kept for what was asked
//! about last, and made when they are first wanted.

use super::ages;
use super::bounds::Bounds;
use super::by::{By, Classes, Cut, Kind};
use super::only::Seen;
use super::totals::{OfGroup, Sets, dead};
use super::weights::Weights;
use super::{Session, When};
use crate::session::lifetimes::Ages;
use crate::session::lives::{MOST_CHUNKS, Place};
use heaptop_protocol::totals::Totals;
use std::sync::Arc;

/// See the module.
const MOST_BYTES: usize = 48 << 20;
/// Chunks from one to the next, at least, of callstacks: half a million lives.
const SPACING: usize = 8;
/// Lives that a look ahead goes through, whatever for, beside those that have come since the
/// last: these it goes through for each of what it is for, so that it never falls behind,
const AHEAD: usize = 1 << 11;
const PURPOSES: usize = 14;
/// One that is added up by callstack takes as long as so many others: each touches memory that
/// the one before has not.
const DEAR: usize = 4;
/// but no more than this.
const MOST_AHEAD: usize = 1 << 17;
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
    key: Option<(u64, [u64; 2], Cut)>,
    checkpoints: Vec<Arc<Checkpoint>>,
    /// Sums up to a place behind the last of them.
    open: Checkpoint,
    until: Place,
}

impl Settled {
    /// The latest that is before the moment and its window of rates.
    fn before(&mut self, session: &Session, bounds: &Bounds, cut: &Cut) -> Option<Arc<Checkpoint>> {
        self.go_on(session, bounds, cut, usize::MAX);
        let fits = |c: &&Arc<Checkpoint>| {
            c.last_end_us <= bounds.window_us && c.last_cycle <= bounds.cycles_until
        };
        self.checkpoints.iter().rev().find(fits).map(Arc::clone)
    }

    /// Makes those that can be made, going through `most` lives. How many are left.
    fn go_on(&mut self, session: &Session, bounds: &Bounds, cut: &Cut, most: usize) -> usize {
        let by = cut.by;
        let key = Some((session.lives.rewritten(), session.cut_revision(cut), cut.clone()));
        if self.key != key {
            *self = Self { key, ..Self::default() };
        }
        // The last chunk is not full.
        let full = session.lives.chunks().saturating_sub(1);
        // The present of some blocks alone is a pass as well.
        let least = if by == By::Group && cut.only.is_none() { SPACING } else { 1 };
        if most == 0 || self.open.chunks + least > full {
            return most;
        }
        let settled = bounds.settled();
        let groups = Kind::count_of(session, by);
        let places = if by == By::Group { session.book.stacks().len() } else { groups };
        let bytes = places * size_of::<Totals>() + groups * GROUP_BYTES;
        let room = (MOST_BYTES / bytes.max(1)).max(1);
        let spacing = least.max(MOST_CHUNKS / (room + 1));
        // Of many callstacks what nobody may ever ask for takes no room before it can be made.
        if self.open.chunks + spacing > full {
            return most;
        }
        let classes = Classes::of(session, cut, &settled);
        let mut weights = Weights::new();
        let mut sets = Sets::default();
        self.open.totals.resize(places, Totals::default());
        let totals = std::mem::take(&mut self.open.totals);
        if by == By::Group {
            sets.stacks = totals;
        } else {
            let of = |totals| OfGroup { totals, ..OfGroup::default() };
            sets.groups = totals.into_iter().map(of).collect();
        }
        let totals = |sets: &Sets| -> Vec<Totals> {
            if by == By::Group {
                sets.stacks.clone()
            } else {
                sets.groups.iter().map(|group| group.totals).collect()
            }
        };
        let open = &mut self.open;
        open.ages.resize_with(groups, Ages::default);
        let mut left = most;
        // As far as the next one is wanted and can be made.
        while left > 0 && open.chunks + spacing <= full {
            let (lives, end) = session.lives.from_place(self.until, left);
            for life in lives {
                left = left.saturating_sub(1);
                open.last_end_us = open.last_end_us.max(life.ended_us);
                if life.born_young {
                    open.last_cycle = open.last_cycle.max(settled.cycle_end(life.born_clock));
                }
                let weight = weights.of(life.interval, life.size);
                sets.add(&settled, &classes, &dead(&life, weight));
                let class = classes.class(&Seen::life(&life));
                if let Some(ages) = class.and_then(|class| open.ages.get_mut(class as usize)) {
                    let followed = ages::Followed::dead(&life, weight.objects);
                    ages::add(ages, &settled, &session.lives, &followed);
                }
            }
            self.until = end;
            if end.chunk == open.chunks + spacing {
                open.chunks = end.chunk;
                let (totals, ages) = (totals(&sets), open.ages.clone());
                self.checkpoints.push(Arc::new(Checkpoint { totals, ages, ..*open }));
            }
        }
        open.totals =
            if by == By::Group { std::mem::take(&mut sets.stacks) } else { totals(&sets) };
        left
    }
}

/// By kind of classes.
#[derive(Debug, Default)]
pub struct All {
    groups: Settled,
    stacks: Settled,
    sizes: Settled,
    threads: Settled,
    /// Of some blocks alone: those that were asked about last, of two kinds of classes.
    some: [Settled; 2],
}

impl All {
    fn of(&mut self, cut: &Cut) -> &mut Settled {
        if cut.only.is_some() {
            let same = |settled: &Settled| settled.key.as_ref().is_some_and(|key| key.2 == *cut);
            if !same(&self.some[0]) {
                self.some.swap(0, 1);
            }
            return &mut self.some[0];
        }
        match cut.by {
            By::Group => &mut self.groups,
            By::Stack => &mut self.stacks,
            By::Size => &mut self.sizes,
            By::Thread => &mut self.threads,
        }
    }
}

impl Session {
    /// Makes what can be made of that, going through `most` lives. How many are left.
    pub(super) fn settle_ahead(&self, bounds: &Bounds, cut: &Cut, most: usize) -> usize {
        if !matches!(bounds.when, When::At(_)) {
            return most;
        }
        self.then.settled.borrow_mut().of(cut).go_on(self, bounds, cut, most)
    }

    /// What of a moment needs not be added up again.
    pub(crate) fn settled(&self, bounds: &Bounds, cut: &Cut) -> Option<Arc<Checkpoint>> {
        if !matches!(bounds.when, When::At(_)) {
            return None;
        }
        self.then.settled.borrow_mut().of(cut).before(self, bounds, cut)
    }

    /// Adds up a little of what will be asked for when a screen is opened that needs the
    /// past, first of what the present needs.
    pub fn look_ahead(&self) {
        if self.span().is_none() {
            return;
        }
        let came = self.lives.len().abs_diff(self.then.ahead.replace(self.lives.len()));
        let most = came.saturating_mul(PURPOSES).saturating_add(AHEAD).min(MOST_AHEAD);
        let bounds = Bounds::new(self, When::At(self.now_ns));
        let left = self.look_ahead_at_present(&bounds, most);
        let left = self.look_ahead_at_threads(&bounds, left);
        let left = self.look_ahead_at_growth(left);
        let mut left = self.look_ahead_at_minor_lives(left);
        let mut settled = self.then.settled.borrow_mut();
        for by in [By::Size, By::Thread, By::Group] {
            let cut = Cut::from(by);
            let each = if by == By::Group { DEAR } else { 1 };
            let most = left / each;
            left -= (most - settled.of(&cut).go_on(self, &bounds, &cut, most)) * each;
        }
        drop(settled);
        self.look_ahead_at_later_parts(left);
    }
}
