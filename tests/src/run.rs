//! A program run to its end, and the same program without the agent: whatever
//! the agent does, a target's output and its end must be those of the other.
//!
//! What is compared is all of standard output and the exit status, signals
//! included. A run that does not end is killed at a deadline, and a failure.

use crate::binaries;
use crate::deadline::{Deadline, poll};
use crate::target::socket_directory;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a program may take on a slow, busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How the program runs unprofiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// The workspace's binary of the same name and `-plain`: built without the agent.
    Twin,
    /// The same binary under `HEAPTOP=off`.
    Off,
}

/// What is done in a new process.
type Setup = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A program to run.
#[derive(Clone)]
pub struct Run {
    name: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    input: String,
    directory: Option<PathBuf>,
    setup: Option<Setup>,
    user: Option<u32>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// All it wrote to standard output.
    pub stdout: String,
    /// All it wrote to standard error.
    pub stderr: String,
}

impl Run {
    /// The workspace's binary `name`.
    #[must_use]
    pub fn of(name: &str, args: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            input: String::new(),
            directory: None,
            setup: None,
            user: None,
        }
    }

    /// With an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this on its standard input, which then ends.
    #[must_use]
    pub fn input(mut self, text: &str) -> Self {
        text.clone_into(&mut self.input);
        self
    }

    /// With sockets here. A fresh directory is made where nothing is said.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// With this done in the new process, between fork and exec: little more than
    /// system calls.
    #[must_use]
    pub fn setup(mut self, setup: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.setup = Some(Arc::new(setup));
        self
    }

    /// With a limit, such as [`libc::RLIMIT_AS`], soft and hard.
    #[must_use]
    pub fn limit(self, what: libc::__rlimit_resource_t, most: u64) -> Self {
        self.setup(move || {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: the value is live.
            match unsafe { libc::setrlimit(what, &raw const limit) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }

    /// As this user and group, who is given the directory of the sockets, and a
    /// copy of the program there: nobody else's directories need be open to them.
    /// For root.
    #[must_use]
    pub const fn user(mut self, id: u32) -> Self {
        self.user = Some(id);
        self
    }

    /// The same run without the agent.
    #[must_use]
    pub fn unprofiled(&self, plain: Plain) -> Self {
        let mut run = self.clone();
        match plain {
            Plain::Twin => run.name.push_str("-plain"),
            Plain::Off => run.env.push(("HEAPTOP".into(), "off".into())),
        }
        run
    }

    /// The command, all streams piped, with sockets in `directory`.
    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut program = binaries::path(&self.name);
        if let Some(id) = self.user {
            let copy = directory.join("program");
            std::fs::copy(&program, &copy).expect("there is room for a copy");
            std::os::unix::fs::chown(directory, Some(id), Some(id)).expect("root can do that");
            program = copy;
        }
        let mut command = Command::new(program);
        // What the developer has set must not reach the tests.
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("HEAPTOP") {
                command.env_remove(key);
            }
        }
        command.args(&self.args).env("HEAPTOP_DIR", directory);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(id) = self.user {
            command.uid(id).gid(id);
        }
        if let Some(setup) = self.setup.clone() {
            // SAFETY: it makes system calls, and allocates at most, which glibc
            // allows in a forked child.
            unsafe { command.pre_exec(move || setup()) };
        }
        command
    }

    /// Whether it can be started at all: that its set-up is allowed here.
    #[must_use]
    pub fn starts(&self) -> bool {
        let directory = socket_directory();
        let started = self.command(directory.path()).spawn();
        started.is_ok_and(|mut child| {
            let _ = child.kill();
            child.wait().is_ok()
        })
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// When it cannot be started or does not end.
    #[must_use]
    pub fn to_end(&self) -> Ended {
        let fresh = self.directory.is_none().then(socket_directory);
        let directory = match (&fresh, &self.directory) {
            (Some(fresh), _) => fresh.path(),
            (None, Some(directory)) => directory,
            (None, None) => unreachable!("one of them is there"),
        };
        let mut child = self
            .command(directory)
            .spawn()
            .unwrap_or_else(|e| panic!("{} does not start: {e}", self.name));
        let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
        if let Some(mut stdin) = child.stdin.take() {
            // It may end without reading.
            let _ = stdin.write_all(self.input.as_bytes());
        }
        let status = wait(&mut child).unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{} {:?} does not end", self.name, self.args)
        });
        let text = |reader: JoinHandle<String>| reader.join().expect("reading does not fail");
        Ended { status, stdout: text(stdout), stderr: text(stderr) }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    poll(Deadline::after(PATIENCE), || child.try_wait().expect("a child can be waited for"))
}

fn reader(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Ended {
    /// The same without the truths that a target prints, which need not be the same
    /// twice.
    #[must_use]
    pub fn without_truths(&self) -> Self {
        let lines = self.stdout.lines().filter(|line| !line.starts_with('{'));
        let stdout = lines.fold(String::new(), |all, line| all + line + "\n");
        Self { stdout, ..self.clone() }
    }

    /// Compares output and end with those of the program unprofiled.
    ///
    /// # Panics
    ///
    /// When they differ.
    pub fn assert_same(&self, plain: &Self) {
        let show = |ended: &Self| format!("{}\n{}{}", ended.status, ended.stdout, ended.stderr);
        assert!(
            self.status == plain.status && self.stdout == plain.stdout,
            "profiled it ended otherwise:\n{}\nunprofiled:\n{}",
            show(self),
            show(plain)
        );
    }
}

/// Runs the program profiled and unprofiled, and compares. Gives how it ended
/// profiled.
///
/// # Panics
///
/// When they differ.
#[allow(clippy::must_use_candidate, reason = "the comparison is what it is called for")]
pub fn same_as_unprofiled(run: &Run, plain: Plain) -> Ended {
    let plain = run.unprofiled(plain).to_end();
    let profiled = run.to_end();
    profiled.assert_same(&plain);
    profiled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_failure() {
        let ended = |code| Run::of("fixture-exits", &[code]).input("go\n").to_end();
        let (zero, three) = (ended("0"), ended("3"));
        assert_eq!((zero.stdout.as_str(), three.status.code()), ("ready\n", Some(3)));
        zero.assert_same(&zero.clone());
        assert!(std::panic::catch_unwind(|| zero.assert_same(&three)).is_err());
        let other = Ended { stdout: "ready?\n".into(), ..zero.clone() };
        assert!(std::panic::catch_unwind(|| zero.assert_same(&other)).is_err());
    }
}
