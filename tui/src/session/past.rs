//! What looks back: growth between two times, and lives on the allocation clock.
//!
//! Both are made of single blocks, the living and those whose lives are over, and of
//! what happened since the viewer came: what was before is unknown, not zero.

use super::Session;
use super::blocks::Block;
use super::estimate::curve::Curve;
use super::estimate::survival::{Mass, Table, bucket};
use super::estimate::what_if::{Blur, what_if};
use super::estimate::{self, change};
use super::figures::{Change, Estimate, Followed, Ratio};
use super::lives::{End, Lives};
use super::when::When;
use heaptop_protocol::estimate::{Interval, Weight};
use heaptop_protocol::totals::Total;

/// Most bytes that a thread has allocated and not booked on G yet.
const UNBOOKED_BYTES: f64 = 65_536.0;

/// From so many effective blocks on those that were sure to be seen leave nothing to
/// chance.
const MANY: f64 = 30.0;

/// The two sets that growth is made of: blocks that live at both times are in neither.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Turnover {
    /// Born between the two times, alive at the second.
    pub gained: Total,
    /// Alive at the first, dead by the second.
    pub lost: Total,
}

/// How long minor blocks live on the allocation clock, weighted in bytes.
#[derive(Debug, Clone)]
pub struct Minor {
    /// The survival curve, over bytes of allocation by the process.
    pub curve: Curve,
    /// How sharp lives are known.
    pub blur: Blur,
    /// N as configured, and the promotion rate that was measured at it.
    own: Option<(u64, Ratio)>,
}

impl Minor {
    /// The promotion rate at a nursery of `bytes`: what was measured where it is the
    /// one that is configured, else what lives say.
    #[must_use]
    pub fn at(&self, bytes: u64) -> Followed {
        match self.own {
            Some((own, ratio)) if own == bytes => match ratio {
                Ratio::Unknown => Followed::Unknown,
                Ratio::Interval { value, low, high, samples } => {
                    Followed::Interval { value, low, high, samples }
                }
            },
            _ => what_if(&self.curve, bytes, self.blur),
        }
    }
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
        let mut heard = base.allocated;
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

    /// The lives of the wanted callstacks' minor blocks.
    #[must_use]
    pub fn minor_lives(&self, wanted: impl Fn(u32) -> bool) -> Minor {
        let own = self.hello.as_ref().map(|hello| {
            let totals = self.totals_of(&wanted);
            (hello.nursery_bytes, estimate::share(&totals.promoted, &totals.minor))
        });
        Minor { own, ..self.minor_lives_at(When::Now, wanted) }
    }

    /// The same as far as they could be followed from the beginning of a range, or ever,
    /// until its end, or a moment, without what was measured at the nursery that is
    /// configured.
    #[must_use]
    pub fn minor_lives_at(&self, when: When, wanted: impl Fn(u32) -> bool) -> Minor {
        let (begin, end) = match when.until(self.now_ns) {
            When::At(at) => (0, at),
            When::Range { from_ns, to_ns } => (from_ns, to_ns),
            When::Now | When::Peak => (0, u64::MAX),
        };
        // G at both: who lived before the one enters late, who lives at the other leaves.
        let since_clock = if begin > 0 { self.clock.at(begin) } else { 0 };
        let until_clock = if end < self.now_ns { self.clock.at(end) } else { self.now_clock };
        let (begin_us, end_us) = (begin / 1000, end / 1000);
        let most = self.hello.as_ref().map_or(u64::MAX, |hello| hello.max_young_bytes);
        let since = self.lives.since().map_or(u64::MAX, |since| since.clock).max(since_clock);
        let mut table = Table::default();
        let (mut dead, mut elsewhere) = (0.0, 0.0);
        let taken = |size: u64, stack: u32| size <= most && wanted(stack);
        // Blocks that were sure to be seen leave nothing to chance. But they also stand
        // for those of a time when R was coarser, as long as hardly any of these were
        // seen: so they count as all others while blocks are effectively few.
        let (mut w, mut w2) = (0.0, 0.0);
        let within = |born_us: u64, ended_us: u64| born_us <= end_us && begin_us < ended_us;
        let over = self
            .lives
            .iter()
            .filter(|life| taken(life.size, life.stack) && within(life.born_us, life.ended_us));
        let living = || {
            self.blocks
                .iter()
                .map(|(_, b)| b)
                .filter(|b| taken(b.size, b.stack) && within(b.born_ns / 1000, u64::MAX))
        };
        let weights = over.clone().map(|life| life.weight());
        for weight in weights.chain(living().map(Block::weight)) {
            w += weight.bytes;
            w2 += weight.bytes * weight.bytes;
        }
        let exact = self.course.sight().interval == Some(Interval::EXACT);
        let many = exact || w * w >= MANY * w2;
        let mass = |w: Weight| Mass {
            w: w.bytes,
            w2: if many { w.bytes_variance } else { w.bytes * w.bytes },
        };
        // A birth is known to 4 KiB: nobody enters later than it leaves.
        let enter = |table: &mut Table, listed: bool, us: u64, born: u64, leaves: u16, mass| {
            let seen = self.lives.first_seen(listed, us).map_or(born, |seen| seen.clock);
            let seen = if born < since { seen.max(since) } else { seen };
            if seen > born {
                table.entered(bucket(seen - born).min(leaves), mass);
            }
            table.n_blocks += 1;
        };
        for life in over {
            let mass = mass(life.weight());
            let age = life.clock_age;
            let left = bucket(until_clock.saturating_sub(life.born_clock));
            let leaves = if life.ended_us > end_us { age.min(left) } else { age };
            enter(&mut table, life.listed, life.born_us, life.born_clock, leaves, mass);
            if life.end == End::Lost || life.ended_us > end_us {
                table.censored(leaves, mass);
                continue;
            }
            table.died(age, mass);
            table.n_deaths += 1;
            dead += mass.w;
            elsewhere += if life.end == End::Freed { 0.0 } else { mass.w };
        }
        for b in living() {
            let mass = mass(b.weight());
            let age = bucket(until_clock.saturating_sub(b.born_clock));
            enter(&mut table, b.listed, b.born_ns / 1000, b.born_clock, age, mass);
            table.censored(age, mass);
        }
        let share = if dead > 0.0 { elsewhere / dead } else { 0.0 };
        let bytes = UNBOOKED_BYTES * self.threads.len().max(1) as f64;
        Minor { curve: Curve::of(&table), blur: Blur { bytes, share }, own: None }
    }

