//! The lives of sampled blocks that are over: what looks back needs them.
//!
//! What was in use at a moment of the past, growth between two times and the survival
//! curve on the allocation clock need when each block was born and when it died. Totals
//! cannot tell that.
//!
//! **Packed.** A life takes 27 bytes ([`packed`]), in chunks of 65,536 that are never
//! copied as a whole ([`chunk`]). So an hour at 2,000 samples a second, 7.2 million
//! lives, is 195 MB. What is given up for it:
//!
//! | of a life | is known |
//! |---|---|
//! | its number and address | not |
//! | birth and end | to the microsecond, rounded down; a life of more than 12.7 days is taken to have begun 12.7 days before its end |
//! | its age, in time and on the allocation clock | as a bucket of the survival curve, eight an octave: all that curves use |
//! | G before its birth | in units of 4 KiB, rounded down; births of more than 8 TiB of allocation ago as that |
//! | G at its end | not, beyond the age |
//! | when it was first seen, if that was not its birth | as the first snapshot after its birth |
//! | samples in it | up to 254; more of them, which can never all be thinned away, as size ÷ R |
//! | the thread that freed it | as whether it was another than the one that had allocated it |
//! | threads | 65,534 of them; the others as one |
//!
//! R takes a byte: an index into a list of 255. One for which there is no room is
//! rounded up to the next power of two, for which there always is, and the life is
//! thinned to it.
//!
//! **Bounded.** When there are [`MOST`], the store is thinned: each life keeps each of
//! its samples with chance ½ and its R is doubled; who has no sample left goes. What
//! remains stands for more, and estimates stay unbiased (as the agent thins at its
//! memory bound). Those that come later are thinned as often when they come. The coins
//! are hashes of the life alone: the same lives make the same store. (Lives that are
//! alike in all that is kept share their coins. They would have to be of the same
//! callstack, size and microsecond: at intervals of 16 KiB and more there are none.)
//!
//! Once R cannot be doubled any more the older half goes, and [`Lives::since`] moves:
//! what was before is not known, and who was alive then enters late.

mod chunk;
mod coins;
mod intervals;
mod packed;
#[cfg(test)]
mod tests;

use super::blocks::Block;
use super::estimate::survival::bucket;
use chunk::Chunk;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::{Cause, Dealloc, Moment};
use heaptop_protocol::ids::ThreadId;
use intervals::Intervals;
use std::collections::VecDeque;

/// Most chunks of lives, as long as they follow each other in time.
pub const MOST_CHUNKS: usize = 90;
/// Most lives that are kept: 160 MB, 49 minutes of 2,000 samples a second before the
/// first thinning.
pub const MOST: usize = MOST_CHUNKS * chunk::ROOM;
/// Most beginnings of snapshots that are remembered; then every second one goes, and who
/// was listed by it is taken to have been seen by the next.
const MOST_BEGINNINGS: usize = 4096;

/// How a life went out of sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It died by the hand of the thread that had allocated it.
    Freed,
    /// It died by the hand of another.
    FreedElsewhere,
    /// It died unseen, about then.
    Unseen,
    /// It was lost sight of, alive as far as is known.
    Lost,
}

impl End {
    /// Whether it is known to be dead.
    #[must_use]
    pub const fn is_death(self) -> bool {
        !matches!(self, Self::Lost)
    }
}

/// One life, as far as it is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Life {
    /// Its birth, in microseconds since the agent's start.
    pub born_us: u64,
    /// Its end.
    pub ended_us: u64,
    /// Bucket of its age in nanoseconds, of the survival curve.
    pub age: u16,
    /// G before its birth, in bytes.
    pub born_clock: u64,
    /// Bucket of its age in bytes of allocation.
    pub clock_age: u16,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in it that were kept.
    pub n_samples: u64,
    /// R that it stands for.
    pub interval: Interval,
    /// Its callstack's place in the session.
    pub stack: u32,
    /// The thread that allocated it.
    pub thread: ThreadId,
    /// How it came to be.
    pub cause: Cause,
    /// Whether it was born in the nursery.
    pub born_young: bool,
    /// Whether it was promoted.
    pub promoted: bool,
    /// Whether it was first seen in a snapshot, after its birth.
    pub listed: bool,
    /// How it ended.
    pub end: End,
}

