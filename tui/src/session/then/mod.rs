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
//! | rates | what was born in the ten seconds before T | what was born in it |
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
//! ([`settled`]), and of what is behind it looks at births and ends alone. The last
//! answer is kept until something in it may have changed, so a cursor at rest costs
//! nothing.
//!
//! [`Course`]: super::course::Course

mod ages;
mod bounds;
pub mod old;
mod settled;
#[cfg(test)]
mod tests;
pub mod threads;
mod totals;
mod trend;
pub(super) mod weights;

use super::Session;
use super::estimate::Sight;
use super::estimate::survival::Table;
use super::figures::Lifetime;
use super::lifetimes::Ages;
use super::when::When;
use bounds::Bounds;
use heaptop_protocol::ids::ThreadId;
use heaptop_protocol::totals::{Total, Totals};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock, OnceLock};
use totals::Sets;
use trend::Trend;

/// Until so long after a moment events may still come that are before it.
const SETTLED_NS: u64 = 2_000_000_000;

static NOTHING: LazyLock<Totals> = LazyLock::new(Totals::default);

/// What an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    when: When,
    regrouped: u64,
    lives: u64,
    snapshots: usize,
    events: u64,
}

/// A curve, of what, and in how many steps.
type OverTime = (Key, usize, Arc<[f64]>);

/// The last answers.
#[derive(Debug, Default)]
pub(super) struct Kept {
    then: RefCell<Option<(Key, Arc<Then>)>>,
    over_time: RefCell<Option<OverTime>>,
    settled: RefCell<settled::Settled>,
}

/// See the module.
#[derive(Debug)]
pub struct Then {
    bounds: Bounds,
    sets: Sets,
    lives: OnceLock<Vec<Ages>>,
    trend: OnceLock<Trend>,
}

impl Session {
    /// From when to when any moment can be asked about, in nanoseconds since the agent's
    /// start; `None` before the first snapshot has ended.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let from = self.base.as_ref()?.at.time_ns;
        let from = self.lives.since().map_or(from, |since| from.max(since.time_ns));
        Some((from.min(self.now_ns), self.now_ns))
    }

    /// Bytes in use at the ends of `steps` equal steps from after `from_ns` until `to_ns`,
    /// made of the blocks that were heard of. Costs a pass when something has changed.
    #[must_use]
    pub fn in_use_over_time(&self, from_ns: u64, to_ns: u64, steps: usize) -> Arc<[f64]> {
        let key = self.key(When::Range { from_ns, to_ns });
        let mut kept = self.then.over_time.borrow_mut();
        match &*kept {
            Some((known, of, values)) if (*known, *of) == (key, steps) => Arc::clone(values),
            _ => {
                let values: Arc<[f64]> = trend::over_time(self, from_ns, to_ns, steps).into();
                *kept = Some((key, steps, Arc::clone(&values)));
                values
            }
        }
    }

    /// What an answer about `when` depends on.
    fn key(&self, when: When) -> Key {
        let end_ns = match when {
            When::Now | When::Peak => u64::MAX,
            When::At(end) | When::Range { to_ns: end, .. } => end,
        };
        let settled = end_ns.saturating_add(SETTLED_NS) < self.now_ns;
        Key {
            when,
            regrouped: self.book.regrouped(),
            lives: self.lives.revision(),
            snapshots: self.blind.len(),
            events: match when {
                When::Peak => self.course.peak().map_or(0, |peak| peak.time_ns),
                _ if settled => 0,
                _ => self.everything.events.wrapping_add(self.now_ns),
            },
        }
    }

    /// The numbers of another moment; `None` for the present.
    #[must_use]
    pub fn then(&self, when: When) -> Option<Arc<Then>> {
        let when = when.until(self.now_ns);
        if when == When::Now {
            return None;
        }
        let key = self.key(when);
        let mut kept = self.then.then.borrow_mut();
        if let Some((known, then)) = &*kept
            && *known == key
        {
            return Some(Arc::clone(then));
        }
        let bounds = Bounds::new(self, when);
        let then = Arc::new(Then {
            sets: Sets::of(self, &bounds),
            bounds,
            lives: OnceLock::new(),
            trend: OnceLock::new(),
        });
        *kept = Some((key, Arc::clone(&then)));
        Some(then)
    }
}

impl Then {
    /// What each thread did, as far as it was heard of.
    #[must_use]
    pub fn threads(&self, session: &Session) -> FxHashMap<ThreadId, threads::OfThread> {
        threads::of(session, &self.bounds)
    }

    /// By group, the blocks alive then that were born until `born_until_ns`.
    #[must_use]
    pub fn old(&self, session: &Session, born_until_ns: u64) -> Vec<old::OfGroup> {
        old::of(session, &self.bounds, born_until_ns / 1000)
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
        self.bounds.grows.then(|| {
            let none = &NOTHING.in_use;
            self.sets.groups.get(group as usize).map_or((none, none), |g| (&g.gained, &g.lost))
        })
    }

    /// The same of all.
    #[must_use]
    pub fn growth(&self) -> Option<(&Total, &Total)> {
        let whole = &self.sets.whole;
        self.bounds.grows.then_some((&whole.gained, &whole.lost))
    }

    /// Whether what was in use is known.
    #[must_use]
    pub const fn knows_in_use(&self) -> bool {
        self.bounds.in_use
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
    pub const fn sight_of_growth(&self) -> Sight {
        self.bounds.sight_of_growth
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
        let lives = self.lives.get_or_init(|| ages::of(session, &self.bounds));
        table.clear();
        groups.filter_map(|group| lives.get(group as usize)).for_each(|ages| ages.add_to(table));
        table.median()
    }

    /// By how much bytes in use of a group, or of all, grew in each step of the trend,
    /// oldest first.
    #[must_use]
    pub fn trend(&self, session: &Session, group: Option<u32>) -> Vec<f64> {
        let trend = self.trend.get_or_init(|| Trend::of(session, &self.bounds));
        group.map_or_else(|| trend.whole(), |group| trend.group(group).to_vec())
    }

    /// How many steps of the trend there are.
    #[must_use]
    pub fn trend_steps(&self, session: &Session) -> usize {
        self.trend.get_or_init(|| Trend::of(session, &self.bounds)).steps()
    }
}
