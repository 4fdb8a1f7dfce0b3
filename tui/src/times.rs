//! Moments as they are written, on the command line and in filters.
//!
//! ```text
//! TIME  = start | end | peak
//!       | DURATION              after the target's start          90s  1m30s  1.5h
//!       | -DURATION             before the end                    -10s
//!       | [DATE ]HH:MM[:SS][Z]  by the clock, UTC                 12:34:56
//!       | mark:NAME | NAME      a mark; of several of a name the last
//! RANGE = [TIME]..[TIME]        without one: from the start, to the end
//! ```
//!
//! A duration is one or more numbers with units: ns, us, ms, s, m, h, d. `mark:` is for
//! names that would mean something else. A clock time without a date is its last one
//! before the end.

use crate::calendar::Utc;
use crate::query::{self, When};
use crate::report::text;
use crate::session::{Connection, Session};
use std::time::SystemTime;

const DAY_NS: u64 = 86_400_000_000_000;
/// Who came so early has seen all of it.
const AT_ONCE_NS: u64 = 100_000_000;

/// A moment that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Time {
    /// The first that is known.
    Start,
    /// The latest.
    End,
    /// The highest moment.
    Peak,
    /// Nanoseconds since the start.
    After(u64),
    /// Nanoseconds before the end.
    Before(u64),
    /// Nanoseconds since 1970.
    Date(u64),
    /// Nanoseconds since midnight, UTC.
    Clock(u64),
    /// A mark.
    Mark(String),
}

/// From one moment to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// Reads a moment.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    let word = text.trim();
    if let Some(name) = word.strip_prefix("mark:") {
        return Ok(Time::Mark(name.to_owned()));
    }
    Ok(match word {
        "" => {
            return Err(
                "a moment is a time such as 90s, 1m30s, -10s, 12:34:56, or a mark's name".into()
            );
        }
        "start" => Time::Start,
        "end" | "now" => Time::End,
        "peak" => Time::Peak,
        _ => {
            let before = word.strip_prefix('-').and_then(duration).map(Time::Before);
            let after = || duration(word.strip_prefix('+').unwrap_or(word)).map(Time::After);
            if let Some(Time::Before(u64::MAX) | Time::After(u64::MAX)) =
                before.clone().or_else(after)
            {
                return Err("it is longer than anything runs: name a time such as 90s".into());
            }
            let found = before.or_else(after).or_else(|| clock(word));
            found.unwrap_or_else(|| Time::Mark(word.to_owned()))
        }
    })
}

/// Reads a range.
pub(crate) fn range(text: &str) -> Result<Range, String> {
    let Some((from, to)) = text.split_once("..") else {
        return Err("a range is two moments with .. between, such as 10s..1m or ..-10s".into());
    };
    let or = |text: &str, other| if text.trim().is_empty() { Ok(other) } else { time(text) };
    Ok(Range { from: or(from, Time::Start)?, to: or(to, Time::End)? })
}

/// The last time that the program was in the phase of this name.
pub(crate) fn phase(name: &str, session: &Session) -> Result<When, String> {
    let found = session.phase(name).ok_or_else(|| {
        let mut names: Vec<String> = session.phases().into_iter().map(|p| p.name).collect();
        names.dedup();
        if names.is_empty() {
            format!("{name} is no phase: the program has told of none")
        } else {
            names.reverse();
            names.truncate(5);
            format!("{name} is no phase of the program's: the last are {}", names.join(", "))
        }
    })?;
    let to = found.to_ns.unwrap_or_else(|| session.now_ns()).min(session.now_ns());
    let from = session.span().map_or(found.from_ns, |(known, _)| known.max(found.from_ns));
    if from > to {
        return Err(format!("phase {name} was over before anything is known"));
    }
    Ok(When::Range { from_ns: from, to_ns: to })
}

