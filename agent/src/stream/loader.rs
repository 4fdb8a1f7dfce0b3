//! The loader's lock, forks, and staying loaded.
//!
//! The agent's thread takes the loader's lock to look at its list of modules. A child of a
//! `fork` in that moment has the lock held by a thread that it does not have, for ever:
//! glibc does not repair that one. So who is about to take it says so first, and a fork
//! waits a moment for its end; while a fork is under way it is not taken.
//!
//! ```text
//! agent's thread   WALKS = true;  FORKS != 0? then not now;  walk;  WALKS = false
//! who forks        FORKS += 1;    WALKS? then wait a moment; fork;  FORKS -= 1
//! ```
//!
//! All sequentially consistent: one of the two sees the other. **A fork waits no longer
//! than [`MOST_NS`]**, so the lock can still be held in a child, where the agent's thread
//! was kept from running for longer. And a fork that has not come back for long
//! ([`LOST_NS`]), as where a handler of the program's leaves it, is not waited for any more.

use crate::engine::sys;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// Whether the agent's thread may hold the loader's lock.
static WALKS: AtomicBool = AtomicBool::new(false);
/// Forks that are under way.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The longest that a fork waits. A walk takes a tenth of a millisecond where there are
/// hundreds of modules. In a test nothing may fail because the machine is busy.
const MOST_NS: u64 = if cfg!(test) { 1_000_000_000 } else { 4_000_000 };
/// What is slept between two looks; the system makes it a little more.
const PAUSE_NS: i64 = 20_000;
/// A fork that takes longer will not come back.
const LOST_NS: u64 = 30_000_000_000;

/// Runs `f`, which takes the loader's lock; `None` while a fork is under way.
pub fn walk<T>(f: impl FnOnce() -> T) -> Option<T> {
    struct Walks;
    impl Drop for Walks {
        fn drop(&mut self) {
            WALKS.store(false, SeqCst);
        }
    }
    let walks = Walks;
    WALKS.store(true, SeqCst);
    let done = (FORKS.load(SeqCst) == 0).then(f);
    drop(walks);
    done
}

/// Since when forks have been in the way.
#[derive(Default)]
pub struct Patience {
    since_ns: Option<u64>,
}

impl Patience {
    /// There was none.
    pub fn restore(&mut self) {
        self.since_ns = None;
    }

    /// There was one, now.
    pub fn lose(&mut self, now_ns: u64) {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= LOST_NS {
            FORKS.store(0, SeqCst);
            self.since_ns = None;
        }
    }
}

extern "C" fn before_fork() {
    let _errno = sys::Errno::keep();
    FORKS.fetch_add(1, SeqCst);
    if !WALKS.load(SeqCst) {
        return;
    }
    let began_ns = sys::monotonic_ns();
    while WALKS.load(SeqCst) && sys::monotonic_ns().wrapping_sub(began_ns) < MOST_NS {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
        // SAFETY: the time is live. Not a yield, which lets nobody of lower priority run.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
}

extern "C" fn in_parent() {
    // Those that were given up are not counted any more.
    let _ = FORKS.fetch_update(SeqCst, SeqCst, |forks| forks.checked_sub(1));
}

/// In a forked child, which has neither of them.
pub extern "C" fn in_child() {
    WALKS.store(false, SeqCst);
    FORKS.store(0, SeqCst);
}

/// Has forks go by this. Once.
pub fn mind_forks() {
    // SAFETY: the handlers have the type asked for and live for ever.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
}

/// Keeps the agent's code where it is, if it came in a shared object, which the program
/// may unload: the agent's thread runs in it, and handlers of exits and forks are.
///
/// To be called by the constructor, where it waits for nobody: whoever loads an object
/// while there are threads runs its constructors under the loader's lock, and so has it.
#[cfg(all(target_env = "gnu", not(target_feature = "crt-static")))]
pub fn stay() {
    let here = stay as fn() as *const libc::c_void;
    // SAFETY: zero bytes are a value of the record, which is valid for writing; the name
    // that it is given lives as long as the object, in which this runs.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if sys::is_of_the_program(here as usize) || libc::dladdr(here, &raw mut found) == 0 {
            return;
        }
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        libc::dlopen(found.dli_fname, flags);
    }
}

/// What is linked statically, or musl's loader has loaded, stays anyway.
#[cfg(not(all(target_env = "gnu", not(target_feature = "crt-static"))))]
pub fn stay() {}

/// There is one agent's thread: tests that do its work take this.
#[cfg(test)]
pub static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// All in one: the state is the process's.
    #[test]
    fn a_walk_and_a_fork_keep_out_of_each_others_way() {
        let _alone = ALONE.lock();
        assert_eq!(walk(|| 7), Some(7));
        before_fork();
        before_fork();
        assert_eq!(walk(|| 7), None);
        in_parent();
        assert_eq!(walk(|| 7), None);
        in_parent();
        assert_eq!(walk(|| 7), Some(7));

        // A fork waits for a walk, and not for ever.
        let before_ns = sys::monotonic_ns();
        walk(|| before_fork());
        assert!(sys::monotonic_ns() - before_ns >= MOST_NS);
        // That fork never comes back.
        let mut patience = Patience::default();
        patience.lose(5);
        patience.restore();
        patience.lose(10);
        patience.lose(10 + LOST_NS - 1);
        assert_eq!(walk(|| 7), None);
        patience.lose(10 + LOST_NS);
        assert_eq!(walk(|| 7), Some(7));
        in_parent();
        assert_eq!(walk(|| 7), Some(7), "nothing is counted below none");

        a_child_finds_the_lock_free();
    }

    /// Has the lock, says so, and keeps it for a while once a fork is under way.
    unsafe extern "C" fn hold(
        _: *mut libc::dl_phdr_info,
        _: libc::size_t,
        tell: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: it is lent to the one call of this.
        let _ = unsafe { &*tell.cast::<Sender<()>>() }.send(());
        while FORKS.load(SeqCst) == 0 {
            std::hint::spin_loop();
        }
        // As long as a fork that did not wait would take.
        sys::sleep_ms(100);
        1
    }

    unsafe extern "C" fn pass(
        _: *mut libc::dl_phdr_info,
        _: libc::size_t,
        _: *mut libc::c_void,
    ) -> libc::c_int {
        1
    }

    fn a_child_finds_the_lock_free() {
        // From here on other tests' forks count too.
        mind_forks();
        let (mut tell, told) = channel::<()>();
        let walker = std::thread::spawn(move || {
            let tell = (&raw mut tell).cast();
            // SAFETY: the callback has the type asked for, and what it is lent lives.
            while walk(|| unsafe { libc::dl_iterate_phdr(Some(hold), tell) }).is_none() {}
        });
        told.recv().unwrap();
        // SAFETY: the child takes the lock and leaves; one that cannot take it is ended.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::alarm(5);
                libc::dl_iterate_phdr(Some(pass), std::ptr::null_mut());
                libc::_exit(0);
            }
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        walker.join().unwrap();
        assert_eq!(status, 0, "the child waits for a thread that it does not have");
    }
}
