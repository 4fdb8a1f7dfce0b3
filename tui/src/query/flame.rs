//! What a flamegraph shows: the callstacks that begin as the *zoom* does, as a tree of
//! callees, grown as far as its frames are wide enough to be seen.
//!
//! A zoom is a way from the root: nodes, outermost first. Unlike a focus ([`super::tree`]),
//! which is looked for anywhere in a callstack, it is anchored: frames of the same
//! function elsewhere are other frames. The frames above the zoom are not in the tree;
//! how much goes through each of them is in [`Flame::above`].
//!
//! **Growth.** Widths may count what was born since a moment and lives: bytes in use that
//! were not there then. (Growth itself, gain less loss, can be negative and has no width.)
//! Beside any width each frame can say by how much it grew since, with evidence where the
//! chance that even one of the frames that are said to have grown has not is 5 % at most.

use super::filter::Selection;
use super::grow::{Grower, Measure};
use super::numbers::Numbers;
use super::prefixes::{Asked, Growing, Prefixes};
use super::tree::all_label;
use super::{Branch, Label, Metric, Node, NodeKey, When};
use crate::session::Session;
use crate::session::book::Book;
use crate::session::estimate::{change, family};
use crate::session::figures::{Change, Estimate};
use crate::session::then::Then;
use crate::session::then::by::{By, Cut};
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Which flamegraph is wanted.
#[derive(Debug, Clone, Copy)]
pub struct FlameQuestion<'a> {
    /// Of when.
    pub when: When,
    /// What widths count.
    pub metric: Metric,
    /// They count what was born since then and lives instead, in nanoseconds since the
    /// agent's start; in bytes.
    pub gained_from_ns: Option<u64>,
    /// Each frame says by how much it grew since then.
    pub growth_from_ns: Option<u64>,
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
    /// By how much frames grew, by [`Node::path`]; empty where that was not asked for, or is
    /// not known.
    pub grown: FxHashMap<u64, Grown>,
}

/// By how much a frame grew, with all that it calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grown {
    /// In bytes in use.
    pub change: Change,
    /// With evidence.
    pub grew: bool,
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
    let FlameQuestion { when, zoom, .. } = *question;
    let book = session.book();
    let selection = Selection::of(session, question.filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let gained = growth(session, when, question.gained_from_ns, &selection);
    let (measure, search) = (measure(question, gained.as_deref())?, question.search);
    let (wanted, columns) = (nodes(session, zoom)?, question.columns);
    let (numbers, zoomed) = (&numbers, &wanted[..]);
    let gained = gained.as_ref();
    let asked = Asked { numbers, measure, gained, search, zoom: zoomed, columns };
    let mut kept = session.prefixes.of(session, question.filter, &selection);
    let prefixes = &mut *kept;
    prefixes.count(&asked);
    let way = prefixes.way(&asked)?;
    let at = way.last().copied().unwrap_or(0);
    let part = |of: f64, whole: f64| if whole > 0.0 { (of / whole).clamp(0.0, 1.0) } else { 0.0 };
    let inside = measure.value(prefixes.total(at));
    let share =
        if zoom.is_empty() { 1.0 } else { part(inside, measure.value(prefixes.total(way[0]))) };
    let labels = std::iter::once(all_label())
        .chain(wanted.iter().map(|&node| book.nodes()[node as usize].label.clone()));
    let above = labels
        .zip(&way[..zoom.len()])
        .map(|(label, &at)| Above { label, cum: measure.estimate(numbers, prefixes.total(at)) })
        .collect();
    let matched = (!search.is_empty()).then(|| part(prefixes.found(at), inside));
    let mut open = |branch: Branch| branch.depth == 0 || asked.is_seen(branch.share);
    let first = prefixes.root(at);
    let wood = Growing { prefixes, asked: &asked };
    let root = Grower::new(session, measure, wood).grow(zoom.last().copied(), first, &mut open);
    let grown = match growth(session, when, question.growth_from_ns, &selection) {
        Some(then) => grown(book, &then, (&root, at), prefixes),
        None => FxHashMap::default(),
    };
    Some(Flame { above, root, share, matched, grown })
}

