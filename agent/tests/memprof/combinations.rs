//! Callbacks that do to profiles what one should not: row 9, and all of it at once.

use crate::help::{adds_up, block, exact, prompt, turn, until};
use heaptop_agent::memprof::{
    Allocation, Config, Delivery, Profile, Scope, StartError, Status, Tracker, current, start,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

type Act = dyn Fn(&str) + Send + Sync;

/// Does something once, in the callback that it is told.
#[derive(Clone)]
struct Acts {
    at: &'static str,
    act: Arc<Act>,
    once: Arc<AtomicBool>,
    told: Arc<AtomicU64>,
}

const SIZE: usize = 909;

impl Acts {
    fn new(at: &'static str, act: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { at, act: Arc::new(act), once: Arc::default(), told: Arc::default() }
    }

    fn here(&self, at: &str) {
        self.told.fetch_add(1, SeqCst);
        if self.at == at && !self.once.swap(true, SeqCst) {
            (self.act)(at);
        }
    }
}

impl Tracker for Acts {
    type Minor = Box<u64>;
    type Major = Box<u64>;
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<Box<u64>> {
        (b.size == SIZE as u64).then(|| {
            self.here("alloc");
            Box::new(b.id)
        })
    }
    fn promote(&self, id: Box<u64>) -> Option<Box<u64>> {
        self.here("promote");
        Some(id)
    }
    fn dealloc_minor(&self, _: Box<u64>) {
        self.here("dealloc");
    }
    fn dealloc_major(&self, _: Box<u64>) {
        self.here("dealloc");
    }
}

struct Nothing;
impl Tracker for Nothing {
    type Minor = ();
    type Major = ();
}

/// A profile that its own callbacks can get at.
type Shared = Arc<Mutex<Option<Profile>>>;

fn with(shared: &Shared, f: impl FnOnce(&Profile)) {
    let profile = shared.lock().unwrap().clone();
    if let Some(profile) = profile {
        f(&profile);
    }
}

/// A life with two blocks, of which one is promoted.
fn live(shared: &Shared) {
    let kept = block(SIZE);
    with(shared, |p| _ = p.poll());
    drop(block(SIZE));
    with(shared, |p| _ = p.poll());
    turn();
    with(shared, |p| _ = p.poll());
    drop(kept);
    with(shared, |p| {
        until("all blocks are told of", || {
            p.poll();
            p.stats().live == 0 && p.stats().waiting == 0
        });
    });
}

#[test]
fn row_9_a_callback_may_stop_start_discard_and_drop_profiles() {
    let _beside = crate::help::beside();
    for config in [prompt(), exact()] {
        for at in ["alloc", "promote", "dealloc"] {
            let shared = Shared::default();
            let own = shared.clone();
            let start_one = move |tracker: Acts| {
                *own.lock().unwrap() = Some(start(config, tracker).unwrap());
            };
            let tracked = |s: &Shared| s.lock().unwrap().as_ref().map(Profile::stats);

            // Stops: deaths are told on.
            let of = shared.clone();
            let acts = Acts::new(at, move |_| with(&of, |p| p.stop().unwrap()));
            start_one(acts.clone());
            live(&shared);
            let stats = tracked(&shared).unwrap();
            assert!(acts.once.load(SeqCst), "{at} ran");
            assert_eq!(stats.live, 0, "{stats:?}");
            adds_up(&stats);

            // Stops and discards: nothing is told on.
            let of = shared.clone();
            let acts = Acts::new(at, move |_| {
                with(&of, |p| {
                    p.stop().unwrap();
                    p.discard().unwrap();
                });
            });
            start_one(acts.clone());
            live(&shared);
            let stats = tracked(&shared).unwrap();
            with(&shared, |p| assert_eq!(p.status(), Status::Discarded));
            assert_eq!((stats.live, stats.waiting), (0, 0), "{at}: {stats:?}");
            adds_up(&stats);
            let told = acts.told.load(SeqCst);
            assert!(told <= 4, "{told} callbacks");

            // Drops the last handle that the program has of it.
            let of = shared.clone();
            let acts = Acts::new(at, move |_| drop(of.lock().unwrap().take()));
            start_one(acts.clone());
            live(&shared);
            assert!(shared.lock().unwrap().is_none());

            // Starts another: while this one samples that is an error, and then not.
            let of = shared.clone();
            let second = Shared::default();
            let other = second.clone();
            let acts = Acts::new(at, move |_| {
                if current().is_some() {
                    assert_eq!(start(exact(), Nothing).err(), Some(StartError::AlreadySampling));
                }
                with(&of, |p| _ = p.stop());
                *other.lock().unwrap() = Some(start(exact(), Nothing).unwrap());
            });
            start_one(acts.clone());
            live(&shared);
            let stats = tracked(&shared).unwrap();
            assert_eq!((stats.live, stats.panics), (0, 0), "{at}: {stats:?}");
            adds_up(&stats);
            with(&second, |p| assert_eq!(p.status(), Status::Sampling));
            // Trackers hold what holds their profiles.
            drop((shared.lock().unwrap().take(), second.lock().unwrap().take()));
        }
    }
}

#[test]
fn all_of_it_under_threads_that_start_and_end() {
    let _alone = crate::help::alone();
    let over = Arc::new(AtomicBool::new(false));
    let load = {
        let over = over.clone();
        std::thread::spawn(move || {
            while !over.load(SeqCst) {
                let some: Vec<_> = (0..8)
                    .map(|i| {
                        std::thread::spawn(move || {
                            let kept: Vec<_> = (0..50).map(|n| block(SIZE + n * i)).collect();
                            drop(kept);
                        })
                    })
                    .collect();
                some.into_iter().for_each(|t| t.join().unwrap());
            }
        })
    };
    let counter = Arc::new(AtomicU64::new(0));
    for round in 0..60u64 {
        let shared = Shared::default();
        let (of, count) = (shared.clone(), counter.clone());
        let what = ["alloc", "promote", "dealloc"][round as usize % 3];
        let acts = Acts::new(what, move |_| {
            count.fetch_add(1, SeqCst);
            match round / 3 % 5 {
                0 => with(&of, |p| _ = p.stop()),
                1 => with(&of, |p| _ = (p.stop(), p.discard())),
                2 => std::panic::panic_any("on purpose"),
                3 => drop((0..10_000).map(|_| block(100)).collect::<Vec<_>>()),
                // Blocks until another thread has allocated and freed, and polled.
                _ => {
                    let of = of.clone();
                    std::thread::spawn(move || {
                        drop(block(SIZE));
                        with(&of, |p| _ = p.poll());
                    })
                    .join()
                    .unwrap();
                }
            }
        });
        let delivery = if round % 2 == 0 { Delivery::Prompt } else { Delivery::Deferred };
        let config = Config::lambda(0.5).unwrap().scope(Scope::Process).delivery(delivery);
        let config = if round % 4 == 3 { config.own_thread() } else { config };
        let profile = start(config.callstack_size(4), acts.clone()).unwrap();
        *shared.lock().unwrap() = Some(profile);
        until("the callback acts", || {
            live(&shared);
            acts.once.load(SeqCst)
        });
        let profile = shared.lock().unwrap().take().unwrap();
        let _ = profile.stop();
        let _ = profile.discard();
        // What others were just at comes to its end.
        until("the counts settle", || {
            let s = profile.stats();
            s.waiting == 0 && s.live == 0
        });
        adds_up(&profile.stats());
    }
    over.store(true, SeqCst);
    load.join().unwrap();
    assert!(counter.load(SeqCst) >= 60);
}

/// Polls its own profile in each callback.
#[derive(Clone, Default)]
struct Polls {
    profile: Shared,
    told: Arc<AtomicU64>,
    within: Arc<AtomicU64>,
}

impl Tracker for Polls {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, _: &Allocation<'_>) -> Option<()> {
        self.told.fetch_add(1, SeqCst);
        with(&self.profile, |profile| {
            self.within.fetch_add(profile.poll() as u64, SeqCst);
        });
        None
    }
}

#[test]
fn a_callback_that_polls_does_not_pile_up() {
    let _beside = crate::help::beside();
    let tracker = Polls::default();
    let profile = start(exact().scope(Scope::Thread), tracker.clone()).unwrap();
    *tracker.profile.lock().unwrap() = Some(profile.clone());
    // On a stack that holds some hundred callbacks in each other, not twenty thousand.
    for _ in 0..20_000 {
        drop(block(40));
    }
    profile.stop().unwrap();
    while profile.poll() > 0 {}
    let (told, within) = (tracker.told.load(SeqCst), tracker.within.load(SeqCst));
    assert!(told >= 20_000, "{told} were told");
    assert_eq!(within, 0, "each in its turn");
    adds_up(&profile.stats());
    *tracker.profile.lock().unwrap() = None;
    profile.discard().unwrap();
}
