//! Coins that fall alike whenever they are thrown from the same seed.

use heaptop_protocol::estimate::Interval;

/// From so many coins on the expected number is taken: no such life is ever left
/// without a sample, and that is all that matters.
const MANY: u64 = 1 << 12;

/// splitmix64's finaliser after a step.
pub const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How many of `n` samples of R = `from` are left at the coarser `to`.
pub fn keep(n: u64, from: Interval, to: Interval, seed: u64) -> u64 {
    let (from, to) = (u64::from(from.bytes()), u64::from(to.bytes()));
    if to <= from {
        return n;
    }
    if to == from * 2 {
        return heads(n, seed);
    }
    if n >= MANY {
        return (u128::from(n) * u128::from(from) / u128::from(to)) as u64;
    }
    // 32 bits of a coin are enough: R has no more.
    let limit = (from << 32) / to;
    let word = |i: u64| mix(seed ^ i.wrapping_mul(0xd134_2543_de82_ef95)) >> 32;
    (0..n).filter(|&i| word(i) < limit).count() as u64
}

/// How many of `n` fair coins show heads.
fn heads(n: u64, seed: u64) -> u64 {
    if n >= MANY {
        return n / 2;
    }
    let word = |i: u64| mix(seed ^ i.wrapping_mul(0xd134_2543_de82_ef95));
    let whole: u64 = (0..n / 64).map(|i| u64::from(word(i).count_ones())).sum();
    let mask = (1u64 << (n % 64)) - 1;
    whole + u64::from((word(n / 64) & mask).count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_fair() {
        let r = |bytes| Interval::new(bytes).unwrap();
        for (from, to) in [(1, 2), (512, 1024), (3, 10), (1000, 1001)] {
            for n in [1u64, 5, 64, 100, 4000] {
                let (trials, q) = (20_000u64, from as f64 / to as f64);
                let sum: u64 = (0..trials).map(|s| keep(n, r(from), r(to), s << 8)).sum();
                let thrown = (trials * n) as f64;
                let (mean, sigma) = (thrown * q, (thrown * q * (1.0 - q)).sqrt());
                assert!((sum as f64 - mean).abs() < 4.0 * sigma, "{n} at {q}: {sum}, not {mean}");
            }
        }
        assert_eq!(keep(0, r(1), r(2), 9), 0);
        assert_eq!(keep(1 << 40, r(1), r(2), 9), 1 << 39);
        assert_eq!(keep(1 << 40, r(1), r(4), 9), 1 << 38);
        assert_eq!(keep(7, r(4), r(4), 9), 7);
    }
}
