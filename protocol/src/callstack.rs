//! Callstacks and the modules their frames lie in.

use crate::codec::{Decode, Encode};
use crate::ids::{ModuleId, StackId};

/// A return address, as an offset into a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Frame {
    /// Where the code lies; [`ModuleId::UNKNOWN`] makes `offset` an absolute address.
    pub module: ModuleId,
    /// The return address minus the module's load bias: an address in the
    /// module's own ELF file. It points behind the call: look up `offset - 1`.
    pub offset: u64,
}

/// How the path of a module begins that is none, but a kind of memory outside the heap:
/// the innermost frame of such a block lies in it, and is called by this path.
pub const EXTERNAL: &str = "[external: ";

/// Why a callstack ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum End {
    /// It reaches the thread's first function.
    Complete,
    /// It was cut at the root end: deeper than the depth that is captured.
    Truncated,
    /// The unwinder found no way on.
    NoUnwindInfo,
}

/// A callstack, defined once and then named by its id.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Callstack {
    /// Its id, at most one definition each.
    pub id: StackId,
    /// Frames, root first.
    pub frames: Vec<Frame>,
    /// Why it ends at the root end.
    pub end: End,
}

/// A loaded module.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Module {
    /// Its id.
    pub id: ModuleId,
    /// Its path as the target sees it. Empty for the kernel's own page.
    pub path: String,
    /// The ELF build id; empty where the module has none.
    pub build_id: Vec<u8>,
    /// Run-time address minus ELF address.
    pub load_bias: u64,
    /// First mapped address and the one behind the last.
    pub range: (u64, u64),
}
