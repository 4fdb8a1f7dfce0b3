//! The virtual minor heap: which blocks are young, and when they have survived.
//!
//! A native program has no minor heap. It gets OCaml 4's rule: one nursery for
//! the process, which is full, and collected, each time N bytes have been
//! allocated. On the allocation clock G, minor cycle k is
//! `k·N ≤ G + φ < (k+1)·N`. φ is random, so that a program whose own period is
//! N is not always caught in the same place. A block of at most `max_young`
//! bytes is born young, and is promoted if it lives when its cycle ends: a
//! comparison of two cycle numbers, with nothing to do in between.

/// One nursery. Pure: it knows nothing but numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nursery {
    /// N, at least 1.
    pub bytes: u64,
    /// φ, below N.
    pub phase_bytes: u64,
    /// Largest block that is born young.
    pub max_young_bytes: u64,
}

impl Nursery {
    /// N where nothing else is asked for: OCaml's 256 Ki words.
    pub const DEFAULT_BYTES: u64 = 2 << 20;
    /// The largest young block where nothing else is asked for: 256 words.
    pub const DEFAULT_MAX_YOUNG_BYTES: u64 = 2 << 10;

    /// The minor cycle at G = `clock`.
    #[inline]
    pub fn cycle(&self, clock: u64) -> u64 {
        clock.wrapping_add(self.phase_bytes) / self.bytes.max(1)
    }

    /// Whether a block of `size` bytes is born young.
    #[inline]
    pub fn is_young(&self, size: u64) -> bool {
        size <= self.max_young_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_turn_every_n_bytes_from_the_phase_on() {
        let n = Nursery { bytes: 100, phase_bytes: 30, max_young_bytes: 10 };
        assert_eq!([0, 69, 70, 169, 170].map(|g| n.cycle(g)), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn large_blocks_are_never_young() {
        let n = Nursery { bytes: 100, phase_bytes: 0, max_young_bytes: 10 };
        assert_eq!([1, 10, 11].map(|s| n.is_young(s)), [true, true, false]);
    }
}
