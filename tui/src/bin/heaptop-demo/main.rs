//! heaptop's demo target: a small service that allocates in a known way.
//!
//! | function         | what it does                                  | promoted | in use      |
//! |------------------|-----------------------------------------------|----------|-------------|
//! | `serve_request`  | buffers of one request, freed with its answer | ≈ 0      | a few KiB   |
//! | `fill_cache`     | pages of a bounded cache, the oldest replaced | ≈ all    | steady      |
//! | `forget_session` | sessions that nobody ever frees               | all      | grows       |
//! | `write_report`   | a buffer that doubles by realloc, step by step | ≈ 0     | up to 2 KiB |
//!
//! ```text
//! main thread   main ─► run ─► worker_loop ─► handle_connection ─┬► list_orders ─► serve_request
//! worker-2      ……………………► worker_loop ─► handle_connection ─┼► get_order ───► serve_request
//!                                                   (main only) └► log_in ──────► forget_session
//! cache         ……………………► cache_loop ─┬► refresh_page ───────► fill_cache
//!                                      └► write_report
//! stdin         with --until-stdin-ends: waits for that end (stop)
//! signals       waits for SIGINT and SIGTERM (stop), SIGUSR1 (print the truth)
//! ```
//!
//! With `--proof` it does a fixed amount of work instead: see [`proof`].
//!
//! Its blocks are at most 2 KiB, so that they are born young, and their sizes
//! within a function lie within 16:1, so that object counts have intervals. The
//! truth is kept in [`truth`] and printed at exit and on SIGUSR1. The loops are
//! paced by the clock and need a few percent of a core.

mod args;
mod pace;
mod proof;
mod service;
mod truth;

use args::Args;
use clap::Parser;
use heaptop_agent::Heaptop;
use pace::Running;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::alloc::System;
use std::time::{Duration, Instant};

/// R is low so that ten seconds give a precise picture; the environment wins.
#[global_allocator]
static ALLOC: Heaptop<System> =
    Heaptop::system().interval_bytes(16 << 10).nursery_bytes(truth::NURSERY_BYTES);

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    // The agent starts by itself; asked here, it says why it is off.
    if let Err(off) = heaptop_agent::start() {
        eprintln!("heaptop-demo: {off}");
    }
    if args.proof {
        return proof::run();
    }
    let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if args.until_stdin_ends {
        std::thread::Builder::new().name("stdin".into()).spawn(stop_when_stdin_ends)?;
    }
    run(&args, signals)
}

fn stop_when_stdin_ends() {
    // What is read is nothing to us, and an error is an end too.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    // To ourselves: the one way to stop, whoever wants it. It cannot fail.
    let _ = signal_hook::low_level::raise(SIGTERM);
}

#[inline(never)]
fn run(args: &Args, mut signals: Signals) -> std::io::Result<()> {
    let started = Instant::now();
    let running = Running::new(args.run_for.map(Duration::from_secs_f64));
    truth::say(&format!(
        "heaptop-demo, pid {}: look for serve_request (dies young), fill_cache (bounded, promoted), \
         write_report (grows by realloc) and forget_session (leaks {} bytes/s). SIGUSR1 prints exact counters, ^C stops it.",
        std::process::id(),
        args.leak,
    ));
    let handle = signals.handle();
    std::thread::scope(|scope| {
        let running = &running;
        std::thread::Builder::new().name("signals".into()).spawn_scoped(scope, move || {
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    running
                        .paused(|| truth::print("signal", started.elapsed(), service::CALLSITES));
                } else {
                    running.stop();
                }
            }
        })?;
        std::thread::Builder::new()
            .name("worker-2".into())
            .spawn_scoped(scope, || service::worker_loop(running, 2, 0))?;
        std::thread::Builder::new()
            .name("cache".into())
            .spawn_scoped(scope, || service::cache_loop(running, args.cache as usize))?;
        service::worker_loop(running, 1, args.leak);
        handle.close();
        Ok::<(), std::io::Error>(())
    })?;
    truth::print("exit", started.elapsed(), service::CALLSITES);
    Ok(())
}
