//! How prefixes are divided.

use super::super::grow::DEPTH;
use super::super::select::Found;
use super::sums::Asked;
use super::{NOWHERE, Prefix, Prefixes};
use std::sync::Arc;

/// Nodes of a path that are at hand while prefixes are first divided: most frames that are
/// seen are no further from the root.
const HEAD: usize = 8;
impl Prefixes {
    /// Divides what is wide enough to be seen, before anything is added up: so each callstack
    /// is added up once, where it lies at last, and not in each row of frames.
    pub fn expand(&mut self, asked: &Asked<'_>) {
        let (book, selection) = (asked.numbers.session().book(), Arc::clone(&self.selection));
        let path = |stack: u32| selection.path(stack, &book.stacks()[stack as usize]);
        let all = || (0..).zip(&self.lies_in).map(|(stack, at)| (stack, *at != NOWHERE));
        let value = |stack| asked.measure.value(&asked.measure.total(asked.numbers, stack));
        let values: Vec<f64> = all().map(|(s, taken)| if taken { value(s) } else { 0.0 }).collect();
        // The beginnings of paths, side by side in memory.
        let head = |(stack, taken): (u32, bool)| {
            let path = if taken { path(stack) } else { &[] };
            let mut head = [0; HEAD];
            head.iter_mut().zip(path).for_each(|(head, node)| *head = *node);
            (head, path.len() as u32)
        };
        let heads: Vec<([u32; HEAD], u32)> = all().map(head).collect();
        let next = |stack: u32, depth: usize| {
            let (head, len) = &heads[stack as usize];
            let node = head.get(depth).copied().unwrap_or_else(|| path(stack)[depth]);
            (node, *len as usize == depth + 1)
        };
        self.places.resize(book.nodes().len(), NOWHERE);
        let mut at = 0;
        for &node in asked.zoom {
            self.split(at, next);
            let Some(child) = self.child(at, node) else { return };
            at = child;
        }
        let width = |prefix: &Prefix| -> f64 {
            let stacks = prefix.stacks.iter().chain(&prefix.ends);
            stacks.map(|&stack| values[stack as usize]).sum()
        };
        let whole = width(&self.all[at as usize]);
        let mut level = vec![at];
        for depth in 0..DEPTH {
            let mut below = Vec::new();
            for at in level {
                let share = width(&self.all[at as usize]) / whole;
                if depth == 0 || asked.is_seen(share) {
                    self.split(at, next);
                    below.extend_from_slice(&self.all[at as usize].children);
                }
            }
            level = below;
        }
    }

    /// The callstacks of a prefix lie in its children from now on; `next` tells the node that
    /// stands so many behind a callstack's root, and whether it is the last.
    fn split(&mut self, at: u32, next: impl Fn(u32, usize) -> (u32, bool)) {
        let prefix = &mut self.all[at as usize];
        if std::mem::replace(&mut prefix.divided, true) {
            return;
        }
        let (depth, stacks) = (prefix.depth as usize, std::mem::take(&mut prefix.stacks));
        let first = self.all.len();
        for stack in stacks {
            let (node, is_last) = next(stack, depth);
            let mut child = self.places[node as usize];
            if child == NOWHERE {
                child = self.make(at, node);
                self.places[node as usize] = child;
            }
            self.lies_in[stack as usize] = child;
            let child = &mut self.all[child as usize];
            let list = if is_last { &mut child.ends } else { &mut child.stacks };
            list.push(stack);
        }
        let mut children: Vec<u32> = (first as u32..self.all.len() as u32).collect();
        for &child in &children {
            self.places[self.all[child as usize].node as usize] = NOWHERE;
        }
        children.sort_unstable_by_key(|&child| self.all[child as usize].node);
        self.all[at as usize].children = children;
    }

    /// The same, with the sums of the children.
    pub fn divide(&mut self, at: u32, asked: &Asked<'_>) {
        if self.all[at as usize].divided {
            return;
        }
        let (book, selection) = (asked.numbers.session().book(), Arc::clone(&self.selection));
        self.places.resize(book.nodes().len(), NOWHERE);
        self.split(at, |stack, depth| {
            let path = selection.path(stack, &book.stacks()[stack as usize]);
            (path[depth], path.len() == depth + 1)
        });
        let found = Found::new(book, asked.search);
        for place in 0..self.all[at as usize].children.len() {
            let child = self.all[at as usize].children[place];
            self.add_up(child as usize, asked, &found);
        }
    }
}
