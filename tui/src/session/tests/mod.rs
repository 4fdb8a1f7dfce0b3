//! How the model follows what it hears.

mod hostile;
mod naming;
mod snapshots;
mod sums;

use super::figures::{Lifetime, Ratio};
use super::fixture::Fixture;
use super::*;
use crate::query::{self, Question, Row, Table};
use heaptop_protocol::callstack::{Callstack, End};
use heaptop_protocol::event::Moment;
use heaptop_protocol::ids::{BlockId, ModuleId};
use heaptop_protocol::message::Losses;
use heaptop_protocol::message::{Dropped, Sampling, SnapshotBegin, Stopped};
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
    let told = s.told_peak().unwrap();
    assert_eq!((told.time_ns, told.in_use), (11_000_000_000, exact(20_000.0)));
    let peak = s.peak().unwrap();
    assert_eq!((peak.time_ns, peak.in_use), (10_500_000_000, exact(20_500.0)), "as one was brief");
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

/// Rates are exact again once all of their window was sampled at R = 1; totals
/// still hold what another R may have missed.
#[test]
fn rates_know_the_interval_of_their_window_alone() {
    let mut f = Fixture::new(4096);
    let stack = f.stack(&["main", "fill"]);
    f.alloc(stack, 64);
    f.pass_slowly(3.0);
    f.interval = heaptop_protocol::estimate::Interval::EXACT;
    f.pass_slowly(25.0);
    f.alloc(stack, 50);
    f.pass(0.5);
    let figures = row(&f.session, "fill").figures;
    assert!(matches!(figures.allocated_rate, Estimate::Exact { .. }), "{figures:?}");
    assert!(matches!(f.session.allocated_rate(), Estimate::Exact { .. }));
    assert!(matches!(figures.allocated_bytes, Estimate::Interval { .. }), "{figures:?}");
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
    // What is born now is not seen.
    let least = Estimate::AtLeast { low: 100.0, samples: 1 };
    assert_eq!(row(&f.session, "fill").figures.in_use_bytes, least);
    f.sampling = Sampling::On;
    f.pass_slowly(11.0);
    assert_eq!(row(&f.session, "fill").figures.in_use_bytes, least, "nor is it later");
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
    f.losses = Losses { births: 1, stacks: 2, unsent: 9, thinned: 3 };
    f.report();
    assert_eq!(f.session.losses(), f.losses);
}
