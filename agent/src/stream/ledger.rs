//! The books: what the agent's thread makes of births and deaths.
//!
//! [`Ledger::pass`] takes what the target's threads left in the tracker, in the
//! order of their numbers, and keeps
//!
//! - **totals** by callstack and over all: in use, allocated, minor, promoted;
//! - the **peak** of the in-use estimate, with each callstack's share of it;
//! - the **history** of totals, a point a second, the resolution halved when full;
//! - the **events**, for who is attached.
//!
//! One thread writes, so nothing here is atomic. Records and history lie in the
//! engine's region, within the user's bound. What was taken is worked off in
//! passes of bounded length, so that viewers need not wait for it.
//!
//! **Promotion.** A young block is decided once: at its death, if that falls in
//! the cycle of its birth (it died young) or after (it had been promoted), or
//! when its cycle has turned while it lives. `waiting` holds the young blocks of
//! the running cycle. The clock is read after the births were taken, so none of
//! them can belong to a later cycle than the one it shows; one of an earlier cycle
//! is promoted at once, unless it is dying already: then its death decides. Blocks that died young
//! in the running cycle stay in `pending` until it ends, since rates are of
//! completed cycles only.
//!
//! **The peak's table** without copying a table at each new peak: `epoch` counts
//! peaks. A record that changes for the first time since the last one first
//! keeps what it had (`at_peak`, stamped with the epoch). A record with an older
//! stamp has not changed since, so its present value is the peak's.

use super::history::History;
use crate::engine::callstack::{self, Published};
use crate::engine::region::{Region, Zeroable};
use crate::engine::sampler::Rng;
use crate::engine::tracker::{Born, Cause, Death, Life, Returned};
use crate::engine::{Engine, sys};
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::{self, Alloc, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{FreeStack, HistoryPoint, Track};
use heaptop_protocol::totals::{Total, Totals};
use heaptop_protocol::weights::Weights;
use std::collections::VecDeque;
use std::mem::offset_of;
use std::sync::atomic::Ordering::Relaxed;

/// What is kept of a callstack.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// The engine's number.
    raw: u32,
    totals: Totals,
    /// Blocks of the running cycle that died young in it.
    pending: Total,
    at_peak: Total,
    peak_epoch: u64,
    /// The pass that changed it last.
    changed: u64,
}

// SAFETY: numbers only; zero bytes are an empty record.
unsafe impl Zeroable for Record {}

/// The layout of a record, for who holds it to what is promised of it.
pub const LAYOUT: [usize; 4] = [
    size_of::<Record>(),
    offset_of!(Record, raw),
    offset_of!(Record, totals),
    offset_of!(Record, pending),
];

/// A young block that lived at the last pass.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    index: u32,
    id: u64,
    cycle: u64,
}

/// What times are told in whole numbers of: about what it takes to take a sample.
const TICK_NS: u64 = 256;
/// Births and deaths worked off in one pass.
const MOST_A_PASS: usize = 16_384;
/// Weights that are remembered, in 28 KiB.
const WEIGHTS: usize = 512;
/// So many before its turn an entry is fetched.
const AHEAD: usize = 4;

/// See the module.
pub struct Ledger {
    engine: &'static Engine,
    records: &'static mut [Record],
    /// Records in use; `records[0]` is `(other stacks)`.
    known: usize,
    /// From the engine's stack numbers to records, plus one.
    by_raw: Vec<u32>,
    history: History,
    totals: Totals,
    waiting: VecDeque<Waiting>,
    /// Records with something in `pending`, and the cycle it belongs to.
    pending: Vec<u32>,
    cycle: u64,
    epoch: u64,
    peak: Total,
    peak_ns: u64,
    pass: u64,
    /// Blocks with ids below this were discarded.
    forget_before: u64,
    unplaced: u64,
    thinned: u32,
    rng: Rng,
    weights: Weights,
    arrivals: Vec<Arrival>,
    returned: Returned,
    /// [`MOST_A_PASS`]; less in tests.
    most_a_pass: usize,
    /// The first of `arrivals` that was not worked off.
    next: usize,
    /// How often the tracker's lists were taken, and were worked off.
    taken: u64,
    done: u64,
    events: Vec<Event>,
    /// Who freed what has died in the last pass, where it was wanted.
    frees: Vec<FreeStack>,
    /// Whether anybody wants them.
    listened: bool,
    /// Births and deaths of the last pass.
    worked_off: usize,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    seq: u64,
    index: u32,
    /// Or a birth.
    dead: bool,
}

