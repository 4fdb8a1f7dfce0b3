//! What looks back: growth between two times. (Lives on the allocation clock are in
//! [`super::minor`].)
//!
//! It is made of single blocks, the living and those whose lives are over, and of what
//! happened since the viewer came: what was before is unknown, not zero.

use super::Session;
use super::estimate::{self, change};
use super::figures::{Change, Estimate};
use super::lives::Lives;
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::totals::Total;

/// The two sets that growth is made of: blocks that live at both times are in neither.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Turnover {
    /// Born between the two times, alive at the second.
    pub gained: Total,
    /// Alive at the first, dead by the second.
    pub lost: Total,
}

impl Session {
    /// The lives that are over.
    #[must_use]
    pub const fn lives_over(&self) -> &Lives {
        &self.lives
    }

    /// Latest G heard of, in bytes.
    #[must_use]
    pub const fn now_clock(&self) -> u64 {
        self.now_clock
    }

    /// Whether events were lost in a part of the time, or what was lost was not repaired
    /// yet: what was born then may be unknown.
    #[must_use]
    pub fn was_blind(&self, from_ns: u64, to_ns: u64) -> bool {
        self.blind().any(|(from, to)| from <= to_ns && from_ns < to)
    }

    /// From when to when events were lost, in order; the last may go on.
    pub fn blind(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let open = self.blind_from_ns.map(|from| (from, u64::MAX));
        self.blind.iter().copied().chain(open)
    }

    /// What the agent's totals hold beyond what was heard of block by block, in bytes in
    /// use and in bytes allocated: events that were lost on their way here. `None` where
    /// none were.
    #[must_use]
    pub fn unattributed(&self) -> Option<(Estimate, Estimate)> {
        let (status, base) = (self.status()?, self.base.as_ref()?);
        if self.dropped == 0 && self.blocks.refused == 0 {
            return None;
        }
        let sight = self.course.sight();
        let mut heard = base.whole.allocated;
        heard.merge(&self.heard_born);
        let in_use = status.totals.in_use.since(self.blocks.total());
        let allocated = status.totals.allocated.since(&heard);
        Some((estimate::bytes(&in_use, sight), estimate::bytes(&allocated, sight)))
    }

    /// What of the wanted callstacks came and went between two times, in nanoseconds
    /// since the agent's start; `None` where the first was before the viewer came.
    #[must_use]
    pub fn turnover(
        &self,
        from_ns: u64,
        to_ns: u64,
        wanted: impl Fn(u32) -> bool,
    ) -> Option<Turnover> {
        self.lives.since().filter(|since| since.time_ns <= from_ns)?;
        let [first, second] = [from_ns, to_ns].map(|ns| ns / 1000);
        let mut turnover = Turnover::default();
        let mut book = |born: u64, ended: Option<u64>, stack: u32, weight: &dyn Fn() -> Weight| {
            let alive = |at: u64| born <= at && ended.is_none_or(|ended| at < ended);
            let (before, after) = (alive(first), alive(second));
            if before != after && wanted(stack) {
                let set = if after { &mut turnover.gained } else { &mut turnover.lost };
                set.add(&weight());
            }
        };
        for life in self.lives.iter() {
            // Who was lost sight of is not known to be dead.
            let ended = life.end.is_death().then_some(life.ended_us);
            book(life.born_us, ended, life.stack, &|| life.weight());
        }
        for (_, block) in self.blocks.iter() {
            book(block.born_ns / 1000, None, block.stack, &|| block.weight());
        }
        Some(turnover)
    }

    /// By how many bytes the wanted callstacks grew between two times.
    #[must_use]
    pub fn growth(&self, from_ns: u64, to_ns: u64, wanted: impl Fn(u32) -> bool) -> Change {
        self.turnover(from_ns, to_ns, wanted).map_or(Change::Unknown, |turnover| {
            change::growth(&turnover.gained, &turnover.lost, self.course.sight())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::super::lives::End;
    use super::*;
    use heaptop_protocol::message::Dropped;

    /// At R = 1: every block counts itself.
    #[test]
    fn growth_is_gain_less_loss() {
        let mut f = Fixture::new(1);
        let (a, b) = (f.stack(&["main", "a"]), f.stack(&["main", "b"]));
        let old = f.alloc(a, 100);
        f.alloc(a, 1000);
        f.pass(1.0);
        let from = f.time_ns;
        f.pass(1.0);
        f.free(old);
        let brief = f.alloc(b, 5000);
        f.pass(1.0);
        f.free(brief);
        f.alloc(a, 30);
        f.alloc(b, 7);
        f.pass(1.0);
        let to = f.time_ns;
        let session = &f.session;
        assert_eq!(session.growth(from, to, |_| true), Change::Exact { value: -63.0 });
        let of = |name: u32| session.growth(from, to, |stack| stack == name);
        let place = |id| session.book().stacks().iter().position(|s| s.id == id).unwrap() as u32;
        assert_eq!(of(place(a)), Change::Exact { value: -70.0 });
        assert_eq!(of(place(b)), Change::Exact { value: 7.0 });
        // Backwards it shrinks, and to itself nothing happens.
        assert_eq!(session.growth(to, from, |_| true), Change::Exact { value: 63.0 });
        assert_eq!(session.growth(to, to, |_| true), Change::Exact { value: 0.0 });
        assert_eq!(session.growth(0, to, |_| true), Change::Unknown, "before the viewer came");
    }

    /// Deaths that were lost are found by a snapshot, and were about then.
    #[test]
    fn deaths_unseen_count_in_growth() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let (a, b) = (f.alloc(stack, 100), f.alloc(stack, 10));
        f.pass(1.0);
        let from = f.time_ns;
        f.pass(1.0);
        f.death(a);
        f.say(Dropped { events: 1 });
        f.pass(1.0);
        f.snapshot();
        f.pass(1.0);
        let grown = |f: &Fixture| f.session.growth(from, f.time_ns, |_| true);
        assert_eq!(grown(&f), Change::Exact { value: -100.0 });
        assert_eq!(f.session.lives_over().iter().next().unwrap().end, End::Unseen);
        f.free(b);
        f.pass(1.0);
        assert_eq!(grown(&f), Change::Exact { value: -110.0 });
    }
}
