//! Forked children: the profile is over there, and untouched in the parent.

use crate::help::{Told, adds_up, block, exact, logged, prompt, turn};
use heaptop_agent::memprof::{
    Allocation, Config, Delivery, DiscardError, JoinError, Profile, Scope, StartError, Status,
    StopError, Tracker, leave, start,
};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Runs `child` in a forked child; which of its claims did not hold there, by number.
fn forked(child: impl FnOnce() -> Result<(), i32>) -> i32 {
    // SAFETY: the child uses the allocator, whose locks the system keeps sound over a
    // fork, and leaves without what `exit` does for the parent.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        leave_child(child());
    }
    status_of(pid)
}

fn leave_child(result: Result<(), i32>) -> ! {
    // SAFETY: ends the child.
    unsafe { libc::_exit(result.err().unwrap_or(0)) }
}

/// What a child has ended with; a signal as 1000 and its number.
fn status_of(pid: i32) -> i32 {
    let mut status = -1;
    // SAFETY: the status is valid for writing.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + libc::WTERMSIG(status) }
}

fn claim(number: i32, holds: bool) -> Result<(), i32> {
    if holds { Ok(()) } else { Err(number) }
}

#[test]
fn in_a_forked_child_profiles_are_over() {
    let _alone = crate::help::alone();
    for config in [exact(), prompt(), exact().own_thread()] {
        let (profile, log) = logged(config, &[1700]);
        let mut kept: Vec<_> = (0..40).map(|_| block(1700)).collect();
        turn();
        profile.poll();
        // Some of which something is due, where it is not told at once.
        kept.drain(..10);
        let told_before = log.take();
        let other = profile.clone();
        let last = kept.split_off(20);
        let failed = forked(|| {
            claim(1, other.status() == Status::Discarded)?;
            claim(2, other.stop() == Err(StopError::Forked))?;
            claim(3, other.discard() == Err(DiscardError::Forked))?;
            claim(4, other.join() == Err(JoinError::Forked))?;
            drop(kept.split_off(5));
            drop((0..100).map(|_| block(1700)).collect::<Vec<_>>());
            turn();
            claim(5, other.poll() == 0)?;
            claim(6, matches!(start(exact(), log.clone()), Err(StartError::NoAgent(_))))?;
            claim(7, other.stats().callbacks == 0 && other.take_panics().is_empty())?;
            drop((other, profile.clone()));
            heaptop_agent::spawn(|| drop(block(1700))).join().map_err(|_| 8)?;
            // The own thread is not in the child, and could hold the log at the fork.
            claim(9, config == exact().own_thread() || log.take().is_empty())
        });
        assert_eq!(failed, 0, "the child is told of nothing: {config:?}");
        profile.stop().unwrap();
        drop((kept, last));
        crate::help::all_dead(&profile);
        let told: Vec<_> = told_before.into_iter().chain(log.take()).collect();
        let count = |f: fn(&Told) -> bool| told.iter().filter(|t| f(t)).count();
        assert_eq!(count(|t| matches!(t, Told::Alloc { .. })), 40, "each birth once");
        assert_eq!(count(|t| matches!(t, Told::Dealloc { .. })), 40, "each death once");
        adds_up(&profile.stats());
        assert_eq!(log.dropped(), 40);
    }
}

const SIZE: usize = 1717;
/// The claim of the child's that did not hold; 0 while all do.
static FAILED: AtomicI32 = AtomicI32::new(0);

/// Forks in the callback that it is told, once.
struct Forks {
    at: &'static str,
    pid: Arc<AtomicI32>,
    told: Arc<AtomicU64>,
    panics: bool,
}

impl Forks {
    fn here(&self, at: &str) {
        self.told.fetch_add(1, SeqCst);
        if self.pid.load(SeqCst) == 0 {
            // A callback after the one that forked.
            FAILED.store(20, SeqCst);
        }
        if at != self.at || self.pid.load(SeqCst) != -1 {
            return;
        }
        // SAFETY: as in `forked`; the child leaves in `live`.
        self.pid.store(unsafe { libc::fork() }, SeqCst);
        if self.panics && self.pid.load(SeqCst) == 0 {
            std::panic::resume_unwind(Box::new("in the child"));
        }
    }
}

/// What a callback returns, whose end is noticed.
struct Value(Arc<AtomicI32>);

impl Drop for Value {
    fn drop(&mut self) {
        if self.0.load(SeqCst) == 0 {
            FAILED.store(21, SeqCst);
        }
    }
}

