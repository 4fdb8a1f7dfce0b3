//! Instructions, by callgrind: exact and the same each time, where times are not.
//!
//! Each loop is run with two lengths; what the longer one takes more, by its further
//! steps, is what a step takes. The bare allocator has an idle thread beside it, as
//! the wrapped one has the agent's: with two threads glibc's malloc takes another way.

use crate::{clean, path};
use heaptop_protocol::estimate::Interval;
use heaptop_speed::loops::BLOCK_BYTES;
use heaptop_speed::programs::PROGRAMS;
use std::process::Command;

const SHORT: u64 = 20_000;
const LONG: u64 = 60_000;

type Settings<'a> = &'a [(&'a str, &'a str)];

/// Instructions of a run of so many steps, of all threads; `within`: only in functions
/// of such a name.
fn count(program: &str, work: &str, steps: u64, settings: Settings<'_>, within: &[&str]) -> f64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args(within.iter().map(|name| format!("--toggle-collect={name}")));
    command.arg(path(program)).args([work, &steps.to_string()]);
    clean(&mut command, settings);
    let told = match command.output() {
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(why) => panic!("valgrind does not run ({why}): apt-get install valgrind"),
    };
    let number = told.lines().find_map(|line| line.split("Collected : ").nth(1));
    number.and_then(|n| n.trim().parse::<f64>().ok()).unwrap_or_else(|| panic!("{told}"))
}

/// Instructions that one step of a loop takes.
fn a_step(program: &str, work: &str, settings: Settings<'_>) -> f64 {
    let count = |steps| count(program, work, steps, settings, &["*measured_*"]);
    (count(LONG) - count(SHORT)) / (LONG - SHORT) as f64
}

/// Instructions of one turn of a whole program, the agent's thread included; not what
/// either does once, at its start.
fn a_turn(program: &str, name: &str, settings: Settings<'_>) -> f64 {
    let count = |turns| count(program, name, turns, settings, &[]);
    (count(3) - count(1)) / 2.0
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
    println!("\nwhole programs, the agent's thread included, over the bare one of two threads");
    println!(
        "{:<12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "program", "one thread", "off", "no samples", "512 KiB", "32 KiB"
    );
    for (name, _) in PROGRAMS {
        let bare = a_turn("plain", name, &threaded);
        print!("{name:<12} {:>12.4}", a_turn("plain", name, &[]) / bare);
        for setting in [
            ("HEAPTOP", "off"),
            ("HEAPTOP", "dormant"),
            ("HEAPTOP_INTERVAL", "512K"),
            ("HEAPTOP_INTERVAL", "32K"),
        ] {
            print!(" {:>12.4}", a_turn("wrapped", name, &[setting]) / bare);
        }
        println!();
    }
}
