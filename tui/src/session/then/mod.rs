//! The numbers of a moment of the past, or of a stretch of time.
//!
//! What the session keeps as it comes is the present. [`Then`] is the same for another
//! [`When`], made in one pass over the lives that are over and the blocks that live:
//!
//! | | at T | from A to B |
//! |---|---|---|
//! | in use | blocks alive at T | blocks alive at B |
//! | allocated | the totals when the viewer came, and what was born since, until T | what was born in it |
//! | minor, promoted | the same of blocks whose cycle was over by T | of those born in it whose cycle was over by B |
//! | rates | what was born in the ten seconds before T; of the present, in the window that the agent's totals have ([`Session::rate_seconds`]) | what was born in it |
//! | lifetimes | everybody followed until T | who lived in it, entering at A who was there before |
//! | growth | – | gained less lost |
//! | trend | two minutes until T | all of it |
//!
//! In use is always added up over blocks alive, never allocated less freed.
//!
//! **What is not known is not 0.** Before the viewer's first snapshot had ended
//! ([`Session::span`]) nobody knows what lived, and what was in a stretch that begins
//! before it. Where events were lost on their way here, what was born then is in no sum
//! of the past: such sums are known from below alone, see [`Course`] and
//! [`Sight`]. The present is of the agent's own totals, which lose nothing on the way.
//!
//! **Cost.** One pass for the totals; lifetimes, and the trend, take one each when they
//! are first asked for. A pass over the lives of a moment begins where sums are kept up to
//! ([`settled`]), and of what is behind it looks at births and ends alone. Screens have it
//! made in slices ([`making`]). The last answer is kept until something in it may have changed, so a cursor at rest costs
//! nothing. Growth until now costs a pass over the living alone ([`since`]).
//!
//! [`Course`]: super::course::Course

mod ages;
pub mod born;
pub(crate) mod bounds;
pub mod by;
mod came;
mod closely;
mod lately;
mod lived;
mod making;
pub mod old;
pub(crate) mod only;
mod present;
mod settled;
pub mod since;
pub(super) mod standing;
#[cfg(test)]
mod tests;
pub mod threads;
mod totals;
mod trend;
pub(super) mod weights;

use super::Session;
use super::blocks::{Block, Blocks};
use super::book::Book;
use super::estimate::family;
use super::estimate::survival::Table;
use super::estimate::{GrowthSight, Sight};
use super::figures::Lifetime;
use super::lifetimes::Ages;
use super::lives::Lives;
use super::partition::{Class, Partition};
use super::when::When;
use bounds::Bounds;
use by::{By, Cut};
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::totals::{Total, Totals};
use rustc_hash::FxHashMap;
use standing::{One, Purpose};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use totals::{Grown, Sets};
use trend::Trend;

/// Until so long after a moment events may still come that are before it.
const SETTLED_NS: u64 = 2_000_000_000;

/// So many answers are kept: the header asks about its moment, and a screen about the same of
/// some blocks alone, of all blocks by its classes, and about growth.
const KEPT: usize = 4;

static NOTHING: LazyLock<Totals> = LazyLock::new(Totals::default);

/// What an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    when: When,
    cut: Cut,
    classes: [u64; 2],
    lives: u64,
    snapshots: usize,
    ended: bool,
    events: u64,
}

/// A curve, of what, and in how many steps.
type OverTime = (Key, usize, Arc<[f64]>);

/// The last answers.
#[derive(Debug, Default)]
pub(super) struct Kept {
    then: RefCell<Vec<(Key, Arc<Then>)>>,
    lately: RefCell<Vec<lately::Known>>,
    over_time: RefCell<Option<OverTime>>,
    settled: RefCell<settled::All>,
    since: RefCell<since::Kept>,
    standing: RefCell<standing::Kept>,
    present: RefCell<present::Kept>,
    making: RefCell<Option<making::Making>>,
    threads: RefCell<threads::Over>,
    /// How many lives there were at the last look ahead.
    ahead: Cell<usize>,
    closely: RefCell<closely::Kept>,
}

impl Kept {
    /// Whether anybody has to be told what happens to blocks.
    pub(super) fn listens(&mut self) -> bool {
        !self.standing.get_mut().is_empty() || self.present.get_mut().listens()
    }