/// The highest moment that is known. The agent tells of peaks, and of what is in use, more
/// seldom than of births and deaths: what came since may be higher than both.
pub(crate) fn peak(session: &Session) -> Result<When, String> {
    let told = session.peak().map(|peak| (peak.time_ns, peak.in_use.point()));
    // Where it has told of none yet its curve says where it must be.
    let on_curve = || {
        let points = session.history().iter().filter(|point| point.in_use_bytes > 0.0);
        let point = points.max_by(|a, b| a.in_use_bytes.total_cmp(&b.in_use_bytes))?;
        session.in_use().point().map(|_| (point.time_ns, Some(point.in_use_bytes)))
    };
    let none = "no peak is known, or nothing of it: name another moment";
    let (from, to) = session.span().unwrap_or((u64::MAX, 0));
    let mut highest = told.or_else(on_curve).ok_or(none)?;
    let mut rise = |at_ns: u64, in_use: Option<f64>| {
        if in_use > highest.1 && (from..=to).contains(&at_ns) {
            highest = (at_ns, in_use);
        }
    };
    if let Some(status) = session.status() {
        let (now, counted) = (session.in_use().point(), session.now_ns());
        rise(status.at.time_ns, now);
        // By how much it differs, not what it is: both are estimates of one kind.
        let whole = |at| query::whole(session, When::At(at)).in_use_bytes.point();
        if status.at.time_ns < counted
            && let (Some(now), Some(then), Some(end)) =
                (now, whole(status.at.time_ns), whole(counted))
        {
            rise(counted, Some(now + end - then));
        }
    }
    match highest.0 {
        at if (from..=to).contains(&at) => Ok(When::At(at)),
        // What was before anybody came is known by the agent's table alone.
        at if told.is_some_and(|told| told.0 == at) => Ok(When::Peak),
        _ => Err(none.into()),
    }
}

/// `1m30s`, `1.5 h`: nanoseconds.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..letters] {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => return None,
        };
        sum += number * unit;
        rest = after[letters..].trim_start();
    }
    (!text.trim().is_empty()).then_some(sum as u64)
}

/// `12:34`, `2026-11-30 12:34:56Z`.
fn clock(text: &str) -> Option<Time> {
    let text = text.strip_suffix('Z').unwrap_or(text).trim_end_matches(" UTC");
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (Some(date), time),
        None => (None, text),
    };
    let parts: Vec<&str> = time.split(':').collect();
    let number = |text: &str, below: f64| -> Option<f64> {
        let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        text.parse().ok().filter(|n| plain && *n < below)
    };
    let seconds = match parts[..] {
        [h, m] => number(h, 24.0)? * 3600.0 + number(m, 60.0)? * 60.0,
        [h, m, s] => number(h, 24.0)? * 3600.0 + number(m, 60.0)? * 60.0 + number(s, 60.0)?,
        _ => return None,
    };
    let of_day = (seconds * 1e9) as u64;
    let Some(date) = date else { return Some(Time::Clock(of_day)) };
    let parts: Vec<u64> = date.split('-').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] = parts[..] else { return None };
    // Howard Hinnant's civil to days, from 0000-03-01 on.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    Some(Time::Date(days.checked_sub(719_468)?.checked_mul(DAY_NS)?.checked_add(of_day)?))
}

impl Time {
    /// Nanoseconds since the agent's start. What nobody watched cannot be asked about, nor what
    /// is to come.
    pub(crate) fn resolve(&self, session: &Session) -> Result<u64, String> {
        let end = session.now_ns();
        let (first, _) = session.span().unwrap_or((0, end));
        let words = |ns| text::moment(ns, session.span());
        let at = match self {
            Self::Start => return Ok(first),
            Self::Peak => return Ok(self.instant(session)?.clamp(first, end)),
            Self::Before(ns) if *ns > end => {
                return Err(format!(
                    "{} before the end is before the start: the end is at {}",
                    words(*ns),
                    words(end)
                ));
            }
            Self::After(ns) if *ns > latest(session) => {
                let at = text::moment(*ns, Some((0, *ns)));
                let [first, end] = [first, end].map(words);
                return Err(format!(
                    "{at} is after the end: name a moment from {first} to {end}, or `end`"
                ));
            }
            _ => self.instant(session)?.min(end),
        };
        // An agent takes a moment to start: what was before is nothing.
        if at.saturating_add(AT_ONCE_NS) < first {
            let [at, first, end] = [at, first, end].map(words);
            return Err(format!(
                "at {at} nobody watched: name a moment from {first} to {end}, and record what you want to look back at"
            ));
        }
        Ok(at.max(first))
    }

