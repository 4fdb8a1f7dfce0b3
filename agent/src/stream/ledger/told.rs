//! What the books say to those who ask: totals, what has changed, the peak, single blocks.

use super::{Arrival, Ledger, Record, WEIGHTS, Waiting, cause, interval};
use crate::engine::callstack;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::Event;
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{FreeStack, HistoryPoint, LiveBlock};
use heaptop_protocol::totals::{StackInUse, StackTotals, Total, Totals};

impl Ledger {
    /// The curve so far.
    pub fn history(&self) -> Vec<HistoryPoint> {
        self.history.points()
    }

    /// Whether anybody wants the events of the passes to come: where nobody does, none
    /// are made.
    pub const fn listen(&mut self, listened: bool) {
        self.listened = listened;
    }

    /// Births and deaths that the last pass has worked off.
    pub const fn worked_off(&self) -> usize {
        self.worked_off
    }

    /// Events of the last pass, if they were wanted.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Who freed what has died in the last pass, where it was wanted.
    pub fn frees(&self) -> &[FreeStack] {
        &self.frees
    }

    /// Stacks known, `(other stacks)` among them.
    pub const fn known(&self) -> usize {
        self.known
    }

    /// The engine's number of a stack.
    pub fn raw(&self, stack: StackId) -> u32 {
        self.records.get(stack.0 as usize).map_or(callstack::OTHER, |r| r.raw)
    }

    /// Totals over all.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The running minor cycle.
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The number of this pass.
    pub const fn pass_number(&self) -> u64 {
        self.pass
    }

    /// Births that were charged to `(other stacks)`.
    pub const fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// How often R was doubled to make room.
    pub const fn thinned(&self) -> u32 {
        self.thinned
    }

    /// Records that a pass after `pass` has changed.
    pub fn changed_since(&self, pass: u64) -> impl Iterator<Item = StackTotals> + '_ {
        self.records
            .iter()
            .take(self.known)
            .enumerate()
            .filter(move |(_, r)| r.changed > pass)
            .map(|(i, r)| StackTotals { stack: StackId(i as u32), totals: r.totals })
    }

    /// When the peak was, how much, and the table of that moment.
    pub fn peak(&self) -> (u64, Total, Vec<StackInUse>) {
        let table = self
            .records
            .iter()
            .take(self.known)
            .enumerate()
            .map(|(i, r)| StackInUse {
                stack: StackId(i as u32),
                in_use: if r.peak_epoch == self.epoch { r.at_peak } else { r.totals.in_use },
            })
            .filter(|s| s.in_use.n > 0)
            .collect();
        (self.peak_ns, self.peak, table)
    }

    /// Changes whenever there is a new peak.
    pub const fn peak_epoch(&self) -> u64 {
        self.epoch
    }

    /// The live block in entry `index`, if there is one that was taken up.
    pub fn block(&self, index: u32) -> Option<LiveBlock> {
        let (b, young) = self.engine.tracker.known_live(index)?;
        if b.id < self.forget_before {
            return None;
        }
        let record = self.by_raw.get(b.stack as usize)?.checked_sub(1)?;
        Some(LiveBlock {
            id: BlockId(b.id),
            born_ns: self.since_start(b.ns),
            born_clock: b.clock,
            thread: ThreadId(b.thread),
            stack: StackId(record),
            size: b.size,
            n_samples: b.n_samples,
            interval: interval(b.interval),
            cause: cause(b.cause),
            address: b.address as u64,
            young,
            born_young: b.young,
        })
    }

    /// Memory of the region that the books have touched, in bytes.
    pub fn bytes_touched(&self) -> usize {
        self.known * size_of::<Record>()
            + self.history.bytes_touched()
            + self.by_raw.len() * size_of::<u32>()
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.events.capacity() * size_of::<Event>()
            + self.frees.capacity() * size_of::<FreeStack>()
            + self.arrivals.capacity() * size_of::<Arrival>()
            + WEIGHTS * size_of::<(Interval, Weight)>()
    }
}
