//! Callstacks that were picked one by one, each with a place in its path from which a tree
//! is grown up or down.

use super::Direction;
use super::filter::Selection;
use super::grow::{Measure, ROOT, Split, Wood};
use super::numbers::Numbers;
use crate::session::figures::Estimate;
use heaptop_protocol::totals::Total;

/// One selected stack: its number, and its cursor; `u32::MAX` stands before the
/// root.
#[derive(Debug, Clone, Copy)]
pub struct Pick {
    pub stack: u32,
    pub cursor: u32,
}

/// See the module.
pub struct Picks<'a> {
    numbers: &'a Numbers<'a>,
    direction: Direction,
    measure: Measure<'a>,
    /// The selected stacks, side by side in memory.
    chosen: Vec<Chosen<'a>>,
    /// By node: its place among the children that are just made; else `u32::MAX`.
    places: Vec<u32>,
}

struct Chosen<'a> {
    path: &'a [u32],
    total: Total,
}

impl<'a> Picks<'a> {
    /// Those of a tree, and all of them as its root's.
    pub fn new(
        numbers: &'a Numbers<'a>,
        direction: Direction,
        measure: Measure<'a>,
        picks: &[Pick],
        selection: &'a Selection,
    ) -> (Self, Split<Vec<Pick>>) {
        let book = numbers.session().book();
        let chosen = |pick: &Pick| Chosen {
            path: selection.path(pick.stack, &book.stacks()[pick.stack as usize]),
            total: measure.total(numbers, pick.stack),
        };
        let these = Self {
            numbers,
            direction,
            measure,
            chosen: picks.iter().map(chosen).collect(),
            places: vec![u32::MAX; book.nodes().len()],
        };
        let (part, cum) = (Vec::new(), Total::default());
        let mut all = Split { node: ROOT, part, cum, flat: None };
        for (stack, pick) in (0..).zip(picks) {
            these.join(&mut all, Pick { stack, cursor: pick.cursor });
        }
        (these, all)
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

    /// A stack, by its place among the chosen, is one of a node's.
    fn join(&self, split: &mut Split<Vec<Pick>>, pick: Pick) {
        let chosen = &self.chosen[pick.stack as usize];
        split.cum.merge(&chosen.total);
        if pick.cursor as usize + 1 == chosen.path.len() {
            split.flat.get_or_insert_default().merge(&chosen.total);
        }
        split.part.push(pick);
    }
}

impl Wood for Picks<'_> {
    type Part = Vec<Pick>;

    fn goes_on(&self, part: &Vec<Pick>) -> bool {
        part.iter().any(|pick| self.next(*pick).is_some())
    }

    fn divide(&mut self, part: &mut Vec<Pick>) -> Vec<Split<Vec<Pick>>> {
        let mut children: Vec<Split<Vec<Pick>>> = Vec::new();
        for pick in std::mem::take(part) {
            let Some((cursor, node)) = self.next(pick) else { continue };
            let mut place = self.places[node as usize] as usize;
            if place >= children.len() {
                place = children.len();
                self.places[node as usize] = place as u32;
                let (part, cum) = (Vec::new(), Total::default());
                children.push(Split { node, part, cum, flat: None });
            }
            self.join(&mut children[place], Pick { cursor, ..pick });
        }
        for child in &children {
            self.places[child.node as usize] = u32::MAX;
        }
        children
    }

    fn estimates(
        &mut self,
        _: Option<&Vec<Pick>>,
        cum: &Total,
        flat: Option<&Total>,
    ) -> [Estimate; 2] {
        let estimate = |total: &Total| self.measure.estimate(self.numbers, total);
        [estimate(cum), flat.map_or(Estimate::Unknown, estimate)]
    }
}
