//! How long minor blocks live on the allocation clock: what other nurseries would promote.
//!
//! It is made of single blocks, the living and those whose lives are over, and of what
//! happened since the viewer came: what was before is unknown, not zero.
//!
//! **Cost.** A pass over the blocks that are wanted. Of all blocks up to the present, what
//! is over stays so: its sums are kept and go on where they stopped, and the pass is over
//! the living alone. So it is for some of them ([`Only`]), as long as they are the same.

use super::Session;
use super::blocks::Block;
use super::estimate;
use super::estimate::curve::Curve;
use super::estimate::survival::{Mass, Table, bucket};
use super::estimate::what_if::{Blur, Crossings, what_if};
use super::figures::{Followed, Ratio};
use super::lives::{End, Life, Place};
use super::then::bounds::Bounds;
use super::then::only::{Only, Seen};
use super::then::weights::Weights;
use super::when::When;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::Moment;
use heaptop_protocol::totals::Totals;
use std::cell::RefCell;
use std::sync::Arc;

/// Most bytes that a thread has allocated and not booked on G yet.
const UNBOOKED_BYTES: f64 = 65_536.0;

/// From so many effective blocks on those that were sure to be seen leave nothing to
/// chance.
const MANY: f64 = 30.0;

/// How long minor blocks live on the allocation clock, weighted in bytes.
#[derive(Debug, Clone)]
pub struct Minor {
    /// The survival curve, over bytes of allocation by the process.
    pub curve: Curve,
    /// How sharp lives are known.
    pub blur: Blur,
    /// How long those lived that were promoted.
    pub crossings: Crossings,
    /// N as configured, and the promotion rate that was measured at it.
    own: Option<(u64, Ratio)>,
}

impl Minor {
    /// The promotion rate at a nursery of `bytes`: what was measured where it is the
    /// one that is configured, else what lives say.
    #[must_use]
    pub fn at(&self, bytes: u64) -> Followed {
        match self.own {
            Some((own, ratio)) if own == bytes => match ratio {
                Ratio::Unknown => Followed::Unknown,
                Ratio::Interval { value, low, high, samples } => {
                    Followed::Interval { value, low, high, samples }
                }
            },
            _ => what_if(&self.curve, bytes, self.blur),
        }
    }
}

/// From when to when blocks are followed, in microseconds since the agent's start and on G.
#[derive(Debug, Clone)]
struct Within {
    /// Which blocks alone, and as of when they are chosen.
    only: Option<(Arc<Only>, Bounds)>,
    begin_us: u64,
    end_us: u64,
    /// Who was born before enters no earlier.
    since_clock: u64,
    /// Who lives leaves there.
    until_clock: u64,
    /// Larger blocks are not born young.
    most_bytes: u64,
}

impl Within {
    /// Whoever is over is chosen as he is ever after.
    fn settled(&self) -> Self {
        let only = self.only.as_ref().map(|(only, at)| (Arc::clone(only), at.settled()));
        Self { only, ..*self }
    }

    fn takes_life(&self, life: &Life) -> bool {
        let chosen = |(only, at): &(Arc<Only>, Bounds)| only.takes(&Seen::life(life), at);
        life.size <= self.most_bytes && self.only.as_ref().is_none_or(chosen)
    }

    fn takes_living(&self, block: &Block) -> bool {
        let chosen = |(only, at): &(Arc<Only>, Bounds)| only.takes(&Seen::living(block, at), at);
        block.size <= self.most_bytes && self.only.as_ref().is_none_or(chosen)
    }
}

/// Sums over blocks. Blocks that were sure to be seen leave nothing to chance. But they also
/// stand for those of a time when R was coarser, as long as hardly any of these were seen: so
/// they count as all others while blocks are effectively few. Which it is is known at the
/// end, so both are added up.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// With what chance leaves of each block.
    by_chance: Table,
    /// As if all was chance.
    by_weight: Table,
    crossings: Crossings,
    w: f64,
    w2: f64,
    dead: f64,
    elsewhere: f64,
}

/// Of all lives that are over, as far as they were gone through.
#[derive(Debug, Default)]
pub(super) struct Kept(RefCell<[Over; 2]>);

/// What lives and their beginnings are, which of them, and how callstacks are called.
type OverKey = (u64, Option<Moment>, Option<Arc<Only>>, u64);