    /// A block is heard of.
    pub(super) fn birth(&mut self, one: &One<'_>, book: &Book, lives: &Lives, blocks: &Blocks) {
        self.standing.get_mut().birth(book, one);
        self.present.get_mut().birth(one, lives, blocks);
    }

    /// A block that was heard of is gone.
    pub(super) fn end(&mut self, one: &One<'_>, lives: &Lives) {
        self.standing.get_mut().end(one);
        self.present.get_mut().end(one, lives);
    }

    /// A block that was young is promoted.
    pub(super) fn promote(&mut self, id: BlockId, block: &Block) {
        let present = self.present.get_mut();
        if present.listens() {
            present.promote(&One::of(id, block, &block.weight()));
        }
    }

    /// What nobody asks for any more goes.
    pub(super) fn forget(&mut self, now_ns: u64) {
        self.standing.get_mut().forget(now_ns);
        self.present.get_mut().forget(now_ns);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Then {
    cut: Cut,
    bounds: Bounds,
    sets: Arc<Sets>,
    lives: OnceLock<Arc<Vec<Ages>>>,
    trend: OnceLock<Arc<Trend>>,
    holding: OnceLock<Vec<bool>>,
    grew: OnceLock<Vec<bool>>,
    old: Mutex<Option<Old>>,
    born: Mutex<Option<Born>>,
    together: Mutex<Option<Grew>>,
    lived: lived::Kept,
}

/// The old blocks by group, and from when on back they are old.
type Old = (u64, Arc<Vec<Total>>);
/// Generations by group, and where they end.
type Born = (Vec<u64>, Arc<born::Generations>);
/// Of which of the classes that groups are put together to growth holds, and whose they are.
type Grew = (u64, Arc<Vec<bool>>);

impl Session {
    /// From when to when any moment can be asked about, in nanoseconds since the agent's
    /// start; `None` before the first snapshot has ended.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let from = self.base.as_ref()?.at.time_ns;
        let from = self.lives.since().map_or(from, |since| from.max(since.time_ns));
        Some((from.min(self.now_ns), self.now_ns))
    }

    /// When the viewer's first snapshot ended, in nanoseconds since the agent's start.
    #[must_use]
    pub fn came_ns(&self) -> Option<u64> {
        self.base.as_ref().map(|base| base.at.time_ns)
    }

    /// Bytes in use at the ends of `steps` equal steps from after `from_ns` until `to_ns`,
    /// made of the blocks that were heard of. Costs a pass when something has changed.
    #[must_use]
    pub fn in_use_over_time(&self, from_ns: u64, to_ns: u64, steps: usize) -> Arc<[f64]> {
        let key = self.key(When::Range { from_ns, to_ns }, &By::Group.into());
        let mut kept = self.then.over_time.borrow_mut();
        match &*kept {
            Some((known, of, values)) if *known == key && *of == steps => Arc::clone(values),
            _ => {
                let values: Arc<[f64]> = trend::over_time(self, from_ns, to_ns, steps).into();
                *kept = Some((key, steps, Arc::clone(&values)));
                values
            }
        }
    }

    /// From and to which moments `when` is, and how much of that was seen.
    #[must_use]
    pub(crate) fn bounds(&self, when: When) -> Bounds {
        Bounds::new(self, when)
    }

    /// What an answer about `when` depends on.
    fn key(&self, when: When, cut: &Cut) -> Key {
        let end_ns = match when {
            When::Now | When::Peak => u64::MAX,
            When::At(end) | When::Range { to_ns: end, .. } => end,
        };
        let settled = end_ns.saturating_add(SETTLED_NS) < self.now_ns;
        Key {
            when,
            cut: cut.clone(),
            classes: self.cut_revision(cut),
            lives: self.lives.revision(),
            snapshots: self.blind.len(),
            ended: self.has_ended(),
            events: match when {
                When::Peak => self.course.peak().map_or(0, |peak| peak.time_ns),
                _ if settled => 0,
                // Totals may be of a moment before the last event.
                _ => self
                    .everything
                    .events
                    .wrapping_add(self.now_ns)
                    .wrapping_add(self.course.rate_steps().as_of_ns()),
            },
        }
    }

    /// The numbers of another moment; `None` for the present.
    #[must_use]
    pub fn then(&self, when: When) -> Option<Arc<Then>> {
        self.then_by(when, &By::Group.into())
    }

    /// The same, put together by something else, or of some blocks alone.
    #[must_use]
    pub fn then_by(&self, when: When, cut: &Cut) -> Option<Arc<Then>> {
        let when = when.until(self.now_ns);
        if when == When::Now {
            return None;
        }
        let key = self.key(when, cut);
        let kept = self.then.then.borrow();
        if let Some((_, then)) = kept.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(then));
        }
        let same = |known: &Key| {
            (known.when, known.classes, known.lives) == (when, key.classes, key.lives)
                && known.cut == *cut
        };
        if let Some((_, before)) = kept.iter().find(|(known, _)| same(known))
            && let Some(making) = &*self.then.making.borrow()
            && making.is_for(when, cut, key.classes)
        {
            return Some(Arc::clone(before));
        }
        drop(kept);
        let then = Arc::new(Then::new(self, when, cut.clone()));
        self.keep(key, &then);
        Some(then)
    }

    /// Keeps an answer.
    fn keep(&self, key: Key, then: &Arc<Then>) {
        let mut kept = self.then.then.borrow_mut();
        // What an older state of the same question was is of no use any more.
        kept.retain(|(known, _)| known.when != key.when || known.cut != key.cut);
        kept.truncate(KEPT - 1);
        kept.insert(0, (key, Arc::clone(then)));
    }
}

