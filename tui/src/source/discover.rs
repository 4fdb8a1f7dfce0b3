//! Finding targets: sockets in the directories of this user.
//!
//! A socket that refuses a connection is left over from a process that was killed, and is
//! removed: an agent gives its socket its name only once it listens. **Only what is certainly
//! left over is removed**: it must be this user's own (root leaves what others have), and of
//! some age, since an agent may be about to listen; the process whose number its name bears
//! must be gone, or have begun after the socket was made, so that the number was used again;
//! and what refuses must still be what lies there.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heaptop_protocol::endpoint;
use heaptop_protocol::message::{FromAgent, Hello, Status};

use super::handshake::Greeted;
use super::link::GREETING;
use super::process::{parent, running_for};
use super::socket::{Patience, Peer, check_directory, connect, own_uid};
use super::{LinkError, Target};
use crate::session::estimate::{self, Sight};
use crate::session::figures::Estimate;

/// Time for a target on a list to greet and to tell how it is.
const PROBE: Duration = Duration::from_secs(1);
/// Targets asked at the same time: more of them than there ever are, and few enough
/// for the files that a process may have open.
const AT_ONCE: usize = 256;
/// So many processes above a target are looked at for another target.
const ANCESTORS: usize = 64;
/// Age from which a socket that refuses is certainly left over.
const LEFT_OVER: Duration = Duration::from_secs(2);
/// A process that began so much later than a socket was made did not make it. The clock of
/// files may have been set between the two.
const LATER: Duration = Duration::from_secs(10);

/// A target that answered.
#[derive(Debug, Clone)]
pub struct Found {
    /// Who and where.
    pub target: Target,
    /// How it is; `None` if it did not tell in time.
    pub status: Option<Status>,
    /// The pid of the nearest process above it that is a target too.
    pub parent: Option<u32>,
}

impl Found {
    /// Bytes in use.
    #[must_use]
    pub fn in_use(&self) -> Estimate {
        self.status.map_or(Estimate::Unknown, |status| {
            estimate::bytes(&status.totals.in_use, Sight::of(&status))
        })
    }

    /// Since the agent started, in nanoseconds.
    #[must_use]
    pub fn uptime_ns(&self) -> u64 {
        self.status.map_or(self.target.hello.uptime_ns, |status| status.at.time_ns)
    }
}

/// What there is.
#[derive(Debug, Default)]
pub struct Survey {
    /// Targets, by pid.
    pub targets: Vec<Found>,
    /// What was met that is no target, a sentence each.
    pub troubles: Vec<String>,
}

/// Looks for all targets of this user; as root, of every user. There is no survey
/// where none of the directories can be used.
pub fn survey() -> Result<Survey, LinkError> {
    let uid = own_uid();
    let mut directories: Vec<(PathBuf, u32)> =
        endpoint::directories(|name| std::env::var_os(name), uid)
            .into_iter()
            .map(|directory| (directory, uid))
            .collect();
    if uid == 0 && std::env::var_os("HEAPTOP_DIR").is_none() {
        directories.extend(others());
    }
    survey_in(&directories)
}

/// The directories of other users, with their owners.
fn others() -> Vec<(PathBuf, u32)> {
    let entries = |path: &str| std::fs::read_dir(path).into_iter().flatten().flatten();
    let runtime = entries("/run/user").map(|entry| entry.path().join("heaptop"));
    let temporary = entries("/tmp")
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"heaptop-"))
        .map(|entry| entry.path());
    runtime
        .chain(temporary)
        .filter_map(|path| {
            let owner = std::fs::symlink_metadata(&path).ok()?.uid();
            (owner != 0).then_some((path, owner))
        })
        .collect()
}

/// Looks into these directories, each with the user that must own it.
fn survey_in(directories: &[(PathBuf, u32)]) -> Result<Survey, LinkError> {
    let mut survey = Survey::default();
    let mut sockets = Vec::new();
    for (directory, owner) in directories {
        match check_directory(directory, *owner) {
            Ok(true) => {
                forget_unfinished(directory);
                sockets.extend(sockets_in(directory));
            }
            Ok(false) => {}
            Err(error) if survey.troubles.len() + 1 == directories.len() => return Err(error),
            Err(error) => survey.troubles.push(error.to_string()),
        }
    }
    for some in sockets.chunks(AT_ONCE) {
        let probed: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|socket| scope.spawn(|| probe(socket))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        for (socket, probed) in some.iter().zip(probed) {
            match probed {
                Ok(found) => survey.targets.push(found),
                Err(LinkError::Stale(_)) => remove_left_over(socket),
                // It ended while we looked.
                Err(LinkError::Missing(_)) => {}
                Err(error) => survey.troubles.push(error.to_string()),
            }
        }
    }
    survey.targets.sort_by_key(|found| found.target.pid);
    survey.targets.dedup_by_key(|found| found.target.pid);
    let pids: Vec<u32> = survey.targets.iter().map(|found| found.target.pid).collect();
    for found in &mut survey.targets {
        found.parent = above(found.target.pid, &pids, parent);
    }
    Ok(survey)
}

