//! The wire format, held by golden bytes: one frame of each message kind, in
//! `golden/KIND.hex`, and a recording in `golden/recording.hex`. A difference means that released peers no longer
//! understand each other. Before the first release the files may be written
//! anew: `HEAPTOP_BLESS=1 cargo test -p heaptop-protocol --test golden`.

mod samples;

use heaptop_protocol::frame::{Frame, Reader};
use heaptop_protocol::message::{
    FromAgent, FromViewer, HandshakeError, MAGIC, MessageError, check_greeting,
};
use heaptop_protocol::recording::{
    self, CODED, CODED_ANEW, InRecording, Learnt, PLAIN, RAW, write_chunk, write_header,
};
use heaptop_protocol::{VERSION, Version};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn frame_of(write: impl FnOnce(&mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(write(&mut out), "the sample fits a frame");
    out
}

/// Frames with their kinds: all kinds of both directions, and those of recordings.
fn frames() -> Vec<(u16, Vec<u8>)> {
    let agent = samples::from_agent().into_iter().map(|m| (m.kind(), frame_of(|o| m.write(o))));
    let viewer = samples::from_viewer().into_iter().map(|m| (m.kind(), frame_of(|o| m.write(o))));
    let recording =
        samples::in_recording().into_iter().map(|m| (m.kind(), frame_of(|o| m.write(o))));
    agent.chain(viewer).chain(recording).collect()
}

fn path_of(kind: u16) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{kind:04}.hex"))
}

/// Sixteen bytes a line, so that a difference shows where it is.
fn to_hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for line in bytes.chunks(16) {
        for (i, byte) in line.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(out, "{gap}{byte:02x}").expect("strings take everything");
        }
        out.push('\n');
    }
    out
}

fn from_hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("a golden file holds bytes in hex"))
        .collect()
}

fn read_agent(bytes: &[u8]) -> Result<Option<FromAgent>, MessageError> {
    let mut reader = Reader::default();
    reader.feed(bytes);
    FromAgent::read(&reader.next().expect("sound").expect("whole"))
}

fn recording_path() -> PathBuf {
    path_of(0).with_file_name("recording.hex")
}

/// A recording with a chunk of each shape: frames as they are, and events in code, in two
/// chunks, of which the second knows what the first has learnt.
fn recording() -> (Vec<u8>, Vec<u8>) {
    let frames: Vec<u8> = frames().into_iter().filter(|f| f.0 < 1000).flat_map(|f| f.1).collect();
    let mut file = Vec::new();
    write_header(&mut file);
    assert!(write_chunk(&mut file, RAW, PLAIN, frames.len(), &frames));
    let mut learnt = Learnt::default();
    for shape in [CODED_ANEW, CODED] {
        let (skeleton, coded) = learnt.encode(&frames);
        let length = (skeleton.len() as u32).to_le_bytes();
        let stored = [&length[..], &length, &skeleton, &coded].concat();
        assert!(write_chunk(&mut file, RAW, shape, frames.len(), &stored));
    }
    (file, frames)
}

#[test]
fn a_recording_has_its_golden_bytes_and_is_read_from_them() {
    let (file, frames) = recording();
    let hex = to_hex(&file);
    if std::env::var_os("HEAPTOP_BLESS").is_some() {
        std::fs::write(recording_path(), hex).expect("the golden directory can be written");
        return;
    }
    let golden = std::fs::read_to_string(recording_path()).expect("see this file's head");
    assert_eq!(hex, golden, "recordings changed their bytes");
    let mut reader = recording::Reader::default();
    reader.feed(&from_hex(&golden));
    let mut learnt = Learnt::default();
    for shape in [PLAIN, CODED_ANEW, CODED] {
        let chunk = reader.next().expect("sound").expect("whole");
        assert_eq!((chunk.codec, chunk.shape, chunk.frames), (RAW, shape, frames.len()));
        let mut out = Vec::new();
        if shape == PLAIN {
            out.extend_from_slice(chunk.stored);
        } else {
            let length = u32::from_le_bytes(*chunk.stored.first_chunk().unwrap()) as usize;
            let (skeleton, coded) = chunk.stored[8..].split_at(length);
            learnt.decode(skeleton, coded, frames.len(), &mut out).unwrap();
        }
        assert!(out == frames, "shape {shape}");
    }
    assert_eq!(reader.next(), Ok(None));
    assert_eq!(reader.pending(), 0);
}

