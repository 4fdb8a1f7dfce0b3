//! Entries into survival curves, and ways out of them, by group.

use super::bounds::Bounds;
use super::by::{Classes, Cut};
use super::only::Seen;
use super::weights::Weights;
use super::{Session, When};
use crate::session::estimate::survival::bucket;
use crate::session::lifetimes::{Ages, Field, Turn};
use crate::session::lives::{End, Life, Lives};

/// Of so many classes there is a field of all ages while they are added up: 23 KiB each.
const FEW: usize = 128;

/// A block, as far as curves follow it.
pub struct Followed {
    born_us: u64,
    listed: bool,
    /// When it ended and how old it was then, if it did.
    end: Option<(u64, u16, End)>,
    w: f64,
}

impl Followed {
    /// A life that is over, and what it stands for in objects.
    pub const fn dead(life: &Life, w: f64) -> Self {
        let end = Some((life.ended_us, life.age, life.end));
        Self { born_us: life.born_us, listed: life.listed, end, w }
    }

    /// A block that lives, `listed` if a snapshot told of it.
    pub const fn living(born_us: u64, listed: bool, w: f64) -> Self {
        Self { born_us, listed, end: None, w }
    }
}

/// By group, or another class: who was followed in the stretch of time.
pub fn of(session: &Session, bounds: &Bounds, cut: &Cut) -> Vec<Ages> {
    let classes = Classes::of(session, cut, bounds);
    let settled = session.settled(bounds, cut);
    let ages = settled.as_ref().map(|settled| settled.ages.clone()).unwrap_or_default();
    let mut adding = Adding::to(ages, classes.count(session));
    if bounds.when == When::Peak || !bounds.in_use {
        return adding.done();
    }
    let mut weights = Weights::new();
    let chunks = settled.map_or(0, |settled| settled.chunks);
    for life in session.lives.within(chunks, bounds.followed_us, bounds.end_us) {
        let w = weights.of(life.interval, life.size).objects;
        let class = classes.class(&Seen::life(&life));
        adding.follow(bounds, &session.lives, class, &Followed::dead(&life, w));
    }
    for (_, block) in session.blocks.iter() {
        if block.born_ns / 1000 <= bounds.end_us {
            let w = weights.of(block.interval, block.size).objects;
            let class = classes.class(&Seen::living(block, bounds));
            let followed = Followed::living(block.born_us(), block.listed, w);
            adding.follow(bounds, &session.lives, class, &followed);
        }
    }
    adding.done()
}

/// Curves by class that are being added up.
#[derive(Debug)]
pub struct Adding {
    groups: Vec<Ages>,
    few: bool,
    field: Field,
}

impl Adding {
    /// To what there is already, of so many classes.
    pub fn to(mut groups: Vec<Ages>, classes: usize) -> Self {
        groups.resize_with(classes, Ages::default);
        let few = classes <= FEW;
        Self { groups, few, field: Field::new(if few { classes } else { 0 }) }
    }

    /// Room for classes that have come.
    pub fn fit(&mut self, classes: usize) {
        if classes > self.groups.len() {
            if self.few {
                // Each class has its place in the order of what is added up: it stays so.
                let field = std::mem::replace(&mut self.field, Field::new(0));
                field.add_to(&mut self.groups);
                self.few = false;
            }
            self.groups.resize_with(classes, Ages::default);
        }
    }

    /// A block, dead or alive.
    #[inline]
    pub fn follow(&mut self, bounds: &Bounds, lives: &Lives, class: Option<u32>, one: &Followed) {
        let Some(class) = class else { return };
        let Some((entry, turn)) = turns(bounds, lives, one) else { return };
        if self.few {
            self.field.add(class, entry, turn, one.w);
        } else if let Some(group) = self.groups.get_mut(class as usize) {
            group.add(entry, turn, one.w);
        }
    }

    /// By class, all of it.
    pub fn done(mut self) -> Vec<Ages> {
        self.field.add_to(&mut self.groups);
        self.groups
    }
}

/// How old a block is when it is first seen, if that is not its birth.
pub fn entry(bounds: &Bounds, lives: &Lives, one: &Followed) -> Option<u16> {
    turns(bounds, lives, one).and_then(|(entry, _)| entry)
}

/// Adds a block to its group's.
pub fn add(ages: &mut Ages, bounds: &Bounds, lives: &Lives, one: &Followed) {
    if let Some((entry, turn)) = turns(bounds, lives, one) {
        ages.add(entry, turn, one.w);
    }
}

/// Where a block's way begins, if not at its birth, and how and where it ends; `None` where
/// none of it lies in the stretch of time.
fn turns(bounds: &Bounds, lives: &Lives, one: &Followed) -> Option<(Option<u16>, (Turn, u16))> {
    let born = one.born_us;
    let seen = lives.first_seen(one.listed, born).map_or(born, |seen| seen.time_ns / 1000);
    let since = lives.since().map_or(0, |since| since.time_ns / 1000);
    let from = seen.max(bounds.followed_us).max(if born < since { since } else { 0 });
    let until = one.end.map_or(u64::MAX, |(ended, ..)| ended).min(bounds.end_us);
    if from > until || from == until && from > born {
        return None;
    }
    let at_age = |us: u64| bucket((us - born).saturating_mul(1000));
    let (turn, leaves) = match one.end {
        Some((ended, age, End::Lost)) if ended <= bounds.end_us => (Turn::Loss, age),
        Some((ended, age, _)) if ended <= bounds.end_us => (Turn::Death, age),
        _ => (Turn::Loss, at_age(bounds.end_us)),
    };
    let entry = (from > born).then(|| at_age(from).min(leaves));
    Some((entry, (turn, leaves)))
}
