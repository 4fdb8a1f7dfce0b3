//! How trees grow: level by level, moving the cursors of the selected stacks by one.
//!
//! A node's stacks are disjoint from its siblings', so children never add up to
//! more than their parent. Whoever asks says which nodes are open: below the
//! others nothing is looked at.
//!
//! Bounds: 64 levels; past 10,000 nodes, what is under a thousandth of the root
//! is put together as `(N smaller)`.

use super::filter::Selection;
use super::numbers::Numbers;
use super::sums::{estimate_of, of_metric, value};
use super::tree::{Branch, Pick, all_label};
use super::{Direction, Label, Metric, Node, NodeKey};
use crate::session::estimate;
use crate::session::figures::Estimate;
use crate::session::then::Then;
use heaptop_protocol::totals::Total;
use std::cmp::Reverse;

const DEPTH: usize = 64;
const NODES: usize = 10_000;
const SMALL: f64 = 0.001;

/// What widths and figures of a tree count.
#[derive(Debug, Clone, Copy)]
pub enum Measure<'a> {
    /// One of the totals.
    Metric(Metric),
    /// Bytes that were born since a moment and live: of a range, by callstack.
    Gained(&'a Then),
}

impl Measure<'_> {
    /// Of a callstack.
    pub fn total(self, numbers: &Numbers<'_>, stack: u32) -> Total {
        match self {
            Self::Metric(metric) => of_metric(numbers.stack(stack), metric),
            Self::Gained(then) => {
                then.group_growth(stack).map_or_else(Total::default, |(gained, _)| *gained)
            }
        }
    }

    /// The point estimate.
    pub fn value(self, total: &Total) -> f64 {
        match self {
            Self::Metric(metric) => value(total, metric),
            Self::Gained(_) => total.bytes.sum,
        }
    }

    /// The estimate.
    pub fn estimate(self, numbers: &Numbers<'_>, total: &Total) -> Estimate {
        match self {
            Self::Metric(metric) => estimate_of(numbers, total, metric),
            Self::Gained(then) if then.growth().is_some() => {
                estimate::bytes(total, then.sight_of_growth())
            }
            Self::Gained(_) => Estimate::Unknown,
        }
    }
}

/// Grows one tree.
pub struct Grower<'a> {
    numbers: &'a Numbers<'a>,
    direction: Direction,
    measure: Measure<'a>,
    /// The selected stacks, side by side in memory.
    chosen: Vec<Chosen<'a>>,
    /// Cursors of `chosen` at the root.
    cursors: Vec<u32>,
    /// By node: its place among the children that are just made; else `u32::MAX`.
    places: Vec<u32>,
}

struct Chosen<'a> {
    path: &'a [u32],
    total: Total,
}

/// A node while the tree grows. Children stand behind their parents.
struct Sprout {
    parent: usize,
    path: u64,
    /// `None` for `(N smaller)` and the root of everything.
    node: Option<u32>,
    /// Its stacks, by place in `chosen`, with their cursors.
    picks: Vec<Pick>,
    /// How many nodes were put together.
    smaller: usize,
    branches: bool,
    cum: Total,
    flat: Option<Total>,
}

impl<'a> Grower<'a> {
    pub fn new(
        numbers: &'a Numbers<'a>,
        direction: Direction,
        measure: Measure<'a>,
        picks: &[Pick],
        selection: &'a Selection,
    ) -> Self {
        let session = numbers.session();
        let chosen = |pick: &Pick| Chosen {
            path: selection.path(pick.stack, &session.book().stacks()[pick.stack as usize]),
            total: measure.total(numbers, pick.stack),
        };
        Self {
            numbers,
            direction,
            measure,
            chosen: picks.iter().map(chosen).collect(),
            cursors: picks.iter().map(|pick| pick.cursor).collect(),
            places: vec![u32::MAX; session.book().nodes().len()],
        }
    }

    pub fn grow(mut self, root: Option<NodeKey>, open: &mut dyn FnMut(Branch) -> bool) -> Node {
        let node = root.and_then(|key| self.numbers.session().book().node(key));
        let mut first = Sprout::new(0, step(0, root.unwrap_or(NodeKey::ALL)), node);
        for (stack, &cursor) in (0..).zip(&self.cursors) {
            first.take(Pick { stack, cursor }, &self.chosen[stack as usize]);
        }
        let whole = self.measure.value(&first.cum);
        let mut sprouts = vec![first];
        let mut level = 0..1;
        for depth in 0..DEPTH {
            for parent in level.clone() {
                let sprout = &mut sprouts[parent];
                sprout.branches =
                    sprout.smaller == 0 && sprout.picks.iter().any(|p| self.next(*p).is_some());
                let share = share(self.measure.value(&sprout.cum), whole);
                let branch = Branch { path: sprout.path, share, depth };
                if sprout.branches && open(branch) {
                    let picks = std::mem::take(&mut sprout.picks);
                    self.branch(parent, &picks, whole, &mut sprouts);
                }
            }
            level = level.end..sprouts.len();
            if level.is_empty() {
                break;
            }
        }
        self.assemble(&sprouts, root, whole)
    }

    /// The cursor one further, and the node there.
    fn next(&self, pick: Pick) -> Option<(u32, u32)> {
        let cursor = match self.direction {
            Direction::Callers => pick.cursor.checked_sub(1)?,
            Direction::Callees => pick.cursor.wrapping_add(1),
        };
        let path = self.chosen[pick.stack as usize].path;
        path.get(cursor as usize).map(|&node| (cursor, node))
    }

