//! Which keys do what: the table of [`keys`](super::keys), with the keys that the user has
//! chosen in their stead.
//!
//! A line of the table has a **name**: that of its action. Lines of one action that have the
//! same keys are one to the user, and share it; where an action has other keys in some place
//! besides, their name says where (`details`, `details-in-leaks`). So names stem from the
//! table alone. Keys with Control are no choice: ^C leaves and ^Z suspends whatever happens.
//!
//! A key must not mean two things in one place. What the user chose is looked at as a whole,
//! so that two keys can be exchanged; where two meet, the later choice is left out.

use std::cmp::Reverse;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent};

use super::keys::{Action, BINDINGS, Binding, Key, Place, TimeKey};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    /// One for each line of the table.
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    keys: Vec<Key>,
    /// As people read them.
    shown: String,
}

/// Other keys for what a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// One of [`names`].
    pub name: String,
    /// May be none: then it has no key.
    pub keys: Vec<Key>,
}

/// A choice that was left out: its place among the choices, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// Its place among the choices.
    pub choice: usize,
    /// The key that would mean two things.
    pub key: Key,
    /// Where.
    pub place: Place,
    /// What it means there.
    pub means: &'static str,
}

impl Default for Keymap {
    fn default() -> Self {
        let row = |b: &Binding| Row { keys: b.keys.to_vec(), shown: shown(b.keys) };
        Self { rows: BINDINGS.iter().map(row).collect() }
    }
}

impl Keymap {
    /// The table with these choices, as far as they can be had together.
    #[must_use]
    pub fn new(choices: &[Choice]) -> (Self, Vec<Clash>) {
        let names: Vec<Option<String>> = (0..BINDINGS.len()).map(name).collect();
        let mut holds = vec![true; choices.len()];
        let mut clashes = Vec::new();
        loop {
            let mut map = Self::default();
            let mut by: Vec<Option<usize>> = vec![None; BINDINGS.len()];
            for (at, choice) in choices.iter().enumerate().filter(|(at, _)| holds[*at]) {
                for (i, _) in
                    names.iter().enumerate().filter(|(_, n)| n.as_ref() == Some(&choice.name))
                {
                    map.rows[i] = Row { keys: choice.keys.clone(), shown: shown(&choice.keys) };
                    by[i] = Some(at);
                }
            }
            match map.clash(&by) {
                Some(clash) => {
                    holds[clash.choice] = false;
                    clashes.push(clash);
                }
                None => return (map, clashes),
            }
        }
    }

    /// The first key that means two things, of which one was chosen: `by` says by which
    /// choice a line has its keys.
    fn clash(&self, by: &[Option<usize>]) -> Option<Clash> {
        for (i, row) in self.rows.iter().enumerate() {
            for (j, other) in self.rows.iter().enumerate().skip(i + 1) {
                let Some(choice) = by[i].max(by[j]) else { continue };
                let Some(&key) = row.keys.iter().find(|key| other.keys.contains(key)) else {
                    continue;
                };
                let here = |place: &&Place| BINDINGS[j].places.contains(place);
                if let Some(&place) = BINDINGS[i].places.iter().find(here) {
                    let stays = if by[j] == Some(choice) { i } else { j };
                    return Some(Clash { choice, key, place, means: BINDINGS[stays].says });
                }
            }
        }
        None
    }

    /// What `event` does in `place`.
    #[must_use]
    pub fn action(&self, event: &KeyEvent, place: Place) -> Option<Action> {
        self.rows().find_map(|(binding, row)| {
            let fits = binding.places.contains(&place) && row.keys.iter().any(|k| k.is(event));
            fits.then_some(binding.action)
        })
    }

    /// Where this key works, and how it is read; `None`: nowhere, or it is one that leads back,
    /// which has its meaning where there is something to come back from.
    #[must_use]
    pub fn places(&self, event: &KeyEvent) -> Option<(String, Vec<Place>)> {
        let rows: Vec<(&Binding, Key)> = self
            .rows()
            .filter_map(|(binding, row)| Some((binding, *row.keys.iter().find(|k| k.is(event))?)))
            .collect();
        let (_, key) = rows.first()?;
        let works = |place: &Place| rows.iter().any(|(b, _)| b.places.contains(place));
        let leads_back = rows.iter().any(|(b, _)| b.action == Action::Back);
        (!leads_back).then(|| (key.to_string(), Place::ALL.into_iter().filter(works).collect()))
    }

