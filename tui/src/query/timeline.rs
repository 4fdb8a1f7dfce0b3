//! The target as a whole over time.

use crate::session::{PeakView, Session};

/// Steps of a curve that is made of single blocks, where there is no history.
const STEPS: usize = 512;

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// Bytes in use.
    pub in_use_bytes: f64,
    /// Bytes ever allocated, if known.
    pub allocated_bytes: Option<f64>,
    /// Bytes ever promoted, if known.
    pub promoted_bytes: Option<f64>,
    /// Resident memory, if known.
    pub rss_bytes: Option<u64>,
    /// Before the span: the curve is known, and nothing behind it.
    pub before: bool,
}

/// The curve since the target's start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// In order of time.
    pub points: Vec<Point>,
    /// Named moments: nanoseconds since the agent's start, and the name.
    pub marks: Vec<(u64, String)>,
    /// The highest moment.
    pub peak: Option<PeakView>,
    /// From when to when any moment can be asked about: [`Session::span`].
    pub span: Option<(u64, u64)>,
    /// From when to when events were lost; sums of what was born then are known from
    /// below alone.
    pub blind: Vec<(u64, u64)>,
}

/// In use over time: the agent's own curve, or where it told none, one made of the blocks
/// that were heard of.
#[must_use]
pub fn curve(session: &Session) -> Curve {
    let span = session.span();
    let before = |time_ns: u64| span.is_none_or(|(from, _)| time_ns < from);
    let mut points: Vec<Point> = session
        .history()
        .iter()
        .map(|p| Point {
            time_ns: p.time_ns,
            in_use_bytes: p.in_use_bytes,
            allocated_bytes: Some(p.allocated_bytes),
            promoted_bytes: Some(p.promoted_bytes),
            rss_bytes: p.rss_bytes,
            before: before(p.time_ns),
        })
        .collect();
    if let Some((from, to)) = span
        && points.last().is_none_or(|last| last.before)
    {
        let values = session.in_use_over_time(from, to, STEPS);
        let step = u128::from(to - from);
        let time = |i: usize| from + (step * (i as u128 + 1) / STEPS as u128) as u64;
        points.extend(values.iter().enumerate().map(|(i, &in_use_bytes)| Point {
            time_ns: time(i),
            in_use_bytes,
            allocated_bytes: None,
            promoted_bytes: None,
            rss_bytes: None,
            before: false,
        }));
    }
    Curve {
        points,
        marks: session.marks().iter().map(|m| (m.at.time_ns, m.label.clone())).collect(),
        peak: session.peak(),
        span,
        blind: session.blind().collect(),
    }
}
