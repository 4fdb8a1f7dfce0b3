//! What blocks stand for, remembered: most sizes come again and again.

use heaptop_protocol::estimate::{Interval, Weight};

const PLACES: usize = 1 << 11;

/// Weights by size and R, as far as they are not displaced by others.
#[derive(Debug)]
pub struct Weights(Vec<(Interval, Weight)>);

impl Default for Weights {
    fn default() -> Self {
        // No block has this size: places are empty.
        Self(vec![(Interval::EXACT, Weight::default()); PLACES])
    }
}

impl Weights {
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Interval::weight`].
    #[inline]
    pub fn of(&mut self, interval: Interval, size: u64) -> &Weight {
        let key = size ^ u64::from(interval.bytes()).rotate_left(40);
        let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize % PLACES;
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
        let mut weights = Weights::new();
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