    fn rows(&self) -> impl Iterator<Item = (&'static Binding, &Row)> {
        BINDINGS.iter().zip(&self.rows)
    }

    /// All lines of the table, each with its keys as people read them; those without a key
    /// are left out.
    pub fn lines(&self) -> impl Iterator<Item = (&'static Binding, &str)> {
        self.rows().filter(|(_, row)| !row.keys.is_empty()).map(|(b, row)| (b, row.shown.as_str()))
    }

    /// The first key that does something in a place, as people read it.
    #[must_use]
    pub fn key_of(&self, action: Action, place: Place) -> Option<String> {
        let does = |b: &Binding| b.action == action && b.places.contains(&place);
        let (_, row) = self.rows().find(|(b, row)| does(b) && !row.keys.is_empty())?;
        row.keys.first().map(Key::to_string)
    }
}

/// What users choose keys for: each name, with its keys, and the lines that it stands for.
/// In the order of the table.
#[must_use]
pub fn names() -> Vec<(String, &'static [Key], Vec<&'static Binding>)> {
    let mut names: Vec<(String, &'static [Key], Vec<&'static Binding>)> = Vec::new();
    for (i, binding) in BINDINGS.iter().enumerate() {
        let Some(name) = name(i) else { continue };
        match names.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., lines)) => lines.push(binding),
            None => names.push((name, binding.keys, vec![binding])),
        }
    }
    names
}

/// The name of a line of the table.
fn name(i: usize) -> Option<String> {
    let binding = &BINDINGS[i];
    if binding.keys.iter().any(|key| matches!(key, Key::Control(_))) {
        return None;
    }
    let name = action_name(binding.action);
    // The keys that work in the most places bear the plain name; of as many, the fewest.
    let reach = |keys: &[Key]| {
        let same = BINDINGS.iter().filter(|b| b.action == binding.action && b.keys == keys);
        (same.map(|b| b.places.len()).sum::<usize>(), Reverse(keys.len()))
    };
    let most = BINDINGS
        .iter()
        .filter(|b| b.action == binding.action)
        .reduce(|most, b| if reach(b.keys) > reach(most.keys) { b } else { most });
    let plain = most.is_none_or(|most| most.keys == binding.keys);
    let place = binding.places.first().map_or("", |place| place.name());
    Some(if plain { name } else { format!("{name}-in-{place}") })
}

fn action_name(action: Action) -> String {
    match action {
        Action::Quit => "quit",
        Action::Suspend => "suspend",
        Action::Help => "help",
        Action::Go(place) => return format!("go-{}", place.name()),
        Action::NextScreen => "next-screen",
        Action::FormerScreen => "former-screen",
        Action::Up => "up",
        Action::Down => "down",
        Action::PageUp => "page-up",
        Action::PageDown => "page-down",
        Action::First => "first",
        Action::Last => "last",
        Action::Left => "left",
        Action::Right => "right",
        Action::Drill => "drill",
        Action::Back => "back",
        Action::Filter => "filter",
        Action::SortColumn => "sort-column",
        Action::SortDirection => "sort-direction",
        Action::Metric => "metric",
        Action::Invert => "invert",
        Action::Find => "find",
        Action::NextThread { forward: true } => "next-thread",
        Action::NextThread { forward: false } => "former-thread",
        Action::NextMatch { forward: true } => "next-match",
        Action::NextMatch { forward: false } => "former-match",
        Action::Freeze => "freeze",
        Action::Pause => "pause",
        Action::Hold => "hold-order",
        Action::Export => "export",
        Action::Write => "write",
        Action::Path => "path",
        Action::Copy => "copy",
        Action::Reset => "reset",
        Action::Group => "group",
        Action::Columns => "columns",
        Action::ToggleColumn => "toggle-column",
        Action::ColumnLeft => "column-left",
        Action::ColumnRight => "column-right",
        Action::ResetColumns => "reset-columns",
        Action::GrowthBase => "growth-base",
        Action::Details => "details",
        Action::Automatic => "automatic-marks",
        Action::Limit => "limit",
        Action::Finer => "finer",
        Action::Coarser => "coarser",
        Action::Sampling => "sampling",
        Action::Mark => "mark",
        Action::Snapshot => "snapshot",
        Action::Time(TimeKey::Earlier) => "earlier",
        Action::Time(TimeKey::Later) => "later",
        Action::Time(TimeKey::MuchEarlier) => "much-earlier",
        Action::Time(TimeKey::MuchLater) => "much-later",
        Action::Time(TimeKey::Begin) => "range-begin",
        Action::Time(TimeKey::End) => "range-end",
        Action::Time(TimeKey::Play) => "play",
        Action::Time(TimeKey::Peak) => "peak",
        Action::Time(TimeKey::Now) => "now",
        Action::Record => "record",
        Action::Targets => "targets",
        Action::Attach => "attach",
        Action::Demo => "demo",
        Action::Nursery { larger: false } => "smaller-nursery",
        Action::Nursery { larger: true } => "larger-nursery",
    }
    .to_owned()
}

