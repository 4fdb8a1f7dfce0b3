//! An agent made by hand: builds sessions for tests, with totals kept as the
//! agent keeps them.

use super::names::{Named, Symbol};
use super::{Connection, Input, Session};
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, Hello, History, HistoryPoint, LiveBlock, Losses, MAGIC, Peak, Sampling,
    SnapshotBegin, SnapshotBlocks, SnapshotEnd, Status, Thread, TotalsUpdate, Track,
};
use heaptop_protocol::totals::{StackInUse, StackTotals, Totals};
use std::collections::BTreeMap;

/// The hand-made agent, with the session that hears it.
pub(crate) struct Fixture {
    /// What the session under test has heard.
    pub session: Session,
    /// R.
    pub interval: Interval,
    /// The coarsest R so far, as far as it was coarser than `interval`.
    pub coarsest: Interval,
    /// Nanoseconds since the start.
    pub time_ns: u64,
    /// G.
    pub clock: u64,
    /// What was lost.
    pub losses: Losses,
    /// Whether it samples.
    pub sampling: Sampling,
    /// Which blocks it tells of, as it says.
    pub track: Track,
    /// Who allocates and frees.
    pub thread: ThreadId,
    seq: u64,
    samples: u64,
    frames: BTreeMap<String, Frame>,
    stacks: u32,
    totals: BTreeMap<StackId, Totals>,
    all: Totals,
    living: BTreeMap<BlockId, LiveBlock>,
    peak_bytes: f64,
    holds_peak: bool,
    /// What it has defined and named.
    defined: Vec<Input>,
}

/// Where the fixture's program lies.
pub(crate) const PROGRAM: &str = "/opt/orders/bin/orders";

impl Fixture {
    /// An agent of `orders-api`, greeted, its empty snapshot taken, sampling 1 in
    /// `interval` bytes, one second after its start.
    pub fn new(interval: u64) -> Self {
        let mut fixture = Self::unattached(interval);
        fixture.attach();
        fixture
    }

    /// The same, before anybody came.
    pub fn unattached(interval: u64) -> Self {
        Self {
            session: Session::new(),
            interval: Interval::new(interval).unwrap(),
            coarsest: Interval::EXACT,
            time_ns: 1_000_000_000,
            clock: 0,
            losses: Losses::default(),
            sampling: Sampling::On,
            track: Track::All,
            thread: ThreadId(1),
            seq: 0,
            samples: 0,
            frames: BTreeMap::new(),
            stacks: 0,
            totals: BTreeMap::new(),
            all: Totals::default(),
            living: BTreeMap::new(),
            peak_bytes: 0.0,
            holds_peak: false,
            defined: Vec::new(),
        }
    }

    /// Comes: what happened until then is known by its totals, and by who lives.
    pub fn attach(&mut self) {
        self.session = Session::new();
        self.session.apply(Input::Connection(Connection::Connected));
        self.say(self.hello());
        self.say(Module {
            id: ModuleId(1),
            path: PROGRAM.into(),
            build_id: vec![1, 2, 3],
            load_bias: 0,
            range: (0x1000, 0x10_0000),
        });
        self.say(Thread { id: ThreadId(1), tid: 4711, name: "orders".into() });
        for input in self.defined.clone() {
            self.session.apply(input);
        }
        self.snapshot();
        self.report();
    }

    /// Its greeting.
    pub fn hello(&self) -> Hello {
        Hello {
            magic: MAGIC,
            version: heaptop_protocol::VERSION,
            agent_version: "0.1.0".into(),
            kind: AgentKind::Linked,
            name: "orders-api".into(),
            pid: 4711,
            uptime_ns: self.time_ns,
            started_unix_ns: 1_700_000_000_000_000_000,
            nursery_bytes: 2 << 20,
            phase_bytes: 0,
            max_young_bytes: 2 << 10,
            track: self.track,
            depth: 128,
            memory_bound_bytes: 64 << 20,
            notices: Vec::new(),
        }
    }

    /// Says something to the session.
    pub fn say(&mut self, message: impl Into<FromAgent>) {
        let message = Input::Agent(message.into());
        if let Input::Agent(FromAgent::Module(_) | FromAgent::Thread(_) | FromAgent::Stack(_)) =
            message
        {
            self.defined.push(message.clone());
        }
        self.session.apply(message);
    }

    /// The present, with a sequence number of its own.
    pub fn now(&mut self) -> Moment {
        self.seq += 1;
        Moment { seq: self.seq, time_ns: self.time_ns, clock: self.clock }
    }

