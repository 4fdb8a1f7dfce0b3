//! Names of functions of the running executable: for the messages of failed assertions,
//! and for trackers that show callstacks.
//!
//! Read from its own symbol table when somebody wants to see them: no debug information,
//! no inlined functions and no lines. A stripped executable has no
//! names; then an address stands there.

use crate::engine::kinds;
use heaptop_protocol::remains::u64_at;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const ELF: [u8; 5] = *b"\x7fELF\x02";
const SYMTAB: u32 = 2;
const FUNCTION: u8 = 2;

/// What a callsite is never in: the agent, the standard library, the runtime.
const NOT_THE_PROGRAMS: [&str; 8] = [
    "heaptop_agent::",
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "__rust",
    "__libc",
    // Of `[external: gpu]` the callsite is who reports it. Brackets before a name are no part
    // of it here.
    "external: ",
];
/// The same where that is the whole name.
const RUNTIMES: [&str; 8] = [
    "main",
    "_start",
    "start_thread",
    "clone",
    "clone3",
    "rust_panic",
    "rust_begin_unwind",
    "rust_eh_personality",
];

/// Where a measured closure is called: it may be inlined there, and all that it calls.
const MEASURE: &str = "heaptop_agent::testing::measure";

/// The callsite of a callstack without frames.
pub const NO_CALLSTACK: &str = "(no callstack)";

/// Names of the executable's functions, by return address: what a [`Tracker`] that shows
/// callstacks needs.
///
/// ```no_run
/// # let callstack: Vec<usize> = vec![];
/// let mut names = heaptop_agent::memprof::Names::default();
/// for pc in callstack.iter().rev() {
///     println!("{}", names.function(*pc).unwrap_or_else(|| format!("{pc:#x}")));
/// }
/// ```
///
/// They are read from the executable's symbol table at the first question, which takes
/// milliseconds and allocates: keep one, and do not ask it in a callback that is prompt. What is inlined has
/// no name of its own, nor has what shared libraries hold, nor a stripped executable.
///
/// [`Tracker`]: crate::memprof::Tracker
#[derive(Debug, Default)]
pub struct Names {
    is_read: bool,
    /// (first address, one behind the last, name), in order.
    functions: Vec<(u64, u64, String)>,
    bias: u64,
    known: HashMap<usize, Option<String>>,
}

impl Names {
    /// The callsite of a callstack that is root first: its innermost function that is
    /// neither the allocator's nor the standard library's.
    pub fn callsite(&mut self, callstack: &[usize]) -> String {
        self.path(callstack, 1).pop().unwrap_or_else(|| NO_CALLSTACK.into())
    }

    /// The innermost functions of a callstack that are the program's, from the callsite
    /// outward, at most `most` of them. Where none has a name, what is innermost.
    pub fn path(&mut self, callstack: &[usize], most: usize) -> Vec<String> {
        let (mut path, mut innermost) = (Vec::new(), None);
        for &pc in callstack.iter().rev() {
            if path.len() >= most {
                break;
            }
            let Some(name) = self.function(pc) else {
                innermost.get_or_insert_with(|| format!("{pc:#x}"));
                continue;
            };
            if name.starts_with(MEASURE) {
                if path.is_empty() {
                    path.push("(inlined into what was measured)".into());
                }
                break;
            }
            if is_librarys(&name) {
                innermost.get_or_insert(name);
            } else {
                path.push(name);
            }
        }
        if path.is_empty() {
            path.extend(innermost);
        }
        path
    }

    /// The function that a return address of a callstack leads back to.
    pub fn function(&mut self, pc: usize) -> Option<String> {
        if let Some(kind) = kinds::name(pc as u64) {
            return Some(format!("[external: {kind}]"));
        }
        if !self.is_read {
            self.is_read = true;
            // Whatever is wrong with the file, there are no names then.
            self.read().unwrap_or_default();
        }
        let (functions, bias) = (&self.functions, self.bias);
        self.known
            .entry(pc)
            .or_insert_with(|| {
                // A return address points behind its call.
                let at = (pc as u64).wrapping_sub(bias).wrapping_sub(1);
                let after = functions.partition_point(|(start, _, _)| *start <= at);
                let (_, end, name) = functions.get(after.checked_sub(1)?)?;
                (at < *end).then(|| demangled(name))
            })
            .clone()
    }

    fn read(&mut self) -> io::Result<()> {
        let file = File::open("/proc/self/exe")?;
        let head = part(&file, 0, 64)?;
        if !head.starts_with(&ELF) {
            return Ok(());
        }
        self.functions = functions(&file, &head)?;
        self.functions.sort_unstable();
        // Where the entry is and where the file says it is: the executable's bias.
        // SAFETY: no memory involved.
        let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
        self.bias = entry.wrapping_sub(u64_at(&head, 24));
        Ok(())
    }
}

/// Bytes of the file; an error where it ends before.
fn part(file: &File, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let end = offset.checked_add(bytes).ok_or(io::ErrorKind::InvalidData)?;
    if end > file.metadata()?.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut part = vec![0; usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidData)?];
    file.read_exact_at(&mut part, offset)?;
    Ok(part)
}

