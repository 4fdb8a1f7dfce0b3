//! A tree of callers or callees as a list of rows: what is open is listed.
//!
//! A row is known by the path of keys that leads to it, since one function may
//! stand in many branches. A branch that is seen for the first time is open when
//! it carries a good part of the whole, so that the heavy path can be seen at
//! once. From then on it stays as it is until the user opens or closes it: rows
//! do not come and go because shares move.

use std::collections::HashMap;

use crate::query::{Branch, Label, Node, NodeKey};
use crate::session::figures::Estimate;

/// Branches with at least this share of the focus are open at first.
const OPEN_SHARE: f64 = 0.2;
/// Rows are listed down to this depth: the bound of recursion here.
const DEEPEST: usize = 512;

/// One row of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeRow {
    /// The path that leads to it, as a number.
    pub path: u64,
    /// Function and line.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// With everything below it.
    pub cum: Estimate,
    /// At it alone.
    pub flat: Estimate,
    /// `cum` over the focus's.
    pub share: f64,
    /// 0 for the focus.
    pub depth: usize,
    /// Whether rows can open below it.
    pub branches: bool,
    /// Whether they are open.
    pub open: bool,
    /// Index of the parent's row; its own for the focus.
    pub parent: usize,
}

/// Which branches are open (`true`) or closed, by path, of those seen so far.
pub type Opened = HashMap<u64, bool>;

/// The rows of `root`; `opened` learns of the branches that are new.
#[must_use]
pub fn rows(root: &Node, opened: &mut Opened) -> Vec<TreeRow> {
    let mut rows = Vec::new();
    list(root, 0, 0, opened, &mut rows);
    rows
}

fn list(node: &Node, depth: usize, parent: usize, opened: &mut Opened, rows: &mut Vec<TreeRow>) {
    let path = node.path;
    let branches = node.branches && depth < DEEPEST;
    let open = branches && is_open(opened, Branch { path, share: node.share, depth });
    let index = rows.len();
    rows.push(TreeRow {
        path,
        key: node.key,
        label: node.label.clone(),
        cum: node.cum,
        flat: node.flat,
        share: node.share,
        depth,
        branches,
        open,
        parent,
    });
    if open {
        for child in &node.children {
            list(child, depth + 1, index, opened, rows);
        }
    }
}

/// Whether a branch is open; one that is new may open by itself.
pub fn is_open(opened: &mut Opened, branch: Branch) -> bool {
    let by_itself = branch.depth == 0 || branch.share >= OPEN_SHARE;
    *opened.entry(branch.path).or_insert(by_itself)
}

/// Puts the children of `node` into the order in which `former` had them; new
/// ones come last.
pub fn keep_order(node: &mut Node, former: &Node) {
    let place: HashMap<NodeKey, usize> =
        former.children.iter().enumerate().map(|(i, n)| (n.key, i)).collect();
    node.children.sort_by_key(|n| place.get(&n.key).copied().unwrap_or(usize::MAX));
    for child in &mut node.children {
        if let Some(&i) = place.get(&child.key) {
            keep_order(child, &former.children[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last digit of its path is a node's key.
    fn node(path: u64, share: f64, children: Vec<Node>) -> Node {
        Node {
            key: NodeKey(path % 10),
            path,
            label: Label { function: "f".into(), location: "".into(), named: true },
            cum: Estimate::Exact { value: share },
            flat: Estimate::Exact { value: 0.0 },
            share,
            branches: !children.is_empty(),
            children,
        }
    }

    fn keys(rows: &[TreeRow]) -> Vec<u64> {
        rows.iter().map(|r| r.key.0).collect()
    }

    fn tree() -> Node {
        node(
            1,
            1.0,
            vec![
                node(12, 0.7, vec![node(123, 0.6, vec![])]),
                node(14, 0.1, vec![node(143, 0.1, vec![])]),
            ],
        )
    }

    #[test]
    fn heavy_branches_are_open() {
        let rows = rows(&tree(), &mut Opened::new());
        assert_eq!(keys(&rows), [1, 2, 3, 4]);
        assert_eq!(rows.iter().map(|r| r.parent).collect::<Vec<_>>(), [0, 0, 1, 0]);
        assert!(rows[3].branches && !rows[3].open);
    }

    #[test]
    fn what_the_user_did_stands() {
        let all = rows(&tree(), &mut Opened::new());
        let mut opened = Opened::from([(all[1].path, false), (all[3].path, true)]);
        let now = rows(&tree(), &mut opened);
        assert_eq!(keys(&now), [1, 2, 4, 3]);
        assert_ne!(now[3].path, all[2].path, "one function in two branches is two rows");
    }

    #[test]
    fn branches_stay_while_shares_move() {
        let mut opened = Opened::new();
        assert_eq!(keys(&rows(&tree(), &mut opened)), [1, 2, 3, 4]);
        let mut moved = tree();
        moved.children[0].share = 0.1;
        moved.children[1].share = 0.7;
        assert_eq!(keys(&rows(&moved, &mut opened)), [1, 2, 3, 4]);
    }

    #[test]
    fn a_held_order_stands() {
        let mut moved =
            node(1, 1.0, vec![node(9, 0.9, vec![]), node(4, 0.5, vec![]), node(2, 0.1, vec![])]);
        keep_order(&mut moved, &tree());
        assert_eq!(moved.children.iter().map(|n| n.key.0).collect::<Vec<_>>(), [2, 4, 9]);
    }
}
