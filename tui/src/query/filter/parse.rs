//! From a line to a [`Filter`].

use super::blocks::BlockTest;
use super::words::{Named, Pattern};
use super::{Filter, Kind, MOST_NAMES, NameTest, Names, PREDICATES, Placed, Wrong};
use crate::session::then::only::Than;
use crate::{size, times};
use heaptop_protocol::event::Cause;

/// Understands a filter, as far as that needs no session.
pub fn parse(text: &str) -> Result<Filter, Wrong> {
    let chars: Vec<char> = text.chars().collect();
    let mut line = Line { chars: &chars, at: 0 };
    let mut filter = Filter::default();
    let mut source = [String::new(), String::new()];
    loop {
        line.pass_spaces();
        if line.next().is_none() {
            break;
        }
        let begin = line.at;
        let of_blocks = filter.blocks.len();
        line.word(&mut filter)?;
        let kind = usize::from(filter.blocks.len() > of_blocks);
        source[kind].extend(&chars[begin..line.at]);
        source[kind].push(' ');
        if filter.names.len() + filter.hidden.len() > MOST_NAMES {
            return Err(Wrong::new(begin, format!("more than {MOST_NAMES} words are too many")));
        }
    }
    filter.source = source.map(Into::into);
    Ok(filter)
}

/// What is left of it.
struct Line<'a> {
    chars: &'a [char],
    at: usize,
}

/// A text, where it begins, and whether it stood in quotes.
struct Text {
    letters: String,
    at: usize,
    quoted: bool,
}

