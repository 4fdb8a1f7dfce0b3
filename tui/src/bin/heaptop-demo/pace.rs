//! When the demo's loops work, rest, pause and stop.
//!
//! A loop works in ticks of 10 ms and catches up with the clock in each: what
//! is due depends on the time since its start and not on how long a sleep took.
//! Work is done with the gate held for reading, so that who holds it for writing
//! ([`Running::paused`]) reads counters that belong together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(10);
/// After a pause of the whole machine, work for at most this long is made up.
const MOST_OWED: Duration = Duration::from_millis(200);

/// Shared by all loops.
pub struct Running {
    gate: RwLock<()>,
    stop: AtomicBool,
    until: Option<Instant>,
}

impl Running {
    /// Runs for `time`, or until [`Running::stop`].
    pub fn new(time: Option<Duration>) -> Self {
        let until = time.and_then(|t| Instant::now().checked_add(t));
        Self { gate: RwLock::new(()), stop: AtomicBool::new(false), until }
    }

    /// Ends every loop within a tick.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Does `work` while no loop works.
    pub fn paused(&self, work: impl FnOnce()) {
        let _gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        work();
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.until.is_some_and(|end| Instant::now() >= end)
    }

    /// Calls `work` once a tick with the time that it has to make up, until the end.
    pub fn each_tick(&self, mut work: impl FnMut(Duration)) {
        let mut worked_until = Instant::now();
        while !self.over() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            let owed = now.duration_since(worked_until).min(MOST_OWED);
            worked_until = now;
            let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            work(owed);
        }
    }
}

/// Turns a speed and passing time into whole pieces, carrying the rest.
pub struct Owed {
    per_second: f64,
    rest: f64,
}

impl Owed {
    /// `per_second` pieces.
    pub fn new(per_second: f64) -> Self {
        Self { per_second, rest: 0.0 }
    }

    /// What became due in `time`.
    pub fn after(&mut self, time: Duration) -> u64 {
        self.rest += self.per_second * time.as_secs_f64();
        let whole = self.rest.floor();
        self.rest -= whole;
        whole as u64
    }
}
