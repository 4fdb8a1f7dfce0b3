//! The word that tells all domains at what rate to sample.
//!
//! ```text
//! │ generation 30 │ profiled 1 │ on 1 │ R 32 │
//! ```
//!
//! R and `on` are the stream's; with `profiled` a domain asks whether a profile wants it
//! to run finer. Each change makes another generation, so that each thread notices.

use super::Rate;
use heaptop_protocol::estimate::Interval;

impl Rate {
    const ON: u64 = 1 << 32;
    const PROFILED: u64 = 1 << 33;
    const GENERATION: u64 = 1 << 34;

    /// A first word.
    pub const fn first(interval: Interval, on: bool) -> Self {
        Self::from_word(Self::GENERATION | if on { Self::ON } else { 0 } | interval.bytes() as u64)
    }

    /// The word that follows `word`: always another one, so that each thread
    /// notices the change.
    pub const fn following(word: u64, interval: Interval, on: bool) -> Self {
        let generation = (word / Self::GENERATION).wrapping_add(1) & (u32::MAX >> 2) as u64;
        let generation = if generation == 0 { 1 } else { generation };
        Self::from_word(
            (generation * Self::GENERATION)
                | (word & Self::PROFILED)
                | if on { Self::ON } else { 0 }
                | interval.bytes() as u64,
        )
    }

    /// The word that follows `word`, which says whether there are profiles.
    pub const fn following_profiled(word: u64, profiled: bool) -> Self {
        let next = Self::following(word, Self::configured(word), word & Self::ON != 0).word;
        Self::from_word(next & !Self::PROFILED | if profiled { Self::PROFILED } else { 0 })
    }

    /// Reads a word.
    pub const fn from_word(word: u64) -> Self {
        let interval = if word & Self::ON == 0 { None } else { Interval::new(word as u32 as u64) };
        Self { word, interval }
    }

    /// Whether there are profiles.
    #[inline]
    pub const fn is_profiled(&self) -> bool {
        self.word & Self::PROFILED != 0
    }

    /// The same word for a domain that is to sample at `interval`.
    pub const fn at(&self, interval: Interval) -> Self {
        let generation = self.word & !(u32::MAX as u64);
        Self::from_word(generation | Self::ON | interval.bytes() as u64)
    }

    /// R of a word, also while nothing is sampled.
    pub const fn configured(word: u64) -> Interval {
        match Interval::new(word as u32 as u64) {
            Some(interval) => interval,
            None => Interval::DEFAULT,
        }
    }
}
