//! From callstacks to functions: by the ELF symbols of the modules alone. The
//! functions that fixtures are looked for by are never inlined, so each has one.

use crate::client::Told;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use heaptop_protocol::callstack::{Callstack, Frame};
use heaptop_protocol::ids::ModuleId;
use heaptop_protocol::totals::Totals;
use std::collections::HashMap;

/// The functions of all frames that a client was told of.
pub struct Names(HashMap<Frame, String>);

impl Names {
    /// Looks them up.
    ///
    /// # Panics
    ///
    /// When a module that has frames cannot be read.
    #[must_use]
    pub fn of(told: &Told) -> Self {
        let mut by_module: HashMap<ModuleId, Vec<Frame>> = HashMap::new();
        for frame in told.stacks.values().flat_map(|stack| &stack.frames) {
            by_module.entry(frame.module).or_default().push(*frame);
        }
        let symbolizer = Symbolizer::new();
        let mut names = HashMap::new();
        for (module, frames) in by_module {
            let Some(module) = told.modules.get(&module) else { continue };
            if !module.path.starts_with('/') {
                continue;
            }
            let mut elf = Elf::new(&module.path);
            elf.debug_syms = false;
            // A return address lies behind the call.
            let offsets: Vec<u64> = frames.iter().map(|f| f.offset.saturating_sub(1)).collect();
            let found = symbolizer
                .symbolize(&Source::Elf(elf), Input::VirtOffset(&offsets))
                .unwrap_or_else(|e| panic!("{} has no symbols: {e}", module.path));
            for (frame, symbol) in frames.iter().zip(found) {
                if let Symbolized::Sym(symbol) = symbol {
                    names.insert(*frame, plain(&symbol.name));
                }
            }
        }
        Self(names)
    }

    /// The function of one frame; `None` where it has no symbol.
    #[must_use]
    pub fn function(&self, frame: &Frame) -> Option<&str> {
        self.0.get(frame).map(String::as_str)
    }

    /// The functions of a callstack, root first.
    #[must_use]
    pub fn stack(&self, stack: &Callstack) -> Vec<&str> {
        stack.frames.iter().map(|f| self.function(f).unwrap_or("?")).collect()
    }

    /// Totals by function: each callstack counts for the innermost of
    /// `functions` that it goes through.
    #[must_use]
    pub fn totals<'f>(&self, told: &Told, functions: &[&'f str]) -> HashMap<&'f str, Totals> {
        functions
            .iter()
            .map(|&wanted| {
                let totals = told.sum(|stack| self.innermost(stack, functions) == Some(wanted));
                (wanted, totals)
            })
            .collect()
    }

    /// The innermost of `functions` in a callstack.
    #[must_use]
    pub fn innermost<'f>(&self, stack: &Callstack, functions: &[&'f str]) -> Option<&'f str> {
        stack.frames.iter().rev().find_map(|frame| {
            let name = self.function(frame)?;
            functions.iter().copied().find(|&f| f == name)
        })
    }
}

/// The function's own name: without path, hash and closure marks.
fn plain(symbol: &str) -> String {
    let mut parts: Vec<&str> = symbol.split("::").collect();
    if parts.len() > 1 && parts.last().is_some_and(|p| is_hash(p)) {
        parts.pop();
    }
    while parts.last() == Some(&"{{closure}}") {
        parts.pop();
    }
    parts.last().unwrap_or(&symbol).to_string()
}

fn is_hash(part: &str) -> bool {
    part.strip_prefix('h')
        .is_some_and(|h| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_own_name_is_left() {
        assert_eq!(plain("demo::service::serve_request::h0123456789abcdef"), "serve_request");
        assert_eq!(plain("demo::serve_request::{{closure}}"), "serve_request");
        assert_eq!(plain("main"), "main");
        assert_eq!(plain("demo::hash"), "hash");
    }
}
