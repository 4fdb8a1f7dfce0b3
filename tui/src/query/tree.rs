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
//! recursion counts once. A tree is grown level by level, moving cursors by one.
//! A node's stacks are disjoint from its siblings', so children never add up to
//! more than their parent.
//!
//! Bounds: 64 levels; past 10,000 nodes, what is under a thousandth of the root
//! is put together as `(N smaller)`.

use super::select::Filter;
use super::sums::{estimate_of, of_metric, value};
use super::{Direction, Label, Metric, Node, NodeKey};
use crate::session::Session;
use crate::session::figures::Estimate;
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;

const DEPTH: usize = 64;
const NODES: usize = 10_000;
const SMALL: f64 = 0.001;

/// One selected stack: its number, and its cursor.
#[derive(Debug, Clone, Copy)]
struct Pick {
    stack: u32,
    cursor: u32,
}

/// The tree below the last of `focus`, or below everything if that is empty.
/// `None` if no callstack has such a path.
#[must_use]
pub fn callers(
    session: &Session,
    focus: &[NodeKey],
    direction: Direction,
    metric: Metric,
    filter: &str,
) -> Option<Node> {
    let picks = select(session, focus, direction, filter)?;
    let grower = Grower { session, direction, metric };
    Some(grower.grow(focus.last().copied(), picks))
}

/// The selected stacks, root first, with the metric's value; those with none are
/// left out, and equal ones put together.
#[must_use]
pub fn stacks(
    session: &Session,
    focus: &[NodeKey],
    metric: Metric,
    filter: &str,
) -> Vec<(Vec<Label>, f64)> {
    let book = session.book();
    let picks = select(session, focus, Direction::Callers, filter).unwrap_or_default();
    let mut by_path: FxHashMap<&[u32], f64> = FxHashMap::default();
    for pick in picks {
        let value =
            value(&of_metric(&session.numbers()[pick.stack as usize].totals, metric), metric);
        if value > 0.0 {
            *by_path.entry(&book.stacks()[pick.stack as usize].path).or_default() += value;
        }
    }
    let mut stacks: Vec<_> = by_path.into_iter().collect();
    stacks.sort_by_key(|(path, _)| *path);
    let label = |node: &u32| book.nodes()[*node as usize].label.clone();
    stacks.into_iter().map(|(path, value)| (path.iter().map(label).collect(), value)).collect()
}

/// What the root of everything is called.
pub(super) fn all_label() -> Label {
    Label { function: "(all)".into(), location: "".into(), named: true }
}

fn select(
    session: &Session,
    focus: &[NodeKey],
    direction: Direction,
    filter: &str,
) -> Option<Vec<Pick>> {
    let book = session.book();
    let filter = Filter::new(book, filter);
    let taken = || {
        let stacks = book.stacks().iter().enumerate();
        stacks.filter(|(_, stack)| filter.takes(stack)).map(|(at, stack)| (at as u32, stack))
    };
    if focus.is_empty() {
        return Some(
            taken()
                .map(|(stack, s)| match direction {
                    Direction::Callers => Pick { stack, cursor: s.path.len() as u32 },
                    Direction::Callees => Pick { stack, cursor: u32::MAX },
                })
                .collect(),
        );
    }
    let focus: Option<Vec<u32>> = focus.iter().map(|key| book.node(*key)).collect();
    let focus = focus?;
    let reversed: Vec<u32> = focus.iter().rev().copied().collect();
    // Root-first, as paths are; the root of the tree is then the first or the last.
    let (natural, inverted) = match direction {
        Direction::Callers => (&reversed, &focus),
        Direction::Callees => (&focus, &reversed),
    };
    let at_callsite = direction == Direction::Callers && book.groups().contains_key(&focus[0]);
    let find = |wanted: &[u32], root_is_first: bool, at_callsite: bool| -> Vec<Pick> {
        taken()
            .filter_map(|(stack, s)| {
                let mut places = s.path.windows(wanted.len());
                let fits = |window: &[u32]| window == wanted;
                let place = match direction {
                    _ if at_callsite => {
                        let place = s.path.len().checked_sub(wanted.len())?;
                        fits(&s.path[place..]).then_some(place)
                    }
                    Direction::Callers => places.rposition(fits),
                    Direction::Callees => places.position(fits),
                }?;
                let root = if root_is_first { place } else { place + wanted.len() - 1 };
                Some(Pick { stack, cursor: root as u32 })
            })
            .collect()
    };
    let natural = find(natural, direction == Direction::Callers, at_callsite);
    if !natural.is_empty() {
        return Some(natural);
    }
    let inverted = find(inverted, direction == Direction::Callees, false);
    (!inverted.is_empty()).then_some(inverted)
}

struct Grower<'a> {
    session: &'a Session,
    direction: Direction,
    metric: Metric,
}

