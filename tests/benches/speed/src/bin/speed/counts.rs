//! Instructions, by callgrind: exact and the same each time, where times are not.
//!
//! Each loop is run with two lengths; what the longer one takes more, by its further
//! steps, is what a step takes. The bare allocator has an idle thread beside it, as
//! the wrapped one has the agent's: with two threads glibc's malloc takes another way.

use crate::{clean, path};
use heaptop_protocol::estimate::Interval;
use heaptop_speed::loops::BLOCK_BYTES;
use std::process::Command;

const SHORT: u64 = 20_000;
const LONG: u64 = 60_000;

/// Instructions that one step of a loop takes.
fn a_step(program: &str, work: &str, settings: &[(&str, &str)]) -> f64 {
    let count = |steps: u64| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        // Only what goes on in the loop itself.
        command.args(["--toggle-collect=*measured_*"]);
        command.arg(path(program)).args([work, &steps.to_string()]);
        clean(&mut command, settings);
        let told = match command.output() {
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(why) => panic!("valgrind does not run ({why}): apt-get install valgrind"),
        };
        let number = told.lines().find_map(|line| line.split("Collected : ").nth(1));
        number.and_then(|n| n.trim().parse::<f64>().ok()).unwrap_or_else(|| panic!("{told}"))
    };
    (count(LONG) - count(SHORT)) / (LONG - SHORT) as f64
}

/// Prints the table.
pub fn table() {
    let threaded = [("SPEED_IDLE_THREAD", "1")];
    println!("instructions of a call on a block of {BLOCK_BYTES} bytes");
    println!("{:<10} {:>8} {:>12} {:>8}", "call", "bare", "no samples", "more");
    for work in ["malloc", "free", "realloc", "pair"] {
        let bare = a_step("plain", work, &threaded);
        let dormant = a_step("wrapped", work, &[("HEAPTOP", "dormant")]);
        println!("{work:<10} {bare:>8.1} {dormant:>12.1} {:>8.1}", dormant - bare);
    }
    println!("\na sampled malloc and free, the agent's thread not counted");
    println!("{:<10} {:>8}", "frames", "more");
    let bytes = 4096;
    let sampled = Interval::new(bytes).map_or(0.0, |r| 1.0 / r.weight(BLOCK_BYTES as u64).objects);
    for depth in [10, 30] {
        let work = format!("pair@{depth}");
        let settings = [("HEAPTOP_INTERVAL", &*bytes.to_string()), ("HEAPTOP_SEED", "1")];
        let with = a_step("wrapped", &work, &settings);
        let without = a_step("wrapped", &work, &[("HEAPTOP", "dormant")]);
        println!("{depth:<10} {:>8.0}", (with - without) / sampled);
    }
}
