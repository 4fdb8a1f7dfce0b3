//! memtrace's traces: what heaptop reads of them, and what it writes.
//!
//! - `decoder`: a second decoder, which shares nothing with heaptop's own
//! - `craft`: traces made by hand
//! - `samples`: real ones, beside what memtrace's own tool prints for them
//! - `features`, `damage`: what no sample has
//! - `session`: what a session hears of them
//! - `native`: traces of what is no trace
//! - `hostile`: cut and flipped, by the hundred, with the memory counted
//! - `program`: the program's own output and exit codes

#[path = "../../../protocol/tests/counting/mod.rs"]
#[expect(dead_code, reason = "its bound is of messages")]
mod counting;
mod craft;
mod damage;
mod decoder;
mod features;
mod hostile;
mod native;
mod program;
mod samples;
mod session;

use heaptop::ctf::{DumpError, Reader, convert, dump};
use std::path::{Path, PathBuf};

/// Where the samples lie.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/ctf")
}

fn sample(name: &str) -> Vec<u8> {
    let path = samples().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What `heaptop dump` prints for a trace, and the sentence at its end if it is not whole.
fn dumped(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
    let mut out = Vec::new();
    let done = Reader::new(bytes)
        .map_err(DumpError::from)
        .and_then(|mut reader| dump(&mut reader, &mut out));
    match done {
        Ok(()) => (out, None),
        Err(DumpError::Trace(error)) => (out, Some(error.to_string())),
        Err(DumpError::Write(error)) => panic!("a vector is not full: {error}"),
    }
}

/// As [`dumped`], in lines.
fn lines(bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let (text, sentence) = dumped(bytes);
    let text = String::from_utf8(text).unwrap();
    (text.lines().map(str::to_owned).collect(), sentence)
}

/// The trace that `heaptop export --format ctf` makes of one.
fn converted(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader = Reader::new(bytes).unwrap();
    let done = convert(&mut reader, &mut out).unwrap();
    assert!(done.error.is_none(), "{:?}", done.error);
    out
}