impl Then {
    /// What is known of a moment or a range, without any sums.
    #[must_use]
    pub fn bare(session: &Session, when: When, cut: Cut) -> Self {
        let when = match when.until(session.now_ns) {
            When::Now => When::At(session.now_ns),
            when => when,
        };
        Self::made(Bounds::new(session, when), Sets::default(), cut)
    }

    fn new(session: &Session, when: When, cut: Cut) -> Self {
        let bounds = Bounds::new(session, when);
        let sets = Sets::of(session, &bounds, &cut);
        Self::made(bounds, sets, cut)
    }

    fn made(bounds: Bounds, sets: Sets, cut: Cut) -> Self {
        let sets = Arc::new(sets);
        let (lives, trend) = (OnceLock::new(), OnceLock::new());
        let (holding, grew) = (OnceLock::new(), OnceLock::new());
        let (old, born, together) = (Mutex::new(None), Mutex::new(None), Mutex::new(None));
        let lived = lived::Kept::default();
        Self { cut, bounds, sets, lives, trend, holding, grew, old, born, together, lived }
    }

    /// By class of groups put together, the same as [`Self::holding`].
    #[must_use]
    pub fn holding_together(&self, partition: &Partition) -> Arc<Vec<bool>> {
        let make = || {
            let sum = |class: &Class| {
                let mut sets = [family::Set::default(); 2];
                let grown = |group: &u32| self.sets.grown.get(*group as usize);
                for Grown { gained, lost } in class.groups.iter().filter_map(grown) {
                    sets[0].merge(gained);
                    sets[1].merge(lost);
                }
                sets
            };
            let sets = partition.classes.iter().map(sum);
            Arc::new(family::holding(sets, self.sight_of_growth().both()))
        };
        let Ok(mut kept) = self.together.lock() else { return make() };
        match &*kept {
            Some((known, grew)) if *known == partition.stamp() => Arc::clone(grew),
            _ => Arc::clone(&kept.insert((partition.stamp(), make())).1),
        }
    }

    /// By group, whether evidence of growth holds among all of them: see
    /// [`family::holding`].
    #[must_use]
    pub fn holding(&self) -> &[bool] {
        self.holding.get_or_init(|| {
            if !self.grows() {
                return Vec::new();
            }
            let sets = self.sets.grown.iter().map(|of| [(&of.gained).into(), (&of.lost).into()]);
            family::holding(sets, self.sight_of_growth().both())
        })
    }

