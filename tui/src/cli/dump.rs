//! `heaptop dump FILE`: every event as text, on standard output.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::Path;

use super::{Failure, say};
use crate::ctf::{self, DumpError, Reader};

/// Bytes by which the kinds of files are told apart.
const FIRST_BYTES: u64 = 8;

/// Prints the file's events. What is damaged is printed as far as it is sound; then
/// comes the sentence, and the exit code of unusable input.
pub(super) fn run(path: &Path) -> Result<(), Failure> {
    let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let mut first = Vec::new();
    let file = File::open(path).and_then(|mut file| {
        Read::by_ref(&mut file).take(FIRST_BYTES).read_to_end(&mut first)?;
        Ok(file)
    });
    let file = file.map_err(|error| unusable(format!("cannot be read: {error}")))?;
    let whole = Cursor::new(first.clone()).chain(file);
    match &first[..] {
        [] => Err(unusable("is empty: there is nothing to print".into())),
        first if ctf::is_ctf(first) => match trace(whole) {
            Ok(()) => Ok(()),
            Err(DumpError::Write(error)) => Err(error.into()),
            Err(DumpError::Trace(error)) => Err(unusable(error.to_string())),
        },
        _ => Err(unusable("is no trace: `heaptop dump` prints memtrace's traces (.ctf)".into())),
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
