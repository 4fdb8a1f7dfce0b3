//! What profiles of the program's own need of a domain.

use super::Domain;
use crate::engine::Engine;
use crate::engine::sync::Ordering::Relaxed;

impl Domain {
    /// Whether this thread is in the engine.
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// See the field.
    pub fn token(&self) -> u64 {
        self.token.get()
    }

    /// See the field.
    pub fn set_token(&self, token: u64) {
        self.token.set(token);
    }

    /// See the field.
    pub fn apart(&self) -> u64 {
        self.apart.get()
    }

    /// See the field.
    pub fn set_apart(&self, token: u64) {
        self.apart.set(token);
    }

    /// See the field.
    pub fn is_suspended(&self) -> bool {
        self.suspended.get()
    }

    /// Sets it; what it was.
    pub fn suspend(&self, suspended: bool) -> bool {
        self.suspended.replace(suspended)
    }

    /// How many of `n` samples are left when each is kept with this probability.
    pub fn thin(&self, n: u64, keep: f64) -> u64 {
        self.draw(|rng| rng.thin(n, keep))
    }

    /// The countdown begins anew with the next block. For a thread that is
    /// [`Self::outside`], at whose end it does.
    pub fn restart(&self) {
        self.word.set(0);
    }

    /// Runs `f`, which may allocate what is nobody's business: this thread is in the
    /// engine, and its countdown stands still. `f` must not unwind.
    pub fn outside<T>(&self, engine: &Engine, f: impl FnOnce() -> T) -> T {
        let was_busy = self.busy.replace(true);
        let (left, granted) = (self.left.get(), self.granted.get());
        self.never_stop();
        let result = f();
        self.left.set(left);
        self.granted.set(granted);
        if self.word.get() == 0 {
            // What was spent before belongs on the clock, which a forked child leaves alone.
            if engine.is_here() {
                let used = granted.saturating_sub(left as u64);
                engine.header.clock.fetch_add(used, Relaxed);
            }
            self.stop_soon();
        }
        self.busy.set(was_busy);
        result
    }
}