impl Line<'_> {
    fn next(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn pass_spaces(&mut self) {
        while self.next().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn word(&mut self, filter: &mut Filter) -> Result<(), Wrong> {
        let begin = self.at;
        let holds = self.next() != Some('!');
        if !holds {
            self.at += 1;
            if self.next().is_none_or(char::is_whitespace) {
                return Err(Wrong::new(begin, "! stands before what does not hold"));
            }
        }
        let at = self.at;
        let Some((kind, name)) = self.predicate()? else {
            let text = self.text()?;
            if text.letters.is_empty() {
                return Err(Wrong::new(at, "nothing is looked for"));
            }
            let pattern = Pattern::word(&text.letters, text.quoted);
            filter.names.push(NameTest { holds, of: Names::Any, pattern });
            return Ok(());
        };
        let than = self.than(kind, name)?;
        let text = self.text()?;
        if text.letters.is_empty() {
            return Err(Wrong::new(self.at, format!("{name} needs {}", needs(kind))));
        }
        if kind == Kind::Hide {
            if !holds {
                return Err(Wrong::new(begin, "hide takes frames out: it has no opposite"));
            }
            filter.hidden.push(Pattern::of(&text.letters, text.quoted));
            return Ok(());
        }
        if let Some((of, pattern)) = of_names(kind, &text)? {
            filter.names.push(NameTest { holds, of, pattern });
            return Ok(());
        }
        let of = of_blocks(kind, than, &text)
            .map_err(|says| Wrong::new(text.at, says.unwrap_or_else(|| wants(name, kind))))?;
        filter.blocks.push(Placed { holds, at: text.at, of });
        Ok(())
    }

    /// The predicate whose name stands here, which is passed; `None`: it is a plain word.
    fn predicate(&mut self) -> Result<Option<(Kind, &'static str)>, Wrong> {
        let name: String =
            self.chars[self.at..].iter().take_while(|c| c.is_ascii_lowercase()).collect();
        let behind = |by: usize| self.chars.get(self.at + name.len() + by).copied();
        let sign = behind(0);
        // `std::vec` is a word, and so is `cache.rs:88`.
        let colon = sign == Some(':') && behind(1) != Some(':');
        let compared = matches!(sign, Some('<' | '=' | '>'));
        if name.is_empty() || !(colon || compared) {
            return Ok(None);
        }
        let known = PREDICATES.iter().find(|p| !p.name.is_empty() && p.name == name);
        match known {
            Some(p) if colon || is_number(p.kind) => {
                self.at += name.len();
                Ok(Some((p.kind, p.name)))
            }
            None if colon && !behind(1).is_some_and(|c| c.is_ascii_digit()) => {
                let names = PREDICATES.iter().filter(|p| !p.name.is_empty()).map(|p| p.name);
                let names: Vec<&str> = names.collect();
                Err(Wrong::new(
                    self.at,
                    format!(
                        "{name}: is none of {}; in quotes it is looked for as it is",
                        names.join(", ")
                    ),
                ))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Passes what stands between a predicate and what it is about.
    fn than(&mut self, kind: Kind, name: &str) -> Result<Than, Wrong> {
        let sign = [self.next(), self.chars.get(self.at + 1).copied()];
        let (than, length) = match sign {
            [Some('<'), Some('=')] => (Than::AtMost, 2),
            [Some('>'), Some('=')] => (Than::AtLeast, 2),
            [Some('<'), _] => (Than::Less, 1),
            [Some('>'), _] => (Than::More, 1),
            [Some('='), _] => (Than::Equal, 1),
            _ if is_number(kind) => {
                let says = format!("{name} is compared: {name}< {name}<= {name}= {name}>= {name}>");
                return Err(Wrong::new(self.at, says));
            }
            _ => (Than::Equal, 1),
        };
        self.at += length;
        Ok(than)
    }

    fn text(&mut self) -> Result<Text, Wrong> {
        let begin = self.at;
        if self.next() != Some('"') {
            let rest = &self.chars[begin..];
            let text: String = rest.iter().take_while(|c| !c.is_whitespace()).collect();
            self.at += text.chars().count();
            return Ok(Text { letters: text, at: begin, quoted: false });
        }
        let mut text = String::new();
        self.at += 1;
        loop {
            match (self.next(), self.chars.get(self.at + 1)) {
                (None, _) => return Err(Wrong::new(begin, "this \" is never closed")),
                (Some('"'), behind) => {
                    self.at += 1;
                    if behind.is_some_and(|c| !c.is_whitespace()) {
                        return Err(Wrong::new(self.at, "a space must stand here"));
                    }
                    return Ok(Text { letters: text, at: begin + 1, quoted: true });
                }
                (Some('\\'), Some(c @ ('"' | '\\'))) => {
                    text.push(*c);
                    self.at += 2;
                }
                (Some(c), _) => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
    }
}

const fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Size | Kind::Age | Kind::Lifetime)
}

/// What must stand behind a predicate.
const fn needs(kind: Kind) -> &'static str {
    match kind {
        Kind::Word | Kind::Not | Kind::Name(_) | Kind::Hide => "a name, or a part of one",
        Kind::Regex => "an expression",
        Kind::Thread => "a thread's name, or a part of it",
        Kind::Phase => "a phase's name, or a part of it",
        Kind::Cause => "malloc, calloc, realloc, aligned, external or mmap",
        Kind::Size => "a size such as 4K",
        Kind::Age | Kind::Lifetime => "a time such as 10s or 1ms",
        Kind::Born | Kind::Died => "a range such as 10s..1m",
        Kind::Promoted => "yes or no",
    }
}

fn wants(name: &str, kind: Kind) -> String {
    format!("{name} wants {}", needs(kind))
}

/// What a predicate asks of callstacks, if it does.
fn of_names(kind: Kind, text: &Text) -> Result<Option<(Names, Pattern)>, Wrong> {
    Ok(Some(match kind {
        Kind::Regex => {
            let pattern = Pattern::regex(&text.letters).map_err(|(at, says)| {
                Wrong::new(text.at + at, format!("no regular expression: {says}"))
            })?;
            (Names::Any, pattern)
        }
        Kind::Name(of) => (of, Pattern::of(&text.letters, text.quoted)),
        Kind::Cause => match text.letters.as_str() {
            "external" => (Names::External, Pattern::Anything),
            "mmap" => (Names::External, Pattern::Contained("mmap".to_owned())),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

/// What a predicate asks of blocks; an error without a sentence is that of the kind.
fn of_blocks(kind: Kind, than: Than, text: &Text) -> Result<BlockTest, Option<String>> {
    let word = text.letters.as_str();
    let ns = || times::duration(word).ok_or(None);
    Ok(match kind {
        Kind::Thread => BlockTest::Thread(Named::new(word, text.quoted)),
        Kind::Phase => BlockTest::Phase(Named::new(word, text.quoted)),
        Kind::Cause => BlockTest::Cause(match word {
            "malloc" => Cause::Malloc,
            "calloc" => Cause::Calloc,
            "realloc" => Cause::Realloc,
            "aligned" => Cause::Aligned,
            _ => return Err(None),
        }),
        Kind::Size => BlockTest::Size(than, size::number(word).ok_or(None)?),
        Kind::Age => BlockTest::Age(than, ns()?),
        Kind::Lifetime => BlockTest::Lifetime(than, ns()?),
        Kind::Born => BlockTest::Born(times::range(word).map_err(Some)?),
        Kind::Died => BlockTest::Died(times::range(word).map_err(Some)?),
        Kind::Promoted => BlockTest::Promoted(match word {
            "yes" => true,
            "no" => false,
            _ => return Err(None),
        }),
        Kind::Word | Kind::Regex | Kind::Not | Kind::Name(_) | Kind::Hide => return Err(None),
    })
}

/// A filter without its first `thread:` in quotes, and whom that named.
#[must_use]
pub fn without_thread(filter: &str) -> (String, Option<String>) {
    let chars: Vec<char> = filter.chars().collect();
    let mut line = Line { chars: &chars, at: 0 };
    let (mut rest, mut name) = (Vec::new(), None);
    loop {
        line.pass_spaces();
        if line.next().is_none() {
            return (rest.join(" "), name);
        }
        let begin = line.at;
        let mut word = Filter::default();
        if line.word(&mut word).is_err() {
            // Nothing to be taken apart.
            return (filter.to_owned(), None);
        }
        let thread = match word.blocks.as_slice() {
            [Placed { holds: true, of: BlockTest::Thread(named), .. }] if name.is_none() => {
                named.whole()
            }
            _ => None,
        };
        match thread {
            Some(thread) => name = Some(thread.to_owned()),
            None => rest.push(chars[begin..line.at].iter().collect::<String>()),
        }
    }
}

/// A filter with the blocks of one thread alone.
#[must_use]
pub fn with_thread(filter: &str, name: &str) -> String {
    let name = name.replace('\\', "\\\\").replace('"', "\\\"");
    let space = if filter.is_empty() { "" } else { " " };
    format!("{filter}{space}thread:\"{name}\"")
}
