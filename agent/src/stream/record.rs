//! `HEAPTOP_RECORD`: what a viewer would be told goes into a file.
//!
//! 1. **The file is a peer** like any viewer, told the same messages in the same order,
//!    whole frames of which are put into chunks that are not compressed
//!    ([`heaptop_protocol::recording`]). It is written by the agent's thread alone; where
//!    a disk is slow, nobody but this thread waits.
//! 2. **Whose file.** Each process has its own: `%p` in the name is its pid, and a child
//!    that is followed gets its pid behind a name without one. A program that finds
//!    another one at work on its file, as one does that was started by it with the same
//!    environment, does the same; and a number where that one is taken too, as by a process of
//!    the same pid in another container. A recording that nobody works on is replaced, and no
//!    other file is.
//! 3. **What cannot be written** ends the recording, with a sentence for viewers. The file
//!    is cut behind the last whole chunk. Too large a file raises SIGXFSZ in the thread
//!    that writes, where all signals are blocked.
//! 4. **The program's beginning.** It waits some milliseconds for the thread to have the
//!    file: it may go to where there is none, or give up its rights, in its first line.
//! 5. **The program's end.** At `exit` the agent is given up to a second for the last
//!    samples and the file's end. After `_exit`, abort or a signal the file holds what
//!    the last turn of the agent's thread wrote: at most some tens of milliseconds are
//!    missing.

use super::descriptors::Listed;
use crate::engine::{Engine, sys};
use heaptop_protocol::frame;
use heaptop_protocol::recording::{self, By, Ended, InRecording, MAX_FRAMES, PLAIN, RAW, Recorded};
use std::ffi::CString;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// While it records, the thread looks so often whether the program exits.
pub const LOOK_MS: i32 = 20;
/// How long an exit waits for the last samples.
const EXIT_MS: u32 = 1000;
/// So many processes of one pid each find a name.
const MOST_NAMESAKES: u32 = 100;
/// Descriptors from here on are seldom in a program's way.
const LEAST_FD: i32 = 100;

/// What is wanted by the environment, as it was at first; null: nothing. Never given
/// back.
static WANTED: AtomicPtr<PathBuf> = AtomicPtr::new(std::ptr::null_mut());

/// Nothing is recorded.
const IDLE: u32 = 0;
/// The thread records.
const RECORDING: u32 = 1;
/// The program exits and waits.
const EXITING: u32 = 2;
/// All is written.
const WRITTEN: u32 = 3;
/// The thread will begin to record.
const PENDING: u32 = 4;
/// How far the recording of this process is.
static STATE: AtomicU32 = AtomicU32::new(IDLE);

/// Takes up what the environment wants, before `main`. A sentence if the file cannot be
/// written: it is told while the program's standard error can be.
pub fn wanted() -> Option<String> {
    // SAFETY: this runs before `main`, and the bytes are copied at once.
    let value = unsafe { sys::environment(c"HEAPTOP_RECORD") };
    if value.is_empty() {
        return None;
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(value.to_vec()));
    // The program may go to another directory.
    let path = std::env::current_dir().map_or_else(|_| path.clone(), |at| at.join(&path));
    let found = expand(&path, std::process::id(), false);
    WANTED.store(Box::into_raw(Box::new(path)), Release);
    finish_at_exit();
    match open(&found) {
        Ok(_) => {
            STATE.store(PENDING, Relaxed);
            None
        }
        Err(error) => Some(sentence(&found, &error)),
    }
}

fn sentence(path: &Path, error: &io::Error) -> String {
    format!("heaptop: HEAPTOP_RECORD: nothing is recorded into {}: {error}.", path.display())
}

/// In a forked child, whose thread begins anew.
pub fn begin_in_child() {
    let wanted = !WANTED.load(Acquire).is_null();
    STATE.store(if wanted { PENDING } else { IDLE }, Relaxed);
}

