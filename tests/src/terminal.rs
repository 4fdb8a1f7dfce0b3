//! The real viewer in a pseudo-terminal: keys go in, and what it draws is read
//! from a parsed screen.

use crate::binaries;
use crate::deadline::{Deadline, poll};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Keys as a terminal sends them.
pub mod key {
    /// Enter.
    pub const ENTER: &str = "\r";
    /// Escape.
    pub const ESC: &str = "\x1b";
    /// Cursor down.
    pub const DOWN: &str = "\x1b[B";
    /// Cursor up.
    pub const UP: &str = "\x1b[A";
    /// ^C.
    pub const INTERRUPT: &str = "\x03";
}

struct State {
    parser: vt100::Parser,
    /// All that the program has written.
    written: Vec<u8>,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Option<State>>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program in a pseudo-terminal. It is killed and reaped when dropped.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    shared: Arc<Shared>,
}

const fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

impl Terminal {
    /// Starts the viewer at 40 rows and 140 columns, with sockets in `directory`.
    #[must_use]
    pub fn viewer(directory: &Path, args: &[&str]) -> Self {
        Self::start("heaptop", directory, args, (40, 140))
    }

    /// Starts a binary of the workspace at a size (rows, columns).
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(name: &str, directory: &Path, args: &[&str], size: (u16, u16)) -> Self {
        let mut command = CommandBuilder::new(binaries::path(name));
        command.args(args);
        Self::spawn(command, directory, size)
    }

    /// Starts a shell with job control, and a script in which `$VIEWER` is the
    /// viewer, at 24 rows and 80 columns.
    #[must_use]
    pub fn shell(directory: &Path, script: &str) -> Self {
        let mut command = CommandBuilder::new("sh");
        command.args(["-mc", script]);
        command.env("VIEWER", binaries::path("heaptop"));
        Self::spawn(command, directory, (24, 80))
    }

    fn spawn(mut command: CommandBuilder, directory: &Path, (rows, cols): (u16, u16)) -> Self {
        let pair = native_pty_system().openpty(size(rows, cols)).expect("a pseudo-terminal");
        // What the developer has set must not reach the tests.
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("HEAPTOP") {
                command.env_remove(key);
            }
        }
        command.cwd(directory);
        command.env("HEAPTOP_DIR", directory);
        // Nobody has chosen anything, and nothing can be remembered.
        command.env("XDG_CONFIG_HOME", directory.join("no-config"));
        command.env("XDG_STATE_HOME", "/dev/null");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for unset in ["NO_COLOR", "COLORTERM", "LC_ALL"] {
            command.env_remove(unset);
        }
        let child = pair.slave.spawn_command(command).expect("the binary starts");
        // Our own handle would keep the terminal open after the child's end.
        drop(pair.slave);
        let keys = pair.master.take_writer().expect("the terminal takes keys");
        let mut output = pair.master.try_clone_reader().expect("the terminal can be read");
        let parser = vt100::Parser::new(rows, cols, 0);
        let shared = Arc::new(Shared::default());
        *shared.lock() = Some(State { parser, written: Vec::new(), ended: false });
        let to = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut bytes = [0; 16 << 10];
            loop {
                // At the child's end Linux gives an error and not an end.
                let n = output.read(&mut bytes).unwrap_or(0);
                if let Some(state) = to.lock().as_mut() {
                    state.parser.process(&bytes[..n]);
                    state.written.extend_from_slice(&bytes[..n]);
                    state.ended = n == 0;
                }
                to.changed.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        Self { child, master: pair.master, keys, shared }
    }

    fn read<T>(&self, of: impl FnOnce(&State) -> T) -> T {
        of(self.shared.lock().as_ref().expect("it is set from the start"))
    }

    /// What is on the screen, row by row.
    #[must_use]
    pub fn contents(&self) -> String {
        self.read(|state| state.parser.screen().contents())
    }

    /// The screen as it is now.
    #[must_use]
    pub fn screen(&self) -> vt100::Screen {
        self.read(|state| state.parser.screen().clone())
    }

    /// The screen's cells: text and looks, row by row.
    #[must_use]
    pub fn cells(&self) -> Vec<Vec<vt100::Cell>> {
        self.read(|state| {
            let screen = state.parser.screen();
            let (rows, cols) = screen.size();
            let row = |r| (0..cols).filter_map(|c| screen.cell(r, c).cloned()).collect();
            (0..rows).map(row).collect()
        })
    }

    /// Whether the alternate screen is shown.
    #[must_use]
    pub fn in_alternate_screen(&self) -> bool {
        self.read(|state| state.parser.screen().alternate_screen())
    }

