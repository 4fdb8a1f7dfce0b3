//! Bytes beside the lines of a source file.
//!
//! A line has what is allocated *at* it (flat: a callsite of the file stands there) and
//! what goes *through* it (cum: a callstack that passes a frame there; recursion counts
//! once). Frames whose line is not known are in no line.

use super::filter::Selection;
use super::numbers::Numbers;
use super::sums::{estimate_of, of_metric};
use super::{Label, Metric, NodeKey, When};
use crate::session::Session;
use crate::session::figures::Estimate;
use heaptop_protocol::totals::Total;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A line of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceLine {
    /// Its number, from 1.
    pub number: u32,
    /// What goes through it.
    pub cum: Estimate,
    /// What is allocated at it; unknown where no callsite is.
    pub flat: Estimate,
    /// `cum` over the file's largest, 0 to 1.
    pub share: f64,
    /// The node at it that carries most.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
}

/// The file and line behind a node, as the debug information has them.
#[must_use]
pub fn source_of(session: &Session, key: NodeKey) -> Option<(Arc<str>, Option<u32>)> {
    let book = session.book();
    book.nodes()[book.node(key)? as usize].place.clone()
}

/// The lines of a file that callstacks go through, in order.
#[must_use]
pub fn source(
    session: &Session,
    when: When,
    metric: Metric,
    filter: &str,
    file: &str,
) -> Vec<SourceLine> {
    #[derive(Default)]
    struct Line {
        cum: Total,
        flat: Option<Total>,
        nodes: BTreeMap<u32, f64>,
    }
    let book = session.book();
    let line_of: Vec<Option<u32>> = book
        .nodes()
        .iter()
        .map(|node| match &node.place {
            Some((of, line)) if **of == *file => *line,
            _ => None,
        })
        .collect();
    let selection = Selection::of(session, filter);
    let numbers = Numbers::by_stack(session, when, &selection);
    let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
    let mut seen = Vec::new();
    for (at, stack) in (0..).zip(book.stacks()).filter(|(at, _)| selection.takes(*at)) {
        let mut total = None;
        seen.clear();
        let path = selection.path(at, stack);
        for (place, &node) in path.iter().enumerate() {
            let Some(number) = line_of[node as usize] else { continue };
            let total = total.get_or_insert_with(|| of_metric(numbers.stack(at), metric));
            let line = lines.entry(number).or_default();
            if !seen.contains(&number) {
                seen.push(number);
                line.cum.merge(total);
            }
            *line.nodes.entry(node).or_default() += super::sums::value(total, metric);
            if place + 1 == path.len() {
                line.flat.get_or_insert_default().merge(total);
            }
        }
    }
    let value = |total: &Total| super::sums::value(total, metric);
    let most = lines.values().map(|line| value(&line.cum)).fold(0.0, f64::max);
    lines
        .into_iter()
        .map(|(number, line)| {
            let estimate = |total: &Total| estimate_of(&numbers, total, metric);
            let heaviest = line.nodes.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let node = &book.nodes()[heaviest.map_or(0, |(node, _)| *node) as usize];
            SourceLine {
                number,
                cum: estimate(&line.cum),
                flat: line.flat.as_ref().map_or(Estimate::Unknown, estimate),
                share: if most > 0.0 { value(&line.cum) / most } else { 0.0 },
                key: node.key,
                label: node.label.clone(),
            }
        })
        .collect()
}
