//! Which file is a module? Its path is the target's: in a container or a chroot
//! it leads elsewhere here, and by now another file may lie there. So several
//! ways are tried, and a file is taken only if it has the module's build id.
//!
//! The file is held open and read through `/proc/self/fd`: what was checked is
//! what is read, whatever happens to the path.

use std::fs::File;
use std::hash::Hash;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::helper::read_elf_build_id;
use heaptop_protocol::callstack::Module;

/// What tells one file's content from another's.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum FileId {
    /// The build id.
    Build(Vec<u8>),
    /// For files without one: device, inode, and time of change.
    Inode(u64, u64, i64, i64),
}

/// A file of a module, checked.
pub(super) struct Checked {
    file: File,
}

impl Checked {
    /// A path that leads to this very file while it lives.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// The files that hold a module's names.
pub(super) struct Files {
    /// Their content's identity.
    pub(super) id: Arc<FileId>,
    /// The module itself, if it can be had.
    pub(super) binary: Option<Checked>,
    /// Its debug information in a file apart, if there is one.
    pub(super) debug: Option<Checked>,
}

/// Finds `module` of process `pid`. `None` if there is no file that is certainly
/// it: replaced, deleted, or never a file.
pub(super) fn find(pid: u32, module: &Module) -> Option<Files> {
    let binary = binary(pid, module);
    let debug = debug_file(pid, &module.build_id);
    let id = if module.build_id.is_empty() {
        let meta = binary.as_ref()?.file.metadata().ok()?;
        FileId::Inode(meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec())
    } else {
        FileId::Build(module.build_id.clone())
    };
    (binary.is_some() || debug.is_some()).then(|| Files { id: Arc::new(id), binary, debug })
}

fn binary(pid: u32, module: &Module) -> Option<Checked> {
    let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
    let path = Path::new(path);
    let mapping = mapping(pid, module.range.0);
    // Without a build id there is but one thing to go by: the kernel says that
    // the file it mapped is no longer at its path.
    let replaced = module.build_id.is_empty() && mapping.as_ref().is_some_and(|m| m.deleted);
    let mut ways = Vec::new();
    if path.is_absolute() && !replaced {
        ways.push(in_root(pid, path));
    }
    // The executable, even when it is deleted; the check tells whether it is meant.
    let executable = PathBuf::from(format!("/proc/{pid}/exe"));
    let is_executable = || {
        let target = std::fs::read_link(&executable).ok()?;
        let name = target.as_os_str().as_bytes();
        Some(name.strip_suffix(b" (deleted)").unwrap_or(name) == path.as_os_str().as_bytes())
    };
    if !module.build_id.is_empty() || is_executable() == Some(true) {
        ways.push(executable.clone());
    }
    // Any mapped file, for those who may (root).
    if let Some(mapping) = &mapping {
        ways.push(PathBuf::from(format!("/proc/{pid}/map_files/{}", mapping.range)));
    }
    // The process is gone: its path as seen from here is the last hope, and only
    // a build id can say that it is the same file.
    if path.is_absolute() && !replaced && !(module.build_id.is_empty() && exists(pid)) {
        ways.push(path.to_path_buf());
    }
    ways.iter().find_map(|way| open(way, &module.build_id))
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// `path` as process `pid` sees it.
fn in_root(pid: u32, path: &Path) -> PathBuf {
    Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path))
}

/// Opens a regular file if its build id is `build_id`, or if that is empty.
fn open(path: &Path, build_id: &[u8]) -> Option<Checked> {
    // Not to wait for a writer where the path is a fifo.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblock).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let checked = Checked { file };
    if build_id.is_empty() {
        return Some(checked);
    }
    let path = checked.path();
    let found = std::panic::catch_unwind(move || read_elf_build_id(&path).ok().flatten());
    (found.ok().flatten().as_deref() == Some(build_id)).then_some(checked)
}

/// Debug information in a file apart, under the name that its build id gives,
/// seen from the target and from here.
fn debug_file(pid: u32, build_id: &[u8]) -> Option<Checked> {
    use std::fmt::Write;
    let (first, rest) = build_id.split_first().filter(|(_, rest)| rest.len() >= 7)?;
    let rest = rest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug"));
    [in_root(pid, &path), path].iter().find_map(|way| open(way, build_id))
}

/// A line of `/proc/PID/maps`.
struct Mapping {
    /// `START-END` as the kernel writes it, which is its name in `map_files`.
    range: String,
    /// The file is no longer at its path.
    deleted: bool,
}

/// The mapping that holds `address`.
fn mapping(pid: u32, address: u64) -> Option<Mapping> {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    String::from_utf8_lossy(&maps).lines().find_map(|line| {
        let range = line.split(' ').next()?;
        let (start, end) = range.split_once('-')?;
        let within = u64::from_str_radix(start, 16).ok()? <= address
            && address < u64::from_str_radix(end, 16).ok()?;
        within.then(|| Mapping { range: range.into(), deleted: line.ends_with(" (deleted)") })
    })
}
