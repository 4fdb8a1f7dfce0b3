//! An answer about the past that is made in slices.
//!
//! Of many lives a moment takes a pass of a second and more, and so long no key would be heard.
//! Who draws a screen asks [`Session::make_ahead`] first, again and again: each time it goes
//! through some lives, and says how far it is. When it is done [`Session::then`] finds the
//! answer ready. Who has time, as a report has, asks for the answer at once.
//!
//! In this order, which is that of the pass that makes it at once, so sums are the same to the
//! last digit:
//!
//! 1. what is settled ([`super::settled`]);
//! 2. the lives that are over. Lives that end meanwhile come behind them, and stand for blocks
//!    that were not counted yet;
//! 3. when there are no more, the blocks that live are taken note of all at once: from then on
//!    nothing that happens is in it;
//! 4. those blocks.
//!
//! Totals, lifetimes and trends are made in one go. An answer about the last seconds, whose
//! events may still come, is out of date when it is done: as long as the next is being made,
//! it stands ([`Making::is_for`]).

use super::ages::{self, Followed};
use super::bounds::Bounds;
use super::by::{Classes, Cut};
use super::only::Seen;
use super::totals::{self, Sets};
use super::trend::Trend;
use super::weights::Weights;
use super::{Key, Session, Then, When};
use crate::session::blocks::Block;
use crate::session::lives::{Life, Place};
use std::sync::Arc;

/// What the work depends on: with another one it begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Of {
    when: When,
    cut: Cut,
    classes: [u64; 2],
    rewritten: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Making {
    of: Of,
    bounds: Bounds,
    classes: Classes,
    sets: Sets,
    ages: ages::Adding,
    trend: Trend,
    weights: Weights,
    /// Of lives in the first chunks trends alone are made.
    settled: usize,
    until: Place,
    /// Blocks, once lives are through, and what the answer is of.
    living: Option<(std::vec::IntoIter<Block>, Key)>,
    done: usize,
}

impl Making {
    fn new(session: &Session, of: Of, bounds: Bounds) -> Self {
        let cut = &of.cut;
        let classes = Classes::of(session, cut, &bounds);
        let (sets, settled) = Sets::begin(session, &bounds, cut, &classes);
        let ages = session.settled(&bounds, cut).map(|known| known.ages.clone());
        let count = classes.count(session);
        Self {
            of,
            bounds,
            classes,
            sets,
            ages: ages::Adding::to(ages.unwrap_or_default(), count),
            trend: Trend::begin(&bounds, count),
            weights: Weights::new(),
            settled,
            until: Place::default(),
            living: None,
            done: 0,
        }
    }

    /// Whether an answer that is out of date will do meanwhile.
    pub fn is_for(&self, when: When, cut: &Cut, classes: [u64; 2]) -> bool {
        self.of.when == when && self.of.cut == *cut && self.of.classes == classes
    }

    /// Goes through so many lives and blocks at most. Whether there are no more.
    fn go_on(&mut self, session: &Session, most: usize) -> bool {
        self.classes.kind.fit(&session.book);
        self.sets.fit(session, &self.classes);
        let count = self.classes.count(session);
        self.ages.fit(count);
        self.trend.fit(count);
        let mut left = most;
        let born_until = self.bounds.end_us;
        while self.living.is_none() && left > 0 {
            let of_sums = self.until.chunk >= self.settled;
            let from_us = match self.bounds.when {
                _ if !of_sums => self.bounds.trend_us,
                When::Range { from_ns, .. } => from_ns / 1000,
                _ => 0,
            };
            let chunk = self.until.chunk;
            if self.until.life == 0 && !session.lives.is_within(chunk, from_us, born_until) {
                self.until.chunk += 1;
                continue;
            }
            let (lives, end) = session.lives.from_place(self.until, left);
            if std::mem::replace(&mut self.until, end) == end {
                self.note_living(session);
            }
            for life in lives {
                left = left.saturating_sub(1);
                self.done += 1;
                if life.ended_us > from_us && life.born_us <= born_until {
                    self.add_life(session, &life, of_sums);
                }
            }
        }
        let Some((mut blocks, key)) = self.living.take() else { return false };
        for block in blocks.by_ref().take(left) {
            self.done += 1;
            self.add_block(session, &block);
        }
        let over = blocks.len() == 0;
        self.living = Some((blocks, key));
        over
    }

