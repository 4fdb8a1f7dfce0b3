//! What each thread allocated, what of it lives, and who freed the rest.
//!
//! At present sums over all lives that are over go on where they stopped, and those of the
//! living are kept up ([`standing`](super::standing)); what is left is the window of rates.

use super::bounds::Bounds;
use super::by::{By, Cut};
use super::only::{Only, Seen};
use super::standing::Purpose;
use super::weights::Weights;
use super::{Session, When};
use crate::session::lives::{End, Life, Place};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;

/// Stands for all threads that lives have no room to tell apart.
pub const OTHERS: ThreadId = ThreadId(u16::MAX as u32);

/// The blocks that one thread allocated.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfThread {
    /// Since the viewer came, or in the range.
    pub allocated: Total,
    /// In the window of rates.
    pub window: Total,
    /// Alive at the end.
    pub in_use: Total,
    /// Freed since the viewer came, or in the range, by whomever it is known of.
    pub freed: Total,
    /// Those of them that another thread freed.
    pub freed_elsewhere: Total,
}

impl OfThread {
    fn lives(&mut self, born_after_us: u64, born_us: u64, weight: &Weight) {
        if born_us > born_after_us {
            self.allocated.add(weight);
        }
        self.in_use.add(weight);
    }

    fn over(&mut self, born_after_us: u64, life: &Life, weight: &Weight) {
        if life.born_us > born_after_us {
            self.allocated.add(weight);
        }
        if matches!(life.end, End::Freed | End::FreedElsewhere) {
            self.freed.add(weight);
            if life.end == End::FreedElsewhere {
                self.freed_elsewhere.add(weight);
            }
        }
    }

    fn window(&mut self, bounds: &Bounds, born_us: u64, weight: &Weight) {
        if bounds.in_window(born_us) {
            self.window.add(weight);
        }
    }
}

/// As lives keep it.
fn kept(id: ThreadId) -> ThreadId {
    ThreadId(id.0.min(OTHERS.0))
}

type Threads = FxHashMap<ThreadId, OfThread>;

/// Of all lives that are over, as far as they were gone through: what each thread did with
/// them, but for the window of rates. Once over they stay so.
#[derive(Debug, Default)]
pub struct Over {
    /// How often lives were rewritten, and since when births are counted.
    key: (u64, u64),
    until: Place,
    threads: Threads,
}

impl Over {
    /// Goes on, over so many lives at most. How many are left.
    fn go_on(&mut self, session: &Session, bounds: &Bounds, most: usize) -> usize {
        let key = (session.lives.rewritten(), bounds.born_after_us);
        if self.key != key {
            *self = Self { key, ..Self::default() };
        }
        let mut weights = Weights::new();
        let born_after = bounds.born_after_us;
        session.lives.go_on(&mut self.until, most, |life| {
            if life.ended_us > born_after {
                let weight = weights.of(life.interval, life.size);
                self.threads.entry(kept(life.thread)).or_default().over(born_after, life, weight);
            }
        })
    }
}

impl Session {
    /// Goes through some lives ahead of their being asked for. How many are left.
    pub(super) fn look_ahead_at_threads(&self, bounds: &Bounds, most: usize) -> usize {
        self.then.threads.borrow_mut().go_on(self, bounds, most)
    }
}

/// By thread.
pub fn of(session: &Session, bounds: &Bounds, cut: &Cut) -> Threads {
    if bounds.when == When::Peak || !bounds.in_use {
        return Threads::default();
    }
    let ends = [bounds.born_after_us];
    let by_thread = Cut { by: By::Thread, only: cut.only.clone() };
    let standing = session.standing(bounds, &by_thread, Purpose::Growth, &ends);
    let Some(standing) = standing.filter(|_| matches!(bounds.when, When::At(_))) else {
        return pass(session, bounds, cut.only.as_deref());
    };
    let mut over = session.then.threads.borrow_mut();
    over.go_on(session, bounds, usize::MAX);
    let mut threads = over.threads.clone();
    let ids = session.thread_classes();
    // Who was not told of yet has no class of his own.
    if standing.of(ids.len() as u32).iter().any(|total| total.n > 0) {
        add_living(session, bounds, None, &mut threads, false);
    } else {
        for (id, of) in ids.iter().zip(standing.classes()).filter(|(_, of)| of[0].n + of[1].n > 0) {
            let thread = threads.entry(*id).or_default();
            thread.allocated.merge(&of[1]);
            for total in of {
                thread.in_use.merge(total);
            }
        }
    }
    add_window(session, bounds, &mut threads);
    threads
}

/// The living, one by one; what of them is in the window of rates where that is wanted.
fn add_living(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Only>,
    threads: &mut Threads,
    window: bool,
) {
    let taken = |one: &Seen| only.is_none_or(|only| only.takes(one, bounds));
    let mut weights = Weights::new();
    for (_, block) in session.blocks.iter() {
        let born_us = block.born_us();
        if born_us <= bounds.end_us && taken(&Seen::living(block, bounds)) {
            let weight = weights.of(block.interval, block.size);
            let thread = threads.entry(kept(block.thread)).or_default();
            if window {
                thread.window(bounds, born_us, weight);
            }
            thread.lives(bounds.born_after_us, born_us, weight);
        }
    }
}

/// What was born in the window of rates, dead or alive.
fn add_window(session: &Session, bounds: &Bounds, threads: &mut Threads) {
    let (from_us, end_us) = (bounds.window_us, bounds.window_end_us);
    let mut weights = Weights::new();
    // Most are of the thread that the one before is of.
    let (mut last, mut sum) = (OTHERS, Total::default());
    let mut add = |id: ThreadId, weight: &Weight| {
        if id != last {
            if sum.n > 0 {
                threads.entry(last).or_default().window.merge(&sum);
            }
            (last, sum) = (id, Total::default());
        }
        sum.add(weight);
    };
    for life in session.lives.born_within(from_us, end_us) {
        add(kept(life.thread), weights.of(life.interval, life.size));
    }
    for (_, block) in session.blocks.born(|born| from_us < born && born <= end_us) {
        add(kept(block.thread), weights.of(block.interval, block.size));
    }
    if sum.n > 0 {
        threads.entry(last).or_default().window.merge(&sum);
    }
}

/// The same of any moment, or range.
pub fn pass(session: &Session, bounds: &Bounds, only: Option<&Only>) -> Threads {
    let taken = |one: &Seen| only.is_none_or(|only| only.takes(one, bounds));
    let mut threads = Threads::default();
    let mut weights = Weights::new();
    // Nobody's death before the beginning is counted, and no life that was over by then.
    for life in session.lives.within(0, bounds.born_after_us, bounds.end_us) {
        if !taken(&Seen::life(&life)) {
            continue;
        }
        let weight = weights.of(life.interval, life.size);
        let thread = threads.entry(kept(life.thread)).or_default();
        thread.window(bounds, life.born_us, weight);
        if bounds.end_us < life.ended_us {
            thread.lives(bounds.born_after_us, life.born_us, weight);
        } else {
            thread.over(bounds.born_after_us, &life, weight);
        }
    }
    add_living(session, bounds, only, &mut threads, true);
    threads
}
