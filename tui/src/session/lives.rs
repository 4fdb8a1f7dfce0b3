//! The lives of sampled blocks that are over: what looks back needs them.
//!
//! Growth between two times needs who died in between, and the survival curve on the
//! allocation clock needs how long each lived. Totals cannot tell either.
//!
//! **Bounded.** When there are [`MOST`], the store is thinned: each life keeps each of
//! its samples with chance ½ and its R is doubled; who has no sample left goes. What
//! remains stands for more, and estimates stay unbiased (as the agent thins at its
//! memory bound). Those that come later are thinned as often when they come. The coins
//! are hashes of the block's number: the same messages make the same store.
//!
//! Once R cannot be doubled any more the older half goes, and [`Lives::since`] moves:
//! what was before is not known, and who was alive then enters late.

use super::blocks::Block;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::event::{Dealloc, Moment};
use heaptop_protocol::ids::BlockId;

/// Most lives that are kept: 40 MB, four minutes of 2,000 samples a second before the
/// first thinning.
pub const MOST: usize = 1 << 19;

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

/// One life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Life {
    /// Which block.
    pub id: BlockId,
    /// Its birth, in nanoseconds since the agent's start.
    pub born_ns: u64,
    /// Its end.
    pub ended_ns: u64,
    /// G before its birth.
    pub born_clock: u64,
    /// G when it was first seen here: its birth, or the snapshot that listed it.
    pub seen_clock: u64,
    /// G at its end.
    pub ended_clock: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in it that were kept.
    pub n_samples: u64,
    /// R that it stands for.
    pub interval: Interval,
    /// Its callstack's place in the session.
    pub stack: u32,
    /// How it ended.
    pub end: End,
}

impl Life {
    /// A block's life, dead at `death`.
    #[must_use]
    pub fn freed(block: &Block, death: &Dealloc) -> Self {
        let end = if death.thread == block.thread { End::Freed } else { End::FreedElsewhere };
        Self::ended(death.id, block, death.at.time_ns, death.at.clock, end)
    }