/// What was gained and lost from a moment on, by callstack; `None` where that is not known.
fn growth(
    session: &Session,
    when: When,
    from_ns: Option<u64>,
    selection: &Selection,
) -> Option<Arc<Then>> {
    let cut = Cut { by: By::Stack, ..selection.by_stack() };
    let from_ns = from_ns?;
    let then = match when {
        When::Now => Some(session.lately(Some(from_ns), &cut)),
        When::At(to_ns) if from_ns < to_ns => session.then_by(When::Range { from_ns, to_ns }, &cut),
        When::Range { .. } => session.then_by(when, &cut),
        When::At(_) | When::Peak => None,
    };
    then.filter(|then| then.growth().is_some())
}

/// `None` where what was gained is wanted and not known.
const fn measure<'a>(
    question: &FlameQuestion<'_>,
    gained: Option<&'a Then>,
) -> Option<Measure<'a>> {
    match (question.gained_from_ns, gained) {
        (None, _) => Some(Measure::Metric(question.metric)),
        (Some(_), Some(then)) => Some(Measure::Gained(then)),
        (Some(_), None) => None,
    }
}

/// By how much each frame of a tree grew, whose root is the last of a prefix.
fn grown(
    book: &Book,
    then: &Then,
    (root, at): (&Node, u32),
    prefixes: &Prefixes,
) -> FxHashMap<u64, Grown> {
    // Frames, and their prefixes. What was put together is no frame of its own.
    let mut frames: Vec<(&Node, usize)> = vec![(root, at as usize)];
    let mut next = 0;
    while let Some(&(node, at)) = frames.get(next) {
        let below = node.children.iter().filter_map(|child| {
            Some((child, prefixes.child(at as u32, book.node(child.key)?)? as usize))
        });
        frames.extend(below);
        next += 1;
    }
    let sums = prefixes.grown(then);
    let sums: Vec<&[Total; 2]> = frames.iter().map(|(_, at)| &sums[*at]).collect();
    let sight = then.sight_of_growth();
    let grew = family::grew(sums.iter().map(|[gained, lost]| (gained, lost)), sight.both());
    let of = |([gained, lost], grew): (&&[Total; 2], bool)| Grown {
        change: change::growth(gained, lost, sight),
        grew,
    };
    let grown = sums.iter().zip(grew).map(of);
    frames.iter().map(|(node, _)| node.path).zip(grown).collect()
}

/// Callstacks, root first, with what each weighs.
pub type Weighed = Vec<(Vec<Label>, f64)>;

/// The callstacks that [`flame`] has in its tree, whole: root first, with the value that
/// widths count; those with none are left out. And the sum of them; and where growth is
/// asked for beside bytes in use, what each had in use before.
#[must_use]
pub fn flame_stacks(
    session: &Session,
    question: &FlameQuestion<'_>,
) -> (Weighed, Estimate, Option<Weighed>) {
    let FlameQuestion { when, zoom, .. } = *question;
    let nothing = (Vec::new(), Estimate::Unknown, None);
    let book = session.book();
    let selection = Selection::of(session, question.filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let Some(wanted) = nodes(session, zoom) else { return nothing };
    let gained = growth(session, when, question.gained_from_ns, &selection);
    let Some(measure) = measure(question, gained.as_deref()) else { return nothing };
    let compared = growth(session, when, question.growth_from_ns, &selection)
        .filter(|_| matches!(measure, Measure::Metric(Metric::InUseBytes)));
    let mut sum = Total::default();
    let (mut taken, mut before) = (Vec::new(), Vec::new());
    for stack in (0..book.stacks().len() as u32).filter(|&stack| selection.takes(stack)) {
        let path = selection.path(stack, &book.stacks()[stack as usize]);
        if path.starts_with(&wanted) {
            let total = measure.total(&numbers, stack);
            sum.merge(&total);
            let value = measure.value(&total);
            taken.push((path, value));
            if let Some((gained, lost)) = compared.as_ref().and_then(|t| t.group_growth(stack)) {
                before.push((path, (value - gained.bytes.sum + lost.bytes.sum).max(0.0)));
            }
        }
    }
    let stacks = super::tree::put_together(session, taken.into_iter());
    let before = compared.map(|_| super::tree::put_together(session, before.into_iter()));
    (stacks, measure.estimate(&numbers, &sum), before)
}

fn nodes(session: &Session, zoom: &[NodeKey]) -> Option<Vec<u32>> {
    zoom.iter().map(|key| session.book().node(*key)).collect()
}
