//! The command line: what is asked, and how it ends.
//!
//! Exit codes: 0 done, 1 the target failed, 2 usage, unusable input (a demo that cannot be
//! shown as well), or a file of which a part is damaged: what could be read is printed or
//! written then. With one sentence on standard error. After a signal, 128 and its number. A
//! broken pipe ends quietly.

mod config;
mod dump;
mod export;
mod export_ctf;
mod export_stacks;
mod list;
mod load;
mod man;
mod open;
mod pick;
mod record;
mod report;
mod seal;

pub(crate) use crate::size::bytes;
pub(crate) use list::escaped;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use heaptop_protocol::estimate::Interval;

use crate::config::Coloured;
use crate::proof::{self, Plan, ProofError};
use crate::query::filter;
use crate::session::{Damage, Missing, Session};
use crate::size;
use crate::source::Link;
use crate::source::demo::Demo;
use crate::source::discover::{Survey, survey};
use crate::source::wanted::Wanted;
use crate::symbols::Symbolizer;
use crate::terminal::{self, Ended, Setup};
use crate::view::text;
use crate::view::theme::Palette;

/// A live, statistical heap profiler for the terminal.
///
/// Without a command: attaches to the target of this user, or asks which.
#[derive(Debug, Parser)]
#[command(name = "heaptop", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Use colours [default: auto].
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    color: Option<Coloured>,
    /// Which colours, if any [default: dark].
    #[arg(long, global = true, value_enum, value_name = "THEME")]
    theme: Option<Palette>,
    /// Read this configuration instead of the user's own.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Draw with ASCII characters alone.
    #[arg(long, global = true)]
    ascii: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the built-in demo target and attaches to it.
    Demo {
        /// Print truth, estimate and interval side by side instead.
        ///
        /// The same work is done exactly (every block counted) and sampled; the
        /// table says of each interval whether it holds the truth.
        #[arg(long)]
        prove: bool,
        /// Sampling interval of the proof: 64K, 512KiB, 1M, or bytes.
        #[arg(long, requires = "prove", value_name = "SIZE", default_value = "64K", value_parser = size::interval)]
        interval: Interval,
        /// Sampled runs of the proof.
        #[arg(long, requires = "prove", value_name = "N", default_value_t = 5, value_parser = runs())]
        runs: u32,
        /// Repeats a proof.
        #[arg(long, requires = "prove", value_name = "N")]
        seed: Option<u32>,
    },
    /// Attaches to a running target.
    Attach {
        /// Its pid, its name, or the path of its socket.
        #[arg(value_name = "PID|NAME|SOCKET")]
        target: String,
    },
    Report(report::Report),
    /// Lists the running targets of this user.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    Record(record::Record),
    Open(open::Open),
    Seal(seal::Seal),
    Dump(dump::Dump),
    Export(export::Export),
    Config(config::Command),
    /// Prints completions for a shell.
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Prints the manual page: heaptop man | man -l -
    Man,
}

/// How a command ends other than well.
#[derive(Debug)]
enum Failure {
    /// The target, or the system: 1.
    Failed(String),
    /// What was asked cannot be: 2.
    Usage(String),
    /// With the status of a program that was started.
    Status(u8),
    /// By a signal.
    Signal(i32),
    /// Nobody reads what is printed.
    BrokenPipe,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::Failed(format!("cannot print: {error}"))
        }
    }
}

/// The program `heaptop`.
#[must_use]
pub fn main() -> ExitCode {
    let (sentence, code) = match run(&Arguments::parse()) {
        Ok(()) | Err(Failure::BrokenPipe) => return ExitCode::SUCCESS,
        Err(Failure::Signal(number)) => return ExitCode::from(128 + (number & 0x7f) as u8),
        Err(Failure::Status(code)) => return ExitCode::from(code),
        Err(Failure::Failed(sentence)) => (sentence, 1),
        Err(Failure::Usage(sentence)) => (sentence, 2),
    };
    say(&sentence);
    ExitCode::from(code)
}

/// One line on standard error. What is in it may come from a target, from a file's
/// name, or from the command line.
fn say(sentence: &str) {
    let line = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    // If nobody reads it, the exit code says it.
    let _ = writeln!(io::stderr(), "heaptop: {}", text::clean(&line));
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let terminal = io::stdout().is_terminal();
    // A file that was named must be there, whatever is done.
    let named = arguments.config.as_deref().map(config::named).transpose()?;
    match &arguments.command {
        Some(Command::Config(command)) => return command.run(arguments.config.as_deref(), named),
        Some(Command::Completions { shell }) => return completions(*shell),
        Some(Command::Man) => return man::print(&Arguments::command(), &mut io::stdout().lock()),
        Some(Command::List { json }) => return list(*json),
        Some(Command::Record(record)) => return record.run(),
        Some(Command::Seal(seal)) => return seal.run(),
        Some(Command::Dump(dump)) => return dump.run(),
        Some(Command::Export(export)) => return export.run(),
        Some(Command::Report(report)) => return report.run(),
        Some(Command::Attach { target }) if !terminal => {
            return report::plain(target, &load::load(target)?);
        }
        Some(Command::Open(open)) if !terminal => return open.plain(),
        Some(Command::Demo { prove: true, interval, runs, seed }) => {
            let (interval, runs) = (*interval, *runs);
            return prove(&Plan { interval, runs, seed: seed.unwrap_or_else(any_seed) });
        }
        _ => {}
    }
    if !terminal {
        return Err(Failure::Usage(
            "standard output is no terminal, and a screen needs one: `heaptop list` and `heaptop report` print without"
                .into(),
        ));
    }
    terminal::usable(|name| std::env::var(name).ok()).map_err(Failure::Usage)?;
    let setup = config::setup(arguments, named);
    match &arguments.command {
        Some(Command::Demo { .. }) => demo(setup),
        Some(Command::Open(open)) => open.run(setup),
        Some(Command::Attach { target }) => {
            let socket = Wanted::from(&**target).socket().map_err(Failure::Usage)?;
            attach(&socket, setup)
        }
        _ => choose(setup),
    }
}

