//! What MEMPROF means, row by row: `row_N…` is the test of row N. For each, `tests/mutations`
//! breaks the engine in one line and sees it fail.
//!
//! Tests run side by side in one process. Those of thread scope do not disturb each
//! other; those of the process's scope take turns.

// A test's tracker stands beside what it is for; threads are joined in a line.
#![allow(clippy::items_after_statements, clippy::needless_for_each)]

mod combinations;
mod cycles;
mod domains;
mod forks;
mod help;
mod life;
mod outside;
mod panics;
mod sampling;
mod threads;

use heaptop_agent::Heaptop;
use std::alloc::System;

/// The first minor cycle begins at 0, and all is repeatable but for the threads' order.
#[global_allocator]
static ALLOC: Heaptop<System> =
    Heaptop::system().nursery_bytes(help::NURSERY as u64).phase_bytes(0).seed(7);
