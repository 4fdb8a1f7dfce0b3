//! By frame pointers, where the program was built with them and asks for it: each frame
//! holds the address of its caller's, and the return address above that.
//!
//! The quickest way, and right only where every function on the stack keeps rbp for
//! this: code of the system's C library does not, so what calls back through it, such as
//! qsort, loses all above. That is why nobody gets it unasked. No word is followed that
//! does not lead up the stack, and none is read that may not be.

use super::readable::Readable;
use super::{Mark, Stack, cfi};

/// Adds the calling thread's return addresses to `stack`, as [`super::capture`] says.
pub fn walk(stack: &mut Stack, mark: &Mark, depth: usize) {
    let mut readable = Readable::around(mark.sp);
    let mut word = |at: usize| {
        let sound = at.is_multiple_of(8) && readable.has(at);
        // SAFETY: the word is aligned, and lies in memory that can be read.
        sound.then(|| unsafe { *(at as *const usize) })
    };
    let (mut low, mut rbp) = (mark.sp, mark.rbp);
    // As the ABI has it, the outermost frame is marked by a 0.
    while rbp != 0 {
        let frame = (rbp >= low).then(|| Some((word(rbp)?, word(rbp.checked_add(8)?)?)));
        let Some((base, pc)) = frame.flatten() else {
            stack.ends_blind();
            break;
        };
        if pc == 0 || !stack.push(pc, depth) {
            break;
        }
        (low, rbp) = (rbp + 16, base);
    }
    readable.remember(mark.sp, cfi::stack_end(mark.sp));
}

#[cfg(test)]
mod tests {
    use super::super::{End, MAX_DEPTH};
    use super::*;

    /// Frames in memory of our own, and where the innermost lies.
    fn frames(links: &[(usize, usize)]) -> (Vec<usize>, usize) {
        let mut words = vec![0usize; 64];
        let at = |i: usize| words.as_ptr() as usize + 32 * i;
        let told: Vec<_> =
            links.iter().map(|&(next, pc)| (if next < 16 { at(next) } else { next }, pc)).collect();
        let inner = at(1);
        for (i, (base, pc)) in told.into_iter().enumerate() {
            words[4 * (i + 1)] = base;
            words[4 * (i + 1) + 1] = pc;
        }
        (words, inner)
    }

    fn walked(links: &[(usize, usize)], depth: usize) -> (Vec<u64>, End) {
        let (words, rbp) = frames(links);
        let mut stack = Stack::new();
        walk(&mut stack, &Mark { pc: 0, sp: words.as_ptr() as usize, rbp }, depth);
        (stack.frames().to_vec(), stack.end())
    }

    #[test]
    fn frames_lead_up_the_stack_or_nowhere() {
        let whole = [(2, 100), (3, 101), (4, 102), (5, 0)];
        assert_eq!(walked(&whole, MAX_DEPTH), (vec![100, 101, 102], End::Complete));
        assert_eq!(walked(&whole, 2), (vec![100, 101], End::Truncated));
        // Down, in a ring, beside a word, into the first page.
        for bad in [1, 2, 0x7777_7777_7777_7771, 16] {
            let (stack, end) = walked(&[(2, 100), (bad, 101)], MAX_DEPTH);
            assert_eq!((stack, end), (vec![100, 101], End::NoUnwindInfo), "{bad:#x}");
        }
        // Nothing is mapped there.
        let (stack, end) = walked(&[(2, 100), (usize::MAX & !0xfff, 101)], MAX_DEPTH);
        assert_eq!((stack, end), (vec![100, 101], End::NoUnwindInfo));
    }
}
