//! `heaptop dump FILE`: every event as text, on standard output.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Failure, say};
use crate::ctf::{self, Reader};
use crate::record;
use crate::source::file;

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
            Ok(_) => Ok(()),
            Err(record::DumpError::File(error)) => Err(unusable(error)),
            Err(record::DumpError::Print(error)) => Err(error.into()),
        }
    }
}

fn trace(path: &Path, input: impl Read) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
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
    match printed {
        Ok(()) => Ok(()),
        Err(ctf::DumpError::Write(error)) => Err(error.into()),
        Err(ctf::DumpError::Trace(error)) => {
            Err(Failure::Usage(format!("{}: {error}", path.display())))
        }
    }
}
