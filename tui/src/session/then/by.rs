//! What blocks are put together by: their callsite's group, their callstack, their size or
//! their thread; and which of them alone are looked at.

use super::Session;
use super::bounds::Bounds;
use super::only::{Only, Seen};
use crate::session::book::Book;
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
    /// The callstack itself.
    Stack,
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
#[derive(Debug)]
pub struct Classes {
    /// What they are numbers of.
    pub kind: Kind,
    only: Option<Arc<Only>>,
    bounds: Bounds,
}

/// The numbers that blocks are put together under, whichever they are.
#[derive(Debug)]
pub enum Kind {
    /// By callstack, its group.
    Groups(Vec<u32>),
    /// The callstacks, as many as there are.
    Stacks(u32),
    /// Powers of two.
    Sizes,
    /// By thread, as far as there is room for it; all others are the last.
    Threads(Vec<u32>, u32),
}

impl Classes {
    /// Those of a session.
    pub fn of(session: &Session, cut: &Cut, bounds: &Bounds) -> Self {
        Self { kind: Kind::of(session, cut.by), only: cut.only.clone(), bounds: *bounds }
    }

    /// The number of a block; `None` for one that is not looked at, and for a callstack
    /// that is not known.
    #[inline]
    #[must_use]
    pub fn class(&self, one: &Seen) -> Option<u32> {
        if self.only.as_ref().is_some_and(|only| !only.takes(one, &self.bounds)) {
            return None;
        }
        self.kind.class(one.stack, one.size, one.thread)
    }

    /// Numbers are below this.
    #[must_use]
    pub fn count(&self, session: &Session) -> usize {
        self.kind.count(session)
    }
}

impl Kind {
    /// Those of a session.
    pub fn of(session: &Session, by: By) -> Self {
        match by {
            By::Group => Self::Groups(session.book.group_of().to_vec()),
            By::Stack => Self::Stacks(session.book.stacks().len() as u32),
            By::Size => Self::Sizes,
            By::Thread => {
                let ids = session.thread_classes();
                let most = ids.last().map_or(0, |id| id.0 as usize + 1);
                let mut places = vec![ids.len() as u32; most];
                for (place, id) in (0..).zip(&ids) {
                    places[id.0 as usize] = place;
                }
                Self::Threads(places, ids.len() as u32)
            }
        }
    }

    /// Takes in the callstacks that have come since.
    #[inline]
    pub fn fit(&mut self, book: &Book) {
        let all = book.group_of();
        match self {
            Self::Groups(groups) => {
                if let Some(new) = all.get(groups.len()..) {
                    groups.extend_from_slice(new);
                }
            }
            Self::Stacks(count) => *count = all.len() as u32,
            Self::Sizes | Self::Threads(..) => {}
        }
    }

    /// The number of a block; `None` for a callstack that is not known.
    #[inline]
    #[must_use]
    pub fn class(&self, stack: u32, size: u64, thread: ThreadId) -> Option<u32> {
        match self {
            Self::Groups(groups) => groups.get(stack as usize).copied(),
            Self::Stacks(count) => (stack < *count).then_some(stack),
            Self::Sizes => Some(size_class(size)),
            Self::Threads(places, others) => {
                Some(places.get(thread.0 as usize).copied().unwrap_or(*others))
            }
        }
    }

    /// Numbers would be below this.
    #[must_use]
    pub fn count_of(session: &Session, by: By) -> usize {
        match by {
            By::Group => session.book.groups().numbers(),
            By::Stack => session.book.stacks().len(),
            By::Size => SIZES as usize,
            By::Thread => session.thread_classes().len() + 1,
        }
    }

    /// Numbers are below this.
    #[must_use]
    pub fn count(&self, session: &Session) -> usize {
        match self {
            Self::Groups(_) => session.book.groups().numbers(),
            Self::Stacks(count) => *count as usize,
            Self::Sizes => SIZES as usize,
            Self::Threads(_, others) => *others as usize + 1,
        }
    }
}

impl Session {
    /// Changes when blocks that are known have come to other classes.
    pub(super) fn classes_revision(&self, by: By) -> u64 {
        match by {
            By::Group => self.book.regrouped(),
            By::Stack | By::Size => 0,
            // Threads come and stay: one more may move the places of others.
            By::Thread => self.threads.len() as u64,
        }
    }

    /// The same, and when callstacks that are chosen by names have other names.
    pub(super) fn cut_revision(&self, cut: &Cut) -> [u64; 2] {
        let stacks = cut.only.as_ref().is_some_and(|only| only.has_stacks());
        let names = if stacks { self.book.renamed() } else { 0 };
        [self.classes_revision(cut.by), names]
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
