//! What the header says about the target, taken from a session at one moment.
//!
//! Figures are held while the screen is paused. What must not be held back
//! (connection, losses, reasons) is in [`Live`] and goes on.

use heaptop_protocol::message::{Losses, Sampling, Track};

use super::keys::Action;
use crate::query::{self, When};
use crate::session::figures::{Estimate, Ratio};
use crate::session::{Connection, Session};

const MINUTE_NS: u64 = 60_000_000_000;

/// Figures of the target as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Its name; empty until it has greeted.
    pub target: String,
    /// Its pid.
    pub pid: Option<u32>,
    /// Minutes since its start.
    pub uptime_minutes: Option<u64>,
    /// When the agent started, in nanoseconds since 1970.
    pub started_unix_ns: Option<u64>,
    /// Wall clock at the first greeting, in nanoseconds since 1970: when a recording began.
    pub recorded_unix_ns: Option<u64>,
    /// R in bytes.
    pub interval_bytes: Option<u32>,
    /// Whether the agent's governor moves R.
    pub governed: bool,
    /// Samples a second.
    pub samples_per_second: Option<f64>,
    /// Which blocks are told of.
    pub track: Track,
    /// Bytes that live.
    pub in_use: Estimate,
    /// The highest bytes in use, and minutes from start to it; without them it is
    /// now.
    pub peak: Option<(Estimate, Option<u64>)>,
    /// Bytes allocated per second.
    pub allocated_rate: Estimate,
    /// Promoted share.
    pub promotion: Ratio,
    /// Resident memory in bytes.
    pub rss_bytes: Option<u64>,
    /// Memory in use by the agent, in bytes.
    pub agent_bytes: Option<u64>,
    /// CPU time of the agent over the last ten seconds, as a share of one core.
    pub agent_cost: Option<f64>,
    /// Samples ever taken.
    pub samples: Option<u64>,
    /// G: bytes ever allocated.
    pub clock_bytes: Option<u64>,
    /// Bytes in use since start, oldest first, with their times.
    pub curve: Vec<(u64, f64)>,
    /// The latest moment, in nanoseconds since start.
    pub now_ns: u64,
    /// From and to when any moment can be asked about.
    pub span: Option<(u64, u64)>,
    /// What moment or range the figures are of.
    pub when: When,
}

impl Summary {
    /// Nothing is known yet.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            target: String::new(),
            pid: None,
            uptime_minutes: None,
            recorded_unix_ns: None,
            started_unix_ns: None,
            interval_bytes: None,
            governed: false,
            samples_per_second: None,
            track: Track::All,
            in_use: Estimate::Unknown,
            peak: None,
            allocated_rate: Estimate::Unknown,
            promotion: Ratio::Unknown,
            rss_bytes: None,
            agent_bytes: None,
            agent_cost: None,
            samples: None,
            clock_bytes: None,
            curve: Vec::new(),
            now_ns: 0,
            span: None,
            when: When::Now,
        }
    }

    /// As `session` stands, or stood.
    #[must_use]
    pub fn of(session: &Session, when: When) -> Self {
        let now = Self::now(session);
        if when == When::Now {
            return now;
        }
        let then = query::whole(session, when);
        let end_ns = match when {
            When::At(at) | When::Range { to_ns: at, .. } => at,
            When::Peak => session.told_peak().map_or(0, |peak| peak.time_ns),
            When::Now => session.now_ns(),
        };
        let history = session.history();
        let before = history.partition_point(|point| point.time_ns <= end_ns);
        Self {
            in_use: then.in_use_bytes,
            allocated_rate: then.allocated_rate,
            promotion: then.promoted,
            rss_bytes: before.checked_sub(1).and_then(|at| history[at].rss_bytes),
            // What was to come is nothing of that moment's.
            peak: session
                .peak_until(end_ns)
                .map(|peak| (peak.in_use, Some(peak.time_ns / MINUTE_NS))),
            // Nobody kept those.
            samples_per_second: None,
            agent_cost: None,
            when,
            ..now
        }
    }

    fn now(session: &Session) -> Self {
        let hello = session.hello();
        let status = session.status();
        Self {
            target: hello.map(|h| h.name.clone()).unwrap_or_default(),
            pid: hello.map(|h| h.pid),
            uptime_minutes: status
                .map(|s| s.at.time_ns)
                .or(hello.map(|h| h.uptime_ns))
                .map(|ns| ns / MINUTE_NS),
            started_unix_ns: hello.map(|h| h.started_unix_ns),
            recorded_unix_ns: hello.map(|h| h.started_unix_ns.saturating_add(h.uptime_ns)),
            interval_bytes: status.map(|s| s.interval.bytes()),
            governed: status.is_some_and(|s| s.governed),
            samples_per_second: session.samples_per_second(),
            in_use: session.in_use(),
            peak: peak(session),
            allocated_rate: session.allocated_rate(),
            promotion: session.promotion(),
            rss_bytes: status.and_then(|s| s.rss_bytes),
            agent_bytes: status.map(|s| s.agent_bytes),
            agent_cost: session.agent_cost(),
            samples: status.map(|s| s.samples),
            clock_bytes: status.map(|s| s.at.clock),
            curve: match session.track() {
                Track::Allocations => Vec::new(),
                _ => curve(session),
            },
            track: session.track(),
            now_ns: session.now_ns(),
            span: session.span(),
            when: When::Now,
        }
    }
}

