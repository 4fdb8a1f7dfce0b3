//! Connecting to a socket by its path, within a deadline, and to whom.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptop_protocol::endpoint::{self, DIRECTORY_MODE, MAX_PATH};
use interprocess::local_socket::traits::StreamCommon;
use interprocess::os::unix::uds_local_socket::Stream;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::LinkError;

/// Pause before a full backlog is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// How long somebody is waited for, and until when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) time: Duration,
    pub(super) end: Instant,
}

impl Patience {
    /// From now on.
    pub(super) fn new(time: Duration) -> Self {
        Self { time, end: Instant::now() + time }
    }

    pub(super) fn is_over(self) -> bool {
        Instant::now() >= self.end
    }

    /// Time left, at least a moment: no time at all would mean to wait for ever.
    pub(super) fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }
}

/// The other end, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// Its pid, as seen from here.
    pub(super) pid: u32,
    /// Its effective user.
    pub(super) uid: u32,
}

/// Connects to `path` and checks that the peer belongs to this user or to root;
/// root may talk to all.
///
/// The connection is made without waiting and tried again while there is patience: a
/// waiting one would wait for ever at a stopped target whose backlog is full,
/// and one with the system's timeout may report success without a connection.
pub(super) fn connect(path: &Path, patience: Patience) -> Result<(Stream, Peer), LinkError> {
    let io = |doing, error| LinkError::Io { doing, socket: path.into(), error };
    let (address, _directory) = address(path)?;
    let stream = loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|error| io("open a socket for", error.into()))?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) => break UnixStream::from(fd),
            Err(Errno::AGAIN) if !patience.is_over() => std::thread::sleep(AGAIN),
            Err(Errno::AGAIN) => {
                return Err(LinkError::Busy {
                    socket: path.into(),
                    pid: path.file_name().and_then(endpoint::pid),
                    waited: patience.time,
                });
            }
            Err(Errno::INTR) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(LinkError::Missing(path.into())),
            Err(Errno::CONNREFUSED) => return Err(LinkError::Stale(path.into())),
            Err(error) => return Err(io("connect to", error.into())),
        }
    };
    stream.set_nonblocking(false).map_err(|error| io("connect to", error))?;
    let stream = Stream::from(stream);
    let peer = match stream.peer_creds() {
        Ok(creds) => creds
            .pid()
            .and_then(|pid| u32::try_from(pid).ok())
            .zip(creds.euid())
            .map(|(pid, uid)| Peer { pid, uid })
            .ok_or_else(|| io("learn who listens at", std::io::ErrorKind::Unsupported.into()))?,
        // So the library tells of a pid 0, the kernel's word for "not to be seen".
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            return Err(LinkError::OutOfSight(path.into()));
        }
        Err(error) => return Err(io("learn who listens at", error)),
    };
    if ![own_uid(), 0].contains(&peer.uid) && own_uid() != 0 {
        return Err(LinkError::Foreign { socket: path.into(), uid: peer.uid });
    }
    Ok((stream, peer))
}

/// This process's effective user.
pub(super) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// `path` as a socket's address. One that is too long goes through its
/// directory, held open, by `/proc/self/fd`.
fn address(path: &Path) -> Result<(SocketAddrUnix, Option<File>), LinkError> {
    let too_long = || LinkError::TooLong(path.into());
    let (short, directory) = if path.as_os_str().len() <= MAX_PATH {
        (path.to_path_buf(), None)
    } else {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(too_long());
        };
        let flags = (OFlags::PATH | OFlags::DIRECTORY).bits().cast_signed();
        let directory = File::options()
            .read(true)
            .custom_flags(flags)
            .open(parent)
            .map_err(|_| LinkError::Missing(path.into()))?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&directory);
        (PathBuf::from(format!("/proc/self/fd/{fd}")).join(name), Some(directory))
    };
    let address = SocketAddrUnix::new(&short).map_err(|_| too_long())?;
    Ok((address, directory))
}

/// Checks that a directory of sockets is `owner`'s own and closed to others.
/// `Ok(false)`: there is none.
pub(super) fn check_directory(path: &Path, owner: u32) -> Result<bool, LinkError> {
    // No agent can listen where not even the shortest name fits.
    if endpoint::socket(path, 1).as_os_str().len() > MAX_PATH {
        return Err(LinkError::TooLong(path.into()));
    }
    let wrong = |why: String| LinkError::Directory { path: path.into(), why };
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(wrong(e.to_string())),
    };
    if !metadata.is_dir() {
        return Err(wrong("it is no directory; remove it or set HEAPTOP_DIR".into()));
    }
    if metadata.uid() != owner {
        return Err(wrong(format!(
            "it belongs to user {}, not {owner}; set HEAPTOP_DIR to a directory of your own",
            metadata.uid()
        )));
    }
    let mode = metadata.mode() & 0o777;
    if mode & !DIRECTORY_MODE != 0 {
        return Err(wrong(format!("others may enter it (mode {mode:03o}); `chmod 700` it")));
    }
    Ok(true)
}
