//! How trees grow: level by level, from callstacks that are told apart by what comes next
//! ([`Wood`]): [picked one by one](super::picks), or [kept by what they begin
//! with](super::prefixes).
//!
//! A node's stacks are disjoint from its siblings', so children never add up to
//! more than their parent. Whoever asks says which nodes are open: below the
//! others nothing is looked at.
//!
//! Bounds: 64 levels; past 10,000 nodes, what is under a thousandth of the root
//! is put together as `(N smaller)`.

use super::numbers::Numbers;
use super::sums::{estimate_of, of_metric, part_of, value};
use super::tree::{Branch, all_label};
use super::{Label, Metric, Node, NodeKey};
use crate::session::Session;
use crate::session::estimate::{self, Sight};
use crate::session::figures::Estimate;
use crate::session::then::Then;
use heaptop_protocol::totals::Total;
use std::cmp::Reverse;

pub const DEPTH: usize = 64;
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

    /// How what it counts was sampled; `None` where nothing is known of it.
    pub fn sight(self, numbers: &Numbers<'_>) -> Option<Sight> {
        match self {
            Self::Metric(metric) => numbers.sight(part_of(metric)),
            Self::Gained(then) => then.growth().map(|_| then.sight_of_growth().gained),
        }
    }

    /// The estimate.
    pub fn estimate(self, numbers: &Numbers<'_>, total: &Total) -> Estimate {
        match self {
            Self::Metric(metric) => estimate_of(numbers, total, metric),
            Self::Gained(then) if then.growth().is_some() => {
                estimate::bytes(total, then.sight_of_growth().gained)
            }
            Self::Gained(_) => Estimate::Unknown,
        }
    }
}

/// Where a tree's nodes come from: callstacks that are told apart by what comes next.
pub trait Wood {
    /// Callstacks of one node.
    type Part;

    /// Whether any of them goes on below the node.
    fn goes_on(&self, part: &Self::Part) -> bool;

    /// The nodes below, in no order. The part is of no use any more.
    fn divide(&mut self, part: &mut Self::Part) -> Vec<Split<Self::Part>>;

    /// What a node shows of its sums; of several nodes put together there is no part.
    fn estimates(
        &mut self,
        part: Option<&Self::Part>,
        cum: &Total,
        flat: Option<&Total>,
    ) -> [Estimate; 2];
}

/// Stands for the node of a root: whoever asks knows it.
pub const ROOT: u32 = u32::MAX;

/// A node that a part was divided into.
pub struct Split<P> {
    /// Which, but of a root.
    pub node: u32,
    /// Its callstacks.
    pub part: P,
    /// With all that is below it.
    pub cum: Total,
    /// Of the callstacks that end at it; `None` where none does. What allocates at a node
    /// itself are these, not those that only pass through its function.
    pub flat: Option<Total>,
}

/// Grows one tree.
pub struct Grower<'a, W> {
    session: &'a Session,
    measure: Measure<'a>,
    wood: W,
}

/// A node while the tree grows. Children stand behind their parents.
struct Sprout<P> {
    parent: usize,
    path: u64,
    /// `None` for `(N smaller)` and the root of everything.
    node: Option<u32>,
    /// `None` for `(N smaller)`.
    part: Option<P>,
    /// How many nodes were put together.
    smaller: usize,
    branches: bool,
    cum: Total,
    flat: Option<Total>,
}

impl<'a, W: Wood> Grower<'a, W> {
    pub const fn new(session: &'a Session, measure: Measure<'a>, wood: W) -> Self {
        Self { session, measure, wood }
    }

    /// The tree below `root`, whose callstacks are `first`; and what is shown of each node.
    pub fn grow(
        mut self,
        root: Option<NodeKey>,
        first: Split<W::Part>,
        open: &mut dyn FnMut(Branch) -> bool,
    ) -> Node {
        let node = root.and_then(|key| self.session.book().node(key));
        let path = step(0, root.unwrap_or(NodeKey::ALL));
        let whole = self.measure.value(&first.cum);
        let mut sprouts = vec![Sprout { node, ..Sprout::new(0, path, first) }];
        let mut level = 0..1;
        for depth in 0..DEPTH {
            for parent in level.clone() {
                let sprout = &mut sprouts[parent];
                let Some(part) = &mut sprout.part else { continue };
                sprout.branches = self.wood.goes_on(part);
                let share = share(self.measure.value(&sprout.cum), whole);
                let branch = Branch { path: sprout.path, share, depth };
                if sprout.branches && open(branch) {
                    let children = self.wood.divide(part);
                    self.branch(parent, children, whole, &mut sprouts);
                }
            }
            level = level.end..sprouts.len();
            if level.is_empty() {
                break;
            }
        }
        self.assemble(&sprouts, root, whole)
    }

    fn branch(
        &self,
        parent: usize,
        children: Vec<Split<W::Part>>,
        whole: f64,
        sprouts: &mut Vec<Sprout<W::Part>>,
    ) {
        let size = |s: &Split<W::Part>| self.measure.value(&s.cum);
        let nodes = self.session.book().nodes();
        let name = |s: &Split<W::Part>| {
            let node = &nodes[s.node as usize];
            (&node.label.function, node.key)
        };
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
        let mut children: Vec<Option<Split<W::Part>>> = children.into_iter().map(Some).collect();
        let (kept, rest) = order.split_at(kept);
        let above = sprouts[parent].path;
        let place = |split: Split<W::Part>| {
            let path = step(above, nodes[split.node as usize].key);
            Sprout::new(parent, path, split)
        };
        sprouts.extend(kept.iter().filter_map(|(_, i)| children[*i].take().map(place)));
        if !rest.is_empty() {
            let mut smaller = Sprout {
                parent,
                path: step(above, NodeKey::SMALLER),
                node: None,
                part: None,
                smaller: rest.len(),
                branches: false,
                cum: Total::default(),
                flat: None,
            };
            for child in rest.iter().filter_map(|(_, i)| children[*i].take()) {
                smaller.cum.merge(&child.cum);
                if let Some(flat) = child.flat {
                    smaller.flat.get_or_insert_default().merge(&flat);
                }
            }
            sprouts.push(smaller);
        }
    }

    fn assemble(&mut self, sprouts: &[Sprout<W::Part>], root: Option<NodeKey>, whole: f64) -> Node {
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
        &mut self,
        sprout: &Sprout<W::Part>,
        mut below: Vec<Node>,
        root: Option<NodeKey>,
        whole: f64,
    ) -> Node {
        below.reverse();
        let (key, label) = match sprout.node {
            Some(node) => {
                let info = &self.session.book().nodes()[node as usize];
                (info.key, info.label.clone())
            }
            None if sprout.smaller > 0 => {
                let function = format!("({} smaller)", sprout.smaller).into();
                (NodeKey::SMALLER, Label { function, location: "".into(), named: true })
            }
            None => (root.unwrap_or(NodeKey::ALL), all_label()),
        };
        let (part, flat) = (sprout.part.as_ref(), sprout.flat.as_ref());
        let [cum, flat] = self.wood.estimates(part, &sprout.cum, flat);
        Node {
            key,
            path: sprout.path,
            label,
            cum,
            flat,
            share: share(self.measure.value(&sprout.cum), whole),
            branches: sprout.branches,
            children: below,
        }
    }
}

impl<P> Sprout<P> {
    fn new(parent: usize, path: u64, split: Split<P>) -> Self {
        let Split { node, part, cum, flat } = split;
        let (node, part) = (Some(node), Some(part));
        Self { parent, path, node, part, smaller: 0, branches: false, cum, flat }
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
