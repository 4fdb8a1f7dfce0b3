//! The list of targets, for people and as JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::session::figures::Estimate;
use crate::session::sane::is_hostile;
use crate::source::discover::{Found, kind};
use crate::view::format::{self, Unit};
use crate::view::text;
use serde::Serialize;

/// What is not known.
const UNKNOWN: &str = "–";

/// What to do without a target.
pub(super) const NONE: &str =
    "no target runs: link heaptop-agent into a program and start it, or try `heaptop demo`";

/// Columns of a name.
const NAME: usize = 40;

/// Prints a table with a heading.
pub(super) fn table(targets: &[Found], out: &mut impl Write) -> io::Result<()> {
    let heading = ["PID", "NAME", "KIND", "INTERVAL", "IN USE", "UPTIME"].map(String::from);
    let rows = targets.iter().map(|found| {
        [
            found.target.pid.to_string(),
            text::keep_start(&text::name(&found.target.hello.name), NAME).into_owned(),
            kind(&found.target.hello).into(),
            found.status.map_or(UNKNOWN.into(), |s| format::interval(s.interval.bytes())),
            format::estimate(&found.in_use(), Unit::Bytes).to_string(),
            format::uptime(found.uptime_ns() / 60_000_000_000),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(heading).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let room = " ".repeat(widths[column] - text::width(cell));
            // The pid is a number: to the right.
            let cell = if column == 0 { room + cell } else { cell.clone() + &room };
            line.push_str(&cell);
            line.push_str("  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A target in JSON. Unknown is null.
#[derive(Serialize)]
struct Target<'a> {
    pid: u32,
    /// The nearest process above it that is a target too.
    parent_pid: Option<u32>,
    name: &'a str,
    kind: &'a str,
    /// R.
    interval_bytes: Option<u32>,
    in_use: Option<InUse>,
    /// Births that found no room: in no figure.
    lost_births: Option<u64>,
    uptime_seconds: u64,
    agent_version: &'a str,
    uid: u32,
    socket: String,
}

/// An estimate with its 95 % interval. Without a sample only `high_bytes` is
/// known, and where births were lost only `low_bytes`.
#[derive(Serialize)]
struct InUse {
    value_bytes: Option<f64>,
    low_bytes: Option<f64>,
    high_bytes: Option<f64>,
    samples: Option<u64>,
}

impl InUse {
    fn new(estimate: Estimate) -> Option<Self> {
        let bytes = |value, low, high, samples| {
            Some(Self { value_bytes: value, low_bytes: low, high_bytes: high, samples })
        };
        match estimate {
            Estimate::Unknown => None,
            Estimate::Exact { value } => bytes(Some(value), Some(value), Some(value), None),
            Estimate::Interval { value, low, high, samples } => {
                bytes(Some(value), Some(low), Some(high), Some(samples))
            }
            Estimate::Below { high } => bytes(None, Some(0.0), Some(high), Some(0)),
            Estimate::AtLeast { low, samples } => bytes(None, Some(low), None, Some(samples)),
        }
    }
}

/// Prints a JSON array.
pub(super) fn json(targets: &[Found], out: &mut impl Write) -> io::Result<()> {
    let targets: Vec<Target<'_>> = targets
        .iter()
        .map(|found| Target {
            pid: found.target.pid,
            parent_pid: found.parent,
            name: &found.target.hello.name,
            kind: kind(&found.target.hello),
            interval_bytes: found.status.map(|status| status.interval.bytes()),
            in_use: InUse::new(found.in_use()),
            lost_births: found.status.map(|status| status.losses.births),
            uptime_seconds: found.uptime_ns() / 1_000_000_000,
            agent_version: &found.target.hello.agent_version,
            uid: found.target.uid,
            socket: found.target.socket.to_string_lossy().into_owned(),
        })
        .collect();
    let text = serde_json::to_string_pretty(&targets)?;
    writeln!(out, "{}", escaped(&text))
}

/// JSON without what a terminal would obey, which JSON allows within strings: it is
/// escaped, and means the same.
pub(crate) fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hostile(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Target, fake};
    use heaptop_protocol::message::{FromAgent, Hello};

    fn found(pid: u32, name: &str) -> Found {
        Found {
            target: Target {
                pid,
                uid: 7,
                socket: format!("/s/{pid}.sock").into(),
                hello: Hello { name: name.into(), ..fake::hello() },
            },
            status: fake::script().into_iter().find_map(|message| match message {
                FromAgent::Status(status) => Some(status),
                _ => None,
            }),
            parent: None,
        }
    }

    #[test]
    fn the_table_is_aligned_and_unknown_is_a_dash() {
        let mut unknown = found(4711, "evil\x1b[2J");
        unknown.status = None;
        let mut out = Vec::new();
        table(&[found(12, "orders-api"), unknown], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], " PID  NAME        KIND    INTERVAL      IN USE          UPTIME");
        assert!(lines[1].starts_with("  12  orders-api  linked  1 in 512 KiB  "), "{out}");
        assert!(lines[2].starts_with("4711  evil�[2J    linked  –             –"), "{out}");
        assert!(lines[2].ends_with("1 m"), "{out}");
    }

    #[test]
    fn a_long_name_does_not_widen_the_table() {
        let long = "n".repeat(400);
        let mut out = Vec::new();
        table(&[found(1, &long)], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(&format!("  {}…  linked", &long[..39])), "{out}");
        let mut out = Vec::new();
        json(&[found(1, &long)], &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains(&long), "JSON has all of it");
    }

    #[test]
    fn json_is_escaped_and_means_the_same() {
        let name = "a\x1b[2J\u{9b}m\u{202e}\u{e0041}名\"\\\n";
        let mut out = Vec::new();
        json(&[found(1, name)], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.chars().any(|c| c != '\n' && is_hostile(c)), "{out:?}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value[0]["name"], name);
    }

    #[test]
    fn what_was_lost_or_not_looked_at_is_no_upper_end() {
        use heaptop_protocol::{message::Sampling, totals::Totals};
        let mut lost = found(1, "lost");
        lost.status.as_mut().unwrap().losses.births = 7;
        let mut dormant = found(2, "dormant");
        let status = dormant.status.as_mut().unwrap();
        (status.sampling, status.totals) = (Sampling::Paused, Totals::default());
        assert_eq!(dormant.in_use(), Estimate::Unknown);
        dormant.status.as_mut().unwrap().sampling = Sampling::On;
        assert!(matches!(dormant.in_use(), Estimate::Below { .. }));
        let mut out = Vec::new();
        json(&[lost], &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value[0]["lost_births"], 7);
        assert!(value[0]["in_use"]["low_bytes"].as_f64().unwrap() > 0.0, "{value}");
        for name in ["value_bytes", "high_bytes"] {
            assert!(value[0]["in_use"][name].is_null(), "{name}");
        }
    }

    #[test]
    fn json_has_nulls_for_what_is_unknown() {
        let mut unknown = found(13, "x");
        unknown.status = None;
        let mut out = Vec::new();
        json(&[found(12, "a"), unknown], &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value[0]["pid"], 12);
        assert_eq!(value[0]["interval_bytes"], 512 << 10);
        assert_eq!(value[0]["in_use"]["samples"], 1);
        let [low, high] =
            ["low_bytes", "high_bytes"].map(|name| value[0]["in_use"][name].as_f64().unwrap());
        assert!(low < high, "{value}");
        assert_eq!(value[1]["uptime_seconds"], 65);
        assert_eq!(value[0]["lost_births"], 0);
        for name in ["interval_bytes", "in_use", "lost_births"] {
            assert!(value[1][name].is_null(), "{name}");
        }
    }
}
