use super::*;
use crate::query::{self, Direction, Grouping, Question};
use crate::session::Session;
use crate::session::fixture::Fixture;

const S: u64 = 1_000_000_000;

/// A leak, a cache that was emptied, and garbage; at R = 1.
fn orders() -> Fixture {
    let mut f = Fixture::new(1);
    let leak = f.stack(&["main", "serve", "leak@/home/me/orders/src/auth.rs:41"]);
    let cache = f.stack(&["main", "fill, \"all\"@/home/me/orders/src/cache.rs:88"]);
    let churn = f.stack(&["main", "serve", "parse"]);
    f.pass(1.0);
    let mut cached = Vec::new();
    for round in 0..30 {
        f.time_ns += 1_000_000;
        let brief = f.alloc(churn, 300);
        f.time_ns += 1_000_000;
        f.free(brief);
        f.alloc(leak, 1000);
        if round < 10 {
            cached.push(f.alloc(cache, 5000));
        }
        f.pass(1.0);
        if round == 20 {
            f.say_peak();
            f.time_ns += 1_000_000;
            for id in cached.drain(..) {
                f.free(id);
            }
        }
    }
    f
}

fn asked(view: View, when: When) -> Asked {
    Asked {
        view,
        metric: Metric::InUseBytes,
        top: 20,
        focus: Vec::new(),
        filter: String::new(),
        when,
        group: Grouping::Callsite,
        limit: None,
        memory: None,
    }
}

fn made(session: &Session, asked: &Asked) -> Report {
    views::report(session, asked).unwrap()
}