fn read_viewer(bytes: &[u8]) -> Result<Option<FromViewer>, MessageError> {
    let mut reader = Reader::default();
    reader.feed(bytes);
    FromViewer::read(&reader.next().expect("sound").expect("whole"))
}

#[test]
fn every_kind_has_a_sample() {
    let mut kinds: Vec<u16> = frames().iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    // Every kind that can be read is one of those.
    let known = (0..=u16::MAX).filter(|&kind| {
        let frame = Frame { kind, payload: &[] };
        !matches!(FromAgent::read(&frame), Ok(None))
            || !matches!(FromViewer::read(&frame), Ok(None))
            || !matches!(InRecording::read(&frame), Ok(None))
    });
    assert_eq!(kinds, known.collect::<Vec<_>>());
}

#[test]
fn bytes_are_the_golden_ones() {
    let bless = std::env::var_os("HEAPTOP_BLESS").is_some();
    for (kind, bytes) in frames() {
        let (path, hex) = (path_of(kind), to_hex(&bytes));
        if bless {
            std::fs::write(&path, hex).expect("the golden directory can be written");
            continue;
        }
        let golden = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("{}: {e}; see this file's head", path.display()));
        assert_eq!(hex, golden, "kind {kind} changed its bytes: {}", path.display());
    }
}

#[test]
fn no_golden_file_is_without_its_kind() {
    let kinds: Vec<PathBuf> = frames().iter().map(|(kind, _)| path_of(*kind)).collect();
    let files = std::fs::read_dir(path_of(0).parent().unwrap()).unwrap();
    for file in files {
        let path = file.unwrap().path();
        if path == recording_path() {
            continue;
        }
        assert!(kinds.contains(&path), "{} belongs to no kind", path.display());
    }
}

#[test]
fn golden_bytes_give_back_the_values() {
    for message in samples::from_agent() {
        let bytes = from_hex(&std::fs::read_to_string(path_of(message.kind())).unwrap());
        assert_eq!(read_agent(&bytes), Ok(Some(message)));
    }
    for message in samples::from_viewer() {
        let bytes = from_hex(&std::fs::read_to_string(path_of(message.kind())).unwrap());
        assert_eq!(read_viewer(&bytes), Ok(Some(message)));
    }
    for message in samples::in_recording() {
        let bytes = from_hex(&std::fs::read_to_string(path_of(message.kind())).unwrap());
        let mut reader = Reader::default();
        reader.feed(&bytes);
        let frame = reader.next().expect("sound").expect("whole");
        assert_eq!(InRecording::read(&frame), Ok(Some(message)));
    }
}

#[test]
fn each_side_skips_what_it_does_not_know() {
    for (kind, bytes) in frames() {
        let (from_agent, from_viewer) = (kind < 1000, (1000..2000).contains(&kind));
        assert_eq!(matches!(read_agent(&bytes), Ok(None)), !from_agent, "kind {kind}");
        assert_eq!(matches!(read_viewer(&bytes), Ok(None)), !from_viewer, "kind {kind}");
    }
    let unknown = Frame { kind: 999, payload: b"what a later release says" };
    assert_eq!(FromAgent::read(&unknown), Ok(None));
    assert_eq!(FromViewer::read(&unknown), Ok(None));
}

#[test]
fn a_known_kind_with_bytes_left_over_is_refused() {
    for message in samples::from_agent() {
        let mut bytes = frame_of(|o| message.write(o));
        bytes.push(0);
        let frame = Frame { kind: message.kind(), payload: &bytes[12..] };
        let error = FromAgent::read(&frame).unwrap_err();
        assert!(error.to_string().contains("1 bytes are left over"), "{error}");
    }
}

#[test]
fn peers_of_this_major_version_may_talk() {
    assert_eq!(check_greeting(MAGIC, VERSION), Ok(()));
    let newer = Version { minor: VERSION.minor + 1, ..VERSION };
    assert_eq!(check_greeting(MAGIC, newer), Ok(()));
}

#[test]
fn others_get_a_sentence() {
    assert_eq!(check_greeting(*b"GET / HT", VERSION), Err(HandshakeError::Stranger));
    let text = HandshakeError::Stranger.to_string();
    assert_eq!(text, "the peer is no heaptop: its first message is not a greeting");

    let theirs = Version { major: VERSION.major + 1, minor: 3 };
    let error = check_greeting(MAGIC, theirs).unwrap_err();
    assert_eq!(error, HandshakeError::Version { theirs });
    assert_eq!(
        error.to_string(),
        "the peer speaks protocol 2.3 and this is 1.0: use viewer and agent of the same release"
    );
}
