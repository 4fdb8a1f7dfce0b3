//! What heaptop costs, and what its peers cost, in ratios of one run.
//!
//! ```text
//! counts     instructions of one malloc, free and realloc, and of programs, by callgrind
//! times      nanoseconds of loops, both allocators in one process
//! programs   CPU time of whole programs, and of the same under the peers
//! ```

mod counts;
mod programs;
mod times;

use std::path::PathBuf;
use std::process::Command;

/// One of the programs beside this one, with nothing of heaptop's settings left of
/// the environment.
fn program(name: &str, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(path(name));
    clean(&mut command, settings);
    command
}

fn path(name: &str) -> PathBuf {
    std::env::current_exe().unwrap_or_default().with_file_name(name)
}

fn clean(command: &mut Command, settings: &[(&str, &str)]) {
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("HEAPTOP") {
            command.env_remove(key);
        }
    }
    if let Some(sockets) = std::env::var_os("SPEED_SOCKETS") {
        command.env("HEAPTOP_DIR", sockets);
    }
    command.envs(settings.iter().copied());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let runs = arguments.next().and_then(|a| a.parse().ok());
    let only = arguments.next();
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(" unknown CPU");
    println!("{}", cpu.trim_start_matches(['\t', ' ', ':']));
    match what.as_str() {
        "counts" => counts::table(),
        "times" => times::table(runs.unwrap_or(31)),
        "programs" => programs::table(runs.unwrap_or(11), programs::HEAPTOP, only.as_deref()),
        "peers" => programs::table(runs.unwrap_or(5), programs::PEERS, only.as_deref()),
        _ => {
            eprintln!(
                "speed counts | times [ROUNDS] | programs [RUNS [NAME]] | peers [RUNS [NAME]]"
            );
            std::process::exit(2);
        }
    }
}
