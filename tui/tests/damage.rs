//! Damaged recordings: cut at 500 places, with one bit of 500 turned over, and with 500
//! stretches overwritten. What a single bit was is set right, and of the others each is told as
//! far as it is sound, before and behind the place, and ends with a sentence, or is refused
//! with one; nothing false is told, what is missing is said, nothing panics, and none takes
//! twice the memory of the sound one.

#[path = "../../protocol/tests/counting/mod.rs"]
#[allow(dead_code, reason = "the bound there is of messages")]
mod counting;

use counting::peak_of;
use heaptop::session::{Connection, Damage, Input, Missing, Session};
use heaptop::source::{SourceEvent, State, file};
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Dealloc, Event, Moment};
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, Hello, LiveBlock, MAGIC, Mark, SnapshotBegin, SnapshotBlocks, SnapshotEnd,
};
use heaptop_protocol::recording::{
    By, Ended, FrameNames, InRecording, Names, PLAIN, RAW, Recorded, SymbolName, write_chunk,
    write_header,
};
use std::path::Path;

const CASES: usize = 500;

/// Numbers without a pattern, the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % most
    }
}

fn at(seq: u64) -> Moment {
    Moment { seq, time_ns: seq * 131_072, clock: seq * 9000 }
}

fn hello() -> Hello {
    Hello {
        magic: MAGIC,
        version: heaptop_protocol::VERSION,
        agent_version: "0.1.0".into(),
        kind: AgentKind::Linked,
        name: "a target".into(),
        pid: 42,
        uptime_ns: 0,
        started_unix_ns: 1_790_000_000_000_000_000,
        nursery_bytes: 2 << 20,
        phase_bytes: 7,
        max_young_bytes: 2048,
        track: heaptop_protocol::message::Track::All,
        depth: 128,
        memory_bound_bytes: 64 << 20,
        notices: vec![],
    }
}

fn births_and_deaths(random: &mut Random, from: u64) -> Batch {
    let mut events = Vec::new();
    for seq in from..from + 50 {
        events.push(if seq % 3 == 2 {
            Event::Dealloc(Dealloc {
                at: at(seq),
                id: BlockId(seq - 1 - random.below(2)),
                thread: ThreadId(1),
                young: true,
            })
        } else {
            Event::Alloc(Alloc {
                at: at(seq),
                thread: ThreadId(1),
                stack: StackId(1 + random.below(20) as u32),
                size: 1 + random.below(4000),
                n_samples: 1,
                interval: Interval::DEFAULT,
                cause: Cause::Malloc,
                address: 0x7000_0000_0000 + random.below(1 << 20) * 16,
                young: true,
                replaces: None,
            })
        });
    }
    Batch::pack(&events)
}

fn live_blocks(random: &mut Random, from: u64) -> SnapshotBlocks {
    let blocks = (from..from + 500).map(|id| LiveBlock {
        id: BlockId(id),
        born_ns: id * 100,
        born_clock: id * 8000,
        thread: ThreadId(0),
        stack: StackId(1 + random.below(20) as u32),
        size: 1 + random.below(1 << 20),
        n_samples: 1,
        interval: Interval::DEFAULT,
        cause: Cause::Malloc,
        address: random.below(1 << 47),
        young: false,
        born_young: true,
    });
    SnapshotBlocks { blocks: blocks.collect() }
}

/// A recording as an agent writes it: many small chunks, nothing compressed.
fn sound() -> Vec<u8> {
    let mut random = Random(4);
    let mut chunks: Vec<Vec<u8>> = vec![Vec::new()];
    let mut say = |message: FromAgent| {
        let mut chunk = Vec::new();
        assert!(message.write(&mut chunk));
        chunks.push(chunk);
    };
    say(hello().into());
    let (id, path) = (ModuleId(1), "/bin/a target".to_owned());
    let build_id = vec![1; 20];
    say(Module { id, path, build_id, load_bias: 0, range: (0, 1 << 20) }.into());
    for stack in 1..=20 {
        let frames = (0..10).map(|i| Frame { module: id, offset: u64::from(stack) * 64 + i });
        let frames = frames.collect();
        say(Callstack { id: StackId(stack), frames, end: End::Complete }.into());
    }
    say(SnapshotBegin { at: at(20_000) }.into());
    for from in 0..16 {
        say(live_blocks(&mut random, from * 500).into());
    }
    say(SnapshotEnd { at: at(20_000), blocks: 8000 }.into());
    for from in 0..8 {
        say(births_and_deaths(&mut random, 20_001 + from * 50).into());
    }
    say(Mark { at: at(30_000), label: "a mark".into() }.into());
    let mut own = |said: InRecording, at: usize| {
        let mut frames = Vec::new();
        assert!(said.write(&mut frames));
        chunks.insert(at, frames);
    };
    let name = SymbolName { function: "a_function".into(), file: None, line: Some(3) };
    let frame = Frame { module: id, offset: 64 };
    own(Names { names: vec![FrameNames { frame, symbols: vec![name] }] }.into(), 30);
    let (by, version) = (By::Agent, "0.1.0".to_owned());
    own(Recorded { by, version, pid: 42, started_unix_ns: 5, part: 0, sealed: true }.into(), 0);
    let mut last = Vec::new();
    let ended = Ended { how: "the target has exited".into(), target_lives: false };
    assert!(InRecording::from(ended).write(&mut last));
    chunks.push(last);
    let mut file = Vec::new();
    write_header(&mut file);
    for chunk in chunks {
        assert!(write_chunk(&mut file, RAW, PLAIN, chunk.len(), &chunk));
    }
    file
}

