//! Traces of what is no trace: of whatever can be told, of a recording above all.

use crate::{decoder, sample};
use heaptop::ctf::{self, ExportError, Exported, from_told};
use heaptop::session::names::{Named, Symbol};
use heaptop::source::tell::{Progress, Tell};
use heaptop::source::{SourceEvent, State};
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment, Promote};
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, Hello, LiveBlock, MAGIC, SnapshotBegin, SnapshotBlocks, SnapshotEnd,
};
use std::io::Cursor;

/// What is told from a list.
struct List(std::vec::IntoIter<SourceEvent>);

impl Iterator for List {
    type Item = SourceEvent;

    fn next(&mut self) -> Option<SourceEvent> {
        self.0.next()
    }
}

impl Tell for List {
    fn progress(&self) -> Progress {
        Progress { read: 0, of: 0 }
    }
}

const SECOND: u64 = 1_000_000_000;

fn hello() -> SourceEvent {
    say(Hello {
        magic: MAGIC,
        version: heaptop_protocol::VERSION,
        agent_version: "0.1.0".into(),
        kind: AgentKind::Linked,
        name: "orders-api".into(),
        pid: 4711,
        uptime_ns: 0,
        started_unix_ns: 1_700_000_000 * SECOND,
        nursery_bytes: 2 << 20,
        phase_bytes: 0,
        max_young_bytes: 2 << 10,
        track: heaptop_protocol::message::Track::All,
        depth: 128,
        memory_bound_bytes: 64 << 20,
        notices: Vec::new(),
    })
}

fn say(message: impl Into<FromAgent>) -> SourceEvent {
    SourceEvent::Message(message.into())
}

fn at(seq: u64, seconds: u64) -> Moment {
    Moment { seq, time_ns: seconds * SECOND, clock: seq * 1000 }
}

fn alloc(seq: u64, seconds: u64, size: u64, r: u64) -> Alloc {
    Alloc {
        at: at(seq, seconds),
        thread: ThreadId(1),
        stack: StackId(1),
        size,
        n_samples: if r == 1 { size } else { 1 },
        interval: Interval::new(r).unwrap(),
        cause: Cause::Malloc,
        address: 0x7000,
        young: size <= 2048,
        replaces: None,
    }
}

fn dealloc(seq: u64, seconds: u64, id: u64) -> Event {
    let young = false;
    Event::Dealloc(Dealloc { at: at(seq, seconds), id: BlockId(id), thread: ThreadId(2), young })
}

fn frame(offset: u64) -> Frame {
    Frame { module: ModuleId(1), offset }
}

/// A module and a callstack whose names come late: `main`, which calls `fill`, which
/// calls the allocator.
fn definitions() -> Vec<SourceEvent> {
    let frames = vec![frame(16), frame(32), frame(48)];
    vec![
        hello(),
        say(Module {
            id: ModuleId(1),
            path: "/opt/orders".into(),
            build_id: Vec::new(),
            load_bias: 0,
            range: (0, 1 << 20),
        }),
        say(Callstack { id: StackId(1), frames, end: End::Complete }),
    ]
}

fn names() -> SourceEvent {
    let named = |offset, function: &str| Named {
        frame: frame(offset),
        symbols: vec![Symbol {
            function: function.into(),
            file: Some("/opt/orders/src/cache.rs".into()),
            line: Some(offset as u32),
        }],
    };
    SourceEvent::Names(vec![named(16, "main"), named(32, "fill"), named(48, "__rust_alloc")])
}

fn ended() -> SourceEvent {
    SourceEvent::Connection(State::Ended("the recording is over".into()))
}

/// Exports what `tell` makes, twice the same.
fn export(tell: impl Fn() -> Vec<SourceEvent>) -> (decoder::Decoded, Exported) {
    let mut out = Vec::new();
    let open = || Ok(Box::new(List(tell().into_iter())) as Box<dyn Tell>);
    let done = from_told(open, &mut out).unwrap();
    (decoder::decode(&out).unwrap(), done)
}

