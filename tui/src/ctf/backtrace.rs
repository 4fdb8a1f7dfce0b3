//! Callstacks as a trace holds them: what is new since the last one, by way of a table
//! that reader and writer keep alike.
//!
//! The table has 16,384 buckets. Each holds a code, and the bucket that was used after
//! it the last time: so a run of codes that comes again is a bucket and a length. The
//! writer checks its reader: a packet says what one of the buckets must hold.
//!
//! A writer that ends a callstack early, because it has become too long, still counts
//! what the next one shares with the whole of it. Then the shared part is longer than
//! what is here; the codes are followed for the table's sake, and the callstack stays
//! the one before.

use super::bytes::Bytes;
use super::error::{CtfError, Why};

const BUCKETS: usize = 1 << 14;
/// Most frames of a callstack: a file can ask for 85 of them with a byte.
pub(super) const MOST_DEPTH: usize = 1 << 20;

/// The table, and the last callstack.
#[derive(Debug)]
pub(super) struct Cache {
    codes: Box<[u64]>,
    next: Box<[u16]>,
    last: Vec<u64>,
}

impl Cache {
    pub fn new() -> Self {
        Self { codes: vec![0; BUCKETS].into(), next: vec![0; BUCKETS].into(), last: Vec::new() }
    }

    /// Whether a bucket holds what the writer says.
    pub fn holds(&self, (bucket, next, code): (u16, u16, u64)) -> bool {
        let bucket = usize::from(bucket);
        self.next.get(bucket) == Some(&next) && self.codes.get(bucket) == Some(&code)
    }

    /// Frames that the last callstack has room for.
    pub const fn frames(&self) -> usize {
        self.last.capacity()
    }

    /// The last callstack, root first.
    pub fn last(&self) -> &[u64] {
        &self.last
    }

    /// Reads `count` codes of a callstack that shares `common` frames with the last one.
    /// How many were kept of that; all of them if the callstack is the last one again.
    pub fn read(
        &mut self,
        bytes: &mut Bytes<'_>,
        common: u64,
        count: u16,
    ) -> Result<usize, CtfError> {
        let before = *bytes;
        let kept = usize::try_from(common).ok().filter(|common| *common <= self.last.len());
        if let Some(kept) = kept {
            self.last.truncate(kept);
        }
        let whole = self.last.len();
        let mut at = 0u16;
        for _ in 0..count {
            let word = bytes.u16()?;
            let bucket = word >> 2;
            self.next[usize::from(at)] = bucket;
            at = bucket;
            let predicted = match word & 3 {
                0 => 0,
                1 => 1,
                2 => bytes.u8()?,
                _ => {
                    self.codes[usize::from(bucket)] = bytes.u64()?;
                    0
                }
            };
            self.last.push(self.codes[usize::from(at)]);
            for _ in 0..predicted {
                at = self.next[usize::from(at)];
                self.last.push(self.codes[usize::from(at)]);
            }
            if kept.is_none() {
                self.last.truncate(whole);
            }
            if self.last.len() > MOST_DEPTH {
                return Err(before.error(Why::Depth));
            }
        }
        Ok(whole)
    }
}