fn printed(report: &Report, width: usize) -> String {
    let mut out = Vec::new();
    text::write(report, width, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json_of(report: &Report) -> serde_json::Value {
    let mut out = Vec::new();
    json::write(report, str::to_owned, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A report at T, in each format, has the figures of the query, which are the screen's.
#[test]
fn reports_say_what_the_query_says() {
    let f = orders();
    let s = &f.session;
    for when in
        [When::Now, When::At(15 * S), When::Range { from_ns: 5 * S, to_ns: 25 * S }, When::Peak]
    {
        let report = made(s, &asked(View::Callsites, when));
        let table = query::callsites(s, &Question { when, ..Question::default() });
        assert_eq!(report.len, table.len);
        let json = json_of(&report);
        for (at, row) in table.rows.iter().enumerate() {
            assert_eq!(report.rows[at][0], Cell::Function(row.label.clone(), 0));
            let in_use = row.figures.in_use_bytes;
            assert_eq!(report.rows[at][2], Cell::Estimate(in_use, Unit::Bytes));
            let told = &json["rows"][at];
            assert_eq!(told["function"], *row.label.function);
            assert_eq!(told["in_use_bytes"]["value"].as_f64(), in_use.point(), "{told}");
        }
        assert_eq!(
            json["total"]["in_use_bytes"]["value"].as_f64(),
            table.total.in_use_bytes.point()
        );
    }
}

#[test]
fn text_is_aligned_and_fits() {
    let f = orders();
    let out = printed(&made(&f.session, &asked(View::Callsites, When::At(15 * S))), 130);
    assert!(
        out.starts_with(
            "orders-api · pid 4711 · at 15.0 s (2023-11-14 22:13:35 UTC) · sampled every byte"
        ),
        "{out}"
    );
    assert!(out.contains("leak"), "{out}");
    for line in out.lines().skip(1) {
        assert!(crate::view::text::width(line) <= 130, "{line}");
    }
    let usual = printed(&made(&f.session, &asked(View::Callsites, When::At(15 * S))), 80);
    for line in usual.lines().skip(2).filter(|line| !line.starts_with("columns left out")) {
        assert!(crate::view::text::width(line) <= 80, "{line}");
    }
    // Two columns are titled "objects": which of them it is must be said.
    let said = "columns left out for want of room: objects allocated, mean life, dies young";
    assert!(usual.contains(said), "{usual}");
    // Where it is stays, with its line, and so does what rows are ordered by.
    for width in [80, 100, 130] {
        let out = printed(&made(&f.session, &asked(View::Callsites, When::At(15 * S))), width);
        assert!(out.contains("auth.rs:41") && out.contains("cache.rs:88"), "{out}");
        let metric = Metric::AllocatedObjects;
        let by = Asked { metric, ..asked(View::Callsites, When::At(15 * S)) };
        let report = made(&f.session, &by);
        let out = printed(&report, width);
        let at = report.columns.iter().position(|c| c.id == "allocated_objects").unwrap();
        let Cell::Estimate(estimate, unit) = &report.rows[0][at] else { panic!("{report:?}") };
        let cell = crate::view::format::estimate(estimate, *unit).to_string();
        assert!(out.contains(&cell), "{cell} in {out}");
    }
    let narrow = printed(&made(&f.session, &asked(View::Callsites, When::Now)), 10);
    assert!(narrow.contains("parse"), "{narrow}");
    let before = printed(&made(&f.session, &asked(View::Callsites, When::At(0))), 100);
    assert!(before.contains("what happened before 1.0 s is not known"), "{before}");
    assert!(before.contains('–') && !before.contains("0 B"), "{before}");
}

#[test]
fn every_view_in_every_format_at_any_time() {
    let f = orders();
    for view in [
        View::Callsites,
        View::Callers,
        View::Promotion,
        View::Threads,
        View::Peak,
        View::Leaks,
        View::Course,
        View::External,
    ] {
        for when in
            [When::Now, When::At(0), When::At(9 * S), When::Range { from_ns: 3 * S, to_ns: 9 * S }]
        {
            let report = made(&f.session, &asked(view, when));
            for row in &report.rows {
                assert_eq!(row.len(), report.columns.len(), "{view:?}");
            }
            printed(&report, 80);
            let json = json_of(&report);
            assert_eq!(json["rows_in_all"], report.len);
            let mut out = Vec::new();
            csv::write(&report, &mut out).unwrap();
            let out = String::from_utf8(out).unwrap();
            let fields = |line: &str| {
                // A comma within quotes separates nothing.
                let mut quoted = false;
                let comma = |c: char| {
                    quoted ^= c == '"';
                    c == ',' && !quoted
                };
                line.matches(comma).count()
            };
            let lines: Vec<&str> = out.split("\r\n").collect();
            assert_eq!(lines.len(), report.rows.len() + 2);
            for line in &lines[..lines.len() - 1] {
                assert_eq!(fields(line), fields(lines[0]), "{view:?} {line} {}", lines[0]);
            }
        }
    }
    let nobody = Session::new();
    assert!(
        printed(&made(&nobody, &asked(View::Leaks, When::At(3))), 80).contains("nothing is known")
    );
}

#[test]
fn phases_and_marks_have_times_that_can_be_read_and_raw_ones_for_programs() {
    let mut f = orders();
    f.time_ns = 61 * S;
    let at = f.now();
    f.say(heaptop_protocol::message::Phase { at, name: "warm up".into() });
    f.pass(95.0);
    let at = f.now();
    f.say(heaptop_protocol::message::Mark { at, label: "deploy 17".into() });
    let report = made(&f.session, &asked(View::Course, When::Now));
    let out = printed(&report, 100);
    let line = |name: &str| out.lines().find(|line| line.starts_with(name)).expect("it has a row");
    assert!(line("warm up").contains("1 m 01 s"), "{out}");
    assert!(line("deploy 17").contains("2 m 36 s"), "{out}");
    assert!(!out.contains("000000"), "nobody reads nanoseconds: {out}");
    let json = json_of(&report);
    assert_eq!(json["rows"][0]["from_ns"], 61 * S);
    assert!(json["rows"][0]["clock_bytes"].is_u64());
    let mut csv = Vec::new();
    csv::write(&report, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("name,kind,from_ns,to_ns,clock_bytes\r\n"), "{csv}");
    assert!(csv.contains(&format!("\"warm up\",\"phase\",{},", 61 * S)), "{csv}");
}

#[test]
fn a_damaged_file_is_said_to_be_in_every_format_that_can() {
    let mut f = orders();
    let damage = |at: u32| crate::session::Damage {
        how: format!("damaged at byte {at}"),
        missing: crate::session::Missing::Between,
    };
    for at in 0..7 {
        f.session.apply(crate::session::Input::Damage(damage(at)));
    }
    let report = made(&f.session, &asked(View::Callsites, When::Now));
    let out = printed(&report, 100);
    assert!(out.contains("\ndamaged: damaged at byte 0\n"), "{out}");
    assert!(out.contains("\ndamaged: and in 2 more places\n"), "{out}");
    let json = json_of(&report);
    assert_eq!(json["damage"].as_array().unwrap().len(), 7);
    assert_eq!(
        json_of(&made(&orders().session, &asked(View::Callsites, When::Now)))["damage"],
        serde_json::json!([])
    );
}

#[test]
fn hostile_names_are_quoted_in_csv() {
    let f = orders();
    let report = made(&f.session, &asked(View::Callsites, When::At(15 * S)));
    let mut out = Vec::new();
    csv::write(&report, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("\"fill, \"\"all\"\"\",\"orders/src/cache.rs:88\",50000,50000,50000,"),
        "{out}"
    );
    assert!(out.starts_with("function,location,in_use_bytes,in_use_bytes_low,"), "{out}");
}

#[test]
fn the_leak_is_found_and_said_to_have_grown() {
    let f = orders();
    let report = made(&f.session, &asked(View::Leaks, When::Now));
    let Cell::Function(label, _) = &report.rows[0][0] else { panic!("{report:?}") };
    assert_eq!(&*label.function, "leak");
    assert_eq!(report.rows[0][6], Cell::Mark(true, "grew"));
    let grew = report.rows.iter().filter(|row| row[6] == Cell::Mark(true, "grew")).count();
    assert_eq!(grew, 1, "the cache was emptied");
    let out = printed(&report, 100);
    assert!(out.contains("+29.3 KiB  grew"), "{out}");
}

#[test]
fn callers_of_a_function_and_of_nobody() {
    let f = orders();
    let callers = |focus: &[&str]| {
        let focus = focus.iter().map(ToString::to_string).collect();
        views::report(&f.session, &Asked { focus, ..asked(View::Callers, When::At(15 * S)) })
    };
    let out = printed(&callers(&["leak"]).unwrap(), 100);
    let names: Vec<&str> =
        out.lines().skip(3).filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(names[..3], ["leak", "serve", "main"], "{out}");
    assert!(out.contains("\n  serve"), "{out}");
    let root = printed(&callers(&[]).unwrap(), 100);
    assert!(root.contains("(all)"), "{root}");
    assert!(callers(&["nobody"]).unwrap_err().contains("no function is called nobody"));
    assert!(callers(&["e"]).unwrap_err().contains("several functions"));
    let tree = query::callers(
        &f.session,
        When::At(15 * S),
        &[],
        Direction::Callees,
        Metric::InUseBytes,
        "",
    );
    assert!(root.contains(&crate::view::format::estimate(&tree.unwrap().cum, Unit::Bytes).value));
}

#[test]
fn the_peak_has_what_was_in_use_then() {
    let f = orders();
    let out = printed(&made(&f.session, &asked(View::Peak, When::Now)), 100);
    assert!(out.contains("· at 23.0 s, the peak"), "{out}");
    assert!(out.contains("48.8 KiB"), "the cache was full: {out}");
}

/// Rows that have nothing in use at the peak are no part of it, and neither counted.
#[test]
fn all_rows_of_the_peak_can_be_shown() {
    let mut f = orders();
    let report = made(&f.session, &asked(View::Peak, When::Now));
    assert_eq!((report.rows.len(), report.len), (2, 2), "{report:?}");
    let one = made(&f.session, &Asked { top: 1, ..asked(View::Peak, When::Now) });
    assert_eq!((one.rows.len(), one.len), (1, 2));
    // The end is higher than all that the agent has called a peak.
    let stack = f.stack(&["main", "late"]);
    f.time_ns += S;
    f.alloc(stack, 100_000);
    let peak = made(&f.session, &asked(View::Peak, When::Now));
    let end = made(&f.session, &asked(View::Callsites, When::At(f.session.now_ns())));
    assert_eq!(peak.total.unwrap()[2], end.total.unwrap()[2]);
    assert!(peak.heading.is_peak && end.heading.is_peak);
}

#[test]
fn files_of_one_directory_are_told_apart() {
    let mut f = Fixture::new(1);
    for file in ["main", "work"] {
        let stack = f.stack(&[&format!("{file}@tui/src/bin/heaptop-demo/deep/{file}.rs:1")]);
        f.alloc(stack, 100);
    }
    f.pass(1.0);
    let asked = Asked { group: Grouping::File, ..asked(View::Callsites, When::Now) };
    let out = printed(&made(&f.session, &asked), 40);
    assert!(out.contains("deep/main.rs") && out.contains("deep/work.rs"), "{out}");
}

/// What runs was met by somebody, what is recorded began; and a file that grows has no end.
#[test]
fn recordings_are_not_told_as_what_runs() {
    let mut f = orders();
    let printed = |f: &Fixture| -> String {
        let threads = asked(View::Threads, When::Now);
        let by_thread = Asked { group: Grouping::Thread, ..asked(View::Callsites, When::Now) };
        let young = Asked { filter: "age<1h".into(), ..asked(View::Callsites, When::Now) };
        let leaks = asked(View::Leaks, When::Now);
        [threads, by_thread, young, leaks].map(|of| printed(&made(&f.session, &of), 160)).concat()
    };
    let (live, file) = ("when heaptop came", "when the recording began");
    let (live_growth, file_growth) = ("(since heaptop came)", "(since the recording began)");
    let of = |out: &str, said: &str| out.matches(said).count();
    let out = printed(&f);
    assert_eq!([of(&out, live), of(&out, live_growth)], [3, 1], "{out}");
    assert!(!out.contains("the recording began"), "{out}");
    let how = "the recording is still being written: this is what it has at byte 9";
    let end = crate::session::Connection::Ended(how.into());
    f.session.apply(crate::session::Input::Connection(end));
    let out = printed(&f);
    assert_eq!([of(&out, file), of(&out, file_growth)], [3, 1], "{out}");
    assert!(!out.contains("heaptop came") && !out.contains("ended:"), "{out}");
    assert_eq!(of(&out, how), 4, "{out}");
    let json = json_of(&made(&f.session, &asked(View::Threads, When::Now)));
    assert!(json["ended"].is_null() && json["notes"].to_string().contains(how), "{json}");
}

#[test]
fn growth_that_nobody_had_time_to_see_is_said() {
    let mut f = Fixture::new(1);
    let leak = f.stack(&["main", "leak"]);
    f.alloc(leak, 1000);
    f.pass(0.2);
    let out = |f: &Fixture| printed(&made(&f.session, &asked(View::Leaks, When::Now)), 160);
    let just = Fixture::new(1);
    let now = out(&just);
    assert!(
        now.contains("not watched yet: growth needs longer") && !now.contains("0.0 ns"),
        "{now}"
    );
    assert!(now.contains(", of any age; growth"), "{now}");
    let note = "watched 200 ms: growth needs longer: --for 10s, or a recording";
    assert!(out(&f).contains(note), "{}", out(&f));
    f.pass(10.0);
    assert!(!out(&f).contains("watched"), "{}", out(&f));
}

/// A trace may be over in a millisecond.
#[test]
fn moments_of_a_short_time_can_be_told_apart() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "fill"]);
    f.alloc(stack, 100);
    f.pass(0.0013);
    let range = When::Range { from_ns: S, to_ns: S + 1_200_000 };
    let out = printed(&made(&f.session, &asked(View::Callsites, range)), 100);
    assert!(out.contains("from 1.0000 s to 1.0012 s"), "{out}");
}

/// Leaks are what the screen shows: the same rows in the same order, generations between
/// marks, and when limits are reached.
#[test]
fn leaks_are_what_the_screen_shows() {
    let mut f = Fixture::new(1);
    let (leak, cache) = (f.stack(&["main", "leak"]), f.stack(&["main", "cache"]));
    f.pass(1.0);
    for _ in 0..10 {
        f.alloc(cache, 5000);
    }
    for label in ["cold", "warm", "auto"] {
        f.pass(5.0);
        let at = f.now();
        f.say(heaptop_protocol::message::Mark { at, label: label.into() });
        f.pass(1.0);
        for _ in 0..20 {
            f.alloc(leak, 1000);
            f.pass(0.5);
        }
    }
    let s = &f.session;
    let asked = Asked { limit: Some(1 << 20), ..asked(View::Leaks, When::Now) };
    let report = made(s, &asked);
    let mark = query::last_mark(s, u64::MAX).unwrap();
    assert_eq!(mark.label, "warm", "the last that somebody made by himself");
    let list = query::LeakList::ask(s, When::Now, Some(mark.at.time_ns), "").unwrap();
    let leaks = list.rows(0..20);
    assert_eq!(report.len, leaks.len);
    for (row, told) in leaks.rows.iter().zip(&report.rows) {
        assert_eq!(told[0], Cell::Function(row.label.clone(), 0));
        assert_eq!(told[2], Cell::Estimate(row.figures.old_bytes, Unit::Bytes));
        assert_eq!(told[5], Cell::Change(row.figures.growth));
        assert_eq!(told[7], Cell::Estimate(row.figures.in_use_bytes, Unit::Bytes));
        let born: Vec<Cell> = told[8..].to_vec();
        let want = row.figures.generations.iter().map(|of| Cell::Estimate(*of, Unit::Bytes));
        assert_eq!(born, want.collect::<Vec<_>>());
    }
    let ids: Vec<&str> = report.columns[8..].iter().map(|column| column.id).collect();
    assert_eq!(ids, ["born_before_bytes", "born_1_bytes", "born_2_bytes", "born_3_bytes"]);
    let json = json_of(&report);
    let born = |at: usize| json["rows"][0][ids[at]]["value"].as_f64().unwrap();
    assert_eq!([born(0), born(1), born(2), born(3)], [0.0, 20e3, 20e3, 20e3]);
    let out = printed(&report, 160);
    assert!(out.contains("(since “warm”)"), "{out}");
    assert!(
        out.contains("1 after “cold” from 7.0 s to 23.0 s; 2 after “warm” from 23.0 s to"),
        "{out}"
    );
    // 25,000 bytes in the later 18.4 seconds; 938,576 are left: 713 seconds.
    assert!(
        out.contains(
            "reaches: the limit that was set, 1.00 MiB in use, in 12 min at 1.3 KiB/s as in the \
             last 18 s"
        ),
        "{out}"
    );
    let none = printed(&made(s, &Asked { limit: None, ..asked.clone() }), 160);
    assert!(none.contains("– no limit is known: --limit sets one"), "{none}");
    let earlier = Asked { when: When::Range { from_ns: 2 * S, to_ns: 6 * S }, ..asked };
    let out = printed(&made(s, &earlier), 160);
    assert!(out.contains("reaches: – no forecast without evidence of growth"), "{out}");
}

/// What is promoted per second stands in the report as it does on the screen.
#[test]
fn promotion_has_the_columns_of_the_screen() {
    let mut f = Fixture::new(1);
    let kept = f.stack(&["main", "keep"]);
    for _ in 0..10 {
        let block = f.alloc(kept, 600);
        f.promote(block);
        f.pass(0.5);
    }
    let report = made(&f.session, &asked(View::Promotion, When::Now));
    let column = report.columns.iter().position(|c| c.id == "promoted_bytes_per_second");
    let column = column.expect("it is there");
    let rows = query::promotion(&f.session, "", When::Now, 20).rows;
    let rate = rows[0].figures.promoted_rate;
    assert!(rate.point().is_some_and(|rate| rate > 0.0), "{rate:?}");
    assert_eq!(report.rows[0][column], Cell::Estimate(rate, Unit::BytesPerSecond));
    assert!(printed(&report, 160).contains("promoted/s"));
}
