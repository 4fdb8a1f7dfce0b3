//! What agent and connection had to say, line by line, for who wants to know what happened.
//!
//! Lines are bounded: the oldest go. The log outlives a target that is connected to anew,
//! as the session's other parts do not.

use super::{Connection, Session};
use heaptop_protocol::message::{Losses, Sampling, Status};
use std::collections::VecDeque;

/// Most lines that are kept.
pub const MOST_LINES: usize = 1000;
/// What is lost within so many nanoseconds is one line.
const TOGETHER_NS: u64 = 1_000_000_000;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The connection to the target.
    Connection,
    /// What the agent says by itself.
    Agent,
    /// R, and whether blocks are sampled.
    Sampling,
    /// Something is missing in the figures.
    Loss,
    /// A mark, a phase or a context.
    Moment,
    /// What the viewer did, and how that ended.
    Viewer,
}

impl Kind {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Agent => "agent",
            Self::Sampling => "sampling",
            Self::Loss => "loss",
            Self::Moment => "moment",
            Self::Viewer => "viewer",
        }
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 0; there are no gaps.
    pub number: u64,
    /// The target's time, in nanoseconds since the agent's start.
    pub at_ns: u64,
    /// What it is about.
    pub kind: Kind,
    /// What happened. Any text may be in it.
    pub text: String,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<Line>,
    next: u64,
    /// Losses that were told of.
    told: Losses,
    /// The last line of them.
    losing: Option<Losing>,
}

/// A line of losses that may grow.
#[derive(Debug, Clone, Copy)]
struct Losing {
    line: u64,
    /// What was lost before it.
    before: Losses,
    began_ns: u64,
}

impl Log {
    /// The lines, the oldest first.
    #[must_use]
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.lines.iter()
    }

    /// Adds a line.
    pub fn add(&mut self, at_ns: u64, kind: Kind, text: String) {
        if self.lines.len() >= MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(Line { number: self.next, at_ns, kind, text });
        self.next += 1;
    }

    /// How old the target is, which nobody knew of what was said just before.
    fn came_at(&mut self, uptime_ns: u64) {
        for line in self.lines.iter_mut().rev().take_while(|line| line.at_ns == 0) {
            line.at_ns = uptime_ns;
        }
    }

    /// Losses so far, as told at `at_ns`.
    fn lost(&mut self, now: Losses, at_ns: u64) {
        if now == self.told {
            return;
        }
        let last = self.lines.back().map(|line| line.number);
        let grows = self.losing.filter(|losing| {
            last == Some(losing.line) && at_ns < losing.began_ns.saturating_add(TOGETHER_NS)
        });
        if let (Some(losing), Some(line)) = (grows, self.lines.back_mut()) {
            line.text = losses(&losing.before, &now);
        } else {
            let losing = Losing { line: self.next, before: self.told, began_ns: at_ns };
            self.losing = Some(losing);
            self.add(at_ns, Kind::Loss, losses(&losing.before, &now));
        }
        self.told = now;
    }

    /// A greeting: of another target, or of the same one anew, nothing was told yet.
    fn greeted(&mut self) {
        (self.told, self.losing) = (Losses::default(), None);
    }
}

/// What was lost from `before` to `now`.
fn losses(before: &Losses, now: &Losses) -> String {
    let more = |of: fn(&Losses) -> u64| of(now).saturating_sub(of(before));
    let kinds = [
        (more(|l| l.births), "births found no room: they are in no figure"),
        (more(|l| l.stacks), "births are counted in (other stacks)"),
        (more(|l| l.unsent), "events were not sent to heaptop: they are in totals only"),
        (more(|l| u64::from(l.thinned)), "times R was doubled at the agent's memory bound"),
    ];
    let said: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    said.join("; ")
}