/// The nearest process above `pid` that is one of `pids`, which are sorted.
fn above(pid: u32, pids: &[u32], parent: impl Fn(u32) -> Option<u32>) -> Option<u32> {
    let ancestors = std::iter::successors(parent(pid), |&pid| parent(pid));
    ancestors.take(ANCESTORS).find(|pid| pids.binary_search(pid).is_ok())
}

/// The sockets of agents in a directory.
fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let mut sockets: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| endpoint::pid(&entry.file_name()).is_some())
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .collect();
    sockets.sort();
    sockets
}

/// Removes what agents left that died before their sockets listened. None takes so
/// long for that.
fn forget_unfinished(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| endpoint::is_unfinished(&entry.file_name())) {
        remove_left_over(&entry.path());
    }
}

/// Removes a socket that is certainly left over: see the module.
pub(super) fn remove_left_over(socket: &Path) {
    if is_left_over(socket, own_uid()) {
        // If it cannot be removed it will be met again: no harm.
        let _ = std::fs::remove_file(socket);
    }
}

/// The last look is for what has taken its place while we asked.
fn is_left_over(socket: &Path, uid: u32) -> bool {
    let look = || {
        let found = std::fs::symlink_metadata(socket).ok()?;
        let age = SystemTime::now().duration_since(found.modified().ok()?).ok()?;
        let ours = found.file_type().is_socket() && found.uid() == uid && age >= LEFT_OVER;
        ours.then_some(((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()), age))
    };
    let (Some((found, age)), Some(pid)) = (look(), socket.file_name().and_then(endpoint::owner))
    else {
        return false;
    };
    // Who made it began before that.
    running_for(pid).is_none_or(|ran| ran.saturating_add(LATER) < age)
        && matches!(connect(socket, Patience::new(PROBE)), Err(LinkError::Stale(_)))
        && look().is_some_and(|(again, _)| again == found)
}

/// Asks who listens at `socket`, and how it is.
pub(super) fn probe(socket: &Path) -> Result<Found, LinkError> {
    let patience = Patience::new(PROBE);
    let (mut greeted, target) = meet(socket, patience)?;
    let status = loop {
        match greeted.next(socket, patience) {
            Ok(Some(FromAgent::Status(status))) => break Some(status),
            Ok(_) => {}
            // It is a target all the same, only its state is unknown.
            Err(_) => break None,
        }
    };
    Ok(Found { target, status, parent: None })
}

/// Asks who listens at `socket`, as long as it takes to attach.
pub(super) fn identify(socket: &Path) -> Result<Target, LinkError> {
    meet(socket, Patience::new(GREETING)).map(|(_, target)| target)
}

fn meet(socket: &Path, patience: Patience) -> Result<(Greeted, Target), LinkError> {
    let greeted = Greeted::open(socket, patience)?;
    let Peer { pid, uid } = greeted.peer;
    let target = Target { pid, uid, socket: socket.into(), hello: greeted.hello.clone() };
    Ok((greeted, target))
}

