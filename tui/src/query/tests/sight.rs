//! What is said where not all was seen.

use super::*;
use heaptop_protocol::message::Sampling;

/// The estimates of a table's total and rows.
fn estimates(table: &Table) -> Vec<Estimate> {
    let all = |f: &Figures| {
        [
            f.in_use_bytes,
            f.in_use_objects,
            f.allocated_bytes,
            f.allocated_objects,
            f.allocated_rate,
            f.object_rate,
        ]
    };
    let rows = table.rows.iter().flat_map(|row| all(&row.figures));
    all(&table.total).into_iter().chain(rows).collect()
}

#[test]
fn lost_births_leave_one_side_of_every_sum() {
    for interval in [1, 4096] {
        let mut f = Fixture::new(interval);
        let (one, other) = (f.stack(&["main", "one"]), f.stack(&["main", "other"]));
        f.report();
        for _ in 0..50 {
            f.alloc(one, 1000);
            f.alloc(other, 1200);
        }
        f.pass_slowly(2.0);
        let sums = |s: &Session| {
            let table = callsites(s, &Question::default());
            assert_eq!(names(&table), ["other", "one"]);
            let tree =
                callers(s, When::Now, &[], Direction::Callees, Metric::AllocatedBytes, "").unwrap();
            let mut sums = estimates(&table);
            sums.extend([s.in_use(), s.allocated_rate(), s.peak().unwrap().in_use, tree.cum]);
            sums
        };
        let one_sided = |e: &Estimate| matches!(e, Estimate::AtLeast { low, .. } if *low > 0.0);
        assert!(!sums(&f.session).iter().any(one_sided), "R = {interval}");
        f.losses.births = 1;
        f.report();
        let sums = sums(&f.session);
        assert!(sums.iter().all(one_sided), "R = {interval}: {sums:?}");
    }
}

#[test]
fn nothing_seen_is_a_bound_only_where_all_was_looked_at() {
    let known = |f: &Fixture| {
        let total = callsites(&f.session, &Question::default()).total;
        [f.session.in_use(), total.in_use_bytes, total.allocated_bytes]
    };
    for interval in [1, 4096] {
        let mut f = Fixture::new(interval);
        assert!(known(&f).iter().all(|e| *e != Estimate::Unknown));
        f.losses.births = 1;
        f.report();
        assert_eq!(known(&f), [Estimate::Unknown; 3], "births were lost");
        f.losses.births = 0;
        f.sampling = Sampling::Paused;
        f.report();
        assert_eq!(known(&f), [Estimate::Unknown; 3], "it is paused");
        f.sampling = Sampling::On;
        f.report();
        assert_eq!(known(&f), [Estimate::Unknown; 3], "it was paused");
    }
}

/// What goes unseen later takes nothing from what was known of a moment, or of a range that
/// was over.
#[test]
fn what_goes_unseen_bounds_no_moment_before_it() {
    let pause = |f: &mut Fixture| f.sampling = Sampling::Paused;
    let lose = |f: &mut Fixture| f.losses.births += 3;
    for (name, unsee) in [("a pause", pause as fn(&mut Fixture)), ("lost births", lose)] {
        let mut f = Fixture::new(4096);
        let stack = f.stack(&["main", "work"]);
        let work = |f: &mut Fixture| {
            for _ in 0..24 {
                (0..10).for_each(|_| _ = f.alloc(stack, 1000));
                f.pass(0.5);
            }
        };
        work(&mut f);
        let before = f.time_ns;
        f.pass(0.5);
        let start = f.session.span().unwrap().0;
        let question = |when| Question { when, ..Question::default() };
        let of = |f: &Fixture, when| estimates(&callsites(&f.session, &question(when)));
        let growth = |f: &Fixture, when| callsites(&f.session, &question(when)).total.growth;
        let range = |from_ns, to_ns| When::Range { from_ns, to_ns };
        let moments = [When::At(before), range(start, before), range(start + 5, before - 5)];
        let known = moments.map(|when| (of(&f, when), growth(&f, when)));
        let peak = f.session.peak();
        let bounded = |e: &Estimate| matches!(e, Estimate::AtLeast { .. } | Estimate::Unknown);
        assert!(!known.iter().flat_map(|(sums, _)| sums).any(bounded), "{known:?}");

        unsee(&mut f);
        f.pass(1.0);
        f.sampling = Sampling::On;
        f.pass(1.0);
        let after = f.time_ns;
        work(&mut f);
        assert_eq!(moments.map(|when| (of(&f, when), growth(&f, when))), known, "{name}");
        let now = f.time_ns;
        let table = |when| callsites(&f.session, &question(when)).total;
        for when in [When::Now, When::At(now), range(start, now), range(before, after)] {
            assert!(bounded(&table(when).in_use_bytes), "{name}, {when:?}");
            assert!(bounded(&table(when).allocated_bytes), "{name}, {when:?}");
        }
        // What was born after it was seen, and who lives may have been born in it.
        let later = table(range(after, now));
        assert!(bounded(&later.in_use_bytes), "{name}");
        assert!(matches!(later.allocated_bytes, Estimate::Interval { .. }), "{name}: {later:?}");
        assert!(matches!(later.allocated_rate, Estimate::Interval { .. }), "{name}: {later:?}");
        assert!(bounded(&f.session.in_use()) && bounded(&f.session.peak().unwrap().in_use));
        assert_ne!(f.session.peak(), peak);
        let until = |to_ns| f.session.peak_until(to_ns).map(|peak| peak.in_use);
        assert!(until(before).is_none() && until(now).is_some_and(|peak| bounded(&peak)));
    }
}

/// A range in which R was 1 is exact in what was born in it, whatever was sampled before. What
/// lived before it may still have been unseen.
#[test]
fn a_range_knows_the_interval_of_its_births_alone() {
    let mut f = Fixture::new(4096);
    let stack = f.stack(&["main", "fill"]);
    f.alloc(stack, 64);
    f.pass_slowly(3.0);
    f.interval = heaptop_protocol::estimate::Interval::EXACT;
    f.pass_slowly(5.0);
    let from_ns = f.session.now_ns();
    f.pass_slowly(1.0);
    f.alloc(stack, 50);
    f.pass(0.5);
    let when = When::Range { from_ns, to_ns: f.session.now_ns() };
    let table = callsites(&f.session, &Question { when, ..Question::default() });
    let figures = &table.rows[0].figures;
    assert_eq!(figures.allocated_bytes, Estimate::Exact { value: 50.0 });
    assert!(matches!(figures.in_use_bytes, Estimate::Interval { .. }), "{figures:?}");
    assert!(matches!(figures.growth, Change::Interval { .. }), "{figures:?}");
}
