//! Real traces. `HEAPTOP_TRACES=DIRECTORY` holds all that lie there to the same, large
//! ones too: each `NAME.ctf` with a `NAME.dump.txt.gz` beside it.

use crate::{converted, decoder, dumped, sample, samples};
use flate2::read::GzDecoder;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

/// The sound samples by name: the trace, and what memtrace's tool prints for it.
fn sound() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let more = std::env::var_os("HEAPTOP_TRACES").map(PathBuf::from);
    let mut found = Vec::new();
    for directory in [samples()].into_iter().chain(more) {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let authority = path.with_extension("dump.txt.gz");
            if path.extension().is_some_and(|e| e == "ctf") && authority.exists() {
                let mut text = Vec::new();
                GzDecoder::new(File::open(authority).unwrap()).read_to_end(&mut text).unwrap();
                found.push((path.display().to_string(), fs::read(&path).unwrap(), text));
            }
        }
    }
    assert!(found.len() >= 4, "samples are missing");
    found
}

fn same(name: &str, printed: &[u8], authority: &[u8]) {
    let line = |text: &[u8], n: usize| {
        let line = text.split(|b| *b == b'\n').nth(n).unwrap_or(b"(none)");
        String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
    };
    if printed != authority {
        let mut both = printed.split(|b| *b == b'\n').zip(authority.split(|b| *b == b'\n'));
        let n = both.position(|(a, b)| a != b).unwrap_or(usize::MAX);
        panic!("{name}, line {n}:\n{}\n{}", line(printed, n), line(authority, n));
    }
}

#[test]
fn dumps_are_those_of_memtraces_own_tool() {
    for (name, trace, authority) in sound() {
        let (text, sentence) = dumped(&trace);
        same(&name, &text, &authority);
        assert_eq!(sentence, None, "{name}");
    }
}

#[test]
fn what_is_written_is_what_was_read() {
    for (name, trace, authority) in sound() {
        let written = converted(&trace);
        let decoded = decoder::decode(&written).unwrap_or_else(|e| panic!("{name}: {e}"));
        same(&name, &dumped(&written).0, &decoded.text);
        assert!(decoded.packets < 4 || decoded.checks > 0, "{name}: tables are never checked");
        let version = u16::from_le_bytes(trace[28..30].try_into().unwrap());
        if version < 3 {
            same(&name, &decoded.text, &authority);
            // By the table's own buckets, not memtrace's: about the same size.
            assert!(written.len() < trace.len() + trace.len() / 50, "{name}: {}", written.len());
        } else {
            same(&name, &bare(&decoded.text), &merged(&authority));
        }
    }
}

/// A dump's lines without what depends on the order of births: shared frames.
fn bare(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split_inclusive(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        out.extend(match line.split_once(':') {
            None => line.into_owned().into_bytes(),
            Some((head, frames)) => {
                let head = head.rsplit_once(' ').unwrap().0.trim_end();
                let head = head.split(" dom=").next().unwrap();
                format!("{head}:{frames}").into_bytes()
            }
        });
    }
    out
}

/// The lines of a dump of several domains sorted by time, objects numbered in that order.
fn merged(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bare(text)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line[..10].parse::<u64>().unwrap());
    let mut numbers = HashMap::new();
    let mut out = String::new();
    for line in lines {
        let (id, rest) = (&line[11..21], &line[21..]);
        let new = numbers.len();
        let number = *numbers.entry(id).or_insert(new);
        assert!(new != number || rest.starts_with(" alloc"), "{line}");
        let _ = writeln!(out, "{} {number:010}{rest}", &line[..10]);
    }
    out.into_bytes()
}

/// Its writer let columns run into the codes of the tables.
#[test]
fn a_trace_damaged_by_its_writer_ends_with_a_sentence() {
    let (text, sentence) = dumped(&sample("pr23-wide-530v023-begin.ctf"));
    assert_eq!(String::from_utf8_lossy(&text), "");
    let sentence = sentence.unwrap();
    assert!(sentence.starts_with("at byte 623 a location names what was never"), "{sentence}");
    assert!(sentence.contains("memtrace up to 0.2.3"), "{sentence}");
}
