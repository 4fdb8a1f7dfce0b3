//! `heaptop dump FILE`: every event as text, on standard output.

use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Failure, say};
use crate::ctf::{self, Reader};
use crate::record;
use crate::source::file;
use crate::view::text;

/// Prints every event of a recording or of a memtrace trace, a line each.
///
/// A trace is printed as memtrace's own tool prints it. What is damaged is printed as far
/// as it is sound.
#[derive(Debug, Args)]
pub(super) struct Dump {
    /// A recording (.heaptop), or a trace (.ctf).
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Dump {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let unusable = |error: file::FileError| Failure::Usage(error.to_string());
        let (input, first, _) = file::sniff(&self.file).map_err(unusable)?;
        if ctf::is_ctf(&first) {
            return trace(&self.file, input);
        }
        match record::dump(&self.file, &mut io::stdout().lock()) {
            Ok(damage) => super::sound(&self.file.to_string_lossy(), &damage),
            Err(record::DumpError::File(error)) => Err(unusable(error)),
            Err(record::DumpError::Print(error)) => Err(error.into()),
        }
    }
}

fn trace(path: &Path, input: impl Read) -> Result<(), Failure> {
    let printed = if io::stdout().is_terminal() {
        print(input, Shown { out: io::stdout().lock(), line: Vec::new() })
    } else {
        print(input, io::stdout().lock())
    };
    printed.map_err(|error| match error {
        ctf::DumpError::Write(error) => error.into(),
        ctf::DumpError::Trace(error) => Failure::Usage(format!("{}: {error}", path.display())),
    })
}

fn print(input: impl Read, out: impl Write) -> Result<(), ctf::DumpError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let printed = Reader::new(input).map_err(ctf::DumpError::from).and_then(|mut reader| {
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
