//! Ratios of times that were measured many times over.

/// The middle value; the values are sorted by it.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[half - 1], values[half])
    } else {
        values[half]
    }
}

/// The 95 % bootstrap interval of the ratio of medians, with fixed draws.
pub fn interval(plain: &[f64], with: &[f64]) -> (f64, f64) {
    let mut state = 1u64;
    let mut draw = |from: &[f64]| {
        let mut drawn: Vec<f64> = (0..from.len())
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                from[(state >> 33) as usize % from.len()]
            })
            .collect();
        median(&mut drawn)
    };
    let mut ratios: Vec<f64> = (0..4000).map(|_| draw(with) / draw(plain)).collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[100], ratios[3899])
}

/// The 95 % bootstrap interval of the median, with fixed draws.
#[must_use]
pub fn of_median(values: &[f64]) -> (f64, f64) {
    // A ratio to what does not vary.
    interval(&[1.0], values)
}

/// The least value.
pub fn least(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_ratio_and_narrows_with_the_spread() {
        let around = |middle: f64, spread: f64| -> Vec<f64> {
            (-5..=5).map(|i| middle + spread * f64::from(i)).collect()
        };
        let (wide, narrow) = (around(2.0, 0.1), around(2.0, 0.01));
        let plain = around(1.0, 0.001);
        let [w, n] = [interval(&plain, &wide), interval(&plain, &narrow)];
        assert!(w.0 < 2.0 && 2.0 < w.1 && n.0 < 2.0 && 2.0 < n.1, "{w:?} {n:?}");
        assert!(w.1 - w.0 > 5.0 * (n.1 - n.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(least(&[4.0, 1.0, 2.0, 3.0]), 1.0);
        let of = of_median(&wide);
        assert!(of.0 < 2.0 && 2.0 < of.1, "{of:?}");
    }
}
