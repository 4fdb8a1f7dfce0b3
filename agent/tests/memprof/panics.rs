//! Callbacks that panic, and threads that do: rows 6, 18.

use crate::help::{adds_up, block, exact, logged, prompt, turn};
use heaptop_agent::memprof::{Allocation, Tracker, start};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Panics where it is told to.
#[derive(Clone, Default)]
struct Panics {
    at: &'static str,
    after: Arc<AtomicU64>,
}

impl Panics {
    fn at(&self, here: &'static str) {
        if self.at == here {
            std::panic::panic_any(format!("at {here}"));
        }
    }
}

const SIZE: usize = 606;

impl Tracker for Panics {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<()> {
        (b.size == SIZE as u64).then(|| self.at("alloc"))
    }
    fn promote(&self, (): ()) -> Option<()> {
        self.at("promote");
        self.after.fetch_add(u64::from(self.at == "alloc"), SeqCst);
        Some(())
    }
    fn dealloc_minor(&self, (): ()) {
        self.at("dealloc");
        self.after.fetch_add(u64::from(self.at == "alloc"), SeqCst);
    }
    fn dealloc_major(&self, (): ()) {
        self.at("dealloc");
        self.after.fetch_add(u64::from(self.at != "dealloc"), SeqCst);
    }
}

#[test]
fn row_6_a_panic_ends_the_tracking_of_its_block_and_nothing_else() {
    let _beside = crate::help::beside();
    for config in [prompt(), exact()] {
        for at in ["alloc", "promote", "dealloc"] {
            let tracker = Panics { at, after: Arc::default() };
            let profile = start(config, tracker.clone()).unwrap();
            let kept = block(SIZE);
            profile.poll();
            turn();
            profile.poll();
            drop(kept);
            crate::help::all_dead(&profile);
            let payloads = profile.take_panics();
            let said: Vec<_> =
                payloads.iter().map(|p| p.downcast_ref::<String>().cloned()).collect();
            assert_eq!(said, [Some(format!("at {at}"))]);
            assert_eq!(tracker.after.load(SeqCst), 0, "nothing more of this block");
            let stats = profile.stats();
            assert_eq!((stats.panics, stats.live), (1, 0), "{at}: {stats:?}");
            adds_up(&stats);
            assert!(profile.take_panics().is_empty(), "they are kept no longer");
        }
    }
}

struct AllocatesWhenDropped;

impl Drop for AllocatesWhenDropped {
    fn drop(&mut self) {
        drop(block(1800));
    }
}

#[test]
fn row_18_what_cannot_be_told_in_the_allocation_is_dropped_or_deferred() {
    let _beside = crate::help::beside();
    for (config, told) in [(prompt(), 0), (exact(), 2)] {
        let (profile, log) = logged(config, &[1800]);
        let unwinds = heaptop_agent::spawn(|| {
            catch_unwind(|| {
                let _allocates = AllocatesWhenDropped;
                // Without the message on standard error.
                std::panic::resume_unwind(Box::new("on purpose"));
            })
            .is_err()
        });
        assert!(unwinds.join().unwrap());
        profile.poll();
        assert_eq!(log.take_ends().len(), told);
        let stats = profile.stats();
        assert_eq!(stats.dropped > 0, told == 0, "{stats:?}");
        adds_up(&stats);
    }
}