impl Life {
    /// A block's life, dead at `death`.
    #[must_use]
    pub fn freed(block: &Block, death: &Dealloc) -> Self {
        let end = if death.thread == block.thread { End::Freed } else { End::FreedElsewhere };
        let promoted = block.born_young && !death.young;
        Self { promoted, ..Self::ended(block, death.at.time_ns, death.at.clock, end) }
    }

    /// A block's life, ended otherwise.
    #[must_use]
    pub fn ended(block: &Block, ended_ns: u64, ended_clock: u64, end: End) -> Self {
        Self {
            born_us: block.born_ns / 1000,
            ended_us: ended_ns.max(block.born_ns) / 1000,
            age: bucket(ended_ns.saturating_sub(block.born_ns)),
            born_clock: block.born_clock,
            clock_age: bucket(ended_clock.saturating_sub(block.born_clock)),
            size: block.size,
            n_samples: block.n_samples,
            interval: block.interval,
            stack: block.stack,
            thread: block.thread,
            cause: block.cause,
            born_young: block.born_young,
            promoted: block.born_young && !block.young,
            listed: block.listed,
            end,
        }
    }

    /// What it stands for.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.interval.weight(self.size)
    }

    /// Keeps each sample with chance ½; whether there is one left. Where R cannot be
    /// doubled it stays as it is: every life knows the R that it stands for.
    fn halve(&mut self) -> bool {
        match Interval::new(u64::from(self.interval.bytes()) * 2) {
            Some(coarser) => self.thin_to(coarser),
            None => true,
        }
    }

    /// Keeps each sample with the ratio of its R to `coarser`.
    fn thin_to(&mut self, coarser: Interval) -> bool {
        let seed = self.seed() ^ u64::from(coarser.bytes()).rotate_left(32);
        self.n_samples = coins::keep(self.n_samples, self.interval, coarser, seed);
        self.interval = coarser;
        self.n_samples > 0
    }

    fn seed(&self) -> u64 {
        let parts = [
            self.ended_us,
            self.born_us,
            self.born_clock >> packed::CLOCK_SHIFT,
            self.size,
            u64::from(self.stack) << 32 | u64::from(self.age) << 16 | u64::from(self.clock_age),
            u64::from(self.thread.0),
        ];
        parts.iter().fold(0, |seed, part| coins::mix(seed ^ part))
    }
}

/// A place among lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// How many chunks are before it,
    pub chunk: usize,
    /// and how many lives of its own.
    pub life: usize,
}

/// Lives that are over, in order of their ends but for those that ended unseen.
#[derive(Debug)]
pub struct Lives {
    chunks: VecDeque<Chunk>,
    intervals: Intervals,
    len: usize,
    most: usize,
    halvings: u32,
    since: Option<Moment>,
    beginnings: Vec<Moment>,
    revision: u64,
    rewritten: u64,
}

impl Default for Lives {
    fn default() -> Self {
        Self::with_room(MOST)
    }
}

