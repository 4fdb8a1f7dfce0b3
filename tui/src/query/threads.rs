//! Threads: what each allocated, what of it lives, and what others freed.

use super::When;
use super::filter::Selection;
use crate::session::figures::{Estimate, Ratio};
use crate::session::then::Then;
use crate::session::then::by::By;
use crate::session::then::threads::OTHERS;
use crate::session::{Session, estimate};
use heaptop_protocol::ids::ThreadId;
use std::cmp::Reverse;

/// A thread. Figures are of the blocks that it allocated, as far as they were heard of:
/// since the viewer came, or in the range.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// Which; `None` for those that have no room of their own.
    pub id: Option<ThreadId>,
    /// The kernel's number, if it was told.
    pub tid: Option<u32>,
    /// Its name; empty if it has none.
    pub name: String,
    /// Bytes allocated.
    pub allocated_bytes: Estimate,
    /// Objects allocated.
    pub allocated_objects: Estimate,
    /// Bytes allocated per second over the window of rates.
    pub allocated_rate: Estimate,
    /// Bytes that live.
    pub in_use_bytes: Estimate,
    /// Objects that live.
    pub in_use_objects: Estimate,
    /// Bytes that another thread freed.
    pub freed_elsewhere_bytes: Estimate,
    /// Their share of all bytes freed.
    pub freed_elsewhere: Ratio,
}

/// What a thread is called.
#[must_use]
pub fn thread_name(row: &ThreadRow) -> String {
    match row.id {
        None => "(other threads)".to_owned(),
        Some(id) if row.name.is_empty() => format!("(thread {})", id.0),
        Some(_) => row.name.clone(),
    }
}

/// Threads that allocated anything that was heard of, of the blocks that `filter` takes;
/// most bytes allocated first.
#[must_use]
pub fn threads(session: &Session, when: When, filter: &str) -> Vec<ThreadRow> {
    let selection = Selection::of(session, filter);
    let then = Then::bare(session, when, selection.by(By::Group));
    let (born, living) = (then.sight_of_allocated(), then.sight_of_in_use());
    let rates = then.sight_of_rates();
    let if_known = |known: bool, estimate| if known { estimate } else { Estimate::Unknown };
    let allocated =
        |estimate| if_known(then.knows_allocated() && session.knows_allocated(), estimate);
    let in_use = |estimate| if_known(session.knows_in_use() && then.knows_in_use(), estimate);
    let lives = session.knows_lives();
    let mut rows: Vec<_> = then.threads(session).into_iter().collect();
    rows.sort_by_key(|(id, of)| (Reverse(of.allocated.bytes.sum.to_bits()), *id));
    rows.into_iter()
        .map(|(id, of)| {
            let thread = session.threads().get(&id);
            let rate = then
                .rate_seconds()
                .map(|seconds| estimate::per_second(estimate::bytes(&of.window, rates), seconds));
            ThreadRow {
                id: (id != OTHERS).then_some(id),
                tid: thread.map(|thread| thread.tid).filter(|tid| *tid != 0),
                name: thread.map(|thread| thread.name.clone()).unwrap_or_default(),
                allocated_bytes: allocated(estimate::bytes(&of.allocated, born)),
                allocated_objects: allocated(estimate::objects(&of.allocated, born)),
                allocated_rate: rate
                    .map_or(Estimate::Unknown, |rate| if_known(session.knows_allocated(), rate)),
                in_use_bytes: in_use(estimate::bytes(&of.in_use, living)),
                in_use_objects: in_use(estimate::objects(&of.in_use, living)),
                freed_elsewhere_bytes: if_known(
                    then.knows_allocated() && lives,
                    estimate::bytes(&of.freed_elsewhere, born),
                ),
                freed_elsewhere: if lives {
                    estimate::share(&of.freed_elsewhere, &of.freed)
                } else {
                    Ratio::Unknown
                },
            }
        })
        .collect()
}
