//! Lives side by side in memory.

use super::Life;
use super::intervals::Intervals;
use super::packed::{Base, CLOCK_SHIFT, MANY_SAMPLES, Packed};

/// Lives of a chunk.
pub const ROOM: usize = 1 << 16;

/// Up to [`ROOM`] lives.
#[derive(Debug)]
pub struct Chunk {
    base: Base,
    lives: Vec<Packed>,
    /// Sizes of 4 GiB and more.
    large: Vec<u64>,
    last_end_us: u64,
    first_birth_us: u64,
}

impl Chunk {
    /// An empty chunk that takes `life` and those about as late.
    pub fn beginning_with(life: &Life) -> Self {
        Self {
            base: Base { us: life.ended_us, clock: life.born_clock >> CLOCK_SHIFT },
            lives: Vec::with_capacity(ROOM),
            large: Vec::new(),
            last_end_us: 0,
            first_birth_us: u64::MAX,
        }
    }

    /// Whether there is room for a life.
    pub fn takes(&self, life: &Life) -> bool {
        self.lives.len() < ROOM && self.base.reaches(life)
    }

    /// A life that it takes, with the place of its R.
    pub fn push(&mut self, life: &Life, interval: u8) {
        let (size, large) = if let Ok(size) = u32::try_from(life.size) {
            (size, false)
        } else {
            self.large.push(life.size);
            (self.large.len() as u32 - 1, true)
        };
        self.last_end_us = self.last_end_us.max(life.ended_us);
        let packed = Packed::new(life, self.base, interval, size, large);
        self.first_birth_us = self.first_birth_us.min(packed.born_us(self.base));
        self.lives.push(packed);
    }

    /// Nothing in it ended later.
    pub const fn last_end_us(&self) -> u64 {
        self.last_end_us
    }

    /// Nothing in it was born earlier.
    pub const fn first_birth_us(&self) -> u64 {
        self.first_birth_us
    }

    /// Those of wanted callstacks that ended after one moment and were born until another.
    pub fn within<'a>(
        &'a self,
        intervals: &'a Intervals,
        ended_after_us: u64,
        born_until_us: u64,
        wanted: impl Fn(u32) -> bool + 'a,
    ) -> impl Iterator<Item = Life> + 'a {
        let base = self.base;
        let taken = move |packed: &&Packed| {
            wanted(packed.stack())
                && packed.ended_us(base) > ended_after_us
                && packed.born_us(base) <= born_until_us
        };
        self.lives.iter().filter(taken).map(move |packed| self.life(packed, intervals))
    }

    /// Those born after one moment and until another.
    pub fn born_within<'a>(
        &'a self,
        intervals: &'a Intervals,
        after_us: u64,
        until_us: u64,
    ) -> impl Iterator<Item = Life> + 'a {
        let base = self.base;
        let taken = move |packed: &&Packed| {
            let born_us = packed.born_us(base);
            after_us < born_us && born_us <= until_us
        };
        self.lives.iter().filter(taken).map(move |packed| self.life(packed, intervals))
    }

    /// Those of wanted callstacks in some places, which there are.
    pub fn of_places(
        &self,
        intervals: &Intervals,
        places: std::ops::Range<usize>,
        wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = Life> {
        let of_wanted = self.lives[places].iter().filter(move |packed| wanted(packed.stack()));
        of_wanted.map(move |packed| self.life(packed, intervals))
    }

    /// Those in some places, which there are.
    pub fn in_places<'a>(
        &'a self,
        intervals: &'a Intervals,
        places: std::ops::Range<usize>,
    ) -> impl Iterator<Item = Life> + 'a {
        self.lives[places].iter().map(move |packed| self.life(packed, intervals))
    }

    pub const fn len(&self) -> usize {
        self.lives.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// The lives.
    pub fn iter<'a>(&'a self, intervals: &'a Intervals) -> impl Iterator<Item = Life> + Clone + 'a {
        self.lives.iter().map(move |packed| self.life(packed, intervals))
    }

    #[inline]
    fn life(&self, packed: &Packed, intervals: &Intervals) -> Life {
        let mut life = packed.life(self.base);
        life.interval = intervals.at(packed.interval);
        if let Some(place) = packed.large() {
            life.size = self.large.get(place).copied().unwrap_or(u64::MAX);
        }
        if packed.samples == MANY_SAMPLES {
            let expected = life.size / u64::from(life.interval.bytes());
            life.n_samples = expected.max(u64::from(MANY_SAMPLES));
        }
        life
    }

    /// Forgets the first `n`, if there are so many, after showing them. How many it were.
    pub fn forget(&mut self, n: usize, list: &Intervals, mut see: impl FnMut(&Life)) -> usize {
        let n = n.min(self.lives.len());
        for packed in &self.lives[..n] {
            see(&self.life(packed, list));
        }
        self.lives.drain(..n);
        n
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.lives.capacity() * size_of::<Packed>() + self.large.capacity() * size_of::<u64>()
    }
}