/// In use over time. The curve has one point a second or fewer: that the highest moment is in
/// it as well keeps it from contradicting the peak beside it.
fn curve(session: &Session) -> Vec<(u64, f64)> {
    let points = session.history().iter();
    let mut curve: Vec<_> = points.map(|point| (point.time_ns, point.in_use_bytes)).collect();
    let told = session.peak().and_then(|peak| Some((peak.time_ns, peak.in_use.point()?)));
    let now = session.in_use().point().map(|now| (session.now_ns(), now));
    for (time_ns, value) in told.into_iter().chain(now) {
        let at = curve.partition_point(|point| point.0 <= time_ns);
        if at > 0 {
            curve.insert(at, (time_ns, value));
        }
    }
    curve
}

/// The highest moment. The agent tells of it more seldom than of what is in use,
/// which may be above the last that it told.
fn peak(session: &Session) -> Option<(Estimate, Option<u64>)> {
    let told = session.peak()?;
    let now = session.in_use();
    Some(if now.point() > told.in_use.point() {
        (now, None)
    } else {
        (told.in_use, Some(told.time_ns / MINUTE_NS))
    })
}

/// What is never held back.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Whether there is a target at the other end.
    pub connection: Connection,
    /// What was lost.
    pub losses: Losses,
    /// Whether the target samples.
    pub sampling: Option<Sampling>,
    /// Why sampling stopped.
    pub stopped: Option<String>,
    /// What the agent had to say at the start, and the session since.
    pub notices: Vec<String>,
    /// The last mark: its time in nanoseconds since the agent's start, and its name.
    pub mark: Option<(u64, String)>,
}

impl Live {
    /// Nothing is known yet.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            connection: Connection::Connecting,
            losses: Losses::default(),
            sampling: None,
            stopped: None,
            notices: Vec::new(),
            mark: None,
        }
    }

    /// As `session` stands.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self {
            mark: session.marks().last().map(|mark| (mark.at.time_ns, mark.label.clone())),
            connection: session.connection().clone(),
            losses: session.losses(),
            sampling: session.status().map(|s| s.sampling),
            stopped: session.stopped().map(str::to_owned),
            notices: session.notices().iter().map(ToString::to_string).collect(),
        }
    }

    /// A mark that came since `before` and is not older than `since_ns` from the agent's
    /// start: its name, and minutes from that start.
    #[must_use]
    pub fn news_after(&self, before: &Self, since_ns: u64) -> Option<(&str, u64)> {
        let (time_ns, label) = self.mark.as_ref().filter(|_| self.mark != before.mark)?;
        (*time_ns >= since_ns).then_some((label, time_ns / MINUTE_NS))
    }

    /// Events known to be lost, of all kinds.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        let l = &self.losses;
        l.births.saturating_add(l.stacks).saturating_add(l.unsent)
    }
}

impl Live {
    /// What is wrong, in a sentence; `silence` are the seconds for which a connected
    /// target has said nothing.
    #[must_use]
    pub fn trouble(&self, silence: Option<u64>) -> Option<String> {
        match (&self.connection, silence) {
            (Connection::Lost(why) | Connection::Ended(why), _) => {
                return Some(format!("{why}; figures are as of then"));
            }
            (Connection::Connected, Some(seconds)) => {
                return Some(format!(
                    "no news for {seconds} s: the target may be stopped or too busy; figures are as of then"
                ));
            }
            (Connection::Connected, None) | (Connection::Connecting, _) => {}
        }
        match (&self.stopped, self.sampling) {
            (Some(why), _) => Some(format!("sampling stopped: {why}")),
            (None, Some(Sampling::Paused)) => {
                Some("sampling is off: what is born now is not seen".into())
            }
            (None, Some(Sampling::Stopped)) => Some("sampling has stopped".into()),
            (None, Some(Sampling::On) | None) => None,
        }
    }

    /// What the user can do about that trouble: an action, and what it does.
    #[must_use]
    pub const fn remedy(&self, silence: Option<u64>) -> Option<(Action, &'static str)> {
        match (&self.connection, self.sampling, &self.stopped) {
            (Connection::Ended(_), ..) => Some((Action::Targets, "lists the targets that run")),
            (Connection::Connected, Some(Sampling::Paused), None) if silence.is_none() => {
                Some((Action::Sampling, "starts it again"))
            }
            _ => None,
        }
    }
}
