//! The columns of the callsites that speak of time, against the demo's own counters: per
//! second, lifetimes, growth since a mark, and cum. (The others are in `shown`.)
//!
//! As there, several demos run, and misses are counted over all of them: each is a figure
//! whose 95 % interval may miss, and one that is wrong misses everywhere.

use crate::demo;
use crate::shown::{agrees, figures, names, too_many};
use heaptop::query::{self, Figures, Grouping, Question};
use heaptop::session::figures::{Change, Estimate, Followed, Lifetime};
use heaptop_tests::client::Client;
use heaptop_tests::deadline::{Deadline, poll};
use heaptop_tests::target::Target;
use heaptop_tests::truth::{Truth, Truths};
use std::collections::BTreeMap;
use std::time::Duration;

const DEMOS: usize = 8;
const FUNCTIONS: [&str; 4] = ["serve_request", "fill_cache", "forget_session", "write_report"];
/// How long each is looked at: rates are over ten seconds at most, and a page of the cache
/// stays for one.
const SECONDS: f64 = 6.0;

/// Waits until a demo's own clock has come so far.
fn at(demo: &mut Target, seconds: f64) -> Truths {
    poll(Deadline::after(Duration::from_secs(60)), || {
        Some(Truths::ask(demo)).filter(|truths| truths.at_s >= seconds)
    })
    .expect("time passes")
}

/// A figure that is counted between two moments, each of which is known to lie between two
/// truths: the least and the most that it may be.
fn moved(of: impl Fn(&Truth) -> f64, begin: [&Truth; 2], end: [&Truth; 2]) -> (f64, f64) {
    let [begin, end] = [begin, end].map(|two| two.map(&of));
    let least = |two: [f64; 2]| two[0].min(two[1]);
    let most = |two: [f64; 2]| two[0].max(two[1]);
    (least(end) - most(begin), most(end) - least(begin))
}

/// Whether what is said of a change holds for one that lies between the two.
fn holds(change: Change, (least, most): (f64, f64)) -> bool {
    match change {
        Change::Unknown => false,
        Change::Exact { value } => (least..=most).contains(&value),
        Change::Interval { low, high, .. } => low <= most && high >= least,
        Change::AtLeast { low, .. } => low <= most,
        Change::AtMost { high, .. } => high >= least,
    }
}

fn within(estimate: Estimate, (least, most): (f64, f64)) -> bool {
    // Bytes and objects a second: parts of them are nothing.
    agrees(estimate, least.floor() as u64, most.ceil() as u64)
}

/// Whether lifetimes hold for a mean age that is known to a factor.
fn lives(f: &Figures, mean_ns: f64, factor: f64) -> (bool, bool) {
    let (least, most) = (mean_ns / factor, mean_ns * factor);
    let mean = match f.mean {
        Followed::Interval { low, high, .. } | Followed::Bounds { low, high, .. } => {
            low <= most && high >= least
        }
        Followed::Unknown => false,
    };
    let median = match f.lifetime {
        Lifetime::Median { low_ns, high_ns, .. } => low_ns <= most && high_ns >= least,
        Lifetime::Beyond { ns, .. } => ns <= most,
        Lifetime::Unknown => false,
    };
    (mean, median)
}

