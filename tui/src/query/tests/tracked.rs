//! What is unknown where the agent tells of some blocks only.

use super::*;
use crate::session::figures::Followed;
use heaptop_protocol::message::Track;

/// Blocks that live, die young, and are promoted, of an agent that says that it tells of
/// these. What it says of others is no matter: it is not to be believed.
fn told(track: Track) -> Fixture {
    let mut f = Fixture::unattached(1);
    f.track = track;
    f.attach();
    let stack = f.stack(&["main", "work"]);
    let little = f.stack(&["main", "little"]);
    f.alloc(little, 50);
    f.report();
    for round in 0..40 {
        let (kept, brief) = (f.alloc(stack, 100), f.alloc(stack, 200));
        f.pass(0.5);
        f.free(brief);
        f.clock += 2 << 20;
        if round % 2 == 0 {
            f.promote(kept);
        }
    }
    f.pass(2.0);
    f
}

fn is(estimate: Estimate) -> bool {
    estimate != Estimate::Unknown
}

/// What is known: in use, allocated, the promoted share, lives.
fn known(f: &Fixture, when: When) -> [bool; 4] {
    let question = Question { when, ..Question::default() };
    let table = callsites(&f.session, &question);
    let row = &table.rows.first().expect("there is a row").figures;
    assert_eq!(names(&table), ["work", "little"], "in order of what is known");
    for one in [row, &table.total] {
        assert_eq!(is(one.in_use_bytes), is(one.in_use_objects));
        assert_eq!(is(one.in_use_bytes), !one.trend.is_empty());
        assert_eq!(is(one.allocated_bytes), is(one.allocated_objects));
        assert_eq!(is(one.allocated_bytes), is(one.allocated_rate));
        assert_eq!(one.promoted == Ratio::Unknown, one.short_lived == Ratio::Unknown);
        assert_eq!(one.lifetime == Lifetime::Unknown, one.mean == Followed::Unknown);
    }
    [
        is(row.in_use_bytes),
        is(row.allocated_bytes),
        row.promoted != Ratio::Unknown,
        row.lifetime != Lifetime::Unknown,
    ]
}

#[test]
fn what_is_not_told_of_is_unknown_everywhere() {
    for (track, wanted) in [
        (Track::All, [true; 4]),
        (Track::Promoted, [true, false, false, false]),
        (Track::Allocations, [false, true, false, false]),
    ] {
        let [in_use, allocated, lives, _] = wanted;
        let f = told(track);
        let s = &f.session;
        let past = When::At(s.now_ns() - 1_000_000_000);
        for when in [When::Now, past] {
            let asked = format!("{track:?} {when:?}");
            assert_eq!(known(&f, when), wanted, "{asked}");
            let threads = threads(s, when, "");
            let thread = threads.first().expect("a thread has allocated");
            assert_eq!(is(thread.in_use_bytes), in_use, "{asked}");
            assert_eq!(is(thread.allocated_bytes), allocated, "{asked}");
            assert_eq!(is(thread.allocated_rate), allocated, "{asked}");
            assert_eq!(is(thread.freed_elsewhere_bytes), lives, "{asked}");
            let promotions = promotion(s, "", when, 10);
            let figures = &promotions.rows.first().expect("something was promoted").figures;
            assert_eq!((is(figures.promoted_bytes), is(figures.minor_bytes)), (in_use, lives));
            assert_eq!(is(figures.promoted_rate), in_use, "{asked}");
            assert_eq!(survival(s, None, when, "").is_some(), lives, "{asked}");
            assert_eq!(old(s, when, "").is_some(), in_use, "{asked}");
        }
        // The header's, the curve's.
        assert_eq!((is(s.in_use()), is(s.allocated_rate())), (in_use, allocated));
        assert_eq!((s.promotion() != Ratio::Unknown, s.peak().is_some()), (lives, in_use));
        let last = *curve(s).points.last().expect("there is a curve");
        assert_eq!(
            (last.in_use_bytes.is_finite(), last.promoted_bytes.is_some()),
            (in_use, in_use)
        );
        assert_eq!(last.allocated_bytes.is_some(), allocated);
        assert_eq!(s.notices().len(), usize::from(track != Track::All), "it is said");
        let key = callsites(s, &Question::default()).rows[0].key;
        let closely = details(s, When::Now, key, "", None);
        assert_eq!(closely.is_some(), in_use);
        if let Some(closely) = closely {
            assert_eq!((closely.deaths > 0, closely.ages.is_empty()), (lives, !lives));
        }
    }
}
