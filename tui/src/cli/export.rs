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
    let converted = write(output, |out| {
        let converted = ctf::convert(&mut reader, out)?;
        Ok((converted.error.is_none() || converted.events > 0, converted))
    })?;
    if !converted.lost.is_empty() {
        say(&format!("left out: {}", converted.lost.join("; ")));
    }
    match converted.error {
        None => Ok(()),
        Some(error) if converted.events == 0 => {
            Err(unusable(path, &format_args!("{error}; nothing before it is to be written")))
        }
        Some(error) => {
            Err(unusable(path, &format_args!("{error}; what is sound before it was written")))
        }
    }
}

/// Writes a file that is there as a whole or not at all: beside it first, under another
/// name, and only if `work` says that it is worth it. Standard output, pipes and devices
/// are written as it comes.
fn write<T>(
    output: &Path,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> Result<T, Failure> {
    if output == Path::new("-") {
        return Ok(flushed(io::stdout().lock(), work)?.1);
    }
    let there = fs::metadata(output);
    if there.as_ref().is_ok_and(fs::Metadata::is_dir) {
        return Err(Failure::Usage(format!("{} is a directory: name a file", output.display())));
    }
    let written = if there.is_ok_and(|there| !there.is_file()) {
        File::options().write(true).open(output).and_then(|file| Ok(flushed(file, work)?.1))
    } else {
        atomically(output, work)
    };
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        ErrorKind::StorageFull => {
            Failure::Failed(format!("{} cannot be written: the disk is full", output.display()))
        }
        _ => Failure::Failed(format!("{} cannot be written: {error}", output.display())),
    })
}

fn flushed<T>(
    out: impl Write,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> io::Result<(bool, T)> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let done = work(&mut out)?;
    out.flush()?;
    Ok(done)
}

fn atomically<T>(
    output: &Path,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> io::Result<T> {
    // What a link points to, not the link.
    let output = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let mut beside = output.clone().into_os_string();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = File::create_new(&beside)?;
    let written = flushed(&file, work).and_then(|(keep, done)| {
        if keep {
            file.sync_all()?;
            fs::rename(&beside, &output)?;
        }
        Ok((keep, done))
    });
    // Nothing is left of what is not whole.
    if !matches!(written, Ok((true, _))) {
        let _ = fs::remove_file(&beside);
    }
    written.map(|(_, done)| done)
}
