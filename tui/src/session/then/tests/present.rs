//! What is kept up of sizes and threads, beside a pass over all blocks.

use super::*;
use crate::session::estimate::survival::Table;
use heaptop_protocol::message::{AgentKind, Hello};
use heaptop_protocol::totals::Total;

/// Blocks, bytes and objects.
fn known(total: &Total) -> (u64, f64, f64) {
    (total.n, total.bytes.sum, total.objects.sum)
}

/// All that is known of a class, but for ages.
type Known = ([(u64, f64, f64); 4], [(u64, f64, f64); 2], Vec<f64>);

fn class(session: &Session, then: &Then, class: u32) -> Known {
    let Totals { in_use, allocated, minor, promoted } = then.group_totals(class);
    let (window, survived) = then.windows(Some(class));
    let totals = [in_use, allocated, minor, promoted].map(known);
    (totals, [&window, &survived].map(known), then.trend(session, Some(class)))
}

/// Sizes and threads, class by class, and all together.
fn check(session: &Session) -> Result<(), TestCaseError> {
    if session.span().is_none() {
        return Ok(());
    }
    for by in [By::Size, By::Thread] {
        let cut = Cut::from(by);
        let (got, want) = (session.present(&cut), Then::now(session, cut));
        let got = got.expect("there are few cycles");
        prop_assert_eq!(got.classes(), want.classes());
        for at in 0..want.classes() as u32 {
            let (got, want) = (class(session, &got, at), class(session, &want, at));
            prop_assert_eq!(got, want, "{:?} {}", by, at);
        }
        let whole = |then: &Then| {
            let Totals { in_use, allocated, minor, promoted } = then.whole();
            let (window, survived) = then.windows(None);
            [in_use, allocated, minor, promoted, &window, &survived].map(known)
        };
        prop_assert_eq!(whole(&got), whole(&want));
        prop_assert_eq!(got.trend(session, None), want.trend(session, None));
        for at in 0..want.classes() as u32 {
            let median = |then: &Then| {
                let mut table = Table::default();
                let median = then.lifetime(session, std::iter::once(at), &mut table);
                (median, table.n_deaths, table.n_blocks)
            };
            let (got, want) = (median(&got), median(&want));
            prop_assert_eq!((got.1, got.2), (want.1, want.2), "{:?} {}", by, at);
            // The living are as old as their time of birth says, to a sixty-fourth, or a
            // millisecond.
            match (got.0, want.0) {
                (Lifetime::Unknown, Lifetime::Unknown) => {}
                _ if want.2 < 12 => {}
                (
                    Lifetime::Median { ns: a, .. } | Lifetime::Beyond { ns: a, .. },
                    Lifetime::Median { ns: b, .. } | Lifetime::Beyond { ns: b, .. },
                ) => prop_assert!((a / b).ln().abs() < 0.3, "{:?} {}: {} is not {}", by, at, a, b),
                other => prop_assert!(false, "{:?} {}: {:?}", by, at, other),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// At R = 1, where sums are of whole numbers, they are the same whenever somebody asks.
    #[test]
    fn what_is_kept_up_is_what_a_pass_says(
        steps in steps(),
        late in any::<bool>(),
        every in 1usize..9,
    ) {
        let mut world = World::new(late);
        for (at, step) in steps.into_iter().enumerate() {
            world.f.thread = ThreadId(1 + (at as u32 * 7) % 4);
            world.act(step);
            if at == 30 {
                world.f.name_thread(3, "one more");
            }
            if at == 60 {
                world.f.name_thread(2, "and another before it");
            }
            if at % every == 0 {
                check(&world.f.session)?;
            }
            // A little of it ahead.
            world.f.session.look_ahead();
        }
        world.f.report();
        check(&world.f.session)?;
    }
}

fn hold(f: &Fixture, what: &str) {
    if let Err(why) = check(&f.session) {
        panic!("{what}: {why}");
    }
}

/// A runtime tells itself which blocks it promotes, also in a snapshot, and the agent may
/// thin.
#[test]
fn a_runtime_promotes_by_itself() {
    let mut f = Fixture::new(1);
    let hello = Hello { kind: AgentKind::Ocaml, ..f.hello() };
    f.say(hello);
    f.define_again();
    let stack = f.stack(&["main", "a"]);
    f.snapshot();
    f.report();
    let mut living = Vec::new();
    for i in 0..200u64 {
        f.time_ns += 50 * MS;
        living.push(f.alloc(stack, 1 + i * 13 % 700));
        if i % 3 == 0 {
            f.promote(living[(i / 2) as usize]);
        }
        if i % 4 == 0 {
            f.free(living[(i * 5 % (i + 1)) as usize]);
        }
        if i % 10 == 0 {
            hold(&f, "promoted by an event");
        }
        if i == 150 {
            f.snapshot();
            hold(&f, "after a snapshot");
        }
    }
    let promoted = f.session.present(&By::Size.into()).unwrap().whole().promoted;
    assert!(promoted.n > 20, "{promoted:?}");
    // Promotions that were not heard of.
    for id in living.iter().rev().take(20) {
        f.promote_unheard(*id);
    }
    f.snapshot();
    hold(&f, "after promotions that a snapshot told of");
    let more = f.session.present(&By::Size.into()).unwrap().whole().promoted;
    assert!(more.n > promoted.n, "{more:?}");
    f.thin(heaptop_protocol::estimate::Interval::new(2).unwrap(), |block| block.id.0 % 3 > 0);
    f.snapshot();
    let then = f.session.present(&By::Size.into()).unwrap();
    let want = Then::now(&f.session, By::Size.into());
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.max(1.0);
    assert!(close(then.whole().in_use.bytes.sum, want.whole().in_use.bytes.sum));
    assert!(close(then.whole().promoted.bytes.sum, want.whole().promoted.bytes.sum));
}

/// A snapshot tells of blocks that were born in more cycles to come than there can be: what
/// would have to be put aside for them takes a pass, and no memory.
#[test]
fn clocks_that_cannot_be_cost_a_pass_and_no_more() {
    use heaptop_protocol::message::{SnapshotBegin, SnapshotBlocks, SnapshotEnd};
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    f.pass(1.0);
    f.alloc(stack, 8);
    f.pass(1.0);
    let mut blocks = f.listing();
    let one = blocks[0];
    blocks.extend((1..70_000u64).map(|i| LiveBlock {
        id: BlockId(1 << 40 | i),
        born_clock: (1 << 50) | (i * NURSERY),
        ..one
    }));
    let at = f.now();
    f.say(SnapshotBegin { at });
    f.say(SnapshotBlocks { blocks: blocks.clone() });
    let at = f.now();
    f.say(SnapshotEnd { at, blocks: blocks.len() as u64 });
    f.pass(0.001);
    hold(&f, "while they live");
    for block in &blocks[1..] {
        let dealloc = Dealloc { at: f.now(), id: block.id, thread: block.thread, young: true };
        f.say(Batch::pack(&[Event::Dealloc(dealloc)]));
    }
    f.pass(2.0);
    assert!(f.session.present(&By::Size.into()).is_none(), "not all could be kept");
    let then = f.session.lately(None, &By::Size.into());
    assert_eq!(then.whole().in_use.n, 1);
}

/// Nobody pays for what nobody looks at.
#[test]
fn it_goes_when_nobody_asks() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    f.alloc(stack, 8);
    f.pass(1.0);
    let _ = f.session.lately(None, &By::Size.into());
    let listens = |f: &Fixture| f.session.then.present.borrow().listens();
    assert!(listens(&f));
    f.pass(1.0);
    assert!(listens(&f), "it may be asked again");
    f.pass(10.0);
    assert!(!listens(&f));
    hold(&f, "anew");
}
