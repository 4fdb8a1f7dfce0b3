//! `heaptop export --format svg|folded`: callstacks with what they count.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::load::load;
use super::report::Moment;
use super::{Failure, say};
use crate::export::{self, Request};
use crate::query::{self, Direction};
use crate::report::views;

/// Writes a flamegraph of a recording, or of a running target.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// A recording, or a target's pid, name or socket.
    #[arg(value_name = "FILE|PID|NAME")]
    source: String,
    /// What is written.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Picture,
    #[command(flatten)]
    moment: Moment,
    /// Callstacks through this function alone; again for the one that calls it.
    #[arg(long, value_name = "FUNCTION")]
    focus: Vec<String>,
    /// Callstacks whose callsite, file or callers contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Where to; - is standard output. Without: a new file here.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What callstacks are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Picture {
    /// A flamegraph.
    Svg,
    /// A line for each callstack, root first, and its number: for other tools.
    Folded,
}

impl Export {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let session = load(&self.source)?;
        let when = self.moment.when(&session)?;
        let focus = views::focus(&session, &self.focus).map_err(Failure::Usage)?;
        let request = Request::of(
            &session,
            when,
            (&focus, Direction::Callers),
            self.moment.metric(),
            &self.filter,
            focus.iter().filter_map(|key| query::find(&session, *key)).collect(),
        );
        let made = match self.format {
            Picture::Svg => request.svg(),
            Picture::Folded => request.folded(),
        };
        let bytes = made.map_err(|error| Failure::Usage(error.to_string()))?;
        let extension = match self.format {
            Picture::Svg => "svg",
            Picture::Folded => "folded",
        };
        write(self.output.as_deref(), &request, extension, &bytes)
    }
}

fn write(
    output: Option<&Path>,
    request: &Request,
    extension: &str,
    bytes: &[u8],
) -> Result<(), Failure> {
    match output {
        Some(path) if path == Path::new("-") => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            Ok(out.flush()?)
        }
        Some(path) => export::write(path, bytes).map_err(|error| {
            let more = if error.kind() == io::ErrorKind::AlreadyExists {
                ": move it away or choose another name"
            } else {
                ""
            };
            Failure::Usage(format!("cannot write {}: {error}{more}", path.display()))
        }),
        None => {
            let written = export::write_new(request, Path::new("."), extension, bytes);
            let path = written.map_err(Failure::Failed)?;
            say(&format!("written: {}", path.display()));
            Ok(())
        }
    }
}
