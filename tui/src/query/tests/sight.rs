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