    /// The frame of `function`: the same for the same text.
    pub fn frame(&mut self, function: &str) -> Frame {
        let offset = 0x1000 + 16 * self.frames.len() as u64;
        *self.frames.entry(function.to_owned()).or_insert(Frame { module: ModuleId(1), offset })
    }

    /// Defines a callstack without names. `functions` only tell frames apart.
    pub fn bare_stack(&mut self, functions: &[&str]) -> StackId {
        self.stacks += 1;
        let id = StackId(self.stacks);
        let frames = functions.iter().map(|f| self.frame(f)).collect();
        self.say(Callstack { id, frames, end: End::Complete });
        id
    }

    /// Names frames by text `function` or `function@file:line`, several inlined
    /// into one joined by ` > `, outermost first.
    pub fn name(&mut self, functions: &[&str]) {
        let named: Vec<Named> = functions
            .iter()
            .map(|text| Named {
                frame: self.frame(text),
                symbols: text.split(" > ").map(symbol).collect(),
            })
            .collect();
        self.defined.push(Input::Names(named.clone()));
        self.session.apply(Input::Names(named));
    }

    /// Defines a callstack, root first, and names its frames: see [`Self::name`].
    pub fn stack(&mut self, functions: &[&str]) -> StackId {
        let id = self.bare_stack(functions);
        self.name(functions);
        id
    }

    /// A sampled block of `size` bytes is born, young if it is up to 2 KiB.
    pub fn alloc(&mut self, stack: StackId, size: u64) -> BlockId {
        let alloc = self.birth(stack, size);
        self.say(Batch::pack(&[Event::Alloc(alloc)]));
        alloc.id()
    }

    /// As [`Self::alloc`], but the session does not hear of it.
    pub fn birth(&mut self, stack: StackId, size: u64) -> Alloc {
        let alloc = Alloc {
            at: self.now(),
            thread: self.thread,
            stack,
            size,
            // Every byte is one at R = 1.
            n_samples: if self.interval == Interval::EXACT { size } else { 1 },
            interval: self.interval,
            cause: Cause::Malloc,
            address: 0x7000_0000 + self.seq * 64,
            young: size <= 2 << 10,
            replaces: None,
        };
        let weight = self.interval.weight(size);
        for totals in [self.totals.entry(stack).or_default(), &mut self.all] {
            totals.in_use.add(&weight);
            totals.allocated.add(&weight);
        }
        self.samples += 1;
        self.clock += weight.bytes as u64;
        self.living.insert(alloc.id(), LiveBlock::from(&alloc));
        alloc
    }

    /// A block grows or shrinks, in place or elsewhere: the new one.
    pub fn realloc(&mut self, id: BlockId, stack: StackId, size: u64, moved: bool) -> BlockId {
        let address = self.living.get(&id).map(|block| block.address);
        self.free(id);
        let mut alloc = self.birth(stack, size);
        (alloc.cause, alloc.replaces) = (Cause::Realloc, Some(id));
        if let Some(address) = address.filter(|_| !moved) {
            alloc.address = address;
        }
        self.living.insert(alloc.id(), LiveBlock::from(&alloc));
        self.say(Batch::pack(&[Event::Alloc(alloc)]));
        alloc.id()
    }

    /// A young block is promoted.
    pub fn promote(&mut self, id: BlockId) {
        let at = self.now();
        let Some(block) = self.living.get_mut(&id).filter(|block| block.young) else { return };
        block.young = false;
        let weight = block.interval.weight(block.size);
        for totals in [self.totals.entry(block.stack).or_default(), &mut self.all] {
            totals.minor.add(&weight);
            totals.promoted.add(&weight);
        }
        self.say(Batch::pack(&[Event::Promote(Promote { at, id })]));
    }

    /// As [`Self::promote`], but the session does not hear of it.
    pub fn promote_unheard(&mut self, id: BlockId) {
        if let Some(block) = self.living.get_mut(&id) {
            block.young = false;
        }
    }

    /// A block dies; young blocks count as dead before their cycle ended.
    pub fn free(&mut self, id: BlockId) {
        if let Some(dealloc) = self.death(id) {
            self.say(Batch::pack(&[Event::Dealloc(dealloc)]));
        }
    }

    /// As [`Self::free`], but the session does not hear of it.
    pub fn death(&mut self, id: BlockId) -> Option<Dealloc> {
        let block = self.living.remove(&id)?;
        let weight = block.interval.weight(block.size);
        for totals in [self.totals.entry(block.stack).or_default(), &mut self.all] {
            totals.in_use.sub(&weight);
            if block.young {
                totals.minor.add(&weight);
            }
        }
        Some(Dealloc { at: self.now(), id, thread: self.thread, young: block.young })
    }

