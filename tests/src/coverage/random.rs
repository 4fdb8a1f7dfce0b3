//! Random numbers of the simulated program: splitmix64. The agent draws its own.

use heaptop::session::estimate::normal_quantile;

/// Seeded, small, and good enough for a program's whims.
#[derive(Debug, Clone, Copy)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (-52f64).exp2()
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.unit())
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }
}
