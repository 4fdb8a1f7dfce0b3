//! G over time: how far the allocation clock had come at a moment of the past.

/// Most points that are kept; then neighbours become one.
const MOST: usize = 1 << 16;
const FINEST_NS: u64 = 1_000_000;

/// The latest G heard of in each millisecond; once there are many, in each two, four….
#[derive(Debug)]
pub struct Clock {
    step_ns: u64,
    /// Number of the step, and G.
    points: Vec<(u64, u64)>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { step_ns: FINEST_NS, points: Vec::new() }
    }
}

impl Clock {
    /// G is `clock` at `time_ns`; earlier times than the last change nothing but it.
    pub fn see(&mut self, time_ns: u64, clock: u64) {
        let step = time_ns / self.step_ns;
        match self.points.last_mut() {
            Some((last, known)) if step <= *last => *known = clock.max(*known),
            Some((_, known)) if clock <= *known => {}
            _ => {
                if self.points.len() >= MOST {
                    self.step_ns = self.step_ns.saturating_mul(2);
                    for (step, _) in &mut self.points {
                        *step /= 2;
                    }
                    self.points.dedup_by(|next, kept| {
                        let same = next.0 == kept.0;
                        if same {
                            kept.1 = kept.1.max(next.1);
                        }
                        same
                    });
                    return self.see(time_ns, clock);
                }
                self.points.push((step, clock));
            }
        }
    }

    /// G at the end of the step of `time_ns`.
    pub fn at(&self, time_ns: u64) -> u64 {
        let step = time_ns / self.step_ns;
        let after = self.points.partition_point(|(s, _)| *s <= step);
        after.checked_sub(1).map_or(0, |last| self.points[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_is_known_at_any_time_and_points_are_bounded() {
        let mut clock = Clock::default();
        for ms in 0..300_000u64 {
            clock.see(ms * 1_000_000, ms * 100);
        }
        assert!(clock.points.len() <= MOST);
        for ms in [0u64, 7, 150_000, 299_999] {
            let g = clock.at(ms * 1_000_000);
            assert!((ms * 100..=ms * 100 + 800).contains(&g), "{ms}: {g}");
        }
        clock.see(5, 1 << 40);
        assert_eq!(clock.at(u64::MAX), 1 << 40);
        assert_eq!(Clock::default().at(9), 0);
        // Times that cannot be.
        for time in [u64::MAX, 0, u64::MAX] {
            clock.see(time, u64::MAX);
        }
    }
}
