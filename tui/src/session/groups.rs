//! Callstacks by callsite, and their sums.
//!
//! The screens ask several times a second; in between some hundreds of many
//! thousand callstacks have changed. So a sum is kept until one of its members
//! changes, and then made anew from them: nothing is ever subtracted, so no
//! rounding stays behind, and largest weights and smallest sizes are those of the
//! members. Members of a group are added up in runs of 64, and so are the groups
//! for the whole: a change costs some 64 additions a level, however large they are.
//!
//! Cells are filled while somebody asks and emptied while the session hears of
//! totals. Invariant: a full cell holds what its members, by now, add up to.
//!
//! Lifetimes move without events, since the living grow older. A group's curve is
//! taken at ages of its last event that are where buckets of the curve begin:
//! within the resolution that it has anyhow, and made anew eight times an octave. It
//! knows the number of that event: events come by the million, and empty nothing.

use super::Numbers;
use super::estimate::curve::Curve;
use super::estimate::survival::{self, Table, bucket};
use super::figures::{Followed, Lifetime};
use heaptop_protocol::totals::Totals;
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell};

/// Members whose sum is kept together.
const RUN: usize = 64;

type Runs = Vec<OnceCell<Box<Totals>>>;

/// The callstacks of one callsite.
#[derive(Debug)]
pub struct Group {
    callsite: u32,
    stacks: Vec<u32>,
    totals: OnceCell<Totals>,
    /// Of groups with more than one run.
    runs: Runs,
    lives: Cell<Option<Lives>>,
}

/// A lifetime, when it was taken, and the last event before: its number and time.
#[derive(Debug, Clone, Copy)]
struct Lives {
    event: u64,
    event_ns: u64,
    as_of_ns: u64,
    lifetime: Lifetime,
    /// Where it was asked for.
    mean: Option<Followed>,
}

impl Group {
    /// The node that they are counted at.
    #[must_use]
    pub const fn callsite(&self) -> u32 {
        self.callsite
    }

    /// Places of its callstacks.
    #[must_use]
    pub fn stacks(&self) -> &[u32] {
        &self.stacks
    }

    fn empty(&mut self, place: u32) {
        self.totals.take();
        if let Some(run) = self.runs.get_mut(place as usize / RUN) {
            run.take();
        }
    }

    fn fit(&mut self) {
        let runs = self.stacks.len().div_ceil(RUN);
        self.runs.resize_with(if runs > 1 { runs } else { 0 }, OnceCell::new);
    }
}

/// All groups.
#[derive(Debug, Default)]
pub struct Groups {
    /// Those without callstacks are kept: names move callstacks to and fro.
    all: Vec<Group>,
    by_callsite: FxHashMap<u32, u32>,
    runs: Runs,
    inhabited: usize,
}

