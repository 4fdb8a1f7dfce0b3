//! From and to which moments, and how much of that was seen.

use super::super::estimate::{GrowthSight, Sight};
use super::super::when::When;
use super::Session;
use super::present::grid;
use heaptop_protocol::message::AgentKind;

/// Rates at a moment of the past are over so long before it, in nanoseconds.
const RATE_NS: u64 = 10_000_000_000;
/// Trends at a moment begin so long before it.
const TREND_NS: u64 = 120_000_000_000;

/// See the module. Times are in microseconds since the agent's start: a block is alive
/// at t where birth ≤ t < end.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says of one thing whether it is so")]
pub struct Bounds {
    pub when: When,
    /// Births after this are counted as allocated,
    pub born_after_us: u64,
    /// until this, at which blocks are in use.
    pub end_us: u64,
    /// Births after this are in rates,
    pub window_us: u64,
    /// until this.
    pub window_end_us: u64,
    /// What was until then is unknown.
    pub since_us: u64,
    /// Where trends begin,
    pub trend_us: u64,
    /// and whether their steps lie on a grid.
    pub grid: bool,
    /// Who is followed for his lifetime is so from here on at the earliest.
    pub followed_us: u64,
    /// Minor blocks born from this G on are counted. Of those born before it in a cycle
    /// that was not over nobody told who had died: the rest would be promoted too often.
    pub minor_from: u64,
    /// Of them those whose cycle ended until this.
    pub cycles_until: u64,
    cycle: Cycle,
    /// What is known at all.
    pub in_use: bool,
    pub allocated: bool,
    pub grows: bool,
    pub rate_seconds: Option<f64>,
    pub sight_of_in_use: Sight,
    pub sight_of_allocated: Sight,
    pub sight_of_rates: Sight,
    pub sight_of_growth: GrowthSight,
}

/// When a young block's cycle ends.
#[derive(Debug, Clone, Copy)]
enum Cycle {
    /// By OCaml's rule over the process.
    Virtual { nursery: u64, phase: u64 },
    /// When the runtime says so: by what became of the block.
    Runtime,
}

impl Bounds {
    pub fn new(session: &Session, when: When) -> Self {
        let (from_ns, end_ns) = match when {
            When::Range { from_ns, to_ns } => (Some(from_ns), to_ns),
            When::At(at) => (None, at),
            When::Peak => (None, session.course.peak().map_or(0, |peak| peak.time_ns)),
            When::Now => (None, session.now_ns),
        };
        let span = session.span();
        let base = session.base.as_ref().map(|base| base.at);
        let since_ns = span.map_or(u64::MAX, |span| span.0);
        let past = when != When::Peak && span.is_some();
        let in_use = past && since_ns <= end_ns;
        // What was allocated is known if all births since the totals are.
        let whole = base.is_some_and(|base| base.time_ns >= since_ns);
        let allocated = in_use && from_ns.map_or(whole, |from| since_ns <= from);
        let course = &session.course;
        // The present has one window, whatever its blocks are put together by.
        let present = course.rate_window().filter(|_| end_ns == session.now_ns);
        let (window_ns, window_end_ns) = match (from_ns, present) {
            (Some(from), _) => (from, end_ns),
            (None, Some((from, to))) => (from, to.min(end_ns)),
            (None, None) => (end_ns.saturating_sub(RATE_NS), end_ns),
        };
        let window_ns = window_ns.max(since_ns);
        let seconds = window_end_ns.saturating_sub(window_ns) as f64 / 1e9;
        // A range that was chosen is as long as it is.
        let least = from_ns.map_or(session.least_seconds(), |_| f64::MIN_POSITIVE);
        let rates = in_use
            && seconds >= least
            && from_ns.is_none_or(|from| since_ns <= from)
            && !course.was_off(window_ns, window_end_ns);
        let (nursery, phase) =
            session.hello.as_ref().map_or((0, 0), |h| (h.nursery_bytes, h.phase_bytes));
        let runtime = session.hello.as_ref().is_some_and(|h| h.kind == AgentKind::Ocaml);
        let thinned = if session.lives.halvings() > 0 { session.lives.coarsest() } else { None };
        let full = session.blocks.refused > 0;
        // Where the agent has thinned, blocks stand for more than when they were born.
        let bound = session.losses().thinned > 0;
        let sight = |from_ns: u64, of: Sight, blind: bool| {
            let then = course.coarsest_between(from_ns, end_ns);
            let interval = if bound { of.interval } else { then.or(of.interval) };
            Sight { interval: interval.max(thinned), lost: of.lost || full || blind, ..of }
        };
        let until_end = course.sight_until(end_ns);
        let since = |from_ns: u64| course.sight_between(from_ns, end_ns);
        let blind_at = |ns: u64| session.was_blind(ns, ns);
        let born_after_ns = from_ns.or(base.map(|base| base.time_ns)).unwrap_or(0);
        let trend_ns = from_ns.unwrap_or(end_ns.saturating_sub(TREND_NS)).max(since_ns);
        let from_clock = from_ns.map_or(0, |from| session.clock.at(from));
        Self {
            when,
            born_after_us: born_after_ns / 1000,
            end_us: end_ns / 1000,
            window_us: window_ns / 1000,
            window_end_us: window_end_ns / 1000,
            since_us: since_ns / 1000,
            trend_us: trend_ns.min(end_ns) / 1000,
            grid: false,
            followed_us: from_ns.unwrap_or(0) / 1000,
            minor_from: if from_ns.is_some() { 0 } else { base.map_or(0, |base| base.clock) },
            cycles_until: session.clock.at(end_ns).max(from_clock),
            cycle: if runtime || nursery == 0 {
                Cycle::Runtime
            } else {
                Cycle::Virtual { nursery, phase }
            },
            in_use: in_use || when == When::Peak && course.peak().is_some(),
            allocated,
            grows: in_use && from_ns.is_some_and(|from| since_ns <= from),
            rate_seconds: rates.then_some(seconds),
            sight_of_in_use: if when == When::Peak {
                until_end
            } else {
                sight(0, until_end, blind_at(end_ns))
            },
            // Of a range those that were born in it are counted, and no others.
            sight_of_allocated: sight(
                from_ns.unwrap_or(0),
                from_ns.map_or(until_end, since),
                session.was_blind(born_after_ns, end_ns),
            ),
            sight_of_rates: Sight {
                off: false,
                ..sight(window_ns, since(window_ns), session.was_blind(window_ns, end_ns))
            },
            sight_of_growth: {
                let blind = blind_at(end_ns) || from_ns.is_some_and(blind_at);
                let from = from_ns.unwrap_or(0);
                GrowthSight {
                    gained: sight(from, since(from), blind),
                    lost: sight(0, course.sight_until(from), blind),
                }
            },
        }
    }

