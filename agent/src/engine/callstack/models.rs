//! Interning by two threads, under the eyes of the reader.

use super::*;
use crate::engine::models::explore;
use loom::thread;
use std::sync::Arc;

const ONE: [u64; 2] = [11, 12];
const TWO: [u64; 2] = [21, 22];

fn table(slots: usize, words: usize) -> Arc<Callstacks> {
    let mut region = Region::new(1 << 16).unwrap();
    Arc::new(Callstacks::new(&mut region, slots, words).unwrap())
}

fn intern(t: &Callstacks, frames: &[u64]) -> u32 {
    t.intern(&Captured::of(frames, End::Complete))
}

/// What is published of a slot is one of the stacks, whole.
fn look(t: &Callstacks, id: u32) -> Option<Vec<u64>> {
    match t.read(id) {
        Published::NotYet => None,
        Published::NoRoom => panic!("there is room for both"),
        Published::Whole { frames, end } => {
            assert!((frames == ONE || frames == TWO) && end == End::Complete, "{frames:?}");
            Some(frames)
        }
    }
}

#[test]
fn stacks_are_stored_once_and_read_whole() {
    explore("callstack: two threads and the reader", 3, || {
        // Two slots: both stacks lie within reach of each other.
        let t = table(2, 4);
        let other = {
            let t = t.clone();
            thread::spawn(move || [intern(&t, &TWO), intern(&t, &ONE)])
        };
        let third = {
            let t = t.clone();
            thread::spawn(move || intern(&t, &ONE))
        };
        for id in [1, 2] {
            look(&t, id);
        }
        let [two, one] = other.join().unwrap();
        assert_eq!(third.join().unwrap(), one);
        assert_ne!(one, two);
        assert_eq!(look(&t, one).unwrap(), ONE);
        assert_eq!(look(&t, two).unwrap(), TWO);
        assert_eq!(t.arena_words_used(), 4, "each was stored once");
    });
}

#[test]
fn one_of_two_finds_no_room() {
    explore("callstack: room for one", 3, || {
        let t = table(2, 2);
        let other = {
            let t = t.clone();
            thread::spawn(move || intern(&t, &TWO))
        };
        let one = intern(&t, &ONE);
        let two = other.join().unwrap();
        let whole = |id| matches!(t.read(id), Published::Whole { .. });
        assert!(whole(one) != whole(two), "{one} {two}");
        assert_eq!([intern(&t, &ONE), intern(&t, &TWO)].map(whole), [whole(one), whole(two)]);
    });
}