/// The targets; what else was met is told.
fn look() -> Result<Survey, Failure> {
    let survey = survey().map_err(|error| Failure::Usage(error.to_string()))?;
    for trouble in &survey.troubles {
        say(trouble);
    }
    Ok(survey)
}

fn list(json: bool) -> Result<(), Failure> {
    let survey = look()?;
    let mut out = io::stdout().lock();
    if json {
        list::json(&survey.targets, &mut out)?;
    } else if !survey.targets.is_empty() {
        list::table(&survey.targets, None, &mut out)?;
    } else if survey.troubles.is_empty() {
        writeln!(io::stderr(), "heaptop: {}", pick::NONE)?;
    }
    Ok(out.flush()?)
}

/// Made as a whole first: what makes it takes no error of a pipe.
fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "heaptop", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

fn choose(setup: Setup) -> Result<(), Failure> {
    let survey = look()?;
    let mut out = io::stdout().lock();
    let choice = pick::choose(&survey.targets, &mut io::stdin().lock(), &mut out)?;
    drop(out);
    match choice {
        pick::Choice::Target(index) => attach(&survey.targets[index].target.socket, setup),
        pick::Choice::Demo => demo(setup),
        pick::Choice::Nothing => Ok(()),
    }
}

fn prove(plan: &Plan) -> Result<(), Failure> {
    match proof::run(plan, &mut io::stdout().lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Failed(
            "the exact run and the program's own counters disagree: the table proves nothing"
                .into(),
        )),
        Err(ProofError::Run(sentence)) => Err(Failure::Usage(sentence)),
        Err(ProofError::Print(error)) => Err(error.into()),
    }
}

fn runs() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(proof::MOST_RUNS))
}

/// A new one each time.
fn any_seed() -> u32 {
    RandomState::new().hash_one(()) as u32
}

fn demo(setup: Setup) -> Result<(), Failure> {
    let demo = Demo::start().map_err(Failure::Usage)?;
    attach(demo.socket(), setup)
}

fn attach(socket: &Path, setup: Setup) -> Result<(), Failure> {
    let link = Link::open(socket).map_err(|error| Failure::Usage(error.to_string()))?;
    let symbols = Symbolizer::start(link.name_answers());
    shown(terminal::run(link, symbols, setup).map(|(ended, recorded)| {
        if let Some(sentence) = recorded {
            say(&sentence);
        }
        ended
    }))
}

/// How a screen ended.
fn shown(ended: anyhow::Result<Ended>) -> Result<(), Failure> {
    match ended {
        Ok(Ended::Quit) => Ok(()),
        Ok(Ended::Signal(number)) => Err(Failure::Signal(number)),
        Ok(Ended::TerminalGone) => Err(Failure::Signal(signal_hook::consts::SIGHUP)),
        Err(error) => Err(Failure::Failed(format!("{error:#}"))),
    }
}

/// What is to be said of a file that is damaged, once all of it that could be read is told.
fn sound(name: &str, damage: &[Damage]) -> Result<(), Failure> {
    let lost = |damage: &&Damage| damage.missing != Missing::Nothing;
    let Some(first) = damage.iter().find(lost).or(damage.first()) else { return Ok(()) };
    let more = match damage.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    if damage.iter().any(|damage| lost(&damage)) {
        return Err(Failure::Usage(format!(
            "{name}: {}{more}; what could be read of it is given",
            first.how
        )));
    }
    say(&format!("{name}: {}{more}", first.how));
    Ok(())
}

/// Whether a filter says something in a session; else where it does not.
fn understood(session: &Session, filter: &str) -> Result<(), Failure> {
    filter::check(session, filter)
        .map_err(|wrong| Failure::Usage(format!("--filter: {}", wrong.shown(filter))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        let parse =
            |line: &str| Arguments::try_parse_from(line.split(' ')).map_err(|e| e.exit_code());
        assert!(matches!(
            parse("heaptop attach 12 --ascii --color never"),
            Ok(Arguments {
                command: Some(Command::Attach { .. }),
                color: Some(Coloured::Never),
                ascii: true,
                ..
            })
        ));
        assert!(parse("heaptop").unwrap().command.is_none());
        assert_eq!(parse("heaptop attach").unwrap_err(), 2);
        assert_eq!(parse("heaptop atach 1").unwrap_err(), 2);
        assert_eq!(parse("heaptop --version").unwrap_err(), 0);
    }
}
