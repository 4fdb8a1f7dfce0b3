//! The end of a recording, whatever the last passes are.

use super::*;
use crate::config::{Builder, Settings};
use crate::engine::tracker::{Birth, Cause};
use crate::engine::unwind::{Captured, End};
use crate::stream::loader;
use heaptop_protocol::event::Event;
use heaptop_protocol::frame;
use heaptop_protocol::recording::{InRecording, Reader};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::MutexGuard;

/// An agent's desk over an engine of its own, exact, that records.
struct Bench {
    desk: Desk,
    engine: &'static Engine,
    file: File,
    born: u64,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// One that has told all that there was before.
fn bench() -> Bench {
    let alone = loader::ALONE.lock().ok();
    let settings = Settings::from_builder(&Builder { interval_bytes: Some(1), ..Builder::DEFAULT });
    let engine: &'static Engine = Box::leak(Box::new(Engine::with(&settings).unwrap()));
    // SAFETY: the engine is this test's own.
    let ledger = Ledger::new(engine, unsafe { engine.take_rest() }.unwrap()).unwrap();
    let nowhere = PathBuf::from("/dev/null/nowhere");
    let errand = Errand {
        engine,
        ledger,
        child: false,
        directories: vec![nowhere.clone()],
        stderr: None,
        notices: Vec::new(),
        file: None,
    };
    let mut desk = Desk::new(errand, false);
    // SAFETY: the name ends with a zero byte, and what is made is owned here alone.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"a".as_ptr(), libc::MFD_CLOEXEC)) };
    let file = File::from(fd.try_clone().unwrap());
    let recording = record::File::at(fd, nowhere).unwrap();
    desk.peers.push(Peer::file(recording, desk.hello(), sys::monotonic_ns()));
    let mut bench = Bench { desk, engine, file, born: 0, _alone: alone };
    bench.births(3, 1, 5);
    for _ in 0..3 {
        bench.desk.turn();
    }
    bench
}

/// What was recorded, added up.
#[derive(Debug, Default, PartialEq)]
struct Recorded {
    /// Births that were told one by one, and blocks of the last snapshot.
    births: u64,
    listed: u64,
    dropped: u64,
    /// Births in the last totals of each callstack, and in the last status.
    totals: u64,
    status: u64,
    ended: bool,
}

impl Bench {
    /// So many births, dealt out to so many callstacks that nobody has seen yet, of so many
    /// frames.
    fn births(&mut self, n: u64, stacks: u64, frames: u64) {
        let stacks: Vec<u32> = (0..stacks)
            .map(|_| {
                self.born += 1;
                let frames: Vec<u64> = (0..frames).map(|f| (self.born << 32) + (f << 20)).collect();
                self.engine.callstacks.intern(&Captured::of(&frames, End::Complete))
            })
            .collect();
        for i in 0..n {
            let id = self.engine.next_seq();
            self.born += 1;
            assert!(self.engine.tracker.birth(&Birth {
                id,
                address: ((self.born << 20) + i * 7919) as usize,
                size: 100_000 + i,
                n_samples: 100_000 + i,
                ns: self.engine.started_ns + (id << 20),
                clock: id << 20,
                stack: stacks[i as usize % stacks.len()],
                interval: 1,
                thread: 0,
                cause: Cause::Malloc,
                young: false,
                replaces: 0,
            }));
        }
    }

    /// The program exits: what the file holds then.
    fn end(mut self) -> Recorded {
        self.desk.finish_recording();
        self.recorded()
    }

    fn recorded(&self) -> Recorded {
        let mut bytes = vec![0; self.file.metadata().unwrap().len() as usize];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        let (mut chunks, mut frames) = (Reader::default(), frame::Reader::default());
        chunks.feed(&bytes);
        while let Some(chunk) = chunks.next().unwrap() {
            frames.feed(chunk.stored);
        }
        let (mut found, mut totals) = (Recorded::default(), std::collections::BTreeMap::new());
        while let Some(frame) = frames.next().unwrap() {
            assert!(!found.ended, "the end is the last thing");
            match FromAgent::read(&frame).unwrap() {
                Some(FromAgent::Events(batch)) => {
                    let is_birth = |e: &Event| matches!(e, Event::Alloc(_));
                    found.births += batch.iter().filter(is_birth).count() as u64;
                }
                Some(FromAgent::Totals(update)) => {
                    totals.extend(update.stacks.iter().map(|s| (s.stack, s.totals.allocated.n)));
                }
                Some(FromAgent::Status(status)) => found.status = status.totals.allocated.n,
                Some(FromAgent::Dropped(dropped)) => found.dropped += dropped.events,
                Some(FromAgent::SnapshotEnd(end)) => found.listed = end.blocks,
                Some(_) => {}
                None => {
                    let said = InRecording::read(&frame).unwrap();
                    found.ended |= matches!(said, Some(InRecording::Ended(_)));
                }
            }
        }
        found.totals = totals.values().sum();
        found
    }
}

const MANY: u64 = 16_384;

/// One that is full, of so many callstacks of so many frames.
fn all_of_the_last_pass_is_told(stacks: u64, frames: u64) {
    let mut bench = bench();
    bench.births(MANY, stacks, frames);
    let all = MANY + 3;
    let recorded = bench.end();
    assert_eq!(
        recorded,
        Recorded { births: MANY, listed: 3, dropped: 0, totals: all, status: all, ended: true }
    );
}

#[test]
fn a_last_pass_that_is_full_has_its_totals_told() {
    all_of_the_last_pass_is_told(3, 5);
}

#[test]
fn what_found_no_room_in_the_last_pass_is_told_by_a_snapshot() {
    let mut bench = bench();
    bench.births(MANY, 3000, 100);
    let all = MANY + 3;
    let recorded = bench.end();
    assert!(recorded.dropped > 0, "the callstacks alone take more than there is room for");
    assert_eq!(
        recorded,
        Recorded {
            births: MANY - recorded.dropped,
            listed: all,
            dropped: recorded.dropped,
            totals: all,
            status: all,
            ended: true,
        }
    );
}

#[test]
fn totals_that_do_not_fit_into_one_round_are_told_in_several() {
    all_of_the_last_pass_is_told(MANY, 2);
}

/// Each of them has a callstack that is new: its totals are due at once.
#[test]
fn totals_are_told_while_all_passes_are_full() {
    let mut bench = bench();
    for _ in 0..3 {
        bench.births(MANY, 1, 5);
        bench.desk.turn();
    }
    assert_eq!(bench.recorded().totals, 3 * MANY + 3);
}
