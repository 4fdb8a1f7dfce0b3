//! `heaptop export --format ctf`: a trace for memtrace's viewers.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

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

/// Writes a file that is there as a whole or not at all: beside it first, under another
/// name, and only if `work` says that it is worth it. Standard output, pipes and devices
/// are written as it comes.
fn write<T>(
    output: &Path,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> Result<T, Failure> {
    if output == Path::new("-") {
        return Ok(flushed(io::stdout().lock(), work)?.1);
    }
    let there = fs::metadata(output);
    if there.as_ref().is_ok_and(fs::Metadata::is_dir) {
        return Err(Failure::Usage(format!("{} is a directory: name a file", output.display())));
    }
    if there.as_ref().is_ok_and(fs::Metadata::is_file) {
        return Err(Failure::Usage(format!(
            "{} exists: move it away or choose another name",
            output.display()
        )));
    }
    let written = if there.is_ok() {
        File::options().write(true).open(output).and_then(|file| Ok(flushed(file, work)?.1))
    } else {
        atomically(output, work)
    };
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        ErrorKind::StorageFull => {
            Failure::Failed(format!("{} cannot be written: the disk is full", output.display()))
        }
        _ => Failure::Failed(format!("{} cannot be written: {error}", output.display())),
    })
}

fn flushed<T>(
    out: impl Write,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> io::Result<(bool, T)> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let done = work(&mut out)?;
    out.flush()?;
    Ok(done)
}

/// Gives a file its name, unless another has it by now.
fn put(file: &Path, name: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, file, CWD, name, RenameFlags::NOREPLACE) {
        // Not all file systems can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(file, name),
        put => Ok(put?),
    }
}

fn atomically<T>(
    output: &Path,
    work: impl FnOnce(&mut dyn Write) -> io::Result<(bool, T)>,
) -> io::Result<T> {
    // What a link points to, not the link.
    let output = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let mut beside = output.clone().into_os_string();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = File::create_new(&beside)?;
    let written = flushed(&file, work).and_then(|(keep, done)| {
        if keep {
            file.sync_all()?;
            put(&beside, &output)?;
        }
        Ok((keep, done))
    });
    // Nothing is left of what is not whole.
    if !matches!(written, Ok((true, _))) {
        let _ = fs::remove_file(&beside);
    }
    written.map(|(_, done)| done)
}