#[derive(Debug, Default)]
struct Over {
    key: Option<OverKey>,
    until: Place,
    sums: Sums,
}

impl Sums {
    fn add(&mut self, w: &Weight, to: impl Fn(&mut Table, Mass)) {
        to(&mut self.by_chance, Mass { w: w.bytes, w2: w.bytes_variance });
        to(&mut self.by_weight, Mass { w: w.bytes, w2: w.bytes * w.bytes });
    }

    /// A block comes into sight, and leaves at an age of bucket `leaves`. A birth is known
    /// to 4 KiB: nobody enters later than it leaves.
    fn enter(
        &mut self,
        session: &Session,
        within: &Within,
        (listed, us, born): (bool, u64, u64),
        leaves: u16,
        w: &Weight,
    ) {
        self.w += w.bytes;
        self.w2 += w.bytes * w.bytes;
        let since = within.since_clock;
        let seen = session.lives.first_seen(listed, us).map_or(born, |seen| seen.clock);
        let seen = if born < since { seen.max(since) } else { seen };
        if seen > born {
            self.add(w, |table, mass| table.entered(bucket(seen - born).min(leaves), mass));
        }
        self.by_chance.n_blocks += 1;
        self.by_weight.n_blocks += 1;
    }

    fn life(&mut self, session: &Session, within: &Within, life: &Life, w: &Weight) {
        let age = life.clock_age;
        let left = bucket(within.until_clock.saturating_sub(life.born_clock));
        let later = life.ended_us > within.end_us;
        let leaves = if later { age.min(left) } else { age };
        let birth = (life.listed, life.born_us, life.born_clock);
        self.enter(session, within, birth, leaves, w);
        let crossed = life.promoted && life.born_clock >= within.since_clock;
        if crossed && (life.end == End::Lost || later) {
            self.crossings.lives(w.bytes);
        } else if crossed {
            self.crossings.died(age, w.bytes);
        }
        if life.end == End::Lost || later {
            return self.add(w, |table, mass| table.censored(leaves, mass));
        }
        self.add(w, |table, mass| table.died(age, mass));
        self.by_chance.n_deaths += 1;
        self.by_weight.n_deaths += 1;
        self.dead += w.bytes;
        self.elsewhere += if life.end == End::Freed { 0.0 } else { w.bytes };
    }

    fn living(&mut self, session: &Session, within: &Within, wanted: impl Fn(u32) -> bool) {
        let mut weights = Weights::new();
        for (_, b) in session.blocks.of_stacks(wanted) {
            let us = b.born_us();
            if us > within.end_us || !within.takes_living(b) {
                continue;
            }
            let w = weights.of(b.interval, b.size);
            let age = bucket(within.until_clock.saturating_sub(b.born_clock));
            self.enter(session, within, (b.listed, us, b.born_clock), age, w);
            self.add(w, |table, mass| table.censored(age, mass));
            if b.born_young && !b.young && b.born_clock >= within.since_clock {
                self.crossings.lives(w.bytes);
            }
        }
    }

    fn minor(&self, session: &Session) -> Minor {
        let exact = session.course.sight().interval == Some(Interval::EXACT);
        let many = exact || self.w * self.w >= MANY * self.w2;
        let share = if self.dead > 0.0 { self.elsewhere / self.dead } else { 0.0 };
        let bytes = UNBOOKED_BYTES * session.threads.len().max(1) as f64;
        let curve = Curve::of(if many { &self.by_chance } else { &self.by_weight });
        let crossings = self.crossings.clone();
        Minor { curve, blur: Blur { bytes, share }, crossings, own: None }
    }
}

impl Over {
    /// Goes on, over so many lives at most. How many are left.
    fn go_on(&mut self, session: &Session, within: &Within, most: usize) -> usize {
        let only = within.only.as_ref().map(|(only, _)| Arc::clone(only));
        let names = if only.is_some() { session.book.renamed() } else { 0 };
        let lives = &session.lives;
        let key = Some((lives.rewritten(), lives.since(), only, names));
        if self.key != key {
            *self = Self { key, ..Self::default() };
        }
        let mut weights = Weights::new();
        session.lives.go_on(&mut self.until, most, |life| {
            if within.takes_life(life) {
                let w = weights.of(life.interval, life.size);
                self.sums.life(session, within, life, w);
            }
        })
    }
}

