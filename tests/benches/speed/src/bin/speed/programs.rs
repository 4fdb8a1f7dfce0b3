//! CPU time, user and system, of whole programs under one allocator after another,
//! over the time under the allocator that is wrapped, or that has its profiler off.
//! Runs are interleaved, and every other round goes backwards.

use crate::program;
use heaptop_speed::programs::PROGRAMS;
use heaptop_speed::ratio::{interval, median};
use heaptop_speed::usage;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// An allocator: title, binary, settings, and the one of this list that it is
/// compared with.
pub type Contestant = (&'static str, &'static str, &'static [(&'static str, &'static str)], usize);

/// heaptop at its rates. The second is the system's allocator in a process with
/// another thread, which glibc's malloc is slower in.
pub const HEAPTOP: &[Contestant] = &[
    ("bare", "plain", &[], 0),
    ("bare, two threads", "plain", &[("SPEED_IDLE_THREAD", "1")], 0),
    ("no samples", "wrapped", &[("HEAPTOP", "dormant")], 0),
    ("R = 512 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "512K")], 0),
    ("R = 32 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "32K")], 0),
    ("governor", "wrapped", &[], 0),
    ("R = 512 KiB / two threads", "wrapped", &[("HEAPTOP_INTERVAL", "512K")], 1),
    ("R = 32 KiB / two threads", "wrapped", &[("HEAPTOP_INTERVAL", "32K")], 1),
    ("governor / two threads", "wrapped", &[], 1),
];

const JEMALLOC: &str = "_RJEM_MALLOC_CONF";

/// heaptop beside the peers, at R = 512 KiB where they sample.
pub const PEERS: &[Contestant] = &[
    ("bare", "plain", &[], 0),
    ("heaptop, 512 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "512K")], 0),
    ("heaptop, every block", "wrapped", &[("HEAPTOP_INTERVAL", "1")], 0),
    ("libdd, 512 KiB", "peer-libdd", &[("SPEED_INTERVAL", "524288")], 0),
    ("dhat, every block", "peer-dhat", &[], 0),
    ("jemalloc", "peer-jemalloc", &[], 0),
    (
        "jemalloc, 512 KiB / jemalloc",
        "peer-jemalloc",
        &[(JEMALLOC, "prof:true,prof_active:true,lg_prof_sample:19")],
        5,
    ),
];

/// How often the loops of `HOTPATH` are run: w1 and w1t.
const LOOPS: [(&str, u64); 2] = [("w1", 40_000), ("w1t", 200_000)];

/// One run's CPU time in seconds; `None`, with the reason told, if it fails.
fn run(of: &Contestant, name: &str, times: u64) -> Option<f64> {
    let mut command = program(of.1, of.2);
    command.args([name, &times.to_string()]).stdout(Stdio::null());
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(usage::on_one_core) };
    let child = command.spawn().map_err(|why| eprintln!("{}: {why}", of.1)).ok()?;
    let (cpu, ok) = usage::wait_with_cpu(&child).ok()?;
    ok.then(|| cpu.as_secs_f64())
}

/// Prints the table.
pub fn table(runs: usize, contestants: &[Contestant]) {
    println!("CPU time, {runs} runs each; ratios of medians");
    for (name, times) in PROGRAMS.into_iter().chain(LOOPS) {
        println!("\n{name}");
        let mut seconds = vec![Vec::new(); contestants.len()];
        for round in 0..=runs {
            // Who looks at every block takes minutes, and twice is enough to see it.
            let slow = |at: &usize| contestants[*at].0.ends_with("every block");
            let mut order: Vec<_> =
                (0..contestants.len()).filter(|at| !slow(at) || (1..=2).contains(&round)).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                // The first round is for warm caches.
                let time = run(&contestants[at], name, times);
                seconds[at].extend(time.filter(|_| round > 0));
            }
        }
        for (at, of) in contestants.iter().enumerate() {
            let (mut with, mut base) = (seconds[at].clone(), seconds[of.3].clone());
            if with.is_empty() || base.is_empty() {
                println!("  {:<30} –", of.0);
                continue;
            }
            let (low, high) = interval(&base, &with);
            let (with, base) = (median(&mut with), median(&mut base));
            println!("  {:<30} {with:>7.3} s {:>7.3}  {low:.3}–{high:.3}", of.0, with / base);
        }
    }
}
