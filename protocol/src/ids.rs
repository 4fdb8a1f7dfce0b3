//! Identities. Each is unique within one session of one target and is defined
//! on the wire before it is used.

use crate::codec::{Decode, Encode};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        pub struct $name(pub $inner);
    };
}

id! {
    /// A sampled block: the sequence number of its birth. Never reused, never an address.
    BlockId(u64)
}
id! {
    /// A callstack. [`StackId::OTHER`] stands for all those that found no room.
    StackId(u32)
}
id! {
    /// A loaded module: an executable or a shared library.
    ModuleId(u32)
}
id! {
    /// A domain: in a native program, a thread. Not the kernel's number.
    ThreadId(u32)
}

impl StackId {
    /// `(other stacks)`: where callstacks are charged once the table is full.
    pub const OTHER: Self = Self(0);
}

impl ModuleId {
    /// Code outside every known module: JIT output or unmapped by now.
    pub const UNKNOWN: Self = Self(0);
}