    fn add_life(&mut self, session: &Session, life: &Life, of_sums: bool) {
        let weight = self.weights.of(life.interval, life.size);
        let class = self.classes.class(&Seen::life(life));
        if of_sums {
            self.sets.add(&self.bounds, &self.classes, &totals::dead(life, weight));
            let followed = Followed::dead(life, weight.objects);
            self.ages.follow(&self.bounds, &session.lives, class, &followed);
        }
        self.trend.change(&self.bounds, life.born_us, class, weight.bytes);
        self.trend.change(&self.bounds, life.ended_us, class, -weight.bytes);
    }

    fn add_block(&mut self, session: &Session, block: &Block) {
        let weight = self.weights.of(block.interval, block.size);
        let class = self.classes.class(&Seen::living(block, &self.bounds));
        self.sets.add(&self.bounds, &self.classes, &totals::living(block, &self.bounds, weight));
        let followed = Followed::living(block.born_us(), block.listed, weight.objects);
        self.ages.follow(&self.bounds, &session.lives, class, &followed);
        self.trend.change(&self.bounds, block.born_us(), class, weight.bytes);
    }

    /// All lives are through: these live.
    fn note_living(&mut self, session: &Session) {
        let mut living = Vec::with_capacity(session.blocks.count());
        let blocks = session.blocks.iter().map(|(_, block)| *block);
        living.extend(blocks.filter(|block| block.born_us() <= self.bounds.end_us));
        let key = session.key(self.of.when, &self.of.cut);
        self.living = Some((living.into_iter(), key));
    }

    fn finish(mut self, session: &Session) -> Option<(Key, Then)> {
        let (_, key) = self.living?;
        self.sets.finish(session);
        let ages = self.ages.done();
        Some((key, Then::whole_of(self.of.cut, self.bounds, self.sets, ages, self.trend)))
    }
}

impl Session {
    /// Makes the answer about `when` ahead, going through `most` lives and blocks at most. How
    /// far it is, in percent; `None` where it is there, or takes no more to make at once.
    #[must_use]
    pub fn make_ahead(&self, when: When, cut: &Cut, most: usize) -> Option<u8> {
        let when = when.until(self.now_ns);
        if matches!(when, When::Now | When::Peak) {
            return None;
        }
        let key = self.key(when, cut);
        if self.then.then.borrow().iter().any(|(known, _)| *known == key) {
            return None;
        }
        let of =
            Of { when, cut: cut.clone(), classes: key.classes, rewritten: self.lives.rewritten() };
        let mut making = self.then.making.borrow_mut();
        if making.as_ref().is_none_or(|making| making.of != of) {
            *making = None;
            let bounds = Bounds::new(self, when);
            if !bounds.in_use || self.settle_ahead(&bounds, cut, most) == 0 {
                return bounds.in_use.then_some(0);
            }
            let settled = self.settled(&bounds, cut).map_or(0, |known| known.chunks);
            if self.lives.behind(settled) + self.blocks.count() <= most {
                return None;
            }
            *making = Some(Making::new(self, of, bounds));
        }
        let under_way = making.as_mut()?;
        // What remains then is a look at all callstacks, and has a time of its own.
        if under_way.living.as_ref().is_some_and(|(blocks, _)| blocks.len() == 0) {
            let (key, then) = making.take()?.finish(self)?;
            self.keep(key, &Arc::new(then));
            return Some(100);
        }
        under_way.go_on(self, most);
        let all = self.lives.behind(under_way.settled) + self.blocks.count();
        Some((under_way.done * 100 / all.max(1)).min(99) as u8)
    }
}