/// Functions of the symbol tables alone: of a large executable they are a small part.
fn functions(file: &File, head: &[u8]) -> io::Result<Vec<(u64, u64, String)>> {
    const HEADER: usize = 64;
    let count = u64::from(u16::from_le_bytes([head[60], head[61]]));
    let headers = part(file, u64_at(head, 40), count * HEADER as u64)?;
    let headers: Vec<&[u8]> = headers.chunks_exact(HEADER).collect();
    let content = |header: &[u8]| part(file, u64_at(header, 24), u64_at(header, 32));
    let mut found = Vec::new();
    for table in headers.iter().filter(|h| u64_at(h, 4) as u32 == SYMTAB) {
        let strings = headers.get(u64_at(table, 40) as u32 as usize);
        let strings = strings.map_or_else(|| Ok(Vec::new()), |h| content(h))?;
        for symbol in content(table)?.chunks_exact(24) {
            let (start, bytes) = (u64_at(symbol, 8), u64_at(symbol, 16));
            if symbol[4] & 15 != FUNCTION || bytes == 0 {
                continue;
            }
            let name = u64_at(symbol, 0) as u32 as usize;
            let name = strings.get(name..).unwrap_or(&[]).split(|b| *b == 0).next();
            let name = String::from_utf8_lossy(name.unwrap_or(&[])).into_owned();
            found.push((start, start.saturating_add(bytes), name));
        }
    }
    Ok(found)
}

fn is_librarys(name: &str) -> bool {
    let librarys = |path: &str| {
        let path = path.trim_start_matches(['<', '&', '*', '[', '(', ' ']);
        NOT_THE_PROGRAMS.iter().any(|prefix| path.starts_with(prefix))
    };
    // Of `<Type as Trait>::function` the trait is the library's, and the type is too, or is
    // everybody's: a number, or one that stands for others. Of an allocator the trait tells,
    // the one that somebody has put around ours.
    match name.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        Some((_, a)) if a.starts_with("core::alloc::global::GlobalAlloc") => true,
        Some((of, a)) => librarys(a) && (librarys(of) || !of.contains("::")),
        None => librarys(name) || RUNTIMES.contains(&name),
    }
}

/// A name as it is written in the source, of one that rustc has mangled in either way;
/// others stay as they are.
fn demangled(name: &str) -> String {
    rustc_demangle::try_demangle(name).map_or_else(|_| name.to_owned(), |name| format!("{name:#}"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_of_this_test() -> usize {
        std::hint::black_box(1)
    }

    #[test]
    fn functions_are_found_by_address() {
        let mut names = Names::default();
        let pc = a_function_of_this_test as fn() -> usize as usize + 4;
        let name = names.callsite(&[1, pc]);
        assert!(name.contains("a_function_of_this_test"), "{name}");
        assert_eq!(names.callsite(&[0x10]), "0x10");
        assert_eq!(names.callsite(&[]), "(no callstack)");
        // All is the agent's own here: then what is innermost stands for it.
        assert_eq!(names.path(&[pc, 0x10, pc], 5), [name]);
        assert_eq!(names.path(&[0x20, 0x10], 3), ["0x10"]);
    }

    #[test]
    fn names_are_written_as_in_the_source() {
        let of = |name: &str| demangled(name);
        assert_eq!(
            of("_ZN5alloc7raw_vec15RawVec$LT$T$GT$4grow17h0123456789abcdefE"),
            "alloc::raw_vec::RawVec<T>::grow"
        );
        assert_eq!(of("malloc"), "malloc");
        assert_eq!(of("_ZN99xE"), "_ZN99xE");
        assert!(is_librarys("<alloc::vec::Vec<T> as core::clone::Clone>::clone"));
        assert!(is_librarys("<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"));
        assert!(is_librarys("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec"));
        assert!(!is_librarys("<orders::Order as core::clone::Clone>::clone"));
        assert_eq!(
            of(
                "_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17h0123456789abcdefE.llvm.64"
            ),
            "hashbrown::raw::RawTable<T,A>::reserve_rehash"
        );
        assert_eq!(
            of("_ZN4leak1x28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE"),
            "leak::x::{{closure}}"
        );
        assert!(!is_librarys("orders::parse"));
        // As rustc mangles them with `-C symbol-mangling-version=v0`.
        let parse = of("_RINvCs7DmIql08n4T_6orders5parseNCNvB2_4main0EB2_");
        assert_eq!(parse, "orders::parse::<orders::main::{closure#0}>");
        assert!(!is_librarys(&parse));
        let push = of("_RNvMsF_NtCslNYArtu3iFV_5alloc3vecINtB5_3VechE4pushCs7DmIql08n4T_6orders");
        assert_eq!(push, "<alloc::vec::Vec<u8>>::push");
        assert!(is_librarys(&push));
        assert!(is_librarys("<outer::Outer<A> as core::alloc::global::GlobalAlloc>::alloc"));
        assert!(is_librarys("main") && is_librarys("rust_panic"));
        assert!(!is_librarys("orders::main") && !is_librarys("rust_analyzer::load"));
    }
}
