//! What is kept between answers, and who is followed from when.

use super::*;

/// Sums that are kept of the first chunks change no answer: beside those of a store that
/// is gone through as a whole.
#[test]
fn sums_that_are_kept_change_no_answer() {
    use crate::session::estimate::survival::{Table, bucket};
    use crate::session::lives::{End, Life};
    let mut f = Fixture::new(1);
    for name in ["a", "b", "c"] {
        f.stack(&["main", name]);
    }
    let lives = 600_000u64;
    for i in 0..lives {
        // Three in a microsecond; one in a hundred is old, one in ten was promoted.
        let ended_us = 2_000_000 + i / 3;
        let age_us = if i % 100 == 0 { 500_000 } else { i % 77 };
        f.session.lives.add(&Life {
            born_us: ended_us - age_us,
            ended_us,
            age: bucket(age_us * 1000),
            born_clock: i << 10,
            clock_age: 0,
            size: 1 + i % 50,
            n_samples: 1 + i % 50,
            interval: heaptop_protocol::estimate::Interval::EXACT,
            stack: (i % 3) as u32,
            thread: ThreadId(1),
            cause: Cause::Malloc,
            born_young: true,
            promoted: i % 10 == 0,
            listed: false,
            end: if i % 1000 == 7 { End::Lost } else { End::Freed },
        });
        f.session.now_ns = ended_us * 1000;
        f.session.clock.see(ended_us * 1000, i << 10);
    }
    // So far behind it that no window of rates reaches back.
    f.pass(200.0);
    let session = &f.session;
    let base = session.span().unwrap().0;
    for us in [12_000_000u64, 2_100_000, 190_000_000] {
        let then = session.then(When::At(us * 1000)).unwrap();
        let g = session.clock.at(us * 1000);
        let (mut totals, mut n_dead) = (Totals::default(), 0);
        for life in session.lives.iter().filter(|life| life.born_us <= us) {
            let w = life.weight();
            if life.born_us * 1000 > base {
                totals.allocated.add(&w);
            }
            if us < life.ended_us {
                totals.in_use.add(&w);
            }
            if (life.born_clock / NURSERY + 1) * NURSERY <= g {
                totals.minor.add(&w);
                if life.promoted {
                    totals.promoted.add(&w);
                }
            }
            n_dead += u64::from(life.end == End::Freed && life.ended_us <= us);
        }
        assert_eq!(*then.whole(), totals, "at {us}");
        let groups = 0..session.book().groups().numbers() as u32;
        let mut table = Table::default();
        let _ = then.lifetime(session, groups, &mut table);
        assert_eq!(table.n_deaths, n_dead, "at {us}");
    }
    assert!(session.lives.chunks() > 9);
    let bounds = Bounds::new(session, When::At(190_000_000_000));
    assert!(
        session.settled(&bounds, &By::Group.into()).is_some_and(|kept| kept.chunks == 8),
        "some are kept"
    );
}

/// Old blocks that a viewer finds, or that lived when a range began, say nothing of young
/// ages: 150 of them stay, and 100 that are born then die after a second.
#[test]
fn who_was_there_before_enters_lifetimes_late() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    for _ in 0..150 {
        f.birth(stack, 10);
    }
    f.pass(100.0);
    f.snapshot();
    f.pass(10.0);
    let begin = f.time_ns;
    let mut brief = Vec::new();
    for _ in 0..100 {
        f.time_ns += MS;
        brief.push(f.alloc(stack, 10));
    }
    f.pass(1.0);
    for id in brief {
        f.time_ns += MS;
        f.free(id);
    }
    f.pass(10.0);
    let (at, now) = (f.time_ns, f.time_ns + 300_000 * MS);
    f.pass(300.0);
    for when in [When::At(at), When::Range { from_ns: begin, to_ns: at }] {
        let lifetime = total(&f.session, when).lifetime;
        let Lifetime::Median { ns, samples: 100, .. } = lifetime else {
            panic!("{when:?}: {lifetime:?}")
        };
        assert!((ns / 1.1e9 - 1.0).abs() < 0.2, "{when:?}: {ns}");
    }
    // Over a time in which nobody died, nobody is known to die.
    let quiet = total(&f.session, When::Range { from_ns: at, to_ns: now }).lifetime;
    assert!(!matches!(quiet, Lifetime::Median { .. }), "{quiet:?}");
    // Before they died they lived.
    let early = total(&f.session, When::At(begin + 500 * MS)).lifetime;
    assert!(!matches!(early, Lifetime::Median { .. }), "{early:?}");
}

