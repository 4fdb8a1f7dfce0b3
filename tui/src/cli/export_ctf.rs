//! `heaptop export --format ctf`: a trace for memtrace's viewers.

use std::io::Read;
use std::path::Path;

use super::output::write;
use super::{Failure, say};
use crate::ctf::{self, Reader};
use crate::session::{Damage, Missing};
use crate::source::file;

/// Writes the file's events, or says what they need.
pub(super) fn run(path: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let Some(output) = output else {
        // That the file is not to be read comes first.
        file::sniff(path).map_err(|error| Failure::Usage(error.to_string()))?;
        return Err(Failure::Usage(
            "where shall the trace go? -o FILE, or -o - for standard output".into(),
        ));
    };
    let (left_out, damage, written) = traced(path, output)?;
    if !left_out.is_empty() {
        say(&format!("left out: {}", left_out.join("; ")));
    }
    written?;
    super::sound(&path.to_string_lossy(), &damage)
}

/// Writes the events of the file at `path` into a new one: what could not be held, or a
/// sentence.
pub(crate) fn write_trace(path: &Path, output: &Path) -> Result<Vec<String>, String> {
    let sentence = |failure| match failure {
        Failure::Failed(sentence) | Failure::Usage(sentence) => sentence,
        other => format!("{} cannot be written: {other:?}", output.display()),
    };
    let (mut left_out, damage, written) = traced(path, output).map_err(sentence)?;
    written.map_err(sentence)?;
    let missing = damage.into_iter().filter(|damage| damage.missing != Missing::Nothing);
    left_out.extend(missing.map(|damage| damage.how));
    Ok(left_out)
}

/// What was left out, where the file is damaged, and whether all else was written.
type Traced = (Vec<String>, Vec<Damage>, Result<(), Failure>);

fn traced(path: &Path, output: &Path) -> Result<Traced, Failure> {
    let (input, first, _) = file::sniff(path).map_err(|error| Failure::Usage(error.to_string()))?;
    if ctf::is_ctf(&first) {
        return trace(path, input, output);
    }
    let open = || file::open(path).map_err(|error| error.to_string());
    // Before the output is made.
    open().map_err(Failure::Usage)?;
    let told = write(output, |out| match ctf::from_told(open, out) {
        Ok(told) => Ok((true, Ok(told))),
        Err(ctf::ExportError::Source(why)) => Ok((false, Err(why))),
        Err(ctf::ExportError::Write(error)) => Err(error),
    })?;
    let told = told.map_err(|why| unusable(path, &why))?;
    Ok((left_out(&told.lost), told.damage, Ok(())))
}

fn trace(path: &Path, input: impl Read, output: &Path) -> Result<Traced, Failure> {
    let mut reader = Reader::new(input).map_err(|error| unusable(path, &error.to_string()))?;
    let converted = write(output, |out| {
        let converted = ctf::convert(&mut reader, out)?;
        Ok((converted.error.is_none() || converted.events > 0, converted))
    })?;
    let written = match converted.error {
        None => Ok(()),
        Some(error) if converted.events == 0 => {
            Err(unusable(path, &format!("{error}; nothing before it is to be written")))
        }
        Some(error) => {
            Err(unusable(path, &format!("{error}; what is sound before it was written")))
        }
    };
    Ok((left_out(&converted.lost), Vec::new(), written))
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("{}: {why}", path.display()))
}

fn left_out<S: AsRef<str>>(what: &[S]) -> Vec<String> {
    what.iter().map(|what| what.as_ref().to_owned()).collect()
}
