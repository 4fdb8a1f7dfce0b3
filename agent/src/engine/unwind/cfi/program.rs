//! Where the program's own unwind tables lie.
//!
//! The loader maps a shared object as one range, and tells that. The program is mapped by
//! the kernel, and where its segments leave a page free between them (which a linker's
//! choice of page sizes makes so, or chance) glibc tells the range of its code alone. The
//! tables are in another segment then, which the program's own headers tell.

use crate::engine::sync::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    shared,
};

const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

shared! {
    static START: AtomicUsize = AtomicUsize::new(0);
    /// 0 before both are known.
    static END: AtomicUsize = AtomicUsize::new(0);
}

/// Looks at the program's headers.
pub fn prime() {
    let Some((start, end)) = segment(&headers()) else { return };
    START.store(start, Relaxed);
    // Partner: the Acquire in `end_of`.
    END.store(end, Release);
}

/// Where the segment ends that `at` lies in, if that is the one with the program's tables.
pub fn end_of(at: usize) -> Option<usize> {
    let end = END.load(Acquire);
    (START.load(Relaxed)..end).contains(&at).then_some(end)
}

/// (type, address and bytes as the file says), and how much is to be added to addresses.
type Headers = (Vec<(u32, usize, usize)>, usize);

fn headers() -> Headers {
    // SAFETY: no memory involved.
    let [at, count, size] = [libc::AT_PHDR, libc::AT_PHNUM, libc::AT_PHENT]
        .map(|what| unsafe { libc::getauxval(what) } as usize);
    if at == 0 || size != size_of::<libc::Elf64_Phdr>() {
        return (Vec::new(), 0);
    }
    // SAFETY: the kernel says that so many headers lie there; they stay as they are.
    let all = unsafe { std::slice::from_raw_parts(at as *const libc::Elf64_Phdr, count) };
    let own = all.iter().find(|h| h.p_type == libc::PT_PHDR);
    let bias = own.map_or(0, |own| at.wrapping_sub(own.p_vaddr as usize));
    (all.iter().map(|h| (h.p_type, h.p_vaddr as usize, h.p_filesz as usize)).collect(), bias)
}

/// The segment that the tables lie in.
fn segment((all, bias): &Headers) -> Option<(usize, usize)> {
    let (_, tables, _) = *all.iter().find(|h| h.0 == PT_GNU_EH_FRAME)?;
    let &(_, start, bytes) = all.iter().find(|&&(kind, start, bytes)| {
        kind == libc::PT_LOAD && tables.checked_sub(start).is_some_and(|offset| offset < bytes)
    })?;
    let start = start.wrapping_add(*bias);
    Some((start, start.checked_add(bytes)?))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_segment_that_holds_them() {
        let all = vec![
            (libc::PT_LOAD, 0, 0x17_bffc),
            (libc::PT_LOAD, 0x17_d000, 0x4b_3610),
            (PT_GNU_EH_FRAME, 0xe_98e4, 0x1_151c),
        ];
        assert_eq!(segment(&(all.clone(), 0x1000)), Some((0x1000, 0x17_cffc)));
        assert_eq!(segment(&(all[1..].to_vec(), 0)), None);
        assert_eq!(segment(&(all[..2].to_vec(), 0)), None);
    }

    #[test]
    fn the_programs_own_are_found() {
        let (start, end) = segment(&headers()).expect("a program has tables");
        prime();
        assert_eq!(end_of(start), Some(end));
        assert_eq!([end_of(end), end_of(start - 1)], [None, None]);
    }
}
