//! Prints the table of how often intervals hold the truth: `tests/coverage`.
//!
//! Fails when a cell misses what is demanded of it.

use heaptop_tests::coverage::{self, Shape, table};

const USAGE: &str = "usage: tests/coverage [--runs N] [--seed N] [--upto N]
  --runs N   seeded runs a cell, 4000 where nothing is said
  --seed N   another seed, 1 where nothing is said
  --upto N   only cells of so many expected samples: 30 is much faster";

fn main() -> std::process::ExitCode {
    let (mut runs, mut seed, mut upto) = (coverage::RUNS, 1, u64::MAX);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next().and_then(|value| value.parse::<u64>().ok())) {
            ("--runs", Some(n)) if (1..=1_000_000).contains(&n) => runs = n as u32,
            ("--seed", Some(n)) => seed = n,
            ("--upto", Some(n)) => upto = n,
            _ => {
                eprintln!("coverage: {arg} is not understood\n{USAGE}");
                return std::process::ExitCode::from(2);
            }
        }
    }
    let mut shapes = Shape::all();
    shapes.retain(|shape| u64::from(shape.expected) <= upto);
    let Some(outcomes) = coverage::run(shapes, runs, seed) else {
        eprintln!("coverage: the system has no memory for the simulated agents");
        return std::process::ExitCode::FAILURE;
    };
    println!("{runs} runs a cell, seed {seed}; percent of intervals that hold the truth\n");
    print!("{}", table::table(&outcomes));
    let misses = table::misses(&outcomes, 0.0);
    if misses.is_empty() {
        return std::process::ExitCode::SUCCESS;
    }
    println!("\nMissed:");
    for miss in misses {
        println!("  {miss}");
    }
    std::process::ExitCode::FAILURE
}
