//! A payload of any kind, as either side decodes it: a value, `None` or an error, in
//! bounded memory. What decodes is encoded again, and that decodes to the same.

#![no_main]

#[path = "../../tests/counting/mod.rs"]
mod counting;
#[allow(dead_code, reason = "each target uses a part of what all share")]
#[path = "../../tests/samples/mod.rs"]
mod samples;
mod seeds;

use heaptop_protocol::event::{Batch, Event};
use heaptop_protocol::frame::{Frame, HEADER};
use heaptop_protocol::message::{FromAgent, FromViewer, MessageError};
use libfuzzer_sys::fuzz_target;

/// Bytes stand for a message where values may not equal themselves (NaN).
fn agree<M>(
    first: M,
    write: impl Fn(&M, &mut Vec<u8>) -> bool,
    read: impl Fn(&Frame<'_>) -> Result<Option<M>, MessageError>,
    kind: u16,
) {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    assert!(write(&first, &mut once), "what came in one frame fits into one");
    let again = read(&Frame { kind, payload: &once[HEADER..] });
    let again = again.expect("what was encoded decodes").expect("and is of that kind");
    assert!(write(&again, &mut twice) && once == twice);
}

fuzz_target!(
    init: seeds::write(|| {
        let input = |frame: Vec<u8>, kind: u16| {
            let mut input = kind.to_le_bytes().to_vec();
            input.extend(&frame[HEADER..]);
            input
        };
        let agent = samples::from_agent().into_iter().map(|message| {
            let mut frame = Vec::new();
            assert!(message.write(&mut frame));
            input(frame, message.kind())
        });
        let viewer = samples::from_viewer().into_iter().map(|message| {
            let mut frame = Vec::new();
            assert!(message.write(&mut frame));
            input(frame, message.kind())
        });
        agent.chain(viewer).collect()
    }),
    |data: &[u8]| {
        let Some((&kind, payload)) = data.split_first_chunk() else { return };
        let kind = u16::from_le_bytes(kind);
        let frame = Frame { kind, payload };
        let peak = counting::peak_of(|| match FromAgent::read(&frame) {
            Ok(Some(message)) => {
                assert_eq!(message.kind(), kind);
                if let FromAgent::Events(batch) = &message {
                    let events: Vec<Event> = batch.iter().collect();
                    assert_eq!(events.len(), batch.len());
                    assert!(Batch::pack(&events).iter().eq(events));
                }
                agree(message, FromAgent::write, FromAgent::read, kind);
            }
            Ok(None) => assert!(!(1..=15).contains(&kind)),
            Err(error) => assert!(!error.to_string().is_empty()),
        });
        assert!(peak <= 2 * counting::BOUND, "{peak} bytes for {}", payload.len());
        match FromViewer::read(&frame) {
            Ok(Some(message)) => {
                assert_eq!(message.kind(), kind);
                agree(message, FromViewer::write, FromViewer::read, kind);
            }
            Ok(None) => assert!(!(1000..=1005).contains(&kind)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
);
