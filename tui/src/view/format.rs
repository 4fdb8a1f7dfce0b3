//! Numbers as text: the one place where figures become what people read.
//!
//! Bytes in binary units, counts with SI, percentages, lifetimes; at most three
//! digits, and never more than the 95 % interval allows: a half-width of 10 % or
//! more leaves two digits, of 100 % or more one. An asymmetric interval is
//! shown by its larger half. Bounds are rounded to the safe side. Unknown is
//! `–`, never 0; a value built on fewer than [`FEW`] samples is dimmed.

use crate::session::estimate::precision::Finer;
use crate::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};

const BINARY: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const SI: &[&str] = &["", "k", "M", "G", "T", "P"];

/// Fewer samples than these make a value dim.
pub const FEW: u64 = 5;
/// What is shown where nothing is known.
pub const UNKNOWN: &str = "–";

/// A number as text, with its uncertainty beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figure {
    /// The value with its unit.
    pub value: String,
    /// `±9 %`, `≥ 97`, or nothing.
    pub interval: String,
    /// Whether too few samples stand behind it.
    pub dim: bool,
}

impl Figure {
    fn plain(value: String) -> Self {
        Self { value, ..Self::default() }
    }

    fn unknown() -> Self {
        Self { value: UNKNOWN.into(), interval: String::new(), dim: true }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.value)?;
        if self.interval.is_empty() { Ok(()) } else { write!(f, " {}", self.interval) }
    }
}

/// What an estimate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes: `1.23 MiB`.
    Bytes,
    /// Bytes per second: `1.23 MiB/s`.
    BytesPerSecond,
    /// Objects: `12.3 k`.
    Objects,
    /// Objects per second: `12.3 k/s`.
    ObjectsPerSecond,
}

/// To which side a number is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest.
    Nearest,
    /// Away from zero, for upper bounds.
    Up,
    /// Towards zero, for lower bounds.
    Down,
}

/// An estimate.
#[must_use]
pub fn estimate(estimate: &Estimate, unit: Unit) -> Figure {
    use Rounding::{Down, Nearest, Up};
    match *estimate {
        Estimate::Unknown => Figure::unknown(),
        Estimate::Exact { value } => Figure::plain(amount(value, unit, 3, Nearest)),
        Estimate::Below { high } => Figure {
            value: format!("< {}", amount(high, unit, 2, Up)),
            interval: String::new(),
            dim: true,
        },
        Estimate::AtLeast { low, samples } => {
            let bound = amount(at_least(low, unit), unit, 2, Down);
            // A bound that is rounded to nothing still says that it is something.
            let nothing = bound.starts_with('0') && !bound.starts_with("0.");
            let sign = if nothing && low > 0.0 { ">" } else { "≥" };
            Figure { value: format!("{sign} {bound}"), interval: String::new(), dim: samples < FEW }
        }
        Estimate::Interval { value, low, high, samples } => {
            let half = relative_half(value, low, high);
            Figure {
                value: amount(value, unit, digits_for(half), Nearest),
                interval: plus_minus(half),
                dim: samples < FEW,
            }
        }
    }
}

/// A share.
#[must_use]
pub fn ratio(ratio: &Ratio) -> Figure {
    let Ratio::Interval { value, low, high, samples } = *ratio else {
        return Figure::unknown();
    };
    let dim = samples < FEW;
    let (value, low, high) = (percent(value), percent(low), percent(high));
    let half = (high - value).max(value - low);
    if half < 0.05 {
        return Figure { value: format!("{} %", decimals(value, 1)), interval: String::new(), dim };
    }
    let text = decimals(value, usize::from(half < 2.0));
    // At the ends the interval has one side.
    let interval = match text.as_str() {
        "100" => format!(
            "≥ {}",
            if low > 99.0 { tenths(low, Rounding::Down) } else { low.floor().to_string() }
        ),
        "0" => format!(
            "≤ {}",
            if high < 1.0 { tenths(high, Rounding::Up) } else { high.ceil().to_string() }
        ),
        _ if half < 0.95 => format!("±{}", tenths(half, Rounding::Up)),
        _ => format!("±{}", (half - 1e-9).ceil()),
    };
    Figure { value: format!("{text} %"), interval, dim }
}