    fn branch(&mut self, parent: usize, picks: &[Pick], whole: f64, sprouts: &mut Vec<Sprout>) {
        let mut children: Vec<Sprout> = Vec::new();
        for &pick in picks {
            let Some((cursor, node)) = self.next(pick) else { continue };
            let mut place = self.places[node as usize] as usize;
            if place >= children.len() {
                place = children.len();
                self.places[node as usize] = place as u32;
                let path = step(sprouts[parent].path, self.key(node));
                children.push(Sprout::new(parent, path, Some(node)));
            }
            children[place].take(Pick { cursor, ..pick }, &self.chosen[pick.stack as usize]);
        }
        for node in children.iter().filter_map(|child| child.node) {
            self.places[node as usize] = u32::MAX;
        }
        let size = |s: &Sprout| self.measure.value(&s.cum);
        let nodes = self.numbers.session().book().nodes();
        let name =
            |s: &Sprout| s.node.map(|n| &nodes[n as usize]).map(|n| (&n.label.function, n.key));
        // Sizes are not negative: their bits are in their order.
        let mut order: Vec<(Reverse<u64>, usize)> =
            children.iter().enumerate().map(|(i, s)| (Reverse(size(s).to_bits()), i)).collect();
        order.sort_unstable_by(|(a, i), (b, j)| {
            a.cmp(b).then_with(|| name(&children[*i]).cmp(&name(&children[*j])))
        });
        let large = order.partition_point(|(_, i)| size(&children[*i]) >= whole * SMALL);
        let room = NODES.saturating_sub(sprouts.len());
        let kept = children.len().min(large.max(room));
        // One alone can be shown as what it is.
        let kept = if children.len() - kept == 1 { children.len() } else { kept };
        let mut children: Vec<Option<Sprout>> = children.into_iter().map(Some).collect();
        let (kept, rest) = order.split_at(kept);
        sprouts.extend(kept.iter().filter_map(|(_, i)| children[*i].take()));
        if !rest.is_empty() {
            let path = step(sprouts[parent].path, NodeKey::SMALLER);
            let mut smaller = Sprout::new(parent, path, None);
            smaller.smaller = rest.len();
            for child in rest.iter().filter_map(|(_, i)| children[*i].take()) {
                for pick in child.picks {
                    smaller.take(pick, &self.chosen[pick.stack as usize]);
                }
            }
            sprouts.push(smaller);
        }
    }

    fn key(&self, node: u32) -> NodeKey {
        self.numbers.session().book().nodes()[node as usize].key
    }

    fn assemble(&self, sprouts: &[Sprout], root: Option<NodeKey>, whole: f64) -> Node {
        let mut children: Vec<Vec<Node>> = Vec::new();
        children.resize_with(sprouts.len(), Vec::new);
        // Children stand behind their parents: from the end on, all of a node's
        // children are ready when it is reached.
        for (at, sprout) in sprouts.iter().enumerate().skip(1).rev() {
            let below = std::mem::take(&mut children[at]);
            children[sprout.parent].push(self.node(sprout, below, root, whole));
        }
        let below = std::mem::take(&mut children[0]);
        self.node(&sprouts[0], below, root, whole)
    }

    /// `below` are the children, last first.
    fn node(
        &self,
        sprout: &Sprout,
        mut below: Vec<Node>,
        root: Option<NodeKey>,
        whole: f64,
    ) -> Node {
        below.reverse();
        let (key, label) = match sprout.node {
            Some(node) => {
                let info = &self.numbers.session().book().nodes()[node as usize];
                (info.key, info.label.clone())
            }
            None if sprout.smaller > 0 => {
                let function = format!("({} smaller)", sprout.smaller).into();
                (NodeKey::SMALLER, Label { function, location: "".into(), named: true })
            }
            None => (root.unwrap_or(NodeKey::ALL), all_label()),
        };
        let estimate = |total: &Total| self.measure.estimate(self.numbers, total);
        Node {
            key,
            path: sprout.path,
            label,
            cum: estimate(&sprout.cum),
            flat: sprout.flat.as_ref().map_or(Estimate::Unknown, estimate),
            share: share(self.measure.value(&sprout.cum), whole),
            branches: sprout.branches,
            children: below,
        }
    }
}

impl Sprout {
    fn new(parent: usize, path: u64, node: Option<u32>) -> Self {
        Self {
            parent,
            path,
            node,
            picks: Vec::new(),
            smaller: 0,
            branches: false,
            cum: Total::default(),
            flat: None,
        }
    }

    /// What allocates at a node itself are the stacks that end in it, not those
    /// that only pass through its function.
    fn take(&mut self, pick: Pick, chosen: &Chosen) {
        self.cum.merge(&chosen.total);
        if pick.cursor as usize + 1 == chosen.path.len() {
            self.flat.get_or_insert_default().merge(&chosen.total);
        }
        self.picks.push(pick);
    }
}

fn share(size: f64, whole: f64) -> f64 {
    if whole > 0.0 { (size / whole).min(1.0) } else { 0.0 }
}

/// The path that goes on from `path` with `key`.
pub fn step(path: u64, key: NodeKey) -> u64 {
    // FNV's prime: paths of the same keys in another order differ.
    (path.rotate_left(5) ^ key.0).wrapping_mul(0x0000_0100_0000_01b3).wrapping_add(1)
}