    /// Whether a birth is in the window of rates.
    #[inline]
    pub const fn in_window(&self, born_us: u64) -> bool {
        self.window_us < born_us && born_us <= self.window_end_us
    }

    /// The same with trends in steps that stay where they are while time goes on.
    pub fn on_grid(&self) -> Self {
        let trend_us = grid::begin(self.trend_us).max(self.since_us).min(self.end_us);
        Self { trend_us, grid: true, ..*self }
    }

    /// The same for a moment after all that has happened, without a window of rates.
    pub fn settled(&self) -> Self {
        const NEVER: u64 = u64::MAX - 1;
        Self { end_us: NEVER, window_us: NEVER, cycles_until: u64::MAX, ..*self }
    }

    /// G at the end of the cycle that a birth falls into.
    #[inline]
    pub fn cycle_end(&self, born_clock: u64) -> u64 {
        match self.cycle {
            Cycle::Runtime => 0,
            Cycle::Virtual { nursery, phase } => {
                let into = born_clock.wrapping_add(phase) % nursery;
                born_clock.saturating_add(nursery - into)
            }
        }
    }

    /// Whether the cycle of a block that was born young is over, as far as it has one.
    #[inline]
    pub fn is_over(&self, born_clock: u64) -> bool {
        self.cycle_end(born_clock) <= self.cycles_until
    }

    /// Whether a living block that was born young outlives its cycle. Where that is the
    /// runtime's, nobody knows of one that is still young; else who lives at the cycle's end
    /// is promoted, whether it was told yet or not.
    #[inline]
    pub const fn outlives(&self, still_young: bool) -> bool {
        match self.cycle {
            Cycle::Runtime => !still_young,
            Cycle::Virtual { .. } => true,
        }
    }

    /// Whether a block that was born young is counted among those whose cycle is over;
    /// `decided`: it is known by now what became of it.
    #[inline]
    pub fn counts(&self, born_clock: u64, decided: bool) -> bool {
        match self.cycle {
            Cycle::Runtime => decided,
            Cycle::Virtual { .. } => {
                self.minor_from <= born_clock && self.cycle_end(born_clock) <= self.cycles_until
            }
        }
    }
}