    fn totals_of(&self, wanted: &impl Fn(u32) -> bool) -> heaptop_protocol::totals::Totals {
        let mut totals = heaptop_protocol::totals::Totals::default();
        for (stack, numbers) in self.numbers.iter().enumerate() {
            if wanted(stack as u32) {
                totals.merge(&numbers.totals);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use heaptop_protocol::message::Dropped;

    const KIB: u64 = 1 << 10;

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

    /// Half of the bytes live 256 KiB of allocation, half stay.
    #[test]
    fn lives_on_the_clock_tell_of_other_nurseries() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let mut waiting = std::collections::VecDeque::new();
        for i in 0..4096 {
            let id = f.alloc(stack, KIB);
            if i % 2 == 0 {
                waiting.push_back(id);
            }
            if waiting.len() > 128 {
                f.free(waiting.pop_front().unwrap());
            }
        }
        f.report();
        let minor = f.session.minor_lives(|_| true);
        for (n, want) in [(64 * KIB, 1.0), (512 * KIB, 0.75), (1024 * KIB, 0.625)] {
            let Followed::Interval { value, .. } = minor.at(n) else { panic!("followed") };
            assert!((value - want).abs() < 0.02, "{n}: {value} is not {want}");
        }
        let half = minor.curve.survival(512.0 * 1024.0);
        let Followed::Interval { value, .. } = half else { panic!("followed") };
        assert!((value - 0.5).abs() < 0.02, "{value}");
        // The programme has allocated 4 MiB: further nobody was followed.
        assert!(matches!(minor.at(64 << 20), Followed::Bounds { .. }));
    }

    /// The rate at the nursery that the agent has is measured, not made of lives.
    #[test]
    fn at_its_own_nursery_the_measured_rate_stands() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let kept = f.alloc(stack, 300);
        f.promote(kept);
        let brief = f.alloc(stack, 100);
        f.free(brief);
        f.report();
        let own = f.session.minor_lives(|_| true).at(2 << 20);
        assert_eq!(own, Followed::Interval { value: 0.75, low: 0.75, high: 0.75, samples: 2 });
    }

    /// A viewer that comes late lists what lives: old blocks that say nothing of young
    /// ages. Young ones die at once, old ones all live.
    #[test]
    fn who_was_there_before_enters_late() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        for _ in 0..100 {
            f.birth(stack, KIB);
        }
        f.time_ns += 1_000_000_000;
        f.clock += 1 << 20;
        f.snapshot();
        let from = f.time_ns;
        f.pass(1.0);
        for _ in 0..100 {
            let id = f.alloc(stack, KIB);
            f.free(id);
        }
        f.pass(1.0);
        let minor = f.session.minor_lives(|_| true);
        let Followed::Interval { value, .. } = minor.curve.survival(8.0 * 1024.0) else {
            panic!("followed")
        };
        assert_eq!(value, 0.0, "all whose youth was seen died young");
        assert_eq!(f.session.growth(from, f.time_ns, |_| true), Change::Exact { value: 0.0 });
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

    /// As of a moment of the past nobody knows who dies after it, and as of a range not
    /// who died before.
    #[test]
    fn lives_are_followed_within_what_is_asked() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let half = |f: &mut Fixture, keep: bool| {
            f.time_ns += 1_000_000_000;
            for _ in 0..200 {
                let id = f.alloc(stack, KIB);
                if !keep {
                    f.free(id);
                }
            }
            f.pass(10.0);
            f.time_ns
        };
        let first = half(&mut f, true);
        let second = half(&mut f, false);
        let survival = |when| {
            let minor = f.session.minor_lives_at(when, |_| true);
            match minor.curve.survival(16.0 * 1024.0) {
                Followed::Interval { value, .. } => value,
                other => panic!("{when:?}: {other:?}"),
            }
        };
        assert_eq!(survival(When::At(first)), 1.0);
        assert!(survival(When::Range { from_ns: first, to_ns: second }) < 0.01);
        assert!((survival(When::Now) - 0.5).abs() < 0.05);
    }

    /// Blocks too large to be born young are in no minor figure.
    #[test]
    fn large_blocks_have_no_part() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        f.alloc(stack, 1 << 20);
        f.report();
        assert_eq!(f.session.minor_lives(|_| true).curve.survival(10.0), Followed::Unknown);
    }
}
