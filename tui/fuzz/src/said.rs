//! From bytes to what a session hears. Ids and frames come from few, so that messages
//! belong together; numbers are any, with the worst of them near.

use heaptop::session::names::{Named, Symbol};
use heaptop::session::{Connection, Input};
use heaptop_protocol::VERSION;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::frame;
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::*;
use heaptop_protocol::totals::{Moments, StackInUse, StackTotals, Total, Totals};
use std::sync::Arc;

/// The rest of an input; zeroes when it is used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn any(&mut self) -> u64 {
        let mut word = [0; 8];
        let taken = self.take(8);
        word[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }

    /// Mostly of a life's size, sometimes anything.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => self.any(),
            n @ 128.. => u64::from(n) << (n % 48),
            n => u64::from(n),
        }
    }

    fn float(&mut self) -> f64 {
        match self.byte() {
            255 => f64::from_bits(self.any()),
            254 => f64::NAN,
            253 => f64::INFINITY,
            252 => -1.0,
            251 => f64::MAX,
            250 => f64::MIN_POSITIVE,
            n => f64::from(n) * f64::from(n) * 1000.0,
        }
    }

    pub fn text(&mut self) -> String {
        let n = self.below(24);
        String::from_utf8_lossy(self.take(n)).into_owned()
    }

    fn many<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most)).map(|_| one(self)).collect()
    }

    fn moment(&mut self) -> Moment {
        Moment { seq: self.number(), time_ns: self.time(), clock: self.number() }
    }

    /// Tenths of seconds, so that windows and steps are passed.
    pub fn time(&mut self) -> u64 {
        self.number().saturating_mul(100_000_000)
    }

    fn interval(&mut self) -> Interval {
        Interval::new(self.number()).unwrap_or(Interval::EXACT)
    }

    fn stack(&mut self) -> StackId {
        StackId(match self.byte() {
            255 => u32::MAX,
            n => u32::from(n % 12),
        })
    }

    fn thread(&mut self) -> ThreadId {
        ThreadId(self.below(4) as u32)
    }

    fn block(&mut self) -> BlockId {
        BlockId(self.number() % 64)
    }

    fn frame(&mut self) -> Frame {
        Frame { module: ModuleId(self.below(4) as u32), offset: self.below(32) as u64 }
    }

    fn cause(&mut self) -> Cause {
        [Cause::Malloc, Cause::Calloc, Cause::Realloc, Cause::Aligned][self.below(4)]
    }

    fn moments(&mut self) -> Moments {
        Moments {
            sum: self.float(),
            sum_sq: self.float(),
            variance: self.float(),
            largest: self.float(),
        }
    }

    fn total(&mut self) -> Total {
        // Most totals are sound; from some nothing follows.
        if self.flag() {
            return Total {
                n: self.number(),
                bytes: self.moments(),
                objects: self.moments(),
                smallest_size: self.number(),
                largest_size: self.number(),
            };
        }
        let mut total = Total::default();
        let interval = self.interval();
        for size in self.many(4, Self::number) {
            total.add(&interval.weight(size));
        }
        total
    }

    fn totals(&mut self) -> Totals {
        Totals {
            in_use: self.total(),
            allocated: self.total(),
            minor: self.total(),
            promoted: self.total(),
        }
    }

    fn event(&mut self) -> Event {
        let at = self.moment();
        match self.below(3) {
            0 => Event::Alloc(Alloc {
                at: Moment { seq: at.seq % 64, ..at },
                thread: self.thread(),
                stack: self.stack(),
                size: self.number(),
                n_samples: self.number(),
                interval: self.interval(),
                cause: self.cause(),
                address: self.any(),
                young: self.flag(),
                replaces: self.flag().then(|| self.block()),
            }),
            1 => Event::Promote(Promote { at, id: self.block() }),
            _ => Event::Dealloc(Dealloc {
                at,
                id: self.block(),
                thread: self.thread(),
                young: self.flag(),
            }),
        }
    }

    fn live_block(&mut self) -> LiveBlock {
        LiveBlock {
            id: self.block(),
            born_ns: self.time(),
            born_clock: self.number(),
            thread: self.thread(),
            stack: self.stack(),
            size: self.number(),
            n_samples: self.number(),
            interval: self.interval(),
            cause: self.cause(),
            address: self.any(),
            young: self.flag(),
            born_young: self.flag(),
        }
    }

    fn symbol(&mut self) -> Symbol {
        let functions = ["main", "alloc::vec::Vec<T>::push", "<a::B as c::D<E>>::f", "core::f", ""];
        let function = match self.below(8) {
            n if n < functions.len() => functions[n].to_owned(),
            _ => self.text(),
        };
        Symbol {
            function: Arc::from(function),
            file: self.flag().then(|| Arc::from(self.text())),
            line: self.flag().then(|| self.number() as u32),
        }
    }

    pub fn hello(&mut self) -> Hello {
        Hello {
            magic: MAGIC,
            version: VERSION,
            agent_version: self.text(),
            kind: AgentKind::Linked,
            name: self.text(),
            pid: self.number() as u32,
            uptime_ns: self.time(),
            started_unix_ns: self.number(),
            nursery_bytes: self.number(),
            phase_bytes: self.number(),
            max_young_bytes: self.number(),
            track: heaptop_protocol::message::Track::All,
            depth: self.number() as u32,
            memory_bound_bytes: self.number(),
            notices: self.many(4, Self::text),
        }
    }

    fn status(&mut self) -> Status {
        Status {
            at: self.moment(),
            cycle: self.number(),
            sampling: [Sampling::On, Sampling::Paused, Sampling::Stopped][self.below(3)],
            interval: self.interval(),
            coarsest: self.interval(),
            governed: self.flag(),
            gap: self.flag(),
            samples: self.number(),
            totals: self.totals(),
            live_blocks: self.number(),
            rss_bytes: self.flag().then(|| self.number()),
            agent_bytes: self.number(),
            agent_cpu_ns: self.time(),
            process_cpu_ns: self.time(),
            losses: Losses {
                births: self.number(),
                stacks: self.number(),
                unsent: self.number(),
                thinned: self.number() as u32,
            },
        }
    }

    fn message(&mut self, kind: usize) -> FromAgent {
        match kind {
            0 => self.hello().into(),
            1 => Module {
                id: ModuleId(self.below(4) as u32),
                path: self.text(),
                build_id: self.many(4, Self::byte),
                load_bias: self.any(),
                range: (self.number(), self.number()),
            }
            .into(),
            2 => Thread { id: self.thread(), tid: self.number() as u32, name: self.text() }.into(),
            3 => {
                let mut frames = self.many(12, Self::frame);
                if self.byte() == 255 {
                    // Recursion, deeper than any agent sends.
                    frames = frames.into_iter().cycle().take(3000).collect();
                }
                let end = [End::Complete, End::Truncated, End::NoUnwindInfo][self.below(3)];
                Callstack { id: self.stack(), frames, end }.into()
            }
            4 => Batch::pack(&self.many(16, Self::event)).into(),
            5 => TotalsUpdate {
                at: self.moment(),
                stacks: self.many(6, |b| StackTotals { stack: b.stack(), totals: b.totals() }),
            }
            .into(),
            6 => self.status().into(),
            7 => SnapshotBegin { at: self.moment() }.into(),
            8 => SnapshotBlocks { blocks: self.many(6, Self::live_block) }.into(),
            9 => SnapshotEnd { at: self.moment(), blocks: self.number() }.into(),
            10 => History {
                whole: self.flag(),
                points: self.many(6, |b| HistoryPoint {
                    time_ns: b.time(),
                    in_use_bytes: b.float(),
                    allocated_bytes: b.float(),
                    promoted_bytes: b.float(),
                    rss_bytes: b.flag().then(|| b.number()),
                }),
            }
            .into(),
            11 => Peak {
                time_ns: self.time(),
                in_use: self.total(),
                stacks: self.many(4, |b| StackInUse { stack: b.stack(), in_use: b.total() }),
                more: self.flag(),
            }
            .into(),
            12 => Dropped { events: self.number() }.into(),
            13 => Stopped { reason: self.text() }.into(),
            14 => Mark { at: self.moment(), label: self.text() }.into(),
            15 => Phase { at: self.moment(), name: self.text() }.into(),
            16 => Context { at: self.moment(), label: self.text() }.into(),
            _ => FreeStacks {
                frees: self.many(6, |b| FreeStack { id: b.block(), stack: b.stack() }),
            }
            .into(),
        }
    }

    /// A payload as it may lie on the wire.
    fn raw(&mut self) -> Option<FromAgent> {
        let kind = 1 + self.below(19) as u16;
        let length = self.byte().into();
        FromAgent::read(&frame::Frame { kind, payload: self.take(length) }).ok()?
    }

    /// What the session hears next.
    pub fn input(&mut self) -> Option<Input> {
        Some(match self.below(23) {
            kind @ 0..18 => Input::Agent(self.message(kind)),
            18 | 19 => Input::Names(
                self.many(6, |b| Named { frame: b.frame(), symbols: b.many(4, Self::symbol) }),
            ),
            20 => Input::Connection(match self.below(4) {
                0 => Connection::Connecting,
                1 => Connection::Connected,
                2 => Connection::Lost(self.text()),
                _ => Connection::Ended(self.text()),
            }),
            21 => Input::UnknownMessage,
            _ => Input::Agent(self.raw()?),
        })
    }
}
