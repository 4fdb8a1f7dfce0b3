//! Panics with backtraces: the same messages, the same ends.

use super::{act, same};
use heaptop_tests::run::{Plain, Run, same_as_unprofiled};

fn with_backtraces(args: &[&str]) -> Run {
    act(args).env("RUST_BACKTRACE", "full")
}

/// Without what no two runs have in common: addresses and thread numbers.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    let mut digits = false;
    for c in text.replace("0x", "0").chars() {
        // A number, decimal or not, becomes one digit.
        let digit = c.is_ascii_digit() || digits && c.is_ascii_hexdigit();
        if !digit {
            plain.push(c);
        } else if !digits {
            plain.push('0');
        }
        digits = digit;
    }
    plain
}

#[test]
fn caught_panics_on_four_threads() {
    let ended = same(&with_backtraces(&["panics"]));
    assert_eq!(ended.stderr.matches("the bottom of 1").count(), 40);
    assert!(ended.stderr.matches("panics::deep").count() > 400, "there are whole backtraces");
}

#[test]
fn a_panic_that_ends_the_program_says_the_same() {
    for act in ["panic", "double-panic"] {
        // The same binary, so that the frames are the same.
        let run = with_backtraces(&[act]);
        let plain = run.unprofiled(Plain::Off).to_end();
        let ended = same_as_unprofiled(&run, Plain::Off);
        assert!(ended.stderr.contains("panics::deep"), "{}", ended.stderr);
        assert_eq!(without_numbers(&ended.stderr), without_numbers(&plain.stderr));
    }
}
