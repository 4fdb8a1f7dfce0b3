//! Where there is no /proc, nothing says whether anybody is left in the program but the
//! agent's thread. It blocks all signals: so a program whose last thread has returned would
//! go on with nobody in it, and only SIGKILL would end it.
//!
//! There a signal that was sent to end the program does so once it is plain that nobody
//! else takes it: the program's first thread has ended, no handler is set for the signal,
//! and it has been waiting for [`LOOKS`] looks. A thread that does not block it would have
//! had it at once, and one that asks for it (`sigwait`) too.

use std::ffi::{c_int, c_void};

/// What is sent to have a program end.
const ENDING: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// At a second each: less than the ten that are usual before SIGKILL.
const LOOKS: u8 = 5;

/// How long each of them has been waiting.
#[derive(Default)]
pub struct Stranded {
    looks: [u8; ENDING.len()],
}

impl Stranded {
    /// Looks, as is done once a second. Does not come back where the program is to end.
    pub fn look(&mut self) {
        let ended = first_thread_has_ended();
        for (signal, looks) in ENDING.into_iter().zip(&mut self.looks) {
            let stranded = ended && is_pending(signal) && is_default(signal);
            *looks = if stranded { *looks + 1 } else { 0 };
            if *looks >= LOOKS {
                let_through(signal);
                *looks = 0;
            }
        }
    }
}

/// The C library gives each thread a list of the mutexes that it holds, and the kernel takes
/// it away when the thread ends.
#[cfg(target_env = "gnu")]
fn first_thread_has_ended() -> bool {
    let mut list: *mut c_void = std::ptr::null_mut();
    let mut length: libc::size_t = 0;
    // SAFETY: both are valid for writing. The first thread has the process's number.
    let asked = unsafe {
        libc::syscall(libc::SYS_get_robust_list, libc::getpid(), &raw mut list, &raw mut length)
    };
    asked == 0 && list.is_null()
}

/// Other libraries give it where it is needed.
#[cfg(not(target_env = "gnu"))]
fn first_thread_has_ended() -> bool {
    false
}

fn is_pending(signal: c_int) -> bool {
    // SAFETY: zero bytes are a set, which is valid for writing.
    unsafe {
        let mut pending = std::mem::zeroed();
        libc::sigpending(&raw mut pending) == 0
            && libc::sigismember(&raw const pending, signal) == 1
    }
}

fn is_default(signal: c_int) -> bool {
    // SAFETY: zero bytes are an action, which is valid for writing; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
    }
}

fn let_through(signal: c_int) {
    // SAFETY: plain calls on local values. Were a handler set in this moment, it would be
    // one for which no other thread is there.
    unsafe {
        let mut only = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const only, std::ptr::null_mut());
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::engine::sys;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// A child whose agent's thread looks, without and then with a first thread.
    fn child() -> ! {
        static ENDS: AtomicBool = AtomicBool::new(false);
        std::thread::spawn(|| {
            let mut stranded = Stranded::default();
            for i in 0..10_000 {
                stranded.look();
                sys::sleep_ms(1);
                ENDS.store(i >= 20, SeqCst);
            }
            // SAFETY: it ends the child.
            unsafe { libc::_exit(1) };
        });
        while !ENDS.load(SeqCst) {
            sys::sleep_ms(1);
        }
        // SAFETY: it writes a byte, and ends this thread alone.
        unsafe {
            libc::write(1000, c"!".as_ptr().cast(), 1);
            libc::syscall(libc::SYS_exit, 0);
        }
        unreachable!("the thread has ended")
    }

    #[test]
    fn a_signal_that_nobody_takes_ends_what_nobody_is_in() {
        let (mut ours, theirs) = std::io::pipe().unwrap();
        // SAFETY: plain calls. Signals are blocked before the child is there, so that none is
        // taken by its first thread.
        let status = unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            let pid = libc::fork();
            if pid == 0 {
                libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&theirs), 1000);
                child();
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            libc::kill(pid, libc::SIGTERM);
            let mut status = -1;
            libc::waitpid(pid, &raw mut status, 0);
            status
        };
        drop(theirs);
        let mut said = String::new();
        std::io::Read::read_to_string(&mut ours, &mut said).unwrap();
        assert_eq!(said, "!", "not while the first thread is there");
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM, "{status}");
    }
}
