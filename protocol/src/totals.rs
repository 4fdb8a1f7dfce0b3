//! Totals: what must be kept of many sampled blocks to give their sum, its
//! variance, and an interval, without keeping the blocks.

use crate::codec::{Decode, Encode};
use crate::estimate::Weight;
use crate::ids::StackId;

/// Moments of a set of weights. The layout in memory is that of [`crate::remains`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, Encode, Decode)]
pub struct Moments {
    /// Σw: the estimate.
    pub sum: f64,
    /// Σw².
    pub sum_sq: f64,
    /// The estimate's variance: Σ w²(1 − p).
    pub variance: f64,
    /// The largest w.
    pub largest: f64,
}

impl Moments {
    fn add(&mut self, weight: f64, variance: f64) {
        self.sum += weight;
        self.sum_sq += weight * weight;
        self.variance += variance;
        self.largest = self.largest.max(weight);
    }

    fn sub(&mut self, weight: f64, variance: f64) {
        self.sum = (self.sum - weight).max(0.0);
        self.sum_sq = (self.sum_sq - weight * weight).max(0.0);
        self.variance = (self.variance - variance).max(0.0);
    }

    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
        self.variance += other.variance;
        self.largest = self.largest.max(other.largest);
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            sum: (self.sum - earlier.sum).max(0.0),
            sum_sq: (self.sum_sq - earlier.sum_sq).max(0.0),
            variance: (self.variance - earlier.variance).max(0.0),
            largest: self.largest,
        }
    }
}

/// A set of sampled blocks, summed up.
///
/// Blocks may leave again ([`Total::sub`]): `largest`, `smallest_size` and
/// `largest_size` then stay as bounds until the set is empty, when everything
/// starts anew, so that no rounding is left behind.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, Encode, Decode)]
pub struct Total {
    /// Sampled blocks in the set.
    pub n: u64,
    /// Weights in bytes.
    pub bytes: Moments,
    /// Weights in objects.
    pub objects: Moments,
    /// Size of the smallest block, in bytes; 0 for an empty set.
    pub smallest_size: u64,
    /// Size of the largest block, in bytes; 0 for an empty set.
    pub largest_size: u64,
}

impl Total {
    /// A block joins.
    pub fn add(&mut self, w: &Weight) {
        self.smallest_size = if self.n == 0 { w.size } else { self.smallest_size.min(w.size) };
        self.largest_size = self.largest_size.max(w.size);
        self.n += 1;
        self.bytes.add(w.bytes, w.bytes_variance);
        self.objects.add(w.objects, w.objects_variance);
    }

    /// A block that had joined leaves.
    pub fn sub(&mut self, w: &Weight) {
        if self.n <= 1 {
            *self = Self::default();
            return;
        }
        self.n -= 1;
        self.bytes.sub(w.bytes, w.bytes_variance);
        self.objects.sub(w.objects, w.objects_variance);
    }

    /// Another, disjoint set joins.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        self.smallest_size = if self.n == 0 {
            other.smallest_size
        } else {
            self.smallest_size.min(other.smallest_size)
        };
        self.largest_size = self.largest_size.max(other.largest_size);
        self.n += other.n;
        self.bytes.merge(&other.bytes);
        self.objects.merge(&other.objects);
    }

    /// What joined since `earlier`, a former state of a set that only grows.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        if self.n <= earlier.n {
            return Self::default();
        }
        Self {
            n: self.n - earlier.n,
            bytes: self.bytes.since(&earlier.bytes),
            objects: self.objects.since(&earlier.objects),
            smallest_size: self.smallest_size,
            largest_size: self.largest_size,
        }
    }
}

/// The four sets kept for each callstack, and for the whole process.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, Encode, Decode)]
pub struct Totals {
    /// Blocks that live.
    pub in_use: Total,
    /// Blocks ever born.
    pub allocated: Total,
    /// Blocks born young in a minor cycle that has ended: promotion's denominator.
    pub minor: Total,
    /// Those of `minor` that lived when their cycle ended.
    pub promoted: Total,
}

impl Totals {
    /// Another, disjoint group joins.
    pub fn merge(&mut self, other: &Self) {
        self.in_use.merge(&other.in_use);
        self.allocated.merge(&other.allocated);
        self.minor.merge(&other.minor);
        self.promoted.merge(&other.promoted);
    }
}

/// The totals of one callstack.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct StackTotals {
    /// Which.
    pub stack: StackId,
    /// Absolute values: they replace what was known.
    pub totals: Totals,
}

/// What one callstack had in use at the peak.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct StackInUse {
    /// Which.
    pub stack: StackId,
    /// Its live blocks at that moment.
    pub in_use: Total,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Interval;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_joins_and_leaves_leaves_nothing(
            sizes in proptest::collection::vec(1u64..1 << 20, 1..50),
            r in 1u64..1 << 20,
        ) {
            let r = Interval::new(r).unwrap();
            let mut total = Total::default();
            for &s in &sizes { total.add(&r.weight(s)); }
            prop_assert_eq!(total.n, sizes.len() as u64);
            prop_assert_eq!(total.smallest_size, *sizes.iter().min().unwrap());
            prop_assert_eq!(total.largest_size, *sizes.iter().max().unwrap());
            for &s in &sizes { total.sub(&r.weight(s)); }
            prop_assert_eq!(total, Total::default());
        }

        #[test]
        fn merging_is_adding(
            a in proptest::collection::vec(1u64..1 << 20, 0..20),
            b in proptest::collection::vec(1u64..1 << 20, 0..20),
        ) {
            let sum = |sizes: &[u64]| {
                let mut t = Total::default();
                for &s in sizes { t.add(&Interval::EXACT.weight(s)); }
                t
            };
            let mut merged = sum(&a);
            merged.merge(&sum(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, sum(&both));
            prop_assert_eq!(sum(&both).since(&sum(&a)).n, b.len() as u64);
            prop_assert_eq!(sum(&both).since(&sum(&a)).bytes.sum, sum(&b).bytes.sum);
        }
    }
}