    /// By group, whether it grew with evidence: of all that are said to have, the chance
    /// that even one has not is 5 % at most.
    #[must_use]
    pub fn grew(&self) -> &[bool] {
        self.grew.get_or_init(|| {
            let sight = self.sight_of_growth().both();
            let seen = |(of, holds): (&Grown, &bool)| {
                *holds && family::is_seen(&of.gained, &of.lost, sight)
            };
            self.sets.grown.iter().zip(self.holding()).map(seen).collect()
        })
    }

    /// How many groups, or other classes, there are.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.sets.groups.len().max(self.sets.in_use.len())
    }

    /// What blocks are put together by, and which of them they are.
    #[must_use]
    pub const fn cut(&self) -> &Cut {
        &self.cut
    }

    /// What each thread did, as far as it was heard of.
    #[must_use]
    pub fn threads(&self, session: &Session) -> FxHashMap<ThreadId, threads::OfThread> {
        threads::of(session, &self.bounds, &self.cut)
    }

    /// By group, the blocks alive then that were born until `born_until_ns`.
    #[must_use]
    pub fn old(&self, session: &Session, born_until_ns: u64) -> Arc<Vec<Total>> {
        let make = || {
            Arc::new(old::of(session, &self.bounds, self.cut.only.as_ref(), born_until_ns / 1000))
        };
        let Ok(mut kept) = self.old.lock() else { return make() };
        match &*kept {
            Some((known, groups)) if *known == born_until_ns => Arc::clone(groups),
            _ => {
                let groups = make();
                *kept = Some((born_until_ns, Arc::clone(&groups)));
                groups
            }
        }
    }

    /// How old those of some groups are, beside `groups`. Costs a pass over all that lives.
    #[must_use]
    pub fn old_ages(&self, session: &Session, born_until_ns: u64, groups: &[u32]) -> Vec<Ages> {
        old::ages(session, &self.bounds, self.cut.only.as_ref(), born_until_ns / 1000, groups)
    }

    /// Of sets of groups, the blocks alive then by generation: those born until the first of
    /// `ends_ns`, from then until the next, and after the last.
    #[must_use]
    pub fn generations<'a>(
        &self,
        session: &Session,
        ends_ns: &[u64],
        sets: impl Iterator<Item = &'a [u32]>,
    ) -> Vec<Vec<Total>> {
        let ends_us: Vec<u64> = ends_ns.iter().map(|ns| ns / 1000).collect();
        let (only, purpose) = (self.cut.only.as_ref(), Purpose::Generations);
        let make = || {
            let kept_up = session.standing(&self.bounds, &self.cut, purpose, &ends_us);
            let kept_up = kept_up.map(|sums| born::Generations::standing(&sums, ends_us.len() + 1));
            Arc::new(kept_up.unwrap_or_else(|| born::of(session, &self.bounds, only, &ends_us)))
        };
        let groups = match self.born.lock() {
            Err(_) => make(),
            Ok(mut kept) => match &*kept {
                Some((known, groups)) if *known == ends_us => Arc::clone(groups),
                _ => Arc::clone(&kept.insert((ends_us.clone(), make())).1),
            },
        };
        born::sums(&|group| groups.of(group), ends_us.len() + 1, sets)
    }

    /// The totals of a callstack.
    #[must_use]
    pub fn stack_totals(&self, stack: u32) -> &Totals {
        self.sets.stacks.get(stack as usize).unwrap_or(&NOTHING)
    }

    /// The totals of a group.
    #[must_use]
    pub fn group_totals(&self, group: u32) -> &Totals {
        self.sets.groups.get(group as usize).map_or(&NOTHING, |group| &group.totals)
    }

    /// What a group has in use.
    #[must_use]
    pub fn group_in_use(&self, group: u32) -> &Total {
        let alone = self.sets.in_use.get(group as usize);
        alone.unwrap_or_else(|| &self.group_totals(group).in_use)
    }

    /// Of all callstacks together.
    #[must_use]
    pub fn whole(&self) -> &Totals {
        &self.sets.whole.totals
    }

    /// What a group allocated in the window of rates.
    #[must_use]
    pub fn group_window(&self, group: u32) -> &Total {
        self.sets.groups.get(group as usize).map_or(&NOTHING.allocated, |group| &group.window)
    }

    /// What a group, or all, allocated in the window of rates, and what of it was promoted.
    #[must_use]
    pub fn windows(&self, group: Option<u32>) -> (Total, Total) {
        let of = match group {
            Some(group) => self.sets.groups.get(group as usize),
            None => Some(&self.sets.whole),
        };
        of.map_or_else(Default::default, |of| (of.window, of.survived))
    }

    /// What a group gained and lost in the range; `None` where that is not known.
    #[must_use]
    pub fn group_growth(&self, group: u32) -> Option<(&Total, &Total)> {
        self.grows().then(|| {
            let none = &NOTHING.in_use;
            self.sets.grown.get(group as usize).map_or((none, none), |g| (&g.gained, &g.lost))
        })
    }

    /// Of blocks that are over by choice none is alive at the end.
    fn grows(&self) -> bool {
        self.bounds.grows && !self.cut.only.as_ref().is_some_and(|only| only.all_over())
    }

    /// The same of all.
    #[must_use]
    pub fn growth(&self) -> Option<(&Total, &Total)> {
        let whole = &self.sets.whole_grown;
        self.grows().then_some((&whole.gained, &whole.lost))
    }

    /// Whether what was in use is known.
    #[must_use]
    pub fn knows_in_use(&self) -> bool {
        let over = self.cut.only.as_ref().is_some_and(|only| only.all_over());
        // The peak is told by callstack.
        let told = !self.cut.is_of_blocks() || self.bounds.when != When::Peak;
        self.bounds.in_use && told && !over
    }

    /// Whether what was allocated and promoted is known.
    #[must_use]
    pub const fn knows_allocated(&self) -> bool {
        self.bounds.allocated
    }

    /// Seconds that rates are over; `None` where none are known.
    #[must_use]
    pub const fn rate_seconds(&self) -> Option<f64> {
        self.bounds.rate_seconds
    }

    /// How the blocks in use were sampled.
    #[must_use]
    pub const fn sight_of_in_use(&self) -> Sight {
        self.bounds.sight_of_in_use
    }

    /// How what was allocated was sampled.
    #[must_use]
    pub const fn sight_of_allocated(&self) -> Sight {
        self.bounds.sight_of_allocated
    }

    /// How what rates are of was sampled.
    #[must_use]
    pub const fn sight_of_rates(&self) -> Sight {
        self.bounds.sight_of_rates
    }

    /// How both ends of a range were sampled.
    #[must_use]
    pub const fn sight_of_growth(&self) -> GrowthSight {
        self.bounds.sight_of_growth
    }

    /// Its beginning and its end, in nanoseconds since the agent's start; `None` of a moment.
    #[must_use]
    pub const fn range(&self) -> Option<(u64, u64)> {
        match self.bounds.when {
            When::Range { from_ns, to_ns } => Some((from_ns, to_ns)),
            When::Now | When::At(_) | When::Peak => None,
        }
    }

    /// The end, in nanoseconds since the agent's start.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        self.bounds.end_us * 1000
    }

    /// The median lifetime of some groups together; `table` is room to work in.
    #[must_use]
    pub fn lifetime(
        &self,
        session: &Session,
        groups: impl Iterator<Item = u32>,
        table: &mut Table,
    ) -> Lifetime {
        self.ages_of(session, groups, table);
        table.median()
    }

    /// Fills `table` with the lives of some groups together.
    pub fn ages_of(&self, session: &Session, groups: impl Iterator<Item = u32>, table: &mut Table) {
        let lives = self.lives.get_or_init(|| ages::of(session, &self.bounds, &self.cut).into());
        table.clear();
        groups.filter_map(|group| lives.get(group as usize)).for_each(|ages| ages.add_to(table));
    }

    /// By how much bytes in use of a group, or of all, grew in each step of the trend,
    /// oldest first.
    #[must_use]
    pub fn trend(&self, session: &Session, group: Option<u32>) -> Vec<f64> {
        let trend = self.trend.get_or_init(|| Trend::of(session, &self.bounds, &self.cut).into());
        group.map_or_else(|| trend.whole().to_vec(), |group| trend.group(group).to_vec())
    }

    /// How many steps of the trend there are.
    #[must_use]
    pub fn trend_steps(&self, session: &Session) -> usize {
        self.trend.get_or_init(|| Trend::of(session, &self.bounds, &self.cut).into()).steps()
    }
}
