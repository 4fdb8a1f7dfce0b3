//! A test binary with the agent in it, at R = 1: tests that must panic do, in
//! threads of the harness and in others, and nothing else does.

use heaptop_agent::Heaptop;
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOC: Heaptop<System> = Heaptop::system().interval_bytes(1);

/// Allocates while it unwinds.
struct Guard(Vec<u8>);

impl Drop for Guard {
    fn drop(&mut self) {
        black_box(vec![self.0.len(); 100]);
    }
}

#[inline(never)]
fn deep(n: usize) -> usize {
    let guard = Guard(vec![0; n + 1]);
    assert!(n > 0, "the bottom of {}", guard.0.len());
    deep(n - 1) + black_box(&guard).0.len()
}

#[test]
fn the_agent_is_there() {
    heaptop_agent::start().expect("it serves");
}

#[test]
#[should_panic(expected = "the bottom of 1")]
fn a_panic_from_deep_down() {
    deep(60);
}

#[test]
#[should_panic(expected = "out of bounds")]
fn an_index_out_of_bounds() {
    let numbers: Vec<usize> = (0..100).collect();
    println!("{}", numbers[black_box(100)]);
}

#[test]
#[should_panic(expected = "a thread did")]
fn a_panic_of_another_thread() {
    let thread = std::thread::spawn(|| deep(20));
    assert!(thread.join().is_ok(), "a thread did");
}

#[test]
fn panics_that_are_caught() {
    for i in 0..200 {
        let caught = std::panic::catch_unwind(|| deep(i % 50)).unwrap_err();
        assert_eq!(caught.downcast_ref::<String>().unwrap(), "the bottom of 1");
    }
}
