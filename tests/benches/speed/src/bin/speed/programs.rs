//! CPU time, user and system, of whole programs under one allocator after another,
//! over the time under the allocator that is wrapped, or that has its profiler off.
//! Runs are interleaved, and every other round goes backwards. Where the machine is not
//! quiet, what disturbs a run makes it longer: the least times tell more than medians.

use crate::program;
use heaptop_speed::programs::PROGRAMS;
use heaptop_speed::ratio::{least, median, of_median};
use heaptop_speed::usage;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// An allocator: title, binary, settings, and those of the list that it is compared with.
pub type Contestant =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [usize]);

/// heaptop at its rates. The second is the system's allocator in a process with
/// another thread, which glibc's malloc is slower in.
pub const HEAPTOP: &[Contestant] = &[
    ("bare", "plain", &[], &[]),
    ("bare, two threads", "plain", &[("SPEED_IDLE_THREAD", "1")], &[0]),
    ("no samples", "wrapped", &[("HEAPTOP", "dormant")], &[0, 1]),
    ("R = 512 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "512K")], &[0, 1]),
    ("R = 32 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "32K")], &[0, 1]),
    ("governor", "wrapped", &[], &[0, 1]),
];

const JEMALLOC: &str = "_RJEM_MALLOC_CONF";

/// heaptop beside the peers, at R = 512 KiB where they sample.
pub const PEERS: &[Contestant] = &[
    ("bare", "plain", &[], &[]),
    ("bare, two threads", "plain", &[("SPEED_IDLE_THREAD", "1")], &[0]),
    ("heaptop, 512 KiB", "wrapped", &[("HEAPTOP_INTERVAL", "512K")], &[0, 1]),
    ("heaptop, every block", "wrapped", &[("HEAPTOP_INTERVAL", "1")], &[0]),
    ("libdd, 512 KiB", "peer-libdd", &[("SPEED_INTERVAL", "524288")], &[0]),
    ("dhat, every block", "peer-dhat", &[], &[0]),
    ("jemalloc", "peer-jemalloc", &[], &[0]),
    (
        "jemalloc, 512 KiB",
        "peer-jemalloc",
        &[(JEMALLOC, "prof:true,prof_active:true,lg_prof_sample:19")],
        &[6],
    ),
];

/// How often the loops of `HOTPATH` are run: w1 and w1t. Not longer, for who looks at every
/// block of them.
const LOOPS: [(&str, u64); 2] = [("w1", 12_000), ("w1t", 50_000)];

/// One run's CPU time in seconds; `None`, with the reason told, if it fails.
fn run(of: &Contestant, name: &str, times: u64) -> Option<f64> {
    let mut command = program(of.1, of.2);
    // dhat says what it has seen.
    command.args([name, &times.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(usage::on_one_core) };
    let child = command.spawn().map_err(|why| eprintln!("{}: {why}", of.1)).ok()?;
    let (cpu, ok) = usage::wait_with_cpu(&child).ok()?;
    ok.then(|| cpu.as_secs_f64())
}

/// Prints the table; `only` of one program if that is named.
pub fn table(runs: usize, contestants: &[Contestant], only: Option<&str>) {
    println!(
        "CPU time, {runs} runs each; medians of ratios of neighbours (95 %), ratios of the least times"
    );
    let wanted = |&(name, _): &(&str, u64)| only.is_none_or(|only| only == name);
    for (name, times) in PROGRAMS.into_iter().chain(LOOPS).filter(wanted) {
        println!("\n{name}");
        let mut seconds = vec![vec![None; runs + 1]; contestants.len()];
        for round in 0..=runs {
            // dhat takes minutes, and a ratio of tens is seen at once.
            let slow = |at: &usize| contestants[*at].0.starts_with("dhat");
            let mut order: Vec<_> =
                (0..contestants.len()).filter(|at| !slow(at) || round == 1).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                // The first round is for warm caches.
                let time = run(&contestants[at], name, times);
                seconds[at][round] = time.filter(|_| round > 0);
            }
        }
        for (at, of) in contestants.iter().enumerate() {
            let mut with: Vec<f64> = seconds[at].iter().flatten().copied().collect();
            if with.is_empty() {
                println!("  {:<24} –", of.0);
                continue;
            }
            print!("  {:<24} {:>7.3} s", of.0, median(&mut with));
            for &base in of.3 {
                // Runs of one round are neighbours: what slows the machine slows both.
                let pairs = || seconds[at].iter().zip(&seconds[base]);
                let mut ratios: Vec<f64> =
                    pairs().filter_map(|(with, base)| Some((*with)? / (*base)?)).collect();
                if ratios.is_empty() {
                    continue;
                }
                let (low, high) = of_median(&ratios);
                let bases: Vec<f64> = seconds[base].iter().flatten().copied().collect();
                let by_least = least(&with) / least(&bases);
                let (ratio, title) = (median(&mut ratios), contestants[base].0);
                print!("   {ratio:>6.3} ({low:.3}–{high:.3}) {by_least:>6.3} of {title}");
            }
            println!();
        }
    }
}