/// Passes of the present are made one after the other. Until a part has its turn that of
/// the answer before stands; then all are of one moment.
#[test]
fn parts_of_the_present_follow_each_other() {
    use crate::session::estimate::survival::Table;
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "a"]);
    f.pass(1.0);
    let live = |f: &mut Fixture, n: u64| {
        for _ in 0..n {
            f.time_ns += MS;
            let id = f.alloc(stack, 8);
            f.time_ns += MS;
            f.free(id);
        }
        f.time_ns += MS;
        f.alloc(stack, 8);
    };
    let ask = |f: &Fixture| {
        // Of blocks that are chosen one by one; here all are.
        let all = (true, only::Test::Size(only::Than::AtLeast, 0));
        let only = Some(Arc::new(only::Only::new("all".into(), Vec::new(), vec![all], None)));
        let then = f.session.lately(None, &Cut { by: By::Size, only });
        let mut table = Table::default();
        then.ages_of(&f.session, 0..then.classes() as u32, &mut table);
        let grown: f64 = then.trend(&f.session, None).iter().sum();
        (then.whole().allocated.n, table.n_deaths, grown)
    };
    live(&mut f, 10);
    f.pass(1.0);
    assert_eq!(ask(&f), (11, 10, 8.0));
    live(&mut f, 20);
    f.pass(1.0);
    assert_eq!(ask(&f), (32, 10, 8.0), "the rest is of before");
    live(&mut f, 5);
    f.pass(0.2);
    assert_eq!(ask(&f), (32, 30, 8.0), "as of the same moment");
    f.pass(0.2);
    assert_eq!(ask(&f), (32, 30, 16.0));
    f.pass(1.0);
    assert_eq!(ask(&f), (38, 30, 16.0));
    // Who is gone is looked at once.
    f.session.apply(Input::Connection(Connection::Ended("it is".into())));
    assert_eq!(ask(&f), (38, 35, 24.0));
}

/// The lives of a callsite that is looked at are found once, and go on; also when another one
/// is looked at, and when callstacks come to it.
#[test]
fn lives_of_a_callsite_go_on() {
    let mut f = Fixture::new(1);
    let mut stacks = vec![f.stack(&["main", "a"]), f.stack(&["main", "b"])];
    let node = |f: &Fixture, at: usize| f.session.book().stacks()[at].group();
    let (a, b) = (node(&f, 0), node(&f, 1));
    for i in 0..120u64 {
        let id = f.alloc(stacks[(i * i % stacks.len() as u64) as usize], 1 + i);
        f.time_ns += MS;
        f.free(id);
        if i == 60 {
            stacks.push(f.stack(&["main", "more", "a"]));
        }
        f.report();
        let session = &f.session;
        for group in if i % 20 < 15 { vec![a] } else { vec![b, a] } {
            let group_of = session.book().group_of();
            let members: Vec<bool> = group_of.iter().map(|of| *of == group).collect();
            let mine = |stack: u32| members[stack as usize];
            let want: Vec<_> = session.lives.of_within(0, 0, u64::MAX, mine).collect();
            assert!(i < 10 || !want.is_empty());
            let got = session.lives_of(group).expect("there are few");
            assert_eq!(got[..], want[..], "after {i}");
        }
    }
}

/// The later part of a time moves when the time has doubled, but not before lives have been
/// gone through for it, where something is known of the one before.
#[test]
fn the_later_part_moves_when_lives_have_been_gone_through() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "churns"]);
    for _ in 0..2 << 14 {
        let id = f.alloc(stack, 10);
        f.free(id);
    }
    f.report();
    let cut = By::Group.into();
    let (since, _) = f.session.span().unwrap();
    let part = |f: &Fixture| {
        let begins = f.session.later_part(since, f.session.now_ns(), &cut).unwrap();
        // As an answer does with it.
        assert!(f.session.grown_since(begins, &cut, &[0]).is_some());
        begins - since
    };
    f.pass(100.0);
    let first = part(&f);
    let length = |f: &Fixture| f.session.now_ns() - since;
    assert!((length(&f) / 4..=length(&f) / 2).contains(&first), "nothing is known of another");
    f.pass(first as f64 * 4.0 / 1e9 - 100.0);
    assert_eq!(part(&f), first, "its time has doubled");
    f.session.look_ahead_at_later_parts(1 << 12);
    assert_eq!(part(&f), first, "most of its lives are left");
    f.session.look_ahead_at_later_parts(2 << 14);
    assert_eq!(part(&f), first * 2);
}

/// An answer that is a little old is given another part of its own now and then. What was
/// made of it otherwise stays: each would cost a pass over all lives, its moment being past.
#[test]
fn parts_that_follow_cost_no_other_pass() {
    let mut f = Fixture::new(1);
    let site = f.stack(&["main", "a"]);
    for _ in 0..8 {
        f.alloc(site, 100);
        f.pass(1.0);
    }
    let (from_ns, cut) = (f.session.span().map(|span| span.0), Cut::from(By::Group));
    let ends = [from_ns.unwrap() + 1_000_000_000];
    let born = |then: &Then| then.born.lock().unwrap().clone().unwrap().1;
    // The first has no answer before it that its parts would be of.
    let _ = f.session.lately(from_ns, &cut);
    f.pass(1.5);
    let first = f.session.lately(from_ns, &cut);
    let old = first.old(&f.session, ends[0]);
    let _ = first.generations(&f.session, &ends, std::iter::empty());
    f.pass(0.5);
    let next = f.session.lately(from_ns, &cut);
    assert!(!Arc::ptr_eq(&first, &next), "another part of it was due");
    assert!(Arc::ptr_eq(&old, &next.old(&f.session, ends[0])));
    let _ = next.generations(&f.session, &ends, std::iter::empty());
    assert!(Arc::ptr_eq(&born(&first), &born(&next)));
}
