//! Trees of callers and callees, and whole stacks for flamegraphs.
//!
//! A stack's path is nodes, root first, the callsite last. A focus is a path of
//! drilled nodes: leaf to root for callers, root to leaf for callees. It selects
//! the stacks in whose path it occurs, neighbour by neighbour; for callers the
//! first of them must be the callsite if it is one of any stack. A focus that was
//! drilled the other way (the tree was inverted) is read the other way.
//!
//! Every selected stack has one *cursor*, its place in the path of the root of the
//! tree: for callers the innermost that fits, for callees the outermost, so that
//! recursion counts once. From there the tree is grown ([`super::grow`]).

use super::filter::Selection;
use super::grow::{Grower, Measure};
use super::numbers::Numbers;
use super::picks::{Pick, Picks};
use super::sums::{of_metric, value};
use super::{Direction, Label, Metric, Node, NodeKey, When};
use crate::session::Session;
use rustc_hash::FxHashMap;

/// The tree below the last of `focus`, or below everything if that is empty.
/// `None` if no callstack has such a path. All of it is grown: see [`tree`].
#[must_use]
pub fn callers(
    session: &Session,
    when: When,
    focus: &[NodeKey],
    direction: Direction,
    metric: Metric,
    filter: &str,
) -> Option<Node> {
    tree(session, when, focus, direction, metric, filter, |_| true)
}

/// A node that others may be grown below.
#[derive(Debug, Clone, Copy)]
pub struct Branch {
    /// [`Node::path`].
    pub path: u64,
    /// [`Node::share`].
    pub share: f64,
    /// 0 for the root.
    pub depth: usize,
}

/// As [`callers`], grown below those nodes alone that are `open`. Costs a look at
/// the callstacks of each of them.
#[must_use]
pub fn tree(
    session: &Session,
    when: When,
    focus: &[NodeKey],
    direction: Direction,
    metric: Metric,
    filter: &str,
    mut open: impl FnMut(Branch) -> bool,
) -> Option<Node> {
    let selection = Selection::of(session, filter);
    let picks = select(session, focus, direction, &selection)?;
    let root = focus.last().copied();
    let numbers = Numbers::by_stack(session, when, &selection);
    let measure = Measure::Metric(metric);
    let (wood, all) = Picks::new(&numbers, direction, measure, &picks, &selection);
    Some(Grower::new(session, measure, wood).grow(root, all, &mut open))
}

/// The callstacks that [`callers`] has in its tree, whole: root first, with the
/// metric's value; those with none are left out, and equal ones put together.
#[must_use]
pub fn stacks(
    session: &Session,
    when: When,
    focus: &[NodeKey],
    direction: Direction,
    metric: Metric,
    filter: &str,
) -> Vec<(Vec<Label>, f64)> {
    let book = session.book();
    let selection = Selection::of(session, filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let picks = select(session, focus, direction, &selection).unwrap_or_default();
    let values = picks.iter().map(|pick| {
        let value = value(&of_metric(numbers.stack(pick.stack), metric), metric);
        (selection.path(pick.stack, &book.stacks()[pick.stack as usize]), value)
    });
    put_together(session, values)
}

/// Equal callstacks as one, those without a value left out.
pub(super) fn put_together<'a>(
    session: &Session,
    values: impl Iterator<Item = (&'a [u32], f64)>,
) -> Vec<(Vec<Label>, f64)> {
    let mut by_path: FxHashMap<&[u32], f64> = FxHashMap::default();
    for (path, value) in values.filter(|(_, value)| *value > 0.0) {
        *by_path.entry(path).or_default() += value;
    }
    let mut stacks: Vec<_> = by_path.into_iter().collect();
    stacks.sort_by_key(|(path, _)| *path);
    let label = |node: &u32| session.book().nodes()[*node as usize].label.clone();
    let labels = |path: &[u32]| match path {
        // All of its frames are hidden.
        [] => vec![all_label()],
        path => path.iter().map(label).collect(),
    };
    stacks.into_iter().map(|(path, value)| (labels(path), value)).collect()
}

/// What the root of everything is called.
pub(super) fn all_label() -> Label {
    Label { function: "(all)".into(), location: "".into(), named: true }
}

fn select(
    session: &Session,
    focus: &[NodeKey],
    direction: Direction,
    selection: &Selection,
) -> Option<Vec<Pick>> {
    let book = session.book();
    let path_of = |stack: u32| selection.path(stack, &book.stacks()[stack as usize]);
    let every = 0..book.stacks().len() as u32;
    if focus.is_empty() {
        let cursor = |stack: u32| match direction {
            Direction::Callers => path_of(stack).len() as u32,
            Direction::Callees => u32::MAX,
        };
        let taken = every.filter(|&stack| selection.takes(stack));
        return Some(taken.map(|stack| Pick { stack, cursor: cursor(stack) }).collect());
    }
    let focus: Option<Vec<u32>> = focus.iter().map(|key| book.node(*key)).collect();
    let focus = focus?;
    let reversed: Vec<u32> = focus.iter().rev().copied().collect();
    // Root-first, as paths are; the root of the tree is then the first or the last.
    let (natural, inverted) = match direction {
        Direction::Callers => (&reversed, &focus),
        Direction::Callees => (&focus, &reversed),
    };
    let pick = |stack: u32, wanted: &[u32], root_is_first: bool, at_callsite: bool| {
        let path = path_of(stack);
        let fits = |window: &[u32]| window == wanted;
        let place = match direction {
            _ if at_callsite => {
                let place = path.len().checked_sub(wanted.len())?;
                fits(&path[place..]).then_some(place)
            }
            Direction::Callers => path.windows(wanted.len()).rposition(fits),
            Direction::Callees => path.windows(wanted.len()).position(fits),
        }?;
        let root = if root_is_first { place } else { place + wanted.len() - 1 };
        selection.takes(stack).then_some(Pick { stack, cursor: root as u32 })
    };
    let upwards = direction == Direction::Callers;
    let natural: Vec<Pick> = match book.groups().at(focus[0]) {
        // Where frames are hidden others are callsites.
        _ if upwards && selection.hides() => {
            let at_callsite = every.clone().any(|s| path_of(s).last() == Some(&focus[0]));
            every.clone().filter_map(|stack| pick(stack, natural, true, at_callsite)).collect()
        }
        Some(group) if upwards => {
            let stacks = book.groups().group(group).stacks().iter();
            stacks.filter_map(|&stack| pick(stack, natural, true, true)).collect()
        }
        _ => every.clone().filter_map(|stack| pick(stack, natural, upwards, false)).collect(),
    };
    if !natural.is_empty() {
        return Some(natural);
    }
    let inverted: Vec<Pick> =
        every.filter_map(|stack| pick(stack, inverted, !upwards, false)).collect();
    (!inverted.is_empty()).then_some(inverted)
}
