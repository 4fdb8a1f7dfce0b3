//! Where the program's own unwind tables lie.
//!
//! The loader maps a shared object as one range, and tells that. The program is mapped by
//! the kernel, and where its segments leave a page free between them (which a linker's
//! choice of page sizes makes so, or chance) glibc tells the range of its code alone. The
//! tables are in another segment then, which the program's own headers tell.

use super::Found;
use crate::engine::sys::program_headers;
use libc::Elf64_Phdr;

use crate::engine::sync::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    shared,
};

const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const EXECUTABLE: u32 = 1;

shared! {
    static START: AtomicUsize = AtomicUsize::new(0);
    /// 0 before both are known.
    static END: AtomicUsize = AtomicUsize::new(0);
}

/// Looks at the program's headers.
pub fn prime() {
    let (all, bias) = program_headers();
    let Some((start, end)) = segment(all, bias) else { return };
    START.store(start, Relaxed);
    // Partner: the Acquire in `end_of`.
    END.store(end, Release);
}

/// Whether there is no loader: all code is the program's then.
pub fn is_static() -> bool {
    // SAFETY: no memory involved.
    unsafe { libc::getauxval(libc::AT_BASE) == 0 }
}

/// What the loader's function tells, where there is no loader: of code of the program's own,
/// where its tables are.
///
/// # Safety
///
/// `found` can be written.
pub unsafe extern "C" fn find(pc: usize, found: *mut Found) -> i32 {
    let (all, bias) = program_headers();
    let within = |h: &&Elf64_Phdr| {
        let start = (h.p_vaddr as usize).wrapping_add(bias);
        let code = h.p_type == libc::PT_LOAD && h.p_flags & EXECUTABLE != 0;
        code && pc.wrapping_sub(start) < h.p_memsz as usize
    };
    let tables = all.iter().find(|h| h.p_type == PT_GNU_EH_FRAME);
    let (Some(code), Some(tables)) = (all.iter().find(within), tables) else { return -1 };
    let start = (code.p_vaddr as usize).wrapping_add(bias);
    // SAFETY: as the caller says.
    let found = unsafe { &mut *found };
    (found.map_start, found.map_end) = (start, start.wrapping_add(code.p_memsz as usize));
    found.eh_frame = (tables.p_vaddr as usize).wrapping_add(bias);
    0
}

/// Where the segment ends that `at` lies in, if that is the one with the program's tables.
pub fn end_of(at: usize) -> Option<usize> {
    let end = END.load(Acquire);
    (START.load(Relaxed)..end).contains(&at).then_some(end)
}

/// The segment that the tables lie in.
fn segment(all: &[Elf64_Phdr], bias: usize) -> Option<(usize, usize)> {
    let tables = all.iter().find(|h| h.p_type == PT_GNU_EH_FRAME)?.p_vaddr;
    let holds = |h: &&Elf64_Phdr| {
        let offset = tables.checked_sub(h.p_vaddr);
        h.p_type == libc::PT_LOAD && offset.is_some_and(|offset| offset < h.p_filesz)
    };
    let segment = all.iter().find(holds)?;
    let start = (segment.p_vaddr as usize).wrapping_add(bias);
    Some((start, start.checked_add(segment.p_filesz as usize)?))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_segment_that_holds_them() {
        let header = |p_type, p_vaddr, p_filesz| Elf64_Phdr {
            p_type,
            p_vaddr,
            p_filesz,
            p_flags: 0,
            p_offset: 0,
            p_paddr: 0,
            p_memsz: p_filesz,
            p_align: 1,
        };
        let all = [
            header(libc::PT_LOAD, 0, 0x17_bffc),
            header(libc::PT_LOAD, 0x17_d000, 0x4b_3610),
            header(PT_GNU_EH_FRAME, 0xe_98e4, 0x1_151c),
        ];
        assert_eq!(segment(&all, 0x1000), Some((0x1000, 0x17_cffc)));
        assert_eq!(segment(&all[1..], 0), None);
        assert_eq!(segment(&all[..2], 0), None);
    }

    #[test]
    fn the_programs_own_are_found() {
        let (all, bias) = program_headers();
        let (start, end) = segment(all, bias).expect("a program has tables");
        prime();
        assert_eq!(end_of(start), Some(end));
        assert_eq!([end_of(end), end_of(start - 1)], [None, None]);
    }
}
