//! `heaptop open`: a recording on the screens.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, load, report, shown};
use crate::source::file;
use crate::terminal::{self, Begin, Setup};

/// Shows a recording or a trace on the same screens, over all of its time.
#[derive(Debug, Args)]
pub(super) struct Open {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Open {
    /// Where there is no terminal for a screen.
    pub(super) fn plain(&self) -> Result<(), Failure> {
        report::plain(&self.file.to_string_lossy(), &load::file(&self.file)?)
    }

    pub(super) fn run(&self, setup: Setup) -> Result<(), Failure> {
        let tell = file::open(&self.file).map_err(|error| Failure::Usage(error.to_string()))?;
        let damage = shown(terminal::run(Begin::File(tell, self.file.clone()), setup))?;
        super::sound(&self.file.to_string_lossy(), &damage)
    }
}