impl Session {
    /// The lives of the wanted callstacks' minor blocks.
    #[must_use]
    pub fn minor_lives(&self, wanted: impl Fn(u32) -> bool + Copy) -> Minor {
        let own = self.hello.as_ref().map(|hello| {
            let mut totals = Totals::default();
            for (_, numbers) in (0..).zip(&self.numbers).filter(|(stack, _)| wanted(*stack)) {
                totals.merge(&numbers.totals);
            }
            (hello.nursery_bytes, estimate::share(&totals.promoted, &totals.minor))
        });
        Minor { own, ..self.minor_lives_at(When::Now, wanted) }
    }

    /// The same as far as they could be followed from the beginning of a range, or ever,
    /// until its end, or a moment, without what was measured at the nursery that is
    /// configured.
    #[must_use]
    pub fn minor_lives_at(&self, when: When, wanted: impl Fn(u32) -> bool + Copy) -> Minor {
        self.minor_lives_of(when, None, wanted)
    }

    /// The same of some blocks alone.
    #[must_use]
    pub fn minor_lives_of(
        &self,
        when: When,
        only: Option<&Arc<Only>>,
        wanted: impl Fn(u32) -> bool + Copy,
    ) -> Minor {
        let within = self.followed_within(when, only);
        let mut sums = Sums::default();
        let mut weights = Weights::new();
        for life in self.lives.of_within(0, within.begin_us, within.end_us, wanted) {
            if within.takes_life(&life) {
                let w = weights.of(life.interval, life.size);
                sums.life(self, &within, &life, w);
            }
        }
        sums.living(self, &within, wanted);
        sums.minor(self)
    }

    /// The same of all callstacks.
    #[must_use]
    pub fn all_minor_lives_at(&self, when: When, only: Option<&Arc<Only>>) -> Minor {
        if when.until(self.now_ns) != When::Now {
            return self.minor_lives_of(when, only, |_| true);
        }
        let within = self.followed_within(When::Now, only);
        let mut kept = self.minor.0.borrow_mut();
        // All, and some of them: these are no others so long as the same are asked for.
        let over = &mut kept[usize::from(only.is_some())];
        over.go_on(self, &within.settled(), usize::MAX);
        let mut sums = over.sums.clone();
        sums.living(self, &within, |_| true);
        sums.minor(self)
    }

    /// Goes through some lives ahead of their being asked for. How many are left.
    pub(super) fn look_ahead_at_minor_lives(&self, most: usize) -> usize {
        let within = self.followed_within(When::Now, None);
        self.minor.0.borrow_mut()[0].go_on(self, &within, most)
    }

