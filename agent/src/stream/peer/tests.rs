//! Viewers that are none: what they say ends the conversation, or is waited for, and
//! nothing comes of it.

use super::*;
use heaptop_protocol::VERSION;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{MAGIC, SetSampling, Stopped, ViewerHello, WantSnapshot};
use proptest::prelude::*;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// A viewer's end, and the peer that the agent has for it since time 0.
fn pair() -> (UnixStream, Peer) {
    let (viewer, agent) = UnixStream::pair().unwrap();
    agent.set_nonblocking(true).unwrap();
    let hello = Stopped { reason: String::new() };
    (viewer, Peer::new(Stream::UdSocket(agent.into()), hello.into(), None, 0))
}

fn bytes(messages: &[FromViewer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for m in messages {
        assert!(m.write(&mut bytes));
    }
    bytes
}

fn greeting() -> ViewerHello {
    ViewerHello { magic: MAGIC, version: VERSION, client: "a test".into() }
}

/// What comes of it when a viewer says this, all at once.
fn heard(said: &[u8]) -> Result<Vec<FromViewer>, String> {
    let (mut viewer, mut peer) = pair();
    viewer.write_all(said).unwrap();
    peer.listen(0).map_err(|e| e.to_string())
}

#[test]
fn commands_come_after_a_greeting() {
    let command = FromViewer::from(WantSnapshot {});
    assert_eq!(heard(&bytes(&[greeting().into(), command.clone()])), Ok(vec![command.clone()]));
    let why = heard(&bytes(&[command])).unwrap_err();
    assert!(why.contains("before the greeting"), "{why}");
}

#[test]
fn strangers_and_other_versions_are_told_apart() {
    let stranger = ViewerHello { magic: *b"GET / HT", ..greeting() };
    let why = heard(&bytes(&[stranger.into()])).unwrap_err();
    assert!(why.contains("no heaptop"), "{why}");
    for major in [0, VERSION.major + 1, u16::MAX] {
        let version = heaptop_protocol::Version { major, ..VERSION };
        let other = ViewerHello { version, ..greeting() };
        let why = heard(&bytes(&[other.into(), WantSnapshot {}.into()])).unwrap_err();
        assert!(why.contains(&version.to_string()) && why.contains("same release"), "{why}");
    }
    let version = heaptop_protocol::Version { minor: VERSION.minor + 7, ..VERSION };
    let newer = ViewerHello { version, ..greeting() };
    assert_eq!(heard(&bytes(&[newer.into()])), Ok(vec![]), "a newer minor one is understood");
}

#[test]
fn half_a_greeting_is_waited_for_and_not_for_ever() {
    let said = bytes(&[greeting().into()]);
    for cut in 0..said.len() {
        let (mut viewer, mut peer) = pair();
        viewer.write_all(&said[..cut]).unwrap();
        assert_eq!(peer.listen(GREETING_NS).unwrap(), []);
        assert_eq!(peer.listen(GREETING_NS + 1).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
    let (mut viewer, mut peer) = pair();
    for byte in said {
        viewer.write_all(&[byte]).unwrap();
        peer.listen(GREETING_NS).unwrap();
    }
    assert_eq!(peer.listen(u64::MAX).unwrap(), [], "who has greeted may be silent");
}

#[test]
fn a_huge_length_ends_it_before_memory_is_taken() {
    let mut said = bytes(&[greeting().into()]);
    said.extend([0xff; frame::HEADER]);
    let why = heard(&said).unwrap_err();
    assert!(why.contains("4294967295"), "{why}");
}

#[test]
fn a_flood_is_taken_in_parts() {
    let (mut viewer, mut peer) = pair();
    viewer.set_nonblocking(true).unwrap();
    viewer.write_all(&bytes(&[greeting().into()])).unwrap();
    let flood = bytes(&vec![SetSampling { on: true }.into(); 10_000]);
    let written = viewer.write(&flood).unwrap();
    let first = peer.listen(0).unwrap().len();
    assert!(first > 0 && first * (frame::HEADER + 1) <= 16 * 4096, "{first} of {written} bytes");
}

fn messages() -> impl Strategy<Value = FromViewer> {
    prop_oneof![
        Just(greeting().into()),
        Just(WantSnapshot {}.into()),
        any::<bool>().prop_map(|on| SetSampling { on }.into()),
        (1u64..1 << 32).prop_map(|r| {
            heaptop_protocol::message::SetInterval { interval: Interval::new(r) }.into()
        }),
        ".{0,40}".prop_map(|label| heaptop_protocol::message::SetMark { label }.into()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn garbage_ends_the_conversation_or_is_waited_for(
        said in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        prop_assert!(heard(&said).unwrap_or_default().is_empty(), "nobody greeted");
    }

    #[test]
    fn damage_anywhere_never_gives_a_command_that_was_not_said(
        said in proptest::collection::vec(messages(), 0..12),
        piece in 1usize..60,
        at in any::<usize>(),
        bit in 0u32..8,
    ) {
        let mut all = vec![greeting().into()];
        all.extend(said);
        let mut bytes = bytes(&all);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let (mut viewer, mut peer) = pair();
        let mut wanted = Vec::new();
        for piece in bytes.chunks(piece) {
            viewer.write_all(piece).unwrap();
            match peer.listen(0) {
                Ok(more) => wanted.extend(more),
                Err(_) => break,
            }
        }
        let commands: Vec<FromViewer> =
            all.into_iter().filter(|m| !matches!(m, FromViewer::Hello(_))).collect();
        prop_assert!(commands.starts_with(&wanted), "{wanted:?}");
    }
}
