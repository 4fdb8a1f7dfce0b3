//! What is asked of single blocks, and what that means in a session.

use super::words::Named;
use super::{Placed, Wrong};
use crate::session::Session;
use crate::session::then::only::{Test, Than};
use crate::session::then::threads::OTHERS;
use crate::times::{Range, Time};
use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::ThreadId;
use std::sync::Arc;

/// As it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockTest {
    Thread(Named),
    Phase(Named),
    Cause(Cause),
    Size(Than, u64),
    Age(Than, u64),
    Lifetime(Than, u64),
    Born(Range),
    Died(Range),
    Promoted(bool),
}

/// The tests in a session, and what of them is so because of what it knows now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    pub tests: Vec<(bool, Test)>,
    pub stamp: Vec<u64>,
}

/// What threads are called on the screens.
pub fn thread_name(session: &Session, id: ThreadId) -> String {
    match session.threads().get(&id) {
        Some(thread) if !thread.name.is_empty() => thread.name.clone(),
        _ if id == OTHERS => "(other threads)".to_owned(),
        _ => format!("(thread {})", id.0),
    }
}

/// A phase or a thread that a filter names and nobody has heard of, in a sentence: it may come.
#[must_use]
pub fn unknown(session: &Session, text: &str) -> Option<String> {
    let filter = super::parse(text).ok()?;
    let nobody = |kind: &str, name: &Named| Some(format!("no {kind} “{}” so far", name.text()));
    filter.blocks.iter().find_map(|Placed { of, .. }| match of {
        BlockTest::Phase(name) => {
            let known = session.phases().iter().any(|phase| name.is(&phase.name));
            if known { None } else { nobody("phase", name) }
        }
        BlockTest::Thread(name) => {
            let mut ids = session.threads().keys().copied().chain([OTHERS]);
            let known = ids.any(|id| name.is(&thread_name(session, id)));
            if known { None } else { nobody("thread", name) }
        }
        _ => None,
    })
}

impl BlockTest {
    /// Whether time alone makes it another.
    pub fn moves(&self) -> bool {
        match self {
            Self::Phase(_) => true,
            Self::Born(range) | Self::Died(range) => range.moves(),
            _ => false,
        }
    }
}

/// What the tests mean now; of a time that is none, what is wrong.
pub fn resolve(tests: &[Placed<BlockTest>], session: &Session) -> Result<Resolved, Wrong> {
    let mut resolved = Resolved::default();
    for Placed { holds, at, of } in tests {
        let test = match of {
            BlockTest::Thread(name) => {
                let ids = session.threads().keys().copied().chain([OTHERS]);
                let ids = ids.filter(|id| id.0 <= OTHERS.0 && name.is(&thread_name(session, *id)));
                let ids: Vec<ThreadId> = ids.collect();
                let most = ids.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
                let mut taken = vec![false; most];
                for id in ids {
                    taken[id.0 as usize] = true;
                }
                // Another thread of that name has no blocks that were judged already.
                resolved.stamp.push(session.threads_renamed());
                Test::Threads(taken)
            }
            BlockTest::Phase(name) => {
                let phases = session.phases().into_iter().filter(|phase| name.is(&phase.name));
                let within = phases.map(|phase| {
                    let until = phase.to_ns.map_or(u64::MAX, |to| to / 1000);
                    (phase.from_ns / 1000 + 1, until)
                });
                let within: Vec<(u64, u64)> = within.collect();
                resolved.stamp.extend(within.iter().flat_map(|(from, to)| [*from, *to]));
                Test::Born(within)
            }
            BlockTest::Born(range) | BlockTest::Died(range) => {
                let within = within(range, session).map_err(|says| Wrong::new(*at, says))?;
                resolved.stamp.extend([within.0, within.1]);
                if matches!(of, BlockTest::Born(_)) {
                    Test::Born(vec![within])
                } else {
                    Test::Died(vec![within])
                }
            }
            BlockTest::Cause(cause) => {
                let book = session.book();
                let outside: Arc<[bool]> = match cause {
                    Cause::Malloc => {
                        let stacks = 0..book.stacks().len() as u32;
                        stacks.map(|stack| book.external(stack).is_some()).collect()
                    }
                    Cause::Calloc | Cause::Realloc | Cause::Aligned => [].into(),
                };
                // Of callstacks that were known it changes with their names alone.
                resolved.stamp.push(book.renamed());
                Test::Cause(*cause, outside)
            }
            BlockTest::Size(than, bytes) => Test::Size(*than, *bytes),
            BlockTest::Age(than, ns) => Test::Age(*than, *ns),
            BlockTest::Lifetime(than, ns) => Test::Lifetime(*than, *ns),
            BlockTest::Promoted(promoted) => Test::Promoted(*promoted),
        };
        resolved.tests.push((*holds, test));
    }
    Ok(resolved)
}

/// A range in microseconds, both ends within. As everywhere a beginning is not in it, but
/// where it is the start of all, and an end is, but where that moves on.
fn within(range: &Range, session: &Session) -> Result<(u64, u64), String> {
    let from = match &range.from {
        Time::Start => 0,
        from => from.instant(session)? / 1000 + 1,
    };
    let to = match &range.to {
        Time::End => u64::MAX,
        to => to.instant(session)? / 1000,
    };
    if from > to.saturating_add(1) {
        return Err("the range ends before it begins".into());
    }
    Ok((from, to))
}
