//! The model of one target.
//!
//! [`Session::apply`] is its only mutation. It knows no clock: time is what the
//! messages say. It does no IO and draws nothing.
//!
//! ```text
//! Input ─► Session ─┬─ book       names, callstacks, groups by callsite with their sums
//!                   ├─ numbers    per callstack: totals, changes, lifetimes
//!                   ├─ blocks     the living, by id
//!                   ├─ lives      those that are over: what looks back needs them
//!                   ├─ course     status over time: rates, costs, history, peak
//!                   ├─ strata     the largest callsites over time
//!                   └─ then       numbers of another moment, when somebody asks
//!                        ▲
//!                      query      (rows and trees; intervals from `estimate`)
//! ```
//!
//! **What is believed.** The agent's totals are absolute and win; events feed
//! lifetimes and the living blocks alone. So what events are lost changes no
//! total. A new greeting begins the model anew: the agent holds the totals and
//! the curve since its start and sends them again.
//!
//! **What is bounded.** Callstacks, their frames, blocks, notices and points of
//! the curve; what finds no room is counted. Everything from the peer passes
//! [`sane`] before it is kept.

pub mod blocks;
pub mod book;
pub mod callsite;
mod classes;
mod clock;
pub mod course;
mod damage;
pub mod estimate;
pub mod figures;
#[cfg(test)]
pub(crate) mod fixture;
pub mod frees;
pub mod groups;
mod highest;
mod known;
pub mod lifetimes;
pub mod lives;
pub mod log;
pub mod minor;
pub mod names;
mod numbers;
pub mod partition;
pub mod past;
pub mod phases;
pub mod reallocs;
mod recent;
pub mod sane;
mod search;
pub mod strata;
pub mod then;
pub mod when;
pub mod window;

#[cfg(test)]
mod tests;

use blocks::{Blocks, Shown};
use book::Book;
use clock::Clock;
use course::Course;
pub use damage::{Damage, Missing};
use figures::Estimate;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::event::{Event, Moment};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{
    Context, FromAgent, Hello, LiveBlock, Mark, Phase, SnapshotBlocks, SnapshotEnd, Status, Thread,
    TotalsUpdate,
};
use heaptop_protocol::totals::{StackInUse, StackTotals, Total, Totals};
use lifetimes::Lifetimes;
use lives::{End, Life, Lives};
pub(crate) use numbers::{Everything, Numbers};
use rustc_hash::FxHashMap;
use then::standing::One;

/// Most threads whose names are kept.
const MOST_THREADS: usize = 1 << 16;
/// Most modules.
const MOST_MODULES: usize = 1 << 16;
/// Most notices and marks that are kept; older ones go.
const MOST_NOTICES: usize = 200;

/// Something that happened to the model's target.
#[derive(Debug, Clone, PartialEq)]
// Inputs are handed over one by one, never stored: their size costs nothing.
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// The agent says something.
    Agent(FromAgent),
    /// The agent said something that this version does not know.
    UnknownMessage,
    /// The symbol worker found names.
    Names(Vec<names::Named>),
    /// The connection's state changed.
    Connection(Connection),
    /// The file that tells all this is damaged here.
    Damage(Damage),
}

/// The state of the connection to the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Not there yet.
    Connecting,
    /// Messages come in.
    Connected,
    /// It broke, and may come back: a sentence.
    Lost(String),
    /// The target ended: a sentence.
    Ended(String),
}

/// What had happened when the viewer came: all that happened since is added to it.
#[derive(Debug)]
pub(crate) struct Base {
    /// When the first snapshot ended.
    at: Moment,
    /// By callstack, of those that have any.
    totals: Vec<(u32, Totals)>,
    /// Of all together.
    whole: Totals,
}

/// The highest moment of the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakView {
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// Bytes in use then.
    pub in_use: Estimate,
}

