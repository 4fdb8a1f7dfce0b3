//! Answers that are made in slices.

use super::*;
use crate::session::then::by::Cut;

/// All that an answer says.
fn said(session: &Session, then: &Then) -> String {
    then.ages_of(session, std::iter::empty(), &mut Table::default());
    let steps = then.trend(session, None);
    let (ages, trend) = (then.lives.get(), then.trend.get());
    format!("{:#?} {ages:?} {steps:?} {trend:?}", then.sets)
}

/// Goes on until it is there, a step of the target's behind every second slice. How many
/// slices it took.
fn make(
    world: &mut World,
    (when, cut, most): (When, &Cut, usize),
    mut happens: impl FnMut(&mut World),
) -> usize {
    let mut slices = 0;
    let mut before = 0;
    while let Some(percent) = world.f.session.make_ahead(when, cut, most) {
        assert!(percent <= 100 && (before <= percent || slices % 2 == 0), "{before} {percent}");
        before = percent;
        slices += 1;
        assert!(slices < 20_000, "it never ends");
        if slices % 2 == 0 {
            happens(world);
        }
    }
    slices
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        cases: 32,
        ..ProptestConfig::default()
    })]
    /// What is made in slices while events come is what is made at once.
    #[test]
    fn slices_are_the_whole(
        steps in steps(),
        late in any::<bool>(),
        most in 1usize..40,
        (a, b) in (0u64..100, 0u64..100),
    ) {
        let mut world = World::new(late);
        for &step in &steps {
            world.act(step);
        }
        world.act(Step::Pass { ms: 4000 });
        let (from, now) = world.f.session.span().expect("a snapshot has ended");
        // What is not settled is a matter of its own.
        let last = now - 2_500 * MS;
        let at = |part: u64| from + last.saturating_sub(from) * part / 100;
        let range = When::Range { from_ns: at(a.min(b)), to_ns: at(a.max(b)) };
        let mut more = steps.iter().cycle().copied();
        for by in [By::Group, By::Stack, By::Size, By::Thread] {
            for when in [When::At(at(a)), range] {
                let cut = Cut::from(by);
                let busy = |world: &mut World| world.act(more.next().expect("they go round"));
                make(&mut world, (when, &cut, most), busy);
                let session = &world.f.session;
                let got = session.then_by(when, &cut).expect("it is not now");
                let want = Then::new(session, when, cut);
                prop_assert_eq!(said(session, &got), said(session, &want));
            }
        }
    }
}

/// Of a moment that goes on changing the answer before stands while the next is made; where
/// nothing happens it is made once.
#[test]
fn an_answer_stands_until_the_next_is_made() {
    let mut world = World::new(false);
    for i in 0..60 {
        world.act(Step::Alloc { stack: i % 4, size: 100 });
        if i % 2 == 0 {
            world.act(Step::Free { which: i });
        }
    }
    world.act(Step::Pass { ms: 500 });
    let (cut, now) = (Cut::from(By::Group), world.f.session.now_ns);
    let when = When::At(now - 100 * MS);
    assert!(make(&mut world, (when, &cut, 10), |_| ()) > 4);
    let first = world.f.session.then_by(when, &cut).unwrap();
    assert_eq!(world.f.session.make_ahead(when, &cut, 10), None, "nothing has happened");

    world.act(Step::Alloc { stack: 1, size: 100 });
    assert!(world.f.session.make_ahead(when, &cut, 10).is_some());
    let meanwhile = world.f.session.then_by(when, &cut).unwrap();
    assert!(Arc::ptr_eq(&first, &meanwhile));
    make(&mut world, (when, &cut, 10), |_| ());
    let next = world.f.session.then_by(when, &cut).unwrap();
    assert!(!Arc::ptr_eq(&first, &next));

    // Another question asks for itself, and what takes no longer is made at once.
    let other = When::At(now - 200 * MS);
    assert!(world.f.session.make_ahead(other, &cut, 1000).is_none());
    let want = Then::new(&world.f.session, other, cut.clone());
    let session = &world.f.session;
    assert_eq!(said(session, &session.then_by(other, &cut).unwrap()), said(session, &want));
}
