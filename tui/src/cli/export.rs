//! `heaptop export FILE --format …`: what a file holds, in another program's format.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::dump::{self, unusable};
use super::{Failure, say};
use crate::ctf::{self, Reader};

/// What is to be written.
#[derive(Debug, Args)]
pub(super) struct Wish {
    /// The file.
    file: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    format: Format,
    /// Where to; `-` is standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A trace for memtrace's viewers: one stream of version 2.
    Ctf,
}

/// Writes it.
pub(super) fn run(wish: &Wish) -> Result<(), Failure> {
    match wish.format {
        Format::Ctf => ctf(&wish.file, &wish.output),
    }
}

fn ctf(path: &Path, output: &Path) -> Result<(), Failure> {
    let (first, file) = dump::open(path)?;
    if !ctf::is_ctf(&first) {
        let why = "is no trace: `heaptop export --format ctf` reads memtrace's traces (.ctf)";
        return Err(unusable(path, &why));
    }
    let mut reader = Reader::new(file).map_err(|error| unusable(path, &error))?;
    let converted = write(output, |out| ctf::convert(&mut reader, out))?;
    if !converted.lost.is_empty() {
        say(&format!("left out: {}", converted.lost.join("; ")));
    }
    match converted.error {
        None => Ok(()),
        Some(error) => {
            Err(unusable(path, &format_args!("{error}; what is sound before it was written")))
        }
    }
}

/// Writes a file that is there as a whole or not at all: beside it first, under another
/// name. Standard output is written as it comes.
fn write<T>(
    output: &Path,
    work: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, Failure> {
    if output == Path::new("-") {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let done = work(&mut out)?;
        out.flush()?;
        return Ok(done);
    }
    let sentence = |error: io::Error| {
        let what = if error.kind() == ErrorKind::StorageFull { "the disk is full" } else { "" };
        let why = if what.is_empty() { error.to_string() } else { what.to_owned() };
        Failure::Failed(format!("{} cannot be written: {why}", output.display()))
    };
    let Some(name) = output.file_name() else {
        return Err(Failure::Usage(format!("{} is no name for a file", output.display())));
    };
    if output.is_dir() {
        return Err(Failure::Usage(format!("{} is a directory: name a file", output.display())));
    }
    let mut beside = name.to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = output.with_file_name(beside);
    let written = File::create_new(&beside).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let done = work(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&beside, output)?;
        Ok(done)
    });
    written.map_err(|error| {
        // Nothing is left of what is not whole.
        let _ = fs::remove_file(&beside);
        sentence(error)
    })
}
