//! One stream of what several domains wrote: events in the order of time.
//!
//! In version 3 packets of domains follow each other as they were written. A domain
//! writes one when it is full, or with its first event after 30 s: one that sleeps keeps
//! its last packet for as long. So up to [`MOST_WAITING`] events wait until the file is
//! over; if more come, the oldest goes on, and what comes from before it afterwards is
//! given its time, and counted. With one stream nothing waits.

use super::event::{Event, Source, What};
use super::info::Info;
use super::stacks::{Stack, Stacks};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most events that wait, 40 MB: two minutes of 2,000 births a second.
const MOST_WAITING: usize = 1 << 19;

/// An event that owns all it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Microseconds since 1970, never less than that of the one before.
    pub time_us: i64,
    /// The domain.
    pub domain: u16,
    /// What happens.
    pub what: Happens,
}

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happens {
    /// A birth.
    Alloc {
        /// Which object.
        id: i64,
        /// Words.
        length: u64,
        /// Samples in it.
        n_samples: u64,
        /// Where.
        source: Source,
        /// Its callstack.
        stack: Stack,
    },
    /// It survives a minor collection.
    Promote(i64),
    /// It is dead.
    Collect(i64),
}

impl Told {
    /// What an event says.
    pub fn new(event: &Event<'_>, stacks: &mut Stacks) -> Self {
        let what = match event.what {
            What::Promote(id) => Happens::Promote(id),
            What::Collect(id) => Happens::Collect(id),
            What::Alloc(a) => Happens::Alloc {
                id: a.id,
                length: a.length,
                n_samples: a.n_samples,
                source: a.source,
                stack: stacks.number(event.domain, &a),
            },
        };
        Self { time_us: event.time_us, domain: event.domain, what }
    }
}

/// An event and its place in the file: among events of one time the first comes first.
#[derive(Debug, PartialEq, Eq)]
struct Waiting(i64, u64, Told);

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The events that wait.
#[derive(Debug)]
pub(super) struct Merge {
    one_stream: bool,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// How many came.
    count: u64,
    /// Time of the last one that went on.
    gone_us: i64,
    late: u64,
}

impl Merge {
    /// Of a trace that is so.
    pub fn new(info: &Info) -> Self {
        Self {
            one_stream: info.version < 3,
            waiting: BinaryHeap::new(),
            count: 0,
            gone_us: i64::MIN,
            late: 0,
        }
    }

    /// An event comes.
    pub fn put(&mut self, told: Told) {
        self.count += 1;
        self.waiting.push(Reverse(Waiting(told.time_us, self.count, told)));
    }

    /// The next event that need not wait; of a trace that is `over`, the next one.
    pub fn take(&mut self, over: bool) -> Option<Told> {
        if !over && !self.one_stream && self.waiting.len() <= MOST_WAITING {
            return None;
        }
        let Reverse(Waiting(time_us, _, told)) = self.waiting.pop()?;
        self.late += u64::from(time_us < self.gone_us);
        self.gone_us = self.gone_us.max(time_us);
        Some(Told { time_us: self.gone_us, ..told })
    }

    /// Events that came too late for their place.
    pub const fn late(&self) -> u64 {
        self.late
    }
}
