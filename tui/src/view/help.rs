//! The help: the keys of the screen that it was asked on, those of all screens, what the
//! signs mean, what filters are made of, and the keys of the other screens. All of it from
//! the table of keys. Nothing is cut: what finds no room in a line goes on in the next.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::text;
use crate::app::keymap::Keymap;
use crate::app::keys::{Action, Binding, LEGEND, Place, SCREENS};
use crate::app::words;
use crate::query::filter::PREDICATES;

/// Columns of the keys.
const KEYS: usize = 16;
/// Longer lines are hard to read.
const WIDEST: usize = 110;

/// All of it.
pub struct Help {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// Where its parts begin: the places of their headings among the lines.
    pub parts: Vec<usize>,
}

/// Draws the lines from `offset` on.
pub fn draw(help: Help, offset: usize, area: Rect, frame: &mut Frame) {
    for (y, line) in (area.y..area.bottom()).zip(help.lines.into_iter().skip(offset)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// The help of a screen, on so many columns.
#[must_use]
pub fn help(keymap: &Keymap, place: Place, width: u16) -> Help {
    let mut help = Help { lines: Vec::new(), parts: Vec::new() };
    let width = usize::from(width).min(WIDEST);
    if let Some(key) = keymap.key_of(Action::Right, Place::Help) {
        let more = "this screen, all screens, signs (± – < ▲), filters, the other screens";
        let said = if place == Place::Targets {
            format!("{key} goes to the next part")
        } else {
            format!("{key} goes to the next part: {more}")
        };
        help.said(&said, width);
    }
    help.part(&format!("Keys on {}", place.title()), width);
    for (binding, keys) in keymap.lines().filter(|(b, _)| b.places.contains(&place)) {
        if !is_general(binding) {
            help.entry(keys, binding.says, width);
        }
    }
    help.words(place, width);
    help.part("Keys on all screens", width);
    for (binding, keys) in keymap.lines().filter(|(b, _)| is_general(b)) {
        if binding.places.contains(&place) {
            help.entry(keys, binding.says, width);
        } else if place != Place::Targets {
            help.entry(keys, &format!("{} (not here)", binding.says), width);
        }
    }
    if place == Place::Targets {
        return help;
    }
    help.part("What the signs mean", width);
    for (sign, says) in LEGEND {
        help.entry(sign, says, width);
    }
    help.part("Filters", width);
    for predicate in PREDICATES {
        help.entry(predicate.shown, predicate.says, width);
    }
    for other in Place::ALL.into_iter().filter(|other| *other != place) {
        help.part(&format!("Keys on {}", other.title()), width);
        for (binding, keys) in keymap.lines().filter(|(b, _)| b.places.contains(&other)) {
            if !is_general(binding) {
                help.entry(keys, binding.says, width);
            }
        }
        help.words(other, width);
    }
    help
}

/// Whether it works on all screens that show the target.
fn is_general(binding: &Binding) -> bool {
    SCREENS.iter().all(|place| binding.places.contains(place))
}

impl Help {
    fn part(&mut self, title: &str, width: usize) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.parts.push(self.lines.len());
        self.lines
            .push(Line::from(text::keep_start(&format!(" {title}"), width).into_owned()).bold());
    }

    /// What the words of a screen mean, if it has any.
    fn words(&mut self, place: Place, width: usize) {
        let words = words::of(place);
        if !words.is_empty() {
            self.part(&format!("Words on {}", place.title()), width);
        }
        for (word, says) in words {
            self.entry(word, says, width);
        }
    }

    fn said(&mut self, said: &str, width: usize) {
        let lines = broken(said, width.saturating_sub(2));
        self.lines.extend(lines.into_iter().map(|line| Line::from(format!(" {line}")).dim()));
    }

    fn entry(&mut self, keys: &str, says: &str, width: usize) {
        let keys_width = KEYS.min(width / 3);
        let mut keys = broken(keys, keys_width).into_iter();
        let mut says = broken(says, width.saturating_sub(keys_width + 4)).into_iter();
        loop {
            let (key, said) = (keys.next(), says.next());
            if key.is_none() && said.is_none() {
                return;
            }
            let key = text::left(&key.unwrap_or_default(), keys_width);
            let lead = [Span::raw("  "), key.bold(), Span::raw("  ")];
            let mut line = Line::from(lead.to_vec());
            line.push_span(Span::raw(said.unwrap_or_default()));
            self.lines.push(line);
        }
    }
}

/// Text in lines of so many columns, broken between words; a word that is longer is cut.
fn broken(said: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in said.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text::width(line) + 1 + text::width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(text::keep_start(word, columns).into_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::keys::{BINDINGS, EVERYWHERE};

    fn words(help: &Help) -> String {
        let lines: Vec<String> = help.lines.iter().map(ToString::to_string).collect();
        lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nothing_is_cut_from_eighty_columns_on() {
        for width in [80, 100, 160, 300] {
            for &place in EVERYWHERE {
                let help = help(&Keymap::default(), place, width);
                for line in &help.lines {
                    assert!(line.width() <= usize::from(width), "{line}");
                }
                let words = words(&help);
                let here = BINDINGS.iter().filter(|b| b.places.contains(&place));
                let mut wanted: Vec<(&str, &str)> = here.map(|b| (b.shown, b.says)).collect();
                if place != Place::Targets {
                    wanted.extend(BINDINGS.iter().map(|b| (b.shown, b.says)));
                    wanted.extend(PREDICATES.iter().map(|p| (p.shown, p.says)));
                    wanted.extend(LEGEND);
                    wanted.extend(EVERYWHERE.iter().flat_map(|&place| words::of(place)));
                }
                for (keys, says) in wanted {
                    // Keys that go on in a second line stand between what is said.
                    let whole =
                        text::width(keys) > KEYS || words.contains(&format!("{keys} {says}"));
                    assert!(whole, "{place:?} on {width}: {keys} {says}");
                }
            }
        }
    }

    /// Headings and labels that say nothing by themselves stand in the help of their screen,
    /// in a line each, before anything of other screens.
    #[test]
    fn words_that_nobody_knows_are_explained_on_their_screen() {
        for &place in EVERYWHERE {
            for (word, says) in words::of(place) {
                let fits = text::width(word) <= KEYS && text::width(says) <= 80 - KEYS - 4;
                assert!(fits, "{place:?}: {word} {says}");
            }
        }
        let wanted: [(Place, &[&str]); 3] = [
            (Place::Promotion, &["born young", "rate", "dies at", "measured", "followed for"]),
            (Place::Leaks, &["old", "age", "born before", "born 1 to 4", "slack", "unexplained"]),
            (Place::Details, &["stay", "← moved", "of … freed", "steps a chain"]),
        ];
        for (place, wanted) in wanted {
            let help = help(&Keymap::default(), place, 80);
            let lines: Vec<String> = help.lines.iter().map(ToString::to_string).collect();
            let general = lines.iter().position(|line| line == " Keys on all screens").unwrap();
            for word in wanted {
                let begins = format!("  {word}  ");
                let said = lines[..general].iter().any(|line| line.starts_with(&begins));
                assert!(said, "{word} of {place:?}");
            }
        }
    }

    #[test]
    fn the_keys_of_the_screen_come_first_and_then_those_of_all() {
        let of = |place| help(&Keymap::default(), place, 80);
        let row = |help: &Help, text: &str| {
            help.lines.iter().position(|line| line.to_string().contains(text)).unwrap()
        };
        let flame = of(Place::Flame);
        assert!(row(&flame, "Keys on Flame") < row(&flame, "stay at this moment"));
        assert!(row(&flame, "stay at this moment") < row(&flame, "Keys on all screens"));
        assert!(row(&flame, "pause the screen") < row(&flame, "What the signs mean"));
        assert!(row(&flame, "What the signs mean") < row(&flame, "Keys on Callsites"));
        assert!(row(&flame, "who calls the selected callsite") > row(&flame, "Keys on Callsites"));
        let titles: Vec<String> =
            flame.parts.iter().map(|at| flame.lines[*at].to_string()).collect();
        assert_eq!(
            titles[..4],
            [" Keys on Flame", " Keys on all screens", " What the signs mean", " Filters"]
        );
        let with_words = EVERYWHERE.iter().filter(|place| !words::of(**place).is_empty()).count();
        assert_eq!(titles.len(), 4 + EVERYWHERE.len() - 1 + with_words);
        let targets = words(&of(Place::Targets));
        assert!(targets.contains("attach to the selected target") && targets.contains("quit"));
        assert!(!targets.contains("pause the screen"), "nothing of that works there");
        assert!(words(&of(Place::Log)).contains("(not here)"));
    }
}
