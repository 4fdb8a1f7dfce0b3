//! What the viewer takes: the time from its start to the first table and to the
//! first name, and its share of a core. It prints and asserts nothing.
//!
//! `cargo bench -p heaptop-tests --bench viewer` after `cargo build --release
//! --workspace`; `tests/bigdebug` also gives it a program with over 100 MB of
//! debug information.

use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;
use heaptop_tests::truth::Truths;
use heaptop_tests::{binaries, usage};
use std::time::{Duration, Instant};

/// Attaches `times` times and prints the middle and the worst time.
fn attach(title: &str, target: &Target, name: &str, times: usize) {
    let (mut tables, mut names) = (vec![], vec![]);
    for _ in 0..times {
        let begun = Instant::now();
        let terminal = Terminal::viewer(target.directory(), &[]);
        terminal.until("a row", |screen| {
            // The row of the sum stands from the start; one above it has figures.
            let mut rows = screen.lines().skip_while(|line| !line.starts_with(" callsite "));
            rows.nth(1).filter(|row| row.contains("iB")).map(|_| ())
        });
        tables.push(begun.elapsed());
        terminal.wait_for(name);
        names.push(begun.elapsed());
    }
    for (what, times) in [("first table", &mut tables), ("first name", &mut names)] {
        times.sort();
        println!(
            "{title}: {what} after {:.2?}, at worst {:.2?}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
}

/// Waits until the demo's own clock has gone on by `time`.
fn pass(demo: &mut Target, time: Duration) {
    let until = Truths::ask(demo).at_s + time.as_secs_f64();
    while Truths::ask(demo).at_s < until {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn share(terminal: &Terminal, demo: &mut Target) -> f64 {
    let pid = terminal.pid().expect("the viewer runs");
    let cpu = || usage::cpu_of(pid).expect("its CPU time can be read");
    let (before, begun) = (cpu(), Instant::now());
    pass(demo, Duration::from_secs(15));
    100.0 * cpu().saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64()
}

fn main() {
    if binaries::directory().join("bigdebug").is_file() {
        let mut target = Target::start("bigdebug", &[], &[]);
        target.wait_for("quiet");
        attach("100 MB of debug information", &target, "bigdebug.rs:", 5);
    } else {
        println!("tests/bigdebug also measures a program with 100 MB of debug information");
    }

    // 10.7 MiB/s of allocation: about 1,000 samples a second.
    let mut demo = Target::start("heaptop-demo", &[], &[("HEAPTOP_INTERVAL", "11K")]);
    demo.wait_for_line("what to look for", |line| line.starts_with("heaptop-demo, pid "));
    pass(&mut demo, Duration::from_secs(3));
    attach("the demo", &demo, "fill_cache", 5);

    let mut terminal = Terminal::viewer(demo.directory(), &[]);
    terminal.wait_for("fill_cache");
    pass(&mut demo, Duration::from_secs(5));
    let rate = terminal.until("the rate of samples", |screen| {
        let before = screen.split(" samples/s").next()?;
        before.split_whitespace().next_back().map(str::to_owned)
    });
    println!("viewer at {rate} samples/s: {:.1} % of a core", share(&terminal, &mut demo));
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    let written = terminal.written();
    let paused = share(&terminal, &mut demo);
    let bytes = terminal.written() - written;
    println!("the same, paused: {paused:.1} % of a core, {bytes} bytes written");
}
