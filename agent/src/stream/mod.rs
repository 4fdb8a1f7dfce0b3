//! The agent's own thread: it keeps the books and serves viewers.
//!
//! ```text
//! engine's tracker ─► ledger ─► peer ═socket═► a viewer
//!                     modules, threads ─┘
//! ```
//!
//! One thread, all signals blocked in it, started before `main` and never
//! joined. At its [`desk`] it waits in `poll` for viewers and their commands, and
//! looks at the tracker between: every 10 ms while many samples come in, so that
//! entries do not run out, every 50 ms while some do, else every 100 ms. What it
//! allocates is the agent's own and not the program's: [`crate::engine::own`].
//!
//! The only rooms of the agent that name the protocol.

mod descriptors;
mod desk;
#[cfg(fuzzing)]
pub mod fuzzing;
mod governor;
mod history;
pub(crate) mod ledger;
pub(crate) mod loader;
mod modules;
mod peer;
pub(crate) mod record;
mod remains;
mod said;
mod server;
mod stranded;
mod threads;

use crate::engine::{Engine, domain, floats, sys, unwind};
use descriptors::Known;
use desk::Desk;
use ledger::Ledger;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use threads::Ending;

/// Viewers at once.
const MAX_PEERS: usize = 16;
/// Stack of the thread. Its deepest call is the directory of the socket.
const STACK_BYTES: usize = 512 << 10;

/// Whether the agent's thread has got as far as having its own descriptors.
static SEPARATE: AtomicBool = AtomicBool::new(false);
/// The longest that anybody waits for that, in milliseconds.
const MOST_MS: u32 = 20;

/// Where the socket lies, or why there is none. Written by the agent's thread, and
/// never given back: somebody may be reading it. No lock, which a fork might find
/// taken.
static ENDPOINT: AtomicPtr<Result<PathBuf, String>> = AtomicPtr::new(std::ptr::null_mut());
/// See [`why_not_started`]. Null: it could.
static NOT_STARTED: AtomicPtr<&'static str> = AtomicPtr::new(std::ptr::null_mut());
/// Where to look for the socket's directory: as the environment said at first.
static DIRECTORIES: AtomicPtr<Vec<PathBuf>> = AtomicPtr::new(std::ptr::null_mut());

/// Where the socket lies, once it is known.
pub fn endpoint() -> Option<&'static Result<PathBuf, String>> {
    // SAFETY: null, or a box that is never given back.
    unsafe { ENDPOINT.load(Acquire).as_ref() }
}

fn endpoint_is(found: Result<PathBuf, String>) {
    // A socket that cannot be opened is tried again every second.
    if endpoint() == Some(&found) {
        return;
    }
    ENDPOINT.store(Box::into_raw(Box::new(found)), Release);
}

/// Why there is no agent's thread, if it could not be started.
pub fn why_not_started() -> Option<&'static str> {
    // SAFETY: null, or what lives for ever.
    unsafe { NOT_STARTED.load(Acquire).as_ref() }.copied()
}

/// The directories, read from the environment at the first call.
fn directories() -> Vec<PathBuf> {
    // SAFETY: null, or a box that is never given back.
    let known = unsafe { DIRECTORIES.load(Acquire).as_ref() };
    known.cloned().unwrap_or_else(|| {
        let found = server::directories();
        DIRECTORIES.store(Box::into_raw(Box::new(found.clone())), Release);
        found
    })
}

/// Starts the thread, if there is `room` for what it takes; whether it could be.
///
/// # Safety
///
/// At most once an engine, by the thread that made it.
pub unsafe fn start(engine: &'static Engine, room: bool) -> bool {
    // SAFETY: the contract is passed on.
    let started = if room { unsafe { try_start(engine) } } else { Err(&NO_ROOM) };
    let why_not = started.map_or_else(std::ptr::from_ref, |()| std::ptr::null());
    NOT_STARTED.store(why_not.cast_mut(), Release);
    started.is_ok()
}

const NO_ROOM: &str = "there is too little memory for the agent: raise the limit";

