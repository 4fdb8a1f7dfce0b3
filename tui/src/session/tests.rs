use super::figures::Lifetime;
use super::fixture::Fixture;
use super::*;
use crate::query::{self, Question, Row, Table};
use heaptop_protocol::callstack::{Callstack, End};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Batch, Moment};
use heaptop_protocol::message::{Dropped, Sampling, SnapshotBegin, Stopped};
use heaptop_protocol::totals::Moments;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn table(session: &Session) -> Table {
    query::callsites(session, &Question::default())
}

fn row(session: &Session, function: &str) -> Row {
    let rows = table(session).rows;
    let row = rows.iter().find(|row| &*row.label.function == function);
    row.unwrap_or_else(|| panic!("no {function} in {rows:#?}")).clone()
}

fn exact(value: f64) -> Estimate {
    Estimate::Exact { value }
}

fn living(session: &Session) -> BTreeSet<BlockId> {
    session.live_blocks().map(|(id, _)| id).collect()
}

#[test]
fn nothing_heard_is_unknown_and_not_zero() {
    let session = Session::new();
    assert_eq!(session.in_use(), Estimate::Unknown);
    assert_eq!(session.allocated_rate(), Estimate::Unknown);
    assert_eq!(session.promotion(), Ratio::Unknown);
    assert_eq!(session.samples_per_second(), None);
    assert_eq!(session.agent_cost(), None);
    assert_eq!(session.peak(), None);
    assert_eq!(session.connection(), &Connection::Connecting);
    assert_eq!(table(&session).total.in_use_bytes, Estimate::Unknown);
}

#[test]
fn the_header_is_about_the_whole_target() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    for _ in 0..20 {
        let kept = f.alloc(stack, 1000);
        let promoted = f.alloc(stack, 500);
        f.promote(promoted);
        f.free(promoted);
        let young = f.alloc(stack, 500);
        f.free(young);
        let _ = kept;
        f.pass(0.5);
    }
    let s = &f.session;
    assert_eq!(s.in_use(), exact(20_000.0));
    assert_eq!(s.allocated_rate(), exact(4_000.0));
    assert_eq!(s.samples_per_second(), Some(6.0));
    assert!((s.agent_cost().unwrap() - 0.001).abs() < 1e-9);
    let half = Ratio::Interval { value: 0.5, low: 0.5, high: 0.5, samples: 40 };
    assert_eq!(s.promotion(), half);
    assert_eq!(s.history().len(), 21);
    let peak = s.peak().unwrap();
    assert_eq!((peak.time_ns, peak.in_use), (11_000_000_000, exact(20_000.0)));
    assert_eq!(s.hello().unwrap().name, "orders-api");
    assert_eq!(s.threads()[&ThreadId(1)].name, "orders");
}

#[test]
fn rates_are_over_the_last_ten_seconds() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "burst"]);
    for _ in 0..100 {
        f.alloc(stack, 1000);
    }
    f.pass_slowly(5.0);
    // 100,000 bytes over the 5 seconds since the viewer came.
    assert_eq!(row(&f.session, "burst").figures.allocated_rate, exact(20_000.0));
    f.pass_slowly(15.0);
    assert_eq!(row(&f.session, "burst").figures.allocated_rate, exact(0.0));
    f.alloc(stack, 500);
    f.pass_slowly(2.0);
    let rate = row(&f.session, "burst").figures.allocated_rate;
    let Estimate::Exact { value } = rate else { panic!("{rate:?}") };
    assert!((45.0..=50.0).contains(&value), "500 bytes over 10 to 11 s: {value}");
}

