//! Blocks that live, by size or thread, kept up with each event as long as somebody asks.

use super::super::ages::{self, Followed};
use super::super::bounds::Bounds;
use super::super::standing::One;
use super::super::totals::OfGroup;
use super::super::trend::Trend;
use super::super::weights::Weights;
use super::grid::Grid;
use super::{Kind, merge, of};
use crate::session::Session;
use crate::session::blocks::Blocks;
use crate::session::lifetimes::{Ages, Alive};
use crate::session::lives::Lives;
use heaptop_protocol::event::Moment;
use heaptop_protocol::ids::BlockId;
use heaptop_protocol::totals::Total;

/// Nobody asks any more, in nanoseconds of the target's time.
const KEPT_NS: u64 = 5_000_000_000;
/// Fewer blocks that are put aside are not looked through for those that are gone.
const FEW: usize = 1 << 12;

/// Blocks have changed otherwise than by births, ends and promotions; or their beginnings; or
/// it is counted from another moment on.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    told: [u64; 3],
    since: Option<Moment>,
    counted_from: (u64, u64),
}

/// See the module.
#[derive(Debug)]
pub struct Living {
    key: Key,
    kind: Kind,
    /// Cycles that ended until its `cycles_until` are counted.
    bounds: Bounds,
    classes: Vec<OfClass>,
    /// Born young in a cycle that was not over: its end, on G, and the block, which may be
    /// gone.
    aside: Vec<(u64, BlockId)>,
    /// Births, in bytes.
    grid: Grid,
    /// The latest that was heard of.
    now_ns: u64,
    asked_ns: u64,
}

#[derive(Debug, Default)]
struct OfClass {
    in_use: Total,
    born: Total,
    survivors: Total,
    alive: Alive,
}

impl Living {
    /// One pass over all that lives.
    pub fn new(session: &Session, bounds: &Bounds, at: usize) -> Self {
        let mut living = Self {
            key: Self::key(session, bounds),
            kind: Kind::new(at),
            bounds: *bounds,
            classes: Vec::new(),
            aside: Vec::new(),
            grid: Grid::after(bounds.since_us),
            now_ns: session.now_ns,
            asked_ns: session.now_ns,
        };
        let mut weights = Weights::new();
        for (id, block) in session.blocks.iter() {
            let weight = weights.of(block.interval, block.size);
            living.birth(&One::of(id, block, weight), &session.lives, &session.blocks);
        }
        living
    }

    fn key(session: &Session, bounds: &Bounds) -> Key {
        let (blocks, lives) = (&session.blocks, &session.lives);
        Key {
            told: [blocks.thinned(), blocks.promoted_unheard(), lives.rewritten()],
            since: lives.since(),
            counted_from: (bounds.born_after_us, bounds.minor_from),
        }
    }

    /// Whether it says what a new one would.
    pub fn is_of(&self, session: &Session, bounds: &Bounds) -> bool {
        self.key == Self::key(session, bounds)
    }

    /// Whether it was not asked for lately.
    pub const fn is_forgotten(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.asked_ns) >= KEPT_NS
    }

    /// It is asked for: cycles have ended since.
    pub fn go_on(&mut self, session: &Session, bounds: &Bounds) {
        (self.now_ns, self.asked_ns) = (session.now_ns, session.now_ns);
        self.bounds.cycles_until = self.bounds.cycles_until.max(bounds.cycles_until);
        let until = self.bounds.cycles_until;
        let mut weights = Weights::new();
        for (end, id) in std::mem::take(&mut self.aside) {
            if end > until {
                self.aside.push((end, id));
            } else if let Some(block) = session.blocks.get(id) {
                let weight = weights.of(block.interval, block.size);
                let class = self.kind.class(block.size, block.thread);
                of(&mut self.classes, class).survivors.add(weight);
            }
        }
    }

    /// Whether it is counted among those whose cycle is over: who lives was promoted then.
    fn survived(&self, one: &One<'_>) -> bool {
        one.born_young
            && self.bounds.outlives(one.young)
            && self.bounds.counts(one.born_clock, true)
    }

    /// A block is heard of.
    pub fn birth(&mut self, one: &One<'_>, lives: &Lives, blocks: &Blocks) {
        let (survived, weight) = (self.survived(one), one.weight);
        let class = self.kind.class(one.size, one.thread);
        if one.born_young && !survived && self.bounds.settled().counts(one.born_clock, false) {
            self.aside.push((self.bounds.cycle_end(one.born_clock), one.id));
            if self.aside.len() > FEW.max(blocks.count() * 2) {
                self.aside.retain(|(_, id)| blocks.get(*id).is_some());
            }
        }
        self.now_ns = self.now_ns.max(one.born_us * 1000);
        self.grid.add(one.born_us, class, weight.bytes);
        let entry = self.entry(one, lives);
        let sums = of(&mut self.classes, class);
        sums.in_use.add(weight);
        if one.born_us > self.bounds.born_after_us {
            sums.born.add(weight);
        }
        if survived {
            sums.survivors.add(weight);
        }
        sums.alive.enter(entry, one.born_us * 1000, self.now_ns, weight.objects);
    }

    /// A block that was heard of is gone.
    pub fn end(&mut self, one: &One<'_>, lives: &Lives) {
        let (survived, weight) = (self.survived(one), one.weight);
        let class = self.kind.class(one.size, one.thread);
        self.grid.add(one.born_us, class, -weight.bytes);
        let entry = self.entry(one, lives);
        let sums = of(&mut self.classes, class);
        sums.in_use.sub(weight);
        if one.born_us > self.bounds.born_after_us {
            sums.born.sub(weight);
        }
        if survived {
            sums.survivors.sub(weight);
        }
        sums.alive.leave(entry, one.born_us * 1000, weight.objects);
    }

    /// A block that was young is promoted by the runtime.
    pub fn promote(&mut self, one: &One<'_>) {
        let before = One { young: true, ..*one };
        if self.survived(one) && !self.survived(&before) {
            let class = self.kind.class(one.size, one.thread);
            of(&mut self.classes, class).survivors.add(one.weight);
        }
    }

    /// The age at which a block is first seen, if that is not its birth.
    fn entry(&self, one: &One<'_>, lives: &Lives) -> Option<u16> {
        let followed = Followed::living(one.born_us, one.listed, one.weight.objects);
        ages::entry(&self.bounds.settled(), lives, &followed)
    }

    /// Adds it all to the classes that are asked for.
    pub fn add_to(
        &self,
        session: &Session,
        groups: &mut [OfGroup],
        ages: &mut [Ages],
        trend: &mut Trend,
    ) {
        let asked = self.kind.asked(session);
        for (sums, &class) in self.classes.iter().zip(&asked) {
            let OfClass { in_use, born, survivors, alive } = sums;
            merge(&mut groups[class as usize].totals, [in_use, born, survivors, survivors]);
            alive.add_to(&mut ages[class as usize], session.now_ns);
        }
        trend.add(&self.grid, &asked);
    }
}