fn shown(keys: &[Key]) -> String {
    let mut text = String::new();
    for key in keys {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{key}");
    }
    text
}

/// Keys that have no character, by the names that people read.
const NAMED: [(&str, KeyCode); 16] = [
    ("Space", KeyCode::Char(' ')),
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Backspace", KeyCode::Backspace),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Insert", KeyCode::Insert),
    ("Delete", KeyCode::Delete),
];

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Control(c) => write!(f, "^{}", c.to_ascii_uppercase()),
            Self::Code(code) => match (NAMED.iter().find(|(_, named)| *named == code), code) {
                (Some((name, _)), _) => f.write_str(name),
                (None, KeyCode::Char(c)) => write!(f, "{c}"),
                (None, KeyCode::F(n)) => write!(f, "F{n}"),
                // The table has no others, and none can be chosen.
                (None, other) => write!(f, "{other:?}"),
            },
        }
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, code)) = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(Self::Code(*code));
        }
        let mut characters = text.chars();
        let function = text.strip_prefix(['F', 'f']).and_then(|n| n.parse::<u8>().ok());
        match (characters.next(), characters.next(), characters.next(), function) {
            (Some(c), None, ..) if !c.is_control() => Ok(Self::Code(KeyCode::Char(c))),
            (Some('^'), Some(c), None, _) if c.is_ascii_alphabetic() => {
                Ok(Self::Control(c.to_ascii_lowercase()))
            }
            (.., Some(n @ 1..=12)) => Ok(Self::Code(KeyCode::F(n))),
            _ => {
                let named: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "“{text}” is no key: write one character, ^X for Control with X, F1 to F12, or {}",
                    named.join(", ")
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    fn press(map: &Keymap, key: &str, place: Place) -> Option<Action> {
        let (code, modifiers) = match key.parse().unwrap() {
            Key::Code(code) => (code, KeyModifiers::NONE),
            Key::Control(c) => (KeyCode::Char(c), KeyModifiers::CONTROL),
        };
        map.action(&KeyEvent::new(code, modifiers), place)
    }

    fn choice(name: &str, keys: &[&str]) -> Choice {
        Choice { name: name.into(), keys: keys.iter().map(|key| key.parse().unwrap()).collect() }
    }

    #[test]
    fn keys_read_as_the_table_says_and_back() {
        for binding in BINDINGS {
            assert_eq!(shown(binding.keys), binding.shown);
            for key in binding.keys {
                assert_eq!(key.to_string().parse(), Ok(*key));
            }
        }
        assert_eq!("space".parse(), Ok(Key::Code(KeyCode::Char(' '))));
        assert_eq!("F5".parse::<Key>().unwrap().to_string(), "F5");
        assert_eq!("f".parse(), Ok(Key::Code(KeyCode::Char('f'))));
        assert_eq!("^a".parse::<Key>().unwrap().to_string(), "^A");
        assert_eq!("é".parse(), Ok(Key::Code(KeyCode::Char('é'))));
        for wrong in ["", "ab", "F13", "^", "^^", "Ctrl-X", "\n"] {
            assert!(wrong.parse::<Key>().is_err() || wrong == "^", "{wrong:?}");
        }
    }

    #[test]
    fn each_line_but_those_with_control_has_one_name_and_its_keys() {
        let names = names();
        let lines: usize = names.iter().map(|(.., lines)| lines.len()).sum();
        assert_eq!(lines, BINDINGS.len() - 2);
        for (name, keys, lines) in &names {
            assert!(lines.iter().all(|line| line.keys == *keys), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        }
        let mut sorted: Vec<&String> = names.iter().map(|(name, ..)| name).collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        for known in ["details", "details-in-leaks", "columns", "columns-in-columns", "go-time"] {
            assert!(names.iter().any(|(name, ..)| name == known), "{known}");
        }
    }

    #[test]
    fn without_choices_it_is_the_table() {
        let (map, clashes) = Keymap::new(&[]);
        assert_eq!((map, clashes), (Keymap::default(), Vec::new()));
    }

    #[test]
    fn a_choice_takes_the_place_of_all_keys_of_its_name() {
        let (map, clashes) = Keymap::new(&[choice("pause", &["v", "F5"]), choice("copy", &[])]);
        assert_eq!(clashes, []);
        assert_eq!(press(&map, "v", Place::Callsites), Some(Action::Pause));
        assert_eq!(press(&map, "F5", Place::Details), Some(Action::Pause));
        assert_eq!(press(&map, "Space", Place::Callsites), None);
        assert_eq!(press(&map, "Space", Place::Columns), Some(Action::ToggleColumn));
        assert_eq!(press(&map, "y", Place::Callsites), None);
        assert_eq!(map.key_of(Action::Pause, Place::Log).as_deref(), Some("v"));
        assert!(map.lines().all(|(b, _)| b.action != Action::Copy));
        assert!(map.lines().any(|(b, shown)| b.action == Action::Pause && shown == "v, F5"));
    }

    #[test]
    fn keys_can_be_exchanged() {
        let choices = [choice("sort-column", &["t"]), choice("group", &["s"])];
        let (map, clashes) = Keymap::new(&choices);
        assert_eq!(clashes, []);
        assert_eq!(press(&map, "s", Place::Callsites), Some(Action::Group));
        assert_eq!(press(&map, "t", Place::Callsites), Some(Action::SortColumn));
    }

    #[test]
    fn no_key_means_two_things_in_one_place_whatever_is_chosen() {
        let (map, clashes) = Keymap::new(&[choice("pause", &["q"]), choice("copy", &["Y"])]);
        let [clash] = &clashes[..] else { panic!("{clashes:?}") };
        assert_eq!((clash.choice, clash.key.to_string().as_str()), (0, "q"));
        assert!(clash.means.starts_with("quit"));
        assert_eq!(press(&map, "q", Place::Callsites), Some(Action::Quit));
        assert_eq!(press(&map, "Space", Place::Callsites), Some(Action::Pause));
        assert_eq!(press(&map, "Y", Place::Callsites), Some(Action::Copy), "the others hold");
        // Two that are chosen: the first holds.
        let (map, clashes) = Keymap::new(&[choice("pause", &["v"]), choice("copy", &["v"])]);
        assert_eq!(clashes.iter().map(|c| c.choice).collect::<Vec<_>>(), [1]);
        assert_eq!(press(&map, "v", Place::Callsites), Some(Action::Pause));
        assert_eq!(press(&map, "y", Place::Callsites), Some(Action::Copy));
        let (map, clashes) = Keymap::new(&[choice("pause", &["^C"])]);
        assert_eq!(clashes.len(), 1, "^C leaves whatever happens");
        assert_eq!(press(&map, "^C", Place::Callsites), Some(Action::Quit));
        // One that is free because another was to leave it, and that one cannot.
        let (map, clashes) = Keymap::new(&[choice("copy", &["Space"]), choice("pause", &["q"])]);
        assert_eq!(clashes.len(), 2);
        assert_eq!(map, Keymap::default());
        // In places that have nothing to do with each other a key may mean two things.
        assert_eq!(Keymap::new(&[choice("freeze", &["c"])]).1, []);
    }
}