/// What was allocated before the viewer came is in totals but in no rate.
#[test]
fn the_past_is_no_rate() {
    let mut old = Fixture::new(1);
    let stack = old.stack(&["main", "fill"]);
    old.alloc(stack, 1 << 20);
    let mut totals = Vec::new();
    let numbers = &mut totals;
    old.report();
    numbers.push(StackTotals { stack, totals: old.session.numbers()[0].totals });

    let mut session = Session::new();
    let mut tell = |message: FromAgent| session.apply(Input::Agent(message));
    let at = |seconds: u64| Moment { seq: seconds, time_ns: seconds * 1_000_000_000, clock: 0 };
    tell(old.hello().into());
    tell(Callstack { id: stack, frames: Vec::new(), end: End::Complete }.into());
    tell(SnapshotBegin { at: at(100) }.into());
    tell(TotalsUpdate { at: at(100), stacks: totals.clone() }.into());
    tell(SnapshotEnd { at: at(100), blocks: 0 }.into());
    let status = Status { at: at(100), ..*old.session.status().unwrap() };
    tell(status.into());
    tell(TotalsUpdate { at: at(105), stacks: totals }.into());
    tell(Status { at: at(105), ..status }.into());
    let figures = row(&session, "(no callstack)").figures;
    assert_eq!(figures.allocated_bytes, exact(1_048_576.0));
    assert_eq!(figures.allocated_rate, exact(0.0));
    assert_eq!(session.allocated_rate(), exact(0.0));
}

#[test]
fn paused_sampling_has_no_rate() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    f.alloc(stack, 100);
    f.pass_slowly(3.0);
    f.sampling = Sampling::Paused;
    f.pass_slowly(3.0);
    assert_eq!(f.session.allocated_rate(), Estimate::Unknown);
    assert_eq!(row(&f.session, "fill").figures.allocated_rate, Estimate::Unknown);
    assert_eq!(row(&f.session, "fill").figures.in_use_bytes, exact(100.0));
    f.sampling = Sampling::On;
    f.pass_slowly(11.0);
    assert_eq!(f.session.allocated_rate(), exact(0.0));
}

#[test]
fn the_trend_is_in_use_over_time() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    let first = f.alloc(stack, 100);
    f.pass_slowly(4.0);
    f.alloc(stack, 30);
    f.pass_slowly(4.0);
    f.free(first);
    f.pass_slowly(4.0);
    let trend = row(&f.session, "fill").figures.trend;
    assert_eq!(trend, [0.0, 100.0, 100.0, 130.0, 130.0, 30.0, 30.0, 30.0]);
    assert_eq!(table(&f.session).total.trend, trend);
    f.pass_slowly(300.0);
    let trend = row(&f.session, "fill").figures.trend;
    assert!((60..=62).contains(&trend.len()) && trend.iter().all(|v| *v == 30.0), "{trend:?}");
}

#[test]
fn lifetimes_come_from_events() {
    let mut f = Fixture::new(1);
    let short = f.stack(&["main", "parse"]);
    let long = f.stack(&["main", "cache"]);
    for _ in 0..50 {
        let id = f.alloc(short, 64);
        f.alloc(long, 64);
        f.time_ns += 2_000_000;
        f.free(id);
    }
    f.pass(60.0);
    let Lifetime::Median { ns, low_ns, high_ns, samples: 50 } =
        row(&f.session, "parse").figures.lifetime
    else {
        panic!("{:?}", row(&f.session, "parse").figures.lifetime)
    };
    assert!((1.7e6..2.3e6).contains(&ns) && low_ns <= ns && ns <= high_ns, "{ns}");
    let Lifetime::Beyond { ns, samples: 50 } = row(&f.session, "cache").figures.lifetime else {
        panic!("{:?}", row(&f.session, "cache").figures.lifetime)
    };
    assert!((ns / 60e9 - 1.0).abs() < 0.15, "{ns}");
}

