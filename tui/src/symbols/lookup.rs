//! From an address in a module's file to functions, files and lines. The only
//! file that names the library that reads ELF and DWARF.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use heaptop_protocol::callstack::Module;

use super::cache::Cache;
use super::demangle::demangle;
use super::files::{self, Checked, FileId, Files};
use crate::session::names::Symbol;
use crate::session::sane;

/// A file with its parsed state.
struct Reader {
    /// `None` once it has made the parser panic.
    symbolizer: Option<Symbolizer>,
    source: Source<'static>,
    /// Debug information is asked for until that fails as a whole, as for a
    /// link to a debug file that is out of date.
    debug: bool,
    /// Kept open: `source` leads to it by its number.
    file: Checked,
}

impl Reader {
    fn new(file: Checked) -> Self {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            // Ours knows no hashes, bounds lengths and replaces control characters.
            .enable_demangling(false)
            .build();
        let source = Source::Elf(Elf::new(file.path()));
        Self { symbolizer: Some(symbolizer), source, debug: true, file }
    }

    fn find(&mut self, address: u64, cache: &mut Cache) -> Vec<Symbol> {
        let look = |symbolizer: &Symbolizer, source: &Source<'_>, cache: &mut Cache| {
            symbolizer.symbolize_single(source, Input::VirtOffset(address)).map(|found| match found
            {
                Symbolized::Sym(sym) => expand(&sym, cache),
                Symbolized::Unknown(_) => Vec::new(),
            })
        };
        let Some(symbolizer) = &self.symbolizer else { return Vec::new() };
        let source = &self.source;
        // Unwind safety: after a panic the symbolizer is never touched again,
        // and the cache is changed by whole entries.
        match catch_unwind(AssertUnwindSafe(|| look(symbolizer, source, cache))) {
            Ok(Ok(symbols)) => symbols,
            Ok(Err(_)) if self.debug => {
                self.debug = false;
                let mut elf = Elf::new(self.file.path());
                elf.debug_syms = false;
                self.source = Source::Elf(elf);
                // Anew: what failed may be half in the old one.
                self.symbolizer = Some(
                    Symbolizer::builder()
                        .enable_auto_reload(false)
                        .enable_demangling(false)
                        .build(),
                );
                self.find(address, cache)
            }
            Ok(Err(_)) => Vec::new(),
            Err(_) => {
                self.symbolizer = None;
                Vec::new()
            }
        }
    }
}

/// Outermost first, each with the line at which it stands: of the call to the
/// next one, or, in the last one, of the call that allocates.
fn expand(sym: &Sym<'_>, cache: &mut Cache) -> Vec<Symbol> {
    let mut symbol = |name: &str, at: Option<&CodeInfo<'_>>| Symbol {
        function: cache.intern(&demangle(name)),
        file: at.map(|at| cache.intern(&sane::clean(&at.to_path().to_string_lossy()))),
        line: at.and_then(|at| at.line),
    };
    let mut symbols = vec![symbol(&sym.name, sym.code_info.as_deref())];
    symbols.extend(sym.inlined.iter().map(|fun| symbol(&fun.name, fun.code_info.as_ref())));
    symbols
}

/// A module, ready for look-ups.
pub(super) struct Lookup {
    id: Arc<FileId>,
    binary: Option<Reader>,
    debug: Option<Reader>,
}

impl Lookup {
    /// Finds the module's files; `None` if there are none.
    pub(super) fn open(pid: u32, module: &Module) -> Option<Self> {
        let Files { id, binary, debug } = files::find(pid, module)?;
        Some(Self { id, binary: binary.map(Reader::new), debug: debug.map(Reader::new) })
    }

    /// The identity of its content.
    pub(super) fn id(&self) -> &Arc<FileId> {
        &self.id
    }

    /// The functions at a return address of the module.
    pub(super) fn find(&mut self, offset: u64, cache: &mut Cache) -> Arc<[Symbol]> {
        if let Some(known) = cache.find(&self.id, offset) {
            return known;
        }
        // A return address points behind the call, maybe at the next function.
        let Some(address) = offset.checked_sub(1) else { return Arc::default() };
        let with_lines = |symbols: &[Symbol]| symbols.iter().any(|s| s.line.is_some());
        let mut symbols = Vec::new();
        for reader in [self.binary.as_mut(), self.debug.as_mut()].into_iter().flatten() {
            let found = reader.find(address, cache);
            if symbols.is_empty() || with_lines(&found) {
                symbols = found;
            }
            if with_lines(&symbols) {
                break;
            }
        }
        let symbols: Arc<[Symbol]> = symbols.into();
        cache.insert(&self.id, offset, Arc::clone(&symbols));
        symbols
    }
}
