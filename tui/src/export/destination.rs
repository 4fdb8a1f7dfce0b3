//! Where an export goes: what its user wrote, made into paths of files that are not there yet.
//!
//! **No file is overwritten.** A name that is taken stands for the next one that is free,
//! and is made anew by whoever writes.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::shown::{Format, Shown};

/// Most files of one name in a directory: past this an export is refused.
const MOST_NUMBERS: u32 = 9999;

/// What the user wrote: a directory, or a file in one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    /// The path. Empty: the working directory; `~` at its beginning: the user's own.
    pub text: String,
    /// The format whose file it names: one of its ending gets another for other formats.
    pub of: Option<Format>,
}

/// The names of a directory that exports take, numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    directory: PathBuf,
    /// The one that was written, and the format it was written for.
    wanted: Option<(String, Option<Format>)>,
}

/// Where a format would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// A path where nothing is.
    pub path: PathBuf,
    /// The name that was wanted instead, and is taken.
    pub taken: Option<String>,
}

impl Destination {
    /// A directory, also where there is none of this name; empty: the working one.
    #[must_use]
    pub fn directory(text: &str) -> Self {
        let slash = if text.is_empty() || text.ends_with('/') { "" } else { "/" };
        Self { text: format!("{text}{slash}"), of: None }
    }

    /// The names that it stands for in this process; where nothing can be written there, a
    /// sentence.
    pub fn names(&self) -> Result<Names, String> {
        self.names_from(std::env::current_dir, std::env::home_dir())
    }

    fn names_from(
        &self,
        working: impl FnOnce() -> io::Result<PathBuf>,
        home: Option<PathBuf>,
    ) -> Result<Names, String> {
        let text = self.text.trim();
        let mut path = PathBuf::from(text);
        if let Ok(rest) = Path::new(text).strip_prefix("~") {
            let home = home.filter(|home| home.is_absolute());
            path = home.ok_or("there is no home directory that ~ could stand for")?.join(rest);
        }
        if path.is_relative() {
            let working =
                working().map_err(|e| format!("the working directory is not to be had: {e}"))?;
            path = working.join(path);
        }
        let names = match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if !text.ends_with('/') && !path.is_dir() => Names {
                directory: path.parent().unwrap_or(&path).to_owned(),
                wanted: Some((name.to_owned(), self.of)),
            },
            _ => Names::within(&path.components().collect::<PathBuf>()),
        };
        names.check()?;
        Ok(names)
    }
}

impl Names {
    /// Those that exports have by themselves.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), wanted: None }
    }

    /// Whether files can be made there.
    fn check(&self) -> Result<(), String> {
        let shown = self.directory.display();
        match std::fs::metadata(&self.directory) {
            Ok(found) if !found.is_dir() => Err(format!("{shown} is no directory")),
            Ok(_) => rustix::fs::access(&self.directory, Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|e| {
                    format!("nothing can be written into {shown}: {}", io::Error::from(e))
                }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(format!("there is no directory {shown}"))
            }
            Err(e) => Err(format!("nothing can be written into {shown}: {e}")),
        }
    }

    fn path(&self, shown: &Shown, format: Format, n: u32) -> PathBuf {
        self.directory.join(match &self.wanted {
            Some((name, of)) => numbered(name, *of, format, n),
            None => shown.file_name(format, n),
        })
    }

    /// Makes the first of them that can be made, and is the last; its path, or a sentence.
    pub(super) fn first(
        &self,
        (shown, format): (&Shown, Format),
        mut make: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, String> {
        for n in 1..=MOST_NUMBERS {
            let path = self.path(shown, format, n);
            match make(&path) {
                Ok(()) => return Ok(path),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(format!("cannot write {}: {e}", path.display())),
            }
        }
        Err(format!("{MOST_NUMBERS} exports of this name are here already: move some away"))
    }

    /// The first of them where nothing is now.
    pub(super) fn free(&self, shown: &Shown, format: Format) -> Result<PathBuf, String> {
        self.first((shown, format), |path| match std::fs::symlink_metadata(path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        })
    }
}

/// Where each format would go, as things are there now; where one cannot, a sentence.
pub fn propose(shown: &Shown, names: &Names) -> Result<Vec<Proposal>, String> {
    let propose = |format| {
        let path = names.free(shown, format)?;
        let wanted = names.wanted.is_some().then(|| names.path(shown, format, 1));
        let taken = wanted.filter(|wanted| *wanted != path);
        let taken = taken.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Ok(Proposal { path, taken })
    };
    shown.formats().into_iter().map(propose).collect()
}

