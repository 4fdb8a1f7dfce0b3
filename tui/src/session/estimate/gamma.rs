//! The gamma distribution with scale 1: what a Poisson interval is made of.
//!
//! P(a, x) by its series below the mode and by Lentz's continued fraction above
//! it; quantiles by Newton's step inside a bracket that only shrinks. Screens
//! need thousands of quantiles at the same few probabilities, so [`Quantile`]
//! holds one probability tabulated over the shape: the Wilson–Hilferty
//! transform (q/a)^⅓ is almost linear in it.

use std::f64::consts::PI;

/// ln Γ(x) for x > 0 (Lanczos, g = 7, nine terms: 15 digits).
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = C
        .iter()
        .enumerate()
        .fold(0.999_999_999_999_809_9, |sum, (i, c)| sum + c / (x + 1.0 + i as f64));
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// P(a, x): the probability that a gamma variate of shape `a` > 0 is at most `x`.
#[must_use]
pub fn lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..10_000 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return (sum * scale).min(1.0);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / floor_magnitude(an * d + b);
        c = floor_magnitude(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (1.0 - scale * h).clamp(0.0, 1.0)
}

/// Keeps a denominator of Lentz's method away from zero.
pub(super) fn floor_magnitude(v: f64) -> f64 {
    if v.abs() < 1e-300 { 1e-300 } else { v }
}

/// The x with P(`a`, x) = `p`, for 0 < `p` < 1 and `a` > 0.
#[must_use]
pub fn quantile(p: f64, a: f64) -> f64 {
    if a > TABLE_TO {
        return wilson_hilferty(p, a);
    }
    let (mut low, mut high) = (0.0, a + 10.0 * a.sqrt() + 40.0);
    // Below the mode of small shapes P ≈ x^a/Γ(a+1): a start that Newton likes.
    let small = ((p.ln() + ln_gamma(a + 1.0)) / a).exp();
    if small < 1e-280 {
        return small;
    }
    let mut x = if a < 1.0 || small < 0.1 { small } else { wilson_hilferty(p, a) };
    for _ in 0..200 {
        if !(x > low && x < high) {
            x = f64::midpoint(low, high);
        }
        let miss = lower(a, x) - p;
        if miss > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let density = ((a - 1.0) * x.ln() - x - ln_gamma(a)).exp();
        let step = miss / density;
        if step.abs() <= 1e-13 * x || high - low <= 1e-300 {
            return x;
        }
        x -= step;
    }
    x.clamp(low, high)
}

/// Wilson & Hilferty 1931: off by less than 10⁻⁴ of the quantile from shape 40 on.
fn wilson_hilferty(p: f64, a: f64) -> f64 {
    let ninth = 1.0 / (9.0 * a);
    let root = 1.0 - ninth + super::normal_quantile(p) * ninth.sqrt();
    a * root.max(0.0).powi(3)
}

const TABLE_FROM: f64 = 0.25;
const TABLE_TO: f64 = 64.0;
const STEPS: usize = 512;

/// The quantile function at one probability, as a function of the shape.
#[derive(Debug)]
pub struct Quantile {
    p: f64,
    normal: f64,
    /// (q/a)^⅓ at shapes spaced evenly in ln a.
    roots: Vec<f64>,
}

impl Quantile {
    /// Tabulates probability `p`.
    #[must_use]
    pub fn new(p: f64) -> Self {
        let step = (TABLE_TO / TABLE_FROM).ln() / STEPS as f64;
        let roots = (0..=STEPS)
            .map(|i| {
                let a = TABLE_FROM * (step * i as f64).exp();
                (quantile(p, a.min(TABLE_TO)) / a).cbrt()
            })
            .collect();
        Self { p, normal: super::normal_quantile(p), roots }
    }

    /// The standard normal quantile of the same probability.
    #[must_use]
    pub const fn normal(&self) -> f64 {
        self.normal
    }

    /// The quantile for shape `a`.
    #[must_use]
    pub fn at(&self, a: f64) -> f64 {
        if !(TABLE_FROM..TABLE_TO).contains(&a) {
            return quantile(self.p, a);
        }
        let place = (a / TABLE_FROM).ln() * (STEPS as f64 / (TABLE_TO / TABLE_FROM).ln());
        let i = (place as usize).min(STEPS - 1);
        let part = place - i as f64;
        let root = self.roots[i] * (1.0 - part) + self.roots[i + 1] * part;
        a * root.powi(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square quantiles from published tables (NIST handbook 1.3.6.7.4).
    const CHI_SQUARE: [(f64, f64, f64); 9] = [
        (1.0, 0.025, 0.000_982_069),
        (1.0, 0.975, 5.023_886),
        (2.0, 0.025, 0.050_635_6),
        (2.0, 0.975, 7.377_759),
        (10.0, 0.025, 3.246_973),
        (10.0, 0.975, 20.483_177),
        (60.0, 0.025, 40.481_748),
        (60.0, 0.975, 83.297_675),
        (100.0, 0.975, 129.561_197),
    ];

    #[test]
    fn quantiles_are_the_published_ones() {
        for (df, p, want) in CHI_SQUARE {
            let got = 2.0 * quantile(p, df / 2.0);
            assert!((got / want - 1.0).abs() < 2e-6, "{df} {p}: {got} is not {want}");
            let table = 2.0 * Quantile::new(p).at(df / 2.0);
            assert!((table / want - 1.0).abs() < 2e-4, "{df} {p}: {table} is not {want}");
        }
    }

    #[test]
    fn quantile_inverts_the_distribution() {
        for a in [0.05, 0.1, 0.5, 1.0, 3.7, 29.0, 63.0, 500.0] {
            for p in [0.025, 0.05, 0.5, 0.975] {
                let x = quantile(p, a);
                assert!((lower(a, x) - p).abs() < 1e-4, "a {a} p {p}: {x}");
            }
        }
    }

    #[test]
    fn log_gamma_of_integers_is_the_factorial() {
        let mut factorial = 1.0f64;
        for n in 1..20 {
            factorial *= f64::from(n);
            assert!((ln_gamma(f64::from(n) + 1.0) - factorial.ln()).abs() < 1e-12);
        }
        assert!((ln_gamma(0.5) - PI.sqrt().ln()).abs() < 1e-13);
    }
}
