//! What a frame is called. Names come from the symbol worker, late and out of
//! order; until then a frame is its module and offset.

use std::sync::Arc;

use heaptop_protocol::callstack::Frame;

/// What a program is called whose file may have been replaced under it, as the kernel says
/// behind its name.
#[must_use]
pub fn of_program(name: &str) -> &str {
    name.strip_suffix(" (deleted)").unwrap_or(name)
}

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

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::super::{Input, Session};
    use super::*;

    #[test]
    fn a_program_is_called_as_before_its_file_was_replaced() {
        assert_eq!(of_program("orders (deleted)"), "orders");
        assert_eq!(of_program("(deleted)"), "(deleted)");
        let hello = heaptop_protocol::message::Hello {
            name: "orders (deleted)".into(),
            ..Fixture::unattached(1).hello()
        };
        let mut session = Session::new();
        session.apply(Input::Agent(hello.into()));
        assert_eq!(session.hello().unwrap().name, "orders");
    }
}
