//! Hostile memory. What a real one tells is seen end to end.

use super::*;
use crate::session::{Input, Session};
use heaptop_protocol::remains::word;
use heaptop_protocol::remains::{LAYOUT, MAGIC};
use proptest::prelude::*;
use std::io::Write;

const BYTES: usize = 16 << 10;

fn memory(content: &[u8]) -> Remains {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    Remains { file, bytes: content.len() as u64 }
}

/// A memory of this content behind a header that is right.
fn behind_a_header(content: &[u8]) -> Remains {
    let mut bytes = vec![0; BYTES];
    let n = content.len().min(BYTES - HEADER_BYTES);
    bytes[HEADER_BYTES..HEADER_BYTES + n].copy_from_slice(&content[..n]);
    let head = HEADER_BYTES as u64;
    for (at, value) in [
        (word::MAGIC, MAGIC),
        (word::LAYOUT, LAYOUT),
        (word::ENTRIES, head),
        (word::ENTRIES + 1, 32),
        (word::PLACES, head + 4096),
        (word::PLACES + 1, 64),
        (word::FRAMES, head + 4608),
        (word::FRAMES + 1, 64),
        (word::RECORDS, head + 5120),
        (word::RECORDS + 1, 8),
        (word::KNOWN, 8),
        (word::CLOCK, 1 << 30),
        (word::SEQ, 1 << 20),
    ] {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    memory(&bytes)
}

#[test]
fn what_is_no_memory_is_a_sentence() {
    let mut nobody = |_| panic!("nothing is to be told");
    for content in [&[][..], &[0; 100], &[0xff; BYTES]] {
        let sentence = memory(content).tell(&Known::default(), &mut nobody).unwrap_err();
        assert!(sentence.starts_with("the agent's memory "), "{sentence}");
        assert_eq!(memory(content).exit_code(), None);
    }
}

/// An entry of a block of 1,000 bytes, R = 1, born young at this moment of the clock.
fn an_entry(number: u64, state: u64, born_clock: u64, mark: u32) -> Vec<u8> {
    let mut bytes = vec![0; entry::BYTES];
    for (at, value) in [
        (entry::STATE, number << 2 | state),
        (entry::BORN_CLOCK, born_clock),
        (entry::SIZE, 1000),
        (entry::SAMPLES, 1000),
    ] {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    for (at, value) in [(entry::INTERVAL, 1), (entry::FLAGS, entry::YOUNG), (entry::KNOWN, mark)] {
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    bytes
}

#[test]
fn what_is_not_tracked_is_not_in_what_is_left() {
    const HELD: u32 = 2;
    let now = 1 << 30;
    // Young ones of now and of long ago that nobody had taken up, and one of each that was
    // held for its promotion.
    let entries: Vec<u8> = [(now, 0), (0, 0), (now, HELD), (0, HELD)]
        .iter()
        .zip(1..)
        .flat_map(|(&(born, mark), number)| an_entry(number, entry::LIVES_YOUNG, born, mark))
        .collect();
    for (track, in_use, allocated, promoted, minor, living) in [
        (Track::All, 4.0, 4.0, 2.0, 2.0, 4),
        (Track::Promoted, 2.0, 0.0, 2.0, 0.0, 2),
        (Track::Allocations, 0.0, 4.0, 0.0, 0.0, 0),
    ] {
        let hello = Hello { track, ..crate::source::fake::hello() };
        let known = Known { hello: Some(hello), ..Known::default() };
        let (mut all, mut blocks) = (heaptop_protocol::totals::Totals::default(), 0);
        behind_a_header(&entries)
            .tell(&known, &mut |message| {
                match message {
                    FromAgent::Totals(update) => {
                        update.stacks.iter().for_each(|s| all.merge(&s.totals));
                    }
                    FromAgent::SnapshotBlocks(some) => blocks += some.blocks.len(),
                    _ => {}
                }
                true
            })
            .unwrap();
        let told = [all.in_use, all.allocated, all.promoted, all.minor].map(|t| t.bytes.sum);
        assert_eq!(told, [in_use, allocated, promoted, minor].map(|n| n * 1000.0), "{track:?}");
        assert_eq!(blocks, living, "{track:?}");
    }
}

#[test]
fn another_file_is_not_opened() {
    let file = tempfile::tempfile().unwrap();
    let found = file.metadata().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file).unsigned_abs();
    let memory = Memory { fd, tid: 1, device: found.dev(), inode: found.ino() };
    let pid = std::process::id();
    assert!(Remains::open(pid, memory).is_some());
    assert!(Remains::open(pid, Memory { inode: memory.inode + 1, ..memory }).is_none());
    assert!(Remains::open(pid, Memory { fd: 1 << 30, ..memory }).is_none());
}

proptest! {
    #[test]
    fn any_content_is_told_without_harm(
        content in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..BYTES)
    ) {
        let mut session = Session::new();
        let mut told = 0;
        behind_a_header(&content)
            .tell(&Known::default(), &mut |message| {
                session.apply(Input::Agent(message));
                told += 1;
                true
            })
            .unwrap();
        prop_assert!(told >= 3, "a snapshot and totals");
        // Nobody listens: it ends at once.
        let mut heard = 0;
        let mut deaf = |_| { heard += 1; false };
        behind_a_header(&content).tell(&Known::default(), &mut deaf).unwrap();
        prop_assert_eq!(heard, 1);
    }
}