/// A node while the tree grows. Children stand behind their parents.
struct Sprout {
    parent: usize,
    /// `None` for `(N smaller)` and the root of everything.
    node: Option<u32>,
    picks: Vec<Pick>,
    /// How many nodes were put together.
    smaller: usize,
    cum: Total,
    flat: Option<Total>,
}

impl Grower<'_> {
    fn grow(&self, root: Option<NodeKey>, picks: Vec<Pick>) -> Node {
        let node = root.and_then(|key| self.session.book().node(key));
        let mut sprouts = vec![self.sprout(0, node, picks, 0)];
        let whole = value(&sprouts[0].cum, self.metric);
        let mut level = 0..1;
        for _ in 0..DEPTH {
            for parent in level.clone() {
                if sprouts[parent].smaller > 0 {
                    continue;
                }
                let picks = std::mem::take(&mut sprouts[parent].picks);
                self.branch(parent, &picks, whole, &mut sprouts);
            }
            level = level.end..sprouts.len();
            if level.is_empty() {
                break;
            }
        }
        self.assemble(sprouts, root, whole)
    }

    fn branch(&self, parent: usize, picks: &[Pick], whole: f64, sprouts: &mut Vec<Sprout>) {
        let mut by_node: FxHashMap<u32, Vec<Pick>> = FxHashMap::default();
        for pick in picks {
            let path = &self.session.book().stacks()[pick.stack as usize].path;
            let next = match self.direction {
                Direction::Callers => pick.cursor.checked_sub(1),
                // u32::MAX stands before the root.
                Direction::Callees => Some(pick.cursor.wrapping_add(1)),
            };
            let Some(cursor) = next else { continue };
            if let Some(&node) = path.get(cursor as usize) {
                by_node.entry(node).or_default().push(Pick { cursor, ..*pick });
            }
        }
        let mut children: Vec<Sprout> = by_node
            .into_iter()
            .map(|(node, picks)| self.sprout(parent, Some(node), picks, 0))
            .collect();
        let size = |s: &Sprout| value(&s.cum, self.metric);
        let name = |s: &Sprout| {
            s.node
                .map(|n| &self.session.book().nodes()[n as usize])
                .map(|n| (&n.label.function, n.key))
        };
        children.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| name(a).cmp(&name(b))));
        let large = children.partition_point(|s| size(s) >= whole * SMALL);
        let room = NODES.saturating_sub(sprouts.len());
        let kept = children.len().min(large.max(room));
        // One alone can be shown as what it is.
        let kept = if children.len() - kept == 1 { children.len() } else { kept };
        let rest = children.split_off(kept);
        sprouts.append(&mut children);
        if !rest.is_empty() {
            let picks = rest.iter().flat_map(|s| s.picks.iter().copied()).collect();
            sprouts.push(self.sprout(parent, None, picks, rest.len()));
        }
    }

    fn sprout(&self, parent: usize, node: Option<u32>, picks: Vec<Pick>, smaller: usize) -> Sprout {
        let book = self.session.book();
        let (mut cum, mut flat) = (Total::default(), None);
        for pick in &picks {
            let totals = &self.session.numbers()[pick.stack as usize].totals;
            let total = of_metric(totals, self.metric);
            cum.merge(&total);
            if Some(book.stacks()[pick.stack as usize].callsite()) == node {
                flat.get_or_insert_with(Total::default).merge(&total);
            }
        }
        Sprout { parent, node, picks, smaller, cum, flat }
    }

    fn assemble(&self, sprouts: Vec<Sprout>, root: Option<NodeKey>, whole: f64) -> Node {
        let book = self.session.book();
        let mut children: Vec<Vec<Node>> = Vec::new();
        children.resize_with(sprouts.len(), Vec::new);
        let mut nodes = sprouts.into_iter().enumerate().rev();
        loop {
            let Some((at, sprout)) = nodes.next() else {
                unreachable!("the root is always there");
            };
            let (key, label) = match sprout.node {
                Some(node) => {
                    let info = &book.nodes()[node as usize];
                    (info.key, info.label.clone())
                }
                None if sprout.smaller > 0 => {
                    let function = format!("({} smaller)", sprout.smaller).into();
                    (NodeKey::SMALLER, Label { function, location: "".into(), named: true })
                }
                None => (root.unwrap_or(NodeKey::ALL), all_label()),
            };
            let mut below = std::mem::take(&mut children[at]);
            below.reverse();
            let size = value(&sprout.cum, self.metric);
            let node = Node {
                key,
                label,
                cum: estimate_of(self.session, &sprout.cum, self.metric),
                flat: sprout.flat.map_or(Estimate::Unknown, |flat| {
                    estimate_of(self.session, &flat, self.metric)
                }),
                share: if whole > 0.0 { (size / whole).min(1.0) } else { 0.0 },
                children: below,
            };
            if at == 0 {
                return node;
            }
            children[sprout.parent].push(node);
        }
    }
}
