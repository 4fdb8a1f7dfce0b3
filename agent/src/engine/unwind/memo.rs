//! The ordinary case of a walk, and what is remembered of the last one.
//!
//! A walk goes from frame to frame by what it has just read, so that each step waits
//! for the memory of the one before: some 17 cycles a frame, however fast the rules
//! are found. But a thread that allocates in a loop has, from some frame up, the
//! stack that it had before. So each walk remembers what it has read, and the next
//! one, once it comes to a frame with the same registers, only **compares**: loads
//! that do not wait for one another, a cycle or two a frame.
//!
//! **Why that is exact.** Where a walk goes on to is decided by the registers at hand
//! (pc, sp, rbp), by the rules, and by the words that it reads of the stack: return
//! addresses, and saved values of rbp. All of these are compared: the registers at the
//! frame where the two walks meet, each word that was read above it, and the number
//! of times that rules were forgotten. Where all are equal the walk would be too.
//!
//! **Fingerprints** are made from the root inward, so that what was known of the
//! common part holds.
//!
//! **Data.** A memo holds the last whole stack, root first, and room to walk in, so
//! that the program's own stack, which may be small, need not hold either. Threads
//! share memos by their number; who uses one has `taken` set. Who finds it so walks
//! without ([`super::cfi::walk`]), as is done for all that is not ordinary: signal
//! frames, stacks that are not known to be the thread's own, what has no rule.
//!
//! Deliberately absent: anything that waits.

use super::cfi::{self, Rule};
use super::{Captured, End, MAX_DEPTH, Mark, fingerprint, readable};
use std::cell::UnsafeCell;
// Not modelled: who does not get a memo does without.
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

const MEMOS: usize = 64;

/// A frame, and the words that led to it.
#[derive(Clone, Copy)]
pub struct Step {
    /// Where the return address lies, and what it is.
    slot: usize,
    pub frame: u64,
    /// Where rbp was saved, and what as; the return address where it was not.
    base_slot: usize,
    base_word: usize,
    /// rbp in that frame.
    rbp: usize,
    /// Fingerprint from the root to here.
    print: u64,
}

const NO_STEP: Step = Step { slot: 0, frame: 0, base_slot: 0, base_word: 0, rbp: 0, print: 0 };

struct Memo {
    taken: AtomicBool,
    room: UnsafeCell<Room>,
}

/// What only who has taken the memo touches.
struct Room {
    /// The last whole stack, root first.
    last: [Step; MAX_DEPTH],
    len: usize,
    /// Of the rules that it was walked by.
    generation: u32,
    /// The frames walked now, innermost first.
    new: [Step; MAX_DEPTH],
}

// SAFETY: `room` is touched only by who has set `taken`, with Acquire and Release.
unsafe impl Sync for Memo {}

static MEMO: [Memo; MEMOS] = [const {
    Memo {
        taken: AtomicBool::new(false),
        room: UnsafeCell::new(Room {
            last: [NO_STEP; MAX_DEPTH],
            len: 0,
            generation: 0,
            new: [NO_STEP; MAX_DEPTH],
        }),
    }
}; MEMOS];

/// How often rules were forgotten.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Rules may be others from here on.
pub fn forget() {
    GENERATION.fetch_add(1, Relaxed);
}

/// In a forked child, where the threads that had taken memos are not.
pub fn after_fork() {
    for memo in &MEMO {
        memo.taken.store(false, Relaxed);
    }
}