/// The `n`-th name like one that was written: as it is, then with numbers before its ending.
fn numbered(name: &str, of: Option<Format>, format: Format, n: u32) -> String {
    let ending = name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len());
    let (stem, mut ending) = name.split_at(ending);
    let other = format!(".{}", format.extension());
    if of.is_some_and(|of| ending.strip_prefix('.') == Some(of.extension())) {
        ending = &other;
    }
    if n == 1 { format!("{stem}{ending}") } else { format!("{stem}-{n}{ending}") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::super::{run, write};
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn shown() -> Shown {
        Shown { request: request(), table: None, recording: None, columns: 0 }
    }

    fn to(text: impl Into<String>) -> Destination {
        Destination { text: text.into(), of: Some(Format::Svg) }
    }

    /// From a working directory, and with a home in it.
    fn names(destination: &Destination, working: &Path) -> Result<Names, String> {
        destination.names_from(|| Ok(working.to_owned()), Some(working.join("home")))
    }

    fn proposed(destination: &Destination, working: &Path) -> Vec<Proposal> {
        propose(&shown(), &names(destination, working).unwrap()).unwrap()
    }

    fn paths(text: &str, working: &Path) -> Vec<PathBuf> {
        proposed(&to(text), working).into_iter().map(|proposal| proposal.path).collect()
    }

    #[test]
    fn a_directory_or_a_file_is_written_in_full_from_here_or_from_home() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        std::fs::create_dir_all(here.join("home/out")).unwrap();
        let usual = |directory: &Path| {
            ["svg", "folded"]
                .map(|end| directory.join(format!("heaptop-..-or-ders-7-in-use-bytes-1.{end}")))
        };
        assert_eq!(paths("", here), usual(here));
        assert_eq!(paths("~", here), usual(&here.join("home")));
        for out in ["home/out", "./home/out/", " ~/out ", "~/out/"] {
            let directories: Vec<PathBuf> =
                paths(out, here).iter().map(|path| path.parent().unwrap().into()).collect();
            let is = |directory: &PathBuf| {
                directory.canonicalize().unwrap() == here.join("home/out").canonicalize().unwrap()
            };
            assert!(directories.iter().all(is), "{out}: {directories:?}");
        }
        let full = here.join("home/out/a.svg");
        let both = ["a.svg", "a.folded"].map(|name| here.join("home/out").join(name));
        assert_eq!(paths(full.to_str().unwrap(), here), both);
        assert_eq!(paths("~/out/a.svg", here), both, "the ending is the format's");
        assert_eq!(paths("b.txt", here), ["b.txt", "b.txt"].map(|name| here.join(name)));
        assert_eq!(paths("~b", here), ["~b", "~b"].map(|name| here.join(name)));
        assert_eq!(paths(".svg", here), [".svg", ".svg"].map(|name| here.join(name)));
    }

    #[test]
    fn a_file_that_is_there_stays_and_the_next_name_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let a = dir.path().join("a.svg");
        std::fs::write(&a, "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("a-2.svg")).unwrap();
        let [svg, folded] = &proposed(&to("a.svg"), dir.path())[..] else { panic!() };
        assert_eq!((&svg.path, svg.taken.as_deref()), (&dir.path().join("a-3.svg"), Some("a.svg")));
        assert_eq!((&folded.path, &folded.taken), (&dir.path().join("a.folded"), &None));
        // Taken meanwhile.
        let names = names(&to("a.svg"), dir.path()).unwrap();
        write(&svg.path, b"another's").unwrap();
        let written = run(&shown(), Format::Svg, &names).unwrap();
        assert_eq!(written, dir.path().join("a-4.svg"));
        assert_eq!(std::fs::read_to_string(&a).unwrap(), "mine");
        assert!(!dir.path().join("nowhere").exists(), "nothing is written through a link");
        assert_eq!(std::fs::read_to_string(&svg.path).unwrap(), "another's");
    }

    #[test]
    fn what_cannot_be_written_to_is_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let long = "x".repeat(300) + ".svg";
        for (text, says) in [
            ("none/a.svg", "none"),
            ("none/", "none"),
            ("file/a.svg", "file is no directory"),
            ("file/", "file is no directory"),
            ("file/below/a.svg", "nothing can be written into "),
            (long.as_str(), "cannot write "),
            ("a\0b", "cannot write "),
        ] {
            let why = names(&to(text), dir.path()).and_then(|names| propose(&shown(), &names));
            let why = why.unwrap_err();
            assert!(why.contains(says) && !why.contains('\n'), "{text}: {why}");
        }
        let why = names(&Destination::directory("none"), dir.path()).unwrap_err();
        assert_eq!(why, format!("there is no directory {}", dir.path().join("none").display()));
        let why = to("~/a").names_from(|| Ok("/".into()), None).unwrap_err();
        assert!(why.contains("no home"), "{why}");
        let gone = || Err(io::ErrorKind::NotFound.into());
        let why = to("a").names_from(gone, None).unwrap_err();
        assert!(why.contains("working directory"), "{why}");
        let full = dir.path().join("a").display().to_string();
        assert!(to(full).names_from(gone, None).is_ok(), "it is not needed");
        // Root may write anywhere.
        let closed = dir.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o500)).unwrap();
        if !rustix::process::geteuid().is_root() {
            let why = names(&to("closed/"), dir.path()).unwrap_err();
            assert!(why.contains("nothing can be written into"), "{why}");
        }
    }
}
