//! What is kept of the lives of one callstack's blocks, for survival curves.
//!
//! Exits and late entries are counted by age, in the buckets of the survival curve. Living
//! blocks are counted by time of birth, since their ages move: in slots no wider
//! than an eighth of their age, the resolution of the buckets. Slots grow
//! together as they age, so a callstack with millions of old blocks has a few
//! dozen.

use super::estimate::survival::{BUCKETS, Mass, Table, bucket};

/// Slots of births may be this wide, in nanoseconds, whatever their age.
const NARROWEST_NS: u64 = 1 << 20;

/// Where a block's way through a survival curve begins or ends, other than at
/// birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It died.
    Death,
    /// It was first seen, after its birth.
    Entry,
    /// It was last seen alive.
    Loss,
}

/// Turns by age, sparse, in order.
#[derive(Debug, Clone, Default)]
struct ByAge(Vec<((u16, Turn), Mass)>);

impl ByAge {
    fn add(&mut self, turn: Turn, age_ns: u64, w: f64) {
        self.add_at(turn, bucket(age_ns), w);
    }

    /// A turn at an age in this bucket.
    fn add_at(&mut self, turn: Turn, bucket: u16, w: f64) {
        self.of(bucket, turn).add(w);
    }

    fn of(&mut self, bucket: u16, turn: Turn) -> &mut Mass {
        let place = (bucket, turn);
        let at = match self.0.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (place, Mass::default()));
                at
            }
        };
        &mut self.0[at].1
    }

    fn add_masses_to(&self, table: &mut Table) {
        for &((bucket, turn), mass) in &self.0 {
            match turn {
                Turn::Death => table.died(bucket, mass),
                Turn::Entry => table.entered(bucket, mass),
                Turn::Loss => table.censored(bucket, mass),
            }
        }
    }
}

/// Turns by age of blocks that have all made their last one.
#[derive(Debug, Clone, Default)]
pub struct Ages {
    turns: ByAge,
    n_deaths: u64,
    n_blocks: u64,
}

impl Ages {
    /// A block is followed from an age, if not from its birth, to its last turn.
    pub fn add(&mut self, entry: Option<u16>, (turn, bucket): (Turn, u16), w: f64) {
        if let Some(entry) = entry {
            self.turns.add_at(Turn::Entry, entry, w);
        }
        self.turns.add_at(turn, bucket, w);
        self.n_deaths += u64::from(turn == Turn::Death);
        self.n_blocks += 1;
    }

    /// Others join.
    pub fn merge(&mut self, other: &Self) {
        for &((bucket, turn), mass) in &other.turns.0 {
            self.turns.of(bucket, turn).merge(mass);
        }
        self.n_deaths += other.n_deaths;
        self.n_blocks += other.n_blocks;
    }

    /// Adds it all to a group's table.
    pub fn add_to(&self, table: &mut Table) {
        self.turns.add_masses_to(table);
        table.n_deaths += self.n_deaths;
        table.n_blocks += self.n_blocks;
    }
}

/// The same of few classes, as a field of all ages: nothing is searched for.
#[derive(Debug)]
pub struct Field {
    /// By class, bucket and turn, in this order.
    masses: Vec<Mass>,
    counts: Vec<(u64, u64)>,
}

const TURNS: usize = 3;

