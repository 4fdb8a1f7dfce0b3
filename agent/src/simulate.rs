//! The agent without a program: for simulations that must know the truth.
//!
//! A [`Target`] holds an engine of its own and the agent's books over it; a [`Thread`]
//! is a domain that nobody runs on. They take the very paths that the hook and the
//! agent's thread take: countdown, stop, tracker, ledger. Time is what the simulation
//! says; callstacks are one, made up; nothing is allocated for anybody.
//!
//! Behind the feature `simulate`, which no program needs.

use crate::config::{Builder, Settings};
use crate::engine::domain::Domain;
use crate::engine::nursery::Nursery;
use crate::engine::tracker::{Birth, Cause};
use crate::engine::unwind::{self, Captured};
use crate::engine::{Engine, hook};
use crate::stream::ledger::Ledger;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Batch, Event, Moment, Promote};
use heaptop_protocol::ids::{ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    self, AgentKind, FromAgent, Hello, Losses, MAGIC, Sampling, SnapshotBegin, SnapshotEnd, Status,
    TotalsUpdate,
};
use std::sync::atomic::Ordering::Relaxed;

/// What a target is to be like.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Of all random numbers.
    pub seed: u64,
    /// R at the start.
    pub interval: Interval,
    /// N in bytes.
    pub nursery_bytes: u64,
    /// The largest block that is born young, in bytes.
    pub max_young_bytes: u64,
}

/// Room for ten thousand sampled blocks.
const MEMORY_BYTES: usize = 4 << 20;

/// A thread without a thread.
pub struct Thread(Domain);

impl Thread {
    /// One that has not allocated yet. It gets its number from the target that it
    /// first allocates in, and must stay with it.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(Domain::new())
    }
}

/// An agent in no program.
pub struct Target {
    engine: &'static Engine,
    ledger: Ledger,
    stack: u32,
    told: u64,
    samples: u64,
}

impl Target {
    /// Starts one; `None` where the system has no memory. It is never given back: a
    /// process makes some dozens.
    #[must_use]
    pub fn new(plan: &Plan) -> Option<Self> {
        let settings = Settings::from_builder(&Builder {
            interval_bytes: Some(u64::from(plan.interval.bytes())),
            nursery_bytes: plan.nursery_bytes,
            max_young_bytes: plan.max_young_bytes,
            memory_bytes: MEMORY_BYTES,
            seed: Some(plan.seed),
            ..Builder::DEFAULT
        });
        let engine: &'static Engine = Box::leak(Box::new(Engine::with(&settings).ok()?));
        // SAFETY: the engine is this target's own, and nobody else knows it.
        let ledger = Ledger::new(engine, unsafe { engine.take_rest() }?)?;
        let stack = engine.callstacks.intern(&Captured::of(&[1, 2], unwind::End::Complete));
        Some(Self { engine, ledger, stack, told: 0, samples: 0 })
    }

    /// The rule of young blocks.
    #[must_use]
    pub const fn nursery(&self) -> Nursery {
        self.engine.nursery
    }

