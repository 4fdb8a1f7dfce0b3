//! What leaves the screen: flamegraphs as SVG and rows as text.
//!
//! [`svg`] is pure: stacks in, bytes out. The state fills a [`Request`] with what
//! is on the screen (metric, focus, filter), from the same query, and beside it, where the
//! screen is a table, what `heaptop report` makes of it: [`Shown`]. [`run`] makes and writes
//! the file, for the terminal loop, where a [`Destination`] says. A file is never overwritten.

mod destination;
mod prune;
mod shown;
mod svg;
mod trace;

pub use destination::{Destination, Names, Proposal, propose};
pub use shown::{Format, Shown, run, write_new};
pub use svg::{ExportError, Shape, svg};
pub use trace::trace;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use crate::query::{
    self, Direction, FlameQuestion, Label, LeakRow, Metric, NodeKey, PromotionRow, Row, Series,
    ThreadRow, Weighed, When,
};
use crate::session::Session;
use crate::session::figures::Estimate;
use crate::view::format::{self, Unit};
use crate::view::text;

/// An export of what is on the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The target's name.
    pub target: String,
    /// Its pid.
    pub pid: u32,
    /// What is counted.
    pub metric: Metric,
    /// The focus, outermost first; empty: the whole target.
    pub focus: Vec<Label>,
    /// The filter in force; empty: none.
    pub filter: String,
    /// The sum of the stacks, with its interval.
    pub total: Estimate,
    /// R in bytes, if known.
    pub interval_bytes: Option<u32>,
    /// Minutes since the target's start.
    pub uptime_minutes: u64,
    /// What moment or range is counted.
    pub when: When,
    /// Samples' worth of events known to be lost.
    pub lost: u64,
    /// Stacks with their weights, root first.
    pub stacks: Vec<(Vec<Label>, f64)>,
    /// The root is on top.
    pub icicle: bool,
    /// What each callstack had in use before: the picture is coloured by the difference.
    pub before: Option<Weighed>,
    /// Widths count what was born since a moment and lives.
    pub gained: bool,
}

impl Request {
    /// What of `session` is exported: the stacks through a focus of nodes, whose names
    /// are `crumbs`.
    #[must_use]
    pub fn of(
        session: &Session,
        when: When,
        (focus, direction): (&[NodeKey], Direction),
        metric: Metric,
        filter: &str,
        crumbs: Vec<Label>,
    ) -> Self {
        let whole = query::tree(session, when, focus, direction, metric, filter, |_| false);
        Self {
            focus: crumbs,
            total: whole.map_or(Estimate::Unknown, |node| node.cum),
            stacks: query::stacks(session, when, focus, direction, metric, filter),
            ..Self::of_nothing(session, when, metric, filter)
        }
    }

    /// What is told of the target, without any stacks.
    fn of_nothing(session: &Session, when: When, metric: Metric, filter: &str) -> Self {
        let (hello, losses) = (session.hello(), session.losses());
        let at_ns = match when {
            When::Now => session.now_ns(),
            When::At(at) | When::Range { to_ns: at, .. } => at.min(session.now_ns()),
            When::Peak => session.told_peak().map_or(0, |peak| peak.time_ns),
        };
        Self {
            target: hello.map(|hello| hello.name.clone()).unwrap_or_default(),
            pid: hello.map_or(0, |hello| hello.pid),
            metric,
            focus: Vec::new(),
            filter: filter.into(),
            total: Estimate::Unknown,
            interval_bytes: session.status().map(|status| status.interval.bytes()),
            uptime_minutes: at_ns / 60_000_000_000,
            when,
            lost: losses.births.saturating_add(losses.stacks).saturating_add(losses.unsent),
            stacks: Vec::new(),
            icicle: false,
            before: None,
            gained: false,
        }
    }

    /// What a flamegraph of the screen shows: the stacks that begin as its zoom does.
    #[must_use]
    pub fn of_flame(session: &Session, question: &FlameQuestion<'_>, icicle: bool) -> Self {
        let (stacks, total, before) = query::flame_stacks(session, question);
        let gained = question.gained_from_ns.is_some();
        let label = |key: &NodeKey| query::find(session, *key);
        let focus = question.zoom.last().and_then(label).into_iter().collect();
        let FlameQuestion { when, metric, filter, .. } = *question;
        let nothing = Self::of_nothing(session, when, metric, filter);
        Self { focus, total, stacks, icicle, before, gained, ..nothing }
    }