/// What would make a figure finer: `finer: R 64 KiB, ~40 s to ±10 %`.
#[must_use]
pub fn finer(finer: &Finer) -> String {
    let every = interval(finer.interval.bytes());
    let r = every.trim_start_matches("1 in ");
    let wait = duration(finer.seconds * 1e9, 2, Rounding::Up);
    format!("finer: R {r}, ~{wait} to ±{:.0} %", finer.within * 100.0)
}

/// A lifetime.
#[must_use]
pub fn lifetime(lifetime: &Lifetime) -> Figure {
    match *lifetime {
        Lifetime::Unknown => Figure::unknown(),
        // A bound of nothing says nothing.
        Lifetime::Beyond { ns: bound, .. } if bound < 1.0 => Figure::unknown(),
        Lifetime::Median { low_ns: bound, high_ns, .. } if bound < 1.0 && !high_ns.is_finite() => {
            Figure::unknown()
        }
        Lifetime::Beyond { ns, samples } => longer('>', ns, samples),
        Lifetime::Median { low_ns, high_ns, samples, .. } if !high_ns.is_finite() => {
            longer('≥', low_ns, samples)
        }
        Lifetime::Median { ns, low_ns, high_ns, samples } => lasted(ns, low_ns, high_ns, samples),
    }
}

/// A time that is known from below.
fn longer(sign: char, ns: f64, samples: u64) -> Figure {
    let value = format!("{sign} {}", duration(ns, 2, Rounding::Down));
    Figure { value, interval: String::new(), dim: samples < FEW }
}

/// A time with its interval.
fn lasted(ns: f64, low_ns: f64, high_ns: f64, samples: u64) -> Figure {
    let half = relative_half(ns, low_ns, high_ns);
    let value = duration(ns, digits_for(half).min(2), Rounding::Nearest);
    Figure { value, interval: plus_minus(half), dim: samples < FEW }
}

/// A mean life: above what is known for sure while somebody lives.
#[must_use]
pub fn mean_life(mean: &Followed) -> Figure {
    match *mean {
        Followed::Unknown => Figure::unknown(),
        // A bound of nothing says nothing.
        Followed::Bounds { low, .. } if low < 1.0 => Figure::unknown(),
        Followed::Bounds { low, samples, .. } => longer('>', low, samples),
        Followed::Interval { value, low, high, samples } => lasted(value, low, high, samples),
    }
}

/// Growth in bytes. Its interval is in bytes: in per cent of nearly nothing it says
/// nothing.
#[must_use]
pub fn change(change: Change) -> Figure {
    let signed = |value: f64, digits| {
        let sign = if value <= -0.5 { "-" } else { "+" };
        format!("{sign}{}", bytes(value.abs(), digits, Rounding::Nearest))
    };
    let bound = |sign: &str, value, samples| Figure {
        value: format!("{sign} {}", signed(value, 2)),
        interval: String::new(),
        dim: samples < FEW,
    };
    match change {
        Change::Unknown => Figure::unknown(),
        Change::Exact { value } => Figure::plain(signed(value, 3)),
        Change::Interval { value, low, high, samples } => {
            let half = (high - value).max(value - low).max(0.0);
            Figure {
                value: signed(value, 2),
                interval: format!("±{}", bytes(half, 2, Rounding::Up)),
                dim: samples < FEW,
            }
        }
        Change::AtLeast { low, samples } => bound("≥", low, samples),
        Change::AtMost { high, samples } => bound("≤", high, samples),
    }
}

