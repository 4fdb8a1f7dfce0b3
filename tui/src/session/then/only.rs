//! Which blocks alone are looked at.
//!
//! A test takes a block as it is at the end of what is asked about: a block that lives then
//! has an age and no lifetime, one that is over has both, and they are the same. So once a
//! life is over no later moment judges it otherwise, and sums over lives that are over can
//! go on where they stopped ([`super::settled`], [`super::since`]).
//!
//! Tests are made of what was typed and of what the session knows: threads by name, phases,
//! marks. Two of them are the same where both are ([`Only::stamp`]): by that what is kept
//! is told apart.

use super::bounds::Bounds;
use super::threads::OTHERS;
use crate::session::blocks::Block;
use crate::session::lives::Life;
use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::ThreadId;
use std::cmp::Ordering;
use std::sync::Arc;

/// How a number must lie to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Than {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

impl Than {
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::AtLeast => order.is_ge(),
            Self::More => order.is_gt(),
        }
    }
}

/// What is asked of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Bytes asked for.
    Size(Than, u64),
    /// Nanoseconds that it has lived.
    Age(Than, u64),
    /// Nanoseconds that it lived, of one that is over.
    Lifetime(Than, u64),
    /// Born in one of these: microseconds since the agent's start, both ends within.
    Born(Vec<(u64, u64)>),
    /// Died in one of these.
    Died(Vec<(u64, u64)>),
    /// By thread's number, whether it is one of those that allocated it.
    Threads(Vec<bool>),
    /// How it was asked for; by callstack, whether it is memory outside the heap, which
    /// has no cause of these.
    Cause(Cause, Arc<[bool]>),
    /// Born young, and whether it outlived its cycle.
    Promoted(bool),
}

/// A block, as far as tests look at it.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub born_us: u64,
    /// `u64::MAX` while it lives.
    pub ended_us: u64,
    /// When it is known to have died; `u64::MAX` if it is not.
    pub died_us: u64,
    pub stack: u32,
    pub size: u64,
    pub thread: ThreadId,
    pub cause: Cause,
    pub born_young: bool,
    pub promoted: bool,
    pub born_clock: u64,
}

impl Seen {
    /// A life that is over.
    #[inline]
    pub const fn life(life: &Life) -> Self {
        Self {
            born_us: life.born_us,
            ended_us: life.ended_us,
            died_us: if life.end.is_death() { life.ended_us } else { u64::MAX },
            stack: life.stack,
            size: life.size,
            thread: life.thread,
            cause: life.cause,
            born_young: life.born_young,
            promoted: life.promoted,
            born_clock: life.born_clock,
        }
    }

    /// A block that lives.
    #[inline]
    pub const fn living(block: &Block, bounds: &Bounds) -> Self {
        Self {
            born_us: block.born_ns / 1000,
            ended_us: u64::MAX,
            died_us: u64::MAX,
            stack: block.stack,
            size: block.size,
            thread: block.thread,
            cause: block.cause,
            born_young: block.born_young,
            promoted: block.born_young && bounds.outlives(block.young),
            born_clock: block.born_clock & !0xfff,
        }
    }
}

/// All of a filter's tests, which a block must pass together.
#[derive(Debug, Clone)]
pub struct Only {
    /// What was typed.
    source: Arc<str>,
    /// What of it is as it is because of what the session knew.
    stamp: Vec<u64>,
    /// Each with whether it must hold, or must not.
    tests: Vec<(bool, Test)>,
    /// By callstack, whether its blocks are looked at; `None`: all.
    stacks: Option<Arc<[bool]>>,
}

/// By what was typed: how callstacks are judged changes with their groups alone, which all
/// that is kept is told apart by as well.
impl PartialEq for Only {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
            && self.stamp == other.stamp
            && self.stacks.is_some() == other.stacks.is_some()
    }
}

impl Eq for Only {}

impl Only {
    pub const fn new(
        source: Arc<str>,
        stamp: Vec<u64>,
        tests: Vec<(bool, Test)>,
        stacks: Option<Arc<[bool]>>,
    ) -> Self {
        Self { source, stamp, tests, stacks }
    }

    /// Whether single blocks are told apart: of those from before the viewer came nothing
    /// but who lives is known then.
    pub fn has_tests(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Whether it goes by callstack as well.
    pub const fn has_stacks(&self) -> bool {
        self.stacks.is_some()
    }

    /// Whether a callstack is looked at.
    #[inline]
    pub fn takes_stack(&self, stack: u32) -> bool {
        self.stacks.as_ref().is_none_or(|all| all.get(stack as usize).is_some_and(|taken| *taken))
    }

    /// Whether all of them are over: what of them is in use is no question.
    pub fn all_over(&self) -> bool {
        let over = |test: &Test| matches!(test, Test::Lifetime(..) | Test::Died(_));
        self.tests.iter().any(|(holds, test)| *holds && over(test))
    }

    /// Whether blocks are chosen by what becomes of them: how long such blocks live says
    /// nothing of how long blocks live.
    pub fn by_fate(&self) -> bool {
        let fate = |test: &Test| match test {
            Test::Lifetime(..) | Test::Died(_) | Test::Age(..) | Test::Promoted(_) => true,
            Test::Size(..) | Test::Born(_) | Test::Threads(_) | Test::Cause(..) => false,
        };
        self.tests.iter().any(|(_, test)| fate(test))
    }

    /// Whether a block is looked at, as it is at the end of `bounds`.
    #[inline]
    pub fn takes(&self, one: &Seen, bounds: &Bounds) -> bool {
        self.takes_stack(one.stack)
            && self.tests.iter().all(|(holds, test)| test.holds(one, bounds) == *holds)
    }
}

impl Test {
    fn holds(&self, one: &Seen, bounds: &Bounds) -> bool {
        let within = |us: u64, all: &[(u64, u64)]| {
            let at = all.partition_point(|(from, _)| *from <= us);
            at.checked_sub(1).is_some_and(|at| us <= all[at].1)
        };
        let longer = |us: u64, than: Than, ns: &u64| than.holds(us.saturating_mul(1000).cmp(ns));
        let over = one.died_us <= bounds.end_us;
        match self {
            Self::Size(than, bytes) => than.holds(one.size.cmp(bytes)),
            Self::Age(than, ns) => {
                let until = one.ended_us.min(bounds.end_us);
                longer(until.saturating_sub(one.born_us), *than, ns)
            }
            Self::Lifetime(than, ns) => {
                over && longer(one.died_us.saturating_sub(one.born_us), *than, ns)
            }
            Self::Born(all) => within(one.born_us, all),
            Self::Died(all) => over && within(one.died_us, all),
            Self::Threads(all) => {
                let at = one.thread.0.min(OTHERS.0) as usize;
                all.get(at).is_some_and(|one| *one)
            }
            Self::Cause(cause, outside) => {
                one.cause == *cause && !outside.get(one.stack as usize).is_some_and(|out| *out)
            }
            Self::Promoted(wanted) => {
                let promoted = one.promoted && bounds.is_over(one.born_clock);
                one.born_young && promoted == *wanted
            }
        }
    }
}
