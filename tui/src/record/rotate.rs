//! Recording without a screen: one file, or several one after the other, until a time
//! is over, a signal comes, or the target ends.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::file::loses_nothing;
use super::{How, RecordError, Recording, bytes};
use crate::calendar::Utc;
use crate::source::{Link, Target};

/// Between two looks at how it goes.
const LOOK: Duration = Duration::from_millis(100);
/// How long the next file may take to have a whole snapshot, before the last one ends
/// without it.
const OVERLAP: Duration = Duration::from_secs(10);

/// What is to be recorded, and how.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The file; `None`: named after the target.
    pub output: Option<PathBuf>,
    /// Files that are there are replaced.
    pub replace: bool,
    /// For so long.
    pub duration: Option<Duration>,
    /// The next file begins when one has so many bytes.
    pub rotate_bytes: Option<u64>,
    /// Or after so long.
    pub rotate_time: Option<Duration>,
    /// So many files are kept; the oldest goes.
    pub keep: Option<usize>,
}

impl Plan {
    /// Whether the file, or one of several, would replace one that is there: known before
    /// anything is started, and not when its turn comes.
    pub fn check(&self) -> Result<(), RecordError> {
        let Some(base) = self.output.as_deref().filter(|_| !self.replace) else { return Ok(()) };
        let there = if self.rotates() {
            one_of(base)
        } else {
            Some(base.to_owned()).filter(|path| path.exists() && !loses_nothing(path))
        };
        let exists = |path| RecordError::Create { path, error: ErrorKind::AlreadyExists.into() };
        there.map_or(Ok(()), |path| Err(exists(path)))
    }

    fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_time.is_some()
    }
}

/// What was recorded.
#[derive(Debug)]
pub struct Summary {
    /// The last file.
    pub path: PathBuf,
    /// Files that are there.
    pub files: usize,
    /// Bytes in all files.
    pub bytes: u64,
    /// Events of blocks.
    pub events: u64,
    /// Births among them.
    pub samples: u64,
    /// Events lost on the way.
    pub lost: u64,
    /// Why it ended.
    pub how: Result<How, RecordError>,
}

/// `NAME-PID-DATE.heaptop`, with the date in UTC.
#[must_use]
pub fn default_name(name: &str, pid: u32, now: SystemTime) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(64).collect();
    let name = if name.is_empty() { "target" } else { name.trim_start_matches(['.', '-']) };
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    PathBuf::from(format!("{name}-{pid}-{}.heaptop", Utc::of(seconds).stamp()))
}

/// The file of this number: `a.heaptop`, `a.2.heaptop`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.into();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    let _ = write!(name, ".{number}");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A file that has a number of `path`'s, from an earlier recording.
fn one_of(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let listed = std::fs::read_dir(directory.unwrap_or(Path::new("."))).ok()?;
    let name =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (name(path.file_stem()), name(path.extension()));
    let is_one = |there: &str| {
        let rest = there.strip_prefix(&*stem)?.strip_prefix('.')?;
        let rest = if extension.is_empty() {
            rest
        } else {
            rest.strip_suffix(&*extension)?.strip_suffix('.')?
        };
        (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())).then_some(())
    };
    let names = listed.flatten().map(|entry| entry.file_name());
    let mut found: Vec<_> =
        names.filter(|name| is_one(&name.to_string_lossy()).is_some()).collect();
    found.sort();
    found.into_iter().map(|name| path.with_file_name(name)).find(|path| !loses_nothing(path))
}

