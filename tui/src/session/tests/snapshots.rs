//! Fuzzy snapshots, events in between, and lost events.

use super::*;
use heaptop_protocol::message::SnapshotBegin;
use proptest::prelude::*;

#[test]
fn a_snapshot_repairs_what_was_lost() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    let ids: Vec<BlockId> = (0..20).map(|_| f.alloc(stack, 64)).collect();
    f.time_ns += 1_000_000_000;
    for id in &ids[..15] {
        f.death(*id);
    }
    let unheard = f.birth(stack, 64).id();
    f.say(Dropped { events: 16 });
    f.time_ns += 1_000_000_000;
    f.snapshot();
    let expected: BTreeSet<BlockId> = ids[15..].iter().copied().chain([unheard]).collect();
    assert_eq!(living(&f.session), expected);
    // They died somewhere in these two seconds.
    let Lifetime::Median { ns, samples: 15, .. } = row(&f.session, "fill").figures.lifetime else {
        panic!("{:?}", row(&f.session, "fill").figures.lifetime)
    };
    assert!((0.5e9..=2.1e9).contains(&ns), "{ns}");
}

#[test]
fn a_snapshot_that_is_not_whole_sweeps_nothing() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    let id = f.alloc(stack, 64);
    let at = f.now();
    f.say(SnapshotBegin { at });
    f.say(SnapshotEnd { at, blocks: 1 });
    assert_eq!(living(&f.session), [id].into());
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Alloc,
    Free(usize),
    Promote(usize),
    List(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Alloc),
        2 => (0usize..64).prop_map(Step::Free),
        1 => (0usize..64).prop_map(Step::Promote),
        3 => (1usize..8).prop_map(Step::List),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Whatever comes between a snapshot's begin and end, and whether the table
    /// was listed before or after it: the living are those of the agent.
    #[test]
    fn snapshots_and_events_meet_in_any_order(
        before in 0usize..20,
        steps in steps(),
        unheard in any::<u64>(),
    ) {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "fill"]);
        let mut ids: Vec<BlockId> = (0..before).map(|_| f.alloc(stack, 64)).collect();
        // Some deaths were lost.
        for (i, id) in ids.iter().enumerate() {
            if unheard >> i & 1 == 1 {
                f.death(*id);
            }
        }
        f.say(Dropped { events: 1 });
        let at = f.now();
        f.say(SnapshotBegin { at });
        // The agent lists the table as it was, slowly: blocks may die before
        // their listing is sent.
        let mut list: Vec<LiveBlock> = f.listing();
        let listed = list.len() as u64;
        for step in steps {
            match step {
                Step::Alloc => ids.push(f.alloc(stack, 64)),
                Step::Free(i) if !ids.is_empty() => f.free(ids[i % ids.len()]),
                Step::Promote(i) if !ids.is_empty() => f.promote(ids[i % ids.len()]),
                Step::List(n) => {
                    let rest = list.split_off(n.min(list.len()));
                    f.say(SnapshotBlocks { blocks: std::mem::replace(&mut list, rest) });
                }
                Step::Free(_) | Step::Promote(_) => {}
            }
        }
        f.say(SnapshotBlocks { blocks: list });
        let at = f.now();
        f.say(SnapshotEnd { at, blocks: listed });
        let truth: BTreeSet<BlockId> = f.listing().iter().map(|b| b.id).collect();
        prop_assert_eq!(living(&f.session), truth);
        let young: BTreeSet<BlockId> =
            f.listing().iter().filter(|b| b.young).map(|b| b.id).collect();
        let shown: BTreeSet<BlockId> =
            f.session.live_blocks().filter(|(_, b)| b.young).map(|(id, _)| id).collect();
        prop_assert_eq!(shown, young);
    }
}
