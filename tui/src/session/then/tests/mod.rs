//! The past, beside what happened: everything is made anew from the raw events.

mod kept;
mod making;
mod present;
mod standing;

use super::super::fixture::Fixture;
use super::super::{Connection, Input};
use super::*;
use crate::query::{self, Column, Figures, Question};
use crate::session::figures::{Change, Estimate, Ratio};
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, StackId};
use heaptop_protocol::message::{Dropped, LiveBlock};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
/// N of the fixture.
const NURSERY: u64 = 2 << 20;

/// What happened to one block.
#[derive(Debug, Clone, Copy)]
struct Truth {
    stack: StackId,
    size: u64,
    born_ns: u64,
    born_clock: u64,
    died_ns: Option<u64>,
    died_clock: u64,
    young: bool,
}

impl Truth {
    fn alive(&self, at: u64) -> bool {
        self.born_ns <= at && self.died_ns.is_none_or(|died| at < died)
    }

    /// G at the end of its cycle. A birth is known to 4 KiB.
    fn cycle_end(&self) -> u64 {
        ((self.born_clock & !0xfff) / NURSERY + 1) * NURSERY
    }

    fn promoted(&self) -> bool {
        self.young && (self.died_ns.is_none() || self.died_clock >= self.cycle_end())
    }
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Step {
    Alloc { stack: usize, size: u64 },
    Free { which: usize },
    Pass { ms: u64 },
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0usize..4, 1u64..200_000).prop_map(|(stack, size)| Step::Alloc { stack, size }),
        3 => any::<usize>().prop_map(|which| Step::Free { which }),
        4 => (1u64..3000).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Snapshot),
    ];
    proptest::collection::vec(step, 20..160)
}

/// A target at R = 1, and what is true of it.
struct World {
    f: Fixture,
    stacks: Vec<StackId>,
    blocks: Vec<Truth>,
    ids: BTreeMap<usize, BlockId>,
    /// Time and G after each step.
    clock: Vec<(u64, u64)>,
}

impl World {
    fn new(attached_late: bool) -> Self {
        let mut f = Fixture::new(1);
        let names = ["a", "b", "c", "d"];
        let stacks: Vec<StackId> = names.iter().map(|n| f.stack(&["main", n])).collect();
        let mut world =
            Self { f, stacks, blocks: Vec::new(), ids: BTreeMap::new(), clock: Vec::new() };
        if attached_late {
            // A greeting, and with it a new model, after something has happened.
            for i in 0..40 {
                world.act(Step::Alloc { stack: i % 4, size: 3000 + i as u64 });
                world.act(Step::Pass { ms: 700 });
                world.act(Step::Free { which: i * 7 });
            }
            world.attach();
        }
        world
    }

    /// The connection was lost, and comes back: all is told anew.
    fn attach(&mut self) {
        self.f.session.apply(Input::Connection(Connection::Connected));
        let hello = self.f.hello();
        self.f.say(hello);
        self.f.define_again();
        self.f.report();
        self.f.snapshot();
        self.clock.retain(|_| false);
        self.note();
    }

    fn note(&mut self) {
        self.clock.push((self.f.time_ns, self.f.clock));
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Alloc { stack, size } => {
                let stack = self.stacks[stack];
                // Each at a time of its own.
                self.f.time_ns += MS;
                let born_clock = self.f.clock;
                let id = self.f.alloc(stack, size);
                self.ids.insert(self.blocks.len(), id);
                self.blocks.push(Truth {
                    stack,
                    size,
                    born_ns: self.f.time_ns,
                    born_clock,
                    died_ns: None,
                    died_clock: 0,
                    young: size <= 2 << 10,
                });
                // G before the block is what its birth tells.
                self.clock.push((self.f.time_ns, born_clock));
                return;
            }
            Step::Free { which } => {
                let which = which % self.ids.len().max(1);
                let Some(&at) = self.ids.keys().nth(which) else { return };
                let Some(id) = self.ids.remove(&at) else { return };
                self.f.time_ns += MS;
                let block = &mut self.blocks[at];
                block.died_ns = Some(self.f.time_ns);
                block.died_clock = self.f.clock;
                if block.promoted() {
                    self.f.promote(id);
                }
                self.f.free(id);
            }
            Step::Pass { ms } => self.f.pass(ms as f64 / 1e3),
            Step::Snapshot => self.f.snapshot(),
        }
        self.note();
    }

    /// G at the end of the millisecond of `at`.
    fn clock_at(&self, at: u64) -> u64 {
        let until = self.clock.iter().take_while(|(ns, _)| ns / MS <= at / MS);
        until.last().map_or(0, |(_, clock)| *clock)
    }

    fn sum(&self, of: impl Fn(&Truth) -> bool) -> f64 {
        self.blocks.iter().filter(|b| of(b)).map(|b| b.size as f64).sum()
    }
}

