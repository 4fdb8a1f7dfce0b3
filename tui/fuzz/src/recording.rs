//! A recording of anything, checksums right, so that what is behind them is reached: frames as
//! they are, skeletons with any coded events, lengths that lie. It is told to a session:
//! nothing panics, it ends with a sentence, and little memory is taken.

#![no_main]

#[path = "../../../protocol/tests/counting/mod.rs"]
#[allow(dead_code, reason = "the bound there is of messages")]
mod counting;
#[allow(dead_code, reason = "each target uses a part of what all share")]
#[path = "../../../protocol/tests/samples/mod.rs"]
mod samples;
#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop::session::{Connection, Input, Session};
use heaptop::source::{SourceEvent, State, fuzzing};
use heaptop_protocol::frame::{self, HEADER};
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::{
    CODED, CODED_ANEW, Learnt, MAX_FRAMES, PLAIN, RAW, ZSTD, write_chunk, write_header,
};
use libfuzzer_sys::fuzz_target;

/// Far above what an input of a few KiB can ask for, with what a coder learns.
const MEMORY: usize = 64 << 20;

/// `[shape and codec, what the lengths are wrong by, bytes of skeleton or frames, bytes of
/// code]`, and these; each frame is `[kind, length]` and its payload.
fn file(mut said: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    write_header(&mut file);
    while let Some((&[how, wrong, frames, code], rest)) = said.split_first_chunk() {
        let (frames, rest) = rest.split_at(rest.len().min(usize::from(frames) * 4));
        let (code, rest) = rest.split_at(rest.len().min(usize::from(code) * 4));
        said = rest;
        let shape = [PLAIN, CODED, CODED_ANEW, CODED][usize::from(how & 3)];
        let codec = if how & 0x30 == 0x30 { ZSTD } else { RAW };
        let (content, length) = if shape == PLAIN {
            let content = parts(frames, |out, kind, payload| {
                assert!(frame::write(out, kind, |out| out.extend_from_slice(payload)));
            });
            let length = content.len();
            (content, length)
        } else {
            let skeleton = parts(frames, |out, kind, payload| {
                out.extend(kind.to_le_bytes());
                let coded = kind == 5 && payload.is_empty();
                let length = if coded { u32::MAX } else { payload.len() as u32 };
                out.extend(length.to_le_bytes());
                out.extend_from_slice(payload);
            });
            // What it really gives, so that a promise can be kept.
            let mut out = Vec::new();
            let _ = Learnt::default().decode(&skeleton, code, 1 << 20, &mut out);
            let lengths = [skeleton.len() as u32, skeleton.len() as u32 + u32::from(how >> 6)];
            let lengths: Vec<u8> = lengths.iter().flat_map(|l| l.to_le_bytes()).collect();
            ([&lengths[..], &skeleton, code].concat(), out.len())
        };
        let length = (length + (usize::from(wrong) << (wrong & 15))).min(MAX_FRAMES);
        assert!(write_chunk(&mut file, codec, shape, length, &content));
    }
    file
}

fn parts(mut said: &[u8], write: impl Fn(&mut Vec<u8>, u16, &[u8])) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((&[kind, length], rest)) = said.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        // Those of agents, those of recordings, and others.
        let kind = if kind < 128 { u16::from(kind) } else { 2000 - 128 + u16::from(kind) };
        write(&mut out, kind, payload);
        said = rest;
    }
    out
}

fuzz_target!(
    init: seeds::write(|| {
        let frame = |bytes: Vec<u8>, kind: u16| {
            let kind = if kind < 128 { kind as u8 } else { (kind - 2000 + 128) as u8 };
            let payload = &bytes[HEADER..HEADER + (bytes.len() - HEADER).min(255)];
            [&[kind, payload.len() as u8], payload].concat()
        };
        let hello = |m: &FromAgent| m.kind() == 1;
        let mut all: Vec<Vec<u8>> = Vec::new();
        for message in samples::from_agent() {
            let mut bytes = Vec::new();
            assert!(message.write(&mut bytes));
            let first = hello(&message);
            let frame = frame(bytes, message.kind());
            if first { all.insert(0, frame) } else { all.push(frame) }
        }
        for said in samples::in_recording() {
            let mut bytes = Vec::new();
            assert!(said.write(&mut bytes));
            all.push(frame(bytes, said.kind()));
        }
        let greeting = all[0].clone();
        all.into_iter()
            .enumerate()
            .map(|(i, frame)| {
                let mut frames = [greeting.clone(), frame, vec![5, 0]].concat();
                frames.resize(frames.len().next_multiple_of(4), 0);
                let how = [0, 2][i % 2];
                let head = [how, 0, (frames.len() / 4) as u8, 8];
                [&head[..], &frames, &[i as u8; 32]].concat()
            })
            .collect()
    }),
    |said: &[u8]| {
        let file = file(said);
        let mut end = None;
        let peak = counting::peak_of(|| {
            let mut session = Session::new();
            let tell = fuzzing::recording(file);
            let events = match tell {
                Ok(events) => events,
                Err(why) => {
                    assert!(why.contains(' '), "{why}");
                    end = Some(why);
                    return;
                }
            };
            for event in events {
                assert_eq!(end, None, "nothing comes behind the end");
                session.apply(match event {
                    SourceEvent::Message(message) => Input::Agent(message),
                    SourceEvent::UnknownMessage { .. } => Input::UnknownMessage,
                    SourceEvent::Names(names) => Input::Names(names),
                    SourceEvent::Damage(damage) => Input::Damage(damage),
                    SourceEvent::Connection(State::Ended(how)) => {
                        end = Some(how);
                        continue;
                    }
                    SourceEvent::Connection(_) => Input::Connection(Connection::Connecting),
                });
            }
        });
        assert!(end.is_some(), "it ends");
        assert!(peak < MEMORY, "{peak} bytes of memory");
    }
);
