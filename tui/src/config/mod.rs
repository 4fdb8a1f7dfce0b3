//! The configuration: what the user has chosen for good.
//!
//! A TOML file, `$XDG_CONFIG_HOME/heaptop/config.toml` or `~/.config/heaptop/config.toml`, or
//! the one that is named. [`settings`] is the table of what may stand in it, names of keys
//! stem from [`keys`](crate::app::keys), and [`print`] writes both with their defaults.
//!
//! **A mistake costs its own line and nothing else.** It becomes a [`Trouble`], a sentence
//! with the line, and the default holds. That goes for TOML itself too: what cannot be read
//! is passed over.

mod find;
mod names;
pub mod print;
pub mod settings;
#[cfg(test)]
mod tests;

pub use find::{Found, LARGEST, default_path, read};

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::app::keymap::{self, Choice, Keymap};
use crate::app::settings::Settings;
use crate::query::{Column, Grouping};
use crate::view::theme::Palette;

/// What a configuration says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Which colours.
    pub palette: Palette,
    /// Whether there are any.
    pub color: Coloured,
    /// ASCII characters alone.
    pub ascii: bool,
    /// Shortest time between two drawings of what the target sends, in milliseconds.
    pub refresh_ms: u64,
    /// How a session begins.
    pub settings: Settings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            palette: Palette::default(),
            color: Coloured::default(),
            ascii: false,
            refresh_ms: crate::terminal::PACE.as_millis() as u64,
            settings: Settings::default(),
        }
    }
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Coloured {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is wrong with a line, and what holds instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// From 1 on.
    pub line: usize,
    /// A sentence.
    pub what: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Reads a configuration: what is right of it holds, and of the rest the defaults.
#[must_use]
pub fn parse(text: &str) -> (Config, Vec<Trouble>) {
    let mut reader = Reader { text, config: Config::default(), troubles: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().unwrap_or_default();
        let what = format!("{}: this is no TOML, and is passed over", error.message());
        reader.trouble(&at, what);
    }
    reader.table(table.get_ref());
    let Reader { config, mut troubles, .. } = reader;
    troubles.sort_by_key(|trouble| trouble.line);
    // One mistake may be met more than once.
    troubles.dedup_by_key(|trouble| trouble.line);
    (config, troubles)
}

struct Reader<'a> {
    text: &'a str,
    config: Config,
    troubles: Vec<Trouble>,
}

impl Reader<'_> {
    fn trouble(&mut self, at: &Range<usize>, what: String) {
        let before = self.text.as_bytes().iter().take(at.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        self.troubles.push(Trouble { line, what });
    }

    fn table(&mut self, table: &DeTable<'_>) {
        let mut sort_at = None;
        for (name, value) in table {
            let text = name.get_ref().as_ref();
            if text == KEYS {
                match value.get_ref() {
                    DeValue::Table(keys) => self.keys(keys),
                    _ => self.trouble(&name.span(), format!("{KEYS} must be a table: [{KEYS}]")),
                }
                continue;
            }
            let Some(setting) = settings::SETTINGS.iter().find(|s| s.name == text) else {
                let known = settings::SETTINGS.iter().map(|s| s.name);
                let like = likely(text, known)
                    .map_or_else(String::new, |like| format!("; “{like}” is the name of one"));
                self.trouble(
                    &name.span(),
                    format!("there is no setting “{text}”{like}: heaptop config --print has all"),
                );
                continue;
            };
            if setting.name == settings::SORT {
                sort_at = Some(name.span());
            }
            if let Err(why) = (setting.set)(&mut self.config, value.get_ref()) {
                let default = (setting.shown)(&Config::default());
                self.trouble(&value.span(), format!("{text} {why}; {default} holds"));
            }
        }
        let settings = &mut self.config.settings;
        if settings.sort == Column::Cum && settings.group != Grouping::Function {
            settings.sort = Settings::default().sort;
            let what = "cum is known of functions alone: it needs group = \"function\"";
            self.trouble(&sort_at.unwrap_or_default(), what.into());
        }
    }

    fn keys(&mut self, table: &DeTable<'_>) {
        let known = keymap::names();
        let (mut choices, mut spans) = (Vec::new(), Vec::new());
        // In the order of the text, so that the later of two that clash is left out.
        let mut chosen: Vec<_> = table.iter().collect();
        chosen.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in chosen {
            let text = name.get_ref().as_ref();
            if !known.iter().any(|(known, ..)| known == text) {
                let like = likely(text, known.iter().map(|(known, ..)| known.as_str()));
                let like = like.map_or_else(String::new, |l| format!("; “{l}” is the name of one"));
                let what = format!("no key does “{text}”{like}: heaptop config --print has all");
                self.trouble(&name.span(), what);
                continue;
            }
            match keys_of(value) {
                Ok(keys) => {
                    choices.push(Choice { name: text.into(), keys });
                    spans.push(name.span());
                }
                Err((at, why)) => self.trouble(&at, format!("{text}: {why}; its keys stay")),
            }
        }
        let (map, clashes) = Keymap::new(&choices);
        for clash in clashes {
            let what = format!(
                "{}: {} means “{}” on {} already; its keys stay: choose another, or another for that",
                choices[clash.choice].name,
                clash.key,
                clash.means,
                clash.place.name()
            );
            self.trouble(&spans[clash.choice], what);
        }
        self.config.settings.keymap = map;
    }
}

/// The table of keys.
pub const KEYS: &str = "keys";

/// Keys are a list of text, or one text.
fn keys_of(
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<crate::app::keys::Key>, (Range<usize>, String)> {
    let one = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => text.parse().map_err(|why| (value.span(), why)),
        _ => Err((value.span(), "keys are text, such as [\"Space\", \"x\"]".to_owned())),
    };
    match value.get_ref() {
        DeValue::Array(list) => list.iter().map(one).collect(),
        _ => one(value).map(|key| vec![key]),
    }
}

/// What was meant, most likely: a name that begins as this one does, or is in it.
fn likely<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    known
        .map(|name| (same(name, text), name))
        .filter(|(n, _)| *n >= 3)
        .max_by_key(|(n, name)| (*n, std::cmp::Reverse(name.len())))
        .map(|(_, name)| name)
}