/// Bytes in the largest unit in which they are whole.
fn binary(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| format!("{bytes} B"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

impl Session {
    /// What agent and connection had to say.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn log_connection(&mut self) {
        let text = match &self.connection {
            Connection::Connecting => "connecting".to_owned(),
            Connection::Connected => "connected".to_owned(),
            Connection::Lost(why) => format!("lost: {why}"),
            Connection::Ended(how) => format!("ended: {how}"),
        };
        self.say(Kind::Connection, text);
    }

    /// It has said nothing for so many seconds until now.
    pub fn was_silent(&mut self, seconds: u64) {
        let why = "the target was stopped, or got no time";
        self.say(Kind::Connection, format!("no news for {seconds} s: {why}"));
    }

    pub(super) fn log_greeting(&mut self) {
        self.log.greeted();
        let Some(hello) = &self.hello else { return };
        self.log.came_at(hello.uptime_ns);
        let text = format!(
            "{} (pid {}), agent {}, nursery of {}, callstacks of {} frames at most",
            hello.name,
            hello.pid,
            hello.agent_version,
            binary(hello.nursery_bytes),
            hello.depth
        );
        self.say(Kind::Agent, text);
        for notice in self.notices.clone() {
            self.say(Kind::Agent, notice);
        }
    }

    /// What has changed since the last status.
    pub(super) fn log_status(&mut self, before: Option<&Status>, now: &Status) {
        let rate = |s: &Status| (s.interval, s.governed);
        if before.map(rate) != Some(rate(now)) {
            let who = if now.governed { "the agent chooses it" } else { "it is set" };
            let text = match now.interval.bytes() {
                1 => format!("every byte is sampled; {who}"),
                bytes => format!("1 sample in {}; {who}", binary(bytes.into())),
            };
            self.say(Kind::Sampling, text);
        }
        if before.is_some_and(|before| before.sampling != now.sampling) {
            self.say(
                Kind::Sampling,
                match now.sampling {
                    Sampling::On => "sampling goes on".into(),
                    Sampling::Paused => "sampling is off: what is born now is not seen".into(),
                    Sampling::Stopped => "sampling has stopped for good".into(),
                },
            );
        }
        let losses = self.losses();
        self.log.lost(losses, self.now_ns);
    }

    pub(super) fn say(&mut self, kind: Kind, text: String) {
        // Before the first of its messages a target is as old as it said.
        let greeted_ns = self.hello.as_ref().map_or(0, |hello| hello.uptime_ns);
        self.log.add(self.now_ns.max(greeted_ns), kind, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Input;
    use crate::session::fixture::Fixture;

    fn said(session: &Session, kind: Kind) -> Vec<String> {
        session.log().lines().filter(|l| l.kind == kind).map(|l| l.text.clone()).collect()
    }

    #[test]
    fn losses_of_a_second_are_one_line() {
        let mut f = Fixture::new(1024);
        for births in 1..=3 {
            f.losses.births = births;
            f.time_ns += 300_000_000;
            f.report();
        }
        assert_eq!(said(&f.session, Kind::Loss), ["3 births found no room: they are in no figure"]);
        f.losses.unsent = 7;
        f.time_ns += 2_000_000_000;
        f.report();
        let lines = said(&f.session, Kind::Loss);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("7 events were not sent"), "{lines:?}");
    }

    #[test]
    fn the_log_outlives_the_connection_and_is_bounded() {
        let mut f = Fixture::new(1024);
        f.session.apply(Input::Connection(Connection::Lost("no route".into())));
        f.session.apply(Input::Connection(Connection::Connected));
        let hello = f.hello();
        f.say(hello);
        assert!(said(&f.session, Kind::Connection).contains(&"lost: no route".to_owned()));
        assert_eq!(said(&f.session, Kind::Agent).len(), 2, "it has greeted twice");
        for _ in 0..2 * MOST_LINES {
            f.session.apply(Input::Connection(Connection::Lost("again".into())));
            f.session.apply(Input::Connection(Connection::Connected));
        }
        let numbers: Vec<u64> = f.session.log().lines().map(|l| l.number).collect();
        assert_eq!(numbers.len(), MOST_LINES);
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }

    #[test]
    fn what_changes_how_it_is_sampled_is_said() {
        let mut f = Fixture::new(1024);
        f.report();
        f.sampling = Sampling::Paused;
        f.report();
        f.report();
        let lines = said(&f.session, Kind::Sampling);
        assert_eq!(
            lines,
            ["1 sample in 1 KiB; it is set", "sampling is off: what is born now is not seen"]
        );
    }
}
