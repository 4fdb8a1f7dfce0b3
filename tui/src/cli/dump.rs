//! `heaptop dump FILE`: every event as text, on standard output.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::Path;

use super::{Failure, say};
use crate::ctf::{self, DumpError, Reader};

/// Bytes by which the kinds of files are told apart.
const FIRST_BYTES: u64 = 8;

/// Opens a file: its first bytes, and all of it.
pub(super) fn open(path: &Path) -> Result<(Vec<u8>, impl Read + Send + 'static), Failure> {
    let mut first = Vec::new();
    let file = File::open(path).and_then(|mut file| {
        Read::by_ref(&mut file).take(FIRST_BYTES).read_to_end(&mut first)?;
        Ok(file)
    });
    match file {
        Ok(_) if first.is_empty() => Err(unusable(path, &"is empty: there is nothing in it")),
        Ok(file) => Ok((first.clone(), Cursor::new(first).chain(file))),
        Err(error) => Err(unusable(path, &format_args!("cannot be read: {error}"))),
    }
}

/// The sentence about a file.
pub(super) fn unusable(path: &Path, why: &dyn Display) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

/// Prints the file's events. What is damaged is printed as far as it is sound; then
/// comes the sentence, and the exit code of unusable input.
pub(super) fn run(path: &Path) -> Result<(), Failure> {
    let (first, file) = open(path)?;
    match &first[..] {
        first if ctf::is_ctf(first) => match trace(file) {
            Ok(()) => Ok(()),
            Err(DumpError::Write(error)) => Err(error.into()),
            Err(DumpError::Trace(error)) => Err(unusable(path, &error)),
        },
        _ => {
            let why = "is no trace: `heaptop dump` prints memtrace's traces (.ctf)";
            Err(unusable(path, &why))
        }
    }
}

fn trace(file: impl Read) -> Result<(), DumpError> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let printed = Reader::new(file).map_err(DumpError::from).and_then(|mut reader| {
        ctf::dump(&mut reader, &mut out)?;
        match reader.skipped() {
            0 => {}
            1 => say("one packet was written by another process and is left out"),
            n => say(&format!("{n} packets were written by another process and are left out")),
        }
        Ok(())
    });
    // What is sound comes before the sentence.
    out.flush()?;
    printed
}