    /// G as booked.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.engine.header.clock.load(Relaxed)
    }

    /// Others, unseen, allocate so many bytes.
    pub fn pass_by(&self, bytes: u64) {
        self.engine.header.clock.fetch_add(bytes, Relaxed);
    }

    /// Another R, for each thread from its next stop on.
    pub fn set_interval(&self, interval: Interval) {
        self.engine.set_rate(interval, true);
    }

    /// Thins all live blocks to `interval`, as at the memory bound, and goes on there.
    pub fn thin(&mut self, interval: Interval) {
        self.set_interval(interval);
        self.ledger.thin_to(interval);
    }

    /// `thread` allocates `size` bytes: the block's address if it is sampled.
    #[inline]
    pub fn alloc(&mut self, thread: &Thread, size: usize, time_ns: u64) -> Option<usize> {
        if !thread.0.spend(size) {
            return None;
        }
        self.stop(thread, size, time_ns)
    }

    fn stop(&mut self, thread: &Thread, size: usize, time_ns: u64) -> Option<usize> {
        let engine = self.engine;
        let (used, hit) = hook::reach(engine, &thread.0, size);
        let clock = hook::book(engine, used, size as u64);
        let hit = hit?;
        let id = engine.next_seq();
        let address = id as usize * 64;
        self.samples += 1;
        let taken_up = engine.tracker.birth(&Birth {
            id,
            address,
            size: size as u64,
            n_samples: hit.n_samples,
            ns: engine.started_ns + time_ns,
            clock,
            stack: self.stack,
            interval: hit.interval.bytes(),
            thread: thread.0.id().unwrap_or(0),
            cause: Cause::Malloc,
            young: engine.nursery.is_young(size as u64),
            replaces: 0,
        });
        taken_up.then_some(address)
    }

    /// `thread` frees a sampled block.
    pub fn free(&self, thread: &Thread, address: usize, time_ns: u64) {
        let engine = self.engine;
        if let Some(taken) = engine.tracker.take(address) {
            let ns = engine.started_ns + time_ns;
            engine.tracker.death(taken, || hook::death(engine, &thread.0, ns));
        }
    }

    /// What a viewer is told that comes at `time_ns`, before anything lives.
    #[must_use]
    pub fn greeting(&self, time_ns: u64) -> Vec<FromAgent> {
        let at = Moment { time_ns, ..self.ledger.now() };
        let nursery = self.engine.nursery;
        let frame = Frame { module: ModuleId(1), offset: 0x10 };
        vec![
            Hello {
                magic: MAGIC,
                version: heaptop_protocol::VERSION,
                agent_version: env!("CARGO_PKG_VERSION").into(),
                kind: AgentKind::Linked,
                name: "simulated".into(),
                pid: 1,
                uptime_ns: time_ns,
                started_unix_ns: 0,
                nursery_bytes: nursery.bytes,
                phase_bytes: nursery.phase_bytes,
                max_young_bytes: nursery.max_young_bytes,
                track: self.engine.track,
                depth: 128,
                memory_bound_bytes: MEMORY_BYTES as u64,
                notices: Vec::new(),
            }
            .into(),
            Module {
                id: ModuleId(1),
                path: "/simulated".into(),
                build_id: Vec::new(),
                load_bias: 0,
                range: (0, 0x1000),
            }
            .into(),
            Callstack { id: StackId(1), frames: vec![frame], end: End::Complete }.into(),
            SnapshotBegin { at }.into(),
            SnapshotEnd { at, blocks: 0 }.into(),
        ]
    }

    /// Takes up what has happened: what a viewer is told at `time_ns`.
    pub fn report(&mut self, time_ns: u64) -> Vec<FromAgent> {
        let mut events = Vec::new();
        loop {
            self.ledger.pass();
            events.extend(self.ledger.events().iter().map(|event| match *event {
                Event::Promote(Promote { at, id }) => {
                    Event::Promote(Promote { at: Moment { time_ns, ..at }, id })
                }
                other => other,
            }));
            if !self.ledger.has_more() {
                break;
            }
        }
        let at = Moment { time_ns, ..self.ledger.now() };
        let stacks = self.ledger.changed_since(self.told).collect();
        self.told = self.ledger.pass_number();
        let threads =
            self.engine.tids().zip(0..).map(|(tid, id)| {
                message::Thread { id: ThreadId(id), tid, name: String::new() }.into()
            });
        let mut messages: Vec<FromAgent> = threads.collect();
        messages.extend(events.chunks(Batch::MOST).map(|events| Batch::pack(events).into()));
        messages.push(TotalsUpdate { at, stacks }.into());
        messages.push(
            Status {
                at,
                cycle: self.ledger.cycle(),
                sampling: Sampling::On,
                interval: self.engine.interval(),
                coarsest: self.engine.coarsest(),
                governed: false,
                gap: self.engine.has_gap(),
                samples: self.samples,
                totals: *self.ledger.totals(),
                live_blocks: u64::from(self.engine.tracker.live()),
                rss_bytes: None,
                agent_bytes: 0,
                agent_cpu_ns: 0,
                process_cpu_ns: 0,
                losses: Losses { births: self.engine.tracker.lost(), ..Losses::default() },
            }
            .into(),
        );
        messages
    }

    /// Forgets all blocks: whoever lives must have been freed before.
    pub fn discard(&mut self) {
        self.ledger.discard();
        self.engine.begin_profile();
        self.told = self.ledger.pass_number();
    }
}
