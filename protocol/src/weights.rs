//! What blocks stand for, remembered: most sizes come again and again, and a weight costs
//! an exponential and a logarithm.

use crate::estimate::{Interval, Weight};

/// Weights by size and R, as far as they are not displaced by others.
#[derive(Debug)]
pub struct Weights(Box<[(Interval, Weight)]>);

impl Default for Weights {
    fn default() -> Self {
        Self::with_places(1 << 11)
    }
}

impl Weights {
    /// Room for 2,048 of them, in 112 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for so many: a power of two, else the next one.
    #[must_use]
    pub fn with_places(places: usize) -> Self {
        let places = places.max(2).next_power_of_two();
        // What a size of 0 stands for is in all of them.
        Self(vec![(Interval::EXACT, Weight::default()); places].into_boxed_slice())
    }

    /// As [`Interval::weight`], with the block's size also where it stands for nothing.
    #[inline]
    pub fn of(&mut self, interval: Interval, size: u64) -> &Weight {
        let key = size ^ u64::from(interval.bytes()).rotate_left(40);
        let shift = u64::BITS - self.0.len().trailing_zeros();
        let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
        let kept = &mut self.0[place];
        if kept.0 != interval || kept.1.size != size {
            *kept = (interval, Weight { size, ..interval.weight(size) });
        }
        &kept.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_interval() {
        for places in [1, 512, 1 << 11] {
            let mut weights = Weights::with_places(places);
            for round in 0..2 {
                for size in (0..5000).chain([u64::MAX]) {
                    for r in [1, 512 << 10, u64::from(u32::MAX)] {
                        let interval = Interval::new(r).unwrap();
                        let want = Weight { size, ..interval.weight(size) };
                        assert_eq!(*weights.of(interval, size), want, "{round}");
                    }
                }
            }
        }
    }
}
