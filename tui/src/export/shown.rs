//! What is written of a screen, in which format, and into which file.

use std::path::PathBuf;

use super::{Names, Request, slug, write};
use crate::cli::escaped;
use crate::report::{Report, csv, json, text};

/// What a screen shows, for exports.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Its callstacks.
    pub request: Request,
    /// Itself, where it is a table.
    pub table: Option<Report>,
    /// The file that it is read from.
    pub recording: Option<PathBuf>,
    /// Columns of the screen: the table as text holds at least as much as was seen there.
    pub columns: usize,
}

/// What it can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A flamegraph.
    Svg,
    /// A line for each callstack.
    Folded,
    /// The table, for people.
    Text,
    /// The table, for spreadsheets.
    Csv,
    /// The table, for programs.
    Json,
    /// All events of the file that is read, for memtrace's viewers: see [`super::trace`].
    Ctf,
}

impl Format {
    /// All of them, in the order of the menu.
    const ALL: [Self; 6] = [Self::Svg, Self::Folded, Self::Text, Self::Csv, Self::Json, Self::Ctf];

    /// What the file's name ends with.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Folded => "folded",
            Self::Text => "txt",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Ctf => "ctf",
        }
    }

    /// What it is.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::Svg => "a flamegraph, for browsers",
            Self::Folded => "folded stacks, for flamegraph tools",
            Self::Text => "the table as text",
            Self::Csv => "the table for spreadsheets, with intervals",
            Self::Json => "the table for programs, with intervals",
            Self::Ctf => "all of the recording, whatever is shown, for memtrace's viewers",
        }
    }

    const fn is_table(self) -> bool {
        matches!(self, Self::Text | Self::Csv | Self::Json)
    }
}

impl Shown {
    /// What it can be written as.
    #[must_use]
    pub fn formats(&self) -> Vec<Format> {
        let can = |format: &Format| match format {
            Format::Ctf => self.recording.is_some(),
            format => self.table.is_some() || !format.is_table(),
        };
        Format::ALL.into_iter().filter(can).collect()
    }

    /// The `n`-th proposal for the file's name.
    #[must_use]
    pub fn file_name(&self, format: Format, n: u32) -> String {
        let what = match &self.table {
            _ if format == Format::Ctf => "trace",
            Some(table) if format.is_table() => table.view.name(),
            _ if self.request.gained => "growth-bytes",
            _ => slug(self.request.metric),
        };
        format!("{}-{what}-{n}.{}", self.request.stem(), format.extension())
    }

    /// A sentence, where there is nothing of it to be written anywhere.
    pub fn check(&self, format: Format) -> Result<(), String> {
        match format {
            Format::Svg | Format::Folded => {
                super::svg::check(&self.request.stacks).map_err(|why| why.to_string())
            }
            Format::Ctf | Format::Text | Format::Csv | Format::Json => Ok(()),
        }
    }

    /// The file's content, or a sentence.
    pub fn bytes(&self, format: Format) -> Result<Vec<u8>, String> {
        let stacks = |made: Result<_, super::ExportError>| made.map_err(|e| e.to_string());
        let mut out = Vec::new();
        let written = match (format, &self.table) {
            (Format::Svg, _) => return stacks(self.request.svg()),
            (Format::Folded, _) => return stacks(self.request.folded()),
            (Format::Ctf, _) => return Err("a trace is made of a file, and not in memory".into()),
            (_, None) => return Err("this screen has no table".into()),
            (Format::Text, Some(table)) => {
                text::write(table, text::WIDTH.max(self.columns), &mut out)
            }
            (Format::Csv, Some(table)) => csv::write(table, &mut out),
            (Format::Json, Some(table)) => json::write(table, escaped, &mut out),
        };
        written.map(|()| out).map_err(|error| error.to_string())
    }
}

/// Makes and writes a new file of the first of these names that is free; its path, or a
/// sentence.
pub fn run(shown: &Shown, format: Format, names: &Names) -> Result<PathBuf, String> {
    write_new(shown, format, names, &shown.bytes(format)?)
}

/// Writes what was made of it into such a file; its path, or a sentence.
pub fn write_new(
    shown: &Shown,
    format: Format,
    names: &Names,
    bytes: &[u8],
) -> Result<PathBuf, String> {
    names.first((shown, format), |path| write(path, bytes))
}

#[cfg(test)]
mod tests {
    use super::super::propose;
    use super::super::tests::request;
    use super::*;
    use std::path::Path;

    fn shown() -> Shown {
        Shown { request: request(), table: None, recording: None, columns: 0 }
    }

    #[test]
    fn files_stay_in_the_directory_and_are_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let names = Names::within(dir.path());
        let first = run(&shown(), Format::Svg, &names).unwrap();
        assert_eq!(first, dir.path().join("heaptop-..-or-ders-7-in-use-bytes-1.svg"));
        std::fs::write(&first, "mine").unwrap();
        let proposed = propose(&shown(), &names).unwrap();
        assert!(proposed.iter().all(|proposal| proposal.taken.is_none()), "they have numbers");
        assert_eq!(
            proposed.into_iter().map(|proposal| proposal.path).collect::<Vec<_>>(),
            ["2.svg", "1.folded"]
                .map(|end| dir.path().join(format!("heaptop-..-or-ders-7-in-use-bytes-{end}")))
        );
        let second = run(&shown(), Format::Svg, &names).unwrap();
        assert!(second.ends_with("heaptop-..-or-ders-7-in-use-bytes-2.svg"));
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "mine");
    }

    #[test]
    fn a_missing_directory_is_a_sentence() {
        let why = run(&shown(), Format::Svg, &Names::within(Path::new("/nonexistent/place")));
        let why = why.unwrap_err();
        assert!(why.starts_with("cannot write /nonexistent/place/heaptop-"), "{why}");
    }
}
