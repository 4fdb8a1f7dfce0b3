//! `heaptop report`: what a screen shows, printed.

use std::io::{self, IsTerminal, Write};
use std::num::IntErrorKind;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Failure, list, load, record};
use crate::query::{Grouping, Metric, When};
use crate::report::{self, Asked, View, csv, json, text, views};
use crate::session::{Connection, Session};
use crate::system::Memory;
use crate::times::{self, Range, Time};

/// Prints a table of a recording, or of a running target.
///
/// Times are given since the target's start (90s, 1m30s), before the end (-10s), by the
/// clock in UTC (12:34:56), or by a mark's name; also `start`, `end` and `peak`.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A recording, or a target's pid, name or socket.
    #[arg(value_name = "FILE|PID|NAME")]
    source: String,
    /// Which table.
    #[arg(long, value_enum, default_value_t = View::Callsites, value_name = "VIEW")]
    view: View,
    #[command(flatten)]
    moment: Moment,
    /// Most rows.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = rows)]
    top: usize,
    /// Watch a running target for so long first: 10s, 5m. ^C ends it early.
    #[arg(long = "for", value_name = "TIME", value_parser = record::time)]
    watch: Option<Duration>,
    /// Callers of this function; again for the one that calls it.
    #[arg(long, value_name = "FUNCTION")]
    focus: Vec<String>,
    /// What the screen's filter would take, such as 'via:parse size>4K': see the help there.
    #[arg(long, value_name = "FILTER", default_value = "")]
    filter: String,
    /// What a row of the callsites is.
    #[arg(long, value_enum, default_value_t = Group::Callsite, value_name = "GROUP")]
    group: Group,
    /// A limit of bytes in use, such as 2G: when growth comes to it is forecast with the leaks.
    #[arg(long, value_name = "BYTES", value_parser = super::bytes)]
    limit: Option<u64>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

/// What is counted, and of when.
#[derive(Debug, Args)]
pub(super) struct Moment {
    /// What is counted, and ordered by.
    #[arg(long, value_enum, default_value_t = Counted::InUseBytes, value_name = "METRIC")]
    metric: Counted,
    /// At a moment of the past.
    #[arg(long, value_name = "TIME", value_parser = times::time, allow_hyphen_values = true)]
    at: Option<Time>,
    /// Over a stretch of time.
    #[arg(long, value_name = "FROM..TO", value_parser = times::range, conflicts_with = "at", allow_hyphen_values = true)]
    range: Option<Range>,
    /// Over the last time that the program was in this phase.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["at", "range"])]
    phase: Option<String>,
}

impl Moment {
    /// Whether another moment than now is asked for.
    const fn is_when(&self) -> bool {
        self.at.is_some() || self.range.is_some() || self.phase.is_some()
    }

    /// Whether anything but the usual is asked for.
    pub(super) const fn is_given(&self) -> bool {
        self.is_when() || !matches!(self.metric, Counted::InUseBytes)
    }

    pub(super) fn metric(&self) -> Metric {
        match self.metric {
            Counted::InUseBytes => Metric::InUseBytes,
            Counted::InUseObjects => Metric::InUseObjects,
            Counted::AllocatedBytes => Metric::AllocatedBytes,
            Counted::AllocatedObjects => Metric::AllocatedObjects,
            Counted::PromotedBytes => Metric::PromotedBytes,
            Counted::ShortLivedBytes => Metric::ShortLivedBytes,
        }
    }

    pub(super) fn when(&self, session: &Session) -> Result<When, Failure> {
        if let Some(name) = &self.phase {
            return times::phase(name, session).map_err(Failure::Usage);
        }
        let resolved = match (&self.at, &self.range) {
            // The peak is told with its callstacks, also from before there was a viewer.
            (Some(Time::Peak), _) => times::peak(session),
            (Some(at), _) => at.resolve(session).map(When::At),
            (None, Some(range)) => {
                range.resolve(session).map(|(from_ns, to_ns)| When::Range { from_ns, to_ns })
            }
            (None, None) => Ok(When::Now),
        };
        resolved.map_err(Failure::Usage)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Counted {
    InUseBytes,
    InUseObjects,
    AllocatedBytes,
    AllocatedObjects,
    PromotedBytes,
    ShortLivedBytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// A function and line.
    Callsite,
    /// A function, and what it calls.
    Function,
    /// A source file.
    File,
    /// A crate, package or namespace, else a module.
    Crate,
    /// Blocks of about the same size.
    Size,
    /// The thread that allocated.
    Thread,
}

impl From<Group> for Grouping {
    fn from(group: Group) -> Self {
        match group {
            Group::Callsite => Self::Callsite,
            Group::Function => Self::Function,
            Group::File => Self::File,
            Group::Crate => Self::Crate,
            Group::Size => Self::Size,
            Group::Thread => Self::Thread,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs: every figure with its interval.
    Json,
    /// For spreadsheets.
    Csv,
}

/// Reads how many rows there may be.
fn rows(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(rows @ 1..) => Ok(rows),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("there are never so many rows: {} at most", usize::MAX))
        }
        _ => Err("it must be a number of rows, 1 at least".to_owned()),
    }
}

impl Report {
    /// What was asked for that has no meaning together.
    fn checked(&self) -> Result<(), Failure> {
        if self.view == View::Peak && self.moment.is_when() {
            return Err(Failure::Usage(
                "the peak is a moment: leave --at, --range and --phase out".into(),
            ));
        }
        if self.view != View::Callers && !self.focus.is_empty() {
            return Err(Failure::Usage(
                "--focus is for --view callers: --filter keeps some rows of other views".into(),
            ));
        }
        if self.view != View::Callsites && !matches!(self.group, Group::Callsite) {
            return Err(Failure::Usage("--group is for --view callsites".into()));
        }
        if self.view != View::Leaks && self.limit.is_some() {
            return Err(Failure::Usage("--limit is for --view leaks".into()));
        }
        let counted = match self.view {
            View::Callsites | View::Callers | View::External => true,
            View::Peak => {
                matches!(self.moment.metric, Counted::InUseBytes | Counted::InUseObjects)
            }
            View::Promotion | View::Threads | View::Leaks | View::Course => {
                matches!(self.moment.metric, Counted::InUseBytes)
            }
        };
        if !counted {
            return Err(Failure::Usage(match self.view {
                View::Peak => {
                    "the peak is of what was in use: --metric in-use-bytes or in-use-objects".into()
                }
                view => {
                    format!("--metric is without effect on --view {}: leave it out", view.name())
                }
            }));
        }
        if self.watch.is_some() && load::is_file(self.source.as_ref()) {
            return Err(Failure::Usage(format!(
                "--for is for targets that run: {} is a file, and holds all that it ever will",
                self.source
            )));
        }
        Ok(())
    }

