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
mod output;
mod record;
mod report;
mod seal;

pub(crate) use crate::size::bytes;
pub(crate) use export_ctf::write_trace;
pub(crate) use list::escaped;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use heaptop_protocol::estimate::Interval;

use crate::config::Coloured;
use crate::proof::{self, Plan, ProofError};
use crate::query::filter;
use crate::session::{Damage, Missing, Session};
use crate::size;
use crate::source::Link;
use crate::source::demo::Demo;
use crate::source::discover::survey;
use crate::source::wanted::Wanted;
use crate::terminal::{self, Begin, Ended, Left, Setup};
use crate::view::text;
use crate::view::theme::Palette;

/// A live, statistical heap profiler for the terminal.
///
/// Without a command: attaches to the target of this user, or lists them to choose one.
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
    let (sentence, code) = match arguments().and_then(|arguments| run(&arguments)) {
        Ok(()) | Err(Failure::BrokenPipe) => return ExitCode::SUCCESS,
        Err(Failure::Signal(number)) => return ExitCode::from(128 + (number & 0x7f) as u8),
        Err(Failure::Status(code)) => return ExitCode::from(code),
        Err(Failure::Failed(sentence)) => (sentence, 1),
        Err(Failure::Usage(sentence)) => (sentence, 2),
    };
    say(&sentence);
    ExitCode::from(code)
}

/// The command line. Who names a target where a command stands is told how to attach to it;
/// all else that is wrong the parser tells.
fn arguments() -> Result<Arguments, Failure> {
    Arguments::try_parse().map_err(|error| match meant_a_target(&error) {
        Some(sentence) => Failure::Usage(sentence),
        None => error.exit(),
    })
}

/// What to say where a word that is like no command stands in the place of one.
fn meant_a_target(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let like_a_command = error.get(ContextKind::SuggestedSubcommand).is_some();
    (error.kind() == ErrorKind::InvalidSubcommand && !like_a_command).then(|| {
        format!(
            "there is no command {word}: `heaptop attach {word}` attaches to the target of that \
             name or pid, `heaptop open {word}` shows a recording, and `heaptop help` lists the \
             commands"
        )
    })
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
    let mut setup = config::setup(arguments, named);
    match &arguments.command {
        Some(Command::Demo { .. }) => demo(setup),
        Some(Command::Open(open)) => open.run(setup),
        Some(Command::Attach { target }) => {
            let meant = Wanted::from(&**target).find().map_err(Failure::Usage)?;
            setup.said.extend(meant.guessed);
            attach(&meant.socket, None, setup)
        }
        _ => choose(setup),
    }
}

/// Where the target listens that is called so. If that was not its whole name, says which it is.
fn meant(target: &str) -> Result<PathBuf, Failure> {
    let meant = Wanted::from(target).find().map_err(Failure::Usage)?;
    if let Some(sentence) = &meant.guessed {
        say(sentence);
    }
    Ok(meant.socket)
}

fn list(json: bool) -> Result<(), Failure> {
    let survey = survey().map_err(|error| Failure::Usage(error.to_string()))?;
    for trouble in &survey.troubles {
        say(trouble);
    }
    let mut out = io::stdout().lock();
    if json {
        list::json(&survey.targets, &mut out)?;
    } else if !survey.targets.is_empty() {
        list::table(&survey.targets, &mut out)?;
    } else if survey.troubles.is_empty() {
        say(list::NONE);
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
    let survey = survey().map_err(|error| Failure::Usage(error.to_string()))?;
    match &survey.targets[..] {
        // With one target there is nothing to ask.
        [found] => attach(&found.target.socket, None, setup),
        _ => shown(terminal::run(Begin::Choice(survey), setup)).map(drop),
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
    let socket = demo.socket().to_owned();
    attach(&socket, Some(demo), setup)
}

fn attach(socket: &Path, demo: Option<Demo>, setup: Setup) -> Result<(), Failure> {
    let link = Link::open(socket).map_err(|error| Failure::Usage(error.to_string()))?;
    shown(terminal::run(Begin::Target(link, demo), setup)).map(drop)
}

/// How a screen ended, and what was recorded until then; where what was shown is damaged.
fn shown(left: anyhow::Result<Left>) -> Result<Vec<Damage>, Failure> {
    let Left { ended, said, damage } =
        left.map_err(|error| Failure::Failed(format!("{error:#}")))?;
    for sentence in &said {
        say(sentence);
    }
    match ended {
        Ended::Quit => Ok(damage),
        Ended::Signal(number) => Err(Failure::Signal(number)),
        Ended::TerminalGone => Err(Failure::Signal(signal_hook::consts::SIGHUP)),
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

    #[test]
    fn who_names_a_target_is_told_how_to_attach() {
        let said =
            |line: &str| meant_a_target(&Arguments::try_parse_from(line.split(' ')).unwrap_err());
        let sentence = said("heaptop orders-api").unwrap();
        assert!(sentence.contains("`heaptop attach orders-api`"), "{sentence}");
        assert!(said("heaptop 4711").unwrap().contains("`heaptop attach 4711`"));
        for parsers in ["heaptop atach 1", "heaptop attach", "heaptop --nothing"] {
            assert_eq!(said(parsers), None, "{parsers}");
        }
    }
}
