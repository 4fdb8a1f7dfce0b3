//! Making room: fewer samples, each of which stands for more.

use super::{Ledger, interval};
use crate::engine::Engine;
use heaptop_protocol::estimate::Interval;

impl Ledger {
    /// Makes room when the entries run out: doubles R, keeps each sample of the
    /// live blocks with the ratio of the old R to the new, and drops the blocks
    /// that have none left, until at most three quarters are in use. Those that
    /// remain stand for more, so that the estimates stay unbiased. True if it
    /// did: viewers need a snapshot then.
    pub fn thin(&mut self) -> bool {
        let (room, _) = self.engine.tracker.room();
        let live = |engine: &Engine| engine.tracker.live() as usize;
        // Whose death waits for the books has an entry still, which no coarser R frees:
        // doubling would go on to the end.
        if self.has_more() {
            return false;
        }
        if live(self.engine) < room - room / 8 {
            return false;
        }
        while live(self.engine) > room - room / 4 {
            let now = self.engine.interval();
            let Some(coarser) = Interval::new(u64::from(now.bytes()) * 2) else { break };
            self.engine.set_rate(coarser, self.engine.rate().interval.is_some());
            self.thinned += 1;
            self.thin_to(coarser);
        }
        true
    }

    /// Thins all live blocks to `coarser`.
    pub fn thin_to(&mut self, coarser: Interval) {
        let (_, used) = self.engine.tracker.room();
        for index in 0..used as u32 {
            self.thin_block(index, coarser);
        }
    }

    fn thin_block(&mut self, index: u32, to: Interval) {
        let known = self.engine.tracker.known_live(index).map(|(b, _)| b);
        let Some(b) = known.or_else(|| self.engine.tracker.held_live(index)) else { return };
        let keep = f64::from(b.interval) / f64::from(to.bytes());
        let n_samples = self.rng.thin(b.n_samples, keep);
        if keep >= 1.0 || n_samples == 0 && !self.engine.drop_block(index) {
            return;
        }
        if n_samples > 0 {
            self.engine.tracker.set_samples(index, n_samples, to.bytes());
        }
        if b.id < self.forget_before || known.is_none() {
            return;
        }
        let record = self.record(b.stack);
        self.before_change(record);
        let was = *self.weights.of(interval(b.interval), b.size);
        let Some(r) = self.records.get_mut(record) else { return };
        for t in [&mut r.totals, &mut self.totals] {
            t.in_use.sub(&was);
            if n_samples > 0 {
                t.in_use.add(&to.weight(b.size));
            }
        }
        r.changed = self.pass;
    }
}
