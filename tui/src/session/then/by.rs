//! What blocks are put together by: their callsite's group, their size or their thread; and
//! which of them alone are looked at.

use super::Session;
use super::bounds::Bounds;
use super::only::{Only, Seen};
use crate::session::book::Stack;
use crate::session::then::threads::OTHERS;
use heaptop_protocol::ids::ThreadId;
use std::sync::Arc;

/// See the module. Sizes and threads are known of single blocks alone, so nothing of
/// them is known from before the viewer came but who lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum By {
    /// The group of the callstack.
    #[default]
    Group,
    /// The size class: powers of two.
    Size,
    /// The thread that allocated it.
    Thread,
}

/// What of the blocks is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    /// What they are put together by.
    pub by: By,
    /// Which of them alone; `None`: all.
    pub only: Option<Arc<Only>>,
}

impl From<By> for Cut {
    fn from(by: By) -> Self {
        Self { by, only: None }
    }
}

impl Cut {
    /// Whether single blocks are told apart: of what happened before the viewer came they
    /// have no part but who lives.
    #[must_use]
    pub fn is_of_blocks(&self) -> bool {
        self.by != By::Group || self.has_tests()
    }

    /// Whether blocks are chosen one by one.
    #[must_use]
    pub fn has_tests(&self) -> bool {
        self.only.as_ref().is_some_and(|only| only.has_tests())
    }

    /// Whether a callstack has a part in it.
    #[must_use]
    pub fn takes_stack(&self, stack: u32) -> bool {
        self.only.as_ref().is_none_or(|only| only.takes_stack(stack))
    }
}

/// Size classes: class k holds sizes above 2^(k − 1), up to 2^k bytes.
pub const SIZES: u32 = 65;

/// The class of a size.
#[must_use]
pub const fn size_class(size: u64) -> u32 {
    if size <= 1 { 0 } else { u64::BITS - (size - 1).leading_zeros() }
}

/// The numbers that blocks are put together under, as of the end of some time.
pub struct Classes {
    /// What they are numbers of.
    pub kind: Kind,
    only: Option<Arc<Only>>,
    bounds: Bounds,
}

/// See [`Classes`].
pub enum Kind {
    /// By callstack, its group.
    Groups(Vec<u32>),
    /// Powers of two.
    Sizes,
    /// By thread, as far as there is room for it; all others are the last.
    Threads(Vec<u32>, u32),
}

impl Classes {
    /// Those of a session.
    pub fn of(session: &Session, cut: &Cut, bounds: &Bounds) -> Self {
        let kind = match cut.by {
            By::Group => Kind::Groups(session.book.stacks().iter().map(Stack::group).collect()),
            By::Size => Kind::Sizes,
            By::Thread => {
                let ids = session.thread_classes();
                let most = ids.last().map_or(0, |id| id.0 as usize + 1);
                let mut places = vec![ids.len() as u32; most];
                for (place, id) in (0..).zip(&ids) {
                    places[id.0 as usize] = place;
                }
                Kind::Threads(places, ids.len() as u32)
            }
        };
        Self { kind, only: cut.only.clone(), bounds: *bounds }
    }

    /// The number of a block; `None` for one that is not looked at, and for a callstack
    /// that is not known.
    #[inline]
    #[must_use]
    pub fn class(&self, one: &Seen) -> Option<u32> {
        if self.only.as_ref().is_some_and(|only| !only.takes(one, &self.bounds)) {
            return None;
        }
        match &self.kind {
            Kind::Groups(groups) => groups.get(one.stack as usize).copied(),
            Kind::Sizes => Some(size_class(one.size)),
            Kind::Threads(places, others) => {
                Some(places.get(one.thread.0 as usize).copied().unwrap_or(*others))
            }
        }
    }

    /// Numbers are below this.
    #[must_use]
    pub fn count(&self, session: &Session) -> usize {
        match &self.kind {
            Kind::Groups(_) => session.book.groups().numbers(),
            Kind::Sizes => SIZES as usize,
            Kind::Threads(_, others) => *others as usize + 1,
        }
    }
}

impl Session {
    /// Changes when blocks that are known have come to other classes.
    pub(super) fn classes_revision(&self, cut: &Cut) -> [u64; 2] {
        let stacks = cut.only.as_ref().is_some_and(|only| only.has_stacks());
        let names = if stacks { self.book.renamed() } else { 0 };
        let classes = match cut.by {
            By::Group => self.book.regrouped(),
            By::Size => 0,
            // Threads come and stay: one more may move the places of others.
            By::Thread => self.threads.len() as u64,
        };
        [classes, names]
    }

    /// The threads that have a class of their own, in the order of their classes; the
    /// class behind them is that of all others.
    #[must_use]
    pub fn thread_classes(&self) -> Vec<ThreadId> {
        let mut ids: Vec<ThreadId> =
            self.threads.keys().copied().filter(|id| id.0 < OTHERS.0).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_powers_of_two() {
        for (size, class) in
            [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6), (65, 7), (u64::MAX, 64)]
        {
            assert_eq!(size_class(size), class, "{size}");
            assert!(class < SIZES);
        }
    }
}
