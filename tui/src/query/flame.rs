//! What a flamegraph shows: the callstacks that begin as the *zoom* does, as a tree of
//! callees, grown as far as its frames are wide enough to be seen.
//!
//! A zoom is a way from the root: nodes, outermost first. Unlike a focus ([`super::tree`]),
//! which is looked for anywhere in a callstack, it is anchored: frames of the same
//! function elsewhere are other frames. The frames above the zoom are not in the tree;
//! how much goes through each of them is in [`Flame::above`].

use super::filter::Selection;
use super::grow::Grower;
use super::numbers::Numbers;
use super::select::Found;
use super::sums::{estimate_of, of_metric, value};
use super::tree::{Pick, all_label};
use super::{Branch, Direction, Label, Metric, Node, NodeKey, When};
use crate::session::Session;
use crate::session::figures::Estimate;
use heaptop_protocol::totals::Total;

/// Which flamegraph is wanted.
#[derive(Debug, Clone, Copy)]
pub struct FlameQuestion<'a> {
    /// Of when.
    pub when: When,
    /// What widths count.
    pub metric: Metric,
    /// As [`super::Question::filter`].
    pub filter: &'a str,
    /// The way to the frame that has all the width; empty: the root.
    pub zoom: &'a [NodeKey],
    /// Frames are grown that have at least a column of so many.
    pub columns: u16,
    /// A text that is looked for: as a filter, but what has it not stays.
    pub search: &'a str,
}

/// A flamegraph.
#[derive(Debug, Clone, PartialEq)]
pub struct Flame {
    /// The frames above the zoom, the root first; empty without a zoom.
    pub above: Vec<Above>,
    /// The zoom and what is below it. Shares are of the zoom; children come largest first.
    pub root: Node,
    /// The zoom's share of everything that the filter takes, 0 to 1.
    pub share: f64,
    /// The share of the zoom that goes through a frame with the text that is looked for.
    /// Recursion counts once a callstack.
    pub matched: Option<f64>,
}

/// A frame above the zoom.
#[derive(Debug, Clone, PartialEq)]
pub struct Above {
    /// Its name.
    pub label: Label,
    /// What goes through it.
    pub cum: Estimate,
}

/// `None` where no callstack begins as the zoom does.
#[must_use]
pub fn flame(session: &Session, question: &FlameQuestion<'_>) -> Option<Flame> {
    let FlameQuestion { when, metric, zoom, .. } = *question;
    let book = session.book();
    let selection = Selection::of(session, question.filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let total = |stack: u32| of_metric(numbers.stack(stack), metric);
    let search = Found::new(book, question.search);
    let wanted = nodes(session, zoom)?;
    let mut levels = vec![Total::default(); zoom.len()];
    let mut whole = Total::default();
    let mut found = Total::default();
    let mut picks = Vec::new();
    for stack in (0..book.stacks().len() as u32).filter(|&stack| selection.takes(stack)) {
        let path = selection.path(stack, &book.stacks()[stack as usize]);
        let common = path.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        if !zoom.is_empty() {
            let total = total(stack);
            levels[..=common.min(zoom.len() - 1)].iter_mut().for_each(|level| level.merge(&total));
        }
        if common == zoom.len() {
            picks.push(Pick { stack, cursor: (zoom.len() as u32).wrapping_sub(1) });
            if !question.search.is_empty() && search.has(stack) {
                found.merge(&total(stack));
            }
        }
    }
    if let Some(all) = levels.first() {
        whole = *all;
    }
    if picks.is_empty() && !zoom.is_empty() {
        return None;
    }
    let columns = f64::from(question.columns.max(1));
    let mut open = |branch: Branch| branch.depth == 0 || branch.share * columns >= 0.5;
    let grower = Grower::new(&numbers, Direction::Callees, metric, &picks, &selection);
    let root = grower.grow(zoom.last().copied(), &mut open);
    let part = |of: f64, whole: f64| if whole > 0.0 { (of / whole).clamp(0.0, 1.0) } else { 0.0 };
    let inside = picks.iter().map(|pick| value(&total(pick.stack), metric)).sum::<f64>();
    let share = if zoom.is_empty() { 1.0 } else { part(inside, value(&whole, metric)) };
    let labels = std::iter::once(all_label())
        .chain(wanted.iter().map(|&node| book.nodes()[node as usize].label.clone()));
    let above = labels
        .zip(&levels)
        .map(|(label, total)| Above { label, cum: estimate_of(&numbers, total, metric) })
        .collect();
    let matched = (!question.search.is_empty()).then(|| part(value(&found, metric), inside));
    Some(Flame { above, root, share, matched })
}

/// The callstacks that [`flame`] has in its tree, whole: root first, with the metric's
/// value; those with none are left out. And the sum of them.
#[must_use]
pub fn flame_stacks(
    session: &Session,
    question: &FlameQuestion<'_>,
) -> (Vec<(Vec<Label>, f64)>, Estimate) {
    let FlameQuestion { when, metric, zoom, .. } = *question;
    let book = session.book();
    let selection = Selection::of(session, question.filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let Some(wanted) = nodes(session, zoom) else { return (Vec::new(), Estimate::Unknown) };
    let mut sum = Total::default();
    let mut taken = Vec::new();
    for stack in (0..book.stacks().len() as u32).filter(|&stack| selection.takes(stack)) {
        let path = selection.path(stack, &book.stacks()[stack as usize]);
        if path.starts_with(&wanted) {
            let total = of_metric(numbers.stack(stack), metric);
            sum.merge(&total);
            taken.push((path, value(&total, metric)));
        }
    }
    let stacks = super::tree::put_together(session, taken.into_iter());
    (stacks, estimate_of(&numbers, &sum, metric))
}

fn nodes(session: &Session, zoom: &[NodeKey]) -> Option<Vec<u32>> {
    zoom.iter().map(|key| session.book().node(*key)).collect()
}
