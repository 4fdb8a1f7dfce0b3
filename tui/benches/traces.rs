//! What opening a trace costs: `cargo bench -p heaptop --bench traces [-- FILE.ctf…]`.
//!
//! From the file's first byte to the first table: read, told, heard by a session, and
//! asked for all callsites. For the files given, and for traces made here, of which each
//! is twice as long as the one before: time must double with it. Every figure is the
//! median of several runs. Nothing is asserted: machines differ.

use heaptop::ctf::{Birth, Info, Location, Source, Writer, tell};
use heaptop::query::{self, Question};
use heaptop::session::{Input, Session};
use heaptop::source::SourceEvent;
use std::io::Cursor;
use std::time::{Duration, Instant};

const RUNS: usize = 7;
/// Frames of a callstack of the traces made here, and callstacks in all.
const DEPTH: u64 = 20;
const STACKS: u64 = 2000;

fn main() {
    println!(
        "{:>10} {:>12} {:>10} {:>10} {:>10}  trace",
        "bytes", "events", "ms", "ns/event", "rows"
    );
    for name in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        match std::fs::read(&name) {
            Ok(bytes) => report(&name, &bytes),
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    for births in [50_000, 100_000, 200_000, 400_000] {
        report("made here", &made(births));
    }
}

fn report(name: &str, bytes: &[u8]) {
    let len = bytes.len();
    let mut times: Vec<(Duration, u64, usize)> = (0..RUNS).map(|_| open(bytes.to_vec())).collect();
    times.sort();
    let (time, events, rows) = times[RUNS / 2];
    let (ms, ns) = (time.as_secs_f64() * 1e3, time.as_nanos() as f64 / events.max(1) as f64);
    println!("{len:>10} {events:>12} {ms:>10.1} {ns:>10.0} {rows:>10}  {name}");
}

/// How long it takes, of how many events, to how many rows.
fn open(bytes: Vec<u8>) -> (Duration, u64, usize) {
    let start = Instant::now();
    let len = bytes.len() as u64;
    let teller = match tell(Cursor::new(bytes), len) {
        Ok(teller) => teller,
        Err(error) => {
            eprintln!("{error}");
            return (start.elapsed(), 0, 0);
        }
    };
    let mut session = Session::new();
    let mut events = 0;
    for event in teller {
        match event {
            SourceEvent::Message(message) => {
                if let heaptop_protocol::message::FromAgent::Events(batch) = &message {
                    events += batch.len() as u64;
                }
                session.apply(Input::Agent(message));
            }
            SourceEvent::Names(names) => session.apply(Input::Names(names)),
            _ => {}
        }
    }
    let table = query::callsites(&session, &Question::default());
    (start.elapsed(), events, table.len)
}

/// A trace of so many births, of which a third are promoted and all but the last die.
fn made(births: i64) -> Vec<u8> {
    let info = Info {
        start_us: 1_700_000_000_000_000,
        sample_rate: 1e-4,
        word_size: 64,
        executable: b"made".to_vec(),
        host: Vec::new(),
        parameters: Vec::new(),
        pid: 1,
        context: Vec::new(),
        version: 2,
    };
    let places: Vec<[Location; 1]> = (0..STACKS * DEPTH)
        .map(|code| {
            let file = format!("file{}.ml", code % 40).into_bytes().into();
            let function = format!("File{}.f{}", code % 40, code % 997).into_bytes().into();
            [Location { file, function, line: code as u32 % 5000, start: 1, end: 20 }]
        })
        .collect();
    let mut writer = Writer::new(Vec::new(), &info).expect("a vector is not full");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for n in 0..births {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let stack = random % STACKS;
        // The outer half is shared by all.
        let codes: Vec<u64> = (0..DEPTH)
            .map(|frame| if frame < DEPTH / 2 { frame } else { stack * DEPTH + frame })
            .collect();
        let time_us = info.start_us + n * 500;
        let (length, source) = (1 + random % 40, Source::Minor);
        let birth = Birth { time_us, length, n_samples: 1, source, common: None, stack: &codes };
        writer.alloc(&birth, |code| &places[code as usize]).expect("a vector is not full");
        let earlier = n - 1000;
        if n % 3 == 0 {
            writer.promote(time_us, n).expect("a vector is not full");
        }
        if n >= 1000 {
            writer.collect(time_us, earlier).expect("a vector is not full");
        }
    }
    writer.finish().expect("a vector is not full")
}
