//! What the memory says is put together: books that lack nothing, the living, and the
//! events that were never sent.

use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{
    FromAgent, History, HistoryPoint, LiveBlock, SnapshotBegin, SnapshotBlocks, SnapshotEnd,
    TotalsUpdate, Track,
};
use heaptop_protocol::remains::{Entry, Header, Record, entry, word};
use heaptop_protocol::totals::{StackTotals, Total, Totals};
use rustc_hash::FxHashMap;

use super::Known;
use crate::session::sane;

/// Elements of one message.
const CHUNK: usize = 1000;
/// Callstacks beyond the records: blocks of no more new ones are told apart.
const MOST_NEW_STACKS: usize = 100_000;

/// What is put together while the memory is read.
pub(super) struct Left<'a> {
    known: &'a Known,
    records: Vec<Record>,
    /// From places to callstacks.
    stacks: FxHashMap<u32, u32>,
    /// Records that were read; behind them lie those of callstacks that had none yet.
    read: usize,
    living: Vec<LiveBlock>,
    events: Vec<Event>,
    started_ns: u64,
    end: Moment,
    /// Minor cycles that have ended by then, and when the books were last done.
    cycle: u64,
    booked_cycle: u64,
    forget_before: u64,
    samples: u64,
    lost: u64,
}

impl<'a> Left<'a> {
    /// Nothing yet, of a target that was known so.
    pub fn new(known: &'a Known, header: &Header) -> Self {
        let clock = header.word(word::CLOCK);
        Self {
            known,
            records: Vec::new(),
            stacks: FxHashMap::default(),
            read: 0,
            living: Vec::new(),
            events: Vec::new(),
            started_ns: header.word(word::STARTED_NS),
            end: Moment {
                seq: header.word(word::SEQ),
                time_ns: known.status.map_or(0, |status| status.at.time_ns),
                clock,
            },
            cycle: known.cycle(clock),
            booked_cycle: header.word(word::CYCLE),
            forget_before: header.word(word::FORGET_BEFORE),
            samples: header.word(word::SAMPLES),
            lost: header.word(word::LOST),
        }
    }

    /// Takes up a record.
    pub fn record(&mut self, r: &Record) {
        let (totals, pending) = (sane::totals(&r.totals), sane::total(&r.pending));
        self.records.push(Record { totals, pending, ..*r });
    }

    /// How many callstacks there are.
    pub fn stacks(&self) -> u32 {
        self.records.len() as u32
    }

    /// The records are read: which callstack is whose, and blocks that died young in a
    /// cycle which has ended count as such.
    pub fn index(&mut self) {
        self.read = self.records.len();
        for (id, r) in self.records.iter_mut().enumerate() {
            self.stacks.entry(r.place).or_insert(id as u32);
            if self.cycle > self.booked_cycle {
                r.totals.minor.merge(&r.pending);
            }
        }
    }

    /// The place of a callstack's frames.
    pub fn place(&self, stack: u32) -> u32 {
        self.records.get(stack as usize).map_or(0, |r| r.place)
    }

    fn stack(&mut self, place: u32) -> u32 {
        if let Some(&known) = self.stacks.get(&place) {
            return known;
        }
        if place == 0 || self.records.len() >= self.read + MOST_NEW_STACKS {
            return 0;
        }
        let stack = self.records.len() as u32;
        self.records.push(Record { place, totals: Totals::default(), pending: Total::default() });
        self.stacks.insert(place, stack);
        stack
    }

    /// Takes up a tracked block: into the living, the events, and the totals.
    pub fn take(&mut self, e: Entry<'_>) {
        // A block without samples is a profile's of the program's own, or was thinned out.
        if e.number() < self.forget_before || e.u64(entry::SAMPLES) == 0 {
            return;
        }
        let stack = self.stack(e.u32(entry::STACK));
        let since_start = |ns: u64| ns.saturating_sub(self.started_ns);
        let flags = e.u32(entry::FLAGS);
        let block = LiveBlock {
            id: BlockId(e.number()),
            born_ns: since_start(e.u64(entry::BORN_NS)),
            born_clock: e.u64(entry::BORN_CLOCK),
            thread: ThreadId(e.u32(entry::THREAD)),
            stack: StackId(stack),
            size: e.u64(entry::SIZE),
            n_samples: e.u64(entry::SAMPLES),
            interval: e.interval(),
            cause: match flags & 0xff {
                // 4 is memory outside the heap.
                0 | 4 => Cause::Malloc,
                1 => Cause::Calloc,
                2 => Cause::Realloc,
                _ => Cause::Aligned,
            },
            address: e.u64(entry::ADDRESS),
            young: e.state() == entry::LIVES_YOUNG,
            born_young: flags & entry::YOUNG != 0,
        };
        let (booked, was_major) = (e.is_booked(), flags & entry::WAS_MAJOR != 0);
        let died = (e.state() == entry::DYING).then(|| match e.u64(entry::DIED_SEQ) {
            // Its death was being written.
            0 => self.end,
            seq => Moment {
                seq,
                time_ns: since_start(e.u64(entry::DIED_NS)),
                clock: e.u64(entry::DIED_CLOCK),
            },
        });
        let track = self.known.track();
        if !booked && track == Track::Promoted && !self.outlived(&block, died, was_major) {
            return;
        }
        let died_young = self.count(&block, booked, died, was_major);
        for ns in [block.born_ns].into_iter().chain(died.map(|at| at.time_ns)) {
            self.end.time_ns = self.end.time_ns.max(ns);
        }
        if !booked {
            self.events.push(Event::Alloc(birth(&block, e.u64(entry::REPLACES))));
        }
        // Nothing more is wanted of it than that it was born.
        let born = Moment { seq: block.id.0, time_ns: block.born_ns, clock: block.born_clock };
        match if track == Track::Allocations { Some(born) } else { died } {
            Some(at) => self.events.push(Event::Dealloc(Dealloc {
                at,
                id: block.id,
                thread: ThreadId(e.u32(entry::DIED_THREAD)),
                young: died_young,
            })),
            None => self.living.push(block),
        }
    }

