//! Growth: from when on, whether it goes on, and what of it is known where sampling was off.

use super::*;
use crate::query::details::Hint;
use crate::query::{LeakList, Leaks, details, last_mark, limits};
use crate::session::figures::Change;
use heaptop_protocol::message::{Mark, Sampling};

fn leaks(f: &Fixture, when: When, from_ns: Option<u64>) -> Leaks {
    LeakList::ask(&f.session, when, from_ns, "").unwrap().rows(0..9)
}

/// A block a second for so many seconds.
fn grow(f: &mut Fixture, seconds: usize) {
    let stack = f.stack(&["main", "grow"]);
    for _ in 0..seconds {
        f.alloc(stack, 1000);
        f.pass(1.0);
    }
}

/// What has filled is no leak: there is evidence that it grew and none that it goes on, so
/// nothing is foretold. Of a leak the speed is that of the later part.
#[test]
fn what_has_filled_does_not_grow_on() {
    let mut f = Fixture::new(1);
    f.pass(1.0);
    grow(&mut f, 20);
    let growing = leaks(&f, When::Now, None);
    assert!(growing.total.grew && growing.quiet_ns().is_none(), "{growing:?}");
    let told = limits(&growing, Some(1 << 20), None);
    assert!(told[0].forecast.is_some(), "{told:?}");
    let hint = |f: &Fixture| {
        let closely = details(&f.session, When::Now, key(&f.session, "grow"), "", None).unwrap();
        closely.hints.into_iter().find_map(|hint| match hint {
            Hint::Grows { goes_on, .. } => Some(goes_on),
            _ => None,
        })
    };
    assert_eq!(hint(&f), Some(true));
    f.pass(60.0);
    let filled = leaks(&f, When::Now, None);
    let quiet = filled.quiet_ns().expect("nothing came") as f64 / 1e9;
    assert!(filled.total.grew && (40.0..81.0).contains(&quiet), "{quiet}");
    assert_eq!(limits(&filled, Some(1 << 20), None)[0].forecast, None);
    assert_eq!(hint(&f), Some(false));
    // A few seconds are no trend.
    let mut f = Fixture::new(1);
    f.pass(1.0);
    grow(&mut f, 5);
    let brief = leaks(&f, When::Now, None);
    assert!(brief.total.grew, "{brief:?}");
    assert_eq!(limits(&brief, Some(1 << 20), None)[0].forecast, None);
}

/// No mark is the base of a past that is before it.
#[test]
fn growth_of_the_past_is_from_a_mark_before_it() {
    let mut f = Fixture::new(1);
    let mut marks = Vec::new();
    for label in ["one", "two"] {
        grow(&mut f, 10);
        let at = f.now();
        f.say(Mark { at, label: label.into() });
        marks.push(at.time_ns);
    }
    grow(&mut f, 10);
    let last = |until| last_mark(&f.session, until).map(|mark| mark.label.as_str());
    assert_eq!(
        [last(u64::MAX), last(marks[1]), last(marks[1] - 1), last(marks[0] - 1)],
        [Some("two"), Some("two"), Some("one"), None]
    );
}

/// Blocks that came while sampling was off are in no set: before its beginning they go
/// unseen, and within it they are missing.
#[test]
fn growth_is_bounded_where_sampling_was_off() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "grow"]);
    let early = f.alloc(stack, 500);
    f.pass(5.0);
    let before = f.time_ns;
    f.sampling = Sampling::Paused;
    f.pass(5.0);
    f.sampling = Sampling::On;
    f.pass(1.0);
    let after = f.time_ns;
    f.pass(1.0);
    grow(&mut f, 10);
    f.free(early);
    f.pass(1.0);
    let growth = |from| leaks(&f, When::Now, Some(from)).rows[0].figures.growth;
    assert_eq!(growth(before), Change::AtLeast { low: 9500.0, samples: 11 });
    assert_eq!(growth(after), Change::AtMost { high: 9500.0, samples: 11 });
    let grew = leaks(&f, When::Now, Some(after)).rows[0].figures.grew;
    assert!(!grew, "others may have gone");
}