fn exact(value: f64) -> Estimate {
    Estimate::Exact { value }
}

fn figures(session: &Session, when: When, stack: &str) -> Option<Figures> {
    let question = Question { when, ..Question::default() };
    let table = query::callsites(session, &question);
    table.rows.into_iter().find(|row| &*row.label.function == stack).map(|row| row.figures)
}

fn total(session: &Session, when: When) -> Figures {
    query::callsites(session, &Question { when, ..Question::default() }).total
}

fn share(part: f64, whole: f64) -> Ratio {
    if whole == 0.0 {
        return Ratio::Unknown;
    }
    let value = part / whole;
    Ratio::Interval { value, low: value, high: value, samples: 0 }
}

fn same_share(got: Ratio, want: Ratio) -> bool {
    match (got, want) {
        (Ratio::Unknown, Ratio::Unknown) => true,
        (Ratio::Interval { value: a, .. }, Ratio::Interval { value: b, .. }) => {
            (a - b).abs() < 1e-9
        }
        _ => false,
    }
}

/// All figures of a moment, and of each callsite, against the raw events.
fn check_at(world: &World, at: u64) -> Result<(), TestCaseError> {
    let session = &world.f.session;
    let (from, _) = session.span().expect("a snapshot has ended");
    let got = total(session, When::At(at));
    if at < from {
        prop_assert_eq!(got.in_use_bytes, Estimate::Unknown);
        prop_assert_eq!(got.allocated_bytes, Estimate::Unknown);
        prop_assert_eq!(got.allocated_rate, Estimate::Unknown);
        prop_assert_eq!(got.promoted, Ratio::Unknown);
        prop_assert!(got.trend.is_empty());
        return Ok(());
    }
    prop_assert_eq!(got.in_use_bytes, exact(world.sum(|b| b.alive(at))));
    prop_assert_eq!(got.allocated_bytes, exact(world.sum(|b| b.born_ns <= at)));
    let (window, until) = match session.course.rate_window() {
        Some(present) if at >= session.now_ns() => present,
        _ => (at.saturating_sub(10_000 * MS), at),
    };
    let window = window.max(from);
    let seconds = until.saturating_sub(window) as f64 / 1e9;
    let want = match world.sum(|b| window < b.born_ns && b.born_ns <= until) / seconds {
        rate if seconds >= 0.5 => exact(rate),
        _ => Estimate::Unknown,
    };
    prop_assert_eq!(got.allocated_rate, want);
    let (now, base) = (world.clock_at(at), world.clock_at(from));
    let done = |b: &Truth| b.young && b.born_ns <= at && b.cycle_end() <= now;
    if base == 0 {
        let minor = world.sum(done);
        let promoted = world.sum(|b| done(b) && b.promoted());
        let want = share(promoted, minor);
        prop_assert!(same_share(got.promoted, want), "{:?} is not {:?}", got.promoted, want);
    }
    if let Some(last) = got.trend.last() {
        prop_assert!((last - world.sum(|b| b.alive(at))).abs() < 1e-3);
    }
    for (name, id) in ["a", "b", "c", "d"].iter().zip(&world.stacks) {
        if let Some(figures) = figures(session, When::At(at), name) {
            let of = |b: &Truth| b.stack == *id;
            prop_assert_eq!(figures.in_use_bytes, exact(world.sum(|b| of(b) && b.alive(at))));
            let born = world.sum(|b| of(b) && b.born_ns <= at);
            prop_assert_eq!(figures.allocated_bytes, exact(born));
        }
    }
    let tree = query::callers(
        session,
        When::At(at),
        &[],
        query::Direction::Callees,
        query::Metric::InUseBytes,
        "",
    );
    prop_assert_eq!(tree.expect("all is a tree").cum, got.in_use_bytes);
    let stacks = query::stacks(
        session,
        When::At(at),
        &[],
        query::Direction::Callees,
        query::Metric::AllocatedBytes,
        "",
    );
    let sum: f64 = stacks.iter().map(|(_, bytes)| bytes).sum();
    prop_assert_eq!(exact(sum), got.allocated_bytes);
    Ok(())
}

