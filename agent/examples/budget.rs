//! A limit for each container of resources, here a thread that serves one request: when it
//! has allocated more than its budget a flag is raised, which the program checks where it
//! can stop in good order.
//!
//! ```text
//! cargo run -p heaptop-agent --example budget
//! ```
//!
//! Each thread has a profile of its own, of thread scope, which threads that it starts by
//! `heaptop_agent::spawn` share. Callbacks are prompt, so the flag is up before the
//! allocation returns; they take no lock and touch two atomics.

use heaptop_agent::memprof::{self, Allocation, Config, Delivery, Profile, Scope, Track, Tracker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static ALLOC: heaptop_agent::Heaptop = heaptop_agent::Heaptop::system();

/// What a container may allocate, and has.
struct Budget {
    most_bytes: u64,
    allocated_bytes: AtomicU64,
    is_over: AtomicBool,
}

struct Watch(Arc<Budget>);

impl Watch {
    fn count(&self, block: &Allocation<'_>) {
        // An estimate without bias: what the block stands for.
        let weight = block.weight_bytes() as u64;
        let before = self.0.allocated_bytes.fetch_add(weight, Relaxed);
        if before + weight > self.0.most_bytes {
            self.0.is_over.store(true, Relaxed);
        }
    }
}

impl Tracker for Watch {
    type Minor = ();
    type Major = ();

    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<()> {
        self.count(block);
        None
    }
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<()> {
        self.count(block);
        None
    }
}

/// Gives the calling thread a budget, until the profile is dropped.
fn with_budget(most_bytes: u64) -> Result<(Arc<Budget>, Profile), Box<dyn std::error::Error>> {
    let budget = Arc::new(Budget {
        most_bytes,
        allocated_bytes: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    });
    // Some hundred samples until the budget is spent: right to about a tenth.
    let config = Config::interval_bytes((most_bytes / 400).max(1))?
        .scope(Scope::Thread)
        .delivery(Delivery::Prompt)
        .track(Track::Allocations)
        .callstack_size(0);
    let profile = memprof::start(config, Watch(budget.clone()))?;
    Ok((budget, profile))
}

/// A request that wants so many kibibytes, and asks between whether it may go on.
fn serve(wanted_kib: usize) -> Result<usize, String> {
    let (budget, _profile) = with_budget(1 << 20).map_err(|e| e.to_string())?;
    let mut answer = Vec::new();
    for _ in 0..wanted_kib {
        answer.push(vec![0u8; 1024]);
        if budget.is_over.load(Relaxed) {
            let kib = budget.allocated_bytes.load(Relaxed) / 1024;
            return Err(format!("stopped after about {kib} KiB"));
        }
    }
    Ok(answer.len())
}

fn main() {
    let requests: Vec<_> = [100, 500, 5000, 50_000]
        .into_iter()
        .map(|kib| (kib, std::thread::spawn(move || serve(kib))))
        .collect();
    for (kib, request) in requests {
        match request.join() {
            Ok(Ok(blocks)) => println!("{kib:>6} KiB wanted: served with {blocks} blocks"),
            Ok(Err(why)) => println!("{kib:>6} KiB wanted: {why}, the budget is 1024 KiB"),
            Err(_) => println!("{kib:>6} KiB wanted: the thread failed"),
        }
    }
}
