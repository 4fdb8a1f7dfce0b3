//! Sums of the living that are kept up, beside those of a pass over all that lives.

use super::*;
use crate::session::then::standing::Purpose;
use heaptop_protocol::totals::Total;

/// What a pass over the living says of the same, by class and stretch.
fn pass(session: &Session, by: By, ends_us: &[u64]) -> Vec<Vec<Total>> {
    let classes = by::Kind::of(session, by);
    let mut sums = vec![vec![Total::default(); ends_us.len() + 1]; classes.count(session)];
    for (_, block) in session.live_blocks() {
        let class = classes.class(block.stack, block.size, block.thread).unwrap();
        let stretch = ends_us.iter().filter(|end| **end < block.born_ns / 1000).count();
        sums[class as usize][stretch].add(&block.weight());
    }
    sums
}

/// Blocks, bytes and objects.
fn known(total: &Total) -> (u64, f64, f64) {
    (total.n, total.bytes.sum, total.objects.sum)
}

/// All kinds at once: nobody is the only one that is kept. Moments move on with time, the
/// base is now and then another.
fn check(session: &Session, base_us: u64) -> Result<(), TestCaseError> {
    let Some((since, now)) = session.span() else { return Ok(()) };
    let bounds = Bounds::new(session, When::At(now));
    let part = (now - since) / 4;
    let generations: Vec<u64> = (0..4).map(|n| (since + n * part) / 1000).collect();
    for (by, purpose, ends) in [
        (By::Group, Purpose::Growth, vec![base_us]),
        (By::Group, Purpose::Growth, vec![since / 1000]),
        (By::Group, Purpose::Old, vec![(now - (now - since) / 10) / 1000]),
        (By::Group, Purpose::Generations, generations),
        (By::Size, Purpose::Growth, vec![base_us]),
        (By::Thread, Purpose::Growth, vec![base_us]),
    ] {
        let standing =
            session.standing(&bounds, &by.into(), purpose, &ends).expect("it is the present");
        let want = pass(session, by, &ends);
        let got: Vec<Vec<_>> =
            standing.classes().map(|of| of.iter().map(known).collect()).collect();
        let want: Vec<Vec<_>> = want.iter().map(|of| of.iter().map(known).collect()).collect();
        prop_assert_eq!(got, want, "{:?} {:?}", by, purpose);
    }
    let want = threads::pass(session, &bounds, None);
    let got = threads::of(session, &bounds, &By::Thread.into());
    prop_assert_eq!(got.len(), want.len());
    for (id, want) in &want {
        let got = got.get(id).copied().unwrap_or_default();
        let sums = |of: &threads::OfThread| {
            let threads::OfThread { allocated, window, in_use, freed, freed_elsewhere } = of;
            [allocated, window, in_use, freed, freed_elsewhere].map(known)
        };
        prop_assert_eq!(sums(&got), sums(want), "{:?}", id);
    }
    let range = Bounds::new(session, When::Range { from_ns: since, to_ns: now });
    let grown = |kept: &mut since::Kept| {
        let grown = kept.grown(session, &range, &By::Group.into()).iter();
        grown.map(|of| [known(&of.gained), known(&of.lost)]).collect::<Vec<_>>()
    };
    let got = grown(&mut session.then.since.borrow_mut());
    prop_assert_eq!(got, grown(&mut since::Kept::default()));
    Ok(())
}

/// A few lives ahead of what is asked.
fn look_ahead(session: &Session, most: usize) {
    let bounds = Bounds::new(session, When::At(session.now_ns()));
    let left = session.look_ahead_at_threads(&bounds, most);
    assert!(left <= most && session.look_ahead_at_growth(most) <= most);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: proptest::test_runner::RngSeed::Fixed(9),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// At R = 1, where sums are of whole numbers, they are the same at every step.
    #[test]
    fn sums_that_are_kept_up_are_those_of_a_pass(
        steps in steps(),
        bases in 1usize..40,
        named in 3u32..5,
    ) {
        let mut world = World::new(true);
        (1..named).for_each(|id| world.f.name_thread(id, "worker"));
        let mut base_us = 0;
        for (at, step) in steps.into_iter().enumerate() {
            world.f.thread = ThreadId(1 + at as u32 % 3);
            world.act(step);
            if at % bases == 0 {
                base_us = world.f.time_ns / 1000;
            }
            look_ahead(&world.f.session, at % 4);
            // Not asked all the time, and events come in between.
            if at % 3 == 0 {
                check(&world.f.session, base_us)?;
            }
        }
        world.f.report();
        check(&world.f.session, base_us)?;
    }
}

/// Callstacks come and go to other groups, the agent thins its blocks, blocks are lost sight
/// of: sums are made anew, or follow.
#[test]
fn sums_follow_names_and_thinning() {
    let mut f = Fixture::new(64);
    let stacks: Vec<StackId> =
        (0..6).map(|i| f.bare_stack(&["main", &format!("site{i}")])).collect();
    f.pass(1.0);
    let live = |f: &mut Fixture, n: u64| {
        for i in 0..n {
            f.time_ns += MS;
            f.alloc(stacks[i as usize % stacks.len()], 1 + i * 7);
        }
    };
    let check = |f: &Fixture, what: &str| {
        let session = &f.session;
        let bounds = Bounds::new(session, When::At(session.now_ns));
        let ends = [session.now_ns / 2000];
        let standing = session.standing(&bounds, &By::Group.into(), Purpose::Growth, &ends);
        let standing = standing.expect("it is the present");
        let mut living = 0;
        for (got, want) in standing.classes().zip(pass(session, By::Group, &ends)) {
            for (got, want) in got.iter().zip(&want) {
                living += want.n;
                assert_eq!(got.n, want.n, "{what}");
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
                assert!(close(got.bytes.sum, want.bytes.sum), "{what}");
                assert!(close(got.bytes.variance, want.bytes.variance), "{what}");
                assert!(close(got.objects.sum, want.objects.sum), "{what}");
            }
        }
        assert_eq!(living, session.live_block_count() as u64, "{what}");
    };
    live(&mut f, 50);
    f.report();
    check(&f, "at first");
    f.name(&["main", "site0", "site3"]);
    live(&mut f, 20);
    f.report();
    check(&f, "with names");
    let more = f.stack(&["main", "more"]);
    f.alloc(more, 99);
    f.report();
    check(&f, "with one more callstack");
    let coarser = heaptop_protocol::estimate::Interval::new(256).unwrap();
    f.thin(coarser, |block| block.id.0 % 2 == 0);
    check(&f, "after some were lost sight of");
    f.snapshot();
    check(&f, "thinned");
    live(&mut f, 20);
    check(&f, "and after it");
}

/// Nobody pays for what nobody looks at.
#[test]
fn sums_go_when_nobody_asks() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    f.alloc(stack, 8);
    f.pass(1.0);
    let _ = f.session.lately(Some(0), &By::Group.into());
    let kept = |f: &Fixture| f.session.then.standing.borrow().len();
    assert_eq!(kept(&f), 1);
    f.pass(1.0);
    assert_eq!(kept(&f), 1, "it may be asked again");
    f.pass(10.0);
    assert_eq!(kept(&f), 0);
}
