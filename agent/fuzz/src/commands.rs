//! A viewer that sends anything, in any pieces: what the agent's own thread makes of it,
//! through a socket as ever.

#![no_main]

#[allow(dead_code, reason = "each target uses a part of what all share")]
#[path = "../../../protocol/tests/samples/mod.rs"]
mod samples;
#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop_agent::fuzzing;
use heaptop_protocol::frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(|| {
        let mut all = Vec::new();
        let mut together = vec![200];
        for message in samples::from_viewer() {
            let mut bytes = Vec::new();
            assert!(message.write(&mut bytes));
            let kind = (message.kind() - 999) as u8;
            let payload = &bytes[frame::HEADER..];
            together.extend([kind, payload.len() as u8]);
            together.extend(payload);
            all.push([&[3, kind, payload.len() as u8], payload].concat());
        }
        all.push(together);
        all
    }),
    |data: &[u8]| {
        let Some((&cut, mut said)) = data.split_first() else { return };
        let mut bytes = Vec::new();
        while let Some((&[kind, length], rest)) = said.split_first_chunk() {
            let (payload, rest) = rest.split_at(rest.len().min(length.into()));
            said = rest;
            if kind == 255 {
                // No frame at all.
                bytes.extend_from_slice(payload);
            } else {
                let kind = 999 + u16::from(kind);
                assert!(frame::write(&mut bytes, kind, |out| out.extend_from_slice(payload)));
            }
        }
        fuzzing::listen(&bytes, usize::from(cut) + 1);
    }
);