/// What a target's greeting is called on lists.
#[must_use]
pub fn kind(hello: &Hello) -> &'static str {
    use heaptop_protocol::message::AgentKind::{Linked, Ocaml, Preloaded};
    match hello.kind {
        Linked => "linked",
        Preloaded => "preloaded",
        Ocaml => "ocaml",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::fake::{self, Behaviour};
    use std::os::unix::fs::PermissionsExt;

    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        dir
    }

    fn look(dir: &Path) -> Survey {
        survey_in(&[(dir.into(), own_uid())]).unwrap()
    }

    #[test]
    fn targets_are_found_and_strangers_are_told() {
        let dir = directory();
        let _good = fake::serve(&dir.path().join("1.sock"), Behaviour::Normal);
        let survey = look(dir.path());
        let [found] = &survey.targets[..] else { panic!("{survey:?}") };
        // The pid is the kernel's, not that of the file's name or of the greeting.
        assert_eq!(found.target.pid, std::process::id());
        assert_eq!(found.target.hello.name, fake::NAME);
        assert_eq!(found.status.unwrap().samples, fake::SAMPLES);
        assert_eq!(survey.troubles, [""; 0]);

        let _garbage = fake::serve(&dir.path().join("2.sock"), Behaviour::Garbage);
        let _silent = fake::serve(&dir.path().join("3.sock"), Behaviour::Silent);
        std::fs::write(dir.path().join("4.sock"), "no socket").unwrap();
        let survey = look(dir.path());
        assert_eq!(survey.targets.len(), 1);
        assert_eq!(survey.troubles.len(), 2, "{:?}", survey.troubles);
        assert!(survey.troubles[0].contains("no heaptop"), "{:?}", survey.troubles);
        assert!(survey.troubles[1].contains("does not answer"), "{:?}", survey.troubles);
    }

    #[test]
    fn targets_whose_files_were_replaced_keep_their_names() {
        let dir = directory();
        let _replaced = fake::serve(&dir.path().join("1.sock"), Behaviour::Replaced);
        assert_eq!(look(dir.path()).targets[0].target.hello.name, fake::NAME);
    }

    #[test]
    fn slow_targets_are_waited_for_and_all_at_once() {
        let dir = directory();
        let _slow = fake::serve(&dir.path().join("1.sock"), Behaviour::Slow);
        // Nobody in here answers before all of them are asked.
        let agents: Vec<_> = (2..50)
            .map(|i| fake::serve(&dir.path().join(format!("{i}.sock")), Behaviour::Together(48)))
            .collect();
        assert_eq!(agents.len(), 48);
        let survey = look(dir.path());
        assert_eq!(survey.troubles, [""; 0]);
        // All have this process's pid.
        assert_eq!(survey.targets.len(), 1);
    }

    /// The number of no process.
    const NOBODY: u32 = 1 << 30;

    /// Makes a file look as if it was made so long ago.
    fn made(path: &Path, ago: Duration) {
        let time = timespec(SystemTime::now() - ago);
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        let here = rustix::fs::CWD;
        rustix::fs::utimensat(here, path, &times, rustix::fs::AtFlags::empty()).unwrap();
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn left_over_sockets_go_once_they_are_old() {
        let dir = directory();
        for name in [format!("{NOBODY}.sock"), format!("{NOBODY}.new")] {
            let path = dir.path().join(name);
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            assert!(look(dir.path()).targets.is_empty());
            assert!(path.exists(), "it may be about to listen");
            made(&path, MINUTE);
            assert_eq!(look(dir.path()).troubles, [""; 0]);
            assert!(!path.exists());
        }
    }

    #[test]
    fn only_what_is_certainly_left_over_goes() {
        let dir = directory();
        let left = |pid: u32, ago| {
            let path = endpoint::socket(dir.path(), pid);
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            made(&path, ago);
            path
        };
        let path = left(NOBODY, MINUTE);
        assert!(is_left_over(&path, own_uid()));
        assert!(!is_left_over(&path, own_uid() + 1), "another's");
        std::fs::remove_file(&path).unwrap();
        let _listens = std::os::unix::net::UnixListener::bind(&path).unwrap();
        made(&path, MINUTE);
        assert!(!is_left_over(&path, own_uid()), "somebody listens");
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let path = left(child.id(), LEFT_OVER);
        assert!(!is_left_over(&path, own_uid()), "it may have made it");
        made(&path, 24 * 60 * MINUTE);
        assert!(is_left_over(&path, own_uid()), "the number is used again");
        made(&path, LEFT_OVER);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(is_left_over(&path, own_uid()), "it is gone");
        for name in ["x.sock".to_owned(), format!("{NOBODY}.file.sock")] {
            let other = dir.path().join(name);
            std::fs::rename(&path, &other).unwrap();
            assert!(!is_left_over(&other, own_uid()), "no agent's");
            std::fs::rename(&other, &path).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        made(&path, MINUTE);
        assert!(!is_left_over(&path, own_uid()), "no socket");
        assert!(!is_left_over(&dir.path().join("none.sock"), own_uid()));
    }

    #[test]
    fn the_nearest_target_above_is_found_whatever_lies_between() {
        // 9 ─ 8 (a shell) ─ 5 ─ 1; whoever is its own parent is not gone round with.
        let parent = |pid| match pid {
            9 => Some(8),
            8 => Some(5),
            5 => Some(1),
            7 => Some(7),
            _ => None,
        };
        assert_eq!(above(9, &[1, 5, 9], parent), Some(5));
        assert_eq!(above(9, &[1, 9], parent), Some(1));
        assert_eq!(above(5, &[5, 9], parent), None);
        assert_eq!(above(7, &[9], parent), None);
    }

    fn timespec(time: SystemTime) -> rustix::fs::Timespec {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        rustix::fs::Timespec { tv_sec: since.as_secs().cast_signed(), tv_nsec: 0 }
    }

    #[test]
    fn an_open_directory_is_not_trusted() {
        let dir = directory();
        let _good = fake::serve(&dir.path().join("1.sock"), Behaviour::Normal);
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let none = dir.path().join("none");
        let directory = |path: &Path, owner| (path.to_owned(), owner);
        let untrusted = directory(dir.path(), own_uid());
        let error = survey_in(std::slice::from_ref(&untrusted)).unwrap_err().to_string();
        assert!(error.contains("chmod 700"), "{error}");
        // One of several that cannot be used is told beside what the others hold.
        let survey = survey_in(&[untrusted, directory(&none, own_uid())]).unwrap();
        assert!(survey.targets.is_empty());
        assert!(survey.troubles[0].contains("chmod 700"), "{:?}", survey.troubles);
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let error = survey_in(&[directory(dir.path(), own_uid() + 1)]).unwrap_err().to_string();
        assert!(error.contains("belongs to user"), "{error}");
        assert!(look(&none).troubles.is_empty());
        for long in ["d".repeat(101), "d".repeat(5000)] {
            let error = survey_in(&[directory(Path::new(&long), 0)]).unwrap_err().to_string();
            assert!(error.contains("does not fit into a socket's address"), "{error}");
        }
        assert!(survey_in(&[directory(Path::new(&"d".repeat(100)), 0)]).is_ok());
    }
}