impl Tracker for Forks {
    type Minor = Value;
    type Major = Value;
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<Value> {
        (b.size == SIZE as u64).then(|| {
            self.here("alloc");
            Value(self.pid.clone())
        })
    }
    fn promote(&self, value: Value) -> Option<Value> {
        self.here("promote");
        Some(value)
    }
    fn dealloc_minor(&self, value: Value) {
        drop(value);
        self.here("dealloc");
    }
    fn dealloc_major(&self, value: Value) {
        drop(value);
        self.here("dealloc");
    }
}

#[test]
fn a_callback_that_forks_is_the_childs_last() {
    let _alone = crate::help::alone();
    for config in [exact(), prompt()] {
        for (at, panics) in
            [("alloc", false), ("promote", false), ("dealloc", false), ("alloc", true)]
        {
            let (pid, told) = (Arc::new(AtomicI32::new(-1)), Arc::new(AtomicU64::new(0)));
            let tracker = Forks { at, pid: pid.clone(), told: told.clone(), panics };
            let profile = start(config, tracker).unwrap();
            let in_child = || pid.load(SeqCst) == 0;
            live(&profile, in_child);
            if in_child() {
                // As a program that goes on: nothing is told any more.
                live(&profile, || false);
                leave_child(match FAILED.load(SeqCst) {
                    0 => claim(22, profile.status() == Status::Discarded),
                    failed => Err(failed),
                });
            }
            assert_eq!(status_of(pid.load(SeqCst)), 0, "forked at {at}, {config:?}");
            // The parent's has gone on as if nothing were.
            crate::help::all_dead(&profile);
            let stats = profile.stats();
            // Of the twenty others the cycle may have turned over some too.
            assert!(stats.promoted >= 10, "{at}: {stats:?}");
            assert_eq!(told.load(SeqCst), 30 + stats.promoted + 30, "{at}: {stats:?}");
            assert_eq!((stats.panics, stats.lost, stats.dropped), (0, 0, 0), "{stats:?}");
            adds_up(&stats);
            // And the engine's entries are whole.
            profile.stop().unwrap();
            let (next, log) = logged(exact(), &[SIZE]);
            drop((0..100).map(|_| block(SIZE)).collect::<Vec<_>>());
            next.poll();
            assert_eq!(log.take_ends().len(), 200);
        }
    }
}

/// Thirty blocks, of which ten are promoted. Ends early where it is `over`.
fn live(profile: &Profile, over: impl Fn() -> bool) {
    let kept: Vec<_> = (0..10).map(|_| block(SIZE)).collect();
    profile.poll();
    if over() {
        return;
    }
    let dropped: Vec<_> = (0..20).map(|_| block(SIZE)).collect();
    profile.poll();
    drop(dropped);
    profile.poll();
    if over() {
        return;
    }
    turn();
    profile.poll();
    drop(kept);
    profile.poll();
}

/// Sums what it is told.
#[derive(Clone, Default)]
struct Sum(Arc<Mutex<u64>>);

impl Tracker for Sum {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<()> {
        *self.0.lock().unwrap() += u64::from(b.size == 1718);
        None
    }
}

#[test]
fn a_child_that_is_followed_has_profiles_of_its_own() {
    let _alone = crate::help::alone();
    let process = Config::lambda(1.0).unwrap().scope(Scope::Process);
    for config in [process, exact()] {
        let config = config.delivery(Delivery::Deferred);
        let parents = Sum::default();
        let profile = start(config, parents.clone()).unwrap();
        // What this thread knows of its parent's profile says nothing of the child's, whose
        // token may be the same, and is where no other test has run before.
        leave().unwrap();
        profile.join().unwrap();
        let inherited = heaptop_agent::memprof::inherit(|| drop(block(1718)));
        leave().unwrap();
        let failed = forked(|| {
            heaptop_agent::after_fork().map_err(|_| 1)?;
            claim(2, profile.status() == Status::Discarded)?;
            let (first, second) = (Sum::default(), Sum::default());
            let own = start(config, first.clone()).map_err(|_| 3)?;
            (0..50).for_each(|_| drop(block(1718)));
            own.poll();
            claim(4, *first.0.lock().unwrap() == 50)?;
            claim(5, own.stop() == Ok(()) && own.discard() == Ok(()))?;
            // Nobody inherits one from a thread of the parent's.
            let own = start(exact(), second.clone()).map_err(|_| 6)?;
            leave().map_err(|_| 7)?;
            inherited();
            own.poll();
            claim(8, *second.0.lock().unwrap() == 0)
        });
        assert_eq!(failed, 0, "{config:?}");
        profile.poll();
        assert_eq!(*parents.0.lock().unwrap(), 0);
    }
}