impl Field {
    /// Of so many classes, without any block.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        let masses = vec![Mass::default(); classes * BUCKETS * TURNS];
        Self { masses, counts: vec![(0, 0); classes] }
    }

    /// As [`Ages::add`], to one class.
    pub fn add(&mut self, class: u32, entry: Option<u16>, (turn, bucket): (Turn, u16), w: f64) {
        let Some((n_deaths, n_blocks)) = self.counts.get_mut(class as usize) else { return };
        *n_deaths += u64::from(turn == Turn::Death);
        *n_blocks += 1;
        let place = |bucket: u16, turn: Turn| {
            let bucket = usize::from(bucket).min(BUCKETS - 1);
            (class as usize * BUCKETS + bucket) * TURNS + turn as usize
        };
        if let Some(entry) = entry {
            self.masses[place(entry, Turn::Entry)].add(w);
        }
        self.masses[place(bucket, turn)].add(w);
    }

    /// Adds each class to its own.
    pub fn add_to(&self, classes: &mut [Ages]) {
        let fields = self.masses.chunks_exact(BUCKETS * TURNS).zip(&self.counts);
        for (ages, (masses, (n_deaths, n_blocks))) in classes.iter_mut().zip(fields) {
            ages.n_deaths += n_deaths;
            ages.n_blocks += n_blocks;
            for (at, mass) in masses.iter().enumerate().filter(|(_, mass)| mass.w > 0.0) {
                let turn = [Turn::Death, Turn::Entry, Turn::Loss][at % TURNS];
                ages.turns.of((at / TURNS) as u16, turn).merge(*mass);
            }
        }
    }
}

/// Living blocks born from `from_ns` to `to_ns`, both included.
#[derive(Debug, Clone, Copy)]
struct Slot {
    from_ns: u64,
    to_ns: u64,
    n: u32,
    mass: Mass,
}

/// Living blocks by time of birth. Slots are no wider than one `PART` of their age.
#[derive(Debug, Clone, Default)]
struct Living<const PART: u64> {
    slots: Vec<Slot>,
    merge_at: usize,
}

impl<const PART: u64> Living<PART> {
    fn enter(&mut self, born_ns: u64, now_ns: u64, w: f64) {
        let at = self.slots.partition_point(|slot| slot.from_ns <= born_ns);
        if let Some(slot) = at.checked_sub(1).map(|i| &mut self.slots[i])
            && (born_ns <= slot.to_ns || born_ns - slot.from_ns <= NARROWEST_NS)
        {
            slot.to_ns = slot.to_ns.max(born_ns);
            slot.n = slot.n.saturating_add(1);
            slot.mass.add(w);
            return;
        }
        let mass = Mass { w, w2: w * w };
        self.slots.insert(at, Slot { from_ns: born_ns, to_ns: born_ns, n: 1, mass });
        if self.slots.len() >= self.merge_at.max(32) {
            self.merge(now_ns);
            self.merge_at = self.slots.len() * 2;
        }
    }

    fn leave(&mut self, born_ns: u64, w: f64) {
        let at = self.slots.partition_point(|slot| slot.from_ns <= born_ns);
        let Some(at) = at.checked_sub(1) else { return };
        let slot = &mut self.slots[at];
        slot.n = slot.n.saturating_sub(1);
        if slot.n == 0 {
            self.slots.remove(at);
        } else {
            slot.mass.w = (slot.mass.w - w).max(0.0);
            slot.mass.w2 = (slot.mass.w2 - w * w).max(0.0);
        }
    }

    fn merge(&mut self, now_ns: u64) {
        self.slots.dedup_by(|next, slot| {
            let age = now_ns.saturating_sub(next.to_ns);
            let fits = next.to_ns - slot.from_ns <= NARROWEST_NS.max(age / PART);
            if fits {
                slot.to_ns = next.to_ns;
                slot.n = slot.n.saturating_add(next.n);
                slot.mass.merge(next.mass);
            }
            fits
        });
    }

    /// Buckets of age, as of `now_ns`, with who is as old.
    fn ages(&self, now_ns: u64) -> impl Iterator<Item = (u16, Mass)> + '_ {
        self.slots.iter().map(move |slot| {
            let born = slot.from_ns + (slot.to_ns - slot.from_ns) / 2;
            (bucket(now_ns.saturating_sub(born)), slot.mass)
        })
    }
}

/// Blocks that live, with the ages at which those were first seen that were not at their
/// birth. There are few of these, and slots are so narrow that hardly any block is taken to be
/// in another bucket than it is.
#[derive(Debug, Clone, Default)]
pub struct Alive {
    living: Living<64>,
    entries: ByAge,
    n_blocks: u64,
}

impl Alive {
    /// A block lives, followed from an age if not from its birth.
    pub fn enter(&mut self, entry: Option<u16>, born_ns: u64, now_ns: u64, w: f64) {
        self.living.enter(born_ns, now_ns, w);
        if let Some(entry) = entry {
            self.entries.add_at(Turn::Entry, entry, w);
        }
        self.n_blocks += 1;
    }

