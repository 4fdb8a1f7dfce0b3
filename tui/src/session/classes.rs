//! Lives of many groups together, kept for a while.
//!
//! A class of callsites may hold all callstacks that there are, and events come all the
//! time. So what a class' lives say is made anew once a second, of the target's time.
//!
//! **A part at a time.** With many callstacks even that would hold the screen up. While a
//! class has an answer, at most [`PART`] callstacks are gone through with each change of the
//! session, for all classes together; the answer stands until the next one is ready, which
//! takes as many seconds as it must. Once the target is gone there is time for the whole.
//! Of all callsites together it is kept with each event, and costs nothing.

use super::estimate::curve::Curve;
use super::estimate::survival::Table;
use super::figures::{Followed, Lifetime};
use super::{Connection, Session};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// See the module, in nanoseconds.
const KEPT_NS: u64 = 1_000_000_000;
/// Callstacks that are gone through at once, if there is an answer to show meanwhile. Tests
/// have few.
const PART: usize = if cfg!(test) { 1 << 6 } else { 1 << 12 };
/// Parts that there is time for in [`KEPT_NS`].
const PARTS: usize = 3;
/// More classes than are shown at once.
const MOST: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Lives {
    made_ns: u64,
    lifetime: Lifetime,
    mean: Followed,
}

/// An answer on its way.
#[derive(Debug, Default)]
struct Coming {
    /// How many groups are in it.
    groups: usize,
    table: Table,
}

/// Since callstacks came to other groups.
#[derive(Debug, Default)]
struct State {
    regrouped: u64,
    made: FxHashMap<Class, Lives>,
    coming: FxHashMap<Class, Coming>,
    /// The session's revision at the last look, and how many callstacks may still be gone
    /// through at it.
    left: (u64, usize),
}

/// A class' key and how many groups it has: callstacks that come are in the same class.
type Class = (u64, usize);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Kept(RefCell<State>);

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
        if groups.len() == self.book.groups().count() {
            // What all of them say is kept anyhow.
            table.clear();
            self.everything.lifetimes.add_to(table, now);
            return (table.median(), Curve::of(table).mean());
        }
        let mut state = self.classes.0.borrow_mut();
        let state = &mut *state;
        if state.regrouped != regrouped || state.made.len() > MOST {
            *state = State { regrouped, ..State::default() };
        }
        if state.left.0 != self.revision {
            state.left = (self.revision, PART);
        }
        let class = (key, groups.len());
        let gone = matches!(self.connection, Connection::Lost(_) | Connection::Ended(_));
        let known = state.made.get(&class).copied().filter(|lives| !gone || lives.made_ns == now);
        let rounds = self.book.stacks().len().div_ceil(PART * PARTS) as u64;
        if let Some(lives) = known {
            let fresh = lives.made_ns..lives.made_ns.saturating_add(KEPT_NS * rounds);
            if fresh.contains(&now) || state.left.1 == 0 {
                return (lives.lifetime, lives.mean);
            }
        }
        let mut coming = if known.is_some() {
            state.coming.remove(&class).unwrap_or_default()
        } else {
            table.clear();
            Coming { groups: 0, table: std::mem::take(table) }
        };
        for &group in &groups[coming.groups..] {
            let stacks = self.book.groups().group(group).stacks();
            for &stack in stacks {
                self.numbers[stack as usize].lifetimes.add_to(&mut coming.table, now);
            }
            coming.groups += 1;
            if known.is_some() {
                state.left.1 = state.left.1.saturating_sub(stacks.len());
                if state.left.1 == 0 {
                    break;
                }
            }
        }
        if let Some(lives) = known
            && coming.groups < groups.len()
        {
            state.coming.insert(class, coming);
            return (lives.lifetime, lives.mean);
        }
        let (lifetime, mean) = (coming.table.median(), Curve::of(&coming.table).mean());
        state.made.insert(class, Lives { made_ns: now, lifetime, mean });
        state.coming.remove(&class);
        if known.is_none() {
            *table = coming.table;
        }
        (lifetime, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Input;
    use super::super::fixture::Fixture;
    use super::*;

    /// With many callstacks the answer stands while the next one is made, and the next one
    /// is that of all of them.
    #[test]
    fn many_callstacks_are_gone_through_in_parts() {
        let mut f = Fixture::new(1);
        // Of one callsite each two.
        let stacks: Vec<_> = (0..PART as u32 * 2)
            .map(|i| f.stack(&["main", &format!("way{i}"), &format!("site{}", i / 2)]))
            .collect();
        // Else it would be all that there are.
        f.stack(&["main", "apart"]);
        f.pass(1.0);
        let live = |f: &mut Fixture, ms: f64| {
            for &stack in &stacks {
                let id = f.alloc(stack, 8);
                f.pass(ms / 1e3 / stacks.len() as f64);
                f.free(id);
            }
        };
        live(&mut f, 1000.0);
        let mut groups: Vec<u32> = f.session.book.groups().iter().map(|(group, _)| group).collect();
        groups.pop();
        let ask = |f: &Fixture| f.session.class_lifetime(7, &groups, &mut Table::default());
        let first = ask(&f);
        assert!(matches!(first.0, Lifetime::Median { samples, .. } if samples == PART as u64 * 2));
        live(&mut f, 3000.0);
        let mut answers = Vec::new();
        for _ in 0..3 {
            f.report();
            answers.push(ask(&f));
            assert_eq!(ask(&f), *answers.last().unwrap(), "no more at the same state");
        }
        assert_eq!(answers[0], first, "half of it is known");
        let Lifetime::Median { samples, .. } = answers[1].0 else { panic!("{answers:?}") };
        assert_eq!(samples, PART as u64 * 4);
        // When the target is gone the whole is made.
        live(&mut f, 3000.0);
        f.session.apply(Input::Connection(Connection::Ended("it is".into())));
        let Lifetime::Median { samples, .. } = ask(&f).0 else { panic!("{answers:?}") };
        assert_eq!(samples, PART as u64 * 6);
    }
}
