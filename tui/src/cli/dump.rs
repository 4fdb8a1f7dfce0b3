//! `heaptop dump FILE`: every event as text, on standard output.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, IsTerminal, Read, Write};
use std::path::Path;

use super::{Failure, say};
use crate::ctf::{self, DumpError, Reader};
use crate::view::text;

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
    if io::stdout().is_terminal() {
        print(file, Shown { out: io::stdout().lock(), line: Vec::new() })
    } else {
        print(file, io::stdout().lock())
    }
}

fn print(file: impl Read, out: impl Write) -> Result<(), DumpError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
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

/// A terminal, which is not to obey what names hold.
struct Shown<W> {
    out: W,
    /// What has come of a line that is not whole.
    line: Vec<u8>,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                writeln!(self.out, "{}", text::clean(&String::from_utf8_lossy(line)))?;
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_name() {
        let mut shown = Shown { out: Vec::new(), line: Vec::new() };
        for part in ["1 F\x1b[2J", "@f.ml\n", "2\n3 \u{202e}x\n"] {
            shown.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(String::from_utf8(shown.out).unwrap(), "1 F\u{fffd}[2J@f.ml\n2\n3 \u{fffd}x\n");
    }
}
