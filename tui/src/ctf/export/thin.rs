//! Samples of bytes at many intervals, made samples of words at one.
//!
//! From R to the coarser R′ each sample stays with chance R/R′ (STATS: thinning). A word
//! is sampled when one of its bytes is: so samples that fall into one word are one, and
//! λ of words is 1 − (1 − 1/R)^8. At R = 1 all words of a block are sampled.
//!
//! The coins are hashes of the block's number: the same recording makes the same trace.

use heaptop_protocol::estimate::Interval;

/// Bytes of a word in what is written.
pub(super) const WORD: u64 = 8;
/// From so many coins or samples on, what is expected of them is taken.
const MANY: u64 = 4096;

/// λ of words.
pub(super) fn word_rate(interval: Interval) -> f64 {
    -(interval.ln_miss() * WORD as f64).exp_m1()
}

/// Words of a block.
pub(super) const fn words(size: u64) -> u64 {
    size.div_ceil(WORD)
}

/// Numbers from a seed: splitmix64.
#[derive(Debug)]
pub(super) struct Coins(u64);

impl Coins {
    /// A block's own.
    pub const fn of(block: u64) -> Self {
        Self(block)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `most`, which is above 0. The bias is below `most` in 2⁶⁴.
    fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(most)) >> 64) as u64
    }

    /// How many of `n` samples at `from` stay at `to`.
    pub fn thin(&mut self, n: u64, from: Interval, to: Interval) -> u64 {
        let q = f64::from(from.bytes()) / f64::from(to.bytes());
        if q >= 1.0 {
            return n;
        }
        if n >= MANY && n as f64 * q >= 64.0 {
            return (n as f64 * q).round() as u64;
        }
        // From one that stays to the next: geometric, as the sampler itself.
        let ln_gone = (-q).ln_1p();
        let (mut at, mut kept) = (0u64, 0u64);
        loop {
            let gap = ((1.0 - self.unit()).ln() / ln_gone).floor();
            if gap >= (n - at) as f64 {
                return kept;
            }
            at += gap as u64 + 1;
            kept += 1;
        }
    }

    /// How many words of a block of `size` bytes `n` samples of its bytes are in.
    pub fn words_hit(&mut self, n: u64, size: u64) -> u64 {
        let words = words(size);
        if n >= size {
            return words;
        }
        if n >= MANY {
            let missed = (1.0 - n as f64 / size as f64).powi(WORD as i32);
            return ((words as f64 * (1.0 - missed)).round() as u64).clamp(1, words);
        }
        // Floyd: n different bytes of `size`, each set as likely.
        let mut bytes = std::collections::BTreeSet::new();
        for top in size - n..size {
            let byte = self.below(top + 1);
            if !bytes.insert(byte) {
                bytes.insert(top);
            }
        }
        let mut last = None;
        let new = |byte: &&u64| last.replace(**byte / WORD) != Some(**byte / WORD);
        bytes.iter().filter(new).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(bytes: u64) -> Interval {
        Interval::new(bytes).unwrap()
    }

    #[test]
    fn every_word_at_an_interval_of_one() {
        assert_eq!(word_rate(Interval::EXACT), 1.0);
        for (size, words) in [(1, 1), (8, 1), (9, 2), (1000, 125)] {
            assert_eq!(Coins::of(3).words_hit(size, size), words);
        }
        assert!((word_rate(interval(1 << 20)) * f64::from(1 << 17) - 1.0).abs() < 1e-5);
    }

    /// Sampled by bytes, thinned and made words: as often as by words at once.
    #[test]
    fn samples_stay_what_they_stand_for() {
        let (from, to, size, blocks) = (interval(16), interval(100), 1001u64, 20_000u64);
        let mut total = 0u64;
        for block in 0..blocks {
            let mut coins = Coins::of(block << 20);
            let n = coins.thin(size, Interval::EXACT, from);
            let n = coins.thin(n, from, to);
            total += coins.words_hit(n, size);
        }
        // The last word is one byte alone.
        let full = (blocks * 125) as f64 * word_rate(to);
        let mean = full + blocks as f64 * to.lambda();
        assert!((total as f64 - mean).abs() < 4.0 * mean.sqrt(), "{total} is not {mean}");
    }

    #[test]
    fn large_numbers_are_what_is_expected() {
        let mut coins = Coins::of(1);
        assert_eq!(coins.thin(1 << 40, interval(1), interval(1 << 20)), 1 << 20);
        assert_eq!(coins.thin(7, interval(9), interval(9)), 7);
        assert_eq!(coins.words_hit(u64::MAX - 1, u64::MAX), words(u64::MAX));
    }
}