fn check_range(world: &World, a: u64, b: u64) -> Result<(), TestCaseError> {
    let session = &world.f.session;
    let (from, _) = session.span().expect("a snapshot has ended");
    let (a, b) = (a.min(b), a.max(b));
    let got = total(session, When::Range { from_ns: a, to_ns: b });
    if a < from {
        prop_assert_eq!(got.growth, Change::Unknown);
        prop_assert_eq!(got.allocated_bytes, Estimate::Unknown);
        return Ok(());
    }
    let alive = |at| world.sum(|block| block.alive(at));
    prop_assert_eq!(got.in_use_bytes, exact(alive(b)));
    prop_assert_eq!(got.growth, Change::Exact { value: alive(b) - alive(a) });
    prop_assert_eq!(session.growth(a, b, |_| true), got.growth, "and by the other way");
    let born = world.sum(|block| a < block.born_ns && block.born_ns <= b);
    prop_assert_eq!(got.allocated_bytes, exact(born));
    if b - a >= 500 * MS {
        prop_assert_eq!(got.allocated_rate, exact(born / ((b - a) as f64 / 1e9)));
    }
    let growth = query::growth(session, a, b, "").expect("it is known");
    prop_assert_eq!(growth.total, got.growth);
    for row in &growth.rows {
        let grew = matches!(row.change, Change::Exact { value } if value > 0.0);
        prop_assert_eq!(row.grew, grew, "at R = 1 every growth is evident");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: proptest::test_runner::RngSeed::Fixed(4),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// At R = 1 every figure of 50 moments, and of ranges between them, is what the raw
    /// events say; for a viewer that was there from the start, and for one that came late.
    #[test]
    fn the_past_is_what_happened(
        steps in steps(),
        late in any::<bool>(),
        moments in proptest::collection::vec(0u64..u64::MAX, 50),
    ) {
        let mut world = World::new(late);
        for step in steps {
            world.act(step);
        }
        world.f.report();
        let now = world.f.session.now_ns();
        // The end of a millisecond: what is in it has happened.
        let times: Vec<u64> = moments.iter().map(|m| m % now / MS * MS + MS - 1).collect();
        for &at in &times {
            check_at(&world, at)?;
        }
        for pair in times.chunks(2).take(10) {
            check_range(&world, pair[0], pair[1])?;
        }
        // After the present is the present.
        let session = &world.f.session;
        prop_assert_eq!(
            total(session, When::At(u64::MAX)).in_use_bytes,
            total(session, When::Now).in_use_bytes
        );
        prop_assert_eq!(session.unattributed(), None);
        let threads = query::threads(session, When::Now, "");
        let in_use: f64 = threads.iter().filter_map(|t| t.in_use_bytes.point()).sum();
        prop_assert_eq!(exact(in_use), total(session, When::Now).in_use_bytes);
    }
}

/// Where events are lost, sums of what was born then are known from below, until a
/// snapshot tells who lives; the agent's totals hold all, and the difference is told.
#[test]
fn what_was_lost_is_not_made_up() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    f.pass(1.0);
    f.alloc(stack, 1000);
    f.pass(1.0);
    let before = f.time_ns;
    f.pass(1.0);
    f.birth(stack, 500);
    let dead = f.birth(stack, 70).id();
    f.death(dead);
    f.say(Dropped { events: 3 });
    f.pass(1.0);
    let blind = f.time_ns;
    assert_eq!(
        f.session.unattributed(),
        Some((exact(500.0), exact(570.0))),
        "neither is in any block that was heard of"
    );
    f.pass(1.0);
    f.snapshot();
    f.pass(1.0);
    let session = &f.session;
    assert_eq!(total(session, When::At(before)).allocated_bytes, exact(1000.0));
    assert_eq!(total(session, When::At(before)).in_use_bytes, exact(1000.0));
    let at = total(session, When::At(blind));
    assert_eq!(at.in_use_bytes, Estimate::AtLeast { low: 1500.0, samples: 2 });
    assert_eq!(at.allocated_bytes, Estimate::AtLeast { low: 1500.0, samples: 2 });
    let after = total(session, When::At(f.time_ns));
    assert_eq!(after.in_use_bytes, exact(1500.0), "the snapshot told who lives");
    assert_eq!(after.allocated_bytes, Estimate::AtLeast { low: 1500.0, samples: 2 });
    let now = query::callsites(session, &Question::default());
    assert_eq!(now.total.allocated_bytes, exact(1570.0), "the agent's totals win");
    let missing = now.unattributed.expect("it was lost");
    assert_eq!((missing.in_use_bytes, missing.allocated_bytes), (exact(0.0), exact(70.0)));
    assert_eq!(query::curve(session).blind.len(), 1);
}

