//! What a profile keeps of a block, beside the tracker's entry.
//!
//! The word, bit by bit, says what happened, what of it was told, and who is at it:
//!
//! ```text
//! CLAIMED ── BORN ─► alloc ─┬─► PROMOTE ─► promote ─► DEATH ─► dealloc_major ─► CLOSED
//!                           └─► DEATH ─► dealloc_minor ─► CLOSED
//! ```
//!
//! A claim ends when it is closed and on no list, and its block is out of the set of
//! sampled blocks, or else the stream has it still.

use crate::engine::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::ffi::c_void;

/// A profile has the block.
pub const CLAIMED: u32 = 1;
/// Somebody runs its callbacks: the data is that thread's.
pub const RUNNING: u32 = 1 << 1;
/// The allocation callback is due.
pub const BORN: u32 = 1 << 2;
/// The promotion callback is due.
pub const PROMOTE: u32 = 1 << 3;
/// The deallocation callback is due.
pub const DEATH: u32 = 1 << 4;
/// The profile was discarded.
pub const DISCARD: u32 = 1 << 5;
/// Its free can not be seen any more.
pub const LOST: u32 = 1 << 6;
/// The data is a major block's.
pub const MAJOR: u32 = 1 << 7;
/// Nothing is told any more, and there is no data.
pub const CLOSED: u32 = 1 << 8;
/// On the profile's list of what waits, or in its queue.
pub const QUEUED: u32 = 1 << 9;
/// On one of the profile's lists of young blocks.
pub const YOUNG: u32 = 1 << 10;
/// The entry is the stream's too, whose books are not done with it.
pub const LEDGER: u32 = 1 << 11;
/// It is being freed.
pub const DYING: u32 = 1 << 12;
/// It is out of the set of sampled blocks.
pub const FREED: u32 = 1 << 13;
/// Its promotion was noticed.
pub const PROMOTED: u32 = 1 << 14;
/// The stream never had it.
pub const ONLY: u32 = 1 << 15;
/// Only if it is promoted the profile hears of it.
pub const HELD: u32 = 1 << 16;

/// From here on up: how often the place was taken. So who read the word of a claim that
/// has ended since does not change that of the next.
pub const VERSION: u32 = 1 << 17;

/// Its bits.
pub const VERSIONS: u32 = !(VERSION - 1);

/// What has to be done about.
pub const DUE: u32 = BORN | PROMOTE | DEATH | DISCARD | LOST;

/// See the module. Zero bytes are none.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Claim {
    /// The word.
    pub state: AtomicU32,
    /// Place of the profile.
    pub place: AtomicU32,
    /// What the program returned; null: nothing yet, or nothing more.
    pub data: AtomicPtr<c_void>,
    /// The callstack until it is handed out: a boxed slice, root first.
    pub frames: AtomicPtr<usize>,
    /// Its frames.
    pub frames_len: AtomicU32,
    /// 1 if it was cut at the root end, 2 if the unwinder found no way on.
    pub frames_end: AtomicU32,
    /// λ, as the bits of a number.
    pub lambda: AtomicU64,
    /// Samples that fell to the profile.
    pub n_samples: AtomicU64,
    /// Next of the young.
    pub next_young: AtomicU32,
    /// Next of those that wait.
    pub next_waiting: AtomicU32,
}

/// A callstack until it is handed out.
pub struct Frames {
    /// Return addresses, root first.
    pub frames: Box<[usize]>,
    /// As [`Claim::frames_end`].
    pub end: u32,
}

impl Claim {
    /// The version that follows this one's, and no claim yet.
    pub fn next_version(&self) -> u32 {
        (self.state.load(Relaxed) / VERSION).wrapping_add(1).wrapping_mul(VERSION)
    }

    /// Keeps a callstack. For who makes the claim.
    pub fn set_frames(&self, frames: Option<Frames>) {
        let (at, len, end) = frames.map_or((std::ptr::null_mut(), 0, 0), |f| {
            let len = f.frames.len() as u32;
            (Box::into_raw(f.frames).cast::<usize>(), len, f.end)
        });
        self.frames.store(at, Relaxed);
        self.frames_len.store(len, Relaxed);
        self.frames_end.store(end, Relaxed);
    }

    /// Takes the callstack. For who makes the claim, or runs it.
    pub fn take_frames(&self) -> Option<Frames> {
        let at = self.frames.swap(std::ptr::null_mut(), Relaxed);
        if at.is_null() {
            return None;
        }
        let frames = std::ptr::slice_from_raw_parts_mut(at, self.frames_len.load(Relaxed) as usize);
        // SAFETY: a boxed slice of this length, which `set_frames` gave away; the swap
        // has made it this caller's alone.
        let frames = unsafe { Box::from_raw(frames) };
        Some(Frames { frames, end: self.frames_end.load(Relaxed) })
    }

    /// The callstack is not wanted any more.
    pub fn drop_frames(&self) {
        drop(self.take_frames());
    }
}
