//! memtrace's traces of OCaml programs, the `.ctf` files.
//!
//! ```text
//! bytes ─► packet ─► reader ─┬─► dump    text, as memtrace's own tool prints it
//!           location ─┤      ├─► tell    what a session hears, as an agent tells it
//!           backtrace ┘      └─► export ─► write: a trace of version 2
//! ```
//!
//! Nothing here opens a file or knows a clock. A trace is hostile: lengths are checked
//! before memory is taken, and whatever is wrong is one sentence with the byte where it
//! was met.

mod backtrace;
mod bytes;
mod dump;
mod error;
mod event;
mod export;
mod info;
mod location;
mod merge;
mod packet;
mod reader;
mod stacks;
mod tell;
mod write;

pub use dump::{DumpError, dump};
pub use error::{CtfError, Why};
pub use event::{Alloc, Event, Source, What};
pub use export::{Converted, ExportError, Exported, convert, from_told};
pub use info::Info;
pub use location::{Location, Locations, Text};
pub use reader::{Reader, is_ctf};
pub use tell::{Teller, tell};
pub use write::{Birth, Writer};
