//! What each thread allocated, what of it lives, and who freed the rest.

use super::bounds::Bounds;
use super::only::{Only, Seen};
use super::weights::Weights;
use super::{Session, When};
use crate::session::lives::End;
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
    fn add(&mut self, bounds: &Bounds, born_us: u64, alive: bool, weight: &Weight) {
        if born_us > bounds.born_after_us {
            self.allocated.add(weight);
        }
        if born_us > bounds.window_us {
            self.window.add(weight);
        }
        if alive {
            self.in_use.add(weight);
        }
    }
}

/// As lives keep it.
fn kept(id: ThreadId) -> ThreadId {
    ThreadId(id.0.min(OTHERS.0))
}

/// By thread.
pub fn of(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Only>,
) -> FxHashMap<ThreadId, OfThread> {
    let mut threads: FxHashMap<ThreadId, OfThread> = FxHashMap::default();
    if bounds.when == When::Peak || !bounds.in_use {
        return threads;
    }
    let taken = |one: &Seen| only.is_none_or(|only| only.takes(one, bounds));
    let mut weights = Weights::new();
    // Nobody's death before the beginning is counted, and no life that was over by then.
    for life in session.lives.within(0, bounds.born_after_us, bounds.end_us) {
        if !taken(&Seen::life(&life)) {
            continue;
        }
        let weight = weights.of(life.interval, life.size);
        let alive = bounds.end_us < life.ended_us;
        let thread = threads.entry(kept(life.thread)).or_default();
        thread.add(bounds, life.born_us, alive, weight);
        if !alive && matches!(life.end, End::Freed | End::FreedElsewhere) {
            thread.freed.add(weight);
            if life.end == End::FreedElsewhere {
                thread.freed_elsewhere.add(weight);
            }
        }
    }
    for (_, block) in session.blocks.iter() {
        let born_us = block.born_ns / 1000;
        if born_us <= bounds.end_us && taken(&Seen::living(block, bounds)) {
            let weight = weights.of(block.interval, block.size);
            threads.entry(kept(block.thread)).or_default().add(bounds, born_us, true, weight);
        }
    }
    threads
}
