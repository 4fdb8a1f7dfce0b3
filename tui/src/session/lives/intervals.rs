//! The list of R that lives stand for: a life has its place in it.

use heaptop_protocol::estimate::Interval;

/// Places.
const MOST: usize = 255;
/// Places that are kept for powers of two and the coarsest of all.
const KEPT: usize = 33;

/// Different R, in order of their coming.
#[derive(Debug, Default)]
pub struct Intervals {
    list: Vec<Interval>,
    /// The last that was asked for.
    last: usize,
}

impl Intervals {
    /// The place of `interval`, or of the next power of two if there is no room for it,
    /// with what is there.
    pub fn index(&mut self, interval: Interval) -> (u8, Interval) {
        if self.list.get(self.last) == Some(&interval) {
            return (self.last as u8, interval);
        }
        let known = self.list.iter().position(|known| *known == interval);
        let power = interval.bytes().is_power_of_two();
        let powers = self.list.iter().filter(|r| r.bytes().is_power_of_two()).count();
        let others = self.list.len() - powers;
        self.last = match known {
            Some(at) => at,
            None if power || others < MOST - KEPT => {
                self.list.push(interval);
                self.list.len() - 1
            }
            None => {
                let next = interval.bytes().checked_next_power_of_two();
                match next.and_then(|next| Interval::new(u64::from(next))) {
                    Some(coarser) => return self.index(coarser),
                    // Above 2 GiB: the coarsest of all is as good.
                    None => return self.coarser_than(interval),
                }
            }
        };
        (self.last as u8, self.list[self.last])
    }

    /// The finest that is no finer than `interval`; if there is none, the last place is
    /// given to the coarsest R that there can be.
    fn coarser_than(&mut self, interval: Interval) -> (u8, Interval) {
        let places = || self.list.iter().enumerate().filter(|(_, r)| **r >= interval);
        if let Some((at, r)) = places().min_by_key(|(_, r)| **r) {
            return (at as u8, *r);
        }
        let coarsest = Interval::new(u64::from(u32::MAX)).unwrap_or(interval);
        self.list.push(coarsest);
        (self.list.len() as u8 - 1, coarsest)
    }

    /// What is at a place.
    pub fn at(&self, index: u8) -> Interval {
        self.list.get(usize::from(index)).copied().unwrap_or(Interval::EXACT)
    }

    /// Whether none can be doubled any more.
    pub fn all_coarse(&self) -> bool {
        self.list.iter().all(|r| Interval::new(u64::from(r.bytes()) * 2).is_none())
    }

    /// The largest.
    pub fn coarsest(&self) -> Option<Interval> {
        self.list.iter().copied().max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_rounded_up_and_never_down() {
        let mut list = Intervals::default();
        for bytes in
            (1..10_000u64).chain((0..32).map(|i| (1 << i) + 1)).chain([u64::from(u32::MAX)])
        {
            let wanted = Interval::new(bytes).unwrap();
            let (at, got) = list.index(wanted);
            assert_eq!(list.at(at), got);
            assert!(got >= wanted, "{got:?} for {wanted:?}");
            assert!(got.bytes() == u32::MAX || u64::from(got.bytes()) < bytes * 2);
        }
        assert!(list.list.len() <= MOST, "{}", list.list.len());
        assert_eq!(list.coarsest(), Interval::new(u64::from(u32::MAX)));
    }
}
