//! Prints the table of how often intervals hold the truth: `tests/coverage`.
//!
//! Fails when a cell misses what is demanded of it.

use heaptop_tests::coverage::{self, Shape, cell, table};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const USAGE: &str = "usage: tests/coverage [--runs N] [--seed N]
  --runs N   seeded runs a cell, 4000 where nothing is said
  --seed N   another seed, 1 where nothing is said";

fn main() -> std::process::ExitCode {
    let (mut runs, mut seed) = (coverage::RUNS, 1);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = || args.next().and_then(|value| value.parse::<u64>().ok());
        let mut value = value;
        match (arg.as_str(), value()) {
            ("--runs", Some(n)) if (1..=1_000_000).contains(&n) => runs = n as u32,
            ("--seed", Some(n)) => seed = n,
            _ => {
                eprintln!("coverage: {arg} is not understood\n{USAGE}");
                return std::process::ExitCode::from(2);
            }
        }
    }
    let mut shapes = Shape::all();
    // The longest first, so that no core waits for the other at the end.
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.expected));
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(shape) = shapes.get(next.fetch_add(1, Relaxed)) {
                    if let Some(outcome) = cell::run(*shape, runs, seed)
                        && let Ok(mut outcomes) = outcomes.lock()
                    {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    if outcomes.len() < shapes.len() {
        eprintln!("coverage: the system has no memory for the simulated agents");
        return std::process::ExitCode::FAILURE;
    }
    let order = Shape::all();
    outcomes.sort_by_key(|outcome| order.iter().position(|shape| *shape == outcome.shape));
    println!("{runs} runs a cell, seed {seed}; percent of intervals that hold the truth\n");
    print!("{}", table::table(&outcomes));
    let misses = table::misses(&outcomes, 0.0);
    if misses.is_empty() {
        return std::process::ExitCode::SUCCESS;
    }
    println!("\nMissed:");
    misses.iter().for_each(|miss| println!("  {miss}"));
    std::process::ExitCode::FAILURE
}
