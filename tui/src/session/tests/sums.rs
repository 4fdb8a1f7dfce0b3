//! Sums that are kept against sums that are made anew.

use super::*;
use crate::query::Column;

/// What the members of each group add up to, and the whole.
fn check(session: &Session) {
    let (groups, numbers) = (session.book().groups(), session.numbers());
    let mut whole = Totals::default();
    let (mut stacks, mut count) = (0, 0);
    for (at, group) in groups.iter() {
        let mut sum = Totals::default();
        for &stack in group.stacks() {
            sum.merge(&numbers[stack as usize].totals);
            assert_eq!(session.book().stacks()[stack as usize].group(), at);
        }
        assert_eq!(session.group_totals(at), &sum, "group {at}");
        whole.merge(&sum);
        stacks += group.stacks().len();
        count += 1;
    }
    assert_eq!(session.whole(), whole);
    assert_eq!((stacks, count), (session.book().stacks().len(), groups.count()));
    // One text alone: the answer to the last one is kept.
    let has = |node: &u32| session.book().nodes()[*node as usize].label.function.contains("inner5");
    let stacks = session.book().stacks().iter();
    let found: Vec<bool> = stacks.map(|stack| stack.path.iter().any(has)).collect();
    assert_eq!(*session.book().containing("INNER5"), found);
}

#[test]
fn a_text_is_found_in_names_that_have_changed() {
    let mut f = Fixture::new(1);
    f.bare_stack(&["main", "fill"]);
    let found =
        |f: &Fixture| ["orders+", "moved+"].map(|text| f.session.book().containing(text)[0]);
    assert_eq!(found(&f), [true, false]);
    let module = f.session.modules()[&ModuleId(1)].clone();
    f.say(heaptop_protocol::callstack::Module { path: "/opt/moved".into(), ..module });
    assert_eq!(found(&f), [false, true]);
}

/// Exact at R = 1, whatever was asked in between: births, deaths, new stacks, and
/// names and definitions that move stacks from group to group.
#[test]
fn kept_sums_are_those_of_their_members() {
    let mut f = Fixture::new(1);
    let mut random = 1u64;
    let mut roll = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    // Their innermost functions are fewer: names put some of them together.
    let site = |n: usize| format!("s{n} > inner{}", n % 70);
    let (mut stacks, mut blocks) = (Vec::new(), Vec::new());
    for step in 0..1500 {
        match roll(9) {
            8 if !stacks.is_empty() => {
                let id = stacks[roll(stacks.len())];
                let frames = vec![f.frame("main"), f.frame(&site(roll(90)))];
                f.say(Callstack { id, frames, end: End::Complete });
            }
            0..3 => {
                // Most of them in one group, which then has several runs.
                let site = if roll(3) > 0 { "hub".to_owned() } else { site(roll(90)) };
                let caller = format!("caller{}", roll(1000));
                stacks.push(f.bare_stack(&["main", &caller, &site]));
            }
            3..5 if !stacks.is_empty() => {
                let stack = stacks[roll(stacks.len())];
                blocks.push(f.alloc(stack, 1 << roll(12)));
            }
            5 if !blocks.is_empty() => {
                let block = blocks.swap_remove(roll(blocks.len()));
                if roll(2) == 0 {
                    f.promote(block);
                }
                f.free(block);
            }
            6 => f.name(&[&site(roll(90)), &format!("caller{}", roll(1000))]),
            _ => f.pass(0.1),
        }
        if step % 50 == 20 {
            f.name(&["hub"]);
        }
        if step % 3 == 0 {
            check(&f.session);
        }
    }
    f.report();
    check(&f.session);
    assert!(f.session.book().groups().iter().any(|(_, group)| group.stacks().len() > 200));
    assert!(f.session.book().groups().count() > 64);
}

/// The sum over everything is kept apart from the rows; a filter that takes
/// every callsite but one adds rows up.
#[test]
fn the_whole_is_what_rows_add_up_to() {
    let mut f = Fixture::new(1);
    let mut living = std::collections::VecDeque::new();
    for step in 0..200u64 {
        let stack = f.stack(&["main", "kept", &format!("site{}", step * 7 % 40)]);
        living.push_back(f.alloc(stack, 64));
        if step % 3 > 0 {
            f.free(living.pop_front().unwrap());
        }
        f.pass(0.2);
    }
    f.stack(&["main", "empty"]);
    f.report();
    let of = |filter: &str| {
        let filter = filter.into();
        query::callsites(
            &f.session,
            &Question { filter, sort: Column::Trend, ..Question::default() },
        )
    };
    let (all, some) = (of(""), of("kept"));
    assert_eq!((all.len, some.len), (41, 40));
    let (Lifetime::Median { ns, .. }, Lifetime::Median { ns: again, .. }) =
        (all.total.lifetime, some.total.lifetime)
    else {
        panic!("{all:?}")
    };
    // The living are put together differently, within the curve's resolution.
    assert!((ns / again - 1.0).abs() < 0.1, "{ns} is not {again}");
    assert_eq!(
        all.total,
        query::Figures { lifetime: all.total.lifetime, mean: all.total.mean, ..some.total }
    );
    let sum = |of: fn(&Row) -> Estimate| -> f64 {
        let value = |row: &Row| match of(row) {
            Estimate::Exact { value } => value,
            other => panic!("{other:?}"),
        };
        all.rows.iter().map(value).sum()
    };
    assert_eq!(all.total.in_use_bytes, exact(sum(|row| row.figures.in_use_bytes)));
    let rate = sum(|row| row.figures.allocated_rate);
    let Estimate::Exact { value } = all.total.allocated_rate else { panic!("{all:?}") };
    assert!((value - rate).abs() < 1e-9 * rate, "{value} is not {rate}");
    for step in 0..all.total.trend.len() {
        let rows: f64 = all.rows.iter().map(|row| row.figures.trend[step]).sum();
        assert_eq!(all.total.trend[step], rows);
    }
}

/// Lifetimes move without events; what is kept of them is as good as their resolution.
#[test]
fn lifetimes_of_groups_grow_older() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "cache"]);
    for _ in 0..20 {
        f.alloc(stack, 64);
    }
    let start = f.time_ns;
    for _ in 0..100 {
        f.pass(1.7);
        let age = (f.time_ns - start) as f64;
        let figures = row(&f.session, "cache").figures;
        let Lifetime::Beyond { ns, samples: 20 } = figures.lifetime else { panic!("{figures:?}") };
        assert!((0.88..1.26).contains(&(ns / age)), "{ns} at the age of {age}");
    }
    let more = f.alloc(stack, 64);
    let Lifetime::Beyond { samples, .. } = row(&f.session, "cache").figures.lifetime else {
        panic!("{:?}", row(&f.session, "cache"))
    };
    assert_eq!(samples, 21, "events are seen at once");
    f.free(more);
}
