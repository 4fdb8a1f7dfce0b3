//! A block's life as it is told: rows 3, 7, 8, 11, 28, 29.

use crate::help::{NURSERY, Told, adds_up, all_dead, block, exact, logged, prompt, turn};
use heaptop_agent::memprof::{Config, Delivery, Track};
use std::collections::HashSet;

/// Kinds of what was told of block `id`, in order.
fn of(told: &[Told], id: u64) -> Vec<&'static str> {
    told.iter()
        .filter(|t| t.id() == id)
        .map(|t| match t {
            Told::Alloc { major: false, .. } => "alloc_minor",
            Told::Alloc { .. } => "alloc_major",
            Told::Promote { .. } => "promote",
            Told::Dealloc { major: false, .. } => "dealloc_minor",
            Told::Dealloc { .. } => "dealloc_major",
        })
        .collect()
}

fn born(told: &[Told]) -> Vec<u64> {
    told.iter().filter(|t| matches!(t, Told::Alloc { .. })).map(Told::id).collect()
}

#[test]
fn row_3_alloc_promote_dealloc_in_this_order_and_once() {
    let _beside = crate::help::beside();
    for delivery in [Delivery::Prompt, Delivery::Deferred] {
        let (profile, log) = logged(exact().delivery(delivery), &[901, 9001]);
        let mut told = Vec::new();
        let mut kept = Vec::new();
        for round in 0..5 {
            for i in 0..40 {
                let small = block(901);
                if i % 2 == 0 {
                    kept.push(small);
                }
                kept.push(block(9001));
            }
            if round == 3 {
                kept.clear();
            }
            turn();
            profile.poll();
            told.extend(log.take());
        }
        kept.clear();
        all_dead(&profile);
        told.extend(log.take());
        let mut lives = [0; 3];
        for id in born(&told) {
            let life = of(&told, id);
            let at = match life[..] {
                ["alloc_minor", "promote", "dealloc_major"] => 0,
                ["alloc_minor", "dealloc_minor"] => 1,
                ["alloc_major", "dealloc_major"] => 2,
                _ => panic!("{delivery:?}: {life:?}"),
            };
            lives[at] += 1;
        }
        // Most of what was kept has survived a cycle, and what was not has not; of a
        // block that is born just before a cycle turns neither is certain.
        assert!(lives[0] >= 75 && lives[1] >= 95 && lives[2] == 200, "{delivery:?}: {lives:?}");
        assert_eq!(lives[0] + lives[1], 200);
        adds_up(&profile.stats());
        assert_eq!(profile.stats().live, 0);
    }
}

#[inline(never)]
fn birthplace() -> Vec<u8> {
    std::hint::black_box(block(1717))
}

#[test]
fn row_7_deferred_callbacks_come_in_poll_with_the_callstack_of_the_allocation() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(exact(), &[1717]);
    let kept = birthplace();
    drop(birthplace());
    assert_eq!(log.take_ends().len(), 0, "nothing before the poll");
    profile.poll();
    let told = log.take_ends();
    assert_eq!(told.len(), 3, "{told:?}");
    let start = birthplace as fn() -> Vec<u8> as usize;
    for t in &told {
        if let Told::Alloc { frames, .. } = t {
            assert!(frames.iter().any(|pc| (start..start + 512).contains(pc)), "{frames:x?}");
        }
    }
    drop(kept);
    drop(profile);
    let (_profile, log) = logged(prompt(), &[1717]);
    drop(birthplace());
    assert_eq!(log.take_ends().len(), 2, "prompt ones come at once");
}

#[test]
fn row_7_a_profile_can_own_a_thread() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(exact().own_thread(), &[1718]);
    drop(block(1718));
    let mut told = Vec::new();
    crate::help::until("the profile's thread polls", || {
        told.extend(log.take_ends());
        told.len() == 2
    });
    let thread = match &told[0] {
        Told::Alloc { thread, .. } => *thread,
        other => panic!("{other:?}"),
    };
    assert_ne!(thread, std::thread::current().id());
    adds_up(&profile.stats());
}

