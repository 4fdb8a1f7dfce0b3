//! The demo's command line.

use clap::Parser;

/// A small service with known churn, a cache and a leak: something to look at
/// with heaptop.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// Stop after so many seconds; without it, run until a signal comes.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub run_for: Option<f64>,
    /// How fast `forget_session` leaks, in bytes per second. The leak ends at 1 GiB.
    #[arg(long, value_name = "BYTES_PER_S", default_value_t = 64 << 10)]
    pub leak: u64,
    /// Pages that the cache holds, a thousand of which are replaced each second: how long
    /// one stays.
    #[arg(long, value_name = "PAGES", default_value_t = 8000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub cache: u32,
    /// Stop when standard input ends: so that it never outlives who started it.
    #[arg(long)]
    pub until_stdin_ends: bool,
    /// Do a fixed amount of work, print exact counters, and rest until standard
    /// input ends: what `heaptop demo --prove` measures.
    #[arg(long, conflicts_with_all = ["run_for", "leak", "cache"])]
    pub proof: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.0..=1e9).contains(&s) => Ok(s),
        _ => Err("it must be a number of seconds, such as 10 or 2.5".into()),
    }
}