/// An amount in its unit with at most `digits` digits.
#[must_use]
pub fn amount(value: f64, unit: Unit, digits: usize, rounding: Rounding) -> String {
    match unit {
        Unit::Bytes => bytes(value, digits, rounding),
        Unit::BytesPerSecond => {
            let (number, unit) = scaled(value, 1024.0, BINARY, false, digits, rounding);
            format!("{number} {unit}/s")
        }
        Unit::Objects => count(value, digits, rounding),
        Unit::ObjectsPerSecond => {
            let (number, unit) = scaled(value, 1000.0, SI, false, digits, rounding);
            format!("{number}{}{unit}/s", if unit.is_empty() { "" } else { " " })
        }
    }
}

/// Bytes in binary units.
#[must_use]
pub fn bytes(value: f64, digits: usize, rounding: Rounding) -> String {
    let (number, unit) = scaled(value, 1024.0, BINARY, true, digits, rounding);
    format!("{number} {unit}")
}

/// A count with SI prefixes.
#[must_use]
pub fn count(value: f64, digits: usize, rounding: Rounding) -> String {
    match scaled(value, 1000.0, SI, true, digits, rounding) {
        (number, "") => number,
        (number, unit) => format!("{number} {unit}"),
    }
}

/// A duration, given in nanoseconds.
#[must_use]
pub fn duration(ns: f64, digits: usize, rounding: Rounding) -> String {
    // A unit serves until the next one says it as well.
    const UNITS: [(&str, f64, f64); 7] = [
        ("ns", 1.0, 1e3),
        ("µs", 1e3, 1e5),
        ("ms", 1e6, 1e9),
        ("s", 1e9, 120e9),
        ("min", 60e9, 7200e9),
        ("h", 3600e9, 172_800e9),
        ("d", 86_400e9, f64::INFINITY),
    ];
    let ns = if ns.is_finite() { ns.max(0.0) } else { 0.0 };
    for (unit, size, below) in UNITS {
        let rounded = significant(ns / size, digits, rounding);
        // Half a millisecond has two digits; with one the smaller unit goes on.
        let below = if digits < 2 && size == 1e3 { 1e6 } else { below };
        if rounded * size < below {
            return format!("{} {unit}", shown(rounded, digits));
        }
    }
    UNKNOWN.into()
}

/// Time since the target's start, to the minute.
#[must_use]
pub fn uptime(minutes: u64) -> String {
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => "< 1 m".into(),
        (0, 0, m) => format!("{m} m"),
        (0, h, m) => format!("{h} h {m} m"),
        (d, h, _) => format!("{d} d {h} h"),
    }
}

/// A moment, as time since the target's start, where all there is to see lasts `span_ns`:
/// to the second, and where that is little, as finely as the cursor moves.
#[must_use]
pub fn moment(ns: u64, span_ns: u64) -> String {
    let digits = match span_ns {
        0..1_000_000_000 => 4,
        1_000_000_000..10_000_000_000 => 2,
        10_000_000_000..100_000_000_000 => 1,
        _ => 0,
    };
    let seconds = ns / 1_000_000_000;
    let fraction = format!("{:09}", ns % 1_000_000_000);
    let fraction = if digits == 0 { String::new() } else { format!(".{}", &fraction[..digits]) };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}{fraction} s"),
        (0, m, s) => format!("{m} m {s:02}{fraction} s"),
        (h, m, s) => format!("{h} h {m:02} m {s:02}{fraction} s"),
    }
}

/// The sampling interval, as a user sets it.
#[must_use]
pub fn interval(bytes_between: u32) -> String {
    if bytes_between == 1 {
        return "every byte".into();
    }
    let exact = bytes(f64::from(bytes_between), 3, Rounding::Nearest);
    // Most are round: they are set by hand.
    let round = exact.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1);
    format!("1 in {round}")
}

/// A share of CPU time, measured and not estimated.
#[must_use]
pub fn cost(share: f64) -> String {
    match percent(share) {
        p if p > 0.0 && p < 0.05 => "< 0.1 %".into(),
        p if p < 9.95 => format!("{} %", decimals(p, 1)),
        p => format!("{} %", decimals(p, 0)),
    }
}