/// The path with `%p` and `%%` replaced. Without a `%p`, the pid comes behind it where
/// there must be one.
fn expand(path: &Path, pid: u32, must: bool) -> PathBuf {
    let mut out = Vec::new();
    let mut has = false;
    let mut bytes = path.as_os_str().as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'%', Some(b'p')) => {
                bytes.next();
                out.extend(pid.to_string().bytes());
                has = true;
            }
            (b'%', Some(b'%')) => {
                bytes.next();
                out.push(b'%');
            }
            _ => out.push(byte),
        }
    }
    if must && !has {
        out.extend(format!(".{pid}").bytes());
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// Opens a regular file for writing, and changes nothing in it. Never waits, as for the
/// reader of a pipe.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero byte; what is opened is owned here alone.
    let low = unsafe {
        let fd = libc::open(path.as_ptr(), flags, 0o600);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: zero bytes are a valid `stat`, and it is valid for writing.
    let regular = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        libc::fstat(low.as_raw_fd(), &raw mut found) == 0
            && found.st_mode & libc::S_IFMT == libc::S_IFREG
    };
    if !regular {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut first = [0; recording::MAGIC.len()];
    // SAFETY: the buffer is valid for writing for its length.
    let n = unsafe { libc::pread(low.as_raw_fd(), first.as_mut_ptr().cast(), first.len(), 0) };
    if n != 0 && first != recording::MAGIC {
        return Err(io::Error::other("it exists and is no recording"));
    }
    // SAFETY: no memory involved; what comes of it is owned here alone.
    unsafe {
        let high = libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LEAST_FD);
        Ok(if high >= 0 { OwnedFd::from_raw_fd(high) } else { low })
    }
}

/// Whether another process works on the file; else it is ours from now on.
fn is_taken(fd: &OwnedFd) -> bool {
    // SAFETY: no memory involved.
    let locked = unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    locked != 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
}