    /// Whether the nursery's cycle that a block was born in ended while it lived, or it was
    /// born major.
    fn outlived(&self, b: &LiveBlock, died: Option<Moment>, was_major: bool) -> bool {
        Self::decided(b, died, was_major) || self.ended_in(died) > self.known.cycle(b.born_clock)
    }

    /// The same, as far as the books know it.
    const fn decided(b: &LiveBlock, died: Option<Moment>, was_major: bool) -> bool {
        !b.born_young || was_major || died.is_none() && !b.young
    }

    /// The cycle of a block's end, or of the target's.
    fn ended_in(&self, died: Option<Moment>) -> u64 {
        died.map_or(self.cycle, |at| self.known.cycle(at.clock))
    }

    /// Puts the totals right for a block whose birth the books have (`booked`) or lack,
    /// and whose death, if it is dead, they lack; whether it died young.
    fn count(
        &mut self,
        b: &LiveBlock,
        booked: bool,
        died: Option<Moment>,
        was_major: bool,
    ) -> bool {
        let w = b.interval.weight(b.size);
        let born_in = self.known.cycle(b.born_clock);
        let decided = Self::decided(b, died, was_major);
        let promoted = !decided && self.ended_in(died) > born_in;
        let track = self.known.track();
        let died_young = !decided && died.is_some() && !promoted;
        let Some(Record { totals, .. }) = self.records.get_mut(b.stack.0 as usize) else {
            return died_young;
        };
        if !booked && track != Track::Promoted {
            totals.allocated.add(&w);
        }
        if track == Track::Allocations {
            return died_young;
        }
        match (booked, died) {
            (false, None) => totals.in_use.add(&w),
            (true, Some(_)) => totals.in_use.sub(&w),
            _ => {}
        }
        // Where not all are tracked, of what a share is promoted is unknown.
        if track == Track::All && (promoted || died_young && self.cycle > born_in) {
            totals.minor.add(&w);
        }
        if promoted {
            totals.promoted.add(&w);
        }
        died_young
    }

    /// Tells all but the callstacks.
    pub fn finish(mut self, tell: &mut dyn FnMut(FromAgent) -> bool) {
        self.events.sort_unstable_by_key(|event| event.at().seq);
        let at = self.end;
        let stacks: Vec<StackTotals> = (0..)
            .zip(&self.records)
            .map(|(id, r)| StackTotals { stack: StackId(id), totals: r.totals })
            // Its record is there from the start, and for most targets nothing is in it.
            .filter(|s| s.stack != StackId::OTHER || s.totals != Totals::default())
            .collect();
        let mut all = Totals::default();
        for s in &stacks {
            all.merge(&s.totals);
        }
        let status = self.known.status.map(|mut status| {
            status.at = at;
            status.cycle = self.cycle;
            status.samples = self.samples;
            status.totals = all;
            status.live_blocks = self.living.len() as u64;
            status.losses.births = self.lost;
            status
        });
        let last = HistoryPoint {
            time_ns: at.time_ns,
            in_use_bytes: all.in_use.bytes.sum,
            allocated_bytes: all.allocated.bytes.sum,
            promoted_bytes: all.promoted.bytes.sum,
            // It is nobody's any more.
            rss_bytes: None,
        };
        let blocks = self.living.len() as u64;
        let events = self.events.chunks(Batch::MOST).map(|some| Batch::pack(some).into());
        let living = self.living.chunks(CHUNK);
        let living = living.map(|some| SnapshotBlocks { blocks: some.to_vec() }.into());
        let totals = stacks.chunks(CHUNK);
        let totals = totals.map(|some| TotalsUpdate { at, stacks: some.to_vec() }.into());
        let mut messages = events
            .chain([SnapshotBegin { at }.into()])
            .chain(living)
            .chain(totals)
            .chain(status.map(FromAgent::from))
            .chain([History { whole: false, points: vec![last] }.into()])
            .chain([SnapshotEnd { at, blocks }.into()]);
        // Until nobody listens.
        messages.all(tell);
    }
}

fn birth(b: &LiveBlock, replaces: u64) -> Alloc {
    Alloc {
        at: Moment { seq: b.id.0, time_ns: b.born_ns, clock: b.born_clock },
        thread: b.thread,
        stack: b.stack,
        size: b.size,
        n_samples: b.n_samples,
        interval: b.interval,
        cause: b.cause,
        address: b.address,
        young: b.born_young,
        replaces: (replaces != 0).then_some(BlockId(replaces)),
    }
}
