//! The help: the table of keys, what filters are made of, and what the signs mean.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::text;
use crate::app::keymap::Keymap;
use crate::app::keys::{Binding, LEGEND, SCREENS};
use crate::query::filter::PREDICATES;

/// Columns of the keys.
const KEYS: usize = 16;
/// Columns of what they do, where there is room for the places behind it.
const SAYS: usize = 74;

/// Draws the lines from `offset` on.
pub fn draw(keymap: &Keymap, offset: usize, area: Rect, frame: &mut Frame) {
    let lines = keymap
        .lines()
        .map(|(b, keys)| line(keys, b.says, &places(b), area.width))
        .chain([Line::default()])
        .chain(PREDICATES.iter().map(|p| line(p.shown, p.says, "", area.width)))
        .chain([Line::default()])
        .chain(LEGEND.iter().map(|(sign, says)| line(sign, says, "", area.width)));
    for (y, line) in (area.y..area.bottom()).zip(lines.skip(offset)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// How many lines there are.
#[must_use]
pub fn lines(keymap: &Keymap) -> usize {
    keymap.lines().count() + 1 + PREDICATES.len() + 1 + LEGEND.len()
}

fn line(keys: &str, says: &str, places: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let keys_width = KEYS.min(width / 3);
    let keys = text::left(&text::keep_start(keys, keys_width), keys_width);
    let room = width.saturating_sub(keys_width + 3);
    let mut line = Line::from(vec![Span::raw(" "), keys.bold(), Span::raw("  ")]);
    if room > SAYS + 10 {
        line.push_span(Span::raw(text::left(says, SAYS)));
        line.push_span(format!("  {places}").dim());
    } else {
        line.push_span(Span::raw(text::keep_start(says, room).into_owned()));
    }
    line
}

/// Where it works, if not on all screens.
fn places(binding: &Binding) -> String {
    if SCREENS.iter().all(|place| binding.places.contains(place)) {
        return String::new();
    }
    let names: Vec<&str> = binding.places.iter().map(|place| place.name()).collect();
    names.join(", ")
}