/// The first name under which nobody else works: the one that is wanted, then with the pid,
/// then with a number too, since others may have that pid in namespaces of their own.
fn untaken(wanted: &Path, pid: u32, child: bool) -> (PathBuf, io::Result<OwnedFd>) {
    let own = expand(wanted, pid, true);
    let numbered = |number: u32| {
        let mut name = own.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let names = [expand(wanted, pid, child), own.clone()];
    for path in names.into_iter().chain((2..=MOST_NAMESAKES).map(numbered)) {
        match open(&path) {
            Ok(fd) if is_taken(&fd) => {}
            opened => return (path, opened),
        }
    }
    (own, Err(io::Error::other("others are at work on it")))
}

/// The file.
pub struct File {
    listed: Listed,
    /// Closed by `drop`, and only while it is ours.
    fd: ManuallyDrop<OwnedFd>,
    path: PathBuf,
    bytes: u64,
    packed: Vec<u8>,
}

impl File {
    /// Opens the file that is wanted, if one is; else the sentence that says why not.
    pub fn open(child: bool) -> Option<Result<Self, String>> {
        // SAFETY: null, or a box that is never given back.
        let wanted = unsafe { WANTED.load(Acquire).as_ref() }?;
        let pid = std::process::id();
        let (path, opened) = untaken(wanted, pid, child);
        let file = opened.and_then(|fd| Self::at(fd, path.clone()));
        Some(match file {
            Ok(file) => {
                STATE.store(RECORDING, Release);
                Ok(file)
            }
            Err(error) => {
                over();
                Err(sentence(&path, &error))
            }
        })
    }

    /// A recording that begins in `fd`, which was opened at `path`.
    pub fn at(fd: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let listed = Listed::new(&fd);
        let fd = ManuallyDrop::new(fd);
        let mut file = Self { listed, fd, path, bytes: 0, packed: Vec::new() };
        file.cut()?;
        // Goes with the first chunk.
        recording::write_header(&mut file.packed);
        Ok(file)
    }

    /// What the recording says of itself.
    pub fn about() -> InRecording {
        Recorded {
            by: By::Agent,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_unix_ns: sys::unix_ns(),
            part: 0,
            sealed: false,
        }
        .into()
    }

    /// Why nothing more is recorded, as viewers are told.
    pub fn trouble(&self, error: &io::Error) -> String {
        let path = self.path.display();
        format!("HEAPTOP_RECORD: {path} ends at byte {}: {error}", self.bytes)
    }

    /// Writes whole frames, in as many chunks as they need.
    pub fn put(&mut self, mut frames: &[u8]) -> io::Result<()> {
        while !frames.is_empty() {
            let (chunk, rest) = frames.split_at(whole(frames));
            let fits = recording::write_chunk(&mut self.packed, RAW, PLAIN, chunk.len(), chunk);
            if !fits {
                return Err(io::Error::other("a message is too long"));
            }
            self.write()?;
            frames = rest;
        }
        Ok(())
    }

    /// Writes what is packed, whole, or takes it back.
    fn write(&mut self) -> io::Result<()> {
        if !self.listed.is_ours() {
            return Err(io::Error::other("the program has closed it"));
        }
        let mut rest = &self.packed[..];
        while !rest.is_empty() {
            // SAFETY: the descriptor is open, and `rest` is readable for its length.
            let n = unsafe { libc::write(self.fd.as_raw_fd(), rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(n) {
                Ok(n) => rest = &rest[n..],
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => {
                        let _ = self.cut();
                        return Err(e);
                    }
                },
            }
        }
        self.bytes += self.packed.len() as u64;
        self.packed.clear();
        Ok(())
    }

    /// Cuts it behind what is whole.
    fn cut(&self) -> io::Result<()> {
        // SAFETY: no memory involved.
        let cut = unsafe { libc::ftruncate(self.fd.as_raw_fd(), self.bytes.cast_signed()) };
        if cut == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.listed.is_ours() {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// Bytes of the frames that go into one chunk.
pub fn whole(frames: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = frames[end..].first_chunk().map(|b| u32::from_le_bytes(*b)) {
        let next = end + frame::HEADER + length as usize;
        if next > frames.len() || (end > 0 && next > MAX_FRAMES) {
            break;
        }
        end = next;
    }
    if end == 0 { frames.len() } else { end }
}

/// Nothing more is recorded: nobody needs to wait.
pub fn over() {
    STATE.store(IDLE, Release);
}

/// Whether the thread will begin to record, and has not yet.
pub fn is_pending() -> bool {
    STATE.load(Acquire) == PENDING
}

/// Whether the program exits, and waits for [`written`].
pub fn program_exits() -> bool {
    STATE.load(Acquire) == EXITING
}

/// All is written.
pub fn written() {
    STATE.store(WRITTEN, Release);
}

/// The last words of a program that exits.
pub fn end(code: Option<u8>) -> InRecording {
    let how = match code {
        None | Some(0) => "the target has exited".to_owned(),
        Some(code) => format!("the target has exited with code {code}"),
    };
    Ended { how, target_lives: false }.into()
}

/// Has an exit wait for the last samples. Once, and before the end is noted for others,
/// so that it is known here: such functions run in reverse order.
fn finish_at_exit() {
    extern "C" fn finish() {
        // Not in a forked child without an agent.
        if Engine::running().is_none() {
            return;
        }
        for _ in 0..EXIT_MS {
            let _ = STATE.compare_exchange(RECORDING, EXITING, Release, Relaxed);
            if !matches!(STATE.load(Acquire), PENDING | EXITING) {
                return;
            }
            sys::sleep_ms(1);
        }
    }
    // SAFETY: the function has the type asked for and lives for ever.
    unsafe { libc::atexit(finish) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use heaptop_protocol::recording::Reader;

    #[test]
    fn names_hold_the_pid() {
        let name = |path: &str, must| expand(Path::new(path), 42, must).display().to_string();
        assert_eq!(name("/tmp/a-%p.heaptop", true), "/tmp/a-42.heaptop");
        assert_eq!(name("/tmp/a.heaptop", false), "/tmp/a.heaptop");
        assert_eq!(name("/tmp/a.heaptop", true), "/tmp/a.heaptop.42");
        assert_eq!(name("100%%p%", true), "100%p%.42");
    }

    #[test]
    fn nobody_writes_where_another_one_is_at_work() {
        let directory = std::env::temp_dir().join(format!("heaptop-record-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // As in containers of their own, all of them have one pid.
        for wanted in ["a-%p.heaptop", "b.heaptop"].map(|name| directory.join(name)) {
            let taken: Vec<_> = (0..4).map(|_| untaken(&wanted, 7, false)).collect();
            let names: std::collections::BTreeSet<_> = taken.iter().map(|(path, _)| path).collect();
            assert!(taken.iter().all(|(_, opened)| opened.is_ok()));
            assert_eq!(names.len(), taken.len(), "{names:?}");
        }
        // One that nobody works on any more is replaced.
        let wanted = directory.join("c.heaptop");
        let again: Vec<_> = (0..2).map(|_| untaken(&wanted, 7, false).0).collect();
        assert_eq!(again, [wanted.clone(), wanted]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_long_is_cut_between_frames() {
        let mut frames = Vec::new();
        for size in [frame::MAX_PAYLOAD - 10, 0, 300_000, 5] {
            assert!(frame::write(&mut frames, 1, |out| out.resize(out.len() + size, 7)));
        }
        let mut file = Vec::new();
        recording::write_header(&mut file);
        let mut rest = &frames[..];
        while !rest.is_empty() {
            let (chunk, more) = rest.split_at(whole(rest));
            assert!(recording::write_chunk(&mut file, RAW, PLAIN, chunk.len(), chunk));
            rest = more;
        }
        let (mut reader, mut got, mut chunks) = (Reader::default(), Vec::new(), 0);
        reader.feed(&file);
        while let Some(chunk) = reader.next().unwrap() {
            got.extend_from_slice(chunk.stored);
            chunks += 1;
        }
        assert_eq!((got == frames, chunks), (true, 2));
    }
}
