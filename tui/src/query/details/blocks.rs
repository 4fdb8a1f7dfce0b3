//! The pass over a callsite's blocks.

use super::super::filter::thread_name;
use super::{SizeRow, ThreadPart};
use crate::session::Session;
use crate::session::blocks::Block;
use crate::session::estimate::{self, Sight, survival};
use crate::session::lives::{End, Life};
use crate::session::then::bounds::Bounds;
use crate::session::then::by::size_class;
use crate::session::then::only::Seen;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Most threads and live blocks that are told.
const MOST_THREADS: usize = 8;
const MOST_BLOCKS: usize = 200;

/// Sums over the callsite's blocks.
#[derive(Debug, Default)]
pub struct Sums {
    pub sizes: FxHashMap<u32, (Total, Total)>,
    pub threads: FxHashMap<ThreadId, Total>,
    pub born: Total,
    pub by_realloc: Total,
    pub otherwise: Total,
    pub freed: Total,
    pub elsewhere: Total,
    /// By half: born in it, and in use at its end.
    pub halves: [(Total, Total); 2],
    /// In the later half of the time that growth is of: gained, and lost.
    pub later: [Total; 2],
    pub ages: FxHashMap<u16, f64>,
    pub deaths: u64,
}

/// One pass over the callsite's blocks: sums, the living, the oldest first, and how many
/// there are.
pub fn blocks<'a>(
    session: &'a Session,
    group: u32,
    members: &[bool],
    (times, later): ([u64; 3], u64),
    (at, chosen): (&Bounds, &impl Fn(&Seen) -> bool),
) -> (Sums, Vec<(BlockId, &'a Block)>, usize) {
    let mine = |stack: u32| members.get(stack as usize).is_some_and(|mine| *mine);
    let mut sums = Sums::default();
    let mut add = |life: &Life| {
        if !mine(life.stack) || !chosen(&Seen::life(life)) {
            return;
        }
        let w = life.weight();
        let one = One {
            born_us: life.born_us,
            ended_us: life.ended_us,
            size: life.size,
            thread: life.thread,
            cause: life.cause,
        };
        sums.add(&one, &w, times);
        // Who was lost sight of is not known to be dead.
        let ended_us = if life.end.is_death() { life.ended_us } else { u64::MAX };
        sums.turn(&One { ended_us, ..one }, &w, [later, times[2]]);
        if life.ended_us <= times[2] && life.end.is_death() {
            *sums.ages.entry(life.age / 8).or_default() += w.objects;
            sums.deaths += 1;
            if matches!(life.end, End::Freed | End::FreedElsewhere) {
                sums.freed.add(&w);
                if life.end == End::FreedElsewhere {
                    sums.elsewhere.add(&w);
                }
            }
        }
    };
    if let Some(lives) = session.lives_of(group) {
        let within = |l: &&Life| l.ended_us > times[0] && l.born_us <= times[2];
        lives.iter().filter(within).for_each(add);
    } else {
        let lives = session.lives_over().of_within(0, times[0], times[2], mine);
        lives.for_each(|life| add(&life));
    }
    let mut living: Vec<(BlockId, &Block)> = Vec::new();
    for (id, block) in session.live_blocks_of(mine) {
        let born_us = block.born_ns / 1000;
        if born_us > times[2] || !chosen(&Seen::living(block, at)) {
            continue;
        }
        let one = One {
            born_us,
            ended_us: u64::MAX,
            size: block.size,
            thread: block.thread,
            cause: block.cause,
        };
        sums.add(&one, &block.weight(), times);
        sums.turn(&one, &block.weight(), [later, times[2]]);
        living.push((id, block));
    }
    let blocks_len = living.len();
    living.sort_unstable_by_key(|(id, block)| (block.born_ns, *id));
    living.truncate(MOST_BLOCKS);
    (sums, living, blocks_len)
}

/// A block, dead or alive.
struct One {
    born_us: u64,
    ended_us: u64,
    size: u64,
    thread: ThreadId,
    cause: Cause,
}

impl Sums {
    fn add(&mut self, one: &One, w: &Weight, [from, middle, to]: [u64; 3]) {
        let sizes = self.sizes.entry(size_class(one.size)).or_default();
        let alive = |at: u64| one.born_us <= at && at < one.ended_us;
        if alive(to) {
            sizes.0.add(w);
            self.halves[1].1.add(w);
        }
        if alive(middle) {
            self.halves[0].1.add(w);
        }
        if one.born_us > from && one.born_us <= to {
            sizes.1.add(w);
            self.born.add(w);
            self.threads.entry(one.thread).or_default().add(w);
            let by = if one.cause == Cause::Realloc {
                &mut self.by_realloc
            } else {
                &mut self.otherwise
            };
            by.add(w);
            self.halves[usize::from(one.born_us > middle)].0.add(w);
        }
    }

    /// What is gained or lost from one time to another.
    fn turn(&mut self, one: &One, w: &Weight, [from, to]: [u64; 2]) {
        let alive = |at: u64| one.born_us <= at && at < one.ended_us;
        match (alive(from), alive(to)) {
            (false, true) => self.later[0].add(w),
            (true, false) => self.later[1].add(w),
            _ => {}
        }
    }

    pub fn sizes(&self, sight: Sight) -> Vec<SizeRow> {
        let mut classes: Vec<_> = self.sizes.iter().collect();
        classes.sort_unstable_by_key(|(class, _)| **class);
        classes
            .into_iter()
            .map(|(&class, (in_use, born))| SizeRow {
                above: if class == 0 { 0 } else { 1u64 << (class - 1) },
                to: 1u64.checked_shl(class).unwrap_or(u64::MAX),
                in_use_bytes: estimate::bytes(in_use, sight),
                allocated_bytes: estimate::bytes(born, sight),
            })
            .collect()
    }

    pub fn threads(&self, session: &Session) -> Vec<ThreadPart> {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_unstable_by_key(|(id, total)| (Reverse(total.bytes.sum.to_bits()), **id));
        threads.truncate(MOST_THREADS);
        let of = |(id, total): (&ThreadId, &Total)| ThreadPart {
            name: thread_name(session, *id),
            share: estimate::share(total, &self.born),
        };
        threads.into_iter().map(of).collect()
    }

    /// By octave.
    pub fn ages(&self) -> Vec<(f64, f64)> {
        let mut ages: Vec<_> = self.ages.iter().collect();
        ages.sort_unstable_by_key(|(octave, _)| **octave);
        let all: f64 = ages.iter().map(|(_, w)| **w).sum();
        ages.into_iter()
            .map(|(&octave, w)| (survival::begins((usize::from(octave) + 1) * 8), w / all))
            .collect()
    }
}
