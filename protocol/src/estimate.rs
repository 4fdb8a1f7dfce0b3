//! The weight of a sampled block: Horvitz–Thompson.
//!
//! Every byte is sampled with probability λ = 1/R, so a block of `s` bytes is
//! seen with p = 1 − (1 − λ)^s. A block that was seen stands for 1/p objects
//! and s/p bytes of its kind, and the sum of these over the blocks seen is an
//! unbiased estimate of the truth, whatever the mix of sizes. Its variance is
//! estimated by Σ (1 − p)/p² for objects and Σ s²(1 − p)/p² for bytes
//! (Horvitz & Thompson 1952, with independent inclusions).
//!
//! At R = 1 every p is 1: weights are the sizes, and variances are 0.

use crate::codec::{Decode, Encode};
use std::num::NonZeroU32;

/// The sampling interval R: mean bytes between samples. 1 samples every byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Interval(NonZeroU32);

impl Interval {
    /// 512 KiB.
    pub const DEFAULT: Self = Self(NonZeroU32::new(512 << 10).unwrap());
    /// Every byte: exact counts.
    pub const EXACT: Self = Self(NonZeroU32::MIN);

    /// An interval of `bytes`; `None` for 0 and for 4 GiB and more.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes > u32::MAX as u64 {
            return None;
        }
        match NonZeroU32::new(bytes as u32) {
            Some(r) => Some(Self(r)),
            None => None,
        }
    }

    /// R in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0.get()
    }

    /// λ, the probability that one byte is sampled.
    #[must_use]
    pub fn lambda(self) -> f64 {
        1.0 / f64::from(self.0.get())
    }

    /// ln(1 − λ): −∞ at R = 1.
    #[must_use]
    pub fn ln_miss(self) -> f64 {
        // Not calculated: of 0 there is no logarithm, which is a signal where it is asked for.
        if self == Self::EXACT {
            return f64::NEG_INFINITY;
        }
        (-self.lambda()).ln_1p()
    }

    /// p, the probability that a block of `size` bytes is sampled at all.
    #[must_use]
    pub fn inclusion(self, size: u64) -> f64 {
        if size == 0 {
            return 0.0;
        }
        -(size as f64 * self.ln_miss()).exp_m1()
    }

    /// What one sampled block of `size` bytes stands for.
    #[must_use]
    pub fn weight(self, size: u64) -> Weight {
        // The same, without its exponentials, which are all of the work at R = 1.
        if self == Self::EXACT {
            let objects = if size == 0 { 0.0 } else { 1.0 };
            return Weight { size, bytes: size as f64, objects, ..Weight::default() };
        }
        let p = self.inclusion(size);
        if p <= 0.0 {
            return Weight::default();
        }
        let objects = 1.0 / p;
        let bytes = size as f64 * objects;
        let miss = 1.0 - p;
        Weight {
            size,
            bytes,
            objects,
            bytes_variance: bytes * bytes * miss,
            objects_variance: objects * objects * miss,
        }
    }
}

/// What one sampled block stands for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weight {
    /// The block's own size in bytes.
    pub size: u64,
    /// s/p: bytes it stands for.
    pub bytes: f64,
    /// 1/p: objects it stands for.
    pub objects: f64,
    /// s²(1 − p)/p²: what it adds to the variance of a sum of bytes.
    pub bytes_variance: f64,
    /// (1 − p)/p²: what it adds to the variance of a sum of objects.
    pub objects_variance: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn at_one_every_block_counts_itself() {
        for size in [1, 2, 17, 4096, 1 << 40] {
            let w = Interval::EXACT.weight(size);
            assert_eq!((w.bytes, w.objects), (size as f64, 1.0));
            assert_eq!((w.bytes_variance, w.objects_variance), (0.0, 0.0));
        }
    }

    #[test]
    fn an_empty_block_counts_nothing() {
        assert_eq!(Interval::EXACT.weight(0), Weight::default());
        assert_eq!(Interval::DEFAULT.weight(0), Weight::default());
    }

    #[test]
    fn zero_and_four_gib_are_no_intervals() {
        assert_eq!(Interval::new(0), None);
        assert_eq!(Interval::new(1 << 32), None);
        assert_eq!(Interval::new(1), Some(Interval::EXACT));
    }

    proptest! {
        #[test]
        fn expectation_is_the_truth(size in 1u64..1 << 24, r in 1u64..1 << 26) {
            let r = Interval::new(r).unwrap();
            let p = r.inclusion(size);
            let w = r.weight(size);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((w.bytes * p / size as f64 - 1.0).abs() < 1e-9);
            prop_assert!((w.objects * p - 1.0).abs() < 1e-9);
        }

        #[test]
        fn small_blocks_weigh_the_interval(r in 1u64 << 16..1 << 26) {
            let w = Interval::new(r).unwrap().weight(1);
            prop_assert!((w.bytes / r as f64 - 1.0).abs() < 1e-9);
        }
    }
}
