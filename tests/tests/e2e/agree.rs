//! One recorded session: the live screen, the opened screen and `report` say the same,
//! now and at a moment of the past.

use crate::recordings::{end, marked, record, synced};
use heaptop_tests::binaries;
use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;
use heaptop_tests::truth::Truths;
use std::path::Path;
use std::process::Command;

/// Rows and columns: all columns are seen.
const SIZE: (u16, u16) = (40, 200);
/// What the screens and the report call the table's columns that stand still while the
/// program does: in use in bytes and objects, the same of allocated, promoted.
const STILL: [usize; 5] = [2, 3, 4, 5, 7];

/// The rows of a report as text, by their columns.
fn report(path: &Path, more: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new(binaries::path("heaptop"))
        .arg("report")
        .arg(path)
        .args(["--top", "100"])
        .args(more)
        .env("COLUMNS", SIZE.1.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let columns = |line: &str| {
        let fields = line.split("  ").map(str::trim).filter(|field| !field.is_empty());
        fields.map(str::to_owned).collect::<Vec<_>>()
    };
    let rows = text.lines().skip_while(|line| !line.starts_with("callsite")).skip(1).map(columns);
    // Those with a place in the source, by which they are found.
    rows.filter(|row| row.get(1).is_some_and(|place| place.contains(".rs:"))).collect()
}

/// Waits until a screen has each row of a report, with its figures.
fn shows(terminal: &Terminal, rows: &[Vec<String>]) {
    assert!(!rows.is_empty());
    for row in rows {
        let line = row[1].rsplit('/').next().unwrap_or_default();
        terminal.until(&format!("a row as the report has it: {row:?}"), |screen| {
            let is_it = |seen: &&str| {
                let has =
                    |figure: &String| seen.contains(figure) || seen.contains(&rounded_up(figure));
                seen.contains(line) && STILL.iter().all(|&column| has(&row[column]))
            };
            screen.lines().find(is_it).map(str::to_owned)
        });
    }
}

/// A figure as a narrow column has it: `1.00 MiB ±0.1 %` as `1.00 MiB ±1 %`.
fn rounded_up(figure: &str) -> String {
    let parts = figure.strip_suffix(" %").and_then(|rest| rest.rsplit_once(" ±"));
    match parts.and_then(|(value, half)| Some((value, half.parse::<f64>().ok()?))) {
        Some((value, half)) => format!("{value} ±{} %", half.ceil()),
        None => figure.to_owned(),
    }
}

/// The moment that the time bar names.
fn moment(terminal: &Terminal) -> String {
    terminal.until("a moment", |screen| {
        let bars = screen.lines().filter_map(|line| line.rsplit_once(" at "));
        let mut moments = bars.filter_map(|(_, said)| said.split_once(" s of "));
        moments.next().map(|(at, _)| format!("{}s", at.replace(' ', "")))
    })
}

#[test]
fn screens_and_reports_of_one_session_say_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    // Sampled, so that there are intervals to agree on.
    let mut target = Target::start("fixture-exact", &["2"], &[("HEAPTOP_INTERVAL", "512")]);
    target.wait_for("ready");
    let recorder = record(&target, &path);
    synced(&path);
    // The reports' columns need all the width.
    std::fs::write(target.directory().join("alone.toml"), "details-pane = false\n").unwrap();
    let sockets = target.directory().to_owned();
    let screen = |command: &str, what: &str| {
        let args = ["--config", "alone.toml", command, what];
        Terminal::start("heaptop", &sockets, &args, SIZE)
    };
    let mut live = screen("attach", &target.pid().to_string());
    target.say("work");
    let truths = Truths::read(&mut target);
    assert!(truths.by_function.len() > 3);
    target.wait_for("quiet");
    // The recorder and the screen hear the same, and then nothing new.
    live.wait_for("all callsites");
    live.press("Mquiet\r");
    marked(&path);
    let status = end(recorder, libc::SIGINT);
    assert_eq!(status.code(), Some(0));
    let now = report(&path, &[]);
    shows(&live, &now);

    let file = path.to_str().unwrap();
    let mut opened = screen("open", file);
    shows(&opened, &now);
    // A step back from the end all is quiet, and was so before the work at the beginning.
    opened.press(",");
    let late = report(&path, &["--at", &moment(&opened)]);
    shows(&opened, &late);
    for (now, late) in now.iter().zip(&late) {
        // The agent knows the sizes of all blocks that ever lived, and of all whose cycle
        // is over what became of them; the past those of blocks that it saw. So bounds of
        // objects need not be the same, and a share may not be known.
        let shares = if late[7] == "–" { [2, 4, 4] } else { [2, 4, 7] };
        let still = |row: &[String]| shares.map(|i| row[i].clone());
        assert_eq!(still(now), still(late), "all was quiet since: {now:?}, {late:?}");
    }
    // There are a hundred steps, and the first moment is not passed.
    opened.press(&",".repeat(120));
    let early = report(&path, &["--at", "start"]);
    assert_ne!(early[0], now[0]);
    shows(&opened, &early);
}
