//! `heaptop dump`: a file as text.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::record::{DumpError, dump};

/// Prints every event of a recording, a line each.
#[derive(Debug, Args)]
pub(super) struct Dump {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Dump {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match dump(&self.file, &mut io::stdout().lock()) {
            Ok(_) => Ok(()),
            Err(DumpError::File(error)) => Err(Failure::Usage(error.to_string())),
            Err(DumpError::Print(error)) => Err(error.into()),
        }
    }
}