    /// It does no more.
    pub fn leave(&mut self, entry: Option<u16>, born_ns: u64, w: f64) {
        self.living.leave(born_ns, w);
        if let Some(entry) = entry {
            let mass = self.entries.of(entry, Turn::Entry);
            *mass = Mass { w: (mass.w - w).max(0.0), w2: (mass.w2 - w * w).max(0.0) };
        }
        self.n_blocks = self.n_blocks.saturating_sub(1);
    }

    /// Adds them to those that are over, as of `now_ns`.
    pub fn add_to(&self, ages: &mut Ages, now_ns: u64) {
        for &((bucket, turn), mass) in &self.entries.0 {
            ages.turns.of(bucket, turn).merge(mass);
        }
        for (bucket, mass) in self.living.ages(now_ns) {
            ages.turns.of(bucket, Turn::Loss).merge(mass);
        }
        ages.n_blocks += self.n_blocks;
    }
}

/// The lives of one callstack's blocks. Weights are in objects.
#[derive(Debug, Clone, Default)]
pub struct Lifetimes {
    turns: ByAge,
    living: Living<8>,
    n_deaths: u64,
    n_blocks: u64,
    event_ns: u64,
}

impl Lifetimes {
    /// When a block was last seen for the first or for the last time.
    #[must_use]
    pub const fn event_ns(&self) -> u64 {
        self.event_ns
    }

    /// A block is seen from `seen_ns` on, which is its birth or later.
    pub fn enter(&mut self, born_ns: u64, seen_ns: u64, w: f64) {
        self.event_ns = self.event_ns.max(seen_ns);
        if seen_ns > born_ns {
            self.turns.add(Turn::Entry, seen_ns - born_ns, w);
        }
        self.n_blocks += 1;
        self.living.enter(born_ns, seen_ns, w);
    }

    /// A block dies.
    pub fn die(&mut self, born_ns: u64, at_ns: u64, w: f64) {
        self.leave(born_ns, at_ns, w);
        self.turns.add(Turn::Death, at_ns.saturating_sub(born_ns), w);
        self.n_deaths += 1;
    }

    /// A block is lost sight of, alive as far as is known.
    pub fn lose(&mut self, born_ns: u64, at_ns: u64, w: f64) {
        self.leave(born_ns, at_ns, w);
        self.turns.add(Turn::Loss, at_ns.saturating_sub(born_ns), w);
    }

    fn leave(&mut self, born_ns: u64, at_ns: u64, w: f64) {
        self.event_ns = self.event_ns.max(at_ns);
        self.living.leave(born_ns, w);
    }

    /// Adds it all to a group's table, as of `now_ns`.
    pub fn add_to(&self, table: &mut Table, now_ns: u64) {
        self.turns.add_masses_to(table);
        for (bucket, mass) in self.living.ages(now_ns) {
            table.censored(bucket, mass);
        }
        table.n_deaths += self.n_deaths;
        table.n_blocks += self.n_blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of all ages says what is said one by one.
    #[test]
    fn a_field_is_what_is_added_one_by_one() {
        let (mut field, mut one_by_one) = (Field::new(3), vec![Ages::default(); 3]);
        let turns = [Turn::Death, Turn::Entry, Turn::Loss];
        for i in 0..500u64 {
            let (class, turn) = ((i % 3) as u32, turns[(i % 2) as usize * 2]);
            let (bucket, w) = ((i * i % BUCKETS as u64) as u16, (1 + i % 8) as f64);
            let entry = (i % 5 == 0).then_some(bucket / 2);
            field.add(class, entry, (turn, bucket), w);
            one_by_one[class as usize].add(entry, (turn, bucket), w);
        }
        field.add(3, None, (Turn::Death, 1), 1.0);
        let mut ages = vec![Ages::default(); 3];
        field.add_to(&mut ages);
        assert_eq!(format!("{ages:?}"), format!("{one_by_one:?}"));
    }
}
