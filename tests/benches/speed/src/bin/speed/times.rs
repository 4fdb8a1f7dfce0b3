//! Nanoseconds, of loops that both allocators run by turns: `pairs`.

use crate::program;
use heaptop_speed::ratio::{interval, least, median};

const RATES: [(&str, (&str, &str)); 4] = [
    ("no samples", ("HEAPTOP", "dormant")),
    ("512 KiB", ("HEAPTOP_INTERVAL", "512K")),
    ("64 KiB", ("HEAPTOP_INTERVAL", "64K")),
    ("16 KiB", ("HEAPTOP_INTERVAL", "16K")),
];

const LOOPS: [(&str, &str); 7] = [
    ("tight", "pairs of malloc and free"),
    ("million", "a million live, random frees"),
    ("crossing", "two threads, freed by the other"),
    ("4K", "4 KiB, each page written"),
    ("64K", "64 KiB, each page written"),
    ("1M", "1 MiB, each page written"),
    ("4M", "4 MiB, each page written"),
];

/// Both allocators' times an operation, in nanoseconds, turn by turn.
fn measure(name: &str, depth: u32, rounds: usize, rate: (&str, &str)) -> (Vec<f64>, Vec<f64>) {
    let mut command = program("pairs", &[rate]);
    command.args([name, &depth.to_string(), &rounds.to_string()]);
    let output = command.output().unwrap_or_else(|why| panic!("{name}: {why}"));
    let told = String::from_utf8_lossy(&output.stdout);
    told.lines()
        .filter_map(|line| {
            let (bare, wrapped) = line.split_once(' ')?;
            Some((bare.parse::<f64>().ok()?, wrapped.parse::<f64>().ok()?))
        })
        .unzip()
}

/// Prints the tables.
pub fn table(rounds: usize) {
    println!("{rounds} turns each; ratios of medians, and of the least times");
    println!(
        "{:<32} {:<11} {:>10} {:>9} {:>7}  {:<13} {:>7}",
        "loop", "R", "bare", "more", "ratio", "95 %", "least"
    );
    for (name, title) in LOOPS {
        for (rate, setting) in RATES {
            let (mut bare, mut wrapped) = measure(name, 10, rounds, setting);
            let (low, high) = interval(&bare, &wrapped);
            let by_least = least(&wrapped) / least(&bare);
            let (b, w) = (median(&mut bare), median(&mut wrapped));
            println!(
                "{title:<32} {rate:<11} {b:>7.1} ns {:>6.2} ns {:>7.3}  {low:.3}–{high:.3} {by_least:>7.3}",
                w - b,
                w / b
            );
        }
    }
    println!("\na sampled malloc and free, all included but the agent's own thread, warm");
    println!("{:<10} {:>10} {:>10}", "frames", "median", "least");
    for depth in [10, 30] {
        let bytes = 4096u32;
        let (mut bare, mut wrapped) =
            measure("tight", depth, rounds, ("HEAPTOP_INTERVAL", &bytes.to_string()));
        // 16 to 256 bytes, each size as likely: so many in one are sampled.
        let miss = 1.0 - 1.0 / f64::from(bytes);
        let sampled = (16..=256).map(|size| 1.0 - miss.powi(size)).sum::<f64>() / 241.0;
        let more = (least(&wrapped) - least(&bare)) / sampled;
        let by_median = (median(&mut wrapped) - median(&mut bare)) / sampled;
        println!("{depth:<10} {by_median:>7.0} ns {more:>7.0} ns");
    }
}
