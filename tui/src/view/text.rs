//! Text from the target is data: control characters are replaced, widths are
//! measured by grapheme, and what does not fit is cut with `…`.

use std::borrow::Cow;

use super::paint::plain_width;
pub use crate::session::sane::clean;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Where text was cut.
const CUT: &str = "…";
/// Qualifications around each other that are taken off a name.
const DEEPEST: usize = 8;
/// What has no name, or one that nobody could see.
const UNNAMED: &str = "(unnamed)";
/// Names are shown up to so many bytes: no screen is as wide.
const LONGEST: usize = 1024;

/// The name of a function, a file or a program as it can be shown: [`clean`], cut in
/// the middle where it is longer than any screen, and never empty.
#[must_use]
pub fn name(text: &str) -> Cow<'_, str> {
    if text.trim().is_empty() {
        return Cow::Borrowed(UNNAMED);
    }
    if text.len() <= LONGEST {
        return clean(text);
    }
    let ends = |from: usize, down: bool| {
        let mut at = from;
        while !text.is_char_boundary(at) {
            at = if down { at - 1 } else { at + 1 };
        }
        at
    };
    let head = &text[..ends(LONGEST / 2, true)];
    let tail = &text[ends(text.len() - LONGEST / 2, false)..];
    Cow::Owned(format!("{}{CUT}{}", clean(head), clean(tail)))
}

/// Columns of a terminal that `text` takes.
#[must_use]
pub fn width(text: &str) -> usize {
    let any = || text.graphemes(true).map(UnicodeWidthStr::width).sum();
    plain_width(text).unwrap_or_else(any)
}

/// The beginning of `text`, in at most `columns`.
#[must_use]
pub fn keep_start(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let kept = take(text.graphemes(true), columns - 1);
    Cow::Owned(kept.concat() + CUT)
}

/// The end of `text`, in at most `columns`.
#[must_use]
pub fn keep_end(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let mut kept = take(text.graphemes(true).rev(), columns - 1);
    kept.push(CUT);
    kept.reverse();
    Cow::Owned(kept.concat())
}

/// Breaks a text between words where it can.
#[must_use]
pub fn wrapped(said: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in said.split(' ') {
        let mut word = word;
        loop {
            let gap = usize::from(!row.is_empty());
            if width(&row) + gap + width(word) <= columns {
                if gap > 0 {
                    row.push(' ');
                }
                row.push_str(word);
                break;
            }
            if !row.is_empty() {
                rows.push(std::mem::take(&mut row));
                continue;
            }
            // It is longer than a row.
            let mut end = 0;
            for (at, c) in word.char_indices() {
                if width(&word[..at + c.len_utf8()]) > columns {
                    break;
                }
                end = at + c.len_utf8();
            }
            let end = if end == 0 { word.len() } else { end };
            row.push_str(&word[..end]);
            word = &word[end..];
            if word.is_empty() {
                break;
            }
            rows.push(std::mem::take(&mut row));
        }
    }
    rows.push(row);
    rows
}

/// What is seen of a line that is typed in `columns`, with the column `cursor` in it: also how
/// many columns are hidden on the left. The end is where one types.
#[must_use]
pub fn window(text: &str, columns: usize, cursor: usize) -> (String, usize) {
    let hidden = width(text).saturating_sub(columns).min(cursor.saturating_sub(columns / 2));
    if hidden == 0 {
        return (keep_start(text, columns).into_owned(), 0);
    }
    let mut passed = 0;
    let rest = text.graphemes(true).skip_while(|grapheme| {
        let skipped = passed <= hidden;
        passed += if skipped { width(grapheme) } else { 0 };
        skipped
    });
    let rest: String = rest.collect();
    // Half a wide character is none.
    let gap = " ".repeat(passed.saturating_sub(hidden + 1));
    (keep_start(&format!("{CUT}{gap}{rest}"), columns).into_owned(), hidden)
}

/// A path in at most `columns`: its file tells most, directories are cut whole.
#[must_use]
pub fn keep_path(path: &str, columns: usize) -> Cow<'_, str> {
    if width(path) <= columns {
        return Cow::Borrowed(path);
    }
    for (slash, _) in path.match_indices('/') {
        let short = format!("{CUT}{}", &path[slash..]);
        if width(&short) <= columns {
            return Cow::Owned(short);
        }
    }
    keep_end(path.rsplit('/').next().unwrap_or(path), columns)
}

/// The name of a function in at most `columns`: its end tells most, its crate
/// comes next, the modules between go first.
#[must_use]
pub fn keep_name(name: &str, columns: usize) -> Cow<'_, str> {
    keep_name_within(name, columns, DEEPEST)
}

