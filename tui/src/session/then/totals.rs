//! The pass over all blocks that makes the totals.

use super::bounds::Bounds;
use super::by::{By, Classes, Cut, Kind};
use super::only::Seen;
use super::weights::Weights;
use super::{Session, When};
use crate::session::blocks::Block;
use crate::session::lives::Life;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::{Total, Totals};

/// What is kept of a group.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfGroup {
    pub totals: Totals,
    /// Allocated in the window of rates.
    pub window: Total,
    /// What of it was promoted, in cycles that were over.
    pub survived: Total,
}

impl OfGroup {
    fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.window.merge(&other.window);
        self.survived.merge(&other.survived);
    }
}

/// What a group gained and lost in a range.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grown {
    /// Born in it and alive at its end,
    pub gained: Total,
    /// alive at its beginning and dead by its end.
    pub lost: Total,
}

impl Grown {
    pub fn merge(&mut self, other: &Self) {
        self.gained.merge(&other.gained);
        self.lost.merge(&other.lost);
    }
}

/// Totals by callstack, by group, and of all. What nobody asked for is empty.
#[derive(Debug, Default)]
pub struct Sets {
    pub stacks: Vec<Totals>,
    pub groups: Vec<OfGroup>,
    /// In use by group, where nothing else of it is known.
    pub in_use: Vec<Total>,
    /// Of a range, by group.
    pub grown: Vec<Grown>,
    pub whole: OfGroup,
    pub whole_grown: Grown,
}

/// A block, dead or alive.
pub struct One<'a> {
    seen: Seen,
    weight: &'a Weight,
}

/// A block that lives.
#[inline]
pub const fn living<'a>(block: &Block, bounds: &Bounds, weight: &'a Weight) -> One<'a> {
    One { seen: Seen::living(block, bounds), weight }
}

/// A life that is over.
#[inline]
pub fn dead<'a>(life: &Life, weight: &'a Weight) -> One<'a> {
    One { seen: Seen::life(life), weight }
}

impl Sets {
    pub fn of(session: &Session, bounds: &Bounds, cut: &Cut) -> Self {
        let classes = Classes::of(session, cut, bounds);
        let (mut sets, chunks) = Self::begin(session, bounds, cut, &classes);
        if bounds.in_use && bounds.when != When::Peak {
            sets.add_blocks(session, bounds, &classes, chunks);
        }
        sets.finish(session);
        sets
    }

    /// What need not be added up, and how many chunks of lives are in it.
    pub fn begin(
        session: &Session,
        bounds: &Bounds,
        cut: &Cut,
        classes: &Classes,
    ) -> (Self, usize) {
        let stacks = session.book.stacks();
        let by = cut.by;
        let mut sets = Self {
            stacks: if by == By::Group { vec![Totals::default(); stacks.len()] } else { vec![] },
            groups: vec![OfGroup::default(); classes.count(session)],
            ..Self::default()
        };
        if matches!(bounds.when, When::Range { .. }) {
            sets.grown = vec![Grown::default(); sets.groups.len()];
        }
        let mut chunks = 0;
        if by != By::Group {
            if bounds.in_use && bounds.when != When::Peak {
                let settled = session.settled(bounds, cut);
                for (group, totals) in
                    sets.groups.iter_mut().zip(settled.iter().flat_map(|settled| &settled.totals))
                {
                    group.totals = *totals;
                }
                chunks = settled.map_or(0, |settled| settled.chunks);
            }
        } else if bounds.when == When::Peak {
            // The peak is told by callstack, and not of single blocks.
            let table = session.course.peak_table().iter().filter(|_| !cut.has_tests());
            for &(stack, in_use) in table.filter(|(stack, _)| cut.takes_stack(*stack)) {
                if let Some(totals) = sets.stacks.get_mut(stack as usize) {
                    totals.in_use.merge(&in_use);
                }
            }
        } else if bounds.in_use {
            let settled = session.settled(bounds, cut);
            if let Some(settled) = &settled {
                sets.stacks.clone_from(&settled.totals);
                sets.stacks.resize(stacks.len(), Totals::default());
            }
            if matches!(bounds.when, When::At(_))
                && let Some(base) = &session.base
                && !cut.has_tests()
            {
                for (stack, totals) in base.totals.iter().filter(|(s, _)| cut.takes_stack(*s)) {
                    let base = Totals { in_use: Total::default(), ..*totals };
                    sets.stacks[*stack as usize].merge(&base);
                }
            }
            chunks = settled.map_or(0, |settled| settled.chunks);
        }
        (sets, chunks)
    }

