//! Callstacks, as they are written: see [`crate::ctf::backtrace`].
//!
//! The reader follows whatever buckets the writer chooses. Here they are given out in
//! turn: a code keeps its bucket until the turn has come round. memtrace chooses of two
//! buckets the one longer unused; the files are of the same size.

use crate::ctf::packet::MOST_BYTES;
use rustc_hash::FxHashMap;

const BUCKETS: usize = 1 << 14;
/// Most bytes of codes in an event: it leaves room for all else in a packet.
const ROOM: usize = MOST_BYTES - 66 - 64;

/// The table as the reader will have it, and the last callstack.
#[derive(Debug)]
pub(super) struct Callstacks {
    codes: Box<[u64]>,
    next: Box<[u16]>,
    bucket_of: FxHashMap<u64, u16>,
    /// The bucket whose turn it is.
    turn: u16,
    last: Vec<u64>,
}

/// What a callstack became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// Codes in the event.
    pub codes: u16,
    /// Whether innermost frames found no room.
    pub cut: bool,
}

impl Callstacks {
    pub fn new() -> Self {
        Self {
            codes: vec![0; BUCKETS].into(),
            next: vec![0; BUCKETS].into(),
            bucket_of: FxHashMap::default(),
            turn: 0,
            last: Vec::new(),
        }
    }

    /// The last callstack as the reader has it.
    pub fn last(&self) -> &[u64] {
        &self.last
    }

    /// What a reader must find in a bucket.
    pub fn check(&self, bucket: u16) -> (u16, u16, u64) {
        let at = usize::from(bucket) % BUCKETS;
        (bucket, self.next[at], self.codes[at])
    }

    /// Appends the codes of a callstack that shares `common` frames with the last one,
    /// and goes on with `new`.
    pub fn write(&mut self, out: &mut Vec<u8>, common: usize, new: &[u64]) -> Written {
        self.last.truncate(common);
        let start = out.len();
        let (mut at, mut codes, mut done) = (0u16, 0u16, 0usize);
        while let Some(&code) = new.get(done) {
            if out.len() - start + 10 > ROOM || codes == u16::MAX {
                return Written { codes, cut: true };
            }
            codes += 1;
            done += 1;
            self.last.push(code);
            let Some(&bucket) = self.bucket_of.get(&code) else {
                let bucket = self.give_bucket(code);
                self.next[usize::from(at)] = bucket;
                at = bucket;
                out.extend((bucket << 2 | 3).to_le_bytes());
                out.extend(code.to_le_bytes());
                continue;
            };
            self.next[usize::from(at)] = bucket;
            at = bucket;
            let mut predicted = 0u8;
            while let Some(&code) = new.get(done)
                && predicted < u8::MAX
                && self.codes[usize::from(self.next[usize::from(at)])] == code
            {
                at = self.next[usize::from(at)];
                self.last.push(code);
                done += 1;
                predicted += 1;
            }
            let tag = predicted.min(2);
            out.extend((bucket << 2 | u16::from(tag)).to_le_bytes());
            if tag == 2 {
                out.push(predicted);
            }
        }
        Written { codes, cut: false }
    }

    fn give_bucket(&mut self, code: u64) -> u16 {
        let bucket = self.turn;
        let at = usize::from(bucket);
        self.turn = (bucket + 1) % BUCKETS as u16;
        let old = std::mem::replace(&mut self.codes[at], code);
        // Codes are never 0 here unless one really is: then it has a bucket like others.
        if self.bucket_of.get(&old) == Some(&bucket) {
            self.bucket_of.remove(&old);
        }
        self.bucket_of.insert(code, bucket);
        bucket
    }
}