/// `depth`: how many qualifications may still be taken off, one around the other.
/// What a row is named, in at most `columns`: a function, a file or a module.
#[must_use]
pub fn keep_label(name: &str, columns: usize) -> Cow<'_, str> {
    let is_path = name.contains('/') && !name.contains("::") && !name.contains(['<', '(', '{']);
    if is_path { keep_path(name, columns) } else { keep_name(name, columns) }
}

fn keep_name_within(name: &str, columns: usize, depth: usize) -> Cow<'_, str> {
    if width(name) <= columns {
        return Cow::Borrowed(name);
    }
    if depth > 0
        && let Some(short) = without_qualification(name)
    {
        return Cow::Owned(keep_name_within(&short, columns, depth - 1).into_owned());
    }
    let cuts = path_separators(name);
    if let Some(&first) = cuts.first() {
        let head = &name[..first];
        // The longest tail that fits behind the crate, then one alone.
        for lead in [format!("{head}::{CUT}"), CUT.to_owned()] {
            let Some(room) = columns.checked_sub(width(&lead)) else { continue };
            // A later cut leaves less.
            let at = cuts.partition_point(|&cut| width(&name[cut..]) > room);
            let at = if lead == CUT { at } else { at.max(1) };
            if let Some(&cut) = cuts.get(at) {
                return Cow::Owned(format!("{lead}{}", &name[cut..]));
            }
        }
        // Not even the last segment fits: its beginning names the function.
        if let Some(&last) = cuts.last() {
            return Cow::Owned(keep_start(&name[last + 2..], columns).into_owned());
        }
    }
    keep_start(name, columns)
}

/// `<a::Type<T> as b::Trait<U>>::f` as `Type::f`, or as `Trait::f` where the type
/// is a parameter: one letter or two. `None` for names of another form.
fn without_qualification(name: &str) -> Option<String> {
    let inside = name.strip_prefix('<')?;
    let mut depth = 1usize;
    let bytes = inside.as_bytes();
    let end = bytes.iter().enumerate().position(|(i, &b)| {
        match b {
            b'<' => depth += 1,
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let rest = inside[end + 1..].strip_prefix("::")?;
    let (of, by) = match top_level_as(&inside[..end]) {
        Some((of, by)) => (of, Some(by)),
        None => (&inside[..end], None),
    };
    let of = last_segment(of);
    let named = by.filter(|_| of.len() <= 2 || !of.starts_with(char::is_alphabetic));
    Some(format!("{}::{rest}", named.map_or(of, last_segment)))
}

/// The two sides of an `as` that stands in no bracket.
fn top_level_as(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let bytes = text.as_bytes();
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && text[i..].starts_with(" as ") => {
                return Some((&text[..i], &text[i + 4..]));
            }
            _ => {}
        }
    }
    None
}

/// The last segment of a path, without type parameters.
fn last_segment(path: &str) -> &str {
    let start = path_separators(path).last().map_or(0, |cut| cut + 2);
    let segment = &path[start..];
    segment.split('<').next().filter(|s| !s.is_empty()).unwrap_or(segment)
}

/// Where `::` separates a path's segments, outside `<…>`, `(…)` and `[…]`. What
/// stands in braces (`{{closure}}`) says nothing without the function before it
/// and is no segment of its own.
fn path_separators(name: &str) -> Vec<usize> {
    let bytes = name.as_bytes();
    let mut depth = 0usize;
    let mut cuts = Vec::new();
    for (i, &b) in bytes.iter().enumerate() {
        match b {
            b'<' | b'(' | b'[' => depth += 1,
            // An arrow closes nothing.
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0
                && bytes.get(i + 1) == Some(&b':')
                && bytes.get(i + 2) != Some(&b'{') =>
            {
                cuts.push(i);
            }
            _ => {}
        }
    }
    cuts
}

fn take<'a>(graphemes: impl Iterator<Item = &'a str>, columns: usize) -> Vec<&'a str> {
    let mut used = 0;
    graphemes
        .take_while(|g| {
            used += UnicodeWidthStr::width(*g);
            used <= columns
        })
        .collect()
}

/// `text` followed by spaces up to `columns`.
#[must_use]
pub fn left(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{:missing$}", "")
}

