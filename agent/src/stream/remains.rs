//! What the target leaves when it dies: the region, which a viewer reads then.
//!
//! The protocol says how it lies; that ours lies so is checked here, when this is
//! compiled. How the program ended is noted in it too, if it ends by `exit`.

use super::descriptors::{Known, Listed};
use super::ledger;
use crate::engine::header::Header;
use crate::engine::{Engine, callstack, sys, tracker};
use heaptop_protocol::message::Memory;
use heaptop_protocol::remains::{EXITED, HEADER_BYTES, LAYOUT, MAGIC, entry, place, record, word};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Relaxed, Release};

const fn same(ours: &[usize], promised: &[usize]) -> bool {
    // A model has types of its own, and no reader.
    if cfg!(loom) {
        return true;
    }
    let mut i = 0;
    while i < ours.len() && i < promised.len() && ours[i] == promised[i] {
        i += 1;
    }
    i == ours.len() && i == promised.len()
}

const _: () = assert!(same(
    &tracker::LAYOUT,
    &[
        entry::BYTES,
        entry::STATE,
        entry::BORN_CLOCK,
        entry::DIED_SEQ,
        entry::DIED_CLOCK,
        entry::SIZE,
        entry::STACK,
        entry::INTERVAL,
        entry::FLAGS,
        entry::KNOWN,
        entry::ADDRESS,
        entry::SAMPLES,
        entry::BORN_NS,
        entry::DIED_NS,
        entry::REPLACES,
        entry::THREAD,
        entry::DIED_THREAD,
    ]
));
const _: () = {
    let [free, young, major, dying, born_young, was_major] = tracker::VALUES;
    assert!(free == entry::FREE && young == entry::LIVES_YOUNG && major == entry::LIVES_MAJOR);
    assert!(dying == entry::DYING);
    assert!(born_young == entry::YOUNG as u64 && was_major == entry::WAS_MAJOR as u64);
    let [published, truncated, blind, len, first] = callstack::LAYOUT;
    assert!(published == place::PUBLISHED && truncated == place::TRUNCATED);
    assert!(blind == place::NO_UNWIND_INFO);
    assert!(len == place::LEN_SHIFT as u64 && first == place::FIRST_SHIFT as u64);
};
const _: () = assert!(same(
    &ledger::LAYOUT,
    &[record::BYTES, record::PLACE, record::TOTALS, record::PENDING]
));
const _: () = assert!(same(
    &[
        size_of::<Header>(),
        offset_of!(Header, magic),
        offset_of!(Header, layout),
        offset_of!(Header, entries),
        offset_of!(Header, places),
        offset_of!(Header, frames),
        offset_of!(Header, records),
        offset_of!(Header, known),
        offset_of!(Header, cycle),
        offset_of!(Header, forget_before),
        offset_of!(Header, ended),
        offset_of!(Header, started_ns),
        offset_of!(Header, lost),
        offset_of!(Header, clock),
        offset_of!(Header, seq),
        offset_of!(Header, samples),
    ],
    &[
        HEADER_BYTES,
        8 * word::MAGIC,
        8 * word::LAYOUT,
        8 * word::ENTRIES,
        8 * word::PLACES,
        8 * word::FRAMES,
        8 * word::RECORDS,
        8 * word::KNOWN,
        8 * word::CYCLE,
        8 * word::FORGET_BEFORE,
        8 * word::ENDED,
        8 * word::STARTED_NS,
        8 * word::LOST,
        8 * word::CLOCK,
        8 * word::SEQ,
        8 * word::SAMPLES,
    ]
));

/// Says that the region is one.
pub fn publish(engine: &Engine) {
    engine.header.layout.store(LAYOUT, Relaxed);
    engine.header.magic.store(MAGIC, Release);
}

/// The region as a file, while the program leaves us our descriptor of it.
pub struct Opened {
    listed: Listed,
    memory: Memory,
}

impl Opened {
    /// Puts the descriptor on the list of ours.
    pub fn new(file: Known) -> Option<Self> {
        let (device, inode) = file.identity();
        let fd = u32::try_from(file.fd()).ok()?;
        let memory = Memory { fd, tid: sys::tid(), device, inode };
        Some(Self { listed: Listed::known(file), memory })
    }

    /// What viewers are told of it; `None` once it is closed.
    pub fn told(&self) -> Option<Memory> {
        self.listed.is_ours().then_some(self.memory)
    }
}

/// The code that the program exits with, once that is noted.
pub fn exit_code(engine: &Engine) -> Option<u8> {
    let ended = engine.header.ended.load(Relaxed);
    (ended & EXITED != 0).then_some(ended as u8)
}

/// Notes that the program exits with `code`.
pub fn exits(engine: &Engine, code: i32) {
    engine.header.ended.store(EXITED | u64::from(code as u32), Relaxed);
}

/// Has the program's end be noted, if it ends by `exit`. Once.
#[cfg(target_env = "gnu")]
pub fn note_exit() {
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    extern "C" fn note(code: c_int, _: *mut c_void) {
        // Not by a forked child that exits.
        if let Some(engine) = Engine::running() {
            exits(engine, code);
        }
    }
    // SAFETY: the function has the type asked for and lives for ever.
    unsafe { on_exit(note, std::ptr::null_mut()) };
}

/// Only glibc tells its handlers the code.
#[cfg(not(target_env = "gnu"))]
pub fn note_exit() {}