    /// A thread has a name, and the number 100 more than its id.
    pub fn name_thread(&mut self, id: u32, name: &str) {
        self.say(Thread { id: ThreadId(id), tid: id + 100, name: name.into() });
    }

    /// Time goes on by so many seconds, and the agent reports.
    pub fn pass(&mut self, seconds: f64) {
        self.time_ns += (seconds * 1e9) as u64;
        self.report();
    }

    /// Time goes on in steps of half a second, with a report each.
    pub fn pass_slowly(&mut self, seconds: f64) {
        for _ in 0..(seconds * 2.0) as u64 {
            self.pass(0.5);
        }
    }

    /// All totals, a status, a point of the curve, and the peak if it is one.
    pub fn report(&mut self) {
        let at = self.now();
        let stacks =
            self.totals.iter().map(|(s, t)| StackTotals { stack: *s, totals: *t }).collect();
        self.say(TotalsUpdate { at, stacks });
        self.say(Status {
            at,
            cycle: self.clock / (2 << 20),
            sampling: self.sampling,
            interval: self.interval,
            coarsest: self.coarsest.max(self.interval),
            governed: false,
            gap: false,
            samples: self.samples,
            totals: self.all,
            live_blocks: self.living.len() as u64,
            rss_bytes: Some(100 << 20),
            agent_bytes: 3 << 20,
            agent_cpu_ns: self.time_ns / 1000,
            process_cpu_ns: self.time_ns,
            losses: self.losses,
        });
        let in_use_bytes = self.all.in_use.bytes.sum;
        let point = HistoryPoint {
            time_ns: self.time_ns,
            in_use_bytes,
            allocated_bytes: self.all.allocated.bytes.sum,
            promoted_bytes: self.all.promoted.bytes.sum,
            rss_bytes: Some(100 << 20),
        };
        self.say(History { whole: false, points: vec![point] });
        if in_use_bytes > self.peak_bytes && !self.holds_peak {
            self.peak_bytes = in_use_bytes;
            let (time_ns, in_use) = (self.time_ns, self.all.in_use);
            self.say(Peak { time_ns, in_use, stacks: Vec::new(), more: false });
        }
    }

    /// Whether it keeps peaks to itself.
    pub fn hold_peak(&mut self, holds: bool) {
        self.holds_peak = holds;
    }

    /// The living, as a snapshot lists them.
    pub fn listing(&self) -> Vec<LiveBlock> {
        self.living.values().copied().collect()
    }

    /// Says again what a new greeting makes unknown: module, callstacks, names, threads.
    pub fn define_again(&mut self) {
        for message in self.defined.clone() {
            self.session.apply(message);
        }
    }

    /// The memory bound is reached: of the living those stay that are `kept`, and all
    /// stand for as much as at R = `coarser`.
    pub fn thin(&mut self, coarser: Interval, kept: impl Fn(&LiveBlock) -> bool) {
        self.living.retain(|_, block| kept(block));
        self.coarsest = coarser;
        for block in self.living.values_mut() {
            block.interval = coarser;
        }
    }

    /// Says that this is the peak, with its table.
    pub fn say_peak(&mut self) {
        let (time_ns, in_use) = (self.time_ns, self.all.in_use);
        let table = self.totals.iter();
        let mut stacks: Vec<StackInUse> =
            table.map(|(s, t)| StackInUse { stack: *s, in_use: t.in_use }).collect();
        let rest = stacks.split_off(stacks.len() / 2);
        self.say(Peak { time_ns, in_use, stacks, more: true });
        self.say(Peak { time_ns, in_use, stacks: rest, more: false });
        self.hold_peak(true);
    }

    /// A snapshot of everything, in one go.
    pub fn snapshot(&mut self) {
        let at = self.now();
        self.say(SnapshotBegin { at });
        self.say(SnapshotBlocks { blocks: self.listing() });
        let at = self.now();
        self.say(SnapshotEnd { at, blocks: self.living.len() as u64 });
    }
}

fn symbol(text: &str) -> Symbol {
    let (function, place) = text.split_once('@').map_or((text, None), |(f, p)| (f, Some(p)));
    let (file, line) = place.and_then(|p| p.rsplit_once(':')).unzip();
    Symbol {
        function: function.into(),
        file: file.map(Into::into),
        line: line.and_then(|line| line.parse().ok()),
    }
}