impl Ledger {
    /// Empty books in `region`; `None` when it is too small.
    pub fn new(engine: &'static Engine, mut region: Region) -> Option<Self> {
        let history = History::new(&mut region)?;
        let room = region.rest_bytes().checked_sub(64)? / size_of::<Record>();
        let records: &mut [Record] = region.slice_mut(room.min(engine.callstacks.slots() + 1))?;
        records.first_mut()?.raw = callstack::OTHER;
        engine.header.records.set(&region, records);
        engine.header.known.store(1, Relaxed);
        Some(Self {
            engine,
            records,
            known: 1,
            by_raw: vec![0; engine.callstacks.slots() + 1],
            history,
            totals: Totals::default(),
            waiting: VecDeque::new(),
            pending: Vec::new(),
            cycle: 0,
            epoch: 0,
            peak: Total::default(),
            peak_ns: 0,
            pass: 0,
            forget_before: 0,
            unplaced: 0,
            thinned: 0,
            rng: Rng::seeded(engine.seed(), u32::MAX),
            weights: Weights::with_places(WEIGHTS),
            arrivals: Vec::new(),
            returned: Returned::default(),
            most_a_pass: MOST_A_PASS,
            next: 0,
            taken: 0,
            done: 0,
            events: Vec::new(),
            frees: Vec::new(),
            listened: true,
            worked_off: 0,
        })
    }

    /// In whole ticks: what is finer is noise, and would be a fifth of a recording.
    pub fn since_start(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_sub(self.engine.started_ns) & !(TICK_NS - 1)
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment {
            seq: self.engine.seq(),
            time_ns: self.since_start(sys::monotonic_ns()),
            clock: self.engine.header.clock.load(Relaxed),
        }
    }

    /// Takes up what has happened. Events of the last pass are gone.
    pub fn pass(&mut self) {
        self.pass += 1;
        self.events.clear();
        self.frees.clear();
        if !self.has_more() {
            self.take_lists();
        }
        let now = self.now();
        self.turn(self.engine.nursery.cycle(now.clock), now);
        let end = self.arrivals.len().min(self.next + self.most_a_pass);
        self.worked_off = end - self.next;
        while self.next < end {
            let Arrival { index, dead, .. } = self.arrivals[self.next];
            self.next += 1;
            // Written by other cores: this one waits for a line while it works.
            if let Some(soon) = self.arrivals.get(self.next + AHEAD) {
                self.engine.tracker.will_read(soon.index);
            }
            if dead { self.death(index) } else { self.birth(index, now) }
        }
        self.engine.tracker.give_back_all(&mut self.returned);
        if !self.has_more() {
            self.done = self.taken;
        }
        if self.waiting.len() > 1024 + 2 * self.engine.tracker.live() as usize {
            let engine = self.engine;
            self.waiting.retain(|w| engine.tracker.life(w.index, w.id) == Life::Young);
        }
    }

    /// In place of a pass: nothing is taken up. Events of the last pass are gone.
    pub fn rest(&mut self) {
        self.events.clear();
        self.frees.clear();
    }

    fn take_lists(&mut self) {
        self.arrivals.clear();
        self.next = 0;
        self.taken += 1;
        let arrived = std::cell::RefCell::new(&mut self.arrivals);
        self.engine.tracker.collect(
            |index, seq| arrived.borrow_mut().push(Arrival { seq, index, dead: false }),
            |index, seq| arrived.borrow_mut().push(Arrival { seq, index, dead: true }),
        );
        let births = self.arrivals.iter().filter(|a| !a.dead).count() as u64;
        self.engine.header.samples.fetch_add(births, Relaxed);
        // A thread's births come in order, the last one first, and so do its deaths: a sort
        // that sees that has little to do.
        self.arrivals.sort_by_key(|a| a.seq);
    }

    /// Whether something that was taken waits to be worked off.
    pub const fn has_more(&self) -> bool {
        self.next < self.arrivals.len()
    }

    /// What has happened up to now is worked off once [`Self::done`] says this.
    pub const fn up_to_now(&self) -> u64 {
        self.taken + 1
    }

    /// See [`Self::up_to_now`].
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// The minor cycle is now `cycle`: what waited for its end is decided.
    fn turn(&mut self, cycle: u64, now: Moment) {
        if cycle <= self.cycle {
            return;
        }
        self.cycle = cycle;
        self.engine.header.cycle.store(cycle, Relaxed);
        for record in std::mem::take(&mut self.pending) {
            if let Some(r) = self.records.get_mut(record as usize) {
                let died_young = std::mem::take(&mut r.pending);
                r.totals.minor.merge(&died_young);
                r.changed = self.pass;
                self.totals.minor.merge(&died_young);
            }
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|w| {
            if w.cycle >= cycle {
                return true;
            }
            self.promote(*w, now);
            false
        });
        self.waiting = waiting;
    }

