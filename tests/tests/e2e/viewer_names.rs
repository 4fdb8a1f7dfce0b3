//! Names that want to do something to the terminal: on screens, in lists, in exports,
//! in sentences.

use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::ids::{ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    FromAgent, Hello, Mark, SnapshotBegin, SnapshotEnd, Stopped, Thread, TotalsUpdate,
};
use heaptop_protocol::totals::StackTotals;
use heaptop_tests::impostor::{Impostor, bytes, hello, moment, status, totals};
use heaptop_tests::terminal::{Terminal, key};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a terminal would obey: each would leave a trace, in the title, in the colours,
/// on the screen, or in what it answers.
const EVIL: &str = "\x1b]0;OWNED\x07\x1b[2J\x1b[31m\x1bP+q00\x1b\\\u{9b}32m\u{9d}0;x\u{9c}\u{202e}txt\u{200b}\u{ad}\r\n\t\u{301}名e\u{301}";

/// Bytes that nothing of ours writes and that EVIL is full of.
fn is_clean(output: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(output);
    let bad = ["\x1b]0;", "\x1bP", "\x07", "\u{9b}", "\u{9d}", "\u{202e}", "\u{200b}", "\u{ad}"];
    match bad.iter().find(|bad| text.contains(**bad)) {
        None => Ok(()),
        Some(bad) => Err(format!("{bad:?} was written: {text:?}")),
    }
}

/// The file in which a program that compiles for itself names its code: here the
/// test's own, for the impostor.
struct PerfMap(PathBuf);

impl PerfMap {
    fn write(names: &[&[u8]]) -> Self {
        let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
        let mut map = Vec::new();
        for (at, name) in (0x1_0000..).step_by(0x1000).zip(names) {
            write!(map, "{at:x} 1000 ").unwrap();
            map.extend_from_slice(name);
            map.push(b'\n');
        }
        std::fs::write(&path, map).expect("/tmp can be written to");
        Self(path)
    }
}

impl Drop for PerfMap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A target all of whose names are EVIL, with a callsite for each of `functions`
/// names in the perf map and one without.
fn story(functions: u64) -> Vec<FromAgent> {
    let mut said: Vec<FromAgent> = vec![
        Hello { name: EVIL.into(), notices: vec![format!("notice {EVIL}")], ..hello("") }.into(),
        Module {
            id: ModuleId(1),
            path: format!("/evil/{EVIL}"),
            build_id: vec![1],
            load_bias: 0,
            range: (0x1000, 0x2000),
        }
        .into(),
        Thread { id: ThreadId(1), tid: 1, name: EVIL.into() }.into(),
    ];
    let bare = Frame { module: ModuleId(1), offset: 0x1234 };
    let mut stacks = Vec::new();
    for n in 0..=functions {
        let leaf = match n.checked_sub(1) {
            None => bare,
            Some(n) => Frame { module: ModuleId::UNKNOWN, offset: 0x1_0000 + 0x1000 * n + 0x10 },
        };
        let id = StackId(n as u32 + 1);
        said.push(Callstack { id, frames: vec![bare, leaf], end: End::Complete }.into());
        stacks.push(StackTotals { stack: id, totals: totals(100 + n) });
    }
    let sum = totals((0..=functions).map(|n| 100 + n).sum());
    said.push(SnapshotBegin { at: moment(1) }.into());
    said.push(SnapshotEnd { at: moment(2), blocks: 0 }.into());
    said.push(TotalsUpdate { at: moment(2), stacks }.into());
    said.push(status(2, sum).into());
    said
}

fn impostor(functions: u64, more: Vec<FromAgent>) -> Impostor {
    let said = bytes(&[story(functions), more].concat());
    Impostor::start(move |_, stream| {
        let _ = stream.write_all(&said);
    })
}

fn heaptop(directory: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(heaptop_tests::binaries::path("heaptop"))
        .args(args)
        .env("HEAPTOP_DIR", directory)
        .output()
        .expect("it runs");
    for written in [&output.stdout, &output.stderr] {
        is_clean(written).unwrap_or_else(|why| panic!("{args:?}: {why}"));
    }
    let [out, err] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).expect("UTF-8"));
    (output.status.code(), out, err)
}

