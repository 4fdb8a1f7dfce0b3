//! What a frame is called. Names come from the symbol worker, late and out of
//! order; until then a frame is its module and offset.

use std::sync::Arc;

use heaptop_protocol::callstack::Frame;

/// One function at a frame. Inlined functions make several of one frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Demangled name, control characters replaced.
    pub function: Arc<str>,
    /// Source file as the debug information has it.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<u32>,
}

/// What the symbol worker found for one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The frame that was asked for.
    pub frame: Frame,
    /// Its functions, outermost first (the last one is inlined into those
    /// before it, and holds the call). Empty: there is no name to be had.
    pub symbols: Vec<Symbol>,
}
