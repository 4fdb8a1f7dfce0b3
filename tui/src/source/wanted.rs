//! The one target that is meant: by pid, name or socket. For a pid it is looked for
//! also in the directories that its process sees.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use heaptop_protocol::endpoint;

use super::LinkError;
use super::discover::{Found, identify, survey};
use super::socket::own_uid;
use crate::symbols::inner_pid;

/// Finds the socket of process `pid`, also where its directories are others
/// than ours: in a container, a chroot, or by its own environment.
pub fn socket_of(pid: u32) -> Result<PathBuf, String> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let Ok(metadata) = std::fs::metadata(&proc) else {
        return Err(format!("there is no process {pid}: see `heaptop list` for targets"));
    };
    let uid = metadata.uid();
    let own = endpoint::directories(|name| std::env::var_os(name), own_uid());
    let mut candidates: Vec<PathBuf> =
        own.iter().map(|directory| endpoint::socket(directory, pid)).collect();

    let environment = environment(pid);
    let theirs = endpoint::directories(|name| environment.as_ref()?(name), uid);
    let inner = inner_pid(pid).unwrap_or(pid);
    let runtime = PathBuf::from(format!("/run/user/{uid}/heaptop"));
    for directory in theirs.into_iter().chain([runtime]) {
        let inside = directory.strip_prefix("/").unwrap_or(&directory);
        candidates.push(endpoint::socket(&proc.join("root").join(inside), inner));
    }

    // One socket is seen by several paths: it is asked once.
    let mut seen = Vec::new();
    candidates.retain(|candidate| {
        // Where nothing is to be seen asking tells why.
        let Ok(metadata) = std::fs::metadata(candidate) else { return true };
        let identity = (metadata.dev(), metadata.ino());
        let new = !seen.contains(&identity);
        seen.push(identity);
        new
    });
    let mut trouble = None;
    for candidate in candidates {
        match identify(&candidate) {
            Ok(target) if target.pid == pid => return Ok(candidate),
            Ok(_) | Err(LinkError::Missing(_) | LinkError::Stale(_)) => {}
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    let name = std::fs::read_to_string(proc.join("comm")).unwrap_or_default();
    let name = name.trim();
    Err(match trouble {
        Some(error) => format!("cannot attach to process {pid} ({name}): {error}"),
        None if environment.is_none() => format!(
            "process {pid} ({name}) belongs to user {uid} and cannot be looked into: attach as that user or as root"
        ),
        None => format!(
            "process {pid} ({name}) has no heaptop agent: link heaptop-agent into it and start it anew"
        ),
    })
}

/// The environment that process `pid` was started with; `None` if it is not to
/// be seen.
fn environment(pid: u32) -> Option<impl Fn(&str) -> Option<OsString>> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    Some(move |name: &str| {
        bytes.split(|&byte| byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsString::from_vec(value.to_vec()))
        })
    })
}

/// How a target may be named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// By pid.
    Pid(u32),
    /// By its name.
    Name(String),
    /// By its socket.
    Socket(PathBuf),
}

impl From<&str> for Wanted {
    fn from(text: &str) -> Self {
        if let Ok(pid) = text.parse() {
            Self::Pid(pid)
        } else if text.contains('/') {
            Self::Socket(text.into())
        } else {
            Self::Name(text.into())
        }
    }
}

/// The target that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant {
    /// Where it listens.
    pub socket: PathBuf,
    /// Where it was not named in full: which was taken, in a sentence that must be told.
    pub guessed: Option<String>,
}

impl From<PathBuf> for Meant {
    fn from(socket: PathBuf) -> Self {
        Self { socket, guessed: None }
    }
}

impl Wanted {
    /// The one target that is meant; else a sentence.
    pub fn find(&self) -> Result<Meant, String> {
        match self {
            Self::Pid(pid) => socket_of(*pid).map(Meant::from),
            Self::Socket(path) => Ok(path.clone().into()),
            Self::Name(name) if name.trim().is_empty() => {
                Err("a target has a pid, a name or a socket, and what was given is empty: see `heaptop list`".into())
            }
            Self::Name(name) => choose(name, &survey().map_err(|e| e.to_string())?.targets),
        }
    }
}

/// The target called `name`, or, without one, that whose name contains it.
fn choose(name: &str, targets: &[Found]) -> Result<Meant, String> {
    let exact: Vec<&Found> = targets.iter().filter(|f| f.target.hello.name == name).collect();
    let guessed = exact.is_empty();
    let found = if guessed {
        targets.iter().filter(|f| f.target.hello.name.contains(name)).collect()
    } else {
        exact
    };
    match &found[..] {
        [] => Err(format!("no target is called {name}: see `heaptop list`")),
        [one] => {
            let (socket, called, pid) =
                (one.target.socket.clone(), &one.target.hello.name, one.target.pid);
            let guessed = guessed.then(|| {
                format!(
                    "no target is called {name}: this is {called} (pid {pid}), the only one with that in its name"
                )
            });
            Ok(Meant { socket, guessed })
        }
        many => {
            let pids: Vec<String> = many.iter().map(|f| f.target.pid.to_string()).collect();
            Err(format!(
                "{name} fits {} targets: say which by pid, {}",
                many.len(),
                pids.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Target, fake};
    use heaptop_protocol::message::Hello;

    #[test]
    fn a_target_is_named_by_pid_name_or_socket() {
        assert_eq!(Wanted::from("12"), Wanted::Pid(12));
        assert_eq!(Wanted::from("orders"), Wanted::Name("orders".into()));
        let nothing = Wanted::from(" ").find().unwrap_err();
        assert!(nothing.contains("what was given is empty"), "{nothing}");
        assert_eq!(Wanted::from("./x"), Wanted::Socket("./x".into()));
        let found = |pid, name: &str| Found {
            target: Target {
                pid,
                uid: 0,
                socket: PathBuf::from(format!("/{pid}")),
                hello: Hello { name: name.into(), ..fake::hello() },
            },
            status: None,
            parent: None,
        };
        let all = vec![found(1, "api"), found(2, "api-test"), found(3, "web"), found(4, "web")];
        assert_eq!(choose("api", &all), Ok(PathBuf::from("/1").into()), "it is called so");
        let part = choose("test", &all).unwrap();
        assert_eq!(part.socket, PathBuf::from("/2"));
        let told = "no target is called test: this is api-test (pid 2)";
        assert!(part.guessed.as_ref().is_some_and(|said| said.starts_with(told)), "{part:?}");
        assert!(choose("web", &all).unwrap_err().contains("3, 4"));
        assert!(choose("db", &all).unwrap_err().contains("no target is called db"));
    }

    #[test]
    fn processes_without_an_agent_are_told_in_a_sentence() {
        assert!(socket_of(1 << 30).unwrap_err().contains("there is no process"));
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(socket_of(sleeper.id()).unwrap_err().contains("no heaptop agent"));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