/// A number in full, its digits in groups of three: `1,204`.
#[must_use]
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Digits that a relative half-width allows.
fn digits_for(half: f64) -> usize {
    match half {
        h if h < 0.095 => 3,
        h if h < 0.995 => 2,
        _ => 1,
    }
}

/// The larger half of an interval over its value.
fn relative_half(value: f64, low: f64, high: f64) -> f64 {
    let half = (high - value).max(value - low).max(0.0);
    if half == 0.0 {
        0.0
    } else if value > 0.0 {
        half / value
    } else {
        f64::INFINITY
    }
}

fn plus_minus(half: f64) -> String {
    let percent = half * 100.0;
    if percent <= 0.0 {
        String::new()
    } else if percent < 0.95 {
        format!("±{} %", tenths(percent, Rounding::Up))
    } else if percent > 999.0 {
        "±>999 %".into()
    } else {
        format!("±{} %", (percent - 1e-9).ceil())
    }
}

fn percent(share: f64) -> f64 {
    if share.is_finite() { share.clamp(0.0, 1.0) * 100.0 } else { 0.0 }
}

fn tenths(value: f64, rounding: Rounding) -> String {
    let value = match rounding {
        Rounding::Nearest => (value * 10.0).round(),
        Rounding::Up => (value * 10.0 - 1e-9).ceil(),
        Rounding::Down => (value * 10.0 + 1e-9).floor(),
    };
    decimals(value / 10.0, 1)
}

/// With at most `places` decimals; `100.0` and `0.0` lose theirs.
fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    match text.as_str() {
        "100.0" => "100".into(),
        "0.0" => "0".into(),
        _ => text,
    }
}

fn scaled<'a>(
    value: f64,
    step: f64,
    units: &[&'a str],
    whole_numbers: bool,
    digits: usize,
    rounding: Rounding,
) -> (String, &'a str) {
    let mut rest = if value.is_finite() { value.max(0.0) } else { 0.0 };
    for (i, &unit) in units.iter().enumerate() {
        // Pieces smaller than a byte or an object do not exist.
        let whole_here = whole_numbers && i == 0;
        let smallest = if whole_here { whole(rest, rounding) } else { rest };
        let rounded = significant(smallest, digits, rounding);
        if rounded < 1000.0 || i + 1 == units.len() {
            let plain = whole_here || rounded == 0.0;
            let number = if plain { format!("{rounded}") } else { shown(rounded, digits) };
            return (number, unit);
        }
        rest /= step;
    }
    (UNKNOWN.into(), "")
}

/// A lower bound of what comes whole can be taken up to the next whole number.
fn at_least(low: f64, unit: Unit) -> f64 {
    match unit {
        Unit::Bytes | Unit::Objects => low.ceil(),
        Unit::BytesPerSecond | Unit::ObjectsPerSecond => low,
    }
}

fn whole(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round(),
        Rounding::Up => value.ceil(),
        Rounding::Down => value.floor(),
    }
}

/// `value` rounded to `digits` significant digits. What lies below 1 counts
/// its 0 as a digit: 1,000 MiB are `0.98 GiB`.
fn significant(value: f64, digits: usize, rounding: Rounding) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let places = i32::try_from(digits).unwrap_or(3) - 1 - value.log10().floor().max(0.0) as i32;
    let scale = 10f64.powi(places);
    // The nudge keeps 1.5 from becoming 1.6 by a rounding error far behind the point.
    let nudge = 1e-9;
    let scaled = match rounding {
        Rounding::Nearest => (value * scale).round(),
        Rounding::Up => (value * scale - nudge).ceil(),
        Rounding::Down => (value * scale + nudge).floor(),
    };
    if places >= 0 { scaled / scale } else { scaled * 10f64.powi(-places) }
}

/// A number that has been rounded to `digits`, with its trailing zeros.
fn shown(rounded: f64, digits: usize) -> String {
    let whole_digits = if rounded < 1.0 { 1 } else { rounded.log10().floor() as usize + 1 };
    let places = digits.saturating_sub(whole_digits);
    format!("{rounded:.places$}")
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