/// A reason lives for ever, and where it lies is one word.
unsafe fn try_start(engine: &'static Engine) -> Result<(), &'static &'static str> {
    // SAFETY: by the contract nobody else calls this.
    let Some(rest) = (unsafe { engine.take_rest() }) else {
        return Err(&"the agent's thread was started before");
    };
    rest.leave_in_children();
    let Some(ledger) = Ledger::new(engine, rest) else {
        return Err(&"the agent's memory bound is too small: raise HEAPTOP_MEMORY");
    };
    // The environment is read here, before `main`, and not on the agent's thread,
    // where the program may be changing it; nor in a forked child, where another
    // thread of the parent may have been at it. What is wrong with it the parent has
    // told.
    let first = !engine.is_childs();
    let mut notices = if first { engine.notices.sentences() } else { Vec::new() };
    if first {
        notices.extend(record::wanted());
    }
    let file = engine.file.and_then(Known::new);
    let named = std::env::var_os("HEAPTOP_DIR").is_some_and(|name| !name.is_empty());
    let errand = Errand {
        engine,
        ledger,
        child: !first,
        directories: directories(),
        stderr: if named && first { Known::new(libc::STDERR_FILENO) } else { None },
        notices,
        file,
    };
    // And told here, so that a program that ends at once has told it.
    errand.notices.iter().for_each(|sentence| write_error(sentence));
    remains::publish(engine);
    if first {
        // Children inherit these.
        descriptors::close_in_children();
        loader::mind_forks();
        remains::note_exit();
        desk::unlink_at_exit();
    } else {
        descriptors::close();
        loader::in_child();
        record::begin_in_child();
        ENDPOINT.store(std::ptr::null_mut(), Release);
        desk::nothing_to_unlink();
    }
    SEPARATE.store(false, Relaxed);
    let mut argument = Some(Box::new(errand));
    // SAFETY: plain libc calls on local values. The thread owns the errand, which
    // it takes back from the pointer; the masks are restored whatever happens.
    let failed = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK_BYTES);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let pointer = argument.take().map_or(std::ptr::null_mut(), Box::into_raw);
        let failed = libc::pthread_create(
            &raw mut thread,
            &raw const attributes,
            main,
            pointer.cast::<c_void>(),
        );
        libc::pthread_attr_destroy(&raw mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if failed != 0 {
            drop(Box::from_raw(pointer));
        }
        failed != 0
    };
    if failed {
        record::over();
        return Err(&"the system refused the agent's thread: a limit on threads is reached");
    }
    Ok(())
}

/// Waits for what the program could take away from the thread before it has begun. It takes
/// a moment, or else is not waited for.
///
/// In a followed child: a daemon closes all descriptors when it has forked, and the thread
/// must have its own before. Where it records: a program may go to where there is no such
/// file, give up its rights, or lower its limits, in its first line.
pub fn wait_until_begun(child: bool) {
    let begins = || (child && !SEPARATE.load(Acquire)) || record::is_pending();
    for _ in 0..MOST_MS {
        if !begins() {
            break;
        }
        sys::sleep_ms(1);
    }
}

/// What the thread is given.
struct Errand {
    engine: &'static Engine,
    ledger: Ledger,
    /// Whether it is a forked child that is followed.
    child: bool,
    directories: Vec<PathBuf>,
    /// Standard error, if it is to be said there that the directory will not do: somebody
    /// chose it, and would wait for a viewer in vain.
    stderr: Option<Known>,
    notices: Vec<String>,
    /// The region's.
    file: Option<Known>,
}

impl Errand {
    /// Says so if the directory that was chosen will not do. Not before `main`, since the
    /// program would wait for a file system that does not answer; and not where the program
    /// has put another file under the number meanwhile.
    fn tell_of_directory(&mut self) {
        let Some(stderr) = self.stderr else { return };
        let Some(why) = server::unusable(&self.directories) else { return };
        let sentence = format!("heaptop: HEAPTOP_DIR: no viewer can connect: {}.", short(&why));
        if stderr.is_ours() {
            write_error(&sentence);
        }
        self.notices.push(sentence);
    }
}

