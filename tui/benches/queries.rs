//! What the viewer costs: `cargo bench -p heaptop --bench queries`.
//!
//! Targets of 500 to 100,000 callstacks of 30 frames, a callsite for every ten of
//! them (or one for each, or for all), with names. Their blocks live from microseconds to the whole half minute
//! that they are watched for; in that time the totals of a tenth of all callstacks
//! change twice a second. Every figure is the median of several runs. Nothing is
//! asserted: machines differ.

use heaptop::app::{App, Message, Options};
use heaptop::query::{
    self, Callsites, Column, Direction, Grouping, Metric, NodeKey, Question, When,
};
use heaptop::session::names::{Named, Symbol};
use heaptop::session::{Input, Session};
use heaptop::view;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment};
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, Hello, History, HistoryPoint, Losses, MAGIC, Sampling, SnapshotBegin,
    SnapshotEnd, Status, Thread, TotalsUpdate,
};
use heaptop_protocol::totals::{StackTotals, Totals};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

#[path = "queries/screens.rs"]
mod screens;

const DEPTH: u64 = 30;
/// Callstacks that end in the same callsite.
const STACKS_OF_A_SITE: u64 = 10;
const RUNS: usize = 7;
/// Callstacks that each screen is measured with.
const SIZES: [u64; 3] = [10_000, 30_000, 100_000];
/// Refreshes a second, as the terminal loop asks for them.
const REFRESHES: f64 = 4.0;

/// A target that makes itself up, with the session that hears it.
struct Target {
    session: Session,
    stacks: u64,
    random: u64,
    at: Moment,
    interval: Interval,
    living: VecDeque<(BlockId, StackId, u64)>,
    totals: Vec<Totals>,
    all: Totals,
}

impl Target {
    fn new(stacks: u64, sites: u64) -> Self {
        let mut target = Self {
            session: Session::new(),
            stacks,
            random: 0x9e37_79b9_7f4a_7c15,
            at: Moment { seq: 1, time_ns: 1_000_000_000, clock: 0 },
            interval: Interval::new(512 << 10).expect("512 KiB is an interval"),
            living: VecDeque::new(),
            totals: vec![Totals::default(); stacks as usize],
            all: Totals::default(),
        };
        target.greet();
        target.define(sites);
        let at = target.at;
        target.say(SnapshotBegin { at });
        target.say(SnapshotEnd { at, blocks: 0 });
        for _ in 0..60 {
            let events = target.events(stacks / 10);
            target.say(Batch::pack(&events));
            target.at.time_ns += 500_000_000;
            target.report(stacks / 10);
        }
        target.report(stacks);
        target
    }

    fn say(&mut self, message: impl Into<FromAgent>) {
        self.session.apply(Input::Agent(message.into()));
    }

