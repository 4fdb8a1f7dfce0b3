//! `heaptop demo --prove`: do the intervals hold the truth?
//!
//! ```text
//!             ┌─► heaptop-demo --proof, R = 1 ─► counters ── equal? ──┐
//! fixed work ─┤            └ agent ─socket─► Link ─► Session ─► query ┴─► truth
//!             ├─► the same, sampled ──────────────── Link … query ─► estimates ─► hit or miss
//!             └─► the same, sampled, another seed …
//! ```
//!
//! 1. **The truth** of bytes and objects are the program's own counters, which
//!    know nothing of the agent. Which bytes were promoted only the runtime of a
//!    nursery can know: there the truth is the run at R = 1, whose other figures
//!    must equal the counters, one by one. It is known but for the blocks of the
//!    tick in which the nursery turns, which differ from run to run: by a hundredth
//!    of what is shown, far less than sampling leaves open.
//! 2. **The work** is the same in every run, block by block (`heaptop-demo`'s
//!    `proof`), and so is the phase of the nursery; the counters of all runs are
//!    compared. So runs differ in R and in the seed of the sampler alone.
//! 3. **The estimates** take the way to the screen: agent, socket, [`Link`],
//!    [`Session`](crate::session::Session), [`query`](crate::query). Nothing is computed here but comparisons.
//! 4. **As printed**: truth, estimate and interval are rounded to what is
//!    printed, and then compared. Who reads the table can check each verdict.
//! 5. **The seed** is a new one each time, and printed. So misses come, as they
//!    must: an interval that never missed would not be one of 95 %.
//!
//! [`Link`]: crate::source::Link

mod compare;
mod read;
mod table;
mod truth;

use std::io::{self, Write};
use std::time::Duration;

use heaptop_protocol::estimate::Interval;

use crate::source::demo::Demo;
use crate::view::format;
use compare::Outcome;
use truth::Truth;

/// N of the nursery, in bytes: the phase is chosen below it.
const NURSERY_BYTES: u64 = 2 << 20;
/// Room for every block of the work at once, so that R = 1 loses none.
const EXACT_MEMORY: &str = "256M";
/// Time for the work of one run, and for its figures, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most sampled runs: each is a process.
pub const MOST_RUNS: u32 = 20;

/// What is to be proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// R of the sampled runs.
    pub interval: Interval,
    /// Sampled runs, 1 to [`MOST_RUNS`].
    pub runs: u32,
    /// Seed of the first one's sampler; the others take the next numbers.
    pub seed: u32,
}

/// Why there is no proof.
#[derive(Debug)]
pub enum ProofError {
    /// A sentence: what could not be run or read.
    Run(String),
    /// The table could not be printed.
    Print(io::Error),
}

impl From<String> for ProofError {
    fn from(sentence: String) -> Self {
        Self::Run(sentence)
    }
}

impl From<io::Error> for ProofError {
    fn from(error: io::Error) -> Self {
        Self::Print(error)
    }
}

/// Runs it and prints the table. Whether the exact run counted exactly what the
/// program counted: without that there is no truth to speak of.
pub fn run(plan: &Plan, out: &mut impl Write) -> Result<bool, ProofError> {
    let Plan { interval, runs, seed } = *plan;
    writeln!(
        out,
        "The same work, {} beside {}, in {runs} sampled run{}. Seed {seed}: repeat with --seed {seed}.\n",
        format::interval(1),
        format::interval(interval.bytes()),
        if runs == 1 { "" } else { "s" },
    )?;
    out.flush()?;
    let phase = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) % NURSERY_BYTES;
    let start = |interval: u32, memory: &str, seed: u32| {
        Demo::start_proof(&[
            ("HEAPTOP_INTERVAL", interval.to_string()),
            ("HEAPTOP_NURSERY", NURSERY_BYTES.to_string()),
            ("HEAPTOP_PHASE", phase.to_string()),
            ("HEAPTOP_SEED", seed.to_string()),
            ("HEAPTOP_MEMORY", memory.to_owned()),
        ])
    };
    // All of them work at once: side by side, and in half the time.
    let mut exact = start(1, EXACT_MEMORY, seed)?;
    let seeds = (0..runs).map(|n| seed.wrapping_add(n));
    let mut sampled: Vec<(u32, Demo)> = seeds
        .map(|seed| Ok((seed, start(interval.bytes(), "64M", seed)?)))
        .collect::<Result<_, String>>()?;

    let truths = truth::of(&mut exact, PATIENCE)?;
    let exact = compare::Rows::of(&read::session(exact.socket(), PATIENCE)?);
    let (truths, wrong) = agree(truths, &exact)?;
    let mut all: Vec<(u32, Vec<Outcome>)> = Vec::new();
    for (seed, demo) in &mut sampled {
        let own = truth::of(demo, PATIENCE)?;
        if !own.iter().map(Truth::counters).eq(truths.iter().map(Truth::counters)) {
            return Err(ProofError::Run(
                "the runs did not do the same work: their own counters differ".into(),
            ));
        }
        let rows = compare::Rows::of(&read::session(demo.socket(), PATIENCE)?);
        all.push((*seed, compare::outcomes(&truths, &rows)));
    }
    table::print(&all, out)?;
    table::print_exact(&truths, &wrong, out)?;
    out.flush()?;
    Ok(wrong.is_empty())
}

/// The counters with what the exact run knows beyond them, and where the two
/// disagree.
fn agree(truths: Vec<Truth>, exact: &compare::Rows) -> Result<(Vec<Truth>, Vec<Outcome>), String> {
    let missing = truths.iter().find(|truth| exact.get(&truth.function).is_none());
    if let Some(truth) = missing {
        return Err(format!(
            "the exact run shows no callsite {}: heaptop-demo has no symbols, build it with `cargo build --release -p heaptop`",
            truth.function
        ));
    }
    let wrong = compare::outcomes(&truths, exact)
        .into_iter()
        .filter(|outcome| outcome.truth.is_some() && !outcome.is_exact())
        .collect();
    let truths = truths
        .into_iter()
        .map(|truth| Truth { promoted: exact.promoted(&truth.function), ..truth })
        .collect();
    Ok((truths, wrong))
}