    fn promote(&mut self, w: Waiting, now: Moment) {
        let Some(b) = self.engine.tracker.born(w.index) else { return };
        if !self.engine.tracker.promote(w.index, w.id) {
            return;
        }
        if w.id < self.forget_before || b.interval == 0 {
            return;
        }
        if self.is_held(&b) {
            self.engine.tracker.set_known(w.index);
        }
        self.promoted(w.index, &b, Some(now));
    }

    /// A young block has survived its cycle; `at` where that is told.
    fn promoted(&mut self, index: u32, b: &Born, at: Option<Moment>) {
        let record = self.record(b.stack);
        if self.is_held(b) {
            self.count_birth(index, b, record);
        }
        let w = self.weight(b);
        self.count_promoted(record, &w);
        if let Some(at) = at.filter(|_| self.listened) {
            self.events.push(Event::Promote(Promote { at, id: BlockId(b.id) }));
        }
    }

    fn weight(&mut self, b: &Born) -> Weight {
        *self.weights.of(interval(b.interval), b.size)
    }

    /// Whether a block is told of from its promotion on only.
    fn is_held(&self, b: &Born) -> bool {
        b.young && self.engine.track == Track::Promoted
    }

    fn count_promoted(&mut self, record: usize, w: &Weight) {
        let Some(r) = self.records.get_mut(record) else { return };
        for t in [&mut r.totals, &mut self.totals] {
            // Of what a share is unknown there is no whole.
            if self.engine.track == Track::All {
                t.minor.add(w);
            }
            t.promoted.add(w);
        }
        r.changed = self.pass;
    }

    fn birth(&mut self, index: u32, now: Moment) {
        let Some(b) = self.engine.tracker.born(index) else { return };
        let record = self.record(b.stack);
        self.unplaced += u64::from(record == 0);
        if self.is_held(&b) {
            self.engine.tracker.set_held(index);
        } else {
            self.engine.tracker.set_known(index);
            self.count_birth(index, &b, record);
        }
        if self.engine.track == Track::Allocations {
            return self.birth_alone(index, &b);
        }
        if b.young {
            let w = Waiting { index, id: b.id, cycle: self.engine.nursery.cycle(b.clock) };
            if w.cycle < self.cycle { self.promote(w, now) } else { self.waiting.push_back(w) }
        }
    }

    /// Nothing more is wanted of a block than that it was born.
    fn birth_alone(&mut self, index: u32, b: &Born) {
        // Before it is given back.
        let told = if self.listened { self.engine.tracker.birth_of(index) } else { None };
        // If it is being freed its death comes, and finds it without samples.
        self.engine.tracker.unsample(index);
        if !self.engine.drop_block(index) {
            self.engine.tracker.forget(index);
        }
        if let Some(told) = told {
            let at = Moment { seq: b.id, time_ns: self.since_start(told.ns), clock: b.clock };
            let (id, thread, young) = (BlockId(b.id), ThreadId(told.thread), b.young);
            self.events.push(Event::Dealloc(Dealloc { at, id, thread, young }));
        }
    }

    fn count_birth(&mut self, index: u32, b: &Born, record: usize) {
        let w = self.weight(b);
        self.before_change(record);
        let Some(r) = self.records.get_mut(record) else { return };
        let (lives, tracks) = (self.engine.track != Track::Allocations, self.engine.track);
        for t in [&mut r.totals, &mut self.totals] {
            if tracks != Track::Promoted {
                t.allocated.add(&w);
            }
            if lives {
                t.in_use.add(&w);
            }
        }
        r.changed = self.pass;
        if self.listened {
            self.tell_birth(index, record);
        }
        if self.totals.in_use.bytes.sum > self.peak.bytes.sum {
            self.epoch += 1;
            self.peak = self.totals.in_use;
            self.peak_ns = self.since_start(self.engine.tracker.born_ns(index));
        }
    }

    fn tell_birth(&mut self, index: u32, record: usize) {
        let Some(b) = self.engine.tracker.birth_of(index) else { return };
        let at = Moment { seq: b.id, time_ns: self.since_start(b.ns), clock: b.clock };
        self.events.push(Event::Alloc(Alloc {
            at,
            thread: ThreadId(b.thread),
            stack: StackId(record as u32),
            size: b.size,
            n_samples: b.n_samples,
            interval: interval(b.interval),
            cause: cause(b.cause),
            address: b.address as u64,
            young: b.young,
            replaces: (b.replaces != 0).then_some(BlockId(b.replaces)),
        }));
    }

    fn death(&mut self, index: u32) {
        let Some(b) = self.engine.tracker.born(index) else { return };
        self.bury(index, &b);
        // From here on it is somebody else's.
        self.engine.release(index, &b, &mut self.returned);
    }