    /// The same, whoever watched then: blocks that live may have been born at any time.
    pub(crate) fn instant(&self, session: &Session) -> Result<u64, String> {
        let end = session.now_ns();
        let started = session.hello().map_or(0, |hello| hello.started_unix_ns);
        let by_clock = |unix_ns: u64| {
            let until = started.saturating_add(end);
            unix_ns.checked_sub(started).filter(|at| started > 0 && *at <= end).ok_or_else(|| {
                format!(
                    "{} is not within the time that is known, from {} to {}",
                    Utc::of_ns(unix_ns),
                    Utc::of_ns(started),
                    Utc::of_ns(until)
                )
            })
        };
        match self {
            Self::Start => Ok(0),
            Self::End => Ok(end),
            Self::Peak => Ok(match peak(session)? {
                When::At(at) => at,
                _ => session.peak().map_or(end, |peak| peak.time_ns),
            }),
            Self::After(ns) => Ok(*ns),
            Self::Before(ns) => Ok(end.saturating_sub(*ns)),
            Self::Date(unix_ns) => by_clock(*unix_ns),
            Self::Clock(of_day) => {
                let until = started.saturating_add(end);
                let today = until / DAY_NS * DAY_NS + of_day;
                by_clock(if today > until { today.saturating_sub(DAY_NS) } else { today })
            }
            Self::Mark(name) => {
                let marks = session.marks();
                let found = marks.iter().rev().find(|mark| mark.label == *name);
                found.map(|mark| mark.at.time_ns.min(end)).ok_or_else(|| {
                    if marks.is_empty() {
                        format!("{name} is no time, and there are no marks: write a time such as 90s, 1m30s, -10s or 12:34:56")
                    } else {
                        let names: Vec<&str> =
                            marks.iter().rev().take(5).map(|mark| &*mark.label).collect();
                        format!(
                            "{name} is neither a time such as 90s nor one of the marks: the last are {}",
                            names.join(", ")
                        )
                    }
                })
            }
        }
    }
}

