//! Which bytes are sampled: a pure generator of geometric gaps.
//!
//! Every byte is a Bernoulli trial with success probability λ = 1/R. The number
//! of failures before the next success is geometric, so instead of a trial a
//! byte one draws a gap:
//!
//! ```text
//! gap = ⌊ ln u / ln(1 − λ) ⌋,   u uniform in (0, 1]
//! ```
//!
//! P(gap ≥ k) = P(u ≤ (1 − λ)^k) = (1 − λ)^k, as it must be. The geometric law
//! is memoryless: a gap may be thrown away and drawn anew between two blocks at
//! any time, whatever the reason, without bias. λ changes and failed
//! allocations rely on that.
//!
//! A block in which the first success falls holds 1 + Binomial(bytes behind
//! it, λ) samples. Small counts come from further gaps, so that the last gap
//! simply reaches into the blocks to come; where many are expected the binomial
//! is drawn directly (Hörmann 1993, algorithm BTRS) and a fresh gap follows.

/// xoshiro256++ (Blackman & Vigna), seeded by splitmix64.
#[derive(Debug, Clone, Copy)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Never used to draw from: the state of a domain that has not started.
    pub const UNSEEDED: Self = Self([0; 4]);

    /// The generator of domain `stream` of a process with this seed.
    pub fn seeded(seed: u64, stream: u32) -> Self {
        let mut x = seed ^ u64::from(stream).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Self([(); 4].map(|()| {
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in (0, 1], with 64 bits.
    fn unit(&mut self) -> f64 {
        (self.next() as f64 + 1.0) * (-64f64).exp2()
    }

    /// Bytes that are not sampled before the next one that is. `ln_miss` is
    /// ln(1 − λ).
    pub fn gap(&mut self, ln_miss: f64) -> u64 {
        if ln_miss == f64::NEG_INFINITY {
            return 0;
        }
        // The cast saturates; −0.0 becomes 0.
        (self.unit().ln() / ln_miss) as u64
    }

    /// Samples in `rest` bytes behind a first success, that one included, and
    /// the gap that follows the block. `lambda` and `ln_miss` belong together.
    pub fn samples(&mut self, rest: u64, lambda: f64, ln_miss: f64) -> (u64, u64) {
        if ln_miss == f64::NEG_INFINITY {
            return (rest.saturating_add(1), 0);
        }
        if rest as f64 * lambda > DIRECT {
            return (1 + self.binomial(rest, lambda), self.gap(ln_miss));
        }
        let (mut n, mut left) = (1, rest);
        loop {
            let gap = self.gap(ln_miss);
            if gap >= left {
                return (n, gap - left);
            }
            n += 1;
            left -= gap + 1;
        }
    }

    /// How many of `n` samples remain when each is kept with probability `keep`:
    /// Binomial(n, keep). Takes a sample of λ to one of keep·λ.
    pub fn thin(&mut self, n: u64, keep: f64) -> u64 {
        let drop = 1.0 - keep;
        if drop <= NONE {
            return n;
        }
        // Who keeps most draws those that are not kept: there is a gap for each, and beyond
        // [`DIRECT`] of them none. From ½ on the difference is exact.
        if keep > 0.5 {
            return n - self.thin(n, drop);
        }
        if n as f64 * keep > DIRECT {
            return self.binomial(n, keep);
        }
        let ln_miss = (-keep).ln_1p();
        let (mut kept, mut at) = (0, self.gap(ln_miss));
        while at < n {
            kept += 1;
            at = at.saturating_add(1).saturating_add(self.gap(ln_miss));
        }
        kept
    }

    /// Binomial(n, p) for p ≤ ½ and n·p ≥ 10, by transformed rejection. The names
    /// are the paper's.
    #[allow(clippy::many_single_char_names)]
    fn binomial(&mut self, n: u64, p: f64) -> u64 {
        let n_f = n as f64;
        let spread = (n_f * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * spread;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let centre = n_f * p + 0.5;
        let squeeze = 0.92 - 4.2 / b;
        let alpha = (2.83 + 5.1 / b) * spread;
        let odds = p / (1.0 - p);
        let mode = ((n_f + 1.0) * p).floor();
        loop {
            let u = self.unit() - 0.5;
            let v = self.unit();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + centre).floor();
            if !(0.0..=n_f).contains(&k) {
                continue;
            }
            if us >= 0.07 && v <= squeeze {
                return k as u64;
            }
            // ln of the density's ratio to its mode's, by Stirling's series.
            let bound = (mode + 0.5) * ((mode + 1.0) / (odds * (n_f - mode + 1.0))).ln()
                + (n_f + 1.0) * ((n_f - mode + 1.0) / (n_f - k + 1.0)).ln()
                + (k + 0.5) * (odds * (n_f - k + 1.0) / (k + 1.0)).ln()
                + stirling_rest(mode)
                + stirling_rest(n_f - mode)
                - stirling_rest(k)
                - stirling_rest(n_f - k);
            if (v * alpha / (a / (us * us) + b)).ln() <= bound {
                return k as u64;
            }
        }
    }
}

/// Expected samples behind the first, from which on the binomial is drawn
/// directly: a gap costs about as much as a thirtieth of such a draw.
const DIRECT: f64 = 32.0;

/// What rounding leaves of 0 where a probability of 1 is a product and a quotient.
const NONE: f64 = 4.0 * f64::EPSILON;

/// ln k! − ((k + ½) ln(k + 1) − (k + 1) + ½ ln 2π): what Stirling's formula
/// for (k + 1) leaves.
fn stirling_rest(k: f64) -> f64 {
    let x = k + 1.0;
    if x < 10.0 {
        // ln k! as a sum; at most nine terms.
        let ln_factorial: f64 = (2..x as u32).map(|i| f64::from(i).ln()).sum();
        let half_ln_two_pi = 0.918_938_533_204_672_7;
        return ln_factorial - ((x - 0.5) * x.ln() - x + half_ln_two_pi);
    }
    let xx = x * x;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / xx) / xx) / x
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::estimate::Interval;

    fn mean_and_variance(draws: impl Iterator<Item = u64>) -> (f64, f64) {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for x in draws {
            n += 1.0;
            sum += x as f64;
            squares += x as f64 * x as f64;
        }
        let mean = sum / n;
        (mean, squares / n - mean * mean)
    }

    #[test]
    fn gaps_are_geometric() {
        for r in [2, 100, 512 << 10] {
            let interval = Interval::new(r).unwrap();
            let mut rng = Rng::seeded(7, 0);
            let n = 400_000;
            let draws: Vec<u64> = (0..n).map(|_| rng.gap(interval.ln_miss())).collect();
            let lambda = interval.lambda();
            let expected = (1.0 - lambda) / lambda;
            let (mean, variance) = mean_and_variance(draws.iter().copied());
            let sigma = expected.max(1.0) / f64::from(n).sqrt();
            assert!((mean - expected).abs() < 5.0 * sigma, "R {r}: mean {mean}, not {expected}");
            let true_variance = (1.0 - lambda) / lambda / lambda;
            assert!((variance / true_variance - 1.0).abs() < 0.03, "R {r}: variance {variance}");
            // The law itself, at several points.
            for x in [0.0001, 0.01, 0.1, 1.0, 3.0] {
                let at = (x * r as f64) as u64;
                let p = -((at + 1) as f64 * interval.ln_miss()).exp_m1();
                let seen = draws.iter().filter(|&&g| g <= at).count() as f64 / f64::from(n);
                let sigma = (p * (1.0 - p) / f64::from(n)).sqrt().max(1e-6);
                assert!((seen - p).abs() < 5.0 * sigma, "R {r}, x {x}: {seen}, not {p}");
            }
        }
    }

    #[test]
    fn at_one_every_byte_is_a_sample() {
        let mut rng = Rng::seeded(1, 1);
        let one = Interval::EXACT;
        assert_eq!(rng.gap(one.ln_miss()), 0);
        assert_eq!(rng.samples(99, 1.0, one.ln_miss()), (100, 0));
    }

    #[test]
    fn samples_behind_a_first_are_binomial() {
        // Both ways of drawing, either side of DIRECT, and large sizes.
        for (rest, r) in [(300, 10), (400, 10), (1 << 20, 1 << 14), (3 << 30, 1 << 20), (90, 2)] {
            let interval = Interval::new(r).unwrap();
            let (p, n) = (interval.lambda(), rest as f64);
            let mut rng = Rng::seeded(3, r as u32);
            let draws = 100_000;
            let (mean, variance) = mean_and_variance(
                (0..draws).map(|_| rng.samples(rest, p, interval.ln_miss()).0 - 1),
            );
            let true_variance = n * p * (1.0 - p);
            let sigma = (true_variance / f64::from(draws)).sqrt();
            assert!((mean - n * p).abs() < 5.0 * sigma, "{rest} at {r}: mean {mean}");
            assert!((variance / true_variance - 1.0).abs() < 0.03, "{rest} at {r}: {variance}");
        }
    }

    #[test]
    fn thinning_is_binomial() {
        let mut rng = Rng::seeded(11, 0);
        for (n, keep) in [(1, 0.5), (10, 0.25), (1000, 0.5), (7, 0.9)] {
            let draws = 100_000;
            let (mean, _) = mean_and_variance((0..draws).map(|_| rng.thin(n, keep)));
            let sigma = (n as f64 * keep * (1.0 - keep) / f64::from(draws)).sqrt();
            assert!((mean - n as f64 * keep).abs() < 5.0 * sigma, "{n} {keep}: {mean}");
        }
        assert_eq!(rng.thin(9, 1.0), 9);
    }

    #[test]
    fn thinning_by_little_is_binomial_too() {
        // Told by what is dropped, of which there may be little among very much.
        let mut rng = Rng::seeded(13, 0);
        for keep in [0.5, 0.51, 0.9, 0.999, 1.0 - 1e-9, 1.0 - 1e-12] {
            for n in [1u64, 3, 60, 1000, 1 << 20, 1 << 30, 1 << 40] {
                let draws = 20_000;
                let (expected, drop) = (n as f64 * (1.0 - keep), 1.0 - keep);
                // Off what is expected, for the squares' sake.
                let (mut sum, mut squares) = (0.0, 0.0);
                for _ in 0..draws {
                    let off = (n - rng.thin(n, keep)) as f64 - expected;
                    sum += off;
                    squares += off * off;
                }
                let (mean, variance) = (sum / f64::from(draws), squares / f64::from(draws));
                let true_variance = expected * keep;
                let sigma = (true_variance / f64::from(draws)).sqrt();
                // Of what hardly ever is dropped one is many sigmas.
                let one = 1.0 / f64::from(draws);
                assert!(mean.abs() < 5.0 * sigma + one, "{n} {keep}: {mean} off");
                // Its own variance: that of a square, by the fourth moment.
                let excess = (1.0 - 6.0 * keep * drop) / true_variance;
                let sigma = ((2.0 + excess) / f64::from(draws)).sqrt() * true_variance;
                let off = (variance - true_variance).abs();
                assert!(off < 5.0 * sigma + 2.0 * one, "{n} {keep}: {variance}");
            }
        }
        assert_eq!(rng.thin(1 << 40, 1.0 - f64::EPSILON), 1 << 40, "as good as 1");
    }

    #[test]
    fn thinning_by_little_has_the_binomials_law() {
        // Each number that can be kept, against its own probability: by χ².
        for (n, keep) in [(6, 0.51), (6, 0.9), (200, 0.8), (300, 0.51)] {
            let mut rng = Rng::seeded(17, n as u32);
            let draws = 200_000;
            let mut seen = vec![0f64; n as usize + 1];
            (0..draws).for_each(|_| seen[rng.thin(n, keep) as usize] += 1.0);
            let (mut p, mut chi, mut classes) = ((1.0 - keep).powi(n as i32), 0.0, 0.0);
            for (k, seen) in seen.iter().enumerate() {
                let expected = p * f64::from(draws);
                if expected > 10.0 {
                    chi += (seen - expected).powi(2) / expected;
                    classes += 1.0;
                } else {
                    assert!(*seen < 60.0, "{n} {keep}: {k} {seen} times, not {expected}");
                }
                p *= (n as f64 - k as f64) / (k as f64 + 1.0) * keep / (1.0 - keep);
            }
            let sigma = f64::sqrt(2.0 * classes);
            assert!(chi < classes + 6.0 * sigma, "{n} {keep}: {chi} in {classes} classes");
        }
    }

    #[test]
    fn the_gap_behind_a_block_is_geometric_too() {
        let interval = Interval::new(64).unwrap();
        let mut rng = Rng::seeded(5, 0);
        let (mean, _) = mean_and_variance(
            (0..200_000).map(|_| rng.samples(200, interval.lambda(), interval.ln_miss()).1),
        );
        assert!((mean - 63.0).abs() < 0.8, "{mean}");
    }

    #[test]
    fn stirling_leaves_what_it_leaves() {
        // Against ln 20!.
        let ln_20_factorial = 42.335_616_460_753_485;
        let stirling = 20.5 * 21f64.ln() - 21.0 + 0.918_938_533_204_672_7;
        assert!((stirling_rest(20.0) - (ln_20_factorial - stirling)).abs() < 1e-10);
        let (exact, series) = (stirling_rest(8.0), 1.0 / 108.0 - 1.0 / 360.0 / 729.0);
        assert!((exact - series).abs() < 1e-6, "{exact} {series}");
    }

    #[test]
    fn domains_draw_differently_and_a_seed_repeats() {
        let draw = |seed, stream| Rng::seeded(seed, stream).next();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }
}
