//! Where the sockets lie: one directory per user, one socket per target.
//!
//! The directory is `$HEAPTOP_DIR` where that is set, else
//! `$XDG_RUNTIME_DIR/heaptop`, else `heaptop-UID` in the temporary directory.
//! A target's socket is `PID.sock` in it. Both ends must check that the
//! directory belongs to the user and is closed to others before they trust it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Longest path a socket address can hold, in bytes.
pub const MAX_PATH: usize = 107;
/// Mode of the directory.
pub const DIRECTORY_MODE: u32 = 0o700;
/// Mode of the sockets.
pub const SOCKET_MODE: u32 = 0o600;

/// The directories to look in, the first being where an agent puts its socket.
/// `variable` reads the environment, `uid` is the user's number.
pub fn directories(variable: impl Fn(&str) -> Option<OsString>, uid: u32) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("HEAPTOP_DIR") {
        return vec![dir];
    }
    let runtime = set("XDG_RUNTIME_DIR").map(|dir| dir.join("heaptop"));
    let temporary =
        set("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("heaptop-{uid}"));
    runtime.into_iter().chain([temporary]).collect()
}

/// The socket of process `pid` in `directory`.
#[must_use]
pub fn socket(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.sock"))
}

/// Where that socket lies until it listens. An agent binds it here and then renames
/// it, so that a socket with its right name never refuses a viewer.
#[must_use]
pub fn unfinished(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.new"))
}

/// Whether a file has a name of [`unfinished`].
#[must_use]
pub fn is_unfinished(file_name: &OsStr) -> bool {
    let pid = file_name.to_str().and_then(|name| name.strip_suffix(".new"));
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
}

/// The pid that stands in the name of either.
#[must_use]
pub fn owner(file_name: &OsStr) -> Option<u32> {
    let name = file_name.to_str()?;
    name.strip_suffix(".sock").or_else(|| name.strip_suffix(".new"))?.parse().ok()
}

/// The pid that a socket's file name states; `None` for other files.
#[must_use]
pub fn pid(file_name: &OsStr) -> Option<u32> {
    file_name.to_str()?.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_in(vars: &[(&str, &str)]) -> Vec<PathBuf> {
        directories(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)), 7)
    }

    #[test]
    fn a_set_directory_is_the_only_one() {
        assert_eq!(
            look_in(&[("HEAPTOP_DIR", "/d"), ("XDG_RUNTIME_DIR", "/run/7")]),
            [Path::new("/d")]
        );
    }

    #[test]
    fn the_runtime_directory_comes_first() {
        assert_eq!(
            look_in(&[("XDG_RUNTIME_DIR", "/run/7"), ("TMPDIR", "/t")]),
            [Path::new("/run/7/heaptop"), Path::new("/t/heaptop-7")]
        );
        assert_eq!(look_in(&[("XDG_RUNTIME_DIR", "")]), [Path::new("/tmp/heaptop-7")]);
    }

    #[test]
    fn names_lead_back_to_pids() {
        let path = socket(Path::new("/d"), 42);
        assert_eq!(pid(path.file_name().unwrap()), Some(42));
        assert_eq!(pid(OsStr::new("x.sock")), None);
        assert_eq!(pid(OsStr::new("42")), None);
        let unfinished = unfinished(Path::new("/d"), 42);
        assert_eq!(pid(unfinished.file_name().unwrap()), None);
        assert!(is_unfinished(unfinished.file_name().unwrap()));
        assert!(!is_unfinished(OsStr::new("42.sock")) && !is_unfinished(OsStr::new("x.new")));
        assert_eq!([&path, &unfinished].map(|p| owner(p.file_name().unwrap())), [Some(42); 2]);
        assert_eq!(["x.sock", "42", "42.new.sock"].map(|name| owner(OsStr::new(name))), [None; 3]);
        assert!(unfinished.as_os_str().len() <= path.as_os_str().len());
    }
}