/// What a file tells, where it is damaged, and how it ends; an error where it is refused.
fn told(path: &Path) -> Result<(Vec<FromAgent>, Vec<Damage>, String), String> {
    let tell = file::open(path).map_err(|error| error.to_string())?;
    let (mut messages, mut damage, mut end) = (Vec::new(), Vec::new(), None);
    for event in tell {
        assert_eq!(end, None, "nothing is told behind the end");
        match event {
            SourceEvent::Message(message) => messages.push(message),
            SourceEvent::Damage(place) => damage.push(place),
            SourceEvent::Connection(State::Ended(how)) => end = Some(how),
            _ => {}
        }
    }
    Ok((messages, damage, end.expect("the end is told")))
}

/// What it costs to open it and to take it in.
fn memory(path: &Path) -> usize {
    peak_of(|| {
        let Ok(tell) = file::open(path) else { return };
        let mut session = Session::new();
        for event in tell {
            session.apply(match event {
                SourceEvent::Message(message) => Input::Agent(message),
                SourceEvent::UnknownMessage { .. } => Input::UnknownMessage,
                SourceEvent::Names(names) => Input::Names(names),
                SourceEvent::Connection(State::Ended(how)) => {
                    Input::Connection(Connection::Ended(how))
                }
                SourceEvent::Damage(damage) => Input::Damage(damage),
                SourceEvent::Connection(_) => continue,
            });
        }
    })
}

fn is_sentence(text: &str) -> bool {
    text.len() > 20 && text.contains(' ') && !text.contains('\n')
}

/// How a file is damaged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Harm {
    Cut(usize),
    Bit(usize),
    Overwritten(usize, usize),
}

