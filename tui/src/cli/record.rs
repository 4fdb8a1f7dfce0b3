//! `heaptop record`: a target into a file, without a screen.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use super::{Failure, meant, say, size};
use crate::record::{self, How, Plan, Summary};
use crate::source::Link;
use crate::source::wanted::socket_of;
use crate::view::format::{self, Rounding};

/// Between two looks for the child's agent.
const LOOK: Duration = Duration::from_millis(10);
/// A child without an agent is named as such after this long.
const AGENT: Duration = Duration::from_secs(10);
/// Between two lines about progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// What to say where nothing is named.
const NOTHING: &str = "what shall be recorded? A target, by its pid, its name or its socket \
                       (`heaptop list` names them), or a command: heaptop record -- COMMAND";
/// No time is longer: a century.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Records a target into a file, without a screen. ^C ends it.
///
/// The file can be opened at any moment with `heaptop open`, also while it is being
/// written, and holds the names of functions.
#[derive(Debug, Args)]
pub(super) struct Record {
    /// The file, which must not be there yet. Without it: NAME-PID-DATE.heaptop in the
    /// working directory, the date in UTC.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(short, long, requires = "output")]
    force: bool,
    /// End after so long: 90s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Go on in a next file when one has so many bytes: 64M, 1G. Files are numbered:
    /// FILE.1.heaptop, FILE.2.heaptop.
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    rotate_size: Option<u64>,
    /// Go on in a next file after so long.
    #[arg(long, value_name = "TIME", value_parser = time)]
    rotate_time: Option<Duration>,
    /// Keep the last N of such files.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,
    /// The target's pid, name, or the path of its socket.
    #[arg(value_name = "PID|NAME|SOCKET", conflicts_with = "command")]
    target: Option<String>,
    /// A command to start and record. It must have the agent linked.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Reads 90s, 5m, 1h, or a number of seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let sentence = || "it must be a time above 0, such as 90s, 5m or 1h".to_owned();
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(sentence()),
    };
    let seconds = unit * number.trim().parse::<f64>().map_err(|_| sentence())?;
    if seconds > LONGEST.as_secs_f64() {
        return Err("it is longer than anything runs: name a time such as 90s, 5m or 1h".into());
    }
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| sentence())?;
    if time.is_zero() { Err(sentence()) } else { Ok(time) }
}

/// Signals that ask for an end: the last one's number, 0 while none came.
pub(super) fn signals() -> Result<Arc<AtomicUsize>, Failure> {
    let came = Arc::new(AtomicUsize::new(0));
    let failed = |e: io::Error| Failure::Failed(format!("signals cannot be waited for: {e}"));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)
            .map_err(failed)?;
    }
    // A file that may not grow any more is an error of the write, and ends nothing.
    let large = Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, large).map_err(failed)?;
    Ok(came)
}

impl Record {
    fn plan(&self) -> Plan {
        Plan {
            output: self.output.clone(),
            replace: self.force,
            duration: self.duration,
            rotate_bytes: self.rotate_size,
            rotate_time: self.rotate_time,
            keep: self.keep.map(usize::from),
        }
    }

    /// Records. The code is the child's, where there is one that fails.
    pub(super) fn run(&self) -> Result<(), Failure> {
        let plan = self.plan();
        plan.check().map_err(|error| Failure::Usage(error.to_string()))?;
        let came = signals()?;
        if !self.command.is_empty() {
            return self.run_command(&plan, &came);
        }
        let Some(target) = &self.target else {
            return Err(Failure::Usage(NOTHING.into()));
        };
        let socket = meant(target)?;
        let link = Link::open(&socket).map_err(|error| Failure::Usage(error.to_string()))?;
        let mut shown = Shown::new();
        let summary = record::run(link, &plan, |bytes, events, lost| {
            shown.show(bytes, events, lost);
            came.load(SeqCst) != 0
        });
        shown.clear();
        let summary = summary.map_err(|error| Failure::Usage(error.to_string()))?;
        tell(&summary);
        summary.how.map(drop).map_err(|error| Failure::Failed(error.to_string()))
    }

