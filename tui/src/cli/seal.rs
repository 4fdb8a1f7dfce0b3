//! `heaptop seal`: names and compression for a recording.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use super::{Failure, say};
use crate::record::{SealError, seal};
use crate::view::format::{self, Rounding};

/// Adds the names of functions to a recording, and compresses it.
///
/// For what an agent recorded alone (`HEAPTOP_RECORD`). The binaries must still be where
/// they were. Sealing twice changes nothing.
#[derive(Debug, Args)]
pub(super) struct Seal {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write it here instead of in its place.
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl Seal {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let shows = io::stderr().is_terminal();
        let mut last = None;
        let progress = |percent: u8| {
            if shows && last != Some(percent) {
                last = Some(percent);
                let _ = write!(io::stderr(), "\r\x1b[Ksealing: {percent} %");
            }
        };
        let sealed = seal(&self.file, self.output.as_deref(), progress);
        if shows {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        let sealed = sealed.map_err(|error| match error {
            error @ (SealError::File(_) | SealError::Damaged(..) | SealError::There(_)) => {
                Failure::Usage(error.to_string())
            }
            error => Failure::Failed(error.to_string()),
        })?;
        let bytes = |bytes: u64| format::bytes(bytes as f64, 3, Rounding::Nearest);
        if let Some(trouble) = &sealed.trouble {
            say(trouble);
        }
        say(&format!(
            "sealed {}: {} instead of {}",
            self.output.as_ref().unwrap_or(&self.file).display(),
            bytes(sealed.after),
            bytes(sealed.before)
        ));
        // What is wrong was said.
        if sealed.lost { Err(Failure::Status(2)) } else { Ok(()) }
    }
}
