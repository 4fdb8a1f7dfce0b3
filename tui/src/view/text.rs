//! Text from the target is data: control characters are replaced, widths are
//! measured by grapheme, and what does not fit is cut with `…`.

use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Where text was cut.
const CUT: &str = "…";

/// Columns of a terminal that `text` takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// `text` with everything replaced that could move the cursor, hide itself or
/// turn the direction of reading.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hostile) {
        Cow::Owned(text.chars().map(|c| if is_hostile(c) { '\u{FFFD}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Controls, line and paragraph separators, marks of direction, invisible ones.
#[must_use]
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{061C}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
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
    if width(name) <= columns {
        return Cow::Borrowed(name);
    }
    if let Some(short) = without_qualification(name) {
        return Cow::Owned(keep_name(&short, columns).into_owned());
    }
    let cuts = path_separators(name);
    if let Some(&first) = cuts.first() {
        let head = &name[..first];
        // The longest tail that fits behind the crate, then one alone.
        for with_head in [true, false] {
            for &cut in &cuts {
                let tail = &name[cut..];
                let short =
                    if with_head { format!("{head}::{CUT}{tail}") } else { format!("{CUT}{tail}") };
                let worth_it = !with_head || cut > first;
                if worth_it && width(&short) <= columns {
                    return Cow::Owned(short);
                }
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
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` behind spaces up to `columns`.
#[must_use]
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_and_tricks_are_replaced() {
        assert_eq!(clean("a\x1b[31mb\n"), "a\u{FFFD}[31mb\u{FFFD}");
        assert_eq!(clean("x\u{202E}y"), "x\u{FFFD}y");
        assert!(matches!(clean("plain naïve 名"), Cow::Borrowed(_)));
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
}