/// `text` behind spaces up to `columns`.
#[must_use]
pub fn right(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{:missing$}{text}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_bounded_and_never_empty() {
        for nothing in ["", " ", "\u{3000}", "\n\t"] {
            assert_eq!(name(nothing), UNNAMED);
        }
        assert_eq!(name("a\x1b[31mb\n"), "a\u{FFFD}[31mb\u{FFFD}");
        let long = name(&format!("head{}tail", "é".repeat(5000))).into_owned();
        assert!(long.starts_with("headé") && long.ends_with("étail") && long.contains("é…é"));
        assert!(long.len() <= LONGEST + CUT.len());
    }

    #[test]
    fn a_name_of_many_parts_is_cut_at_once() {
        // Quadratic in its parts, this would take minutes.
        let parts = "a::".repeat(20_000) + "end";
        assert_eq!(keep_name(&parts, 12), "a::…::a::end");
        let nested = format!("{}a{}::b", "<".repeat(20_000), ">".repeat(20_000));
        assert!(width(&keep_name(&nested, 30)) <= 30);
    }

    #[test]
    fn a_line_that_is_typed_is_seen_around_its_cursor() {
        let at = |text, columns, cursor| window(text, columns, cursor);
        assert_eq!(at("/home/ann", 9, 9), ("/home/ann".into(), 0));
        assert_eq!(at("/home/ann", 6, 9), ("…e/ann".into(), 3), "the end is where one types");
        assert_eq!(at("/home/ann", 6, 0), ("/home…".into(), 0));
        assert_eq!(at("/home/ann", 6, 4), ("…ome/…".into(), 1));
        // Half of the wide one is hidden.
        assert_eq!(at("a名bcdefg", 6, 4), ("… bcd…".into(), 1));
        for (text, columns) in [("/höme/名名/x", 5), ("名名名名", 3), ("abc", 0), ("", 4)] {
            for cursor in 0..=width(text) {
                let (shown, hidden) = at(text, columns, cursor);
                assert!(width(&shown) <= columns, "{shown}");
                assert!((hidden..=hidden + columns).contains(&cursor), "{text} {cursor}");
            }
        }
    }

    #[test]
    fn cuts_count_columns_not_characters() {
        assert_eq!(width("名前"), 4);
        assert_eq!(keep_start("名前名前", 6), "名前…");
        assert_eq!(keep_start("abcdef", 4), "abc…");
        assert_eq!(keep_end("src/cache.rs:88", 9), "…he.rs:88");
        assert_eq!(keep_end("ab", 0), "");
        assert_eq!(keep_path("orders/src/cache.rs:88", 22), "orders/src/cache.rs:88");
        assert_eq!(keep_path("orders/src/cache.rs:88", 21), "…/src/cache.rs:88");
        assert_eq!(keep_path("orders/src/cache.rs:88", 12), "cache.rs:88");
        assert_eq!(keep_path("orders/src/cache.rs:88", 8), "…e.rs:88");
    }

    #[test]
    fn names_keep_their_telling_end() {
        let name = "alloc::collections::btree::map::BTreeMap<K,V>::insert";
        assert_eq!(keep_name(name, 60), name);
        assert_eq!(keep_name(name, 44), "alloc::…::btree::map::BTreeMap<K,V>::insert");
        assert_eq!(keep_name(name, 34), "alloc::…::BTreeMap<K,V>::insert");
        assert_eq!(keep_name(name, 16), "alloc::…::insert");
        assert_eq!(keep_name(name, 10), "…::insert");
        assert_eq!(keep_name(name, 4), "ins…");
        assert_eq!(keep_name("<Foo as a::b::Bar>::run", 12), "Foo::run");
        let handler = "<F as axum::handler::Handler<(M,T1),S>>::call";
        assert_eq!(keep_name(handler, 20), "Handler::call");
        let bytes = "<bytes::bytes::Bytes as core::convert::From<alloc::vec::Vec<u8>>>::from";
        assert_eq!(keep_name(bytes, 20), "Bytes::from");
        assert_eq!(
            keep_name("<a::b::Type<fn() -> u8>>::new::{{closure}}", 25),
            "Type::new::{{closure}}"
        );
        assert_eq!(keep_name("<[T] as a::ToOwned>::to_owned", 20), "ToOwned::to_owned");
        assert_eq!(keep_name("<broken as ", 5), "<bro…");
        assert_eq!(keep_name("orders::http::serve::{{closure}}", 25), "…::serve::{{closure}}");
        assert_eq!(keep_name("a_c_function_name", 8), "a_c_fun…");
    }

    #[test]
    fn arrows_close_no_bracket() {
        assert_eq!(path_separators("f<fn() -> u8>::g").len(), 1);
    }

    proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
        #[test]
        fn nothing_is_wider_than_asked(text in "\\PC{0,40}", columns in 0usize..50) {
            for cut in [keep_start(&text, columns), keep_end(&text, columns), keep_name(&text, columns), keep_path(&text, columns)] {
                prop_assert!(width(&cut) <= columns);
            }
        }
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrapped("", 4), [""]);
        for columns in 1..12 {
            let rows = wrapped("a longer sentence, of some words: 12345678901234", columns);
            assert!(rows.iter().all(|row| width(row) <= columns), "{rows:?}");
            let all: String = rows.concat().chars().filter(|c| *c != ' ').collect();
            assert_eq!(all, "alongersentence,ofsomewords:12345678901234");
        }
    }
}