    /// A line for each callstack.
    pub fn folded(&self) -> Result<Vec<u8>, ExportError> {
        let mut text = svg::folded(&self.stacks, usize::MAX)?.join("\n");
        text.push('\n');
        Ok(text.into_bytes())
    }

    /// What the names of its files begin with.
    fn stem(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
        let name: String = self.target.chars().take(40).map(plain).collect();
        format!("heaptop-{name}-{}", self.pid)
    }

    /// The picture's heading.
    #[must_use]
    pub fn title(&self) -> String {
        let counted = if self.gained { "growth: bytes gained" } else { metric(self.metric) };
        let mut title = format!("{} · pid {} · {counted}", self.target, self.pid);
        for label in &self.focus {
            let _ = write!(title, " · through {}", label.function);
        }
        title
    }

    /// What must be known to read the picture.
    #[must_use]
    pub fn subtitle(&self) -> String {
        let mut line = format!("{}", format::estimate(&self.total, unit(self.metric)));
        if let Some(r) = self.interval_bytes {
            let _ = write!(line, " (95 %) · sampled {}", format::interval(r));
        }
        let moment = |ns| format::moment(ns, 0);
        let _ = match self.when {
            When::Now => write!(line, " · up {}", format::uptime(self.uptime_minutes)),
            When::At(at) => write!(line, " · at {}", moment(at)),
            When::Range { from_ns, to_ns } => {
                write!(line, " · from {} to {}", moment(from_ns), moment(to_ns))
            }
            When::Peak => {
                write!(line, " · at the peak, up {}", format::uptime(self.uptime_minutes))
            }
        };
        if !self.filter.is_empty() {
            let _ = write!(line, " · filter “{}”", self.filter);
        }
        if self.before.is_some() {
            line += " · red: more than before, blue: less";
        }
        if self.lost > 0 {
            let _ = write!(line, " · {} events dropped", self.lost);
        }
        line
    }

    /// The picture.
    pub fn svg(&self) -> Result<Vec<u8>, ExportError> {
        let unit = unit_name(self.metric);
        let shape = Shape { icicle: self.icicle, before: self.before.as_deref() };
        svg(&self.stacks, &self.title(), &self.subtitle(), unit, shape)
    }
}

/// Writes a new file; one that exists is an error and stays as it is. What could
/// be written only in part is taken away again.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

/// A callsite's row as text, its fields separated by tabs.
#[must_use]
pub fn row_text(row: &Row) -> String {
    let f = &row.figures;
    [
        label_text(&row.label),
        format!("in use {}", format::estimate(&f.in_use_bytes, Unit::Bytes)),
        format!("objects {}", format::estimate(&f.in_use_objects, Unit::Objects)),
        format!("allocated {}", format::estimate(&f.allocated_bytes, Unit::Bytes)),
        format!("alloc/s {}", format::estimate(&f.allocated_rate, Unit::BytesPerSecond)),
        format!("promoted {}", format::ratio(&f.promoted)),
        format!("lifetime {}", format::lifetime(&f.lifetime)),
    ]
    .join("\t")
}

/// A row of the promotion screen as text, its fields separated by tabs.
#[must_use]
pub fn promotion_text(row: &PromotionRow) -> String {
    let f = &row.figures;
    [
        label_text(&row.label),
        format!("born young {}", format::estimate(&f.minor_bytes, Unit::Bytes)),
        format!("promoted {}", format::estimate(&f.promoted_bytes, Unit::Bytes)),
        format!("rate {}", format::ratio(&f.promoted)),
        format!("dies young {}", format::ratio(&f.short_lived)),
        format!("lifetime {}", format::lifetime(&f.lifetime)),
    ]
    .join("\t")
}

/// A row of the leaks as text, its fields separated by tabs.
#[must_use]
pub fn leak_text(row: &LeakRow) -> String {
    let f = &row.figures;
    [
        label_text(&row.label),
        format!("old {}", format::estimate(&f.old_bytes, Unit::Bytes)),
        format!("age {}", format::lifetime(&f.median_age)),
        format!("growth {}{}", format::change(f.growth), if f.grew { " (grew)" } else { "" }),
        format!("in use {}", format::estimate(&f.in_use_bytes, Unit::Bytes)),
    ]
    .join("\t")
}

