//! A list of entries through a link in each claim: pushed to and popped from by any
//! thread. The head carries a count against ABA.

use crate::engine::sync::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// `count << 32 | index + 1` of the first; see the module.
#[derive(Default)]
pub struct List(AtomicU64);

impl List {
    /// Puts entry `index` in front. It must be on no list that goes by this link.
    pub fn push<'a>(&self, index: u32, link: impl Fn(u32) -> Option<&'a AtomicU32>) {
        let Some(own) = link(index) else { return };
        let mut head = self.0.load(Relaxed);
        loop {
            own.store(head as u32, Relaxed);
            let new = Self::head(head, index + 1);
            match self.0.compare_exchange_weak(head, new, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the first.
    pub fn pop<'a>(&self, link: impl Fn(u32) -> Option<&'a AtomicU32>) -> Option<u32> {
        let mut head = self.0.load(Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            // May be another list's by now: then the count has changed.
            let next = link(index)?.load(Relaxed);
            match self.0.compare_exchange_weak(head, Self::head(head, next), AcqRel, Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }

    /// Takes all: the link to the first, the others behind it.
    pub fn take(&self) -> u32 {
        let mut head = self.0.load(Acquire);
        while head as u32 != 0 {
            match self.0.compare_exchange_weak(head, Self::head(head, 0), AcqRel, Acquire) {
                Ok(_) => return head as u32,
                Err(now) => head = now,
            }
        }
        0
    }

    /// Puts what [`Self::take`] gave here, where nothing is, and nobody else does so.
    pub fn put(&self, first: u32) {
        let head = self.0.load(Relaxed);
        self.0.store(Self::head(head, first), Release);
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.0.load(Relaxed) as u32 == 0
    }

    const fn head(before: u64, link: u32) -> u64 {
        (before >> 32).wrapping_add(1) << 32 | link as u64
    }
}
