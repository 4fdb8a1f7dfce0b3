//! The built-in demo target, run as a process of its own.
//!
//! However this process ends, at any moment and by any signal, the demo ends with
//! it: its standard input is a pipe whose other end is held here and nowhere else,
//! and it stops when that ends. Where there is time it is asked to end as well, and
//! waited for.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use heaptop_protocol::endpoint;
use rustix::process::{Pid, Signal, kill_process};

use super::discover::identify;
use super::socket::own_uid;

/// Its program's name, beside this one.
const PROGRAM: &str = "heaptop-demo";
/// What makes it stop when the pipe that is its standard input ends.
const UNTIL_STDIN_ENDS: &str = "--until-stdin-ends";
/// What makes it do its fixed work; it stops then too.
const PROOF: &str = "--proof";
/// Time for it to open its socket.
const START: Duration = Duration::from_secs(5);
/// Pause between looks for it.
const LOOK: Duration = Duration::from_millis(20);
/// Time to end when asked to.
const END: Duration = Duration::from_millis(500);
/// Bytes kept of what it says last.
const TAIL: usize = 4096;

/// The pid of the running demo, for [`end_now`]; 0 while there is none.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Asks a running demo to end: for when the viewer cannot leave in good order.
pub fn end_now() {
    terminate(RUNNING.load(Ordering::SeqCst));
}

fn terminate(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // If it is gone already there is nothing to do.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// The running demo; dropping it ends it.
pub struct Demo {
    /// Holds the pipe too.
    child: Child,
    socket: PathBuf,
}

impl Demo {
    /// Starts the demo that lies beside this program and waits for its socket;
    /// else a sentence.
    pub fn start() -> Result<Self, String> {
        let mut command = Command::new(program()?);
        command.arg(UNTIL_STDIN_ENDS).stdout(Stdio::null());
        Self::start_command(command, START)
    }

    /// The same for its fixed work, which prints what it counted: see
    /// [`Self::take_output`]. Of the agent's settings it has those of `settings`
    /// alone, beside where sockets lie.
    pub fn start_proof(settings: &[(&str, String)]) -> Result<Self, String> {
        let mut command = Command::new(program()?);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEAPTOP") && name != "HEAPTOP_DIR" {
                command.env_remove(name);
            }
        }
        command.arg(PROOF).envs(settings.iter().map(|(k, v)| (k, v))).stdout(Stdio::piped());
        Self::start_command(command, START)
    }

    fn start_command(mut command: Command, time: Duration) -> Result<Self, String> {
        let program = PathBuf::from(command.get_program());
        let child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            // What the terminal sends to the viewer's group (^Z, ^C) is not for it.
            .process_group(0)
            .spawn()
            .map_err(|e| {
                format!(
                    "cannot start the demo {}: {e}; build it with `cargo build --workspace`",
                    program.display()
                )
            })?;
        RUNNING.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
        let mut demo = Self { child, socket: PathBuf::new() };
        let said = tail(demo.child.stderr.take());
        let deadline = Instant::now() + time;
        let pid = demo.child.id();
        let directories = endpoint::directories(|name| std::env::var_os(name), own_uid());
        loop {
            let sockets = directories.iter().map(|d| endpoint::socket(d, pid));
            if let Some(socket) = { sockets }.find(|s| s.exists() && identify(s).is_ok()) {
                demo.socket = socket;
                return Ok(demo);
            }
            let ended = demo.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() >= deadline {
                let how = ended.map_or_else(
                    || format!("did not open its socket within {} s", time.as_secs_f32()),
                    |status| format!("ended {}", how(status)),
                );
                return Err(format!("the demo {} {how}{}", program.display(), said(END)));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it prints, once, where it was started for that.
    pub const fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).unwrap_or(0);
        // From here on `end_now` has nothing to do: the pid may become another's.
        let _ = RUNNING.compare_exchange(pid, 0, Ordering::SeqCst, Ordering::SeqCst);
        if matches!(self.child.try_wait(), Ok(None)) {
            terminate(pid);
        }
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program's path.
fn program() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|e| format!("cannot find {PROGRAM}: {e}"))?;
    Ok(here.with_file_name(PROGRAM))
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with status {code}"),
        (_, Some(signal)) => format!("by signal {signal}"),
        _ => "at once".into(),
    }
}

/// Reads what the demo says, so that it never waits for us, and keeps the last
/// of it. The answer gives that as the end of a sentence, waiting so long at
/// most for the stream to end.
fn tail(stream: Option<impl Read + Send + 'static>) -> impl Fn(Duration) -> String {
    let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let (over, ended) = std::sync::mpsc::channel::<()>();
    // Without a thread the stream is closed, and its last words are unknown.
    let _ = std::thread::Builder::new().name("heaptop-demo-log".into()).spawn(move || {
        let _over = over;
        let Some(mut stream) = stream else { return };
        let mut chunk = [0; 1024];
        while let Ok(n @ 1..) = stream.read(&mut chunk) {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&chunk[..n]);
            let excess = kept.len().saturating_sub(TAIL);
            kept.drain(..excess);
        }
    });
    move |time| {
        let _ = ended.recv_timeout(time);
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        if text.trim().is_empty() { String::new() } else { format!("; it said: {}", text.trim()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("demo");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn failure(program: &Path) -> String {
        loop {
            match Demo::start_command(Command::new(program), Duration::from_millis(400)) {
                Ok(_) => panic!("it has no socket"),
                // A child that another test has just forked may still hold the script
                // open for writing.
                Err(sentence) if sentence.contains("Text file busy") => {}
                Err(sentence) => return sentence,
            }
        }
    }

    #[test]
    fn a_demo_that_fails_says_why() {
        let dir = tempfile::tempdir().unwrap();
        assert!(failure(&dir.path().join("none")).contains("cannot start the demo"));
        let sentence = failure(&script(dir.path(), "echo 'no memory' >&2; exit 3"));
        assert!(sentence.ends_with("ended with status 3; it said: no memory"), "{sentence}");
    }

    #[test]
    fn a_demo_without_a_socket_is_given_up_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        // One that does not even end when it is asked to.
        let text = format!("trap '' TERM; echo $$ > {}; exec sleep 300", pid.display());
        let slow = script(dir.path(), &text);
        let sentence = failure(&slow);
        assert!(sentence.contains("did not open its socket within"), "{sentence}");
        let pid = std::fs::read_to_string(pid).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists());
    }
}
