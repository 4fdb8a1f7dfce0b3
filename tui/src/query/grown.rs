//! How the blocks of a callsite grow by realloc.
//!
//! Steps are counted by the blocks that are born of them, each sampled as any other. What a
//! block was before is known of pairs that were both sampled ([`crate::session::reallocs`]):
//! sums over those are bounds from below but at R = 1.

use crate::session::Session;
use crate::session::estimate::{self, Sight};
use crate::session::figures::Estimate;
use crate::session::then::by::size_class;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Most steps from one size to another that are told.
const MOST_STEPS: usize = 12;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// Reallocs.
    pub steps: Estimate,
    /// Reallocs for each block that is born here otherwise: the steps of a chain. Where
    /// blocks are born elsewhere, for each that is seen to grow for the first time, at R = 1.
    pub each: Estimate,
    /// Bytes that had to be copied, since blocks lie elsewhere afterwards.
    pub copied: Estimate,
    /// From which sizes to which, the smallest first.
    pub sizes: Vec<Step>,
    /// The largest sampled block that came by realloc, in bytes; 0 where there is none.
    pub largest: u64,
    /// Reallocs of which both blocks were sampled: those to a larger block, and others.
    pub seen: [u64; 2],
}

/// Reallocs from sizes of one class to those of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Up to so many bytes before, and more than half of it,
    pub from: u64,
    /// up to so many after.
    pub to: u64,
    /// How many.
    pub steps: Estimate,
    /// Bytes that had to be copied.
    pub copied: Estimate,
}

/// How callstacks that `mine` takes grew from after `from_us` until `to_us`, microseconds
/// since the agent's start: `by_realloc` are the blocks born there by realloc, `otherwise`
/// those born there by other means.
pub fn grown(
    session: &Session,
    mine: impl Fn(u32) -> bool,
    [from_us, to_us]: [u64; 2],
    [by_realloc, otherwise]: [&Total; 2],
    sight: Sight,
) -> Grown {
    let reallocs = session.reallocs();
    let (mut copied, mut pairs, mut chains) = (Total::default(), 0, 0.0);
    let mut seen = [0; 2];
    let mut by_size: FxHashMap<(u32, u32), (Total, Total)> = FxHashMap::default();
    let within = |at: u64| from_us < at && at <= to_us;
    for r in reallocs.all().iter().filter(|r| within(r.at_us) && mine(r.stack)) {
        let (all, moved) = by_size.entry((size_class(r.from), size_class(r.to))).or_default();
        let w = reallocs.weight(r, r.held());
        pairs += 1;
        seen[usize::from(r.to <= r.from)] += 1;
        chains += if r.is_first() { w.objects } else { 0.0 };
        all.add(&w);
        if r.moved {
            moved.add(&w);
            copied.add(&w);
        }
    }
    // What is seen whole is all that there is.
    let exact = sight.interval == Some(Interval::EXACT) && !sight.lost && pairs == by_realloc.n;
    let steps = estimate::objects(by_realloc, sight);
    let mut order: Vec<_> = by_size.into_iter().collect();
    order.sort_unstable_by_key(|(_, (all, _))| Reverse(all.objects.sum.max(0.0).to_bits()));
    order.truncate(MOST_STEPS);
    order.sort_unstable_by_key(|(classes, _)| *classes);
    let up_to = |class: u32| 1u64.checked_shl(class).unwrap_or(u64::MAX);
    let step = |((from, to), (all, moved)): ((u32, u32), (Total, Total))| Step {
        from: up_to(from),
        to: up_to(to),
        steps: estimate::at_least(&all.objects, all.n, exact),
        copied: estimate::at_least(&moved.bytes, moved.n, exact),
    };
    let chains = match otherwise.n {
        0 if exact => Estimate::Exact { value: chains },
        _ => estimate::objects(otherwise, sight),
    };
    Grown {
        each: estimate::quotient(steps, chains, by_realloc.n.min(otherwise.n)),
        steps,
        copied: estimate::at_least(&copied.bytes, copied.n, exact),
        sizes: order.into_iter().map(step).collect(),
        largest: by_realloc.largest_size,
        seen,
    }
}