impl Groups {
    /// How many have callstacks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.inhabited
    }

    /// Numbers of groups are below this.
    #[must_use]
    pub const fn numbers(&self) -> usize {
        self.all.len()
    }

    /// Those that have callstacks, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Group)> + '_ {
        let all = self.all.iter().enumerate().map(|(at, group)| (at as u32, group));
        all.filter(|(_, group)| !group.stacks.is_empty())
    }

    /// Group number `at`.
    #[must_use]
    pub fn group(&self, at: u32) -> &Group {
        &self.all[at as usize]
    }

    /// The number of a callsite's group, if it has callstacks.
    #[must_use]
    pub fn at(&self, callsite: u32) -> Option<u32> {
        let at = *self.by_callsite.get(&callsite)?;
        (!self.group(at).stacks.is_empty()).then_some(at)
    }

    /// A callstack joins: its group, and its place there.
    pub fn join(&mut self, callsite: u32, stack: u32) -> (u32, u32) {
        let at = *self.by_callsite.entry(callsite).or_insert_with(|| {
            let (stacks, runs) = (Vec::new(), Vec::new());
            let (totals, lives) = (OnceCell::new(), Cell::new(None));
            self.all.push(Group { callsite, stacks, totals, runs, lives });
            self.all.len() as u32 - 1
        });
        self.runs.resize_with(self.all.len().div_ceil(RUN), OnceCell::new);
        let group = &mut self.all[at as usize];
        self.inhabited += usize::from(group.stacks.is_empty());
        let place = group.stacks.len() as u32;
        group.stacks.push(stack);
        group.fit();
        group.lives.set(None);
        self.count_anew(at, place);
        (at, place)
    }

    /// The callstack at `place` leaves; the one that takes its place, if any.
    pub fn leave(&mut self, at: u32, place: u32) -> Option<u32> {
        let group = &mut self.all[at as usize];
        let last = group.stacks.len() as u32 - 1;
        group.stacks.swap_remove(place as usize);
        group.empty(last);
        group.fit();
        let moved = group.stacks.get(place as usize).copied();
        group.lives.set(None);
        self.inhabited -= usize::from(group.stacks.is_empty());
        self.count_anew(at, place);
        moved
    }

    /// The totals of the callstack at `place` are others.
    pub fn count_anew(&mut self, at: u32, place: u32) {
        self.all[at as usize].empty(place);
        self.runs[at as usize / RUN].take();
    }

    /// The totals of a group.
    pub(super) fn totals(&self, at: u32, numbers: &[Numbers]) -> &Totals {
        let group = self.group(at);
        let of = |stacks: &[u32]| sum(stacks.iter().map(|&stack| &numbers[stack as usize].totals));
        group.totals.get_or_init(|| {
            if group.runs.is_empty() {
                return of(&group.stacks);
            }
            let members = group.stacks.chunks(RUN);
            sum(members.zip(&group.runs).map(|(m, run)| &**run.get_or_init(|| Box::new(of(m)))))
        })
    }

    /// The totals of everything.
    pub(super) fn whole(&self, numbers: &[Numbers]) -> Totals {
        let of = |run: usize| {
            let members = run * RUN..self.all.len().min((run + 1) * RUN);
            sum(members.map(|at| self.totals(at as u32, numbers)))
        };
        let runs = self.runs.iter().enumerate();
        sum(runs.map(|(at, run)| &**run.get_or_init(|| Box::new(of(at)))))
    }

    /// The median lifetime of a group, and the mean where that is wanted. `lived` are the numbers of callstacks' last
    /// events, as far as there were any; `table` is room to work in.
    pub(super) fn lifetime(
        &self,
        at: u32,
        numbers: &[Numbers],
        lived: &[u64],
        now_ns: u64,
        table: &mut Table,
        with_mean: bool,
    ) -> (Lifetime, Followed) {
        let group = self.group(at);
        let as_of = |event_ns: u64| {
            let age = survival::begins(bucket(now_ns.saturating_sub(event_ns)).into());
            event_ns.saturating_add(age as u64).min(now_ns)
        };
        let events = group.stacks.iter().filter_map(|&stack| lived.get(stack as usize));
        let event = events.copied().max().unwrap_or(0);
        if let Some(lives) = group.lives.get()
            && lives.event == event
            && lives.as_of_ns == as_of(lives.event_ns)
            && (lives.mean.is_some() || !with_mean)
        {
            return (lives.lifetime, lives.mean.unwrap_or(Followed::Unknown));
        }
        let lifetimes = || group.stacks.iter().map(|&stack| &numbers[stack as usize].lifetimes);
        let event_ns = lifetimes().map(super::lifetimes::Lifetimes::event_ns).max().unwrap_or(0);
        let as_of_ns = as_of(event_ns);
        table.clear();
        lifetimes().for_each(|lifetimes| lifetimes.add_to(table, as_of_ns));
        let lifetime = table.median();
        let mean = with_mean.then(|| Curve::of(table).mean());
        group.lives.set(Some(Lives { event, event_ns, as_of_ns, lifetime, mean }));
        (lifetime, mean.unwrap_or(Followed::Unknown))
    }
}

fn sum<'a>(members: impl Iterator<Item = &'a Totals>) -> Totals {
    members.fold(Totals::default(), |mut sum, member| {
        sum.merge(member);
        sum
    })
}
