//! `heaptop config --print`: all settings with their defaults, and what they say.
//!
//! A line that begins with one `#` is a setting: without it, it is right. Two of them begin
//! what is to be read.

use std::fmt::Write as _;

use super::settings::{SETTINGS, quoted};
use super::{Config, KEYS};
use crate::app::keymap;

/// Columns that text is broken at.
const WIDTH: usize = 98;

/// The file.
#[must_use]
pub fn defaults() -> String {
    let mut text = String::new();
    said(
        &mut text,
        "heaptop's configuration: $XDG_CONFIG_HOME/heaptop/config.toml, or \
        ~/.config/heaptop/config.toml, or the file that --config names.",
    );
    said(
        &mut text,
        "Lines that begin with one # are the defaults: to change one, take its # away.",
    );
    let config = Config::default();
    for setting in SETTINGS {
        text.push('\n');
        said(&mut text, setting.says);
        let values = (setting.one_of)();
        if !values.is_empty() {
            said(&mut text, &format!("One of: {}.", values.join(", ")));
        }
        let _ = writeln!(text, "# {} = {}", setting.name, (setting.shown)(&config));
    }
    let _ = writeln!(text, "\n# [{KEYS}]");
    said(
        &mut text,
        "Keys are one character each, ^X for Control with X, F1 to F12, Space, Enter, \
        Esc, Tab, Up, Home, PgUp … A list may be empty. ^C leaves and ^Z suspends whatever \
        stands here.",
    );
    for (name, keys, lines) in keymap::names() {
        text.push('\n');
        let mut says: Vec<&str> = Vec::new();
        for line in lines {
            if !says.contains(&line.says) {
                says.push(line.says);
            }
        }
        said(&mut text, &format!("{}.", says.join("; ")));
        let keys: Vec<String> = keys.iter().map(|key| quoted(key.to_string())).collect();
        let _ = writeln!(text, "# {name} = [{}]", keys.join(", "));
    }
    text
}

/// Lines of a comment, broken between words.
fn said(text: &mut String, says: &str) {
    let mut line = String::from("##");
    for word in says.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("##");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
}
