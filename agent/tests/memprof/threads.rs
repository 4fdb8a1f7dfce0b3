//! Callbacks across threads, and threads that end: rows 10, 16.

use crate::help::{Log, Told, adds_up, block, exact, logged, prompt, until};
use heaptop_agent::memprof::{Allocation, Tracker, start};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

/// Blocks of two sizes whose callbacks wait for each other.
struct Pipes {
    first: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
    second: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>>,
    met: Arc<AtomicU64>,
}

impl Pipes {
    fn new(met: Arc<AtomicU64>) -> Self {
        let ((to_second, from_first), (to_first, from_second)) = (mpsc::channel(), mpsc::channel());
        Self {
            first: Mutex::new(Some((to_second, from_second))),
            second: Mutex::new(Some((to_first, from_first))),
            met,
        }
    }
}

impl Tracker for Pipes {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<()> {
        let end = match b.size {
            1010 => self.first.lock().unwrap().take(),
            1011 => self.second.lock().unwrap().take(),
            _ => None,
        };
        let (tell, hear) = end?;
        tell.send(()).unwrap();
        // Comes only if the other's callback runs while this one does.
        hear.recv_timeout(crate::help::PATIENCE).unwrap();
        self.met.fetch_add(1, SeqCst);
        Some(())
    }
}

#[test]
fn row_10_a_callback_that_blocks_holds_up_no_other() {
    let _beside = crate::help::beside();
    // In two allocations.
    let met = Arc::new(AtomicU64::new(0));
    let profile = start(prompt(), Pipes::new(met.clone())).unwrap();
    let other = heaptop_agent::spawn(|| drop(block(1011)));
    drop(block(1010));
    other.join().unwrap();
    assert_eq!(met.load(SeqCst), 2);
    adds_up(&profile.stats());
    drop(profile);
    // In two pollers.
    let met = Arc::new(AtomicU64::new(0));
    let profile = start(exact(), Pipes::new(met.clone())).unwrap();
    let kept = (block(1010), block(1011));
    std::thread::scope(|scope| {
        let polls = || until("both meet", || {
            profile.poll();
            met.load(SeqCst) == 2
        });
        scope.spawn(polls);
        scope.spawn(polls);
    });
    drop(kept);
    profile.poll();
    adds_up(&profile.stats());
}

#[test]
fn row_16_the_blocks_of_threads_that_ended_are_told_of() {
    let _beside = crate::help::beside();
    const THREADS: usize = 10_000;
    let (profile, log): (_, Log) = logged(exact().callstack_size(4), &[1616]);
    let kept: Vec<Vec<u8>> = (0..THREADS / 50)
        .flat_map(|_| {
            let some: Vec<_> = (0..50).map(|_| heaptop_agent::spawn(|| block(1616))).collect();
            some.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        })
        .collect();
    while profile.poll() > 0 {}
    let told = log.take();
    let born = told.iter().filter(|t| matches!(t, Told::Alloc { .. })).count();
    assert_eq!(born, THREADS);
    let promoted = |told: &[Told]| told.iter().filter(|t| matches!(t, Told::Promote { .. })).count();
    let early = promoted(&told);
    // Their owners are gone; others have the cycle turn.
    crate::help::turn();
    while profile.poll() > 0 {}
    let told = log.take();
    assert_eq!(early + promoted(&told), THREADS, "promotion");
    drop(kept);
    while profile.poll() > 0 {}
    let died = log.take().iter().filter(|t| matches!(t, Told::Dealloc { major: true, .. })).count();
    assert_eq!(died, THREADS);
    let stats = profile.stats();
    assert_eq!((stats.live, stats.lost, stats.dropped), (0, 0, 0), "{stats:?}");
    adds_up(&stats);
}
