//! `heaptop export`: what is known, in another program's format.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::export_stacks::{self, Picture};
use super::report::Moment;
use super::{Failure, export_ctf, load};
use crate::source::wanted::Wanted;

/// Writes a flamegraph, or what a recording holds in another program's format.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// A recording (.heaptop), a trace (.ctf), or a target's pid, name or socket.
    #[arg(value_name = "FILE|PID|NAME")]
    pub(super) source: String,
    /// What is written.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    #[command(flatten)]
    pub(super) moment: Moment,
    /// Callstacks through this function alone; again for the one that calls it.
    #[arg(long, value_name = "FUNCTION")]
    pub(super) focus: Vec<String>,
    /// What the screen's filter would take, such as 'via:parse size>4K': see the help there.
    #[arg(long, value_name = "FILTER", default_value = "")]
    pub(super) filter: String,
    /// Where to; - is standard output. Without: a new file here.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A flamegraph.
    Svg,
    /// A line for each callstack, root first, and its number: for other tools.
    Folded,
    /// All events of a recording, as a trace for memtrace's viewers.
    Ctf,
}

impl Export {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self.format {
            Format::Svg => export_stacks::run(self, Picture::Svg),
            Format::Folded => export_stacks::run(self, Picture::Folded),
            Format::Ctf if self.moment.is_given() || !self.focus.is_empty() || !self.filter.is_empty() => {
                Err(Failure::Usage(
                    "a trace holds all of a recording: leave --metric, --at, --range, --focus and --filter out".into(),
                ))
            }
            Format::Ctf => {
                recorded(&self.source)?;
                export_ctf::run(self.source.as_ref(), self.output.as_deref())
            }
        }
    }
}

/// Says how a target is exported that runs, where no file is meant but one.
fn recorded(source: &str) -> Result<(), Failure> {
    if load::is_file(source.as_ref()) || Wanted::from(source).find().is_err() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{source} is a target that runs, and a trace is made of a recording: `heaptop record \
         {source} -o FILE.heaptop`, then `heaptop export FILE.heaptop --format ctf`"
    )))
}