    /// Marsaglia's xorshift: a number below `below`.
    fn roll(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    fn greet(&mut self) {
        self.say(Hello {
            magic: MAGIC,
            version: heaptop_protocol::VERSION,
            agent_version: "0.1.0".into(),
            kind: AgentKind::Linked,
            name: "made-up".into(),
            pid: 4711,
            uptime_ns: 0,
            started_unix_ns: 0,
            nursery_bytes: 2 << 20,
            phase_bytes: 0,
            max_young_bytes: 2 << 10,
            track: heaptop_protocol::message::Track::All,
            depth: 128,
            memory_bound_bytes: 64 << 20,
            notices: Vec::new(),
        });
        let (id, name) = (ThreadId(1), "made-up".into());
        self.say(Thread { id, tid: 4711, name });
        self.say(Module {
            id: ModuleId(1),
            path: "/opt/made-up/bin/made-up".into(),
            build_id: vec![1],
            load_bias: 0,
            range: (0, u64::MAX),
        });
    }

    /// Callstacks that fan out: of each depth there are more functions than of the
    /// one before.
    fn define(&mut self, sites: u64) {
        let mut frames = std::collections::BTreeSet::new();
        for id in 0..self.stacks {
            let mut path: Vec<u64> = (0..DEPTH - 1)
                .map(|depth| {
                    let function = self.roll(1 + depth * depth / 4);
                    (depth << 32) | function
                })
                .collect();
            path.push((DEPTH << 32) | (id % sites));
            frames.extend(path.iter().copied());
            let frames =
                path.into_iter().map(|offset| Frame { module: ModuleId(1), offset }).collect();
            self.say(Callstack { id: StackId(id as u32 + 1), frames, end: End::Complete });
        }
        let named = frames
            .into_iter()
            .map(|offset| {
                let (depth, function) = (offset >> 32, offset & 0xffff_ffff);
                let symbol = Symbol {
                    function: format!("made_up::depth_{depth}::Function{function}::call").into(),
                    file: Some(format!("/home/me/made-up/src/depth_{depth}.rs").into()),
                    line: Some(function as u32 + 1),
                };
                Named { frame: Frame { module: ModuleId(1), offset }, symbols: vec![symbol] }
            })
            .collect();
        self.session.apply(Input::Names(named));
    }

    /// A callstack that was not there, of functions that were.
    fn one_more(&mut self) {
        self.stacks += 1;
        let mut frames: Vec<Frame> = (0..DEPTH - 1)
            .map(|depth| {
                let function = self.roll(1 + depth * depth / 4);
                Frame { module: ModuleId(1), offset: (depth << 32) | function }
            })
            .collect();
        frames.push(Frame { module: ModuleId(1), offset: DEPTH << 32 });
        self.totals.push(Totals::default());
        self.say(Callstack { id: StackId(self.stacks as u32), frames, end: End::Complete });
    }

    /// `births` births, and about as many deaths.
    fn events(&mut self, births: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..births {
            self.at.seq += 1;
            self.at.time_ns += 1_000;
            let stack = StackId(self.roll(self.stacks) as u32 + 1);
            let size = 16 << self.roll(8);
            let alloc = Alloc {
                at: self.at,
                thread: ThreadId(1),
                stack,
                size,
                n_samples: 1,
                interval: self.interval,
                cause: Cause::Malloc,
                address: self.at.seq * 64,
                young: true,
                replaces: None,
            };
            events.push(Event::Alloc(alloc));
            let weight = self.interval.weight(size);
            self.at.clock += weight.bytes as u64;
            for totals in [&mut self.totals[stack.0 as usize - 1], &mut self.all] {
                totals.in_use.add(&weight);
                totals.allocated.add(&weight);
            }
            self.living.push_back((alloc.id(), stack, size));
            // One in eight lives on to the end.
            if self.roll(8) > 0 {
                self.at.seq += 1;
                self.at.time_ns += 1_000;
                let (id, stack, size) = if self.roll(2) == 0 {
                    self.living.pop_back().expect("one was just pushed")
                } else {
                    self.living.pop_front().expect("one was just pushed")
                };
                events.push(Event::Dealloc(Dealloc {
                    at: self.at,
                    id,
                    thread: ThreadId(1),
                    young: true,
                }));
                let weight = self.interval.weight(size);
                for totals in [&mut self.totals[stack.0 as usize - 1], &mut self.all] {
                    totals.in_use.sub(&weight);
                    totals.minor.add(&weight);
                }
            }
        }
        events
    }

    /// An update of the totals of `count` callstacks.
    fn update(&mut self, count: u64) -> TotalsUpdate {
        self.at.seq += 1;
        let first = self.roll(self.stacks);
        let step = (self.stacks / count.max(1)).max(1);
        let stacks = (0..count)
            .map(|i| (first + i * step) % self.stacks)
            .map(|i| StackTotals { stack: StackId(i as u32 + 1), totals: self.totals[i as usize] })
            .collect();
        TotalsUpdate { at: self.at, stacks }
    }

    fn report(&mut self, count: u64) {
        let update = self.update(count);
        self.say(update);
        self.say(Status {
            at: self.at,
            cycle: 0,
            sampling: Sampling::On,
            interval: self.interval,
            coarsest: self.interval,
            governed: false,
            gap: false,
            samples: self.at.seq,
            totals: self.all,
            live_blocks: self.living.len() as u64,
            rss_bytes: None,
            agent_bytes: 0,
            agent_cpu_ns: 0,
            process_cpu_ns: 0,
            losses: Losses::default(),
        });
        let point = HistoryPoint {
            time_ns: self.at.time_ns,
            in_use_bytes: self.all.in_use.bytes.sum,
            allocated_bytes: self.all.allocated.bytes.sum,
            promoted_bytes: self.all.promoted.bytes.sum,
            rss_bytes: None,
        };
        self.say(History { whole: false, points: vec![point] });
    }

    /// A quarter of a second of `samples` samples goes by.
    fn go_on(&mut self, samples: u64) {
        let events = self.events(samples);
        self.say(Batch::pack(&events));
        self.at.time_ns += 250_000_000;
        self.report(samples.min(self.stacks));
    }
}

/// The median time of `work` after `before`, which is not counted.
fn time<T>(
    target: &mut Target,
    mut before: impl FnMut(&mut Target) -> T,
    mut work: impl FnMut(&mut Target, T),
) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let given = before(target);
            let start = screens::now();
            work(target, given);
            screens::now().saturating_sub(start)
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

/// What a screen asks for.
fn ask(session: &Session, question: &Question) {
    black_box(Callsites::ask(session, question).table(0..80));
}

/// A tree as it opens by itself, or all of it.
fn tree(session: &Session, focus: &[NodeKey], direction: Direction, whole: bool) {
    let open = |branch: query::Branch| whole || branch.depth == 0 || branch.share >= 0.2;
    black_box(query::tree(session, When::Now, focus, direction, Metric::InUseBytes, "", open));
}

fn print(stacks: u64, what: &str, time: Duration) {
    println!("{stacks:>8} {what:<44} {:>10.3} ms", time.as_secs_f64() * 1e3);
}

/// Events a second on one core. Batches are as the agent's.
fn ingest(target: &mut Target) {
    const BATCH: u64 = 1_000;
    let events = 200_000;
    let ingest = time(
        target,
        |t| (0..events / BATCH).map(|_| Batch::pack(&t.events(BATCH / 2))).collect::<Vec<_>>(),
        |t, batches| {
            for batch in batches {
                t.session.apply(Input::Agent(batch.into()));
            }
        },
    );
    println!(
        "{:>8} {:<44} {:>10.0} events/s",
        target.stacks,
        "ingest",
        events as f64 * (0.5 + 0.5 * 7.0 / 8.0) / ingest.as_secs_f64()
    );
}

fn measure(stacks: u64) {
    let target = &mut Target::new(stacks, (stacks / STACKS_OF_A_SITE).max(1));
    ingest(target);
    let all = time(
        target,
        |t| {
            t.at.time_ns += 250_000_000;
            t.update(t.stacks)
        },
        |t, update| t.session.apply(Input::Agent(update.into())),
    );
    print(stacks, "totals of every callstack", all);

    let filtered = Question { filter: "function77::".into(), ..Question::default() };
    let sorted = |sort| Question { sort, ..Question::default() };
    for (what, question) in [
        ("callsites by bytes in use", sorted(Column::InUseBytes)),
        ("callsites by objects in use", sorted(Column::InUseObjects)),
        ("callsites by rate", sorted(Column::AllocatedRate)),
        ("callsites by lifetime", sorted(Column::Lifetime)),
        ("callsites by trend", sorted(Column::Trend)),
        ("callsites by name", sorted(Column::Callsite)),
        ("callsites with a filter", filtered),
    ] {
        print(stacks, what, time(target, |t| t.go_on(250), |t, ()| ask(&t.session, &question)));
    }
    for (what, group, sort) in [
        ("functions, flat and cum", Grouping::Function, Column::InUseBytes),
        ("functions by cum", Grouping::Function, Column::Cum),
        ("files", Grouping::File, Column::InUseBytes),
        ("crates and modules", Grouping::Crate, Column::InUseBytes),
        ("size classes", Grouping::Size, Column::InUseBytes),
        ("threads", Grouping::Thread, Column::InUseBytes),
    ] {
        let question = Question { group, ..sorted(sort) };
        print(stacks, what, time(target, |t| t.go_on(250), |t, ()| ask(&t.session, &question)));
    }
    let everything =
        time(target, |t| t.go_on(t.stacks), |t, ()| ask(&t.session, &Question::default()));
    print(stacks, "callsites after every callstack changed", everything);
    let whole = time(
        target,
        |t| t.go_on(250),
        |t, ()| {
            black_box(query::callsites(&t.session, &Question::default()));
        },
    );
    print(stacks, "callsites, all of the rows", whole);
    let top = Callsites::ask(&target.session, &Question::default()).table(0..1).rows[0].key;
    for (what, focus, direction, whole) in [
        ("callers of the largest callsite", &[top][..], Direction::Callers, false),
        ("callees of the largest callsite", &[top], Direction::Callees, false),
        ("tree of all callers", &[], Direction::Callers, false),
        ("tree of all callees", &[], Direction::Callees, false),
        ("tree of all callers, all open", &[], Direction::Callers, true),
        ("tree of all callees, all open", &[], Direction::Callees, true),
    ] {
        let work = |t: &mut Target, ()| tree(&t.session, focus, direction, whole);
        print(stacks, what, time(target, |t| t.go_on(250), work));
    }

    let mut app = App::new(Options::default());
    app.update(Message::Resize(160, 50), &target.session);
    let mut terminal =
        Terminal::new(TestBackend::new(160, 50)).expect("a test backend does not fail");
    let hear = time(target, |_| (), |t, ()| t.go_on(250));
    let frame = time(
        target,
        |t| t.go_on(250),
        |t, ()| {
            app.update(Message::Refresh, &t.session);
            terminal.draw(|frame| view::draw(&app, frame)).expect("a test backend does not fail");
        },
    );
    print(stacks, "callsites: ask and draw a frame of 160x50", frame);
    let drawing = time(
        target,
        |_| (),
        |_, ()| {
            terminal.draw(|frame| view::draw(&app, frame)).expect("a test backend does not fail");
        },
    );
    print(stacks, "callsites: draw alone", drawing);
    let share = (frame + hear).as_secs_f64() * REFRESHES;
    println!(
        "{stacks:>8} {:<44} {:>10.2} % of a core",
        "all of it, at 1,000 samples/s",
        share * 1e2
    );
}

/// Five million lives that are over, and what is asked about moments among them. Each
/// question is about another moment than the one before: nothing is kept of it.
fn past(stacks: u64) {
    const LIVES: usize = 5_000_000;
    let target = &mut Target::new(stacks, (stacks / STACKS_OF_A_SITE).max(1));
    let start = target.at.time_ns;
    while target.session.lives_over().len() < LIVES {
        // A second at 2,000 samples a second.
        let events = target.events(1_000);
        target.say(Batch::pack(&events));
        target.at.time_ns += 500_000_000;
        target.report(stacks.min(1_000));
    }
    let bytes = target.session.lives_over().bytes();
    println!("{stacks:>8} {:<44} {:>10.1} MB", "five million lives take", bytes as f64 / 1e6);
    let length = target.at.time_ns - start;
    let mut moment = 0;
    let mut next = |t: &Target, part: u64| {
        moment += 1_000_000;
        t.at.time_ns - length / 100 * part - moment
    };
    for (what, part) in [("near the end", 1), ("in the middle", 50), ("near the start", 99)] {
        let at = time(
            target,
            |t| next(t, part),
            |t, ns| ask(&t.session, &Question { when: When::At(ns), ..Question::default() }),
        );
        print(stacks, &format!("callsites at a moment {what}"), at);
    }
    let tree = time(
        target,
        |t| next(t, 1),
        |t, ns| {
            let open = |branch: query::Branch| branch.depth == 0 || branch.share >= 0.2;
            let (callees, metric) = (Direction::Callees, Metric::InUseBytes);
            black_box(query::tree(&t.session, When::At(ns), &[], callees, metric, "", open));
        },
    );
    print(stacks, "tree of all callees at a moment near the end", tree);
    let range = |ns: u64| When::Range { from_ns: ns.saturating_sub(length / 3), to_ns: ns };
    let over = time(
        target,
        |t| next(t, 30),
        |t, ns| ask(&t.session, &Question { when: range(ns), ..Question::default() }),
    );
    print(stacks, "callsites over a third of it", over);
    let rest = time(
        target,
        |_| (),
        |t, ()| {
            let when = When::At(start + length / 2);
            ask(&t.session, &Question { when, ..Question::default() });
        },
    );
    print(stacks, "callsites at a cursor that rests", rest);
}

fn main() {
    // A part alone: `cargo bench -p heaptop --bench queries -- past`, `present`, `ingest`, or
    // `screens`, all or by parts of their names and numbers of callstacks.
    let only = |part: &str| std::env::args().any(|argument| argument == part);
    if only("screens") {
        let (mut sizes, mut names) = (Vec::new(), Vec::new());
        let rest = std::env::args().skip_while(|argument| argument != "screens").skip(1);
        for argument in rest.filter(|argument| !argument.starts_with("--")) {
            match argument.parse() {
                Ok(size) => sizes.push(size),
                Err(_) => names.push(argument),
            }
        }
        if sizes.is_empty() {
            sizes = SIZES.to_vec();
        }
        screens::measure(&sizes, &names);
        return;
    }
    if only("ingest") {
        for stacks in [1_000, 10_000, 30_000, 100_000] {
            ingest(&mut Target::new(stacks, stacks / STACKS_OF_A_SITE));
        }
        return;
    }
    if !only("present") {
        past(1_000);
        past(100_000);
    }
    if only("past") {
        return;
    }
    for stacks in [500, 1_000, 10_000, 100_000] {
        measure(stacks);
    }
    screens::measure(&SIZES, &[]);
    let stacks = 100_000;
    for (sites, what) in
        [(1, "callsites, when there is one"), (stacks, "callsites, one for each callstack")]
    {
        let target = &mut Target::new(stacks, sites);
        let question = Question::default();
        print(stacks, what, time(target, |t| t.go_on(250), |t, ()| ask(&t.session, &question)));
    }
}
