//! Names in lists: the function, and where it is.

use std::collections::HashMap;

use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::text;
use crate::query::Label;

/// From this width on a location is shown with its directories.
const WIDE: usize = 36;
/// Columns between a name and its location.
const GAP: usize = 2;
/// With less room than this a name says nothing.
const LEAST_NAME: usize = 6;

/// The cell of a callsite: the marker's place, then name and location in
/// `width` columns, the location to the right and dim.
#[must_use]
pub fn callsite(label: &Label, width: u16) -> Line<'static> {
    let mut line = Line::from(" ");
    for span in spans(label, usize::from(width)) {
        line.push_span(span);
    }
    line
}

/// The cells of callsites that are seen together. Where the name alone, as far as it is
/// shown, would be that of two of them, the place is worth more than the name's beginning.
pub fn callsites<'a>(labels: impl Iterator<Item = &'a Label>, width: u16) -> Vec<Line<'static>> {
    let all: Vec<_> = labels
        .map(|label| {
            let line = callsite(label, width);
            (label, line.to_string(), line)
        })
        .collect();
    let mut seen: HashMap<String, u32> = HashMap::new();
    for (_, text, _) in &all {
        *seen.entry(text.clone()).or_default() += 1;
    }
    all.into_iter()
        .map(|(label, text, line)| match seen.get(&text) {
            Some(2..) => apart(label, usize::from(width)).unwrap_or(line),
            _ => line,
        })
        .collect()
}

/// Name and place in `width` columns, where there is room for both at all.
fn apart(label: &Label, width: usize) -> Option<Line<'static>> {
    let location = text::clean(&label.location);
    let file = location.rsplit('/').next().filter(|file| !file.is_empty())?;
    let room = width.checked_sub(text::width(file) + 1).filter(|room| *room >= LEAST_NAME)?;
    let function = text::name(&label.function);
    let name = text::left(&text::keep_name(&function, room), room);
    Some(Line::from(vec![Span::raw(" "), Span::raw(name), Span::raw(" "), file.to_owned().dim()]))
}

/// A line of the list that is no callsite.
#[must_use]
pub fn plain(title: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    Line::from(format!(" {}", text::left(&text::keep_start(title, width), width)))
}

/// Name and location in exactly `width` columns.
#[must_use]
pub fn spans(label: &Label, width: usize) -> [Span<'static>; 2] {
    let function = text::name(&label.function);
    let location = text::clean(&label.location);
    let name_wants = text::width(&function);
    let shown = if width >= WIDE {
        // The name has precedence, but the file is always to be seen.
        let file = text::width(location.rsplit('/').next().unwrap_or_default());
        let room = width.saturating_sub(name_wants + GAP).max(file.min(width * 2 / 5));
        text::keep_path(&location, room).into_owned()
    } else {
        let file = location.rsplit('/').next().unwrap_or_default();
        let fits = name_wants + GAP + text::width(file) <= width;
        if fits { file.to_owned() } else { String::new() }
    };
    let taken = if shown.is_empty() { 0 } else { text::width(&shown) + GAP };
    let name = text::keep_name(&function, width.saturating_sub(taken));
    let gap = width.saturating_sub(text::width(&name) + text::width(&shown));
    let name = format!("{name}{}", " ".repeat(gap));
    let name = if label.named { Span::raw(name) } else { name.dim() };
    [name, shown.dim()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(function: &str, location: &str, width: usize) -> String {
        let label = Label { function: function.into(), location: location.into(), named: true };
        spans(&label, width).iter().map(|s| s.content.as_ref()).collect()
    }

    #[test]
    fn callsites_that_would_look_alike_have_their_places() {
        let label = |function: &str, location: &str| Label {
            function: function.into(),
            location: location.into(),
            named: true,
        };
        let all = [
            label("regex::nfa::Inner::into_nfa", "src/nfa.rs:1341"),
            label("orders::cache::fill_cache", "src/cache.rs:88"),
            label("regex::nfa::Inner::into_nfa", "src/nfa.rs:12"),
            label("regex::nfa::Inner::into_nfa", ""),
        ];
        let at = |width| -> Vec<String> {
            let lines = callsites(all.iter(), width);
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
        };
        assert_eq!(
            at(24),
            [
                " …::into_nfa  nfa.rs:1341",
                " orders::…::fill_cache",
                " …::into_nfa    nfa.rs:12",
                " regex::…::into_nfa",
            ]
        );
        // Without room for both the name stays.
        assert_eq!(at(16)[0], " …::into_nfa");
    }

    #[test]
    fn the_place_is_shown_as_far_as_it_fits() {
        assert_eq!(shown("fill_cache", "orders/src/cache.rs:88", 24), "fill_cache   cache.rs:88");
        assert_eq!(shown("fill_cache", "orders/src/cache.rs:88", 22), "fill_cache            ");
        assert_eq!(
            shown("fill_cache", "orders/src/cache.rs:88", 42),
            "fill_cache          orders/src/cache.rs:88"
        );
        assert_eq!(
            shown("orders::cache::Cache<K, V>::fill_with_defaults", "orders/src/cache.rs:88", 44),
            "orders::…::fill_with_defaults    cache.rs:88"
        );
    }
}