/// The last moment that can be meant: a target that runs has come further than it has told.
fn latest(session: &Session) -> u64 {
    let end = session.now_ns();
    let started = session.hello().map_or(0, |hello| hello.started_unix_ns);
    if *session.connection() != Connection::Connected || started == 0 {
        return end;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(end, |now| end.max((now.as_nanos() as u64).saturating_sub(started)))
}

impl Range {
    /// Whether it is another at every moment.
    pub(crate) fn moves(&self) -> bool {
        // Until the end is until whatever comes; the peak and the last mark may be others.
        let moves = |time: &Time| matches!(time, Time::Before(_) | Time::Clock(_) | Time::Peak);
        moves(&self.from) || moves(&self.to) || self.from == Time::End
    }

    /// Both ends, in nanoseconds since the agent's start.
    pub(crate) fn resolve(&self, session: &Session) -> Result<(u64, u64), String> {
        let (mut from, to) = (self.from.resolve(session)?, self.to.resolve(session)?);
        // From the start means from where anything is known.
        if self.from == Time::Start
            && let Some((known, _)) = session.span()
        {
            from = known;
        }
        if from > to {
            return Err(format!(
                "the range ends before it begins: it is from {} to {}",
                text::moment(from, session.span()),
                text::moment(to, session.span())
            ));
        }
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Input;
    use crate::session::fixture::Fixture;
    use heaptop_protocol::message::Mark;

    const S: u64 = 1_000_000_000;

    #[test]
    fn moments_are_read() {
        for (text, want) in [
            ("90s", Time::After(90 * S)),
            ("+1m30s", Time::After(90 * S)),
            ("1.5 h", Time::After(5400 * S)),
            ("250ms", Time::After(S / 4)),
            ("-10s", Time::Before(10 * S)),
            ("start", Time::Start),
            (" end ", Time::End),
            ("now", Time::End),
            ("peak", Time::Peak),
            ("12:34", Time::Clock(45_240 * S)),
            ("12:34:56Z", Time::Clock(45_296 * S)),
            ("2023-11-14 22:13:20", Time::Date(1_700_000_000 * S)),
            ("2023-11-14T22:13:20Z", Time::Date(1_700_000_000 * S)),
            ("loaded", Time::Mark("loaded".into())),
            ("mark:90s", Time::Mark("90s".into())),
            ("25:00", Time::Mark("25:00".into())),
            ("-", Time::Mark("-".into())),
            ("5", Time::Mark("5".into())),
            ("é:1", Time::Mark("é:1".into())),
        ] {
            assert_eq!(time(text), Ok(want), "{text}");
        }
        assert!(time(" ").unwrap_err().contains("such as 90s"));
        for text in ["99999999999999999999s", "-99999999999999999999s", "600000d"] {
            assert!(time(text).unwrap_err().contains("longer than anything runs"), "{text}");
        }
        assert!(range("1s..99999999999999999999s").unwrap_err().contains("longer than"));
        assert!(range("10s").unwrap_err().contains(".. between"));
        let both = Range { from: Time::Start, to: Time::Before(S) };
        assert_eq!(range("..-1s"), Ok(both));
    }

    #[test]
    fn moments_are_found_in_a_session() {
        let mut f = Fixture::new(1);
        f.pass(99.0);
        let at = f.now();
        f.say(Mark { at, label: "loaded".into() });
        f.pass(20.0);
        let s = &f.session;
        let at = |text: &str| time(text).unwrap().resolve(s);
        assert_eq!(at("loaded"), Ok(100 * S));
        assert_eq!(at("30s"), Ok(30 * S));
        assert_eq!(at("3h"), Ok(120 * S), "it runs, and will have come there by now");
        assert_eq!(at("-20s"), Ok(100 * S));
        // It started at 22:13:20.
        assert_eq!(at("22:14"), Ok(40 * S));
        assert_eq!(at("2023-11-14 22:14:00"), Ok(40 * S));
        assert!(at("22:20").unwrap_err().contains("from 2023-11-14 22:13:20 UTC to"));
        assert!(at("-5m").unwrap_err().contains("the end is at 2 m 00 s"));
        assert!(at("lodaed").unwrap_err().contains("the last are loaded"));
        let both = |text: &str| range(text).unwrap().resolve(s);
        assert_eq!(both(".."), Ok((S, 120 * S)));
        assert_eq!(both("loaded..-5s"), Ok((100 * S, 115 * S)));
        assert!(both("1m..2s").unwrap_err().contains("ends before it begins"));
    }

    #[test]
    fn what_is_over_has_no_moment_after_its_end() {
        let mut f = Fixture::new(1);
        f.pass(119.0);
        f.session.apply(Input::Connection(Connection::Ended("it is over".into())));
        let at = |text: &str| time(text).unwrap().resolve(&f.session);
        assert_eq!(at("120s"), Ok(120 * S));
        assert_eq!(at("end"), Ok(120 * S));
        let sentence = "3 h 00 m 00 s is after the end: name a moment from 1 s to 2 m 00 s";
        assert!(at("3h").unwrap_err().contains(sentence), "{:?}", at("3h"));
        let both = |text: &str| range(text).unwrap().resolve(&f.session);
        assert_eq!(both("10s..120s"), Ok((10 * S, 120 * S)));
        assert!(both("10s..121s").unwrap_err().contains("after the end"));
        assert!(both("9h..end").unwrap_err().contains("after the end"));
    }

    #[test]
    fn the_peak_is_one_moment_whoever_asks() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "fill"]);
        assert!(peak(&f.session).unwrap_err().contains("no peak is known"));
        f.pass(1.0);
        f.alloc(stack, 1000);
        f.hold_peak(true);
        f.pass(1.0);
        assert_eq!((f.session.peak(), peak(&f.session)), (None, Ok(When::At(3 * S))));
        f.say_peak();
        let all = |f: &Fixture| {
            let from = range("peak..end").unwrap().resolve(&f.session).map(|(from, _)| from);
            (peak(&f.session), from, time("peak").unwrap().resolve(&f.session))
        };
        assert_eq!(all(&f), (Ok(When::At(3 * S)), Ok(3 * S), Ok(3 * S)));
        // What was born since, before the agent tells of it in its totals.
        f.time_ns += S;
        let more = f.alloc(stack, 500);
        assert_eq!(all(&f), (Ok(When::At(4 * S)), Ok(4 * S), Ok(4 * S)));
        f.time_ns += S;
        f.free(more);
        assert_eq!(all(&f), (Ok(When::At(4 * S)), Ok(4 * S), Ok(4 * S)));
        // Its totals are told of, and that they are a peak is not yet.
        f.alloc(stack, 2000);
        f.pass(1.0);
        assert_eq!(all(&f), (Ok(When::At(6 * S)), Ok(6 * S), Ok(6 * S)));
    }
}