#[test]
fn names_regroup_rows_and_change_no_sum() {
    let mut f = Fixture::new(1);
    let lib = "alloc::vec::Vec<T>::push";
    let a = f.bare_stack(&["main", "left", lib]);
    let b = f.bare_stack(&["main", "right", lib]);
    f.alloc(a, 10);
    f.alloc(b, 20);
    f.report();
    let before = table(&f.session);
    assert_eq!(before.rows.len(), 1, "by the innermost address");
    assert!(before.rows[0].label.function.starts_with("orders+0x"), "{:?}", before.rows[0].label);
    assert!(!before.rows[0].label.named);
    let revision = f.session.revision();
    f.name(&[lib]);
    assert!(f.session.revision() > revision);
    assert_eq!(table(&f.session).rows.len(), 2);
    f.name(&["left", "right"]);
    let after = table(&f.session);
    assert_eq!(after.total, before.total);
    assert_eq!(row(&f.session, "left").figures.in_use_bytes, exact(10.0));
    assert_eq!(row(&f.session, "right").figures.in_use_bytes, exact(20.0));
    let revision = f.session.revision();
    f.name(&["left", "right"]);
    assert_eq!(f.session.revision(), revision, "nothing new");
}

#[test]
fn inlined_functions_are_frames() {
    let mut f = Fixture::new(1);
    let frame = "outer@/x/app/src/a.rs:1 > inner@/x/app/src/b.rs:2 > alloc::vec::Vec<T>::push@/rustc/1/library/alloc/src/vec/mod.rs:3";
    let stack = f.stack(&["main", frame, "malloc"]);
    f.alloc(stack, 10);
    f.report();
    assert_eq!(&*row(&f.session, "inner").label.location, "app/src/b.rs:2");
    let path = &query::stacks(&f.session, &[], query::Metric::InUseBytes, "")[0].0;
    let names: Vec<&str> = path.iter().map(|l| &*l.function).collect();
    assert_eq!(names, ["main", "outer", "inner"]);
}

#[test]
fn stacks_without_program_code_are_said_to_be_so() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["_start", "std::rt::init", "malloc"]);
    f.alloc(stack, 1);
    f.alloc(StackId::OTHER, 2);
    f.alloc(StackId(999), 3);
    f.report();
    assert_eq!(row(&f.session, "std::rt::init (runtime)").figures.in_use_bytes, exact(1.0));
    assert_eq!(row(&f.session, "(other stacks)").figures.in_use_bytes, exact(2.0));
    assert_eq!(row(&f.session, "(undefined callstack)").figures.in_use_bytes, exact(3.0));
}

#[test]
fn frames_are_handed_out_once() {
    let mut f = Fixture::new(1);
    f.bare_stack(&["main", "a"]);
    f.bare_stack(&["main", "b"]);
    assert_eq!(f.session.take_wanted_frames().len(), 3);
    f.bare_stack(&["main", "c"]);
    assert_eq!(f.session.take_wanted_frames(), [f.frame("c")]);
    assert_eq!(f.session.take_wanted_frames(), []);
}

#[test]
fn a_new_greeting_begins_anew() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    f.alloc(stack, 10);
    f.report();
    let revision = f.session.revision();
    f.say(f.hello());
    assert!(f.session.revision() > revision);
    assert_eq!(f.session.in_use(), Estimate::Unknown);
    assert_eq!(table(&f.session).rows.len(), 0);
    assert_eq!(f.session.live_block_count(), 0);
    assert_eq!(f.session.connection(), &Connection::Connected);
}

#[test]
fn what_the_agent_says_of_itself_is_kept() {
    let mut f = Fixture::new(1);
    let notices = vec!["HEAPTOP_INTERVAL is no number: 1e\u{1b}".to_owned()];
    f.say(Hello { notices, ..f.hello() });
    assert_eq!(f.session.notices(), ["HEAPTOP_INTERVAL is no number: 1e\u{fffd}"]);
    f.say(Stopped { reason: "out of memory".into() });
    assert_eq!(f.session.stopped(), Some("out of memory"));
    f.session.apply(Input::UnknownMessage);
    assert_eq!(f.session.unknown_messages(), 1);
    f.session.apply(Input::Connection(Connection::Lost("gone".into())));
    assert_eq!(f.session.connection(), &Connection::Lost("gone".into()));
}

