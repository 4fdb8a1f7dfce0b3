//! What a dead target left: its agent's memory with anything in it, whole or torn. It is
//! told as messages, which a session hears as from any peer.

#![no_main]

#[allow(dead_code, reason = "each target uses a part of what all share")]
mod said;
#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop::query::{self, Question};
use heaptop::session::{Input, Session};
use heaptop::source::fuzzing;
use heaptop_protocol::remains::{HEADER_BYTES, LAYOUT, MAGIC, entry, record, word};
use libfuzzer_sys::fuzz_target;
use said::Bytes;
use std::fs::File;
use std::io::{Seek, Write};
use std::sync::{LazyLock, Mutex};

/// One file for all inputs. It has no name by the time it is used.
static FILE: LazyLock<Mutex<File>> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("heaptop-fuzz-{}", std::process::id()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    let file = file.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let _ = std::fs::remove_file(&path);
    Mutex::new(file)
});

/// Elements of each array, which lie one behind the other.
const ENTRIES: usize = 6;
const PLACES: usize = 8;
const FRAMES: usize = 24;
const RECORDS: usize = 3;

/// A header that is right: what follows it lies where it says.
fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let places = HEADER_BYTES + ENTRIES * entry::BYTES;
    let frames = places + PLACES * 8;
    let records = frames + FRAMES * 8;
    for (at, value) in [
        (word::MAGIC, MAGIC),
        (word::LAYOUT, LAYOUT),
        (word::ENTRIES, HEADER_BYTES as u64),
        (word::ENTRIES + 1, ENTRIES as u64),
        (word::PLACES, places as u64),
        (word::PLACES + 1, PLACES as u64),
        (word::FRAMES, frames as u64),
        (word::FRAMES + 1, FRAMES as u64),
        (word::RECORDS, records as u64),
        (word::RECORDS + 1, RECORDS as u64),
        (word::KNOWN, RECORDS as u64),
        (word::CLOCK, 1 << 30),
        (word::SEQ, 1 << 20),
    ] {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

const BYTES: usize =
    HEADER_BYTES + ENTRIES * entry::BYTES + (PLACES + FRAMES) * 8 + RECORDS * record::BYTES;

fuzz_target!(
    init: seeds::write(|| {
        // Blocks in all states, each with a callstack of two frames.
        let mut content = vec![0; BYTES - HEADER_BYTES];
        for i in 0..ENTRIES {
            let mut put = |at: usize, value: u64| {
                content[i * entry::BYTES + at..][..8].copy_from_slice(&value.to_le_bytes());
            };
            put(entry::STATE, (i as u64 + 1) << 2 | i as u64 & 3);
            put(entry::BORN_CLOCK, 1 << 20 << i);
            put(entry::SIZE, 100 << i);
            put(entry::STACK, 1 + i as u64 | 512 << 32);
            put(entry::FLAGS, 1 << 8);
            put(entry::SAMPLES, 1);
        }
        for i in 0..PLACES {
            let place = 2 | 2 << 8 | (2 * i as u64) << 24;
            let at = ENTRIES * entry::BYTES + i * 8;
            content[at..at + 8].copy_from_slice(&place.to_le_bytes());
        }
        let right = [&[0, 0, 0][..], &content].concat();
        let torn = [&[200, 5, 1][..], &content[..1000]].concat();
        vec![vec![], vec![3, 8, 1], right, torn]
    }),
    |data: &[u8]| {
        let Some((&[value, at, whole], content)) = data.split_first_chunk() else { return };
        let mut memory = header().to_vec();
        memory.extend_from_slice(content);
        if whole & 1 == 0 {
            memory.resize(BYTES, 0);
        }
        // A word of the header may be anything.
        if value != 0 {
            let at = usize::from(at) % HEADER_BYTES;
            memory[at] = value;
        }
        let Ok(mut file) = FILE.lock() else { return };
        let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(&memory));
        if written.is_err() {
            return;
        }
        let hello = Bytes(content).hello();
        let mut session = Session::new();
        let mut told = 0;
        let end = fuzzing::remains(&file, &hello, &mut |message| {
            session.apply(Input::Agent(message));
            told += 1;
            true
        });
        match end {
            Ok(()) => assert!(told > 0),
            Err(sentence) => assert!(!sentence.is_empty()),
        }
        assert!(session.live_block_count() <= memory.len() / entry::BYTES);
        let _ = query::callsites(&session, &Question::default());
    }
);