    /// A block's life, ended otherwise.
    #[must_use]
    pub fn ended(id: BlockId, block: &Block, ended_ns: u64, ended_clock: u64, end: End) -> Self {
        Self {
            id,
            born_ns: block.born_ns,
            ended_ns,
            born_clock: block.born_clock,
            seen_clock: block.seen_clock,
            ended_clock,
            size: block.size,
            n_samples: block.n_samples,
            interval: block.interval,
            stack: block.stack,
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
    fn thin(&mut self) -> bool {
        if let Some(interval) = Interval::new(u64::from(self.interval.bytes()) * 2) {
            let seed = self.id.0 ^ u64::from(interval.bytes()).rotate_left(32);
            self.n_samples = heads(self.n_samples, seed);
            self.interval = interval;
        }
        self.n_samples > 0
    }
}

/// How many of `n` coins, thrown from `seed`, show heads. From 4,096 coins on it is
/// half of them: no such life is ever left without a sample, and that is all that
/// matters.
fn heads(n: u64, seed: u64) -> u64 {
    const EXACT: u64 = 1 << 12;
    if n >= EXACT {
        return n / 2;
    }
    // splitmix64, 64 coins a number.
    let mut state = seed;
    let word = |state: &mut u64| {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let whole: u64 = (0..n / 64).map(|_| u64::from(word(&mut state).count_ones())).sum();
    let mask = (1u64 << (n % 64)) - 1;
    whole + u64::from((word(&mut state) & mask).count_ones())
}

/// Lives that are over, in order of their ends but for those that ended unseen.
#[derive(Debug)]
pub struct Lives {
    over: Vec<Life>,
    most: usize,
    halvings: u32,
    since: Option<Moment>,
}

impl Default for Lives {
    fn default() -> Self {
        Self::with_room(MOST)
    }
}

impl Lives {
    /// An empty store of at most `most` lives.
    #[must_use]
    pub const fn with_room(most: usize) -> Self {
        Self { over: Vec::new(), most, halvings: 0, since: None }
    }

    /// From `moment` on all deaths come here; only the first call counts.
    pub fn begin(&mut self, moment: Moment) {
        self.since.get_or_insert(moment);
    }

    /// From when on all lives are here, or stand for those that are not.
    #[must_use]
    pub const fn since(&self) -> Option<Moment> {
        self.since
    }

    /// How often the store was thinned.
    #[must_use]
    pub const fn halvings(&self) -> u32 {
        self.halvings
    }

    /// A life is over.
    pub fn add(&mut self, life: &Life) {
        let mut life = *life;
        if (0..self.halvings).all(|_| life.thin()) {
            self.over.push(life);
        }
        if self.over.len() > self.most {
            self.halvings += 1;
            self.over.retain_mut(Life::thin);
            if self.over.len() > self.most - self.most / 4 {
                self.forget(self.over.len() / 2);
            }
        }
    }

    /// The first `n` are forgotten, and that there ever was such a time.
    fn forget(&mut self, n: usize) {
        let Some(mut since) = self.since else { return self.over.clear() };
        for life in self.over.drain(..n) {
            since.time_ns = since.time_ns.max(life.ended_ns);
            since.clock = since.clock.max(life.ended_clock);
        }
        self.since = Some(since);
    }

    /// The lives that are over.
    #[must_use]
    pub fn over(&self) -> &[Life] {
        &self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(id: u64, size: u64, r: u64) -> Life {
        let interval = Interval::new(r).unwrap();
        Life {
            id: BlockId(id),
            born_ns: 0,
            ended_ns: id,
            born_clock: 0,
            seen_clock: 0,
            ended_clock: id,
            size,
            n_samples: 1 + size / r,
            interval,
            stack: 0,
            end: End::Freed,
        }
    }

    fn store(most: usize) -> Lives {
        let mut lives = Lives::with_room(most);
        lives.begin(Moment { seq: 0, time_ns: 0, clock: 0 });
        lives
    }

    /// 100,000 small lives in a store for 4,096: what is left still stands for all.
    #[test]
    fn thinned_lives_stand_for_those_that_went() {
        let mut lives = store(1 << 12);
        let (n, r) = (100_000u64, 1 << 16);
        for id in 0..n {
            lives.add(&life(id, 64, r));
        }
        assert!(lives.over().len() <= 1 << 12 && lives.over().len() > 1 << 10);
        assert!(lives.halvings() >= 5);
        assert_eq!(lives.since().unwrap().clock, 0, "nothing was forgotten");
        let sum: f64 = lives.over().iter().map(|life| life.weight().bytes).sum();
        let truth = n as f64 * Interval::new(r).unwrap().weight(64).bytes;
        let sigma = truth / (lives.over().len() as f64).sqrt();
        assert!((sum - truth).abs() < 4.0 * sigma, "{sum} is not {truth}");
        // Early and late ones are left alike.
        let early = lives.over().iter().filter(|life| life.id.0 < n / 2).count() as f64;
        let all = lives.over().len() as f64;
        assert!((early - all / 2.0).abs() < 4.0 * (all / 4.0).sqrt(), "{early} of {all}");
    }

    #[test]
    fn lives_of_many_samples_stay() {
        let mut lives = store(1 << 8);
        for id in 0..1000 {
            lives.add(&life(id, 64, 1 << 16));
        }
        let mut large = store(1 << 8);
        large.halvings = lives.halvings;
        large.add(&life(7, 1 << 26, 1 << 16));
        let [life] = large.over() else { panic!("1,025 samples cannot all go") };
        assert!(u64::from(life.interval.bytes()) == (1 << 16) << lives.halvings);
    }

    #[test]
    fn where_r_cannot_be_doubled_the_older_half_goes() {
        let mut lives = store(100);
        for id in 0..1000 {
            lives.add(&life(id, 64, (1 << 32) - 1));
        }
        assert!(lives.over().len() <= 100);
        assert_eq!(lives.since().unwrap().clock, lives.over()[0].id.0 - 1);
        assert_eq!(lives.over().last().unwrap().id, BlockId(999));
    }

    #[test]
    fn coins_are_fair() {
        for n in [1u64, 5, 64, 100, 4000] {
            let trials = 20_000u64;
            let sum: u64 = (0..trials).map(|seed| heads(n, seed << 8)).sum();
            let (mean, sigma) = ((trials * n) as f64 / 2.0, ((trials * n) as f64 / 4.0).sqrt());
            assert!((sum as f64 - mean).abs() < 4.0 * sigma, "{n}: {sum}");
        }
        assert_eq!(heads(0, 9), 0);
        assert_eq!(heads(1 << 40, 9), 1 << 39);
    }
}
