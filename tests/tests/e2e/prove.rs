//! `heaptop demo --prove` says what it measured, and what it measured is right.

use heaptop_tests::target::socket_directory;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const CALLSITES: [&str; 8] = [
    "serve_request",
    "parse_header",
    "queue_job",
    "send_batch",
    "forget_session",
    "fill_cache",
    "keep_log",
    "read_body",
];
const QUANTITIES: [&str; 5] = ["in use", "objects", "allocated", "births", "promoted"];

fn prove(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(heaptop_tests::binaries::path("heaptop"));
    command.args(["demo", "--prove"]).args(args).env("HEAPTOP_DIR", directory);
    // What a person has set for targets must not reach the runs.
    command.env("HEAPTOP_INTERVAL", "7").env("HEAPTOP", "off");
    command.output().expect("it runs")
}

/// A line of the table, as printed.
struct Row {
    callsite: String,
    quantity: String,
    /// Truth, estimate, and the interval's ends; `None` where there is `–`.
    numbers: [Option<f64>; 4],
    verdict: String,
}

/// `1,234` or `12.345 %`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_end_matches(" %").replace(',', "");
    if text == "–" { None } else { Some(text.parse().unwrap_or_else(|_| panic!("{text}"))) }
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> =
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let [callsite, quantity, truth, value, low, high, verdict] = cells[..] else {
        panic!("a row has seven cells: {line:?}")
    };
    Row {
        callsite: callsite.into(),
        quantity: quantity.into(),
        numbers: [truth, value, low, high].map(number),
        verdict: verdict.into(),
    }
}

/// What the numbers of a row say, by whoever reads them.
fn judge([truth, _, low, high]: [Option<f64>; 4]) -> &'static str {
    let Some(truth) = truth.filter(|_| low.is_some() || high.is_some()) else { return "–" };
    let holds = low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high);
    if holds { "hit" } else { "MISS" }
}

/// The two numbers of a line `… N of M …`.
fn n_of_m(text: &str) -> (usize, usize) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let of = words.iter().position(|word| *word == "of").expect("an `of`");
    (words[of - 1].parse().expect("N"), words[of + 1].parse().expect("M"))
}

#[test]
fn the_table_is_whole_consistent_and_right() {
    let directory = socket_directory();
    let output = prove(directory.path(), &["--seed", "11", "--runs", "4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));

    let table = text.lines().skip_while(|line| !line.starts_with("callsite "));
    let rows: Vec<Row> = table.skip(1).take_while(|line| !line.is_empty()).map(row).collect();
    let seen: BTreeSet<_> = rows.iter().map(|r| (&*r.callsite, &*r.quantity)).collect();
    let wanted: BTreeSet<_> =
        CALLSITES.iter().flat_map(|c| QUANTITIES.map(|quantity| (*c, quantity))).collect();
    assert_eq!((rows.len(), seen), (40, wanted));
    for row in &rows {
        assert_eq!(row.verdict, judge(row.numbers), "{} {}", row.callsite, row.quantity);
        if let [_, Some(value), Some(low), Some(high)] = row.numbers {
            assert!(low <= value && value <= high, "{} {}", row.callsite, row.quantity);
        }
        // Only a block that is never young has no promotion.
        let unknown = row.callsite == "read_body" && row.quantity == "promoted";
        assert_eq!(row.numbers[0].is_none(), unknown, "{} {}", row.callsite, row.quantity);
    }

    // The sums are those of the rows.
    let of = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    let runs: Vec<(usize, usize)> =
        text.lines().filter(|line| line.starts_with("run ")).map(n_of_m).collect();
    assert_eq!(runs[0], (of("hit"), of("hit") + of("MISS")));
    let sum = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    let said = text.lines().find(|line| line.contains("intervals hold the truth")).map(n_of_m);
    assert_eq!((runs.len(), said), (4, Some(sum)));
    let told = text.lines().filter(|line| line.starts_with("    MISS ")).count();
    assert_eq!(told, (sum.1 - sum.0) - of("MISS"), "every miss is told");

    // 5 % may miss, and those of a callsite come together. Weights that are wrong by
    // 30 % miss half of them.
    assert!(sum.1 >= 130 && sum.0 * 100 >= sum.1 * 85, "{sum:?}");
    assert!(text.contains("Exact run, R = 1: 32 of 32 figures"), "{text}");
}

#[test]
fn a_seed_repeats_it_and_every_byte_is_exact() {
    let directory = socket_directory();
    let output = prove(directory.path(), &["--seed", "3", "--runs", "1", "--interval", "1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("every byte beside every byte") && text.contains("Seed 3:"), "{text}");
    let table = text.lines().skip_while(|line| !line.starts_with("callsite "));
    for row in table.skip(1).take_while(|line| !line.is_empty()).map(row) {
        let [truth, value, low, high] = row.numbers;
        if row.quantity == "promoted" {
            // In each run the nursery turns at other blocks of the same tick.
            let near = value.zip(truth).is_none_or(|(value, truth)| (value - truth).abs() < 0.2);
            assert!(near && [low, high] == [value; 2], "{}: {:?}", row.callsite, row.numbers);
        } else {
            assert_eq!([value, low, high], [truth; 3], "{} {}", row.callsite, row.quantity);
        }
    }
}

#[test]
fn what_cannot_be_proved_is_a_sentence_and_exit_code_2() {
    let directory = socket_directory();
    for args in [["--interval", "many"], ["--runs", "0"], ["--seed", "-1"]] {
        let output = prove(directory.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    // Where others may enter no agent opens a socket.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let output = prove(directory.path(), &[]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("did not open its socket") && error.lines().count() == 1, "{error}");
}