/// The agent halves its samples at its memory bound: survivors stand for those that went,
/// also in the past.
#[test]
fn blocks_that_the_agent_thinned_stand_for_those_that_went() {
    let mut f = Fixture::new(1 << 16);
    let stack = f.stack(&["main", "a"]);
    for _ in 0..64 {
        f.alloc(stack, 64);
    }
    f.pass(1.0);
    let then = f.time_ns;
    f.pass(5.0);
    let value = |f: &Fixture| match total(&f.session, When::At(then)).in_use_bytes {
        Estimate::Interval { value, .. } => value,
        other => panic!("{other:?}"),
    };
    let before = value(&f);
    let coarser = heaptop_protocol::estimate::Interval::new(1 << 17).unwrap();
    f.thin(coarser, |block: &LiveBlock| block.id.0.is_multiple_of(2));
    f.snapshot();
    f.pass(1.0);
    assert_eq!(f.session.live_block_count(), 32);
    assert!((value(&f) / before - 1.0).abs() < 1e-3, "{} is not {before}", value(&f));
}

#[test]
fn the_peak_is_a_moment_of_its_own() {
    let mut f = Fixture::new(1);
    let (a, b) = (f.stack(&["main", "a"]), f.stack(&["main", "b"]));
    let gone = f.alloc(a, 1000);
    f.alloc(b, 10);
    f.report();
    f.say_peak();
    f.pass(1.0);
    f.free(gone);
    f.pass(1.0);
    let session = &f.session;
    assert_eq!(figures(session, When::Peak, "a").unwrap().in_use_bytes, exact(1000.0));
    let peak = total(session, When::Peak);
    assert_eq!(peak.in_use_bytes, exact(1010.0));
    assert_eq!((peak.allocated_bytes, peak.promoted), (Estimate::Unknown, Ratio::Unknown));
    assert_eq!(total(session, When::Now).in_use_bytes, exact(10.0));
}

/// Old blocks are those that live and were born before the last tenth of the time.
#[test]
fn old_and_alive_leaves_out_the_youngest_tenth() {
    let mut f = Fixture::new(1);
    let (a, b) = (f.stack(&["main", "leak"]), f.stack(&["main", "cache"]));
    f.pass(1.0);
    let start = f.time_ns;
    for _ in 0..10 {
        f.alloc(a, 100);
    }
    let freed = f.alloc(a, 5000);
    f.pass(95.0);
    f.alloc(b, 9999);
    f.pass(4.0);
    f.free(freed);
    let at = f.time_ns;
    f.pass(1.0);
    let old = query::old(&f.session, When::At(at), "").unwrap();
    assert_eq!(old.rows.len(), 1, "{old:?}");
    let row = &old.rows[0];
    assert_eq!((&*row.label.function, row.bytes), ("leak", exact(1000.0)));
    assert_eq!(row.objects, exact(10.0));
    let Lifetime::Median { ns, .. } = row.median_age else { panic!("{row:?}") };
    assert!((ns / (at - start) as f64 - 1.0).abs() < 0.13, "{ns}");
    assert_eq!(query::old(&f.session, When::At(start - MS), "leak").unwrap().rows.len(), 0);
}

/// Who frees is told apart by thread.
#[test]
fn threads_have_figures_of_their_own() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    let (one, two) = (ThreadId(1), ThreadId(2));
    f.pass(1.0);
    f.time_ns += MS;
    let mut alloc = |thread, size| {
        let alloc = Alloc { thread, ..f.birth(stack, size) };
        f.say(Batch::pack(&[Event::Alloc(alloc)]));
        alloc.id()
    };
    let (kept, given, own) = (alloc(one, 100), alloc(one, 30), alloc(one, 10));
    alloc(two, 7);
    for (id, thread) in [(given, two), (own, one)] {
        let death = Dealloc { thread, ..f.death(id).unwrap() };
        f.say(Batch::pack(&[Event::Dealloc(death)]));
    }
    f.pass(1.0);
    assert!(f.session.live_blocks().any(|(id, _)| id == kept));
    let rows = query::threads(&f.session, When::Now, "");
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].id, rows[0].name.as_str()), (Some(one), "orders"));
    assert_eq!((rows[0].allocated_bytes, rows[0].in_use_bytes), (exact(140.0), exact(100.0)));
    assert_eq!(rows[0].freed_elsewhere_bytes, exact(30.0));
    assert!(same_share(rows[0].freed_elsewhere, share(30.0, 40.0)));
    assert_eq!((rows[1].id, rows[1].in_use_bytes), (Some(two), exact(7.0)));
}

