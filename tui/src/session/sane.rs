//! What comes from a peer is data: text without control characters, and
//! numbers that are finite, not negative, and small enough to be added up.

use heaptop_protocol::totals::{Moments, Total, Totals};
use std::borrow::Cow;

/// Longest text kept of one name, in bytes.
const MOST_TEXT: usize = 16 << 10;
/// Far above every memory, far below the end of f64 even when squared and summed.
const MOST: f64 = 1e30;
/// Counts of 2⁴⁸ blocks and more are no counts; so many can be summed without overflow.
const MOST_COUNT: u64 = 1 << 48;

/// `text` with every control and direction-changing character replaced, cut at 16 KiB.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    let mut cut = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.len() == cut && !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text[..cut].replace(bad, "\u{fffd}"))
}

/// A number of a total.
#[must_use]
pub fn number(v: f64) -> f64 {
    if v > 0.0 { v.min(MOST) } else { 0.0 }
}

fn square(v: f64) -> f64 {
    if v > 0.0 { v.min(MOST * MOST) } else { 0.0 }
}

fn moments(m: &Moments) -> Moments {
    let sum = number(m.sum);
    let sum_sq = square(m.sum_sq).min(sum * sum);
    Moments {
        sum,
        sum_sq,
        // Each term of the variance is a term of Σw² times 1 − p.
        variance: square(m.variance).min(sum_sq),
        largest: number(m.largest),
    }
}

/// One total.
#[must_use]
pub fn total(t: &Total) -> Total {
    if t.n == 0 {
        return Total::default();
    }
    Total {
        n: t.n.min(MOST_COUNT),
        bytes: moments(&t.bytes),
        objects: moments(&t.objects),
        smallest_size: t.smallest_size.min(t.largest_size),
        largest_size: t.largest_size,
    }
}

/// The four of them.
#[must_use]
pub fn totals(t: &Totals) -> Totals {
    Totals {
        in_use: total(&t.in_use),
        allocated: total(&t.allocated),
        minor: total(&t.minor),
        promoted: total(&t.promoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_what_a_terminal_obeys() {
        assert_eq!(text("plain::name"), "plain::name");
        assert_eq!(text("a\x1b[31mb\n\u{202e}c"), "a\u{fffd}[31mb\u{fffd}\u{fffd}c");
        assert_eq!(text(&"é".repeat(MOST_TEXT)).len(), MOST_TEXT);
    }

    #[test]
    fn numbers_are_finite_and_not_negative() {
        for (bad, good) in
            [(f64::NAN, 0.0), (-1.0, 0.0), (f64::INFINITY, 1e30), (2.5, 2.5), (-0.0, 0.0)]
        {
            assert_eq!(number(bad).to_bits(), f64::to_bits(good));
        }
    }
}