    fn bury(&mut self, index: u32, b: &Born) {
        // One without samples was thinned out of the books, and a profile had it still.
        if b.id < self.forget_before || b.interval == 0 {
            return;
        }
        let (tracker, nursery) = (&self.engine.tracker, self.engine.nursery);
        let was_major = tracker.died_major(index);
        let born_in = nursery.cycle(b.clock);
        let survived = was_major || nursery.cycle(tracker.died_clock(index)) > born_in;
        if !survived && self.is_held(b) {
            return;
        }
        let told = if self.listened { tracker.death_of(index) } else { None };
        let record = self.record(b.stack);
        if let Some(raw) = told.and_then(|d| d.stack) {
            let stack = StackId(self.record(raw) as u32);
            self.frees.push(FreeStack { id: BlockId(b.id), stack });
        }
        let w = self.weight(b);
        let moment =
            |d: Death| Moment { seq: d.seq, time_ns: self.since_start(d.ns), clock: d.clock };
        let at = told.map(moment);
        let mut young = false;
        if !was_major {
            if survived {
                self.promoted(index, b, at);
            } else {
                young = true;
                if let Some(r) = self.records.get_mut(record) {
                    if born_in < self.cycle {
                        r.totals.minor.add(&w);
                        self.totals.minor.add(&w);
                    } else {
                        if r.pending.n == 0 {
                            self.pending.push(record as u32);
                        }
                        r.pending.add(&w);
                    }
                }
            }
        }
        self.before_change(record);
        if let Some(r) = self.records.get_mut(record) {
            r.totals.in_use.sub(&w);
            self.totals.in_use.sub(&w);
            r.changed = self.pass;
        }
        if let (Some(d), Some(at)) = (told, at) {
            let (id, thread) = (BlockId(b.id), ThreadId(d.thread));
            self.events.push(Event::Dealloc(Dealloc { at, id, thread, young }));
        }
    }

    /// Keeps the peak's share of a record that is about to change.
    fn before_change(&mut self, record: usize) {
        if let Some(r) = self.records.get_mut(record)
            && r.peak_epoch != self.epoch
        {
            r.at_peak = r.totals.in_use;
            r.peak_epoch = self.epoch;
        }
    }

    /// The record of the engine's stack `raw`; a new one where it has none.
    fn record(&mut self, raw: u32) -> usize {
        let Some(&known) = self.by_raw.get(raw as usize) else { return 0 };
        if known != 0 {
            return known as usize - 1;
        }
        let record =
            if self.known < self.records.len() && self.is_published(raw) { self.known } else { 0 };
        if record != 0 {
            self.known += 1;
            self.records[record].raw = raw;
            self.engine.header.known.store(self.known as u64, Relaxed);
        }
        self.by_raw[raw as usize] = record as u32 + 1;
        record
    }

    /// Whether the frames of a stack are there. The thread that interned it may
    /// be a few instructions from publishing them.
    fn is_published(&self, raw: u32) -> bool {
        for _ in 0..1000 {
            match self.engine.callstacks.read(raw) {
                Published::Whole { .. } => return true,
                Published::NoRoom => return false,
                Published::NotYet => std::thread::yield_now(),
            }
        }
        false
    }

    /// Starts anew: all blocks so far are forgotten.
    pub fn discard(&mut self) {
        let now = self.up_to_now();
        while self.done < now {
            self.pass();
        }
        self.forget_before = self.engine.seq();
        self.engine.header.forget_before.store(self.forget_before, Relaxed);
        for r in self.records.iter_mut().take(self.known) {
            *r = Record { raw: r.raw, changed: self.pass, peak_epoch: 0, ..Record::default() };
        }
        self.pending.clear();
        self.waiting.clear();
        self.totals = Totals::default();
        (self.epoch, self.peak, self.peak_ns) = (0, Total::default(), 0);
        self.history.clear();
    }

    /// Adds a point to the history if one is due, and gives it.
    pub fn tick(&mut self, rss_bytes: Option<u64>) -> Option<HistoryPoint> {
        let time_ns = self.now().time_ns;
        self.history.tick(time_ns, &self.totals, rss_bytes)
    }
}

fn interval(bytes: u32) -> Interval {
    Interval::new(u64::from(bytes)).unwrap_or(Interval::DEFAULT)
}

const fn cause(cause: Cause) -> event::Cause {
    match cause {
        Cause::Malloc | Cause::External => event::Cause::Malloc,
        Cause::Calloc => event::Cause::Calloc,
        Cause::Realloc => event::Cause::Realloc,
        Cause::Aligned => event::Cause::Aligned,
    }
}

mod thin;
mod told;

#[cfg(test)]
mod tests;
