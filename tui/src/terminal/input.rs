//! The threads that listen to the terminal and to the system.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use super::{Outlet, screen};
use crate::source::inbox::{Event, Signal};

/// How often the input thread looks whether it is still wanted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// The shortest time for which the key parser looks at the terminal at all.
const A_MOMENT: Duration = Duration::from_millis(1);
/// Time for the drawing thread to end after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the loop has ended.
#[derive(Default)]
struct Over {
    flag: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Over {
    /// Waits for it; `false`: it did not come in time.
    fn within(&self, time: Duration) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.changed.wait_timeout_while(lock, time, |()| !self.flag.load(Ordering::SeqCst));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// The listening threads; dropping this ends them.
pub(super) struct Listeners {
    over: Arc<Over>,
    signals: Handle,
}

impl Listeners {
    pub(super) fn start(outlet: &Arc<Outlet>) -> io::Result<Self> {
        let over = Arc::new(Over::default());
        let signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH])?;
        let handle = signals.handle();
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let (to, ended) = (Arc::clone(outlet), Arc::clone(&over));
        thread("heaptop-signals").spawn(move || listen_to_signals(signals, &to, &ended))?;
        let (to, ended) = (Arc::clone(outlet), Arc::clone(&over));
        let terminal = Keyboard::find()?;
        thread("heaptop-keys").spawn(move || listen_to_keys(&terminal, &to, &ended))?;
        Ok(Self { over, signals: handle })
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        let lock = self.over.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.over.flag.store(true, Ordering::SeqCst);
        drop(lock);
        self.over.changed.notify_all();
        self.signals.close();
    }
}

fn listen_to_signals(mut signals: Signals, outlet: &Outlet, over: &Over) {
    for number in signals.forever() {
        let signal = match number {
            SIGTSTP => Signal::Suspend,
            SIGCONT => Signal::Continue,
            SIGWINCH => Signal::Resize,
            _ => Signal::Quit(number),
        };
        outlet.put(Event::Signal(signal));
        if let Signal::Quit(number) = signal
            && !over.within(GRACE)
        {
            // The drawing thread stands in a write to a terminal that takes nothing.
            crate::source::demo::end_now();
            screen::leave_at_once();
            std::process::exit(128 + number);
        }
    }
}

/// Where keys come from: the same place that the key parser reads.
pub(super) enum Keyboard {
    Stdin(io::Stdin),
    Tty(OwnedFd),
}

impl Keyboard {
    pub(super) fn find() -> io::Result<Self> {
        let stdin = io::stdin();
        if rustix::termios::isatty(&stdin) {
            return Ok(Self::Stdin(stdin));
        }
        Ok(Self::Tty(File::options().read(true).write(true).open("/dev/tty")?.into()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Tty(fd) => fd.as_fd(),
        }
    }
}

/// Waits at the terminal itself, so as to see that it is gone: the key parser
/// would wait for ever.
fn listen_to_keys(terminal: &Keyboard, outlet: &Outlet, over: &Over) {
    while !over.flag.load(Ordering::SeqCst) {
        let mut fds = [PollFd::from_borrowed_fd(terminal.fd(), PollFlags::IN)];
        let polled = poll(&mut fds, Some(&LOOK));
        let seen = fds[0].revents();
        match polled {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if !seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {}
            Ok(_) | Err(_) => break,
        }
        loop {
            match crossterm::event::poll(A_MOMENT) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return outlet.put(Event::Signal(Signal::TerminalGone)),
            }
            match crossterm::event::read() {
                // Sizes come with the signal.
                Ok(crossterm::event::Event::Resize(..)) => {}
                Ok(event) => outlet.put(Event::Input(event)),
                Err(_) => return outlet.put(Event::Signal(Signal::TerminalGone)),
            }
        }
    }
    if !over.flag.load(Ordering::SeqCst) {
        outlet.put(Event::Signal(Signal::TerminalGone));
    }
}
