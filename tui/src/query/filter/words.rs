//! What a text is looked for with.
//!
//! **Fuzzy.** The letters of the word occur in the name in their order, each either right
//! behind the last or where a word of the name begins: behind what is no letter or digit,
//! or at a hump as in `fooBar`; the first one where a word begins. Letters' case is
//! ignored. What is contained fits as well. So `fc` and `fillca` find `fill_cache`, and
//! `ic` does not.
//!
//! A set of states is one word of bits: bit k says that the first k letters have been found
//! and the last of them stands here. One pass over the name moves all of them.

use regex::Regex;
use std::sync::Arc;

/// Longest word that is fuzzy; longer ones are contained, or not.
const MOST_LETTERS: usize = 63;
/// What compiling a regular expression, and running it, may take.
const REGEX_BYTES: usize = 1 << 20;

/// See the module.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Fuzzy.
    Fuzzy(Fuzzy),
    /// Contained, ignoring case; it is in lower case.
    Contained(String),
    /// Contained as it is.
    Exactly(String),
    /// A regular expression.
    Regex(Arc<Regex>),
    /// Anything.
    Anything,
}

/// A word that is looked for.
#[derive(Debug, Clone)]
pub struct Fuzzy {
    lower: String,
    /// By ASCII letter in lower case, the places in the word that it stands at.
    ascii: Box<[u64; 128]>,
    /// Other letters.
    others: Vec<(char, u64)>,
    /// The state in which all letters are found; 0 of a word that is too long.
    found: u64,
}

impl Fuzzy {
    pub fn new(word: &str) -> Self {
        let letters: Vec<char> = word.chars().map(lower).collect();
        let mut ascii = Box::new([0; 128]);
        let mut others: Vec<(char, u64)> = Vec::new();
        for (at, &letter) in letters.iter().enumerate().take(MOST_LETTERS) {
            let bit = 1 << at;
            if letter.is_ascii() {
                ascii[letter as usize] |= bit;
            } else if let Some((_, bits)) = others.iter_mut().find(|(known, _)| *known == letter) {
                *bits |= bit;
            } else {
                others.push((letter, bit));
            }
        }
        let found = if letters.len() > MOST_LETTERS { 0 } else { 1 << letters.len() };
        Self { lower: word.to_lowercase(), ascii, others, found }
    }

    fn fits(&self, name: &str, lower_name: &str) -> bool {
        lower_name.contains(&self.lower) || self.is_spread(name)
    }

    fn is_spread(&self, name: &str) -> bool {
        // Bit k: the first k letters end at the letter before; or anywhere before it.
        let (mut here, mut before) = (0u64, 1u64);
        let mut last = ' ';
        for c in name.chars() {
            let begins = !last.is_alphanumeric() || (last.is_lowercase() && c.is_uppercase());
            let from = if begins { here | before } else { here };
            here = (from & self.places(lower(c))) << 1;
            before |= here;
            last = c;
        }
        before & self.found > 0
    }

    fn places(&self, letter: char) -> u64 {
        match self.ascii.get(letter as usize) {
            Some(places) => *places,
            None => self.others.iter().find(|(known, _)| *known == letter).map_or(0, |(_, p)| *p),
        }
    }
}

/// Of letters that become several, the first.
fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

impl Pattern {
    /// What is typed for a predicate.
    pub fn of(text: &str, quoted: bool) -> Self {
        if quoted { Self::Exactly(text.to_owned()) } else { Self::Contained(text.to_lowercase()) }
    }

    /// A word of its own.
    pub fn word(text: &str, quoted: bool) -> Self {
        if quoted { Self::Exactly(text.to_owned()) } else { Self::Fuzzy(Fuzzy::new(text)) }
    }

    /// A regular expression; else where it is wrong, in characters, and what is.
    pub fn regex(text: &str) -> Result<Self, (usize, String)> {
        if let Err(error) = regex_syntax::Parser::new().parse(text) {
            let (span, what) = match &error {
                regex_syntax::Error::Parse(e) => (Some(e.span()), e.kind().to_string()),
                regex_syntax::Error::Translate(e) => (Some(e.span()), e.kind().to_string()),
                other => (None, other.to_string()),
            };
            let byte = span.map_or(0, |span| span.start.offset).min(text.len());
            let at = text.char_indices().take_while(|(i, _)| *i < byte).count();
            return Err((at, what));
        }
        let built = regex::RegexBuilder::new(text)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .build();
        built.map(|regex| Self::Regex(Arc::new(regex))).map_err(|_| (0, "it is too large".into()))
    }

