//! Whether intervals hold the truth as often as they say.
//!
//! A simulated program allocates and frees, and counts what it does. The agent's own
//! countdown, tracker and books watch it ([`heaptop_agent::simulate`]); what they say
//! goes to the viewer's model as messages do; the figures are read as the screen reads
//! them. Nothing of what is judged is written here anew.
//!
//! ```text
//! program ─► simulate::Target ─► messages ─► Session ─► query ─► claim ┐
//!    └──────────────────── truth ──────────────────────────────────────┴─► cell ─► table
//! ```
//!
//! A **cell** is one size mix under one condition with so many expected samples; it
//! yields one share for every figure. **Expected samples** are those behind the bytes
//! allocated in the window that figures look at; the other figures' windows are cut so
//! that they rest on about as many. Where R changes, a sample of the coarse seconds
//! stands for ten of the fine ones: then expected are (Σw)²/Σw², the samples of one R
//! that would tell as much.
//!
//! **What is demanded.** From 30 expected samples on the truth lies inside of 93 to
//! 97 % of the intervals; below in at least 93 %, without an upper bound, since counts
//! are whole and the smallest interval that is sure to do is often too wide. One-sided
//! bounds may be better than they say.

pub mod cell;
pub mod claim;
pub mod figures;
pub mod program;
pub mod random;
pub mod table;

use cell::Outcome;
use program::{Condition, Mix};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a cell where nothing else is asked for.
pub const RUNS: u32 = 4000;

/// Expected samples of the columns.
pub const EXPECTED: [u32; 4] = [3, 10, 30, 300];

/// What is simulated in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Sizes of blocks.
    pub mix: Mix,
    /// R and threads.
    pub condition: Condition,
    /// Expected samples.
    pub expected: u32,
}

impl Shape {
    /// All of the table.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for mix in Mix::ALL {
            for condition in Condition::ALL {
                all.extend(EXPECTED.map(|expected| Self { mix, condition, expected }));
            }
        }
        all
    }

    /// A seed of its own for each.
    #[must_use]
    pub fn seed(&self, seed: u64) -> u64 {
        let place =
            (self.mix as u64) << 16 | (self.condition as u64) << 12 | u64::from(self.expected);
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(place.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }
}

/// Runs cells on all cores; `None` where the system has no memory for their agents.
#[must_use]
pub fn run(mut shapes: Vec<Shape>, runs: u32, seed: u64) -> Option<Vec<Outcome>> {
    let order = shapes.clone();
    // The longest first, so that no core waits for the others at the end.
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.expected));
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(shape) = shapes.get(next.fetch_add(1, Relaxed)) {
                    let Some(outcome) = cell::run(*shape, runs, seed) else { return };
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().ok()?;
    outcomes.sort_by_key(|outcome| order.iter().position(|shape| *shape == outcome.shape));
    (outcomes.len() == order.len()).then_some(outcomes)
}
