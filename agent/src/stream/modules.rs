//! From addresses to places in modules, on the agent's own thread.
//!
//! The loader's list of modules is read when it has changed (its own counters
//! say so) and an address must be placed, and not while a fork is under way
//! ([`loader`]). What the callback of `dl_iterate_phdr` sees is copied into buffers
//! made beforehand: the loader's lock is held there, and nothing may be allocated
//! under it.

use super::loader;
use crate::engine::kinds;
use heaptop_protocol::callstack::{EXTERNAL, Frame, Module};
use heaptop_protocol::ids::ModuleId;
use heaptop_protocol::remains::pack;
use std::ffi::{CStr, c_int, c_void};

const PATH_BYTES: usize = 512;
const BUILD_ID_BYTES: usize = 32;

#[derive(Clone, Copy)]
struct Raw {
    bias: u64,
    start: u64,
    end: u64,
    path: [u8; PATH_BYTES],
    path_len: usize,
    build_id: [u8; BUILD_ID_BYTES],
    build_id_len: usize,
}

struct Walk {
    found: Vec<Raw>,
    /// Modules that did not fit into `found`.
    missed: usize,
    /// The loader's counts of modules ever added and removed.
    counts: (u64, u64),
    only_counts: bool,
}

/// All modules that were ever seen. Those that were unloaded keep their ids.
#[derive(Default)]
pub struct Modules {
    known: Vec<Module>,
    /// (start, end, index into `known`), those loaded now, in order of address.
    loaded: Vec<(u64, u64, usize)>,
    counts: (u64, u64),
}

impl Modules {
    /// All modules, in the order of their ids, from 1 on.
    pub fn known(&self) -> &[Module] {
        &self.known
    }

    /// Takes up what was loaded and unloaded since the last call; whether something was
    /// unloaded, or `None` if it cannot be known now.
    pub fn refresh(&mut self) -> Option<bool> {
        let before = self.counts;
        if walk(0, true)?.counts == before && !self.known.is_empty() {
            return Some(false);
        }
        let mut room = 64;
        let walk = loop {
            let w = walk(room, false)?;
            if w.missed == 0 {
                break w;
            }
            room = 2 * (room + w.missed);
        };
        self.counts = walk.counts;
        self.loaded.clear();
        for raw in &walk.found {
            let at = self.index_of(raw);
            self.loaded.push((raw.start, raw.end, at));
        }
        self.loaded.sort_unstable();
        Some(self.counts.1 != before.1)
    }

    /// The module that stands for a kind of memory outside the heap.
    fn kind(&mut self, kind: &str) -> ModuleId {
        let path = format!("{EXTERNAL}{kind}]");
        if let Some(known) = self.known.iter().find(|m| m.path == path) {
            return known.id;
        }
        let id = ModuleId(self.known.len() as u32 + 1);
        self.known.push(Module { id, path, build_id: Vec::new(), load_bias: 0, range: (0, 0) });
        id
    }

    fn index_of(&mut self, raw: &Raw) -> usize {
        let build_id = &raw.build_id[..raw.build_id_len];
        let mut path = String::from_utf8_lossy(&raw.path[..raw.path_len]).into_owned();
        if path.is_empty() {
            // The loader gives the executable no name.
            path = std::fs::read_link("/proc/self/exe")
                .map(|p| p.to_string_lossy().into_owned())
                .unwrap_or_default();
        } else if !path.starts_with('/') {
            // The kernel's page has no file.
            path.clear();
        }
        let known = self.known.iter().position(|m| {
            m.path == path
                && m.build_id == build_id
                && m.load_bias == raw.bias
                && m.range == (raw.start, raw.end)
        });
        known.unwrap_or_else(|| {
            self.known.push(Module {
                id: ModuleId(self.known.len() as u32 + 1),
                path,
                build_id: build_id.to_vec(),
                load_bias: raw.bias,
                range: (raw.start, raw.end),
            });
            self.known.len() - 1
        })
    }

    /// Where a return address lies, packed into a word.
    pub fn place(&mut self, pc: u64) -> u64 {
        if let Some(kind) = kinds::name(pc) {
            return pack(Frame { module: self.kind(kind), offset: 0 });
        }
        let after = self.loaded.partition_point(|&(start, _, _)| start < pc);
        let found = after.checked_sub(1).and_then(|i| self.loaded.get(i));
        match found {
            Some(&(_, end, index)) if pc <= end => {
                let module = &self.known[index];
                pack(Frame { module: module.id, offset: pc.wrapping_sub(module.load_bias) })
            }
            _ => pack(Frame { module: ModuleId::UNKNOWN, offset: pc }),
        }
    }
}

