//! Sealing: a recording made whole and small. Names are looked for where the recorder had
//! none, and everything is compressed as well as it goes.
//!
//! The new file takes the place of the old one, or of the output, only when it is whole
//! and on the disk. What was sealed before comes out the same to the byte: the same frames go into
//! the same chunks.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use heaptop_protocol::frame;
use heaptop_protocol::recording::{By, InRecording, Missing as Lacks, Recorded};

use super::file::{Output, RecordError, loses_nothing};
use super::packing::Packer;
use super::tee::{names, recorded};
use crate::session::Missing;
use crate::source::file::{self, FileError};
use crate::source::recording::{Said, Teller};

/// Why a file is not sealed.
#[derive(Debug)]
pub enum SealError {
    /// It cannot be read.
    File(FileError),
    /// Somebody is writing it.
    Busy(PathBuf),
    /// Not all of it can be read, and what cannot would be lost.
    Damaged(PathBuf, String),
    /// The new one cannot be written.
    Record(RecordError),
    /// There is something already where it should go.
    There(PathBuf),
    /// It cannot take its place.
    Replace {
        /// Where.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl std::fmt::Display for SealError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Busy(path) => write!(
                f,
                "{} is still being written: seal it once that has ended, or into another file with -o",
                path.display()
            ),
            Self::Damaged(path, why) => write!(
                f,
                "{} is left as it is, since {why}: seal what is sound into another file with -o",
                path.display()
            ),
            Self::There(path) => {
                write!(f, "{} exists: move it away or choose another name", path.display())
            }
            Self::Record(error) => error.fmt(f),
            Self::Replace { path, error } => {
                write!(f, "cannot write {}: {error}; what was there is unchanged", path.display())
            }
        }
    }
}

impl std::error::Error for SealError {}

/// What was done.
#[derive(Debug)]
pub struct Sealed {
    /// Bytes before.
    pub before: u64,
    /// Bytes now.
    pub after: u64,
    /// What was wrong with the file: a sentence.
    pub trouble: Option<String>,
    /// Whether something was left out that should have been in between.
    pub lost: bool,
}

/// Seals `path` into `output`, or in its place. `progress` is told the percentage.
pub fn seal(
    path: &Path,
    output: Option<&Path>,
    mut progress: impl FnMut(u8),
) -> Result<Sealed, SealError> {
    // What cannot be opened is not sealed.
    let about = file::recording(path).map_err(SealError::File)?.recorded().cloned();
    let mut teller = file::frames(path).map_err(SealError::File)?;
    if output.is_none() && file::is_busy(path) {
        return Err(SealError::Busy(path.into()));
    }
    // What is renamed takes the place of devices too.
    let is_empty = |there: &Path| there.is_file() && loses_nothing(there);
    if let Some(there) = output.filter(|there| there.exists() && !is_empty(there)) {
        return Err(SealError::There(there.into()));
    }
    let target = output.unwrap_or(path);
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(format!(".{}.sealing", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let written = copy(&mut teller, about, &unfinished, &mut progress);
    let (after, trouble) = match written {
        Ok((_, Some(Trouble::Lost(why)))) if output.is_none() => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(SealError::Damaged(path.into(), why));
        }
        Ok((after, trouble)) => (after, trouble),
        Err(error) => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(SealError::Record(error));
        }
    };
    let replaced = std::fs::File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .and_then(|()| match std::fs::metadata(path) {
            // Who could read it can read it still.
            Ok(metadata) => std::fs::set_permissions(&unfinished, metadata.permissions()),
            Err(_) => Ok(()),
        })
        .and_then(|()| std::fs::rename(&unfinished, target));
    if let Err(error) = replaced {
        let _ = std::fs::remove_file(&unfinished);
        return Err(SealError::Replace { path: target.into(), error });
    }
    let lost = matches!(trouble, Some(Trouble::Lost(_)));
    let trouble = trouble.map(|trouble| match trouble {
        Trouble::Lost(why) | Trouble::Mended(why) | Trouble::NoEnd(why) => why,
    });
    Ok(Sealed { before: teller.bytes_read(), after, trouble, lost })
}

/// What is wrong with a file.
enum Trouble {
    /// Something cannot be read.
    Lost(String),
    /// Nothing is lost.
    Mended(String),
    /// It breaks off.
    NoEnd(String),
}

/// Copies all frames, and puts names behind them where there were none.
fn copy(
    teller: &mut Teller,
    about: Option<Recorded>,
    to: &Path,
    progress: &mut impl FnMut(u8),
) -> Result<(u64, Option<Trouble>), RecordError> {
    let mut output = Output::patient(to, Packer::patient())?;
    let (mut ended, mut trouble) = (None, None);
    let look = about.as_ref().is_none_or(|about| !about.sealed);
    let mut about = about.unwrap_or_else(|| recorded(By::Seal, 0, 0, true));
    about.sealed = true;
    let about = InRecording::from(about);
    output.put(|out| about.write(out))?;
    let mut finder = look.then(crate::source::recording::Finder::new);
    loop {
        let said = match teller.said() {
            Ok(Some(said)) => said,
            Ok(None) => break,
            Err(why) => {
                trouble = Some(Trouble::Lost(why));
                break;
            }
        };
        progress(teller.percent());
        if let Some(finder) = &mut finder
            && let Said::Agent(message) = &said
        {
            finder.see(message);
        }
        match said {
            Said::Agent(message) => output.put(|out| message.write(out))?,
            Said::Unknown(kind, payload) => {
                output.put(|out| frame::write(out, kind, |o| drop(o.write_all(&payload))))?;
            }
            Said::Recorder(InRecording::Recorded(_)) => {}
            Said::Recorder(InRecording::Ended(end)) => ended = Some(end),
            Said::Recorder(said) => output.put(|out| said.write(out))?,
            Said::Damage(damage) => match (damage.missing, &trouble) {
                (Missing::Between, _) => {
                    let lacks = InRecording::from(Lacks { why: damage.how.clone() });
                    output.put(|out| lacks.write(out))?;
                    if !matches!(trouble, Some(Trouble::Lost(_))) {
                        trouble = Some(Trouble::Lost(damage.how));
                    }
                }
                (Missing::Nothing, None) => trouble = Some(Trouble::Mended(damage.how)),
                // It is told how the file ends.
                (Missing::Nothing | Missing::End, _) => {}
            },
        }
        while let Some(found) = finder.as_mut().and_then(crate::source::recording::Finder::found) {
            let found = InRecording::from(names(found));
            output.put(|out| found.write(out))?;
        }
    }
    while let Some(found) = finder.as_mut().and_then(crate::source::recording::Finder::wait) {
        let found = InRecording::from(names(found));
        output.put(|out| found.write(out))?;
    }
    match ended {
        Some(end) => {
            let end = InRecording::from(end);
            output.put(|out| end.write(out))?;
        }
        None => {
            trouble = trouble.or_else(|| teller.over().map(|why| Trouble::NoEnd(why.to_owned())));
        }
    }
    output.flush()?;
    Ok((output.bytes(), trouble))
}
