//! Damaged messages: whatever the bytes, the decoder gives a value, `None` or
//! an error; it does not panic, and it takes little memory for it.
//!
//! The memory is measured by a counting allocator, per thread, so that tests
//! which run beside each other do not count for each other.

mod counting;
mod samples;

use counting::{BOUND, peak_of};
use heaptop_protocol::frame::{Frame, HEADER, MAX_PAYLOAD, Reader};
use heaptop_protocol::message::{FromAgent, FromViewer};
use heaptop_protocol::recording::InRecording;
use proptest::prelude::*;

/// Payloads of every kind.
fn payloads() -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    for message in samples::from_agent() {
        let mut out = Vec::new();
        assert!(message.write(&mut out));
        all.push((message.kind(), out.split_off(HEADER)));
    }
    for message in samples::from_viewer() {
        let mut out = Vec::new();
        assert!(message.write(&mut out));
        all.push((message.kind(), out.split_off(HEADER)));
    }
    for message in samples::in_recording() {
        let mut out = Vec::new();
        assert!(message.write(&mut out));
        all.push((message.kind(), out.split_off(HEADER)));
    }
    all
}

/// Reads a payload as both sides would; whether one of them took it.
fn accepted(kind: u16, payload: &[u8]) -> bool {
    let frame = Frame { kind, payload };
    let agent = matches!(FromAgent::read(&frame), Ok(Some(_)));
    let recording = matches!(InRecording::read(&frame), Ok(Some(_)));
    agent | recording | matches!(FromViewer::read(&frame), Ok(Some(_)))
}

#[test]
fn the_counter_counts() {
    let peak = peak_of(|| drop(std::hint::black_box(vec![1u8; 1 << 20])));
    assert!((1 << 20..1 << 21).contains(&peak), "{peak}");
}

#[test]
fn every_truncation_is_refused() {
    for (kind, payload) in payloads() {
        for length in 0..payload.len() {
            assert!(!accepted(kind, &payload[..length]), "kind {kind} cut at {length}");
        }
        assert!(accepted(kind, &payload));
    }
}

#[test]
fn a_stream_cut_anywhere_waits_for_more() {
    for (kind, payload) in payloads() {
        let mut bytes = Vec::new();
        assert!(heaptop_protocol::frame::write(&mut bytes, kind, |o| o.extend(&payload)));
        for length in 0..bytes.len() {
            let mut reader = Reader::default();
            reader.feed(&bytes[..length]);
            assert_eq!(reader.next(), Ok(None), "kind {kind} cut at {length}");
        }
    }
}

#[test]
fn flipped_bits_and_swapped_bytes_take_little_memory() {
    for (kind, payload) in payloads() {
        for position in 0..payload.len() {
            for byte in
                (0..8).map(|bit| payload[position] ^ (1 << bit)).chain([0, 0xfb, 0xfd, 0xff])
            {
                let mut damaged = payload.clone();
                damaged[position] = byte;
                let peak = peak_of(|| {
                    accepted(kind, &damaged);
                });
                assert!(peak <= BOUND, "kind {kind}, byte {position} = {byte:#x}: {peak} bytes");
            }
        }
    }
}

#[test]
fn a_promised_length_takes_no_memory() {
    // bincode's varint: 253 and eight bytes. Such a length in place of each
    // byte meets every length field there is.
    for length in [1u64 << 20, 1 << 24, 1 << 32, 1 << 60, u64::MAX] {
        for (kind, payload) in payloads() {
            for position in 0..payload.len() {
                let mut damaged = payload[..position].to_vec();
                damaged.push(0xfd);
                damaged.extend(length.to_le_bytes());
                damaged.extend(&payload[position + 1..]);
                let peak = peak_of(|| {
                    accepted(kind, &damaged);
                });
                assert!(peak <= BOUND, "kind {kind}, length {length} at {position}: {peak} bytes");
            }
        }
    }
}

#[test]
fn the_largest_frame_of_one_kind_read_as_another_is_bounded() {
    for fill in [0u8, 1, 0xfa, 0xff] {
        let payload = vec![fill; MAX_PAYLOAD];
        for (kind, _) in payloads() {
            let peak = peak_of(|| {
                accepted(kind, &payload);
            });
            assert!(peak <= BOUND, "kind {kind} full of {fill:#x}: {peak} bytes");
        }
    }
}

proptest! {
    #[test]
    fn noise_is_taken_or_refused(kind in 0u16..1010, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let peak = peak_of(|| { accepted(kind, &bytes); });
        prop_assert!(peak <= BOUND, "{peak} bytes");
    }
}