impl Harm {
    fn any(random: &mut Random, case: usize, bytes: usize) -> Self {
        let mut below = |most: usize| random.below(most as u64) as usize;
        match case / CASES {
            0 => Self::Cut(below(bytes)),
            1 => Self::Bit(below(bytes * 8)),
            _ => {
                let (at, length) = (below(bytes), 2 + below(2000));
                Self::Overwritten(at, length.min(bytes - at))
            }
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = bytes.to_vec();
        match self {
            Self::Cut(at) => copy.truncate(at),
            Self::Bit(bit) => copy[bit / 8] ^= 1 << (bit % 8),
            // Not what it was, and no single bit.
            Self::Overwritten(at, length) => {
                copy[at..at + length].iter_mut().for_each(|b| *b ^= 0x35);
            }
        }
        copy
    }
}

/// Whether `told` is `sound` with some left out, in its order.
fn is_part(told: &[FromAgent], sound: &[FromAgent]) -> bool {
    let mut rest = sound.iter();
    told.iter().all(|message| rest.any(|other| other == message))
}

/// Holds `bytes`, in many ways damaged, to what is said above; `chunks`: what is behind a
/// damaged place can be read on its own.
fn damage(bytes: &[u8], chunks: bool) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.heaptop");
    std::fs::write(&path, bytes).unwrap();
    let (sound, none, end) = told(&path).unwrap();
    assert_eq!((end.as_str(), none.len(), sound.len()), ("the target has exited", 0, 49));
    let most = 2 * memory(&path);
    let mut random = Random(7);
    let (mut refused, mut behind) = (0, 0);
    for case in 0..3 * CASES {
        let what = Harm::any(&mut random, case, bytes.len());
        std::fs::write(&path, what.of(bytes)).unwrap();
        match (told(&path), what) {
            (Ok((messages, places, end)), Harm::Bit(bit)) => {
                assert!(messages == sound, "{what:?}: nothing is lost");
                assert_eq!(places.len(), 1, "{what:?}");
                assert_eq!(places[0].missing, Missing::Nothing, "{what:?}");
                let at = format!("damaged at byte {}: one bit", bit / 8);
                assert!(places[0].how.contains(&at), "{what:?}: {}", places[0].how);
                assert!(end.contains("damaged in 1 place"), "{what:?}: {end}");
            }
            (Err(why), Harm::Bit(_)) => panic!("{what:?}: {why}"),
            (Ok((messages, places, end)), Harm::Cut(_)) => {
                assert!(sound.starts_with(&messages), "{what:?}: something false is told");
                assert!(is_sentence(&end) && end.contains("breaks off"), "{what:?}: {end}");
                let torn = places.iter().all(|place| place.missing == Missing::End);
                assert!(torn && places.len() <= 1, "{what:?}: {places:?}");
                assert_eq!(places.len(), usize::from(end.contains("within a chunk")), "{what:?}");
            }
            (Ok((messages, places, end)), Harm::Overwritten(..)) => {
                assert!(is_part(&messages, &sound), "{what:?}: something false is told");
                assert!(is_sentence(&end) && end.contains("damaged in"), "{what:?}: {end}");
                assert!(places.iter().all(|place| is_sentence(&place.how)), "{places:?}");
                assert!(!places.is_empty(), "{what:?}: nobody noticed");
                behind += usize::from(messages.last() == sound.last() && messages.len() < 49);
            }
            (Err(why), _) => {
                assert!(is_sentence(&why), "{what:?}: {why}");
                refused += 1;
            }
        }
        // A session of it costs more than all the rest.
        if case % 8 > 0 {
            continue;
        }
        let taken = memory(&path);
        assert!(taken <= most, "{what:?}: {taken} bytes of memory, and {most} are allowed");
    }
    // Most of it lies in the first chunk, which has the greeting.
    assert!(refused < 2 * CASES, "something is told of some");
    assert_eq!(behind > CASES / 2, chunks, "{behind} times what is behind it was told");
}

#[test]
fn what_an_agent_recorded_is_told_as_far_as_it_is_sound() {
    damage(&sound(), true);
}

#[test]
fn what_is_sealed_is_told_as_far_as_it_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let [raw, sealed] = ["raw", "sealed"].map(|name| directory.path().join(name));
    std::fs::write(&raw, sound()).unwrap();
    heaptop::record::seal(&raw, Some(&sealed), |_| ()).unwrap();
    let [raw_told, sealed_told] = [&raw, &sealed].map(|path| told(path).unwrap());
    assert!(raw_told == sealed_told, "sealing changes nothing that is told");
    // All of it is one chunk.
    damage(&std::fs::read(&sealed).unwrap(), false);
}

#[test]
fn who_seals_a_damaged_file_keeps_what_is_sound_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let [raw, sealed] = ["raw", "sealed"].map(|name| directory.path().join(name));
    let mut bytes = sound();
    let at = bytes.len() / 2;
    bytes[at..at + 40].fill(0x35);
    std::fs::write(&raw, &bytes).unwrap();
    let (messages, places, _) = told(&raw).unwrap();
    assert!(messages.len() > 30 && places.len() == 1, "{places:?}");
    let refused = heaptop::record::seal(&raw, None, |_| ()).unwrap_err();
    assert!(refused.to_string().contains("is left as it is"), "{refused}");
    assert!(std::fs::read(&raw).unwrap() == bytes);
    let done = heaptop::record::seal(&raw, Some(&sealed), |_| ()).unwrap();
    assert!(done.lost && done.trouble == Some(places[0].how.clone()), "{done:?}");
    let (copied, kept, _) = told(&sealed).unwrap();
    assert!(copied == messages && kept == places, "{kept:?}");
    // A bit that was set right is right in the copy, and in its place.
    let mut bytes = sound();
    bytes[at] ^= 4;
    std::fs::write(&raw, &bytes).unwrap();
    let done = heaptop::record::seal(&raw, None, |_| ()).unwrap();
    assert!(!done.lost && done.trouble.is_some(), "{done:?}");
    let (whole, none, end) = told(&raw).unwrap();
    assert_eq!((whole.len(), none.len(), end.as_str()), (49, 0, "the target has exited"));
}
