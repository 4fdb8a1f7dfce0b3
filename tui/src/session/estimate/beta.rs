//! The beta distribution: what an interval for a share is made of.

use super::gamma::{floor_magnitude, ln_gamma};

/// Iₓ(a, b): the probability that a beta variate is at most `x`. Lentz's
/// continued fraction on the side where it converges fast.
#[must_use]
pub fn lower(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || b <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 || a <= 0.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        (front * fraction(a, b, x) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - front * fraction(b, a, 1.0 - x) / b).clamp(0.0, 1.0)
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / floor_magnitude(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / floor_magnitude(1.0 + even * d);
        c = floor_magnitude(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / floor_magnitude(1.0 + odd * d);
        c = floor_magnitude(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

/// The x with Iₓ(a, b) = `p`: Newton's step inside a bracket that only shrinks.
#[must_use]
pub fn quantile(p: f64, a: f64, b: f64) -> f64 {
    if a <= 0.0 {
        return 0.0;
    }
    if b <= 0.0 {
        return 1.0;
    }
    let ln_beta = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    let (mut low, mut high, mut x) = (0.0, 1.0, a / (a + b));
    for _ in 0..100 {
        let miss = lower(a, b, x) - p;
        if miss > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let density = ((a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - ln_beta).exp();
        let next = x - miss / density;
        let next = if next > low && next < high { next } else { f64::midpoint(low, high) };
        if (next - x).abs() <= 1e-10 * next.min(1.0 - next) {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clopper & Pearson's limits as published for n = 10 (two-sided 95 %).
    #[test]
    fn quantiles_give_the_published_binomial_limits() {
        for (x, low, high) in
            [(0.0, 0.0, 0.308_497), (1.0, 0.002_529, 0.445_016), (5.0, 0.187_086, 0.812_914)]
        {
            assert!((quantile(0.025, x, 10.0 - x + 1.0) - low).abs() < 1e-6);
            assert!((quantile(0.975, x + 1.0, 10.0 - x) - high).abs() < 1e-6);
        }
    }

    #[test]
    fn quantile_inverts_the_distribution() {
        for (a, b) in [(0.3, 4.0), (1.0, 1.0), (25.0, 3.5), (400.0, 900.0)] {
            for p in [0.025, 0.5, 0.975] {
                assert!((lower(a, b, quantile(p, a, b)) - p).abs() < 1e-8, "{a} {b} {p}");
            }
        }
    }

    #[test]
    fn halves_are_binomial_sums() {
        // P(X ≥ 3 | n = 5, ½) = ½.
        assert!((lower(3.0, 3.0, 0.5) - 0.5).abs() < 1e-14);
        // P(X ≥ 4 | n = 5, ½) = 6/32.
        assert!((lower(4.0, 2.0, 0.5) - 6.0 / 32.0).abs() < 1e-14);
    }
}
