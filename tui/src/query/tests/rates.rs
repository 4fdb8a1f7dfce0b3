//! Rates, and what they are over.

use super::*;
use crate::query::Grouping;
use crate::session::{Connection, Input};

const S: u64 = 1_000_000_000;

/// What is allocated per second by all, whoever says it: the header, callsites, sizes and
/// threads as rows, single threads, and, of present and past alike, what is promoted.
fn rates(f: &Fixture, when: When) -> [Estimate; 6] {
    let by = |group| {
        let question = Question { when, group, ..Question::default() };
        callsites(&f.session, &question).total.allocated_rate
    };
    let threads = threads(&f.session, when, "");
    let [thread] = &threads[..] else { panic!("{threads:?}") };
    [
        if when == When::Now {
            f.session.allocated_rate()
        } else {
            whole(&f.session, when).allocated_rate
        },
        by(Grouping::Callsite),
        by(Grouping::Size),
        by(Grouping::Thread),
        thread.allocated_rate,
        promotion(&f.session, "", when, 9).total.promoted_rate,
    ]
}

fn exact(value: f64) -> [Estimate; 6] {
    let mut all = [Estimate::Exact { value }; 6];
    all[5] = Estimate::Exact { value: 0.0 };
    all
}

/// What is shorter than a rate needs while more may come is all that there is of a file, and
/// of a range that was chosen.
#[test]
fn what_is_short_has_rates_where_it_is_all_there_is() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "work"]);
    f.time_ns += S / 16;
    let id = f.alloc(stack, 1000);
    f.pass(1.0 / 16.0);
    let now = f.time_ns;
    let unknown = [Estimate::Unknown; 6];
    assert_eq!([When::Now, When::At(now)].map(|when| rates(&f, when)), [unknown; 2]);
    let range = When::Range { from_ns: now - S / 10, to_ns: now };
    assert_eq!(rates(&f, range), exact(10_000.0));
    let nothing = When::Range { from_ns: now, to_ns: now };
    assert_eq!(whole(&f.session, nothing).allocated_rate, Estimate::Unknown);
    f.session.apply(Input::Connection(Connection::Ended("the trace is over".into())));
    assert_eq!(rates(&f, When::Now), exact(8000.0));
    assert_eq!(rates(&f, When::At(now)), exact(8000.0));
    assert!(f.session.samples_per_second().is_some());
    f.free(id);
}

/// The interval is that of what was sampled in the time.
#[test]
fn the_interval_of_a_short_rate_is_that_of_its_bytes() {
    let mut f = Fixture::new(4096);
    let stack = f.stack(&["main", "work"]);
    f.time_ns += S / 16;
    (0..100).for_each(|_| _ = f.alloc(stack, 1000));
    f.pass(1.0 / 16.0);
    f.session.apply(Input::Connection(Connection::Ended("the trace is over".into())));
    let total = callsites(&f.session, &Question::default()).total;
    let Estimate::Interval { value, low, high, samples: 100 } = total.allocated_bytes else {
        panic!("{total:?}")
    };
    let [value, low, high] = [value, low, high].map(|bytes| bytes * 8.0);
    let rate = Estimate::Interval { value, low, high, samples: 100 };
    assert_eq!(total.allocated_rate, rate);
    assert_eq!(f.session.allocated_rate(), rate);
}

/// The agent's totals are of some ten seconds, to a step. So is what blocks say of the same
/// moment.
#[test]
fn the_present_has_one_window_of_rates() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "work"]);
    for i in 0..150u64 {
        // Not as of a report.
        f.time_ns += S / 100;
        // More and more: of another window it would be another rate.
        let id = f.alloc(stack, 4000 + 100 * i);
        f.free(id);
        f.pass(0.12);
        let now = f.time_ns;
        // Sizes and threads are looked at once a second.
        if i % 8 == 7 {
            let all = [When::Now, When::At(now)].map(|when| rates(&f, when));
            let Estimate::Exact { value } = all[0][0] else { panic!("{all:?}") };
            assert_eq!(all, [exact(value); 2], "at {now}");
        }
    }
    // What came since totals were told is in no column.
    f.time_ns += 2 * S;
    let before = f.session.allocated_rate();
    f.alloc(stack, 1_000_000);
    for when in [When::Now, When::At(f.time_ns)] {
        assert_eq!(&rates(&f, when)[..5], [before; 5], "{when:?}");
    }
    // Before the present it is ten seconds.
    f.pass(1.0);
    let at = f.time_ns - S;
    let range = When::Range { from_ns: at - 10 * S, to_ns: at };
    assert_eq!(rates(&f, When::At(at))[..5], rates(&f, range)[..5]);
}