#[test]
fn losses_are_told_before_the_next_status() {
    let mut f = Fixture::new(1);
    f.say(Dropped { events: 7 });
    assert_eq!(f.session.losses().unsent, 7);
    f.losses = Losses { births: 1, stacks: 2, unsent: 9 };
    f.report();
    assert_eq!(f.session.losses(), f.losses);
}

#[test]
fn a_snapshot_repairs_what_was_lost() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    let ids: Vec<BlockId> = (0..20).map(|_| f.alloc(stack, 64)).collect();
    f.time_ns += 1_000_000_000;
    for id in &ids[..15] {
        f.death(*id);
    }
    let unheard = f.birth(stack, 64).id();
    f.say(Dropped { events: 16 });
    f.time_ns += 1_000_000_000;
    f.snapshot();
    let expected: BTreeSet<BlockId> = ids[15..].iter().copied().chain([unheard]).collect();
    assert_eq!(living(&f.session), expected);
    // They died somewhere in these two seconds.
    let Lifetime::Median { ns, samples: 15, .. } = row(&f.session, "fill").figures.lifetime else {
        panic!("{:?}", row(&f.session, "fill").figures.lifetime)
    };
    assert!((0.5e9..=2.1e9).contains(&ns), "{ns}");
}

#[test]
fn a_snapshot_that_is_not_whole_sweeps_nothing() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    let id = f.alloc(stack, 64);
    let at = f.now();
    f.say(SnapshotBegin { at });
    f.say(SnapshotEnd { at, blocks: 1 });
    assert_eq!(living(&f.session), [id].into());
}

