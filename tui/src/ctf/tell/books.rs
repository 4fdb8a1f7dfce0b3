//! The books of a trace: what the agent's ledger would have of the same events.
//!
//! - **totals** by callstack and over all. A young object is judged once it is promoted
//!   or dead, since only then the minor cycle of its birth is known to be over;
//! - the **peak** of the in-use estimate, with each callstack's share of it: a record
//!   that changes for the first time since the last peak first keeps what it had, so a
//!   record with an older stamp has not changed since;
//! - the **living**, by their number in the trace.

use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::{Alloc, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::totals::{StackInUse, StackTotals, Total, Totals};
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy, Default)]
struct Record {
    totals: Totals,
    at_peak: Total,
    peak_epoch: u64,
    changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Living {
    block: BlockId,
    stack: StackId,
    size: u64,
    young: bool,
}

/// A birth, for the books.
#[derive(Debug, Clone, Copy)]
pub(super) struct Born {
    /// Its number in the trace.
    pub id: i64,
    pub thread: ThreadId,
    pub stack: StackId,
    /// Bytes, the header included.
    pub size: u64,
    pub n_samples: u64,
    pub young: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Books {
    interval: Interval,
    records: Vec<Record>,
    changed: Vec<StackId>,
    living: FxHashMap<i64, Living>,
    pub totals: Totals,
    pub samples: u64,
    epoch: u64,
    peak: Total,
    peak_ns: u64,
    /// Events of objects that are not known.
    pub strange: u64,
}

impl Books {
    /// Empty ones, of a trace sampled so.
    pub fn new(interval: Interval) -> Self {
        Self {
            interval,
            records: Vec::new(),
            changed: Vec::new(),
            living: FxHashMap::default(),
            totals: Totals::default(),
            samples: 0,
            epoch: 0,
            peak: Total::default(),
            peak_ns: 0,
            strange: 0,
        }
    }

    fn record(&mut self, stack: StackId) -> &mut Record {
        let at = stack.0 as usize;
        if self.records.len() <= at {
            self.records.resize(at + 1, Record::default());
        }
        let epoch = self.epoch;
        let record = &mut self.records[at];
        if record.peak_epoch != epoch {
            (record.at_peak, record.peak_epoch) = (record.totals.in_use, epoch);
        }
        if !record.changed {
            record.changed = true;
            self.changed.push(stack);
        }
        record
    }

    fn both(&mut self, stack: StackId, change: impl Fn(&mut Totals)) {
        change(&mut self.record(stack).totals);
        change(&mut self.totals);
    }

    fn weight(&self, size: u64) -> Weight {
        self.interval.weight(size)
    }

    /// A birth; `None` if there is such an object already.
    pub fn alloc(&mut self, at: Moment, b: &Born) -> Option<Event> {
        let living =
            Living { block: BlockId(at.seq), stack: b.stack, size: b.size, young: b.young };
        if self.living.contains_key(&b.id) {
            self.strange += 1;
            return None;
        }
        self.living.insert(b.id, living);
        let weight = self.weight(b.size);
        self.both(b.stack, |totals| {
            totals.allocated.add(&weight);
            totals.in_use.add(&weight);
        });
        self.samples = self.samples.saturating_add(b.n_samples);
        if self.totals.in_use.bytes.sum > self.peak.bytes.sum {
            self.epoch += 1;
            (self.peak, self.peak_ns) = (self.totals.in_use, at.time_ns);
        }
        Some(Event::Alloc(Alloc {
            at,
            thread: b.thread,
            stack: b.stack,
            size: b.size,
            n_samples: b.n_samples,
            interval: self.interval,
            cause: Cause::Malloc,
            // A moving collector has none.
            address: 0,
            young: b.young,
            replaces: None,
        }))
    }

    /// A promotion; `None` if there is no such young object.
    pub fn promote(&mut self, at: Moment, id: i64) -> Option<Event> {
        let young = self.living.get_mut(&id).filter(|living| living.young);
        let Some(living) = young else {
            self.strange += 1;
            return None;
        };
        living.young = false;
        let Living { block, stack, size, .. } = *living;
        let weight = self.weight(size);
        self.both(stack, |totals| {
            totals.minor.add(&weight);
            totals.promoted.add(&weight);
        });
        Some(Event::Promote(Promote { at, id: block }))
    }

    /// A death; `None` if there is no such object.
    pub fn collect(&mut self, at: Moment, id: i64, thread: ThreadId) -> Option<Event> {
        let Some(Living { block, stack, size, young }) = self.living.remove(&id) else {
            self.strange += 1;
            return None;
        };
        let weight = self.weight(size);
        self.both(stack, |totals| {
            totals.in_use.sub(&weight);
            if young {
                totals.minor.add(&weight);
            }
        });
        Some(Event::Dealloc(Dealloc { at, id: block, thread, young }))
    }

    /// How many live.
    pub fn living(&self) -> u64 {
        self.living.len() as u64
    }

    /// Totals that have changed since they were last taken.
    pub fn take_changed(&mut self) -> Vec<StackTotals> {
        let changed = std::mem::take(&mut self.changed);
        let totals = changed.iter().filter_map(|&stack| {
            let record = self.records.get_mut(stack.0 as usize)?;
            record.changed = false;
            Some(StackTotals { stack, totals: record.totals })
        });
        totals.collect()
    }

    /// When the peak was, how much, and the table of that moment.
    pub fn peak(&self) -> (u64, Total, Vec<StackInUse>) {
        let table = (0..).zip(&self.records).map(|(stack, r)| StackInUse {
            stack: StackId(stack),
            in_use: if r.peak_epoch == self.epoch { r.at_peak } else { r.totals.in_use },
        });
        (self.peak_ns, self.peak, table.filter(|stack| stack.in_use.n > 0).collect())
    }
}
