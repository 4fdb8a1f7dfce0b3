//! Whether intervals hold the truth: some cells of the table that `tests/coverage`
//! prints whole, with fewer runs.
//!
//! 400 runs of 95 % have a standard deviation of 1.1 %. The demand is given 3 % on both
//! sides, and seeds are fixed.

use heaptop_tests::coverage::figures::Figure;
use heaptop_tests::coverage::program::{Condition, Mix};
use heaptop_tests::coverage::{self, Shape, cell, table};

const RUNS: u32 = 400;
const SLACK: f64 = 0.03;

const fn shape(mix: Mix, condition: Condition, expected: u32) -> Shape {
    Shape { mix, condition, expected }
}

#[test]
fn intervals_hold_the_truth() {
    let shapes = vec![
        shape(Mix::Fixed, Condition::Plain, 3),
        shape(Mix::LogNormal, Condition::Both, 3),
        shape(Mix::Pareto, Condition::Changing, 10),
        shape(Mix::LogNormal, Condition::Plain, 30),
        shape(Mix::Fixed, Condition::Both, 30),
        shape(Mix::Pareto, Condition::Threads, 30),
    ];
    let outcomes = coverage::run(shapes, RUNS, 7).expect("memory for the simulated agents");
    println!("{}", table::table(&outcomes));
    let misses = table::misses(&outcomes, SLACK);
    assert!(misses.is_empty(), "{misses:#?}");
    for outcome in &outcomes {
        for figure in Figure::ALL.into_iter().filter(|figure| !figure.is_blurred()) {
            let claims = outcome.tallies[figure as usize].claims;
            assert!(claims > RUNS / 2, "{figure:?} of {:?}: only {claims} claims", outcome.shape);
        }
    }
}

/// The harness itself: weights that are 1.3 times too large, and intervals that are
/// three quarters as wide, are found out.
#[test]
fn broken_intervals_are_found_out() {
    let plain = shape(Mix::LogNormal, Condition::Plain, 30);
    let larger = cell::run_bent(plain, RUNS, 7, |claim| claim.times(1.3)).expect("memory");
    for figure in [Figure::AllocatedBytes, Figure::InUseBytes, Figure::Thinned, Figure::MeanLife] {
        assert!(!table::is_good(&larger, figure, SLACK), "{figure:?}: {larger:?}");
    }
    let narrow = cell::run_bent(plain, RUNS, 7, |claim| claim.narrowed(0.75)).expect("memory");
    for figure in [
        Figure::AllocatedBytes,
        Figure::InUseBytes,
        Figure::Growth,
        Figure::Difference,
        Figure::Promoted,
        Figure::Survival,
        Figure::Median,
    ] {
        assert!(!table::is_good(&narrow, figure, SLACK), "{figure:?}: {narrow:?}");
    }
}
