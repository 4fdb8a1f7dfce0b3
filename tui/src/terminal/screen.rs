//! Raw mode and the alternate screen, entered and left.
//!
//! Whether they are entered is one flag of the process, since a panic's hook and
//! the signal thread have to leave them too. Leaving twice does nothing.

use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::Ui;

/// Bytes of a drawing that are written at once: those of a large screen.
const BUFFER: usize = 256 << 10;

/// The mouse while a button is pressed, and no more: a terminal would else tell of each
/// of its movements.
const MOUSE: &str = "\x1b[?1002h\x1b[?1006h";

/// Entered and not left.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal, while it is ours.
pub(super) struct Screen {
    /// Never dropped: dropping shows the cursor and, should that fail, panics on
    /// a terminal that is gone. The cursor is shown by [`leave`].
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    hook: Hook,
}

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        let hook = Hook::set();
        // Should the next step fail, what was entered is left.
        let entered = enter().and_then(|()| {
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, io::stdout())))
        });
        match entered {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal), hook }),
            Err(error) => {
                let _ = leave();
                Err(error)
            }
        }
    }

    /// Enters again, whatever may be on the screen now.
    pub(super) fn return_to(&mut self) -> io::Result<()> {
        leave()?;
        enter()?;
        self.wipe()
    }

    /// Forgets what was drawn, so that the next drawing is of all cells.
    pub(super) fn wipe(&mut self) -> io::Result<()> {
        // Not `clear`: that asks the terminal for its cursor, and the answer
        // would go to the thread that reads keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from(size))
    }

    pub(super) fn leave(&mut self) -> io::Result<()> {
        let left = leave();
        self.hook.say_late();
        left
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    pub(super) fn draw(&mut self, ui: &mut impl Ui) -> io::Result<()> {
        let size = self.terminal.size()?;
        if size.width == 0 || size.height == 0 {
            return Ok(());
        }
        self.terminal.draw(|frame| ui.draw(frame))?;
        self.terminal.backend_mut().flush()
    }

    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        queue!(out, CopyToClipboard::to_clipboard_from(text))?;
        Write::flush(out)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    ENTERED.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Print(MOUSE), Hide)
}

/// Restores the terminal if it is not restored yet.
pub(super) fn leave() -> io::Result<()> {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    // Both are tried whatever the first says.
    let written = execute!(
        io::stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        Show,
        LeaveAlternateScreen
    );
    disable_raw_mode().and(written)
}

/// Restores what can be restored without waiting, while the drawing thread
/// stands in a write and so holds the standard output.
pub(super) fn leave_at_once() {
    use std::os::unix::fs::OpenOptionsExt;
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    // A terminal that takes nothing keeps the alternate screen.
    if let Ok(mut tty) = File::options().write(true).custom_flags(nonblock).open("/dev/tty") {
        let _ =
            execute!(tty, DisableMouseCapture, DisableBracketedPaste, Show, LeaveAlternateScreen);
    }
    let _ = disable_raw_mode();
}

/// A panic hook for the time of the screen.
///
/// A panic of the drawing thread ends the program: the terminal is restored and
/// the message printed as ever. One of another thread does not (symbols catch
/// theirs), and must not write over the screen: it is printed when that is left.
struct Hook {
    late: Arc<Mutex<String>>,
}

impl Hook {
    fn set() -> Self {
        let late: Arc<Mutex<String>> = Arc::default();
        let (keep, drawing) = (Arc::clone(&late), std::thread::current().id());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if is_drawing(drawing) {
                let _ = leave();
                before(info);
            } else if ENTERED.load(Ordering::SeqCst) {
                let thread = std::thread::current();
                let name = thread.name().unwrap_or("?").to_owned();
                let mut late = keep.lock().unwrap_or_else(PoisonError::into_inner);
                // The first is the one that tells; a file may bring thousands.
                if late.is_empty() {
                    *late = format!("heaptop: thread {name}: {info}\n");
                }
            } else {
                before(info);
            }
        }));
        Self { late }
    }

    fn say_late(&self) {
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        if !late.is_empty() {
            let _ = io::stderr().write_all(late.as_bytes());
        }
    }
}

fn is_drawing(drawing: ThreadId) -> bool {
    std::thread::current().id() == drawing
}