/// A cursor at rest is not asked anew, and what happens later changes nothing in it.
#[test]
fn an_answer_is_kept_while_it_stands() {
    let mut f = Fixture::new(1);
    let stack = f.bare_stack(&["main", "a"]);
    f.alloc(stack, 100);
    f.pass(10.0);
    let when = When::At(f.time_ns - 5_000 * MS);
    let first = f.session.then(when).unwrap();
    f.alloc(stack, 100);
    f.pass(1.0);
    assert!(Arc::ptr_eq(&first, &f.session.then(when).unwrap()));
    let now = f.session.then(When::At(u64::MAX)).unwrap();
    f.alloc(stack, 100);
    f.pass(1.0);
    assert!(!Arc::ptr_eq(&now, &f.session.then(When::At(u64::MAX)).unwrap()));
    // A name moves callstacks between groups.
    let _ = f.session.then(when);
    f.name(&["a"]);
    assert!(!Arc::ptr_eq(&first, &f.session.then(when).unwrap()));
    for sort in Column::ALL {
        let question = Question { sort, when, ..Question::default() };
        assert_eq!(query::callsites(&f.session, &question).rows.len(), 1, "{sort:?}");
    }
}

/// Thinned lives still stand for all: what was allocated over a range is within what
/// chance allows.
#[test]
fn a_thinned_store_tells_the_same_within_chance() {
    let mut f = Fixture::new(1);
    f.session.lives = Lives::with_room(1 << 10);
    f.snapshot();
    let stack = f.stack(&["main", "a"]);
    let mut allocated = 0.0;
    for i in 0..20_000u64 {
        f.time_ns += MS;
        let size = 16 + i % 200;
        let id = f.alloc(stack, size);
        allocated += size as f64;
        f.time_ns += MS;
        f.free(id);
    }
    f.pass(1.0);
    let (from, to) = (f.session.span().unwrap().0, f.time_ns);
    let got = total(&f.session, When::Range { from_ns: from, to_ns: to });
    let Estimate::Interval { value, low, high, samples } = got.allocated_bytes else {
        panic!("{got:?}")
    };
    assert!(samples < 1 << 10, "it was thinned");
    assert!(low <= allocated && allocated <= high, "{low} {value} {high}: {allocated}");
    assert!((high - low) / value < 0.3, "{low} {high}");
}

/// Times and promotions that cannot be.
#[test]
fn broken_pasts_do_no_harm() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    let alloc = |id: u64, time_ns: u64, clock: u64| Alloc {
        at: Moment { seq: id, time_ns, clock },
        thread: ThreadId(u32::MAX),
        stack,
        size: u64::MAX,
        n_samples: u64::MAX,
        interval: heaptop_protocol::estimate::Interval::EXACT,
        cause: Cause::Aligned,
        address: 0,
        young: true,
        replaces: None,
    };
    let at = |seq, time_ns, clock| Moment { seq, time_ns, clock };
    let events = [
        Event::Alloc(alloc(7, u64::MAX, u64::MAX)),
        Event::Promote(Promote { at: at(8, 0, 0), id: BlockId(7) }),
        Event::Dealloc(Dealloc {
            at: at(9, 0, 0),
            id: BlockId(7),
            thread: ThreadId(1),
            young: true,
        }),
        Event::Alloc(alloc(10, 5, u64::MAX)),
    ];
    f.say(Batch::pack(&events));
    for when in [
        When::At(0),
        When::At(u64::MAX),
        When::Range { from_ns: u64::MAX, to_ns: 0 },
        When::Range { from_ns: 0, to_ns: u64::MAX },
        When::Peak,
    ] {
        total(&f.session, when);
        let _ = query::threads(&f.session, when, "");
        let _ = query::old(&f.session, when, "");
    }
    let _ = query::growth(&f.session, 0, u64::MAX, "x");
    let _ = query::curve(&f.session);
}

/// Who died young before the viewer came, in a cycle that went on, was told by nobody.
/// Then the others of that cycle say nothing of promotion either.
#[test]
fn of_a_cycle_that_was_under_way_nobody_is_counted() {
    let mut f = Fixture::unattached(1);
    let stack = f.stack(&["main", "site"]);
    for i in 0..20 {
        let id = f.alloc(stack, 1000);
        if i % 2 == 0 {
            f.free(id);
        }
    }
    f.attach();
    let promotion = |f: &Fixture| total(&f.session, When::At(f.time_ns)).promoted;
    // The cycle turns; then one is of blocks of which all is known.
    let big = f.stack(&["main", "big"]);
    f.alloc(big, 4 << 20);
    f.pass(1.0);
    assert_eq!(promotion(&f), Ratio::Unknown);
    let dead = f.alloc(stack, 1000);
    f.free(dead);
    f.alloc(big, 4 << 20);
    f.pass(1.0);
    assert!(same_share(promotion(&f), share(0.0, 1.0)), "{:?}", promotion(&f));
}
