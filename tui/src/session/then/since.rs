//! What grew from a moment on until the present, without a pass over all that is over.
//!
//! Growth is made of blocks that were alive at one end of the time and not at the other. Of
//! the lives that are over these are the ones that were alive at the moment: once over they
//! stay so, and sums over them go on where they stopped. All else is among the living ([`standing`](super::standing)).
//! Numbers are those of a range until now; but in use and growth are all that is known.

use super::bounds::Bounds;
use super::by::{By, Classes, Cut};
use super::only::Seen;
use super::standing::Purpose;
use super::totals::{Grown, Sets};
use super::weights::Weights;
use super::{Session, When};
use crate::session::estimate::GrowthSight;
use crate::session::lives::{End, Place};
use heaptop_protocol::totals::Total;

/// So many moments are remembered: that of the screen and where its later part begins and began
/// before, that of details over it, and when heaptop came, of sizes and threads as well.
const KEPT: usize = 8;
/// Lives over that an answer goes through without anybody noticing.
const A_FEW: usize = 1 << 14;

/// Where the later part of a time begins, in nanoseconds: between a quarter and the middle of
/// it, and at the same moment until the time has doubled. What is made of it is so kept up.
const fn later_from(from_ns: u64, to_ns: u64) -> Option<u64> {
    match to_ns.saturating_sub(from_ns).checked_ilog2() {
        None | Some(0) => None,
        Some(power) => Some(from_ns + (1 << power) / 2),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    from_us: u64,
    cut: Cut,
    classes: [u64; 2],
    rewritten: u64,
}

/// What lives that are over did to growth from one moment on.
#[derive(Debug)]
struct Over {
    key: Key,
    /// How far they were gone through.
    until: Place,
    grown: Vec<Grown>,
}

/// Of the last moments that were asked about.
#[derive(Debug, Default)]
pub struct Kept {
    over: Vec<Over>,
    /// The moment whose later part was asked for last.
    later_since_ns: Option<u64>,
}

impl Kept {
    /// Of lives that are over, by class.
    pub(super) fn grown(&mut self, session: &Session, bounds: &Bounds, cut: &Cut) -> &[Grown] {
        self.go_on(session, bounds, cut, usize::MAX);
        &self.over[0].grown
    }

    /// How many lives have not been gone through for it.
    fn behind(&self, session: &Session, key: &Key) -> usize {
        let over = self.over.iter().find(|over| over.key == *key);
        let until = over.map_or_else(Place::default, |over| over.until);
        session.lives.behind(until.chunk).saturating_sub(until.life)
    }

    /// Goes on, over so many lives at most, and puts it first. How many are left.
    fn go_on(&mut self, session: &Session, bounds: &Bounds, cut: &Cut, most: usize) -> usize {
        let key = Key::of(session, bounds, cut);
        let mut over = match self.over.iter().position(|over| over.key == key) {
            Some(at) => self.over.remove(at),
            None => Over { key: key.clone(), until: Place::default(), grown: Vec::new() },
        };
        self.over.retain(|over| over.key.rewritten == key.rewritten);
        self.over.truncate(KEPT - 1);
        // Whoever is over stays what it is.
        let left = over.go_on(session, &Classes::of(session, cut, &bounds.settled()), most);
        self.over.insert(0, over);
        left
    }

    /// Goes on with moments that there is room for. How many of `most` are left.
    fn look_ahead(
        &mut self,
        session: &Session,
        moments: impl Iterator<Item = (u64, By)>,
        to_ns: u64,
        most: usize,
    ) -> usize {
        let mut left = most;
        for (from_ns, by) in moments {
            let (bounds, cut) =
                (Bounds::new(session, When::Range { from_ns, to_ns }), Cut::from(by));
            if left > 0 && self.has_room_for(&Key::of(session, &bounds, &cut)) {
                left = self.go_on(session, &bounds, &cut, left);
            }
        }
        left
    }

    /// Moments whose later part is looked ahead at: when heaptop came, and of the last answer.
    fn asked(&self, came_ns: u64) -> [Option<u64>; 2] {
        [Some(came_ns), self.later_since_ns.filter(|&asked_ns| asked_ns != came_ns)]
    }

    /// Whether one is kept already, or there is room for it beside those that were asked for.
    fn has_room_for(&self, key: &Key) -> bool {
        let others = self.over.iter().filter(|over| over.key.rewritten == key.rewritten);
        self.over.iter().any(|over| over.key == *key) || others.count() < KEPT - 1
    }
}

impl Key {
    fn of(session: &Session, bounds: &Bounds, cut: &Cut) -> Self {
        Self {
            from_us: bounds.born_after_us,
            cut: cut.clone(),
            classes: session.cut_revision(cut),
            rewritten: session.lives.rewritten(),
        }
    }
}

impl Session {
    /// Goes through some lives ahead of their being asked for: growth of callsites since
    /// heaptop came, and in what its later part is as yet; that of sizes and threads. How many
    /// are left.
    pub(super) fn look_ahead_at_growth(&self, most: usize) -> usize {
        let Some((from_ns, to_ns)) = self.span() else { return most };
        let mut kept = self.then.since.borrow_mut();
        let group = Cut::from(By::Group);
        let parts = kept.asked(from_ns).map(|from_ns| self.part(&kept, from_ns?, to_ns, &group));
        let groups = std::iter::once(from_ns).chain(parts.into_iter().flatten());
        let others = [By::Size, By::Thread].map(|by| (from_ns, by));
        let moments = groups.map(|from_ns| (from_ns, By::Group)).chain(others);
        kept.look_ahead(self, moments, to_ns, most)
    }

    /// The same in what the later part will be.
    pub(super) fn look_ahead_at_later_parts(&self, most: usize) -> usize {
        let Some((from_ns, to_ns)) = self.span() else { return most };
        let mut kept = self.then.since.borrow_mut();
        let parts = kept.asked(from_ns).map(|from_ns| later_from(from_ns?, to_ns));
        let moments = parts.into_iter().flatten().map(|from_ns| (from_ns, By::Group));
        kept.look_ahead(self, moments, to_ns, most)
    }

    /// Where the later part of the time from a moment until now begins, in nanoseconds since
    /// the agent's start: between a quarter and the middle of it. When that moves, and lives
    /// have yet to be gone through for it, it is for a while what it was, an eighth of the
    /// time or more.
    pub(crate) fn later_part(&self, from_ns: u64, to_ns: u64, cut: &Cut) -> Option<u64> {
        let mut kept = self.then.since.borrow_mut();
        kept.later_since_ns = Some(from_ns);
        self.part(&kept, from_ns, to_ns, cut)
    }

    /// Makes one of the sums of the living that leaks of the present are made of, if one is
    /// missing: growth from a moment on and in its later part, what was born until
    /// `old_until_ns`, and the generations that end at `ends_ns` or live now. How far they are,
    /// in percent; `None`: none is missing.
    pub(crate) fn look_at_living(
        &self,
        from_ns: u64,
        old_until_ns: u64,
        ends_ns: &[u64],
        cut: &Cut,
    ) -> Option<u8> {
        let later_ns = self.part(&self.then.since.borrow(), from_ns, self.now_ns, cut);
        let bounds = |from_ns| Bounds::new(self, When::Range { from_ns, to_ns: self.now_ns });
        let growth = |from_ns| (Purpose::Growth, vec![bounds(from_ns).born_after_us]);
        let mut asked = vec![
            growth(from_ns),
            (Purpose::Old, vec![old_until_ns / 1000]),
            (Purpose::Generations, ends_ns.iter().map(|ns| ns / 1000).collect()),
        ];
        asked.extend(later_ns.map(growth));
        self.make_standing(&bounds(from_ns), cut, &asked)
    }

    fn part(&self, kept: &Kept, from_ns: u64, to_ns: u64, cut: &Cut) -> Option<u64> {
        let newest = later_from(from_ns, to_ns)?;
        let before = from_ns + (newest - from_ns) / 2;
        let keeps_up = |begins_ns| {
            let when = When::Range { from_ns: begins_ns, to_ns };
            kept.behind(self, &Key::of(self, &Bounds::new(self, when), cut)) <= A_FEW
        };
        Some(if !keeps_up(newest) && keeps_up(before) { before } else { newest })
    }

    /// What these callsites together gained and lost from a moment on until now, in nanoseconds
    /// since the agent's start; `None` where it is not known.
    #[must_use]
    pub fn grown_since(
        &self,
        from_ns: u64,
        cut: &Cut,
        groups: &[u32],
    ) -> Option<([Total; 2], GrowthSight)> {
        let bounds = Bounds::new(self, When::Range { from_ns, to_ns: self.now_ns });
        let (mut gained, mut lost) = (Total::default(), Total::default());
        let standing = self.standing(&bounds, cut, Purpose::Growth, &[bounds.born_after_us]);
        if let Some(standing) = standing.filter(|_| bounds.in_use && bounds.grows) {
            let mut kept = self.then.since.borrow_mut();
            let over = kept.grown(self, &bounds, cut);
            for &group in groups {
                if let Some(of) = over.get(group as usize) {
                    gained.merge(&of.gained);
                    lost.merge(&of.lost);
                }
                if let Some(living) = standing.of(group).get(1) {
                    gained.merge(living);
                }
            }
        } else {
            let then = self.lately(Some(from_ns), cut);
            then.growth()?;
            for (g, l) in groups.iter().filter_map(|group| then.group_growth(*group)) {
                gained.merge(g);
                lost.merge(l);
            }
        }
        Some(([gained, lost], bounds.sight_of_growth))
    }
}

impl Over {
    /// How many of `most` lives are left.
    fn go_on(&mut self, session: &Session, classes: &Classes, most: usize) -> usize {
        self.grown.resize(classes.count(session), Grown::default());
        let from_us = self.key.from_us;
        let mut weights = Weights::new();
        session.lives.go_on(&mut self.until, most, |life| {
            // Who was lost sight of is not known to be dead: it stays at both ends.
            let lost = life.born_us <= from_us && from_us < life.ended_us;
            let (lost, gained) = match life.end {
                End::Lost => (false, life.born_us > from_us),
                End::Freed | End::FreedElsewhere | End::Unseen => (lost, false),
            };
            if !lost && !gained {
                return;
            }
            let class = classes.class(&Seen::life(life));
            if let Some(grown) = class.and_then(|class| self.grown.get_mut(class as usize)) {
                let set = if gained { &mut grown.gained } else { &mut grown.lost };
                set.add(weights.of(life.interval, life.size));
            }
        })
    }
}

impl Sets {
    /// In use now, and growth from the beginning of the range on.
    pub fn since(session: &Session, bounds: &Bounds, cut: &Cut) -> Self {
        let classes = Classes::of(session, cut, bounds);
        let mut sets = Self {
            in_use: vec![Total::default(); classes.count(session)],
            grown: vec![Grown::default(); classes.count(session)],
            ..Self::default()
        };
        if !bounds.in_use || !matches!(bounds.when, When::Range { .. }) {
            return sets;
        }
        sets.grown.copy_from_slice(session.then.since.borrow_mut().grown(session, bounds, cut));
        let ends = [bounds.born_after_us];
        match session.standing(bounds, cut, Purpose::Growth, &ends) {
            Some(standing) => {
                for (of, in_use) in standing.classes().zip(&mut sets.in_use) {
                    for total in of {
                        in_use.merge(total);
                    }
                }
                for (of, grown) in standing.classes().zip(&mut sets.grown) {
                    grown.gained.merge(&of[1]);
                }
            }
            None => sets.add_living(session, bounds, &classes),
        }
        for in_use in &sets.in_use {
            sets.whole.totals.in_use.merge(in_use);
        }
        for grown in &sets.grown {
            sets.whole_grown.merge(grown);
        }
        sets
    }

    /// The living, one by one.
    pub(super) fn add_living(&mut self, session: &Session, bounds: &Bounds, classes: &Classes) {
        let mut weights = Weights::new();
        for (_, block) in session.blocks.iter() {
            let born_us = block.born_ns / 1000;
            let class = classes.class(&Seen::living(block, bounds));
            let Some(class) = class.filter(|_| born_us <= bounds.end_us) else { continue };
            let weight = weights.of(block.interval, block.size);
            if let Some(in_use) = self.in_use.get_mut(class as usize) {
                in_use.add(weight);
            }
            if born_us > bounds.born_after_us
                && let Some(grown) = self.grown.get_mut(class as usize)
            {
                grown.gained.add(weight);
            }
        }
    }
}