/// Gives `then` the callstack from `mark` on, at most `depth` frames of it; `None`
/// where something is not ordinary. `thread` is the number of the calling thread.
#[inline]
pub fn capture<T>(
    mark: &Mark,
    depth: usize,
    thread: u32,
    then: impl FnOnce(&Captured<'_>) -> T,
) -> Option<T> {
    let end = readable::own_end(mark.sp)?;
    let memo = &MEMO[thread as usize % MEMOS];
    if memo.taken.swap(true, Acquire) {
        return None;
    }
    // SAFETY: the memo is taken, and given back behind the last use.
    let room = unsafe { &mut *memo.room.get() };
    let told = room.walk(mark, depth.min(MAX_DEPTH), end).map(|captured| then(&captured));
    memo.taken.store(false, Release);
    told
}

/// The word at `at`.
///
/// # Safety
///
/// It is aligned, and can be read.
#[inline(always)]
unsafe fn word(at: usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
}

/// How a walk came to its end: at the thread's first frame, say, or at the frame of
/// the last walk with this index.
enum Stop {
    At(End),
    Met(usize),
}

impl Room {
    #[inline]
    fn walk(&mut self, mark: &Mark, depth: usize, end: usize) -> Option<Captured<'_>> {
        let generation = GENERATION.load(Relaxed);
        if self.generation != generation {
            self.generation = generation;
            self.len = 0;
        }
        let (stop, new) = self.steps(mark, depth, end)?;
        let (kept, end) = match stop {
            Stop::Met(at) => (at + 1, End::Complete),
            Stop::At(end) => (0, end),
        };
        if kept + new > depth || end != End::Complete {
            return Some(self.cut(kept, new, depth, end));
        }
        let mut print = match kept.checked_sub(1) {
            Some(at) => self.last.get(at)?.print,
            None => fingerprint::SEED,
        };
        let walked = self.new.get(..new)?.iter().rev();
        for (old, step) in self.last.get_mut(kept..)?.iter_mut().zip(walked) {
            print = fingerprint::step(print, step.frame);
            *old = Step { print, ..*step };
        }
        self.len = kept + new;
        let print = fingerprint::finish(print, self.len, end);
        Some(Captured::root_first(self.last.get(..self.len)?, print, end))
    }

    /// A stack that is not whole: at most `depth` of the new frames and, behind them,
    /// of the `kept` ones. Nothing is remembered of it.
    #[cold]
    #[inline(never)]
    fn cut(&mut self, kept: usize, new: usize, depth: usize, end: End) -> Captured<'_> {
        let mut len = new.min(depth);
        let known = self.last.get(..kept).unwrap_or(&[]).iter().rev();
        for (free, step) in self.new.iter_mut().take(depth).skip(len).zip(known) {
            *free = *step;
            len += 1;
        }
        let end = if kept + new > depth { End::Truncated } else { end };
        let steps = self.new.get(..len).unwrap_or(&[]);
        let frames = steps.iter().rev().map(|step| step.frame);
        Captured::inner_first(steps, fingerprint::of(frames, len, end), end)
    }

    /// Walks until it knows the rest: how it ended, and the number of new frames.
    #[inline]
    fn steps(&mut self, mark: &Mark, depth: usize, end: usize) -> Option<(Stop, usize)> {
        let find = cfi::ready()?;
        let (mut pc, mut sp, mut rbp) = (mark.pc, mark.sp, mark.rbp);
        // Frames of the last walk that may still be met: those further out.
        let mut ahead = self.len;
        // Was it on this very stack?
        if self.last.first().is_none_or(|root| root.slot >= end) {
            ahead = 0;
        }
        let mut new = 0;
        loop {
            let rule = cfi::rule(find, pc);
            if !rule.is_plain() {
                return match rule {
                    Rule::FIRST => Some((Stop::At(End::Complete), new)),
                    Rule::BLIND => Some((Stop::At(End::NoUnwindInfo), new)),
                    _ => None,
                };
            }
            let from = if rule.is_from_rbp() { rbp } else { sp };
            let caller_sp = from.wrapping_add_signed(rule.offset());
            let slot = caller_sp.wrapping_sub(8);
            // From here outward, on the thread's own stack: `end` is a multiple of 8.
            if slot.wrapping_sub(sp) >= end - sp || slot & 7 != 0 {
                return None;
            }
            // SAFETY: aligned, and between sp and the end of the thread's own stack.
            let address = unsafe { word(slot) };
            let (mut base_slot, mut base_word) = (slot, address);
            if rule.is_rbp_saved() {
                base_slot = caller_sp.wrapping_add_signed(rule.rbp_slot());
                // Below the return address, as compilers have it: so what is compared later
                // lies within the stack wherever the root's return address does.
                if base_slot.wrapping_sub(sp) >= slot - sp || base_slot & 7 != 0 {
                    return None;
                }
                // SAFETY: as above.
                base_word = unsafe { word(base_slot) };
                rbp = base_word;
            }
            if address == 0 {
                return Some((Stop::At(End::Complete), new));
            }
            sp = caller_sp;
            while let Some(known) = ahead.checked_sub(1).and_then(|at| self.last.get(at)) {
                if known.slot >= slot {
                    let same =
                        known.slot == slot && known.frame == address as u64 && known.rbp == rbp;
                    if same && self.still_holds(ahead - 1) {
                        return Some((Stop::Met(ahead - 1), new));
                    }
                    break;
                }
                ahead -= 1;
            }
            if new == depth {
                return Some((Stop::At(End::Truncated), new));
            }
            let frame = address as u64;
            *self.new.get_mut(new)? = Step { slot, frame, base_slot, base_word, rbp, print: 0 };
            new += 1;
            pc = address.wrapping_sub(1);
        }
    }

    /// Whether the stack outside of frame `at` of the last walk reads as it did.
    #[inline]
    fn still_holds(&self, at: usize) -> bool {
        let outer = self.last.get(..at).unwrap_or(&[]);
        // Without a branch a frame: nearly always all are compared.
        let differ = outer.iter().fold(0, |differ, step| {
            // SAFETY: further out than where the walk is, and within the thread's own
            // stack: the root's slot is, and that is the furthest.
            let (address, base) = unsafe { (word(step.slot), word(step.base_slot)) };
            differ | (address ^ step.frame as usize) | (base ^ step.base_word)
        });
        differ == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