#[test]
fn no_name_reaches_the_terminal_raw() {
    let cpp =
        format!("app::map<{}int{} >::operator[]", "std::vector<".repeat(800), " >".repeat(800));
    let map = PerfMap::write(&[
        &EVIL.replace(['\r', '\n'], "").into_bytes(),
        b"invalid \xff\xfe\xc3( utf-8",
        cpp.as_bytes(),
        "名前::とても長い名前の関数".as_bytes(),
        b"plain_name",
    ]);
    let told = vec![
        Mark { at: moment(3), label: format!("mark {EVIL}") }.into(),
        Stopped { reason: format!("because {EVIL}") }.into(),
    ];
    let impostor = impostor(5, told);
    let mut terminal = Terminal::viewer(impostor.directory(), &[]);
    terminal.wait_for("plain_name");
    terminal.wait_for("sampling stopped: because ]0;OWNED[2J");
    // (The parser of the screen leaves out what stands for what was taken out.)
    // All rows stand in the same columns.
    let ends: Vec<usize> = terminal.until("six rows", |screen| {
        let rows = screen.lines().filter(|line| line.contains(" KiB ±") && line.contains("█"));
        let ends: Vec<usize> = rows
            .map(|line| heaptop::view::text::width(line.split(" KiB ±").next().unwrap_or_default()))
            .collect();
        (ends.len() == 6).then_some(ends)
    });
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}\n{}", terminal.contents());
    for seen in ["invalid ", "名前::とても", "…"] {
        terminal.wait_for(seen);
    }
    // Every other way to the terminal: trees, crumbs, a filter, a copy, an export, the help.
    for keys in
        ["G", "2", "i", "y", "1", "/evil", key::ENTER, "2", "1", "?", "?", "r", "e", key::ENTER]
    {
        terminal.press(keys);
    }
    terminal.wait_for("written: ");
    terminal.press("q");
    assert_eq!(terminal.wait(), 0);
    is_clean(&terminal.output()).unwrap();
    drop(map);

    let files = std::fs::read_dir(impostor.directory()).unwrap().map(|f| f.unwrap().path());
    let file = files.into_iter().find(|f| f.extension().is_some_and(|e| e == "svg"));
    let file = file.expect("an SVG file where the viewer runs");
    assert!(file.to_str().is_some_and(str::is_ascii), "{}", file.display());
    let svg = std::fs::read(file).unwrap();
    is_clean(&svg).unwrap();
    assert!(!svg.contains(&0x1b));
    let svg = String::from_utf8(svg).expect("XML is UTF-8");
    assert!(svg.contains("plain_name") && svg.contains("�]0;OWNED�"));
    assert!(!svg.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)));
}

#[test]
fn lists_and_sentences_are_clean() {
    let impostor = impostor(0, Vec::new());
    let (code, table, _) = heaptop(impostor.directory(), &["list"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{table}");
    assert!(lines[1].contains("�]0;OWNED��[2J"), "{table}");
    let column = |line: &str, text: &str| {
        heaptop::view::text::width(line.split(text).next().unwrap_or_default())
    };
    assert_eq!(column(lines[0], "KIND"), column(lines[1], "linked"), "{table}");

    let (code, json, _) = heaptop(impostor.directory(), &["list", "--json"]);
    assert!(code == Some(0) && json.chars().all(|c| c == '\n' || !c.is_control()), "{json:?}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value[0]["name"], EVIL, "JSON has the name as it is");

    // Sentences that repeat what was given, in a terminal.
    let missing = impostor.directory().join(EVIL.replace('/', ""));
    for wanted in [&format!("x{EVIL}"), missing.to_str().expect("a path")] {
        let mut terminal = Terminal::viewer(impostor.directory(), &["attach", wanted]);
        terminal.wait_for("heaptop: ");
        assert_eq!(terminal.wait(), 2);
        assert!(!terminal.output().contains(&0x1b), "{:?}", terminal.contents());
        is_clean(&terminal.output()).unwrap();
    }
}
