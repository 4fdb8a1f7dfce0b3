//! What is remembered never shows: each stack is the one that a walk without memory
//! sees.

use super::super::{Stack, mark, with_stack};
use super::*;
use std::hint::black_box;

/// Both ways to the same stack, and that the quick one was taken.
#[inline(never)]
fn check(depth: usize) -> (Vec<u64>, u64, End) {
    let mark = mark();
    let mut plain = Stack::new();
    assert!(cfi::walk(&mut plain, &mark, depth));
    let quick = capture(&mark, depth, 1, |stack| {
        (stack.frames().collect::<Vec<_>>(), stack.print, stack.end)
    });
    let (frames, print, end) = quick.expect("an ordinary stack, of which the end is known");
    assert_eq!((&frames[..], end), (plain.frames(), plain.end()));
    assert_eq!(print, Captured::of(&frames, end).print);
    (frames, print, end)
}

#[inline(never)]
fn deep(n: u32, f: &mut dyn FnMut()) {
    if n == 0 {
        f();
    } else if n.is_multiple_of(3) {
        // Another return address, and a frame of another size.
        let room = black_box([n; 40]);
        deep(n - 1, f);
        black_box(room);
    } else {
        deep(n - 1, f);
    }
    black_box(n);
}

/// On a thread of its own, whose stack's end has been seen, and one after the other: they
/// share a memo.
fn alone(work: fn()) {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::thread::spawn(move || {
        super::super::note_root();
        super::super::prime();
        work();
    })
    .join()
    .unwrap();
}

#[test]
fn stacks_that_grow_and_shrink_are_seen_as_they_are() {
    alone(|| {
        let mut x = 7u32;
        for _ in 0..300 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            deep((x >> 24) % 60, &mut || {
                for depth in [MAX_DEPTH, MAX_DEPTH, 30, 3, 0] {
                    let _ = check(depth);
                }
            });
        }
    });
}

#[test]
fn what_has_changed_further_out_is_noticed() {
    #[inline(never)]
    fn middle() -> (Vec<u64>, u64, End) {
        check(MAX_DEPTH)
    }
    #[inline(never)]
    fn outer(second: bool) -> (Vec<u64>, u64, End) {
        // Two calls at the same depth, at different places.
        if black_box(second) {
            black_box(middle())
        } else {
            let seen = middle();
            black_box(seen)
        }
    }
    alone(|| {
        // From one place.
        let [one, other, again] = [false, true, false].map(outer);
        assert_ne!((&one.0, one.1), (&other.0, other.1));
        assert_eq!(one.0.len(), other.0.len());
        assert_eq!(again, one, "and what was there comes back");
    });
}

#[test]
fn a_word_that_differs_is_no_meeting() {
    alone(|| {
        let mut whole = Vec::new();
        let mut look = || whole.push(check(MAX_DEPTH));
        deep(20, &mut || {
            look();
            let memo = &MEMO[1];
            assert!(!memo.taken.swap(true, Acquire));
            // SAFETY: the memo is taken.
            let room = unsafe { &mut *memo.room.get() };
            let at = room.len - 3;
            assert!(room.still_holds(at));
            room.last[at - 1].frame ^= 8;
            assert!(!room.still_holds(at));
            room.last[at - 1].frame ^= 8;
            room.last[at - 1].base_word ^= 8;
            assert!(!room.still_holds(at));
            memo.taken.store(false, Release);
            // As if that frame had been another one: it is walked anew.
            look();
        });
        // But for the two places from which it was looked at.
        assert_eq!(whole[0].0[2..], whole[1].0[2..]);
    });
}

#[test]
fn who_finds_it_taken_does_without() {
    alone(|| {
        let stack = || with_stack(&mark(), MAX_DEPTH, 2, |s| (s.frames().count(), s.end));
        let before = stack();
        MEMO[2].taken.store(true, Relaxed);
        assert!(capture(&mark(), MAX_DEPTH, 2, |_| ()).is_none());
        assert_eq!(stack(), before);
        after_fork();
        assert!(capture(&mark(), MAX_DEPTH, 2, |_| ()).is_some());
    });
}

#[test]
fn deeper_stacks_than_are_kept_are_cut_at_the_root() {
    alone(|| {
        deep(200, &mut || {
            for depth in [MAX_DEPTH, 5, MAX_DEPTH] {
                let (frames, _, end) = check(depth);
                assert_eq!((frames.len(), end), (depth, End::Truncated));
            }
        });
        assert_eq!(check(MAX_DEPTH).2, End::Complete);
    });
}