/// Figures by kind: how many there were, and those that miss, each with what was seen.
#[derive(Default)]
struct Figured(BTreeMap<&'static str, (usize, Vec<String>)>);

impl Figured {
    fn note(&mut self, kind: &'static str, of: &str, holds: bool, seen: &dyn std::fmt::Debug) {
        let (all, misses) = self.0.entry(kind).or_default();
        *all += 1;
        if !holds {
            misses.push(format!("{kind} of {of}: {seen:?}"));
        }
    }
}

/// What was seen of a demo: truths about when growth is counted from, every second, and
/// about the end.
struct Seen {
    begin: [Truths; 2],
    seconds: Vec<Truths>,
    end: [Truths; 2],
}

impl Seen {
    /// The slowest and the fastest second.
    fn per_second(&self, function: &str, of: impl Fn(&Truth) -> u64) -> (f64, f64) {
        let speeds = self.seconds.windows(2).map(|two| {
            let happened = of(&two[1][function]) - of(&two[0][function]);
            happened as f64 / (two[1].at_s - two[0].at_s)
        });
        speeds.fold((f64::INFINITY, 0.0), |(low, high), s| (low.min(s), high.max(s)))
    }

    fn compare(&self, function: &str, f: &Figures, figured: &mut Figured) {
        let truth = |truths: &[Truths; 2]| truths.each_ref().map(|t| t[function].clone());
        let (begin, end) = (truth(&self.begin), truth(&self.end));
        let (b, e) = ([&begin[0], &begin[1]], [&end[0], &end[1]]);
        let bytes = self.per_second(function, |truth| truth.allocated_bytes);
        figured.note(
            "alloc/s",
            function,
            within(f.allocated_rate, bytes),
            &(f.allocated_rate, bytes),
        );
        let births = self.per_second(function, |truth| truth.allocated_objects);
        figured.note("births/s", function, within(f.object_rate, births), &(f.object_rate, births));
        if function != "serve_request" && function != "write_report" {
            // What is held for a moment is no figure to compare.
            let grown = moved(|truth| truth.in_use_bytes as f64, b, e);
            // A page replaced under our eyes.
            let grown = (grown.0 - 2048.0, grown.1 + 2048.0);
            figured.note("growth", function, holds(f.growth, grown), &(f.growth, grown));
        }
        if function == "forget_session" {
            let lives = (f.mean, f.lifetime);
            let forever = !matches!(f.mean, Followed::Interval { .. })
                && !matches!(f.lifetime, Lifetime::Median { .. });
            figured.note("what never dies", function, forever, &lives);
            figured.note("grew", function, f.grew, &f.growth);
            return;
        }
        figured.note("did not grow", function, !f.grew, &f.growth);
        let died = end[1].freed_objects - begin[0].freed_objects;
        let ages = end[1].ages_ns.unwrap_or(0) - begin[0].ages_ns.unwrap_or(0);
        let mean = ages as f64 / died as f64;
        // Pages of the cache all live as long as each other, but for the clock's ticks. Of
        // what lives for microseconds it is a part how long a sample takes to be taken, and
        // half may be dead well before the mean.
        let factor = if function == "fill_cache" { 1.1 } else { 3.0 };
        let (holds, median) = lives(f, mean, factor);
        figured.note("mean life", function, holds, &(f.mean, mean));
        figured.note("lifetime", function, median, &(f.lifetime, mean));
    }
}

/// Looks at a demo for some seconds, from after its cache has come round.
fn look(demo: &mut Target, figured: &mut Figured) {
    let mut client = Client::attach(&demo.socket());
    let first = Truths::ask(demo);
    client.snapshot();
    let from_ns = client.session.now_ns();
    let begin = [first, Truths::ask(demo)];
    let started = begin[1].at_s;
    let mut seconds = vec![begin[1].clone()];
    while seconds.last().is_some_and(|last| last.at_s < started + SECONDS) {
        let next = seconds.last().map_or(0.0, |last| last.at_s) + 1.0;
        seconds.push(at(demo, next));
        client.snapshot();
    }
    let before = Truths::ask(demo);
    client.snapshot();
    let end = [before, Truths::ask(demo)];
    let seen = Seen { begin, seconds, end };
    // Names first.
    client.table();
    let question = Question { growth_from_ns: Some(from_ns), ..Question::default() };
    let table = query::callsites(&client.session, &question);
    for function in FUNCTIONS {
        seen.compare(function, figures(&table, function), figured);
    }
    let question = Question { group: Grouping::Function, ..Question::default() };
    let table = query::callsites(&client.session, &question);
    let [a, b] = seen.end.each_ref().map(|truths| truths["forget_session"].in_use_bytes);
    for caller in ["log_in", "forget_session"] {
        let row = table.rows.iter().find(|row| names(&row.label.function, caller));
        let cum = row.map_or(Estimate::Unknown, |row| row.figures.cum);
        figured.note("cum", caller, agrees(cum, a, b), &(cum, a, b));
    }
}

#[test]
fn columns_of_time_hold_the_truth() {
    let mut figured = Figured::default();
    let seeds: Vec<String> = (1..=DEMOS).map(|seed| seed.to_string()).collect();
    // Four at a time: a busy machine makes demos late.
    for seeds in seeds.chunks(4) {
        let looks: Vec<_> = seeds
            .iter()
            .map(|seed| {
                let seed = seed.clone();
                std::thread::spawn(move || {
                    let env = [("HEAPTOP_SEED", &seed[..]), ("HEAPTOP_INTERVAL", "4K")];
                    let args = ["--leak", "524288", "--cache", "1000"];
                    let mut demo = demo::start_with(&args, &env);
                    at(&mut demo, 2.5);
                    let mut figured = Figured::default();
                    look(&mut demo, &mut figured);
                    figured
                })
            })
            .collect();
        for look in looks {
            for (kind, (n, misses)) in look.join().expect("it looks").0 {
                let (all, missed) = figured.0.entry(kind).or_default();
                *all += n;
                missed.extend(misses);
            }
        }
    }
    for (kind, (n, misses)) in &figured.0 {
        println!("{kind}: {} of {n} miss", misses.len());
        assert!(
            misses.len() < too_many(*n),
            "{} of {n} miss:\n{}",
            misses.len(),
            misses.join("\n")
        );
    }
    assert_eq!(figured.0.len(), 9, "{:?}", figured.0.keys());
}