/// Both ends of what is long: a name stands at the one, and the reason at the other.
fn short(text: &str) -> String {
    const END: usize = 200;
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 2 * END {
        return text.to_owned();
    }
    let (first, last) = (&chars[..END], &chars[chars.len() - END..]);
    first.iter().chain([&'…']).chain(last).collect()
}

extern "C" fn main(errand: *mut c_void) -> *mut c_void {
    floats::apart_for_good();
    domain::here(|d| {
        d.enter();
        d.set_agents(true);
    });
    // SAFETY: the pointer is the box that `start` gave away.
    let mut errand = unsafe { Box::from_raw(errand.cast::<Errand>()) };
    // While standard error is to be had.
    errand.tell_of_directory();
    // Before anything is opened. If it cannot be, descriptors are watched instead.
    let separate = descriptors::separate(errand.file);
    SEPARATE.store(true, Release);
    unwind::note_root();
    // SAFETY: a constant string that ends with a zero byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"heaptop".as_ptr()) };
    let mut desk = Desk::new(*errand, separate);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        loop {
            if let Some(ending) = desk.is_over() {
                break ending;
            }
            desk.turn();
        }
    }));
    if let Ok(ending) = ended {
        drop(desk);
        end_program(separate, ending);
    }
    record::over();
    desk.stopped("a fault in the agent ended the profile; the program goes on");
    std::ptr::null_mut()
}

/// All threads of the program's have ended, the last by returning from its function. Without
/// this one it would have called `exit(0)`, which this one does in its stead.
///
/// Or no more than end, if that is the [`Ending`].
///
/// The program's descriptors are gone by then, with the last of its threads: what its
/// handlers would still write goes nowhere, and must not go into what is the agent's.
fn end_program(separate: bool, ending: Ending) -> ! {
    /// Runs after the destructors of this thread's own, and before the program's handlers.
    extern "C" fn as_the_programs() {
        domain::here(|d| d.set_agents(false));
        // Who waits for a handler that hangs must be able to end it. But what has come
        // already stays where it is: it is this thread's own, as of a write beyond a limit, or
        // no thread of the program's took it, and so it ends no program that is over.
        //
        // SAFETY: plain calls on local values; zero bytes are a set of signals.
        unsafe {
            let mut blocked = std::mem::zeroed();
            libc::sigpending(&raw mut blocked);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
        }
    }
    if let Ending::Bare(status) = ending {
        desk::unlink();
        // SAFETY: it ends this thread, and with the last one the program. Before Linux 5.18
        // the first thread's status is the program's whatever this one's is.
        unsafe { libc::syscall(libc::SYS_exit, i32::from(status)) };
    }
    if separate {
        descriptors::close_all();
    }
    // SAFETY: the function has the type asked for. `exit` runs the program's own handlers,
    // as the last of its threads would have done, and no other thread is there.
    unsafe {
        libc::atexit(as_the_programs);
        libc::exit(0)
    }
}

/// One line, whatever names and values it quotes, and nothing that a terminal obeys.
fn line(sentence: &str) -> String {
    let mut line = sentence.replace(char::is_control, "\u{fffd}");
    line.push('\n');
    line
}

/// A line on standard error, by one plain write, if that does not block: the line
/// is far shorter than what a pipe that can be written to takes.
fn write_error(sentence: &str) {
    let line = line(sentence);
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one record, and a line that is readable for its length; failure is
    // of no concern.
    unsafe {
        if libc::poll(&raw mut stderr, 1, 0) == 1 && stderr.revents == libc::POLLOUT {
            libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sentence_is_one_line_whatever_it_quotes() {
        let said = super::line("HEAPTOP=a\nb\u{1b}[31m\u{9b}é is ignored");
        assert_eq!(said, "HEAPTOP=a\u{fffd}b\u{fffd}[31m\u{fffd}é is ignored\n");
    }
}