/// A thread as text, its fields separated by tabs.
#[must_use]
pub fn thread_text(row: &ThreadRow) -> String {
    let bytes = |estimate: &Estimate| format!("{}", format::estimate(estimate, Unit::Bytes));
    [
        text::clean(&query::thread_name(row)).into_owned(),
        row.tid.map_or_else(|| format::UNKNOWN.into(), |tid| format!("tid {tid}")),
        format!("in use {}", bytes(&row.in_use_bytes)),
        format!("alloc/s {}", format::estimate(&row.allocated_rate, Unit::BytesPerSecond)),
        format!("allocated {}", bytes(&row.allocated_bytes)),
        format!("freed by others {}", bytes(&row.freed_elsewhere_bytes)),
    ]
    .join("\t")
}

/// A callsite of the timeline as text, its fields separated by tabs.
#[must_use]
pub fn series_text(series: &Series) -> String {
    let in_use = format::estimate(&series.in_use, Unit::Bytes);
    format!("{}\tin use {in_use}", label_text(&series.label))
}

/// A tree's row as text, its fields separated by tabs.
#[must_use]
pub fn node_text(label: &Label, cum: &Estimate, flat: &Estimate, counted: Metric) -> String {
    let unit = unit(counted);
    format!(
        "{}\tcum {}\tflat {}\t{}",
        label_text(label),
        format::estimate(cum, unit),
        format::estimate(flat, unit),
        metric(counted)
    )
}

fn label_text(label: &Label) -> String {
    let name = text::name(&label.function).into_owned();
    if label.location.is_empty() {
        name
    } else {
        format!("{name} {}", text::clean(&label.location))
    }
}

/// What a metric is called.
#[must_use]
pub const fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::InUseBytes => "in use, bytes",
        Metric::InUseObjects => "in use, objects",
        Metric::AllocatedBytes => "allocated, bytes",
        Metric::AllocatedObjects => "allocated, objects",
        Metric::PromotedBytes => "promoted, bytes",
        Metric::ShortLivedBytes => "short-lived, bytes",
    }
}

/// What a metric counts.
#[must_use]
pub const fn unit(metric: Metric) -> Unit {
    match metric {
        Metric::InUseObjects | Metric::AllocatedObjects => Unit::Objects,
        Metric::InUseBytes
        | Metric::AllocatedBytes
        | Metric::PromotedBytes
        | Metric::ShortLivedBytes => Unit::Bytes,
    }
}

const fn unit_name(metric: Metric) -> &'static str {
    match unit(metric) {
        Unit::Objects | Unit::ObjectsPerSecond => "objects",
        Unit::Bytes | Unit::BytesPerSecond => "bytes",
    }
}

const fn slug(metric: Metric) -> &'static str {
    match metric {
        Metric::InUseBytes => "in-use-bytes",
        Metric::InUseObjects => "in-use-objects",
        Metric::AllocatedBytes => "allocated-bytes",
        Metric::AllocatedObjects => "allocated-objects",
        Metric::PromotedBytes => "promoted-bytes",
        Metric::ShortLivedBytes => "short-lived-bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn request() -> Request {
        let label = Label { function: "main".into(), location: "m.rs:1".into(), named: true };
        Request {
            target: "../or\u{1b}ders".into(),
            pid: 7,
            metric: Metric::InUseBytes,
            focus: vec![label.clone()],
            filter: "x".into(),
            total: Estimate::Interval { value: 2048.0, low: 1900.0, high: 2200.0, samples: 9 },
            interval_bytes: Some(1024),
            uptime_minutes: 61,
            when: When::Now,
            lost: 3,
            stacks: vec![(vec![label], 2048.0)],
            icicle: false,
            before: None,
            gained: false,
        }
    }

    #[test]
    fn headings_say_what_was_counted() {
        let r = request();
        assert_eq!(r.title(), "../or\u{1b}ders · pid 7 · in use, bytes · through main");
        assert_eq!(
            r.subtitle(),
            "2.00 KiB ±8 % (95 %) · sampled 1 in 1 KiB · up 1 h 1 m · filter “x” · 3 events dropped"
        );
        let of = |when| Request { when, ..request() }.subtitle();
        assert!(of(When::At(3_250_000_000)).contains(" · at 3.2500 s · "));
        let range = When::Range { from_ns: 0, to_ns: 61_000_000_000 };
        assert!(of(range).contains(" · from 0.0000 s to 1 m 01.0000 s · "));
    }
}
