//! From linker names to names a person reads. Names come from the target's
//! files: they may be of any length and hold any character.

use std::fmt::{self, Write};

use crate::session::sane;

/// Longest name shown, in bytes. Generic names beyond are cut; no screen is as
/// wide.
const LONGEST: usize = 2048;

/// A string that takes no more than [`LONGEST`] bytes: so that a name made to
/// grow without end stops its own expansion.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

/// `raw` as a person would write it: Rust names without their hash, C++ names
/// with their parameters, others as they are; control characters replaced.
pub(super) fn demangle(raw: &str) -> String {
    sane::clean(&demangled(raw)).into_owned()
}

fn demangled(raw: &str) -> String {
    let mut out = Bounded::default();
    // Rust first: its legacy names are valid C++ names too.
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        // An error here means that the name was cut, which is as meant.
        let _ = write!(out, "{rust:#}");
        if !out.0.is_empty() {
            return out.0;
        }
    }
    if raw.starts_with("_Z") || raw.starts_with("__Z") {
        let options = cpp_demangle::DemangleOptions::new().no_return_type();
        if let Ok(cpp) = cpp_demangle::Symbol::new(raw) {
            let mut out = Bounded::default();
            if cpp.structured_demangle(&mut out, &options).is_ok() || out.0.len() > LONGEST {
                return out.0;
            }
        }
    }
    let mut out = Bounded::default();
    let _ = out.write_str(raw);
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_each_language_read_well() {
        assert_eq!(
            demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_ZN5space3fooEibc"), "space::foo(int, bool, char)");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Znwm"), "operator new(unsigned long)");
        assert_eq!(demangle("_Z"), "_Z");
    }

    #[test]
    fn control_characters_never_reach_the_screen() {
        assert_eq!(demangle("a\x1b[2Jb\nc\u{202e}d"), "a�[2Jb�c�d");
    }

    #[test]
    fn long_names_are_cut() {
        let name = demangle(&"é".repeat(5000));
        assert!(name.len() <= LONGEST + '…'.len_utf8() && name.ends_with('…'), "{}", name.len());
    }

    proptest! {
        #[test]
        fn no_name_panics(tail in "[A-Za-z0-9_$.]{0,60}", head in "(_ZN|_R|_Z|__Z|)") {
            let name = demangle(&format!("{head}{tail}"));
            prop_assert!(!name.chars().any(char::is_control));
        }
    }
}
