//! What comes from a peer is data: text without anything that a terminal obeys,
//! and numbers that are finite, not negative, and small enough to be added up.
//!
//! Text is cleaned here and nowhere else: names from files, from the wire and from
//! the command line alike, before they are kept and again before they are shown.

use heaptop_protocol::totals::{Moments, Total, Totals};
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Longest text kept of one name, in bytes.
const MOST_TEXT: usize = 16 << 10;
/// Far above every memory, far below the end of f64 even when squared and summed.
const MOST: f64 = 1e30;
/// Counts of 2⁴⁸ blocks and more are no counts; so many can be summed without overflow.
const MOST_COUNT: u64 = 1 << 48;

/// What stands for what was taken out.
const REPLACED: char = char::REPLACEMENT_CHARACTER;
/// Marks on one character; what carries more hides what is around it.
const MOST_MARKS: usize = 4;

/// `text`, [`clean`] and cut at 16 KiB, which is seen.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT {
        return clean(text);
    }
    let mut cut = MOST_TEXT;
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    Cow::Owned(clean(&text[..cut]).into_owned() + "…")
}

/// Whether a terminal obeys the character instead of showing it, or it hides itself,
/// or turns the direction of reading, or has a width that terminals do not agree about:
/// controls, separators of lines, joiners, fillers, selectors of variants, tags.
#[must_use]
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' | '\u{E0000}'..='\u{E0FFF}')
}

/// `text` with all that is hostile replaced, and marks without a character that could
/// carry them, or too many for it.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    // Most names.
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Cow::Borrowed(text);
    }
    // So many marks the character before can still carry.
    let mut room = 0;
    let mut one = |c: char| {
        let mark = c.width() == Some(0);
        let keep = if mark { room > 0 } else { !is_hostile(c) };
        room = match (keep, mark) {
            (true, true) => room - 1,
            (true, false) => MOST_MARKS,
            (false, _) => 0,
        };
        if keep && !is_hostile(c) { c } else { REPLACED }
    };
    let cleaned: String = text.chars().map(&mut one).collect();
    if cleaned == text { Cow::Borrowed(text) } else { Cow::Owned(cleaned) }
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
        assert_eq!(text(&"é".repeat(MOST_TEXT)).len(), MOST_TEXT + "…".len());
        assert!(matches!(clean("plain naïve 名 e\u{301}"), Cow::Borrowed(_)));
        for hidden in
            ['\u{9b}', '\u{ad}', '\u{200d}', '\u{2066}', '\u{fe0f}', '\u{feff}', '\u{e0041}']
        {
            assert_eq!(clean(&format!("a{hidden}b")), "a\u{fffd}b", "{hidden:?}");
        }
    }

    #[test]
    fn marks_need_a_character_and_stay_few() {
        assert_eq!(clean("\u{301}a"), "\u{fffd}a");
        assert_eq!(clean("\x1b\u{301}a"), "\u{fffd}\u{fffd}a");
        let most = format!("a{}", "\u{301}".repeat(MOST_MARKS));
        assert_eq!(clean(&most), most);
        assert_eq!(clean(&format!("{most}\u{301}b")), format!("{most}\u{fffd}b"));
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
