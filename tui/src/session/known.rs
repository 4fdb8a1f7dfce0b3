//! What a session knows: its accessors.

use super::blocks::Block;
use super::book::Book;
use super::course::Course;
use super::estimate::survival::Table;
use super::figures::{Estimate, Followed, Lifetime, Ratio};
use super::{Connection, Everything, Numbers, Session, estimate};
use heaptop_protocol::callstack::{Frame, Module};
use heaptop_protocol::ids::{BlockId, ModuleId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, Hello, HistoryPoint, Losses, Mark, Status, Thread, Track,
};
use heaptop_protocol::totals::{Total, Totals};
use rustc_hash::FxHashMap;

/// What is unknown of a target whose agent tells of some blocks only.
pub(super) const fn tracks_less(track: Track) -> Option<&'static str> {
    match track {
        Track::All => None,
        Track::Promoted => Some(
            "Only blocks that were promoted, or born major, are tracked: in use is of these, and \
             what is allocated, dies young, or lives how long is unknown.",
        ),
        Track::Allocations => Some(
            "Only allocations are tracked: what is in use, survives, or lives how long is unknown.",
        ),
    }
}

impl Session {
    /// Changes when something shown may have changed.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The agent's greeting, without its notices: see [`Self::notices`].
    #[must_use]
    pub const fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Which blocks the agent tells of.
    #[must_use]
    pub fn track(&self) -> Track {
        self.hello.as_ref().map_or(Track::All, |hello| hello.track)
    }

