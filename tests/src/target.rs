//! A running target: a fixture, the demo, or any program.
//!
//! Each has a directory of its own for sockets, below the temporary directory
//! and with a short name, since a socket's path ends at 107 bytes. Its standard
//! output is read by a thread as it comes, so that it never blocks. It is killed
//! and reaped when dropped.

use crate::deadline::{Deadline, PATIENCE, poll};
use crate::run::{Ended, Run};
use heaptop_protocol::endpoint;
use std::ffi::CString;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// A directory for sockets: closed to others, as agents and viewers demand, and
/// with a short path.
///
/// # Panics
///
/// When none can be made.
#[must_use]
pub fn socket_directory() -> TempDir {
    let mode = Permissions::from_mode(endpoint::DIRECTORY_MODE);
    let mut builder = tempfile::Builder::new();
    builder.prefix("ht").permissions(mode).tempdir().expect("a temporary directory can be made")
}

/// Makes a socket look as if it was made long ago: older than that one may be about to listen
/// there.
///
/// # Panics
///
/// When its times cannot be set.
pub fn make_old(socket: &Path) {
    let path = CString::new(socket.as_os_str().as_bytes()).expect("no path has a zero in it");
    let long_ago = [libc::timeval { tv_sec: 1_000_000_000, tv_usec: 0 }; 2];
    // SAFETY: the path ends with a zero, and there are two times.
    assert_eq!(unsafe { libc::utimes(path.as_ptr(), long_ago.as_ptr()) }, 0);
}

#[derive(Default)]
struct Output {
    lines: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, (Vec<String>, bool)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running target.
pub struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Output>,
    /// Lines before this one were given out by [`Target::wait_for_line`].
    read: usize,
    patience: Duration,
    directory: Arc<TempDir>,
}

impl Target {
    /// Starts the workspace's binary `name`, or another by its absolute path, with a
    /// directory of its own.
    #[must_use]
    pub fn start(name: &str, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_in(Arc::new(socket_directory()), name, args, env)
    }

    /// Starts it with sockets in `directory`.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start_in(
        directory: Arc<TempDir>,
        name: &str,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let run = env.iter().fold(Run::of(name, args), |run, (key, value)| run.env(key, value));
        Self::of(&run, directory)
    }

    /// Starts a run with sockets in `directory`. Its standard error is the test's
    /// own, and its input stays open.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn of(run: &Run, directory: Arc<TempDir>) -> Self {
        let mut command = run.command(directory.path());
        command.stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("it does not start: {e}"));
        let output = Arc::new(Output::default());
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let to = Arc::clone(&output);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                to.lock().0.push(line);
                to.changed.notify_all();
            }
            to.lock().1 = true;
            to.changed.notify_all();
        });
        let stdin = child.stdin.take();
        Self { child, stdin, output, read: 0, patience: PATIENCE, directory }
    }

    /// Waits longer than usual for its lines and its end: it has much to do.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its socket lies.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its socket, once it is there.
    ///
    /// # Panics
    ///
    /// When it does not come.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        let path = endpoint::socket(self.directory(), self.pid());
        poll(Deadline::default(), || path.exists().then(|| path.clone()))
            .unwrap_or_else(|| panic!("no socket at {}: does the agent run?", path.display()))
    }

    /// The next line for which `wanted` holds; those before it are passed over.
    ///
    /// # Panics
    ///
    /// When the output ends, or nothing such comes: with all lines there were.
    pub fn wait_for_line(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.line_by(Deadline::after(self.patience), what, wanted)
            .unwrap_or_else(|message| panic!("{message}"))
    }

    /// [`Self::wait_for_line`] for a line that is `text`.
    pub fn wait_for(&mut self, text: &str) {
        self.wait_for_line(text, |line| line == text);
    }

    /// [`Self::wait_for_line`] with a deadline, and its failure as a message.
    pub fn line_by(
        &mut self,
        deadline: Deadline,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let mut state = self.output.lock();
        loop {
            while let Some(line) = state.0.get(self.read) {
                self.read += 1;
                if wanted(line) {
                    return Ok(line.clone());
                }
            }
            let why = match deadline.left() {
                _ if state.1 => "the output ended",
                None => "the deadline passed",
                Some(left) => {
                    let woken = self.output.changed.wait_timeout(state, left);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            return Err(format!(
                "waited for the line {what:?}, but {why}. All lines:\n{}",
                state.0.join("\n")
            ));
        }
    }

    /// Writes a line to its standard input. A target that is gone does not read it.
    pub fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    /// Sends a signal, such as [`libc::SIGUSR1`].
    ///
    /// # Panics
    ///
    /// When it is gone.
    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.pid()).expect("a pid");
        // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
        let sent = unsafe { libc::kill(pid, signal) };
        assert_eq!(sent, 0, "the target {pid} takes no signal");
    }

    /// Closes its standard input, waits for its end, and gives that and all that it
    /// wrote. Its standard error is the test's own.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn finish(&mut self) -> Ended {
        let status = self.wait();
        let deadline = Deadline::default();
        let text = poll(deadline, || {
            let state = self.output.lock();
            state.1.then(|| state.0.iter().fold(String::new(), |all, line| all + line + "\n"))
        });
        let stdout = text.expect("the output of what has ended ends");
        Ended { status, stdout, stderr: String::new() }
    }

    /// Closes its standard input and waits for its end.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn wait(&mut self) -> ExitStatus {
        self.stdin = None;
        let child = &mut self.child;
        poll(Deadline::after(self.patience), || {
            child.try_wait().expect("a child can be waited for")
        })
        .unwrap_or_else(|| panic!("the target {} does not end", self.child.id()))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Both fail when it has ended: then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_never_comes_reports_all_there_were() {
        let mut target = Target::start("fixture-exits", &["0"], &[]);
        target.wait_for("ready");
        let soon = Deadline::after(Duration::from_millis(30));
        let message = target.line_by(soon, "never said", |l| l == "never said").unwrap_err();
        assert!(message.contains("\"never said\", but the deadline passed"), "{message}");
        assert!(message.ends_with("ready"), "{message}");
    }

    #[test]
    fn the_end_of_the_output_is_not_waited_out() {
        let mut target = Target::start("fixture-exits", &["3"], &[]);
        target.wait_for("ready");
        target.say("go");
        let message = target.line_by(Deadline::default(), "more", |l| l == "more").unwrap_err();
        assert!(message.contains("the output ended"), "{message}");
        assert_eq!(target.wait().code(), Some(3));
    }
}