#[test]
fn numbers_from_nowhere_break_nothing() {
    let mut f = Fixture::new(1 << 19);
    let stack = f.stack(&["main", "\u{1b}]0;title\u{7}"]);
    let evil = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX, 1e-320];
    let at = Moment { seq: u64::MAX, time_ns: u64::MAX, clock: u64::MAX };
    for sum in evil {
        for variance in evil {
            let m = Moments { sum, sum_sq: variance, variance, largest: sum };
            let t = Total {
                n: u64::MAX,
                bytes: m,
                objects: m,
                smallest_size: u64::MAX,
                largest_size: 0,
            };
            let totals = Totals { in_use: t, allocated: t, minor: t, promoted: t };
            let stacks = [stack, StackId(u32::MAX), StackId::OTHER]
                .map(|stack| StackTotals { stack, totals })
                .to_vec();
            f.say(TotalsUpdate { at, stacks });
            let status = Status { at, totals, ..*f.session.status().unwrap() };
            f.say(status);
            for row in table(&f.session).rows {
                if let Estimate::Interval { value, low, high, .. } = row.figures.in_use_bytes {
                    assert!(low <= value && value <= high && high.is_finite(), "{row:?}");
                }
                assert!(row.figures.trend.iter().all(|v| v.is_finite()));
            }
            assert_ne!(f.session.in_use(), Estimate::Unknown);
            if let Ratio::Interval { value, low, high, .. } = f.session.promotion() {
                assert!(0.0 <= low && low <= value && value <= high && high <= 1.0);
            }
        }
    }
    let block = LiveBlock {
        id: BlockId(u64::MAX),
        born_ns: u64::MAX,
        born_clock: u64::MAX,
        thread: ThreadId(u32::MAX),
        stack: StackId(u32::MAX - 1),
        size: u64::MAX,
        n_samples: 0,
        interval: Interval::DEFAULT,
        cause: heaptop_protocol::event::Cause::Malloc,
        address: u64::MAX,
        young: true,
        born_young: false,
    };
    let begin = Moment { seq: 0, time_ns: 0, clock: 0 };
    f.say(SnapshotBegin { at: begin });
    f.say(SnapshotBlocks {
        blocks: vec![block, LiveBlock { size: 0, born_ns: 0, ..block }, block],
    });
    f.say(SnapshotEnd { at: begin, blocks: 3 });
    let names: Vec<String> =
        table(&f.session).rows.iter().map(|r| r.label.function.to_string()).collect();
    assert!(names.contains(&"\u{fffd}]0;title\u{fffd}".to_owned()), "{names:?}");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Alloc,
    Free(usize),
    Promote(usize),
    List(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Alloc),
        2 => (0usize..64).prop_map(Step::Free),
        1 => (0usize..64).prop_map(Step::Promote),
        3 => (1usize..8).prop_map(Step::List),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Whatever comes between a snapshot's begin and end, and whether the table
    /// was listed before or after it: the living are those of the agent.
    #[test]
    fn snapshots_and_events_meet_in_any_order(
        before in 0usize..20,
        steps in steps(),
        unheard in any::<u64>(),
    ) {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "fill"]);
        let mut ids: Vec<BlockId> = (0..before).map(|_| f.alloc(stack, 64)).collect();
        // Some deaths were lost.
        for (i, id) in ids.iter().enumerate() {
            if unheard >> i & 1 == 1 {
                f.death(*id);
            }
        }
        f.say(Dropped { events: 1 });
        let at = f.now();
        f.say(SnapshotBegin { at });
        // The agent lists the table as it was, slowly: blocks may die before
        // their listing is sent.
        let mut list: Vec<LiveBlock> = f.listing();
        let listed = list.len() as u64;
        for step in steps {
            match step {
                Step::Alloc => ids.push(f.alloc(stack, 64)),
                Step::Free(i) if !ids.is_empty() => f.free(ids[i % ids.len()]),
                Step::Promote(i) if !ids.is_empty() => f.promote(ids[i % ids.len()]),
                Step::List(n) => {
                    let rest = list.split_off(n.min(list.len()));
                    f.say(SnapshotBlocks { blocks: std::mem::replace(&mut list, rest) });
                }
                Step::Free(_) | Step::Promote(_) => {}
            }
        }
        f.say(SnapshotBlocks { blocks: list });
        let at = f.now();
        f.say(SnapshotEnd { at, blocks: listed });
        let truth: BTreeSet<BlockId> = f.listing().iter().map(|b| b.id).collect();
        prop_assert_eq!(living(&f.session), truth);
        let young: BTreeSet<BlockId> =
            f.listing().iter().filter(|b| b.young).map(|b| b.id).collect();
        let shown: BTreeSet<BlockId> =
            f.session.live_blocks().filter(|(_, b)| b.young).map(|(id, _)| id).collect();
        prop_assert_eq!(shown, young);
    }

    #[test]
    fn batches_of_any_events_break_nothing(
        events in proptest::collection::vec((0u64..40, 0u8..3, any::<u64>(), any::<u64>()), 0..200),
    ) {
        use heaptop_protocol::event::{Alloc, Cause, Dealloc, Promote};
        let mut session = Session::new();
        let events: Vec<Event> = events
            .into_iter()
            .map(|(id, kind, time_ns, size)| {
                let at = Moment { seq: id, time_ns, clock: size };
                match kind {
                    0 => Event::Alloc(Alloc {
                        at,
                        thread: ThreadId(0),
                        stack: StackId(size as u32 % 5),
                        size,
                        n_samples: 1,
                        interval: Interval::DEFAULT,
                        cause: Cause::Malloc,
                        address: 0,
                        young: true,
                        replaces: None,
                    }),
                    1 => Event::Promote(Promote { at, id: BlockId(size % 40) }),
                    _ => Event::Dealloc(Dealloc {
                        at,
                        id: BlockId(size % 40),
                        thread: ThreadId(0),
                        young: false,
                    }),
                }
            })
            .collect();
        session.apply(Input::Agent(Batch::pack(&events).into()));
        prop_assert!(session.live_block_count() <= 40);
        table(&session);
    }
}