    /// What is unknown for that, in a sentence.
    #[must_use]
    pub fn tracks_less(&self) -> Option<&'static str> {
        tracks_less(self.track())
    }

    /// Whether what is in use is told: of promoted and major blocks at least.
    #[must_use]
    pub fn knows_in_use(&self) -> bool {
        self.track() != Track::Allocations
    }

    /// Whether all that is allocated is told.
    #[must_use]
    pub fn knows_allocated(&self) -> bool {
        self.track() != Track::Promoted
    }

    /// Whether lives are told from birth to death: how long they are, and what share of
    /// them is short.
    #[must_use]
    pub fn knows_lives(&self) -> bool {
        self.track() == Track::All
    }

    /// The last status.
    #[must_use]
    pub const fn status(&self) -> Option<&Status> {
        self.course.status()
    }

    /// The state of the connection.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What was wrong with the agent's configuration, a sentence each.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Why sampling stopped for good, if it did.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// The named moments, in order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Latest time heard of, in nanoseconds since the agent's start.
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Bytes in use by the whole target.
    #[must_use]
    pub fn in_use(&self) -> Estimate {
        self.status()
            .filter(|_| self.knows_in_use())
            .map_or(Estimate::Unknown, |s| estimate::bytes(&s.totals.in_use, self.course.sight()))
    }

    /// Bytes allocated per second by the whole target, over the last ten seconds.
    #[must_use]
    pub fn allocated_rate(&self) -> Estimate {
        let Some(seconds) = self.rate_seconds().filter(|_| self.knows_allocated()) else {
            return Estimate::Unknown;
        };
        let mut born = Total::default();
        for of_step in self.everything.born.iter(self.course.rate_steps()) {
            born.merge(&of_step);
        }
        estimate::per_second(estimate::bytes(&born, self.course.rate_sight()), seconds)
    }

    /// Seconds that rates of the present are over; `None` while there are too few, and while
    /// sampling was off for a part of them.
    #[must_use]
    pub fn rate_seconds(&self) -> Option<f64> {
        self.course.rate_seconds(self.least_seconds())
    }

    /// A rate over less says nothing yet; of a target that has ended there is no more to wait
    /// for.
    pub(super) const fn least_seconds(&self) -> f64 {
        if self.has_ended() { f64::MIN_POSITIVE } else { 0.5 }
    }

    /// Whether nothing will come any more.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.connection, Connection::Ended(_))
    }

    /// Promoted share of what was born young in the whole target.
    #[must_use]
    pub fn promotion(&self) -> Ratio {
        self.status()
            .filter(|_| self.knows_lives())
            .map_or(Ratio::Unknown, |s| estimate::share(&s.totals.promoted, &s.totals.minor))
    }

    /// Samples a second over the last ten seconds.
    #[must_use]
    pub fn samples_per_second(&self) -> Option<f64> {
        self.course.samples_per_second(self.least_seconds())
    }

    /// CPU time of the agent over the last ten seconds, as a share of one core.
    #[must_use]
    pub fn agent_cost(&self) -> Option<f64> {
        // No agent of ours ran in what a trace is of.
        let measured = self.course.status().is_some_and(|status| status.agent_cpu_ns > 0);
        let runtime = self.hello.as_ref().is_some_and(|hello| hello.kind == AgentKind::Ocaml);
        self.course.agent_cost(self.least_seconds()).filter(|_| measured || !runtime)
    }

    /// The curve since the agent's start, in order of time.
    #[must_use]
    pub fn history(&self) -> &[HistoryPoint] {
        self.course.history()
    }

    /// What the agent lost, ever; `unsent` includes what it announced since the last status.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let told = self.status().map_or(Losses::default(), |s| s.losses);
        Losses { unsent: told.unsent.max(self.dropped), ..told }
    }

    /// What found no room in this model: callstacks, and live blocks.
    #[must_use]
    pub const fn refused(&self) -> (u64, u64) {
        (self.book.refused, self.blocks.refused)
    }

    /// Messages that this version does not know.
    #[must_use]
    pub const fn unknown_messages(&self) -> u64 {
        self.unknown
    }

    /// Frames seen in callstacks that were not handed out before: to be named.
    pub fn take_wanted_frames(&mut self) -> Vec<Frame> {
        self.book.take_wanted()
    }

    /// The target's modules.
    #[must_use]
    pub const fn modules(&self) -> &FxHashMap<ModuleId, Module> {
        self.book.modules()
    }

    /// Changes when a thread that was known is called otherwise.
    #[must_use]
    pub const fn threads_renamed(&self) -> u64 {
        self.threads_renamed
    }

    /// The target's threads.
    #[must_use]
    pub const fn threads(&self) -> &FxHashMap<ThreadId, Thread> {
        &self.threads
    }

    /// The sampled blocks that live, in no order.
    pub fn live_blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> + '_ {
        self.blocks.iter()
    }

    /// Those of the callstacks that are wanted.
    pub(crate) fn live_blocks_of(
        &self,
        wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (BlockId, &Block)> {
        self.blocks.of_stacks(wanted)
    }

    /// How many sampled blocks live, as far as they are known here.
    #[must_use]
    pub fn live_block_count(&self) -> usize {
        self.blocks.count()
    }

    /// Names, callstacks and groups.
    #[must_use]
    pub const fn book(&self) -> &Book {
        &self.book
    }

    /// Numbers by callstack, beside [`Book::stacks`].
    pub(crate) fn numbers(&self) -> &[Numbers] {
        &self.numbers
    }

    /// All callstacks together.
    pub(crate) const fn everything(&self) -> &Everything {
        &self.everything
    }

    /// How often totals of callstacks have changed.
    pub(crate) const fn counts(&self) -> u64 {
        self.everything.counts
    }

    /// The callstacks whose totals have changed since there were so many changes.
    pub(crate) fn counted_since(&self, changes: u64) -> impl Iterator<Item = u32> + '_ {
        let all = (0..).zip(&self.everything.counted);
        all.filter(move |(_, last)| **last > changes).map(|(stack, _)| stack)
    }

    /// The totals of all callstacks together.
    pub(crate) fn whole(&self) -> Totals {
        self.book.groups().whole(&self.numbers)
    }

    /// The totals of a group of callstacks.
    pub(crate) fn group_totals(&self, group: u32) -> &Totals {
        self.book.groups().totals(group, &self.numbers)
    }

    /// The median lifetime of a group of callstacks, and the mean where it is wanted;
    /// `table` is room to work in.
    pub(crate) fn group_lifetime(
        &self,
        group: u32,
        table: &mut Table,
        with_mean: bool,
    ) -> (Lifetime, Followed) {
        let lived = &self.everything.lived;
        self.book.groups().lifetime(group, &self.numbers, lived, self.now_ns, table, with_mean)
    }

    /// Status over time.
    #[must_use]
    pub const fn course(&self) -> &Course {
        &self.course
    }
}
