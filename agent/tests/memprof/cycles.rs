//! Starting and stopping ten thousand times under load: nothing is lost, nothing leaks.

use crate::help::{adds_up, block, until};
use heaptop_agent::memprof::{Allocation, Config, Delivery, Scope, Tracker, start};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};

/// Counts what it has returned, and what of it is gone.
struct Balance(Arc<AtomicI64>);

struct Held(Arc<AtomicI64>);

impl Held {
    fn new(balance: &Arc<AtomicI64>) -> Self {
        balance.fetch_add(1, SeqCst);
        Self(balance.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Tracker for Balance {
    type Minor = Held;
    type Major = Held;
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<Held> {
        (b.size % 3 != 0).then(|| Held::new(&self.0))
    }
    fn alloc_major(&self, _: &Allocation<'_>) -> Option<Held> {
        Some(Held::new(&self.0))
    }
    fn promote(&self, held: Held) -> Option<Held> {
        Some(held)
    }
}

const CYCLES: usize = 10_000;

#[test]
fn ten_thousand_cycles_lose_and_leak_nothing() {
    let _alone = crate::help::alone();
    let over = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..3)
        .map(|i| {
            let over = over.clone();
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                while !over.load(SeqCst) {
                    kept.push(block(20 + i * 7));
                    drop(block(300));
                    if kept.len() == 1000 {
                        kept.clear();
                    }
                }
            })
        })
        .collect();
    let balance = Arc::new(AtomicI64::new(0));
    let mut sampled = 0;
    for cycle in 0..CYCLES {
        let delivery = if cycle % 2 == 0 { Delivery::Prompt } else { Delivery::Deferred };
        let config = Config::interval_bytes(if cycle % 10 == 0 { 1 } else { 400 }).unwrap();
        let config = config.scope(Scope::Process).delivery(delivery).callstack_size(cycle % 4);
        let profile = start(config, Balance(balance.clone())).expect("places are given back");
        let kept: Vec<_> = (0..20).map(|n| block(n * 50 + 1)).collect();
        profile.poll();
        profile.stop().unwrap();
        drop(kept);
        profile.poll();
        if cycle % 3 == 0 {
            profile.discard().unwrap();
        }
        if cycle % 50 == 0 {
            // Others may be in the middle of a callback.
            until("the counts settle", || {
                profile.poll();
                let s = profile.stats();
                s.sampled == s.tracked + s.refused + s.dropped + s.waiting && s.waiting == 0
            });
            let stats = profile.stats();
            adds_up(&stats);
            sampled += stats.sampled;
            assert_eq!(stats.lost, 0, "{stats:?}");
        }
    }
    over.store(true, SeqCst);
    load.into_iter().for_each(|t| t.join().unwrap());
    assert!(sampled > 1000, "{sampled} blocks in some of the cycles");
    until("all is given back", || balance.load(SeqCst) == 0);
    // And the engine's places and entries are free: a new one has room.
    let profile = start(
        Config::lambda(1.0).unwrap().scope(Scope::Thread).callstack_size(0),
        Balance(balance.clone()),
    )
    .unwrap();
    let kept: Vec<_> = (0..50_000).map(|_| block(40)).collect();
    profile.poll();
    let stats = profile.stats();
    assert_eq!((stats.dropped, stats.tracked >= 50_000), (0, true), "{stats:?}");
    drop((kept, profile));
    assert_eq!(balance.load(SeqCst), 0);
}