    /// Whether the cursor is hidden.
    #[must_use]
    pub fn cursor_hidden(&self) -> bool {
        self.read(|state| state.parser.screen().hide_cursor())
    }

    /// Bytes that the program has written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        self.read(|state| state.written.len())
    }

    /// All that the program has written so far, as it came.
    #[must_use]
    pub fn output(&self) -> Vec<u8> {
        self.read(|state| state.written.clone())
    }

    /// The viewer's pid.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.process_id()
    }

    /// Waits until `found` gives a value for the screen.
    ///
    /// # Panics
    ///
    /// When it does not: with the screen there was.
    pub fn until<T>(&self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        self.by(Deadline::default(), what, found).unwrap_or_else(|message| panic!("{message}"))
    }

    /// Waits until the screen contains `text`.
    pub fn wait_for(&self, text: &str) {
        self.until(text, |screen| screen.contains(text).then_some(()));
    }

    /// The first row that contains `text`, once there is one.
    #[must_use]
    pub fn line_with(&self, text: &str) -> String {
        self.until(text, |screen| {
            screen.lines().find(|line| line.contains(text)).map(str::to_owned)
        })
    }

    /// [`Self::until`] with a deadline, and its failure as a message.
    ///
    /// # Panics
    ///
    /// Never: the state is there from the start.
    pub fn by<T>(
        &self,
        deadline: Deadline,
        what: &str,
        found: impl Fn(&str) -> Option<T>,
    ) -> Result<T, String> {
        let mut guard = self.shared.lock();
        loop {
            let state = guard.as_ref().expect("it is set from the start");
            let screen = state.parser.screen().contents();
            if let Some(value) = found(&screen) {
                return Ok(value);
            }
            let why = match deadline.left() {
                _ if state.ended => "the program ended",
                None => "the deadline passed",
                Some(left) => {
                    let waited = self.shared.changed.wait_timeout(guard, left);
                    guard = waited.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            return Err(format!(
                "waited for {what:?} on the screen, but {why}. The screen:\n{screen}"
            ));
        }
    }

    /// Presses keys.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
        self.keys.flush().expect("the terminal takes keys");
    }

    /// Gives the terminal another size.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    pub fn resize(&self, rows: u16, cols: u16) {
        if let Some(state) = self.shared.lock().as_mut() {
            // What was on its way at the old size may hold a wide character, for which
            // the parser must have two columns: it panics with fewer.
            state.parser.screen_mut().set_size(rows.max(1), cols.max(2));
        }
        self.resize_unseen(rows, cols);
    }

    /// The same, but what is drawn is read as if the size had stayed: the parser does
    /// not bear every size.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    pub fn resize_unseen(&self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).expect("the terminal can be resized");
    }

    /// Loses what is on the screen, as a terminal does that is small for a moment.
    pub fn lose(&self) {
        if let Some(state) = self.shared.lock().as_mut() {
            let (rows, cols) = state.parser.screen().size();
            state.parser.screen_mut().set_size(1, 2);
            state.parser.screen_mut().set_size(rows, cols);
        }
    }

    /// Waits for the program's end and for the last of what it wrote; its exit code.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn wait(&mut self) -> u32 {
        let child = &mut self.child;
        let status = poll(Deadline::default(), || child.try_wait().expect("a child"));
        let Some(status) = status else {
            panic!("the program does not end. The screen:\n{}", self.contents());
        };
        let read = poll(Deadline::default(), || self.read(|state| state.ended).then_some(()));
        assert!(read.is_some(), "somebody else holds the terminal open");
        status.exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail when it has ended: then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::socket_directory;
    use std::time::Duration;

    #[test]
    fn text_that_never_comes_reports_the_screen() {
        let directory = socket_directory();
        let mut terminal = Terminal::start("fixture-exits", directory.path(), &["4"], (10, 40));
        assert_eq!(terminal.line_with("ready"), "ready");
        let soon = Deadline::after(Duration::from_millis(30));
        let error = terminal.by(soon, "never", |s| s.contains("never").then_some(())).unwrap_err();
        assert!(error.contains("\"never\" on the screen, but the deadline passed"), "{error}");
        assert!(error.contains("The screen:\nready"), "{error}");
        terminal.press(key::ENTER);
        assert_eq!(terminal.wait(), 4);
    }

    #[test]
    fn the_end_of_the_program_is_not_waited_out() {
        let directory = socket_directory();
        let mut terminal = Terminal::start("fixture-exits", directory.path(), &["0"], (10, 40));
        terminal.press(key::ENTER);
        assert_eq!(terminal.wait(), 0);
        let error = terminal.by(Deadline::default(), "more", |_| None::<()>).unwrap_err();
        assert!(error.contains("the program ended"), "{error}");
    }
}