    fn followed_within(&self, when: When, only: Option<&Arc<Only>>) -> Within {
        let (begin, end) = match when.until(self.now_ns) {
            When::At(at) => (0, at),
            When::Range { from_ns, to_ns } => (from_ns, to_ns),
            When::Now | When::Peak => (0, u64::MAX),
        };
        // G at both: who lived before the one enters late, who lives at the other leaves.
        let since = if begin > 0 { self.clock.at(begin) } else { 0 };
        let at = only.map(|only| (Arc::clone(only), self.bounds(when)));
        Within {
            only: at,
            begin_us: begin / 1000,
            end_us: end / 1000,
            since_clock: self.lives.since().map_or(u64::MAX, |since| since.clock).max(since),
            until_clock: if end < self.now_ns { self.clock.at(end) } else { self.now_clock },
            most_bytes: self.hello.as_ref().map_or(u64::MAX, |hello| hello.max_young_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::session::figures::Change;

    const KIB: u64 = 1 << 10;

    /// Half of the bytes live 256 KiB of allocation, half stay.
    #[test]
    fn lives_on_the_clock_tell_of_other_nurseries() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let mut waiting = std::collections::VecDeque::new();
        for i in 0..4096 {
            let id = f.alloc(stack, KIB);
            if i % 2 == 0 {
                waiting.push_back(id);
            }
            if waiting.len() > 128 {
                f.free(waiting.pop_front().unwrap());
            }
        }
        f.report();
        let minor = f.session.minor_lives(|_| true);
        for (n, want) in [(64 * KIB, 1.0), (512 * KIB, 0.75), (1024 * KIB, 0.625)] {
            let Followed::Interval { value, .. } = minor.at(n) else { panic!("followed") };
            assert!((value - want).abs() < 0.02, "{n}: {value} is not {want}");
        }
        let half = minor.curve.survival(512.0 * 1024.0);
        let Followed::Interval { value, .. } = half else { panic!("followed") };
        assert!((value - 0.5).abs() < 0.02, "{value}");
        // The programme has allocated 4 MiB: further nobody was followed.
        assert!(matches!(minor.at(64 << 20), Followed::Bounds { .. }));
    }

    /// The rate at the nursery that the agent has is measured, not made of lives.
    #[test]
    fn at_its_own_nursery_the_measured_rate_stands() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let kept = f.alloc(stack, 300);
        f.promote(kept);
        let brief = f.alloc(stack, 100);
        f.free(brief);
        f.report();
        let own = f.session.minor_lives(|_| true).at(2 << 20);
        assert_eq!(own, Followed::Interval { value: 0.75, low: 0.75, high: 0.75, samples: 2 });
    }

    /// A viewer that comes late lists what lives: old blocks that say nothing of young
    /// ages. Young ones die at once, old ones all live.
    #[test]
    fn who_was_there_before_enters_late() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        for _ in 0..100 {
            f.birth(stack, KIB);
        }
        f.time_ns += 1_000_000_000;
        f.clock += 1 << 20;
        f.snapshot();
        let from = f.time_ns;
        f.pass(1.0);
        for _ in 0..100 {
            let id = f.alloc(stack, KIB);
            f.free(id);
        }
        f.pass(1.0);
        let minor = f.session.minor_lives(|_| true);
        let Followed::Interval { value, .. } = minor.curve.survival(8.0 * 1024.0) else {
            panic!("followed")
        };
        assert_eq!(value, 0.0, "all whose youth was seen died young");
        assert_eq!(f.session.growth(from, f.time_ns, |_| true), Change::Exact { value: 0.0 });
    }

    /// As of a moment of the past nobody knows who dies after it, and as of a range not
    /// who died before.
    #[test]
    fn lives_are_followed_within_what_is_asked() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let half = |f: &mut Fixture, keep: bool| {
            f.time_ns += 1_000_000_000;
            for _ in 0..200 {
                let id = f.alloc(stack, KIB);
                if !keep {
                    f.free(id);
                }
            }
            f.pass(10.0);
            f.time_ns
        };
        let first = half(&mut f, true);
        let second = half(&mut f, false);
        let survival = |when| {
            let minor = f.session.minor_lives_at(when, |_| true);
            match minor.curve.survival(16.0 * 1024.0) {
                Followed::Interval { value, .. } => value,
                other => panic!("{when:?}: {other:?}"),
            }
        };
        assert_eq!(survival(When::At(first)), 1.0);
        assert!(survival(When::Range { from_ns: first, to_ns: second }) < 0.01);
        assert!((survival(When::Now) - 0.5).abs() < 0.05);
    }

    /// Blocks too large to be born young are in no minor figure.
    #[test]
    fn large_blocks_have_no_part() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        f.alloc(stack, 1 << 20);
        f.report();
        assert_eq!(f.session.minor_lives(|_| true).curve.survival(10.0), Followed::Unknown);
    }

    /// Sums that are kept go on where they stopped, and change nothing: beside those of a
    /// pass over all, after every step.
    #[test]
    fn sums_that_go_on_are_those_of_a_pass_over_all() {
        let mut f = Fixture::new(64);
        let stacks = [f.stack(&["main", "a"]), f.stack(&["main", "b"])];
        let mut living = Vec::new();
        for i in 0..300u64 {
            let id = f.alloc(stacks[i as usize % 2], 1 + (i * 37) % 4000);
            living.push(id);
            if i % 3 > 0 {
                let id = living.swap_remove((i * 7) as usize % living.len());
                f.free(id);
            }
            if i == 150 {
                f.snapshot();
            }
            if i % 10 == 0 {
                f.report();
                let (kept, anew) = (
                    f.session.all_minor_lives_at(When::Now, None),
                    f.session.minor_lives_at(When::Now, |_| true),
                );
                assert_eq!(format!("{kept:?}"), format!("{anew:?}"), "after {i}");
            }
        }
        assert!(f.session.minor.0.borrow()[0].until != Place::default());
    }
}
