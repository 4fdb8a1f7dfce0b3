//! Blocks that are alive and not young any more: where leaks are.

use super::bounds::Bounds;
use super::by::{By, Classes, Cut};
use super::only::{Only, Seen};
use super::standing::Purpose;
use super::weights::Weights;
use super::{Session, When};
use crate::session::estimate::survival::bucket;
use crate::session::lifetimes::{Ages, Turn};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::Total;
use std::sync::Arc;

/// By group, the blocks alive at the end that were born until `born_until_us`.
pub fn of(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Arc<Only>>,
    born_until_us: u64,
) -> Vec<Total> {
    let mut groups = vec![Total::default(); session.book.groups().numbers()];
    let cut = Cut { by: By::Group, only: only.cloned() };
    let ends = [born_until_us.min(bounds.end_us)];
    if let Some(standing) = session.standing(bounds, &cut, Purpose::Old, &ends) {
        for (of, group) in standing.classes().zip(&mut groups) {
            *group = of[0];
        }
        return groups;
    }
    each(
        session,
        bounds,
        only,
        born_until_us,
        |_| true,
        |group, _, weight| {
            if let Some(total) = groups.get_mut(group as usize) {
                total.add(weight);
            }
        },
    );
    groups
}

/// How old they are, of these groups alone.
pub fn ages(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Arc<Only>>,
    born_until_us: u64,
    groups: &[u32],
) -> Vec<Ages> {
    if groups.is_empty() {
        return Vec::new();
    }
    let mut place_of = vec![u32::MAX; session.book.groups().numbers()];
    for (place, group) in (0..).zip(groups) {
        place_of[*group as usize] = place;
    }
    let mut ages = vec![Ages::default(); groups.len()];
    let group_of = session.book.group_of();
    let place = |group: u32| place_of.get(group as usize).copied().unwrap_or(u32::MAX);
    // Most blocks are of others: one small table tells them from those that are wanted.
    let wanted: Vec<bool> = group_of.iter().map(|group| place(*group) < u32::MAX).collect();
    let wanted = |stack: u32| wanted.get(stack as usize).is_some_and(|wanted| *wanted);
    each(session, bounds, only, born_until_us, wanted, |group, born_us, weight| {
        if let Some(ages) = ages.get_mut(place(group) as usize) {
            let age = bucket((bounds.end_us - born_us).saturating_mul(1000));
            ages.add(None, (Turn::Death, age), weight.objects);
        }
    });
    ages
}

/// Tells each of them that is of a wanted callstack: its group, when it was born, and what it
/// stands for.
fn each(
    session: &Session,
    bounds: &Bounds,
    only: Option<&Arc<Only>>,
    born_until_us: u64,
    wanted: impl Fn(u32) -> bool + Copy,
    mut one: impl FnMut(u32, u64, &Weight),
) {
    if bounds.when == When::Peak || !bounds.in_use {
        return;
    }
    let cut = Cut { by: By::Group, only: only.cloned() };
    let classes = Classes::of(session, &cut, bounds);
    let mut weights = Weights::new();
    let born = born_until_us.min(bounds.end_us);
    for life in session.lives.of_within(0, bounds.end_us, born, wanted) {
        if let Some(group) = classes.class(&Seen::life(&life)) {
            one(group, life.born_us, weights.of(life.interval, life.size));
        }
    }
    for (_, block) in session.blocks.of_stacks(wanted) {
        let born_us = block.born_us();
        if born_us > born {
            continue;
        }
        if let Some(group) = classes.class(&Seen::living(block, bounds)) {
            one(group, born_us, weights.of(block.interval, block.size));
        }
    }
}