    pub(super) fn run(&self) -> Result<(), Failure> {
        self.checked()?;
        let session = match self.watch {
            Some(time) => load::watched(&self.source, time)?,
            None => load::load(&self.source)?,
        };
        // Phases and marks are no callstacks: their names are looked for.
        if self.view != View::Course {
            super::understood(&session, &self.filter)?;
        }
        let asked = Asked {
            view: self.view,
            metric: self.moment.metric(),
            top: self.top,
            focus: self.focus.clone(),
            filter: self.filter.clone(),
            when: self.moment.when(&session)?,
            group: self.group.into(),
            limit: self.limit,
            // A file has no limits.
            memory: (self.view == View::Leaks && *session.connection() == Connection::Connected)
                .then(|| session.hello().map(|hello| Memory::read(hello.pid)))
                .flatten(),
        };
        print(&session, &asked, self.format)?;
        super::sound(&self.source, session.damage())
    }
}

/// What the first screen would show, where there is no terminal for it.
pub(super) fn plain(source: &str, session: &Session) -> Result<(), Failure> {
    let asked = Asked {
        view: View::Callsites,
        metric: Metric::InUseBytes,
        top: 20,
        focus: Vec::new(),
        filter: String::new(),
        when: When::Now,
        group: Grouping::Callsite,
        limit: None,
        memory: None,
    };
    print(session, &asked, Format::Text)?;
    super::sound(source, session.damage())
}

fn print(session: &Session, asked: &Asked, format: Format) -> Result<(), Failure> {
    let report: report::Report = views::report(session, asked).map_err(Failure::Usage)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Text => text::write(&report, width(), &mut out)?,
        Format::Json => json::write(&report, list::escaped, &mut out)?,
        Format::Csv => csv::write(&report, &mut out)?,
    }
    Ok(out.flush()?)
}

/// Columns of the terminal that is printed to; where it is none, what COLUMNS says.
fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    match terminal {
        Some(Ok(size)) if size.ws_col > 0 => size.ws_col.into(),
        _ => said().unwrap_or(text::WIDTH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        report: Report,
    }

    fn refused(line: &str) -> Option<String> {
        let words = std::iter::once("report").chain(line.split(' '));
        match Line::try_parse_from(words).map(|line| line.report.checked()) {
            Ok(Ok(())) => None,
            Ok(Err(Failure::Usage(sentence))) => Some(sentence),
            Ok(Err(other)) => panic!("{line}: {other:?}"),
            Err(error) => Some(error.to_string()),
        }
    }

    #[test]
    fn what_would_be_without_effect_is_refused() {
        for (line, sentence) in [
            ("x --top 0", "it must be a number of rows, 1 at least"),
            ("x --top -1", "unexpected argument"),
            ("x --top 99999999999999999999999", "never so many rows"),
            ("x --view leaks --metric allocated-bytes", "on --view leaks: leave it out"),
            ("x --view threads --metric in-use-objects", "on --view threads: leave it out"),
            ("x --view peak --metric allocated-bytes", "the peak is of what was in use"),
            ("missing.heaptop --for 10s", "missing.heaptop is a file"),
            ("x --for never", "such as 90s"),
        ] {
            let said = refused(line).unwrap_or_default();
            assert!(said.contains(sentence), "{line}: {said}");
        }
        for line in [
            "x --top 1",
            "x --view leaks --metric in-use-bytes --for 10s",
            "x --view peak --metric in-use-objects",
            "x --view external --metric allocated-bytes",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
    }
}