#[test]
fn row_8_the_allocation_callback_runs_on_the_thread_that_allocates() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(prompt(), &[1818]);
    let (own, blocks) = heaptop_agent::spawn(|| {
        (std::thread::current().id(), (0..20).map(|_| block(1818)).collect::<Vec<_>>())
    })
    .join()
    .unwrap();
    drop(blocks);
    all_dead(&profile);
    let told = log.take_ends();
    assert_eq!(told.len(), 40);
    for t in told {
        match t {
            Told::Alloc { thread, .. } => assert_eq!(thread, own),
            // May run on any; here it does but where another thread promotes just then.
            Told::Dealloc { .. } | Told::Promote { .. } => {}
        }
    }
}

#[test]
fn row_11_a_turn_looks_at_the_young_and_not_at_all() {
    let _beside = crate::help::beside();
    let (profile, _log) = logged(prompt().callstack_size(0), &[1111]);
    let kept: Vec<_> = (0..20_000).map(|_| block(1111)).collect();
    // All are old after some turns.
    (0..4).for_each(|_| turn());
    while profile.poll() > 0 {}
    let before = profile.stats();
    assert!(before.promoted >= 19_000, "{before:?}");
    (0..20).for_each(|_| turn());
    profile.poll();
    let looked_at = profile.stats().looked_at - before.looked_at;
    assert!(looked_at < 2000, "{looked_at} looks at twenty turns");
    drop(kept);
    adds_up(&profile.stats());
}

#[test]
fn row_28_what_is_tracked_is_the_clients_choice() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(exact().track(Track::PromotedAndMajor), &[1302, 9302]);
    let brief: Vec<_> = (0..30).map(|_| block(1302)).collect();
    drop(brief);
    profile.poll();
    let early = log.take_ends().len();
    let kept: Vec<_> = (0..30).map(|_| block(1302)).collect();
    let large = block(9302);
    (0..2).for_each(|_| turn());
    profile.poll();
    drop((kept, large));
    profile.poll();
    let told = log.take();
    let ids = born(&told);
    // A cycle may have turned within the first thirty: a birth and a death of each.
    assert!(early <= 60 && ids.len() == 31, "{early} {}", ids.len());
    for id in ids {
        assert_eq!(of(&told, id), ["alloc_major", "dealloc_major"]);
    }
    adds_up(&profile.stats());
    drop(profile);

    let (profile, log) = logged(exact().track(Track::Allocations), &[1302]);
    drop(block(1302));
    let kept = block(1302);
    turn();
    profile.poll();
    drop(kept);
    profile.poll();
    let told = log.take();
    assert_eq!((told.len(), born(&told).len()), (2, 2), "births alone: {told:?}");
    assert_eq!(log.dropped(), 2, "what was returned is dropped");
    assert_eq!(profile.stats().tracked, 0);
    adds_up(&profile.stats());
}

#[test]
fn row_29_a_block_has_an_identity_of_ours() {
    let _beside = crate::help::beside();
    let (profile, log) = logged(prompt(), &[2901]);
    let mut seen = HashSet::new();
    // The allocator hands out the same address again and again.
    for _ in 0..100 {
        drop(block(2901));
    }
    for t in log.take() {
        if matches!(t, Told::Alloc { .. }) {
            assert!(seen.insert(t.id()), "an identity is never used twice");
        }
    }
    assert_eq!(seen.len(), 100);
    drop(profile);
    // A reallocation is a death, and a birth that names it.
    use heaptop_agent::memprof::{Allocation, Cause, Tracker, start};
    use std::sync::{Arc, Mutex};
    type Births = Arc<Mutex<Vec<(u64, u64, Option<u64>, Cause)>>>;
    struct Chain(Births);
    impl Tracker for Chain {
        type Minor = ();
        type Major = ();
        fn alloc_major(&self, b: &Allocation<'_>) -> Option<()> {
            self.0.lock().unwrap().push((b.id, b.size, b.replaces, b.cause));
            Some(())
        }
    }
    let births: Births = Arc::default();
    let profile = start(exact(), Chain(births.clone())).unwrap();
    let mut grows = block(2 * NURSERY / 100);
    grows.reserve_exact(4 * NURSERY / 100);
    profile.poll();
    drop(grows);
    let births = births.lock().unwrap();
    let find = |size: usize| births.iter().find(|b| b.1 == size as u64).copied();
    let (first, second) = (find(2 * NURSERY / 100).unwrap(), find(4 * NURSERY / 100 + 1).unwrap());
    assert_eq!((second.2, second.3), (Some(first.0), Cause::Realloc));
    let _ = Config::lambda(1.0);
}