/// Records from `link` on. `ends` is asked all the time whether to end, and told the
/// bytes, events and lost events so far.
pub fn run(
    link: Link,
    plan: &Plan,
    mut ends: impl FnMut(u64, u64, u64) -> bool,
) -> Result<Summary, RecordError> {
    let Target { pid, ref socket, ref hello, .. } = *link.target();
    let socket = socket.clone();
    let base =
        plan.output.clone().unwrap_or_else(|| default_name(&hello.name, pid, SystemTime::now()));
    let replace = plan.replace;
    let mut number = u32::from(plan.rotates());
    let mut total = Sum::default();
    let mut kept = vec![numbered(&base, number)];
    let mut current = Recording::start(link, &kept[0], replace, number, || ())?;
    let start = Instant::now();
    let mut file_began = start;
    let how = loop {
        std::thread::sleep(LOOK);
        let so_far = total.with(&current);
        let over = plan.duration.is_some_and(|duration| start.elapsed() >= duration);
        if current.is_over() || ends(so_far.bytes, so_far.events, so_far.lost) || over {
            break None;
        }
        let large = plan.rotate_bytes.is_some_and(|most| bytes(current.progress()) >= most);
        let long = plan.rotate_time.is_some_and(|most| file_began.elapsed() >= most);
        if !(large || long) {
            continue;
        }
        // A target that cannot be connected to now goes on being recorded as before.
        let Ok(link) = Link::open(&socket) else { continue };
        number += 1;
        let path = numbered(&base, number);
        let next = match Recording::start(link, &path, replace, number, || ()) {
            Ok(next) => next,
            Err(error) => break Some(error),
        };
        let asked = Instant::now();
        while !next.progress().synced.load(Relaxed)
            && !next.is_over()
            && asked.elapsed() < OVERLAP
            && !ends(so_far.bytes, so_far.events, so_far.lost)
        {
            std::thread::sleep(LOOK / 4);
        }
        let last = std::mem::replace(&mut current, next);
        // Its names may take their time, and the next one is recorded meanwhile.
        let progress = total.end(last);
        file_began = Instant::now();
        if let Err(error) = progress {
            break Some(error);
        }
        kept.push(path);
        while plan.keep.is_some_and(|keep| kept.len() > keep.max(1)) {
            let _ = std::fs::remove_file(kept.remove(0));
        }
    };
    let path = current.path().to_owned();
    let ended = total.end(current);
    let how = how.map_or(ended, Err);
    let Sum { bytes, events, samples, lost } = total;
    Ok(Summary { path, files: kept.len(), bytes, events, samples, lost, how })
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    bytes: u64,
    events: u64,
    samples: u64,
    lost: u64,
}

impl Sum {
    fn with(self, recording: &Recording) -> Self {
        let p = recording.progress();
        Self {
            bytes: self.bytes + p.bytes.load(Relaxed),
            events: self.events + p.events.load(Relaxed),
            samples: self.samples + p.samples.load(Relaxed),
            lost: self.lost + p.lost.load(Relaxed),
        }
    }

    /// Ends the recording, and adds what is in it.
    fn end(&mut self, recording: Recording) -> Result<How, RecordError> {
        let progress = recording.share();
        let how = recording.finish();
        self.bytes += progress.bytes.load(Relaxed);
        self.events += progress.events.load(Relaxed);
        self.samples += progress.samples.load(Relaxed);
        self.lost += progress.lost.load(Relaxed);
        how
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        let name = |name: &str| default_name(name, 7, UNIX_EPOCH).to_string_lossy().into_owned();
        assert_eq!(name("orders-api"), "orders-api-7-19700101-000000.heaptop");
        assert_eq!(name("../a b\n"), "_a_b_-7-19700101-000000.heaptop");
        assert_eq!(name(""), "target-7-19700101-000000.heaptop");
        let path = Path::new("/tmp/a.heaptop");
        assert_eq!(numbered(path, 0), path);
        assert_eq!(numbered(path, 12), Path::new("/tmp/a.12.heaptop"));
        assert_eq!(numbered(Path::new("a"), 1), Path::new("a.1"));
    }

    #[test]
    fn files_of_an_earlier_recording_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for other in ["a.heaptop", "a.x.heaptop", "a..heaptop", "ab.1.heaptop", "a.1.ctf"] {
            std::fs::write(path(other), "not to be lost").unwrap();
        }
        std::fs::write(path("a.2.heaptop"), "").unwrap();
        assert_eq!(one_of(&path("a.heaptop")), None);
        std::fs::write(path("a.12.heaptop"), "not to be lost").unwrap();
        assert_eq!(one_of(&path("a.heaptop")), Some(path("a.12.heaptop")));
        assert_eq!(one_of(&path("b")), None);
        std::fs::write(path("b.3"), "not to be lost").unwrap();
        assert_eq!(one_of(&path("b")), Some(path("b.3")));
    }
}
