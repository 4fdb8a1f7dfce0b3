//! The socket: where it lies, who may connect.

use super::descriptors::Listed;
use heaptop_protocol::endpoint;
use interprocess::local_socket::traits::{Listener as _, Stream as _};
use interprocess::local_socket::{
    GenericFilePath, Listener, ListenerNonblockingMode, ListenerOptions, Stream, ToFsName,
};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The listening socket.
pub struct Server {
    listed: Listed,
    /// Closed by `drop`, and only while it is ours.
    listener: ManuallyDrop<Listener>,
    path: PathBuf,
}

/// Where the socket may lie. Reads the environment.
pub fn directories() -> Vec<PathBuf> {
    endpoint::directories(|name| std::env::var_os(name), uid())
}

fn uid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

impl Server {
    /// Opens this process's socket in the first of `directories` that will do;
    /// else the sentence that says why the last one would not.
    pub fn open(directories: &[PathBuf]) -> Result<Self, String> {
        let mut why = String::new();
        for directory in directories {
            match Self::open_in(directory) {
                Ok(server) => return Ok(server),
                Err(e) => why = e,
            }
        }
        Err(why)
    }

    fn open_in(directory: &Path) -> Result<Self, String> {
        let path = prepare(directory)?;
        if path.symlink_metadata().is_ok() {
            clear(&path)?;
        }
        let say = |e: io::Error| format!("cannot open the socket {}: {e}", path.display());
        // Under its right name only once it listens. Nobody else has our pid here, so
        // what has the other name is left over.
        let unfinished = endpoint::unfinished(directory, std::process::id());
        let _ = std::fs::remove_file(&unfinished);
        let listener = ListenerOptions::new()
            .name(unfinished.as_path().to_fs_name::<GenericFilePath>().map_err(say)?)
            .mode(endpoint::SOCKET_MODE as libc::mode_t)
            .nonblocking(ListenerNonblockingMode::Both)
            .reclaim_name(false)
            .create_sync()
            .map_err(say)?;
        std::fs::rename(&unfinished, &path).map_err(say)?;
        let Listener::UdSocket(socket) = &listener;
        Ok(Self { listed: Listed::new(socket), listener: ManuallyDrop::new(listener), path })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the program has left us our descriptor: see [`Listed`].
    pub fn is_open(&self) -> bool {
        self.listed.is_ours()
    }

    /// The listening descriptor.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The next viewer that waits and may come in: this user, or root.
    pub fn accept(&self) -> Option<Stream> {
        loop {
            if !self.is_open() {
                return None;
            }
            let stream = self.listener.accept().ok()?;
            let peer = peer_uid(&stream);
            if peer == Some(0) || peer == Some(uid()) {
                return Some(stream);
            }
        }
    }
}

/// The user at the other end. Asked for by ourselves: the library's credentials
/// are an error where the peer has no pid here, in another pid namespace.
fn peer_uid(stream: &Stream) -> Option<u32> {
    let Stream::UdSocket(socket) = stream;
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the buffer is of the length given.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    (failed == 0 && length as usize == size_of::<libc::ucred>()).then_some(found.uid)
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.listed.is_ours() {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.listener) };
        }
    }
}

/// Why there can be no socket in the first of `directories`, as far as that is known
/// without a descriptor.
pub fn unusable(directories: &[PathBuf]) -> Option<String> {
    directories.first().and_then(|directory| prepare(directory).err())
}

/// Makes the directory; where the socket lies in it.
fn prepare(directory: &Path) -> Result<PathBuf, String> {
    let path = endpoint::socket(directory, std::process::id());
    let length = path.as_os_str().len();
    if length > endpoint::MAX_PATH {
        return Err(format!(
            "the socket's path {} has {length} bytes, more than {}: set HEAPTOP_DIR to a shorter one",
            path.display(),
            endpoint::MAX_PATH
        ));
    }
    make_directory(directory)?;
    match path.symlink_metadata() {
        Ok(found) if !is_socket(&found) => {
            Err(format!("{} is in the way and is no socket: remove it", path.display()))
        }
        _ => Ok(path),
    }
}

fn is_socket(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_socket()
}

fn make_directory(directory: &Path) -> Result<(), String> {
    let name = directory.display();
    let mut builder = std::fs::DirBuilder::new();
    match builder.mode(endpoint::DIRECTORY_MODE).create(directory) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(format!("cannot make the directory {name}: {e}")),
    }
    let found = directory.symlink_metadata().map_err(|e| format!("cannot look at {name}: {e}"))?;
    if !found.is_dir() {
        return Err(format!("{name} is no directory: set HEAPTOP_DIR to one"));
    }
    if found.uid() != uid() || found.mode() & 0o077 != 0 {
        return Err(format!(
            "{name} is open to others (owner {}, mode {:o}): it must be yours with mode 700",
            found.uid(),
            found.mode() & 0o7777
        ));
    }
    Ok(())
}

/// Removes the socket of a process that is gone and had our pid.
fn clear(path: &Path) -> Result<(), String> {
    let name = path.display();
    let connected =
        path.to_fs_name::<GenericFilePath>().and_then(Stream::connect).map_err(|e| e.kind());
    match connected {
        Err(io::ErrorKind::ConnectionRefused) => {
            std::fs::remove_file(path).map_err(|e| format!("cannot remove the stale {name}: {e}"))
        }
        _ => Err(format!("{name} is in use by another process: set HEAPTOP_DIR")),
    }
}