#[test]
fn a_recording_becomes_a_trace() {
    let (trace, done) = export(|| {
        let mut told = definitions();
        told.push(say(SnapshotBegin { at: at(10, 10) }));
        let old = |seq, seconds, young| LiveBlock {
            young,
            ..LiveBlock::from(&alloc(seq, seconds, 1000, 1))
        };
        let blocks = vec![old(5, 6, true), old(3, 4, false)];
        told.push(say(SnapshotBlocks { blocks }));
        told.push(say(SnapshotEnd { at: at(11, 10), blocks: 2 }));
        let events = [
            // A thread's events come late by a little.
            Event::Alloc(alloc(13, 13, 4096, 1)),
            Event::Alloc(alloc(12, 12, 24, 1)),
            Event::Promote(Promote { at: at(14, 14), id: BlockId(5) }),
            dealloc(15, 15, 3),
            Event::Alloc(Alloc {
                cause: Cause::Realloc,
                replaces: Some(BlockId(13)),
                ..alloc(16, 16, 8192, 1)
            }),
            dealloc(16, 16, 13),
            // Its death is told by the birth alone.
            Event::Alloc(Alloc { replaces: Some(BlockId(16)), ..alloc(17, 17, 8192, 1) }),
        ];
        told.extend([say(Batch::pack(&events)), names(), ended()]);
        told
    });
    assert_eq!(
        (&*trace.executable, trace.pid, &*trace.parameters),
        ("orders-api", 4711, "s=262144")
    );
    assert_eq!((trace.start, trace.rate), (1_700_000_000_000_000, 1.0));
    let births: Vec<_> =
        trace.births.iter().map(|b| (b.time / 1_000_000, b.length, b.source)).collect();
    // Of what lived already each is born at its own time; then in the order of time.
    assert_eq!(
        births,
        [(4, 125, 0), (6, 125, 0), (12, 3, 0), (13, 512, 1), (16, 1024, 1), (17, 1024, 1)]
    );
    assert!(trace.births.iter().all(|b| b.samples == b.length), "at R = 1 all words are");
    let functions: Vec<&[String]> = trace.births.iter().map(|b| &b.functions[..]).collect();
    assert!(functions.iter().all(|f| *f == ["main", "fill"]), "{functions:?}");
    let ends: Vec<_> = trace.ends.iter().map(|(t, id, p)| (t / 1_000_000, *id, *p)).collect();
    assert_eq!(ends, [(4, 0, true), (14, 1, true), (15, 0, false), (16, 3, false), (17, 4, false)]);
    assert!(String::from_utf8_lossy(&trace.text).contains("fill@orders/src/cache.rs:32:0-0"));
    assert_eq!(done.ended, "the recording is over");
    for lost in ["addresses", "threads, and who frees", "a realloc is a death and a birth"] {
        assert!(done.lost.iter().any(|l| l.contains(lost)), "{lost}: {:?}", done.lost);
    }
    for kept in ["sizes", "interval", "marks", "lost while"] {
        assert!(!done.lost.iter().any(|l| l.contains(kept)), "{kept}: {:?}", done.lost);
    }
}

/// Half of the blocks at R = 1 KiB, half at 64 KiB: all of them at 64 KiB, and what they
/// stand for together is what it was.
#[test]
fn intervals_become_the_coarsest() {
    let (fine, coarse, size, n) = (1 << 10, 1 << 16, 100u64, 60_000u64);
    let (trace, done) = export(|| {
        let mut told = definitions();
        let block = |seq: u64| {
            alloc(seq, seq / 1000, size, if seq.is_multiple_of(2) { fine } else { coarse })
        };
        let events: Vec<Event> = (1..=n).map(|seq| Event::Alloc(block(seq))).collect();
        told.extend(events.chunks(Batch::MOST).map(|some| say(Batch::pack(some))));
        told.extend([names(), ended()]);
        told
    });
    let kept = trace.births.iter().filter(|b| b.length == 13).count();
    assert_eq!(kept, trace.births.len());
    // Of those at R = 1 KiB 1 in 64 stays.
    let mean = n as f64 / 2.0 * (1.0 + 1.0 / 64.0);
    assert!((kept as f64 - mean).abs() < 4.0 * (n as f64 / 128.0).sqrt(), "{kept} is not {mean}");
    let rate = 1.0 - (1.0 - 1.0 / coarse as f64).powi(8);
    assert!((trace.rate / rate - 1.0).abs() < 1e-9);
    let told = |what: &str| done.lost.iter().any(|lost| lost.contains(what));
    assert!(told("all is thinned to 1 in 64 KiB") && told("left without a sample"), "{done:?}");
    assert!(told("rounded up to 8 bytes"), "{done:?}");
}

