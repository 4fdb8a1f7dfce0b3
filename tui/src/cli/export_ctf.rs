//! `heaptop export --format ctf`: a trace for memtrace's viewers.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use super::{Failure, say};
use crate::ctf::{self, Reader};
use crate::source::file;

/// Writes the file's events, or says what they need.
pub(super) fn run(path: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let (input, first, _) = file::sniff(path).map_err(|error| Failure::Usage(error.to_string()))?;
    let Some(output) = output else {
        return Err(Failure::Usage(
            "where shall the trace go? -o FILE, or -o - for standard output".into(),
        ));
    };
    if ctf::is_ctf(&first) {
        return trace(path, input, output);
    }
    let open = || file::open(path).map_err(|error| error.to_string());
    // Before the output is made.
    open().map_err(Failure::Usage)?;
    let told = write(output, |out| match ctf::from_told(open, out) {
        Ok(told) => Ok(Ok(told)),
        Err(ctf::ExportError::Source(why)) => Ok(Err(why)),
        Err(ctf::ExportError::Write(error)) => Err(error),
    })?;
    let told = told.map_err(|why| unusable(path, &why))?;
    left_out(&told.lost);
    Ok(())
}

fn trace(path: &Path, input: impl Read, output: &Path) -> Result<(), Failure> {
    let mut reader = Reader::new(input).map_err(|error| unusable(path, &error.to_string()))?;
    let converted = write(output, |out| ctf::convert(&mut reader, out))?;
    left_out(&converted.lost);
    match converted.error {
        None => Ok(()),
        Some(error) => {
            Err(unusable(path, &format!("{error}; what is sound before it was written")))
        }
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

fn left_out<S: AsRef<str>>(what: &[S]) {
    if !what.is_empty() {
        let what: Vec<&str> = what.iter().map(AsRef::as_ref).collect();
        say(&format!("left out: {}", what.join("; ")));
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