fn walk(room: usize, only_counts: bool) -> Option<Walk> {
    let mut walk = Walk { found: Vec::with_capacity(room), missed: 0, counts: (0, 0), only_counts };
    loader::walk(|| {
        // SAFETY: `visit` has the type asked for, and `walk` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
    })?;
    Some(walk)
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    size: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record, and `data` is the walk lent to it.
    let (info, walk) = unsafe { (&*info, &mut *data.cast::<Walk>()) };
    if size >= size_of::<libc::dl_phdr_info>() {
        walk.counts = (info.dlpi_adds, info.dlpi_subs);
    }
    if walk.only_counts {
        return 1;
    }
    if walk.found.len() == walk.found.capacity() {
        walk.missed += 1;
        return 0;
    }
    let mut raw = Raw {
        bias: info.dlpi_addr,
        start: u64::MAX,
        end: 0,
        path: [0; PATH_BYTES],
        path_len: 0,
        build_id: [0; BUILD_ID_BYTES],
        build_id_len: 0,
    };
    if !info.dlpi_name.is_null() {
        // SAFETY: the loader's names end with a zero byte and live while its lock is held.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        let len = name.len().min(PATH_BYTES);
        raw.path[..len].copy_from_slice(&name[..len]);
        raw.path_len = len;
    }
    for i in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: the loader's table has `dlpi_phnum` headers.
        let header = unsafe { &*info.dlpi_phdr.add(i) };
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        match header.p_type {
            libc::PT_LOAD if header.p_flags & libc::PF_X != 0 => {
                raw.start = raw.start.min(start);
                raw.end = raw.end.max(start.wrapping_add(header.p_memsz));
            }
            libc::PT_NOTE => {
                // SAFETY: a note segment of a loaded module is mapped.
                let notes = unsafe {
                    std::slice::from_raw_parts(start as *const u8, header.p_memsz as usize)
                };
                if let Some(id) = build_id(notes) {
                    let len = id.len().min(BUILD_ID_BYTES);
                    raw.build_id[..len].copy_from_slice(&id[..len]);
                    raw.build_id_len = len;
                }
            }
            _ => {}
        }
    }
    if raw.start < raw.end {
        walk.found.push(raw);
    }
    0
}

/// The build id among ELF notes: name "GNU", type 3.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let word = |at: usize| {
            notes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
        };
        let (name_len, len, kind) = (word(0)?, word(4)?, word(8)?);
        let name = notes.get(12..12 + name_len)?;
        let from = 12 + name_len.next_multiple_of(4);
        let content = notes.get(from..from.checked_add(len)?)?;
        if kind == 3 && name == b"GNU\0" {
            return Some(content);
        }
        notes = notes.get(from + len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::remains::unpack;

    #[test]
    fn a_function_lies_in_this_executable() {
        let _alone = loader::ALONE.lock();
        let mut modules = Modules::default();
        // Other tests fork.
        while modules.refresh().is_none() {}
        let here = a_function_lies_in_this_executable as fn() as usize as u64;
        let frame = unpack(modules.place(here));
        let module = &modules.known()[frame.module.0 as usize - 1];
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        assert_eq!(module.path, exe.to_string_lossy());
        assert_eq!(frame.offset + module.load_bias, here);
        let libc = frame_of_libc(&mut modules);
        assert!(libc.path.contains("libc"), "{libc:?}");
        assert!(!libc.build_id.is_empty());
        let before = modules.known().len();
        while modules.refresh().is_none() {}
        assert_eq!(modules.known().len(), before, "nothing was loaded");
    }

    fn frame_of_libc(modules: &mut Modules) -> Module {
        let f = unpack(modules.place(libc::getpid as *const () as u64 + 4));
        modules.known()[f.module.0 as usize - 1].clone()
    }

    #[test]
    fn addresses_outside_are_kept_as_they_are() {
        let f = unpack(Modules::default().place(0x1234));
        assert_eq!((f.module, f.offset), (ModuleId::UNKNOWN, 0x1234));
    }

    #[test]
    fn notes_are_read_within_bounds() {
        let note = |name: &[u8], kind: u32, content: &[u8]| {
            let mut n = vec![];
            n.extend((name.len() as u32).to_le_bytes());
            n.extend((content.len() as u32).to_le_bytes());
            n.extend(kind.to_le_bytes());
            n.extend(name);
            n.resize(n.len().next_multiple_of(4), 0);
            n.extend(content);
            n.resize(n.len().next_multiple_of(4), 0);
            n
        };
        let both = [note(b"GNU\0", 1, b"abc"), note(b"GNU\0", 3, b"identity")].concat();
        assert_eq!(build_id(&both), Some(&b"identity"[..]));
        for cut in 0..both.len() {
            assert_ne!(build_id(&both[..cut]), Some(&b"other"[..]));
        }
        assert_eq!(build_id(&[0xff; 64]), None);
    }
}