/// A later snapshot repairs what was lost on the way.
#[test]
fn a_snapshot_repairs() {
    let (trace, _) = export(|| {
        let mut told = definitions();
        let events = [Event::Alloc(alloc(1, 1, 64, 1)), Event::Alloc(alloc(2, 2, 64, 1))];
        told.extend([
            say(SnapshotBegin { at: at(0, 0) }),
            say(SnapshotEnd { at: at(0, 0), blocks: 0 }),
            say(Batch::pack(&events)),
            say(SnapshotBegin { at: at(9, 9) }),
            // 1 is not listed; nobody has heard of 5.
            say(SnapshotBlocks {
                blocks: [alloc(2, 2, 64, 1), alloc(5, 5, 80, 1)]
                    .iter()
                    .map(LiveBlock::from)
                    .collect(),
            }),
            say(SnapshotEnd { at: at(10, 9), blocks: 2 }),
            ended(),
        ]);
        told
    });
    assert_eq!(trace.births.iter().map(|b| b.length).collect::<Vec<_>>(), [8, 8, 10]);
    assert_eq!(trace.ends, [(9_000_000, 0, false)]);
    assert!(trace.births[0].functions == ["orders+0x10", "orders+0x20", "orders+0x30"]);
}

/// What is told of a trace is a recording like others.
#[test]
fn a_trace_that_was_told_is_the_same_trace() {
    for name in ["garbage-413-1e4", "ext-530head-1e3"] {
        let bytes = sample(&format!("{name}.ctf"));
        let mut out = Vec::new();
        let open = || {
            let teller = ctf::tell(Cursor::new(bytes.clone()), bytes.len() as u64);
            teller.map(|teller| Box::new(teller) as Box<dyn Tell>).map_err(|e| e.to_string())
        };
        let done = from_told(open, &mut out).unwrap();
        let (again, truth) =
            (decoder::decode(&out).unwrap(), decoder::decode(&crate::converted(&bytes)).unwrap());
        let lives = |d: &decoder::Decoded| -> Vec<(u64, bool)> {
            d.births.iter().map(|b| (b.time, b.source == 0)).collect()
        };
        assert_eq!(lives(&again), lives(&truth), "{name}");
        assert_eq!(again.ends, truth.ends, "{name}");
        assert!((again.rate / truth.rate - 1.0).abs() < 1e-3, "{name}");
        for (a, b) in again.births.iter().zip(&truth.births) {
            // That an external object has no header is not told.
            assert!(a.length + u64::from(b.source == 2) == b.length, "{name}: {a:?}, {b:?}");
        }
        assert!(!done.lost.iter().any(|l| l.contains("addresses")), "{:?}", done.lost);
    }
}

#[test]
fn nothing_told_is_no_trace() {
    let empty = || Ok(Box::new(List(vec![ended()].into_iter())) as Box<dyn Tell>);
    let Err(ExportError::Source(why)) = from_told(empty, Vec::new()) else { panic!("nothing") };
    assert!(why.contains("there is nothing in it"), "{why}");
    let gone = || Err("the file is gone".to_owned());
    assert!(
        matches!(from_told(gone, Vec::new()), Err(ExportError::Source(why)) if why == "the file is gone")
    );
}
