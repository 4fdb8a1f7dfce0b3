//! Peers that lie.

use super::*;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::Batch;
use heaptop_protocol::totals::Moments;
use proptest::prelude::*;

#[test]
fn numbers_from_nowhere_break_nothing() {
    let mut f = Fixture::new(1 << 19);
    let stack = f.stack(&["main", "\u{1b}]0;title\u{7}"]);
    let evil = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX, 1e-320];
    let at = Moment { seq: u64::MAX, time_ns: u64::MAX, clock: u64::MAX };
    for sum in evil {
        for variance in evil {
            let m = Moments { sum, sum_sq: variance, variance, largest: sum };
            let t = Total {
                n: u64::MAX,
                bytes: m,
                objects: m,
                smallest_size: u64::MAX,
                largest_size: 0,
            };
            let totals = Totals { in_use: t, allocated: t, minor: t, promoted: t };
            let stacks = [stack, StackId(u32::MAX), StackId::OTHER]
                .map(|stack| StackTotals { stack, totals })
                .to_vec();
            f.say(TotalsUpdate { at, stacks });
            let status = Status { at, totals, ..*f.session.status().unwrap() };
            f.say(status);
            for row in table(&f.session).rows {
                if let Estimate::Interval { value, low, high, .. } = row.figures.in_use_bytes {
                    assert!(low <= value && value <= high && high.is_finite(), "{row:?}");
                }
                assert!(row.figures.trend.iter().all(|v| v.is_finite()));
            }
            assert_ne!(f.session.in_use(), Estimate::Unknown);
            if let Ratio::Interval { value, low, high, .. } = f.session.promotion() {
                assert!(0.0 <= low && low <= value && value <= high && high <= 1.0);
            }
        }
    }
    let block = LiveBlock {
        id: BlockId(u64::MAX),
        born_ns: u64::MAX,
        born_clock: u64::MAX,
        thread: ThreadId(u32::MAX),
        stack: StackId(u32::MAX - 1),
        size: u64::MAX,
        n_samples: 0,
        interval: Interval::DEFAULT,
        cause: heaptop_protocol::event::Cause::Malloc,
        address: u64::MAX,
        young: true,
        born_young: false,
    };
    let begin = Moment { seq: 0, time_ns: 0, clock: 0 };
    f.say(SnapshotBegin { at: begin });
    f.say(SnapshotBlocks {
        blocks: vec![block, LiveBlock { size: 0, born_ns: 0, ..block }, block],
    });
    f.say(SnapshotEnd { at: begin, blocks: 3 });
    let names: Vec<String> =
        table(&f.session).rows.iter().map(|r| r.label.function.to_string()).collect();
    assert!(names.contains(&"\u{fffd}]0;title\u{fffd}".to_owned()), "{names:?}");
}

proptest! {
    #[test]
    fn batches_of_any_events_break_nothing(
        events in proptest::collection::vec((0u64..40, 0u8..3, any::<u64>(), any::<u64>()), 0..200),
    ) {
        use heaptop_protocol::event::{Alloc, Cause, Dealloc, Promote};
        let mut session = Session::new();
        let events: Vec<Event> = events
            .into_iter()
            .map(|(id, kind, time_ns, size)| {
                let at = Moment { seq: id, time_ns, clock: size };
                match kind {
                    0 => Event::Alloc(Alloc {
                        at,
                        thread: ThreadId(0),
                        stack: StackId(size as u32 % 5),
                        size,
                        n_samples: 1,
                        interval: Interval::DEFAULT,
                        cause: Cause::Malloc,
                        address: 0,
                        young: true,
                        replaces: None,
                    }),
                    1 => Event::Promote(Promote { at, id: BlockId(size % 40) }),
                    _ => Event::Dealloc(Dealloc {
                        at,
                        id: BlockId(size % 40),
                        thread: ThreadId(0),
                        young: false,
                    }),
                }
            })
            .collect();
        session.apply(Input::Agent(Batch::pack(&events).into()));
        prop_assert!(session.live_block_count() <= 40);
        table(&session);
    }
}
