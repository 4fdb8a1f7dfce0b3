//! Lives of many groups together, kept for a while.
//!
//! A class of callsites may hold all callstacks that there are, and events come all the
//! time. So what a class' lives say is made anew once a second, of the target's time.

use super::Session;
use super::estimate::curve::Curve;
use super::estimate::survival::Table;
use super::figures::{Followed, Lifetime};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// See the module, in nanoseconds.
const KEPT_NS: u64 = 1_000_000_000;
/// More classes than are shown at once.
const MOST: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Lives {
    made_ns: u64,
    lifetime: Lifetime,
    mean: Followed,
}

/// Since callstacks came to other groups.
#[derive(Debug, Default)]
pub(super) struct Kept(RefCell<(u64, ByClass)>);

/// By the class' key and how many groups it has.
type ByClass = FxHashMap<(u64, usize), Lives>;

impl Session {
    /// The median and mean lifetime of some groups together, which are class `key`;
    /// `table` is room to work in.
    pub(crate) fn class_lifetime(
        &self,
        key: u64,
        groups: &[u32],
        table: &mut Table,
    ) -> (Lifetime, Followed) {
        let (now, regrouped) = (self.now_ns, self.book.regrouped());
        let mut kept = self.classes.0.borrow_mut();
        if kept.0 != regrouped || kept.1.len() > MOST {
            *kept = (regrouped, FxHashMap::default());
        }
        // Callstacks that come are in the same class: it has more groups then.
        let key = (key, groups.len());
        if let Some(lives) = kept.1.get(&key)
            && (lives.made_ns..lives.made_ns.saturating_add(KEPT_NS)).contains(&now)
        {
            return (lives.lifetime, lives.mean);
        }
        table.clear();
        for &stack in groups.iter().flat_map(|&group| self.book.groups().group(group).stacks()) {
            self.numbers[stack as usize].lifetimes.add_to(table, now);
        }
        let (lifetime, mean) = (table.median(), Curve::of(table).mean());
        kept.1.insert(key, Lives { made_ns: now, lifetime, mean });
        (lifetime, mean)
    }
}