    /// Room for callstacks and classes that have come.
    pub fn fit(&mut self, session: &Session, classes: &Classes) {
        let count = classes.count(session);
        if let Kind::Groups(stacks) = &classes.kind {
            self.stacks.resize(stacks.len(), Totals::default());
        }
        if !self.grown.is_empty() {
            self.grown.resize(count, Grown::default());
        }
        self.groups.resize(count, OfGroup::default());
    }

    /// Groups from their callstacks, and all together.
    pub fn finish(&mut self, session: &Session) {
        for (stack, totals) in session.book.stacks().iter().zip(&self.stacks) {
            if totals.in_use.n + totals.allocated.n > 0 {
                self.groups[stack.group() as usize].totals.merge(totals);
            }
        }
        self.add_whole();
    }

    /// All groups together.
    pub fn add_whole(&mut self) {
        for group in &self.groups {
            self.whole.merge(group);
        }
        for grown in &self.grown {
            self.whole_grown.merge(grown);
        }
    }

    fn add_blocks(&mut self, session: &Session, bounds: &Bounds, classes: &Classes, chunks: usize) {
        let mut weights = Weights::new();
        // Who was dead by the beginning of a range has no part in it.
        let from_us = match bounds.when {
            When::Range { from_ns, .. } => from_ns / 1000,
            _ => 0,
        };
        for life in session.lives.within(chunks, from_us, bounds.end_us) {
            let weight = weights.of(life.interval, life.size);
            self.add(bounds, classes, &dead(&life, weight));
        }
        for (_, block) in session.blocks.iter() {
            let born_us = block.born_ns / 1000;
            if born_us > bounds.end_us {
                continue;
            }
            let weight = weights.of(block.interval, block.size);
            self.add(bounds, classes, &living(block, bounds, weight));
        }
    }

    #[inline]
    pub fn add(&mut self, bounds: &Bounds, classes: &Classes, one: &One<'_>) {
        let Some(class) = classes.class(&one.seen) else { return };
        let (one, weight) = (&one.seen, one.weight);
        // Groups are added up from their callstacks, which trees need as well.
        let totals = match classes.kind {
            Kind::Groups(_) => self.stacks.get_mut(one.stack as usize),
            _ => self.groups.get_mut(class as usize).map(|group| &mut group.totals),
        };
        let Some(totals) = totals else { return };
        let alive = bounds.end_us < one.ended_us;
        if alive {
            totals.in_use.add(weight);
        }
        let born_in = one.born_us > bounds.born_after_us;
        if born_in {
            totals.allocated.add(weight);
        }
        let ranged = matches!(bounds.when, When::Range { .. });
        let mut survived = false;
        if one.born_young && (born_in || !ranged) {
            let decided = one.promoted || one.died_us <= bounds.end_us;
            if bounds.counts(one.born_clock, decided) {
                totals.minor.add(weight);
                if one.promoted {
                    totals.promoted.add(weight);
                    survived = true;
                }
            }
        }
        if bounds.in_window(one.born_us)
            && let Some(group) = self.groups.get_mut(class as usize)
        {
            group.window.add(weight);
            if survived {
                group.survived.add(weight);
            }
        }
        if let Some(grown) = self.grown.get_mut(class as usize) {
            // Who was lost sight of is not known to be dead: it stays at both ends.
            let lives_on = bounds.end_us < one.died_us;
            match (born_in, lives_on) {
                (true, true) => grown.gained.add(weight),
                (false, false) if bounds.born_after_us < one.died_us => {
                    grown.lost.add(weight);
                }
                _ => {}
            }
        }
    }
}