    /// Whether a name has it; `lower` is the name in lower case.
    pub fn fits(&self, name: &str, lower: &str) -> bool {
        match self {
            Self::Fuzzy(word) => word.fits(name, lower),
            Self::Contained(text) => lower.contains(text),
            Self::Exactly(text) => name.contains(text),
            Self::Regex(regex) => regex.is_match(name),
            Self::Anything => true,
        }
    }

    /// The same of a name whose lower case is not at hand.
    pub fn has(&self, name: &str) -> bool {
        self.fits(name, &name.to_lowercase())
    }
}

/// The name of a thread or a phase: some of it, or in quotes all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    text: String,
    whole: bool,
}

impl Named {
    pub fn new(text: &str, quoted: bool) -> Self {
        let text = if quoted { text.to_owned() } else { text.to_lowercase() };
        Self { text, whole: quoted }
    }

    /// What was typed of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name, if all of it was given.
    pub fn whole(&self) -> Option<&str> {
        self.whole.then_some(&self.text)
    }

    pub fn is(&self, name: &str) -> bool {
        if self.whole { name == self.text } else { name.to_lowercase().contains(&self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fuzzy(word: &str, name: &str) -> bool {
        Pattern::word(word, false).has(name)
    }

    #[test]
    fn letters_go_on_or_begin_a_word() {
        for (word, name) in [
            ("fc", "fill_cache"),
            ("fillca", "fill_cache"),
            ("FILLCA", "fill_cache"),
            ("ill_ca", "fill_cache"),
            ("fbba", "fooBarBaz"),
            ("fobar", "fooBar"),
            ("ofc", "orders::fill_cache"),
            ("o8", "orders/src/cache.rs:88"),
            ("ßg", "orders::ßgroß"),
            ("", "anything"),
            // The first way in is not the only one.
            ("abc", "ab_a_bc"),
            ("aab", "a_ab"),
        ] {
            assert!(fuzzy(word, name), "{word} in {name}");
        }
        for (word, name) in [
            ("ic", "fill_cache"),
            ("cf", "fill_cache"),
            ("flc", "fill_cache"),
            ("fcx", "fill_cache"),
            ("fch", "fill_cache"),
            ("b", "fooar"),
            ("ob", "fooxbar"),
        ] {
            assert!(!fuzzy(word, name), "{word} not in {name}");
        }
        let long = "x".repeat(300);
        assert!(fuzzy(&long, &format!("a{long}")) && !fuzzy(&long, "x"));
    }

    #[test]
    fn quotes_are_as_they_are() {
        let exactly = Pattern::word("Fill c", true);
        assert!(exactly.has("a Fill cache") && !exactly.has("fill cache"));
        assert!(Pattern::of("Cache", false).has("fill_cache"));
        assert!(!Pattern::of("Cache", true).has("fill_cache"));
        assert!(Named::new("Work", false).is("the-worker"));
        assert!(!Named::new("worker-1", true).is("worker-10"));
    }

    #[test]
    fn a_regular_expression_says_where_it_is_wrong() {
        for (text, at) in [("a(b", 1), ("ab[z-a]", 3), ("é*(", 2), ("\\p{Nonsense}", 0)] {
            let (found, says) = Pattern::regex(text).unwrap_err();
            assert_eq!(found, at, "{text}: {says}");
        }
        let (_, says) = Pattern::regex("(a{500}){500}{500}").unwrap_err();
        assert_eq!(says, "it is too large");
        assert!(Pattern::regex("^fill_.*e$").unwrap().has("fill_cache"));
    }

    /// The definition, letter by letter.
    fn slow(word: &[char], name: &[char], from: usize, first: bool) -> bool {
        let Some((&next, rest)) = word.split_first() else { return true };
        (from..name.len()).any(|at| {
            let before = at.checked_sub(1).map_or(' ', |at| name[at]);
            let begins =
                !before.is_alphanumeric() || before.is_lowercase() && name[at].is_uppercase();
            let on = begins || (!first && at == from);
            on && lower(name[at]) == next && slow(rest, name, at + 1, false)
        })
    }

    proptest! {
        #[test]
        fn bits_find_what_the_definition_finds(word in "[abAB_é]{0,5}", name in "[abAB_é]{0,12}") {
            let letters: Vec<char> = word.chars().map(lower).collect();
            let chars: Vec<char> = name.chars().collect();
            let want = slow(&letters, &chars, 0, true);
            prop_assert_eq!(Fuzzy::new(&word).is_spread(&name), want);
        }
    }
}