    fn run_command(&self, plan: &Plan, came: &AtomicUsize) -> Result<(), Failure> {
        let [program, arguments @ ..] = self.command.as_slice() else { return Ok(()) };
        let mut child = Command::new(program).args(arguments).spawn().map_err(|e| {
            Failure::Usage(format!("cannot start {}: {e}", program.to_string_lossy()))
        })?;
        let mut told = false;
        let began = Instant::now();
        let link = loop {
            pass_on(came, &child);
            if let Some(status) = ended(&mut child)? {
                say(&format!(
                    "{} ended before an agent of heaptop was to be found in it, and nothing was recorded: link heaptop-agent into it; what ends at once is recorded with HEAPTOP_RECORD=FILE in its environment",
                    program.to_string_lossy()
                ));
                return code(status).and(Err(Failure::Status(2)));
            }
            if let Some(link) = socket_of(child.id()).ok().and_then(|s| Link::open(&s).ok()) {
                break link;
            }
            if !told && began.elapsed() >= AGENT {
                told = true;
                say(&format!(
                    "no agent of heaptop is to be found in {} so far: it must be linked with heaptop-agent; waiting for it",
                    program.to_string_lossy()
                ));
            }
            std::thread::sleep(LOOK);
        };
        // The terminal is the child's, so no progress is shown.
        let summary = record::run(link, plan, |_, _, _| {
            pass_on(came, &child);
            false
        });
        let done = match summary {
            Ok(summary) => {
                tell(&summary);
                summary.how.map(drop).map_err(|error| (error.to_string(), 1))
            }
            Err(error) => Err((error.to_string(), 2)),
        };
        if let Err((sentence, _)) = &done {
            say(sentence);
        }
        loop {
            if let Some(status) = ended(&mut child)? {
                return code(status).and(done.map_err(|(_, code)| Failure::Status(code)));
            }
            pass_on(came, &child);
            std::thread::sleep(LOOK);
        }
    }
}

/// Hands a signal on to the child, which ends or does not: its end is ours.
fn pass_on(came: &AtomicUsize, child: &Child) {
    let signal = match i32::try_from(came.swap(0, SeqCst)).unwrap_or(0) {
        SIGTERM => Signal::TERM,
        SIGHUP => Signal::HUP,
        // ^C reaches the child by itself.
        _ => return,
    };
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

fn ended(child: &mut Child) -> Result<Option<ExitStatus>, Failure> {
    child.try_wait().map_err(|e| Failure::Failed(format!("the command cannot be waited for: {e}")))
}

fn code(status: ExitStatus) -> Result<(), Failure> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::Status(code as u8)),
        (None, Some(signal)) => Err(Failure::Signal(signal)),
        (None, None) => Err(Failure::Status(1)),
    }
}

/// What was recorded, in a line.
fn tell(summary: &Summary) {
    let Summary { path, files, bytes, events, samples, lost, how } = summary;
    let how = how.as_ref().map_or_else(
        |_| String::new(),
        |how| match how {
            How::Stopped => String::new(),
            How::Target(sentence) => format!("; {sentence}"),
        },
    );
    let files =
        if *files > 1 { format!(" and {} files before it", files - 1) } else { String::new() };
    say(&format!(
        "recorded {}{files}: {}, {events} events, {samples} samples, {lost} lost{how}",
        path.display(),
        format::bytes(*bytes as f64, 3, Rounding::Nearest),
    ));
}

/// The line about progress, while standard error is a terminal.
struct Shown {
    terminal: bool,
    last: Option<Instant>,
}

impl Shown {
    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), last: None }
    }

    fn show(&mut self, bytes: u64, events: u64, lost: u64) {
        if !self.terminal || self.last.is_some_and(|last| last.elapsed() < PROGRESS) {
            return;
        }
        self.last = Some(Instant::now());
        let bytes = format::bytes(bytes as f64, 3, Rounding::Nearest);
        let events = format::count(events as f64, 3, Rounding::Nearest);
        let _ = write!(
            io::stderr(),
            "\r\x1b[Krecording: {bytes}, {events} events, {lost} lost; ^C ends it"
        );
    }

    fn clear(&mut self) {
        if self.last.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_nonsense_is_a_sentence() {
        for (text, seconds) in
            [("90s", 90.0), ("5m", 300.0), ("1h", 3600.0), ("2", 2.0), ("1.5s", 1.5)]
        {
            assert_eq!(time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "1d", "1e99h", "nan", "é"] {
            assert!(time(text).unwrap_err().contains("such as 90s"), "{text}");
        }
        for text in ["99999999999999999999s", "9999999999"] {
            assert!(time(text).unwrap_err().starts_with("it is longer than"), "{text}");
        }
    }

    #[test]
    fn who_names_nothing_is_told_of_targets_and_commands() {
        let nothing = Record {
            output: None,
            force: false,
            duration: None,
            rotate_size: None,
            rotate_time: None,
            keep: None,
            target: None,
            command: Vec::new(),
        };
        let Err(Failure::Usage(said)) = nothing.run() else { panic!("nothing was recorded") };
        assert!(said.contains("its name") && said.contains("record -- COMMAND"), "{said}");
    }
}
