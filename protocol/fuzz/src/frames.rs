//! A stream as it comes from a socket, cut anywhere: both sides' way from bytes to
//! messages.
//!
//! The checksum would keep a fuzzer out. So a stream is written from what the input
//! says (kinds, payloads), then damaged where it says so.

#![no_main]

#[path = "../../tests/counting/mod.rs"]
mod counting;
#[allow(dead_code, reason = "each target uses a part of what all share")]
#[path = "../../tests/samples/mod.rs"]
mod samples;
mod seeds;

use heaptop_protocol::frame::{self, FrameError, HEADER, MAX_PAYLOAD, Reader};
use heaptop_protocol::message::{FromAgent, FromViewer, check_greeting};
use libfuzzer_sys::fuzz_target;

/// `[cut, position and value of the damage]`, then `[length, kind, payload]…`
const HEAD: usize = 4;
const KINDS: [u16; 22] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1000, 1001, 1002, 1003, 1004, 1005];

fn stream(mut said: &[u8], damage: [u8; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&[length, kind], rest)) = said.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(u16::from(kind) << 4);
        assert!(frame::write(&mut bytes, kind, |out| out.extend_from_slice(payload)));
        said = rest;
    }
    let [low, high, value] = damage;
    if value != 0
        && let Some(byte) = bytes.get_mut(usize::from(u16::from_le_bytes([low, high])))
    {
        *byte ^= value;
    }
    bytes
}

fuzz_target!(
    init: seeds::write(|| {
        let said = |frame: Vec<u8>, kind: u16| {
            let kind = KINDS.iter().position(|&k| k == kind).unwrap_or(0) as u8;
            let payload = &frame[HEADER..];
            let mut said = vec![7, 0, 0, 0, payload.len().min(255) as u8, kind];
            said.extend(payload.iter().take(255));
            said
        };
        let agent = samples::from_agent().into_iter().map(|message| {
            let mut frame = Vec::new();
            assert!(message.write(&mut frame));
            said(frame, message.kind())
        });
        let viewer = samples::from_viewer().into_iter().map(|message| {
            let mut frame = Vec::new();
            assert!(message.write(&mut frame));
            said(frame, message.kind())
        });
        agent.chain(viewer).collect()
    }),
    |data: &[u8]| {
        let Some((&[cut, low, high, value], said)) = data.split_first_chunk::<HEAD>() else {
            return;
        };
        let bytes = stream(said, [low, high, value]);
        let peak = counting::peak_of(|| {
            let mut reader = Reader::default();
            let (mut given, mut broken) = (0, None);
            for part in bytes.chunks(usize::from(cut) + 1) {
                reader.feed(part);
                loop {
                    match reader.next() {
                        Ok(None) => break,
                        Ok(Some(frame)) => {
                            assert!(broken.is_none(), "a stream that is lost gives nothing");
                            assert!(frame.payload.len() <= MAX_PAYLOAD);
                            given += HEADER + frame.payload.len();
                            if let Ok(Some(FromAgent::Hello(hello))) = FromAgent::read(&frame) {
                                let _ = check_greeting(hello.magic, hello.version);
                            }
                            if let Ok(Some(FromViewer::Hello(hello))) = FromViewer::read(&frame) {
                                let _ = check_greeting(hello.magic, hello.version);
                            }
                        }
                        Err(error) => {
                            let (FrameError::TooLong { offset, .. }
                            | FrameError::Checksum { offset }) = error;
                            assert_eq!(offset, given as u64, "the place of the damage is told");
                            assert!(broken.is_none_or(|before| before == error));
                            broken = Some(error);
                            break;
                        }
                    }
                }
            }
            assert!(broken.is_some() || given + reader.pending() == bytes.len());
        });
        assert!(peak <= counting::BOUND, "{peak} bytes for {}", bytes.len());
    }
);