impl Lives {
    /// An empty store of at most `most` lives.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            intervals: Intervals::default(),
            len: 0,
            most,
            halvings: 0,
            since: None,
            beginnings: Vec::new(),
            revision: 0,
            rewritten: 0,
        }
    }

    /// A snapshot begins. From the first on all deaths come here.
    pub fn begin(&mut self, moment: Moment) {
        self.since.get_or_insert(moment);
        if self.beginnings.len() >= MOST_BEGINNINGS {
            let mut keep = false;
            // Who was listed by one that goes was first seen by the next, from now on.
            self.rewritten += 1;
            self.beginnings.retain(|_| {
                keep = !keep;
                keep
            });
        }
        // Of moments out of order the later one stands: a broken peer's.
        let last = self.beginnings.last().map_or(0, |last| last.time_ns);
        self.beginnings.push(Moment { time_ns: moment.time_ns.max(last), ..moment });
    }

    /// From when on all lives are here, or stand for those that are not.
    #[must_use]
    pub const fn since(&self) -> Option<Moment> {
        self.since
    }

    /// When a block was first seen that was listed by a snapshot after its birth; `None`
    /// where it was its birth that was seen.
    #[must_use]
    pub fn first_seen(&self, listed: bool, born_us: u64) -> Option<Moment> {
        if !listed {
            return None;
        }
        let at = self.beginnings.partition_point(|begin| begin.time_ns / 1000 <= born_us);
        self.beginnings.get(at).copied()
    }

    /// How often the store was thinned.
    #[must_use]
    pub const fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Changes when what is told of the past may have changed otherwise than by lives
    /// that end now.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The largest R that any life stands for.
    #[must_use]
    pub fn coarsest(&self) -> Option<Interval> {
        self.intervals.coarsest()
    }

    /// A life is over.
    pub fn add(&mut self, life: &Life) {
        let mut life = *life;
        if matches!(life.end, End::Unseen | End::Lost) {
            self.revision += 1;
        }
        if (0..self.halvings).all(|_| life.halve()) {
            self.put(life);
        }
        if self.len > self.most {
            self.make_room();
        }
    }

    /// Thins until a quarter is free. Lives of many samples, as at R = 1, need several
    /// halvings before the first of them goes.
    fn make_room(&mut self) {
        let enough = self.most - self.most / 4;
        while self.len > enough {
            if self.intervals.all_coarse() {
                self.forget(self.len / 2);
            } else {
                self.halvings += 1;
                self.thin();
            }
        }
    }

    fn put(&mut self, mut life: Life) {
        let (index, interval) = self.intervals.index(life.interval);
        if interval != life.interval && !life.thin_to(interval) {
            return;
        }
        if !self.chunks.back().is_some_and(|last| last.takes(&life)) {
            self.chunks.push_back(Chunk::beginning_with(&life));
        }
        if let Some(last) = self.chunks.back_mut() {
            last.push(&life, index);
            self.len += 1;
        }
    }

    /// Doubles every R. Chunks are filled anew, each old one freed when it was read.
    fn thin(&mut self) {
        self.revision += 1;
        self.rewritten += 1;
        self.len = 0;
        let intervals = std::mem::take(&mut self.intervals);
        for chunk in std::mem::take(&mut self.chunks) {
            for mut life in chunk.iter(&intervals) {
                if life.halve() {
                    self.put(life);
                }
            }
        }
    }

    /// The first `n` are forgotten, and that there ever was such a time.
    fn forget(&mut self, mut n: usize) {
        self.revision += 1;
        self.rewritten += 1;
        let mut ended_us = 0;
        let mut clock = 0;
        while n > 0 {
            let Some(first) = self.chunks.front_mut() else { break };
            let gone = first.forget(n, &self.intervals, |life| {
                ended_us = ended_us.max(life.ended_us);
                // G at the end is known to its bucket: the end of it is safe.
                let age = super::estimate::survival::begins(usize::from(life.clock_age) + 1);
                clock = clock.max(life.born_clock.saturating_add(age as u64));
            });
            n -= gone;
            self.len -= gone;
            if first.is_empty() {
                self.chunks.pop_front();
            } else if gone == 0 {
                break;
            }
        }
        if let Some(since) = &mut self.since {
            since.time_ns = since.time_ns.max((ended_us + 1).saturating_mul(1000));
            since.clock = since.clock.max(clock);
        }
    }

    /// How many are kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The lives that are over.
    pub fn iter(&self) -> impl Iterator<Item = Life> + Clone + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter(&self.intervals))
    }

    /// Those that ended after one moment and were born until another, in microseconds
    /// since the agent's start, but for the first chunks.
    pub fn within(
        &self,
        chunks: usize,
        ended_after_us: u64,
        born_until_us: u64,
    ) -> impl Iterator<Item = Life> + '_ {
        self.of_within(chunks, ended_after_us, born_until_us, |_| true)
    }

    /// Those born after one moment and until another, in microseconds since the agent's start.
    /// Of the others no life is unpacked.
    pub fn born_within(&self, after_us: u64, until_us: u64) -> impl Iterator<Item = Life> + '_ {
        let chunks = self.chunks.iter().filter(move |chunk| {
            chunk.last_end_us() >= after_us && chunk.first_birth_us() <= until_us
        });
        chunks.flat_map(move |chunk| chunk.born_within(&self.intervals, after_us, until_us))
    }

    /// The same of the callstacks that are wanted. Of the others no life is unpacked.
    pub fn of_within<'a>(
        &'a self,
        chunks: usize,
        ended_after_us: u64,
        born_until_us: u64,
        wanted: impl Fn(u32) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = Life> + 'a {
        let rest = self.chunks.range(chunks.min(self.chunks.len())..);
        rest.filter(move |chunk| {
            chunk.last_end_us() > ended_after_us && chunk.first_birth_us() <= born_until_us
        })
        .flat_map(move |chunk| chunk.within(&self.intervals, ended_after_us, born_until_us, wanted))
    }

    /// At most `most` lives from a place on, all of one chunk, and the place behind them;
    /// none where it is the last. What stands before a place stays what it is as long as
    /// [`Self::rewritten`] does.
    pub fn from_place(
        &self,
        place: Place,
        most: usize,
    ) -> (impl Iterator<Item = Life> + '_, Place) {
        let chunk = self.chunks.get(place.chunk);
        let len = chunk.map_or(0, Chunk::len);
        let until = place.life.saturating_add(most).min(len);
        // All chunks but the last are full.
        let end = if until == len && place.chunk + 1 < self.chunks.len() {
            Place { chunk: place.chunk + 1, life: 0 }
        } else {
            Place { life: until, ..place }
        };
        let lives = chunk
            .into_iter()
            .flat_map(move |chunk| chunk.in_places(&self.intervals, place.life.min(until)..until));
        (lives, end)
    }

    /// Shows at most `most` lives from a place on, one after the other, and moves the place
    /// behind them. How many of `most` are left: none, or there were no more.
    pub fn go_on(&self, place: &mut Place, most: usize, mut see: impl FnMut(&Life)) -> usize {
        let mut left = most;
        while left > 0 {
            let (lives, end) = self.from_place(*place, left);
            if std::mem::replace(place, end) == end {
                break;
            }
            for life in lives {
                left = left.saturating_sub(1);
                see(&life);
            }
        }
        left
    }

    /// All lives of wanted callstacks from a place on that are in its chunk, and the place
    /// behind them, as [`Self::from_place`] has it.
    pub fn of_from_place(
        &self,
        place: Place,
        wanted: impl Fn(u32) -> bool,
    ) -> (impl Iterator<Item = Life>, Place) {
        let (_, end) = self.from_place(place, usize::MAX);
        let lives = self.chunks.get(place.chunk).into_iter().flat_map(move |chunk| {
            let until = if end.chunk > place.chunk { chunk.len() } else { end.life };
            chunk
                .of_places(&self.intervals, place.life.min(until)..until, &wanted)
                .collect::<Vec<_>>()
        });
        (lives, end)
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// How many lives there are behind the first chunks.
    #[must_use]
    pub fn behind(&self, chunks: usize) -> usize {
        let rest = self.chunks.range(chunks.min(self.chunks.len())..);
        rest.map(Chunk::len).sum()
    }

    /// Whether anything in a chunk ended after one moment and was born until another. The last
    /// one goes on, so nobody knows.
    #[must_use]
    pub fn is_within(&self, chunk: usize, ended_after_us: u64, born_until_us: u64) -> bool {
        chunk + 1 >= self.chunks.len()
            || self.chunks[chunk].last_end_us() > ended_after_us
                && self.chunks[chunk].first_birth_us() <= born_until_us
    }

    /// Changes when lives have changed that were there, or when they were first seen: else
    /// lives are added behind the last alone.
    #[must_use]
    pub const fn rewritten(&self) -> u64 {
        self.rewritten
    }

    /// Bytes that the store takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Chunk::bytes).sum::<usize>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.beginnings.capacity() * size_of::<Moment>()
    }
}
