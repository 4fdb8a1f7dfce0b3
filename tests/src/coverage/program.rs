//! The simulated program, and what is true of it.
//!
//! It allocates at an even pace for [`SECONDS`] seconds. Half of its blocks are
//! garbage, gone after 0.3 s on average, some live for 8 s, and a third all but stays:
//! churn, caches and a leak. Large blocks stay more often than small ones. So in use,
//! at the end, is about as much as it allocates in the ten seconds of a window.
//!
//! All of it is drawn before it runs, so that any truth can be added up: what lives
//! when, how long each lives in time and on the allocation clock.

use super::Shape;
use super::random::Random;
use heaptop_protocol::estimate::Interval;

/// R, or the coarser of two.
pub const R: u64 = 1 << 20;
/// Mean size of a block: 300 samples are of some 10,000 blocks.
const MEAN_BYTES: f64 = R as f64 / 32.0;
/// The largest block that is born young.
pub const MAX_YOUNG_BYTES: u64 = R / 2;
/// How long it runs.
pub const SECONDS: usize = 26;
/// Seconds of a window.
pub const WINDOW: usize = 10;

/// Sizes of blocks, with a mean of R/32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// All alike.
    Fixed,
    /// Log-normal, σ = 1.5: one in fifty is larger than ten times the mean.
    LogNormal,
    /// Pareto with tail 1.2: of infinite variance, so that a few blocks hold most bytes.
    Pareto,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::LogNormal, Self::Pareto];

    fn draw(self, random: &mut Random) -> u32 {
        let size = match self {
            Self::Fixed => MEAN_BYTES,
            Self::LogNormal => MEAN_BYTES * (1.5 * random.normal() - 1.125).exp(),
            Self::Pareto => MEAN_BYTES / 6.0 * random.unit().powf(-1.0 / 1.2),
        };
        // 1 GiB: a thousand R, which no sampling misses.
        size.clamp(16.0, f64::from(1 << 30)) as u32
    }
}

/// R and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// One R, one thread.
    Plain,
    /// R changes tenfold every second.
    Changing,
    /// Four threads, 70, 20, 8 and 2 % of the blocks; a third is freed by another.
    Threads,
    /// Both.
    Both,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Changing, Self::Threads, Self::Both];

    const fn changes(self) -> bool {
        matches!(self, Self::Changing | Self::Both)
    }

    const fn threads(self) -> bool {
        matches!(self, Self::Threads | Self::Both)
    }

    /// By how much R is finer once the finer agent was thinned: so that as many samples
    /// are left as are expected.
    #[must_use]
    pub const fn thinned_to(self) -> u64 {
        if self.changes() { 2 } else { 1 }
    }

    /// Whether figures on the allocation clock are widened by its blur.
    #[must_use]
    pub const fn is_blurred(self) -> bool {
        self.threads()
    }

    /// By how much R is finer in a second.
    #[must_use]
    pub const fn finer(self, second: usize) -> u64 {
        if self.changes() && second % 2 == 1 { 10 } else { 1 }
    }
}

/// One block.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Bytes.
    pub size: u32,
    /// Number of the thread that allocates it.
    pub by: u8,
    /// And of the one that frees it.
    pub freed_by: u8,
    /// It dies before the block of this number is allocated.
    pub dies_before: u32,
    /// When it is born, in nanoseconds.
    pub born_ns: u64,
    /// When it dies.
    pub dies_ns: u64,
}

/// What a run is made of, from one to the next.
#[derive(Debug, Clone)]
pub struct Program {
    /// Blocks in order of birth.
    pub blocks: Vec<Block>,
    /// Bytes allocated before each block, and in all.
    pub clock: Vec<u64>,
    shape: Shape,
    blocks_a_second: f64,
}

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

impl Program {
    /// One of this shape, with nothing in it yet.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        // How many blocks give the expected samples: by the mix alone, from a sample
        // of it that is the same for all runs.
        let mut random = Random(shape.mix as u64);
        let n = 200_000;
        let (mut seen, mut bytes) = (0.0, 0.0);
        for _ in 0..n {
            let size = shape.mix.draw(&mut random);
            for second in 0..2 {
                let finer = shape.condition.finer(second);
                seen += interval(finer).inclusion(u64::from(size)) / 2.0;
            }
            bytes += f64::from(size);
        }
        debug_assert!(bytes > 0.0);
        // Half of the bytes each: (Σw)²/Σw² of 1 sample of weight 10 and 10 of weight 1.
        let telling = if shape.condition.changes() { 20.0 * 20.0 / (110.0 * 11.0) } else { 1.0 };
        let a_block = seen / f64::from(n) * telling;
        let blocks_a_second = f64::from(shape.expected) / WINDOW as f64 / a_block;
        Self { blocks: Vec::new(), clock: Vec::new(), shape, blocks_a_second }
    }

    /// N: what it allocates in a second, about.
    #[must_use]
    pub fn nursery_bytes(&self) -> u64 {
        (self.blocks_a_second * MEAN_BYTES) as u64
    }

    /// The number of the first block that is born at `second` or later.
    #[must_use]
    pub fn at_second(&self, second: usize) -> usize {
        (second as f64 * self.blocks_a_second).ceil() as usize
    }

    /// Draws another run.
    pub fn draw(&mut self, random: &mut Random) {
        let n = self.at_second(SECONDS);
        self.blocks.clear();
        self.clock.clear();
        let mut clock = 0;
        for i in 0..n {
            let size = self.shape.mix.draw(random);
            let born = i as f64 / self.blocks_a_second;
            let dies = born + life(f64::from(size), random);
            let dies_before = ((dies * self.blocks_a_second).ceil() as u32).max(i as u32 + 1);
            let by = self.thread(random);
            let freed_by = if random.unit() < 1.0 / 3.0 { self.thread(random) } else { by };
            let ns = |seconds: f64| (seconds * SECOND_NS as f64) as u64;
            let (born_ns, dies_ns) = (ns(born), ns(dies));
            self.clock.push(clock);
            clock += u64::from(size);
            self.blocks.push(Block { size, by, freed_by, dies_before, born_ns, dies_ns });
        }
        self.clock.push(clock);
    }

    fn thread(&self, random: &mut Random) -> u8 {
        if !self.shape.condition.threads() {
            return 0;
        }
        let at = random.unit();
        [0.7, 0.9, 0.98].iter().filter(|share| at > **share).count() as u8
    }

    /// How long a block lives on the allocation clock, at most to the end of the run.
    #[must_use]
    pub fn life_bytes(&self, block: usize) -> u64 {
        let end = (self.blocks[block].dies_before as usize).min(self.blocks.len());
        self.clock[end] - self.clock[block]
    }

    /// Sums over the blocks from one number to another.
    pub fn sum(&self, blocks: std::ops::Range<usize>, of: impl Fn(usize, &Block) -> f64) -> f64 {
        blocks.map(|i| of(i, &self.blocks[i])).sum()
    }
}

/// The interval in force where R is so many times finer.
#[must_use]
pub fn interval(finer: u64) -> Interval {
    Interval::new(R / finer).unwrap_or(Interval::DEFAULT)
}

/// How long a block of `size` bytes lives, in seconds.
fn life(size: f64, random: &mut Random) -> f64 {
    let stays = if size > MEAN_BYTES { 0.45 } else { 0.35 };
    let kind = random.unit();
    if kind < stays {
        random.exponential(200.0)
    } else if kind < stays + 0.15 {
        random.exponential(8.0)
    } else {
        random.exponential(0.3)
    }
}