/// The model of one target.
#[derive(Debug)]
pub struct Session {
    revision: u64,
    connection: Connection,
    hello: Option<Hello>,
    stopped: Option<String>,
    notices: Vec<String>,
    log: log::Log,
    threads: FxHashMap<ThreadId, Thread>,
    threads_renamed: u64,
    /// What filters mean.
    pub(crate) filters: crate::query::filter::Kept,
    /// What flamegraphs are made of.
    pub(crate) prefixes: crate::query::prefixes::Kept,
    marks: Vec<Mark>,
    phases: Vec<Phase>,
    context: Option<Context>,
    book: Book,
    numbers: Vec<Numbers>,
    everything: Everything,
    blocks: Blocks,
    lives: Lives,
    course: Course,
    /// Whether a snapshot ended: all callstacks are known since.
    synced: bool,
    /// Latest time of any message, in nanoseconds since the agent's start.
    now_ns: u64,
    /// Latest G of any event or status.
    now_clock: u64,
    /// Time of the last event before events were lost; `None` if none were.
    blind_from_ns: Option<u64>,
    /// G at that time.
    blind_from_clock: u64,
    /// From when to when events were lost: from the last before to the end of the
    /// snapshot that repaired it. In order of time.
    blind: Vec<(u64, u64)>,
    clock: Clock,
    base: Option<Base>,
    /// Births since the base that were heard of.
    heard_born: Total,
    /// Most that blocks that were heard of had in use, and when.
    highest: Option<(u64, Total)>,
    then: then::Kept,
    classes: classes::Kept,
    minor: minor::Kept,
    recent: recent::Kept,
    strata: strata::Strata,
    frees: frees::Frees,
    reallocs: reallocs::Reallocs,
    dropped: u64,
    unknown: u64,
    damage: Vec<Damage>,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A model of a target of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            revision: 0,
            connection: Connection::Connecting,
            hello: None,
            stopped: None,
            notices: Vec::new(),
            log: log::Log::default(),
            threads: FxHashMap::default(),
            threads_renamed: 0,
            filters: <_>::default(),
            prefixes: <_>::default(),
            marks: Vec::new(),
            phases: Vec::new(),
            context: None,
            book: Book::default(),
            numbers: Vec::new(),
            everything: Everything::default(),
            blocks: Blocks::default(),
            lives: Lives::default(),
            course: Course::new(),
            synced: false,
            now_ns: 0,
            now_clock: 0,
            blind_from_ns: None,
            blind_from_clock: 0,
            blind: Vec::new(),
            clock: Clock::default(),
            base: None,
            heard_born: Total::default(),
            highest: None,
            then: then::Kept::default(),
            classes: classes::Kept::default(),
            minor: minor::Kept::default(),
            recent: recent::Kept::default(),
            strata: strata::Strata::default(),
            frees: frees::Frees::default(),
            reallocs: reallocs::Reallocs::default(),
            dropped: 0,
            unknown: 0,
            damage: Vec::new(),
        }
    }

    /// Takes in what happened.
    pub fn apply(&mut self, input: Input) {
        let shown = match input {
            Input::Agent(message) => self.hear(message),
            Input::UnknownMessage => {
                self.unknown += 1;
                if self.unknown == 1 {
                    let text = "the agent speaks of something that this heaptop does not know: it is newer";
                    self.say(log::Kind::Agent, text.into());
                }
                true
            }
            Input::Names(names) => self.book.rename(names.into_iter()),
            Input::Damage(damage) => {
                self.harmed(&damage);
                true
            }
            Input::Connection(connection) => {
                let clean = |s: &str| sane::text(s).into_owned();
                let before = std::mem::replace(
                    &mut self.connection,
                    match connection {
                        Connection::Lost(why) => Connection::Lost(clean(&why)),
                        Connection::Ended(how) => Connection::Ended(clean(&how)),
                        other => other,
                    },
                );
                if before != self.connection {
                    self.log_connection();
                }
                true
            }
        };
        self.revision += u64::from(shown);
    }

    /// Takes in a message; whether something shown may have changed.
    fn hear(&mut self, message: FromAgent) -> bool {
        match message {
            FromAgent::Hello(hello) => self.greet(&hello),
            FromAgent::Module(module) => {
                if self.book.modules().len() < MOST_MODULES
                    || self.book.modules().contains_key(&module.id)
                {
                    self.book.define_module(module);
                }
            }
            FromAgent::Thread(thread) => {
                if self.threads.len() < MOST_THREADS || self.threads.contains_key(&thread.id) {
                    let name = sane::text(&thread.name).into_owned();
                    let known = self.threads.insert(thread.id, Thread { name, ..thread });
                    self.threads_renamed += u64::from(known.is_some());
                }
            }
            FromAgent::Stack(stack) => {
                self.book.define_stack(&stack);
                self.fit_numbers();
            }
            FromAgent::Events(batch) => {
                for event in batch.iter() {
                    self.event(&event);
                }
                return false;
            }
            FromAgent::Totals(update) => self.count(&update),
            FromAgent::Status(status) => self.status_is(&status),
            FromAgent::SnapshotBegin(begin) => {
                self.see(begin.at);
                self.lives.begin(begin.at);
                self.blocks.begin(begin.at);
                return false;
            }
            FromAgent::SnapshotBlocks(listed) => {
                self.list(&listed);
                return false;
            }
            FromAgent::SnapshotEnd(end) => self.snapshot_ends(end),
            FromAgent::History(history) => self.course.history_is(history),
            FromAgent::Peak(peak) => {
                let one = |s: &StackInUse| (self.stack(s.stack), sane::total(&s.in_use));
                let table = peak.stacks.iter().map(one).collect();
                self.course.peak_is(&peak, table);
            }
            FromAgent::Dropped(dropped) => {
                self.dropped = self.dropped.saturating_add(dropped.events);
                if self.blind_from_ns.is_none() {
                    self.blind_from_ns = Some(self.now_ns);
                    self.blind_from_clock = self.now_clock;
                }
            }
            FromAgent::Stopped(stopped) => {
                let why = sane::text(&stopped.reason).into_owned();
                self.say(log::Kind::Sampling, format!("sampling stopped: {why}"));
                self.stopped = Some(why);
            }
            // It is the link's, which reads it when the target is dead.
            FromAgent::Memory(_) => return false,
            FromAgent::Mark(mark) => {
                let label = sane::text(&mark.label).into_owned();
                if self.marks.len() >= MOST_NOTICES {
                    self.marks.remove(0);
                }
                // Some are older than this viewer.
                self.log.add(mark.at.time_ns, log::Kind::Moment, format!("mark “{label}”"));
                self.marks.push(Mark { label, ..mark });
            }
            FromAgent::Phase(phase) => self.phase_is(&phase),
            FromAgent::FreeStacks(told) => self.freed_by(&told),
            FromAgent::Context(context) => {
                let label = sane::text(&context.label).into_owned();
                self.context = Some(Context { label, ..context }).filter(|c| !c.label.is_empty());
            }
        }
        true
    }

    fn greet(&mut self, hello: &Hello) {
        let clean = |s: &str| sane::text(s).into_owned();
        *self = Self {
            revision: self.revision,
            connection: self.connection.clone(),
            log: std::mem::take(&mut self.log),
            damage: std::mem::take(&mut self.damage),
            notices: {
                let own = hello.notices.iter().take(MOST_NOTICES).map(|n| clean(n));
                own.chain(known::tracks_less(hello.track).map(str::to_owned)).collect()
            },
            hello: Some(Hello {
                agent_version: clean(&hello.agent_version),
                name: clean(names::of_program(&hello.name)),
                notices: Vec::new(),
                ..hello.clone()
            }),
            ..Self::new()
        };
        self.log_greeting();
    }

    fn see(&mut self, at: Moment) {
        self.now_ns = self.now_ns.max(at.time_ns);
        self.now_clock = self.now_clock.max(at.clock);
        self.clock.see(at.time_ns, at.clock);
    }

    fn fit_numbers(&mut self) {
        self.numbers.resize_with(self.book.stacks().len(), Numbers::default);
    }

    fn stack(&mut self, id: StackId) -> u32 {
        let at = self.book.stack(id);
        self.fit_numbers();
        at
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Alloc(e) => {
                let stack = self.stack(e.stack);
                let block = LiveBlock::from(e);
                if let Some(w) = self.blocks.birth(&block, stack) {
                    self.stands(block.id, &w);
                    self.note_highest(e.at.time_ns);
                    if let Some(old) = e.replaces {
                        self.replaced(e, stack, old);
                    }
                    if self.base.is_some() {
                        self.heard_born.add(&w);
                    }
                    let w = w.objects;
                    self.live(stack, |lives| lives.enter(e.at.time_ns, e.at.time_ns, w));
                }
            }
            Event::Promote(e) => {
                if let Some(block) = self.blocks.promote(e.id) {
                    self.then.promote(e.id, block);
                }
            }
            Event::Dealloc(e) => {
                if let Some((block, weight, w)) = self.blocks.death(e.id) {
                    self.then.end(&One::of(e.id, &block, &weight), &self.lives);
                    self.reallocs.death(e.id, &block);
                    self.lives.add(&Life::freed(&block, e));
                    self.live(block.stack, |lives| lives.die(block.born_ns, e.at.time_ns, w));
                }
            }
        }
        self.see(event.at());
    }

    /// A block lives from now on, and stands for `w`.
    fn stands(&mut self, id: BlockId, w: &Weight) {
        if self.then.listens()
            && let Some(block) = self.blocks.get(id)
        {
            let one = One::of(id, block, w);
            self.then.birth(&one, &self.book, &self.lives, &self.blocks);
        }
    }

    /// Something happens to a block of callstack `stack`.
    fn live(&mut self, stack: u32, happens: impl Fn(&mut Lifetimes)) {
        happens(&mut self.numbers[stack as usize].lifetimes);
        let everything = &mut self.everything;
        happens(&mut everything.lifetimes);
        everything.events += 1;
        everything.lived.resize(self.numbers.len(), 0);
        everything.lived[stack as usize] = everything.events;
    }

    fn list(&mut self, listed: &SnapshotBlocks) {
        for block in &listed.blocks {
            let stack = self.stack(block.stack);
            if let Some(begin) = self.blocks.list(block, stack) {
                let w = block.interval.weight(block.size);
                self.stands(block.id, &w);
                if self.base.as_ref().is_some_and(|base| base.at.time_ns < block.born_ns) {
                    self.heard_born.add(&w);
                }
                let w = w.objects;
                let seen = begin.time_ns.max(block.born_ns);
                self.live(stack, |lives| lives.enter(block.born_ns, seen, w));
            }
        }
    }

    fn snapshot_ends(&mut self, end: SnapshotEnd) {
        self.see(end.at);
        self.synced = true;
        let Some(Shown { begin, gone, thinned }) = self.blocks.end(end.blocks) else { return };
        let blind_from = self.blind_from_ns.take();
        if let Some(from) = blind_from {
            let full = self.blind.len() >= MOST_NOTICES;
            match self.blind.last_mut() {
                Some((_, to)) if *to >= from || full => *to = end.at.time_ns,
                _ => self.blind.push((from, end.at.time_ns)),
            }
        }
        if self.base.is_none() {
            let totals = self.numbers.iter().map(|numbers| numbers.totals).enumerate();
            self.base = Some(Base {
                at: end.at,
                totals: totals
                    .filter(|(_, t)| t.allocated.n > 0)
                    .map(|(i, t)| (i as u32, t))
                    .collect(),
                whole: self.whole(),
            });
        }
        self.note_highest(end.at.time_ns);
        for (id, block) in gone {
            self.then.end(&One::of(id, &block, &block.weight()), &self.lives);
            let w = block.weight_as_heard();
            // Where the agent has thinned, who is gone is among those that others stand
            // for by now: it has no life of its own.
            let store = |lives: &mut Lives, ended, clock: u64, end| {
                if !thinned {
                    lives.add(&Life::ended(&block, ended, clock.max(block.born_clock), end));
                }
            };
            if let Some(from) = blind_from.filter(|_| !thinned) {
                // It died between the last event before the loss and the
                // snapshot: the middle is as good as any moment.
                let died = from.midpoint(begin.time_ns).max(block.born_ns);
                let clock = self.blind_from_clock.midpoint(begin.clock);
                store(&mut self.lives, died, clock, End::Unseen);
                self.live(block.stack, |lives| lives.die(block.born_ns, died, w));
            } else {
                store(&mut self.lives, begin.time_ns, begin.clock, End::Lost);
                self.live(block.stack, |lives| lives.lose(block.born_ns, begin.time_ns, w));
            }
        }
    }

    fn count(&mut self, update: &TotalsUpdate) {
        self.see(update.at);
        self.course.advance(update.at.time_ns);
        for StackTotals { stack, totals } in &update.stacks {
            let stack = self.stack(*stack);
            let totals = sane::totals(totals);
            let numbers = &mut self.numbers[stack as usize];
            // Before the first snapshot ends, first totals are what had happened
            // before the viewer came; later, a callstack begins with nothing.
            if numbers.counted || self.synced {
                let (rates, trends) = (self.course.rate_steps(), self.course.trend_steps());
                let before = numbers.totals.allocated;
                if before != totals.allocated {
                    numbers.allocated.record(rates, before);
                    self.everything.allocated.mark(rates, stack);
                    if let Some(born) = self.everything.born.current(rates) {
                        born.merge(&totals.allocated.since(&before));
                    }
                }
                let before = numbers.totals.promoted;
                if before != totals.promoted {
                    numbers.promoted.record(rates, before);
                    self.everything.promoted.mark(rates, stack);
                    if let Some(survived) = self.everything.survived.current(rates) {
                        survived.merge(&totals.promoted.since(&before));
                    }
                }
                let before = numbers.totals.in_use.bytes.sum;
                let grown = totals.in_use.bytes.sum - before;
                if grown != 0.0 {
                    numbers.in_use.record(trends, before);
                    self.everything.in_use.mark(trends, stack);
                    if let Some(growth) = self.everything.growth.current(trends) {
                        *growth += grown;
                    }
                }
            }
            numbers.counted = true;
            if numbers.totals != totals {
                numbers.totals = totals;
                self.book.count_anew(stack);
                self.everything.count(stack);
            }
        }
    }

    fn status_is(&mut self, status: &Status) {
        self.see(status.at);
        self.then.forget(self.now_ns);
        let before = self.course.status().copied();
        self.course.status_is(&Status { totals: sane::totals(&status.totals), ..*status });
        self.log_status(before.as_ref(), status);
        self.note_layers(status.at.time_ns);
    }
}
