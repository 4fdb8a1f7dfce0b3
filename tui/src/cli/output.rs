//! The file that a command was told to write.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Failure;

/// Writes a file that is there as a whole or not at all: beside it first, under another
/// name, and only if `work` says that it is worth it. Standard output, pipes and devices
/// are written as it comes.
pub(super) fn write<T>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_a_sentence_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            write(&dir.path().join(name), |out| out.write_all(b"new").map(|()| (true, ())))
        };
        let refused = |name: &str| match write(name) {
            Err(Failure::Usage(sentence)) => sentence,
            other => panic!("{name}: {other:?}"),
        };
        fs::write(dir.path().join("old"), "old").unwrap();
        assert!(refused("old").ends_with("exists: move it away or choose another name"));
        assert_eq!(fs::read(dir.path().join("old")).unwrap(), b"old");
        assert!(refused("").ends_with("is a directory: name a file"));
        write("new").unwrap();
        assert_eq!(fs::read(dir.path().join("new")).unwrap(), b"new");
        let Err(Failure::Failed(said)) = write("none/new") else { panic!("there is no such") };
        assert!(said.contains("cannot be written: "), "{said}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "and nothing else");
    }
}
