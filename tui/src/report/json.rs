//! A report for programs.
//!
//! ```json
//! {
//!   "heaptop": "0.1.0", "format": 1, "view": "callsites",
//!   "target": {"name": "orders-api", "pid": 4711, "started_unix_ns": 1700000000000000000,
//!              "interval_bytes": 524288},
//!   "when": {"kind": "at", "at_ns": 90000000000},
//!   "span": {"from_ns": 1000000000, "to_ns": 120000000000},
//!   "lost": {"births": 0, "stacks": 0, "events": 0, "thinned": 0},
//!   "unattributed": null, "filter": "", "ended": null, "damage": [],
//!   "rows": [{"function": "fill_cache", "location": "orders/src/cache.rs:88",
//!             "in_use_bytes": {"value": 2048, "low": 1900, "high": 2200, "samples": 9}}],
//!   "total": {}, "rows_in_all": 1, "notes": []
//! }
//! ```
//!
//! `damage` has a sentence for each place where the file is damaged: figures may lack what
//! stood there.
//!
//! A figure is an object of `value`, `low`, `high` (its 95 % interval) and `samples`
//! (sampled blocks behind it; null where nothing was left to chance), or null where nothing is known. Without a
//! sample only `high` is known; where one side alone is known the other end, and
//! the value, are null. A row of a tree has its `depth`.

use super::{Cell, Report};
use crate::query::When;
use crate::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes it, with `escape` for what a terminal would obey.
pub fn write(
    report: &Report,
    escape: impl Fn(&str) -> String,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&value(report))?;
    writeln!(out, "{}", escape(&text))
}

fn value(report: &Report) -> Value {
    let h = &report.heading;
    let row = |cells: &Vec<Cell>| {
        let mut row = Map::new();
        for (column, cell) in report.columns.iter().zip(cells) {
            if let Cell::Function(_, depth) = cell
                && report.view == super::View::Callers
            {
                row.insert("depth".into(), json!(depth));
            }
            row.insert(column.id.into(), figure(cell));
        }
        Value::Object(row)
    };
    let when = match h.when {
        When::Now => json!({"kind": "now", "at_ns": h.at_ns}),
        When::At(at_ns) => json!({"kind": "at", "at_ns": at_ns}),
        When::Range { from_ns, to_ns } => {
            json!({"kind": "range", "from_ns": from_ns, "to_ns": to_ns})
        }
        When::Peak => json!({"kind": "peak", "at_ns": h.at_ns}),
    };
    json!({
        "heaptop": env!("CARGO_PKG_VERSION"),
        "format": 1,
        "view": report.view.name(),
        "target": {
            "name": h.target,
            "pid": h.pid,
            "started_unix_ns": h.started_unix_ns,
            "interval_bytes": h.interval_bytes,
        },
        "when": when,
        "span": h.span.map(|(from_ns, to_ns)| json!({"from_ns": from_ns, "to_ns": to_ns})),
        "lost": {
            "births": h.lost_births,
            "stacks": h.lost_stacks,
            "events": h.lost_events,
            "thinned": h.thinned,
        },
        "unattributed": h.unattributed.map(|(in_use, allocated)| json!({
            "in_use_bytes": estimate(in_use),
            "allocated_bytes": estimate(allocated),
        })),
        "filter": h.filter,
        "ended": h.ended,
        "damage": h.damage,
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
        "total": report.total.as_ref().map(row),
        "rows_in_all": report.len,
        "notes": report.notes,
    })
}

fn figure(cell: &Cell) -> Value {
    match cell {
        Cell::Function(label, _) => json!(&*label.function),
        Cell::Text(text) => json!(text),
        Cell::Part(share) => json!(share),
        Cell::Number(number) | Cell::Time(number) => json!(number),
        Cell::Bytes(bytes) => json!(bytes),
        Cell::Mark(is, _) => json!(is),
        figure => ends(figure).map_or(Value::Null, Ends::json),
    }
}

fn estimate(estimate: Estimate) -> Value {
    Ends::of_estimate(estimate).map_or(Value::Null, Ends::json)
}

/// A figure's value and the ends of its interval, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub value: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub samples: Option<u64>,
}

impl Ends {
    const fn new(value: Option<f64>, low: f64, high: f64, samples: Option<u64>) -> Self {
        Self { value, low: Some(low), high: Some(high), samples }
    }

    const fn from_below(low: f64, samples: u64) -> Self {
        Self { value: None, low: Some(low), high: None, samples: Some(samples) }
    }

    const fn from_above(high: f64, samples: u64) -> Self {
        Self { value: None, low: None, high: Some(high), samples: Some(samples) }
    }

    fn of_estimate(estimate: Estimate) -> Option<Self> {
        Some(match estimate {
            Estimate::Unknown => return None,
            Estimate::Exact { value } => Self::new(Some(value), value, value, None),
            Estimate::Interval { value, low, high, samples } => {
                Self::new(Some(value), low, high, Some(samples))
            }
            Estimate::Below { high } => Self::new(None, 0.0, high, Some(0)),
            Estimate::AtLeast { low, samples } => Self::from_below(low, samples),
        })
    }

    fn json(self) -> Value {
        // A number that JSON does not have is none.
        json!({
            "value": self.value.filter(|v| v.is_finite()),
            "low": self.low.filter(|v| v.is_finite()),
            "high": self.high.filter(|v| v.is_finite()),
            "samples": self.samples,
        })
    }
}

/// A cell's figure; `None` where nothing is known.
pub(super) fn ends(cell: &Cell) -> Option<Ends> {
    match *cell {
        Cell::Estimate(estimate, _) => Ends::of_estimate(estimate),
        Cell::Share(Ratio::Interval { value, low, high, samples })
        | Cell::Followed(Followed::Interval { value, low, high, samples }) => {
            Some(Ends::new(Some(value), low, high, Some(samples)))
        }
        Cell::Lifetime(Lifetime::Median { ns, low_ns, high_ns, samples }) => {
            Some(Ends::new(Some(ns), low_ns, high_ns, Some(samples)))
        }
        Cell::Lifetime(Lifetime::Beyond { ns, samples }) => Some(Ends::from_below(ns, samples)),
        Cell::Followed(Followed::Bounds { low, samples, .. }) => {
            Some(Ends::from_below(low, samples))
        }
        Cell::Change(change) => Some(match change {
            Change::Unknown => return None,
            Change::Exact { value } => Ends::new(Some(value), value, value, None),
            Change::Interval { value, low, high, samples } => {
                Ends::new(Some(value), low, high, Some(samples))
            }
            Change::AtLeast { low, samples } => Ends::from_below(low, samples),
            Change::AtMost { high, samples } => Ends::from_above(high, samples),
        }),
        _ => None,
    }
}
