//! The curve since the start: totals, a point a second. When its room is full the
//! resolution is halved, so the whole past stays, ever more coarsely.

use crate::engine::region::{Region, Zeroable};
use heaptop_protocol::message::HistoryPoint;
use heaptop_protocol::totals::Totals;

/// A history point as it lies in the region: rss 0 is unknown.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    time_ns: u64,
    in_use_bytes: f64,
    allocated_bytes: f64,
    promoted_bytes: f64,
    rss_bytes: u64,
}

// SAFETY: numbers only; zero bytes are a point of zeroes.
unsafe impl Zeroable for Point {}

/// Most points, where the region has room for them.
const MOST_POINTS: usize = 4096;
const SECOND_NS: u64 = 1_000_000_000;

/// See the module.
pub struct History {
    points: &'static mut [Point],
    len: usize,
    step_ns: u64,
}

impl History {
    /// An empty curve, in at most a quarter of what is left of `region`.
    pub fn new(region: &mut Region) -> Option<Self> {
        let room = region.rest_bytes() / 4 / size_of::<Point>();
        let points = region.slice_mut(room.min(MOST_POINTS))?;
        Some(Self { points, len: 0, step_ns: SECOND_NS })
    }

    /// Adds a point if one is due at `time_ns`, and gives it.
    pub fn tick(
        &mut self,
        time_ns: u64,
        totals: &Totals,
        rss_bytes: Option<u64>,
    ) -> Option<HistoryPoint> {
        let last = self.len.checked_sub(1).and_then(|i| self.points.get(i));
        if last.is_some_and(|l| time_ns < l.time_ns + self.step_ns) {
            return None;
        }
        if self.len == self.points.len() {
            for i in 0..self.len / 2 {
                self.points[i] = self.points[2 * i + 1];
            }
            self.len /= 2;
            self.step_ns *= 2;
        }
        let point = Point {
            time_ns,
            in_use_bytes: totals.in_use.bytes.sum,
            allocated_bytes: totals.allocated.bytes.sum,
            promoted_bytes: totals.promoted.bytes.sum,
            rss_bytes: rss_bytes.unwrap_or(0),
        };
        *self.points.get_mut(self.len)? = point;
        self.len += 1;
        Some(point.into())
    }

    /// The curve so far.
    pub fn points(&self) -> Vec<HistoryPoint> {
        self.points.iter().take(self.len).map(|&p| p.into()).collect()
    }

    /// Starts anew.
    pub fn clear(&mut self) {
        self.len = 0;
        self.step_ns = SECOND_NS;
    }

    /// Memory that was touched, in bytes.
    pub fn bytes_touched(&self) -> usize {
        self.len * size_of::<Point>()
    }
}

impl From<Point> for HistoryPoint {
    fn from(p: Point) -> Self {
        Self {
            time_ns: p.time_ns,
            in_use_bytes: p.in_use_bytes,
            allocated_bytes: p.allocated_bytes,
            promoted_bytes: p.promoted_bytes,
            rss_bytes: (p.rss_bytes != 0).then_some(p.rss_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_halves_when_it_is_full() {
        let mut history = History::new(&mut Region::new(1 << 20).unwrap()).unwrap();
        let room = history.points.len() as u64;
        for second in 0..=room {
            let point = history.tick(second * SECOND_NS, &Totals::default(), None);
            assert!(point.is_some(), "second {second}");
        }
        let points = history.points();
        assert_eq!(points.len() as u64, room / 2 + 1);
        assert!(points.windows(2).all(|p| p[0].time_ns < p[1].time_ns));
        let next = (room + 1) * SECOND_NS;
        assert!(history.tick(next, &Totals::default(), None).is_none(), "two seconds apart now");
        assert!(history.tick(next + SECOND_NS, &Totals::default(), Some(7)).is_some());
        assert_eq!(history.points().last().unwrap().rss_bytes, Some(7));
    }
}
