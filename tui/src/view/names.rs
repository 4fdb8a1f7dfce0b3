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

/// The cell of a name: the marker's place, then name and location in `width` columns, the
/// location to the right and dim.
#[must_use]
pub fn one(label: &Label, width: u16) -> Line<'static> {
    lead(whole(label, usize::from(width)))
}

/// The cells of callsites that are seen together, shortened as where names have `usual`
/// columns. Where the name alone, as far as it is shown, would be that of two of them, the
/// place is worth more than the name's beginning.
pub fn callsites<'a>(
    labels: impl Iterator<Item = &'a Label>,
    width: u16,
    usual: u16,
) -> Vec<Line<'static>> {
    let (width, usual) = (usize::from(width), usize::from(usual));
    let all: Vec<_> = labels
        .map(|label| (label, [shortened(label, usual), fitted(label, width, usual)]))
        .collect();
    let mut seen: HashMap<&(String, String), u32> = HashMap::new();
    for shown in all.iter().flat_map(|(_, [there, here])| {
        // One that looks the same in both places is one all the same.
        std::iter::once(there).chain(Some(here).filter(|here| *here != there))
    }) {
        *seen.entry(shown).or_default() += 1;
    }
    let alike = |shown: &(String, String)| seen.get(shown).is_some_and(|n| *n > 1);
    all.iter()
        .map(|(label, shown)| {
            let told = if shown.iter().any(alike) {
                apart(label, usual, width).or_else(|| apart(label, width, width))
            } else {
                None
            };
            let (name, place) = told.unwrap_or_else(|| shown[1].clone());
            lead(laid(label, &name, place, width))
        })
        .collect()
}

fn lead(spans: [Span<'static>; 2]) -> Line<'static> {
    std::iter::once(Span::raw(" ")).chain(spans).collect()
}

/// Name and place as they are told in `usual` columns, where there is room for both at all.
fn apart(label: &Label, usual: usize, width: usize) -> Option<(String, String)> {
    let location = text::clean(&label.location);
    let file = file(&location);
    let taken = Some(text::width(file) + 1).filter(|_| !file.is_empty())?;
    let room = usual.checked_sub(taken).filter(|room| *room >= LEAST_NAME)?;
    let name = text::keep_label(&text::name(&label.function), room).into_owned();
    (text::width(&name) + taken <= width).then(|| (name, file.to_owned()))
}

/// A line of the list that is no callsite.
#[must_use]
pub fn plain(title: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    Line::from(format!(" {}", text::left(&text::keep_start(title, width), width)))
}

/// Name and location in exactly `width` columns, both shortened as where names have `usual`
/// columns: what is told in one way on all screens is known again.
#[must_use]
pub fn spans(label: &Label, width: usize, usual: usize) -> [Span<'static>; 2] {
    let (name, place) = fitted(label, width, usual);
    laid(label, &name, place, width)
}

/// What is shown of both in `width` columns. A place that has no room where names have `usual`
/// ones is shown where there is, and the other way round; a name is another one only where it
/// must be.
fn fitted(label: &Label, width: usize, usual: usize) -> (String, String) {
    let (name, place) = shortened(label, usual);
    let Some(room) = width.checked_sub(text::width(&name)) else {
        return shortened(label, width);
    };
    if !place.is_empty() && text::width(&place) + GAP <= room {
        return (name, place);
    }
    let location = text::clean(&label.location);
    let file = file(&location);
    let place = if text::width(file) + GAP <= room { file.to_owned() } else { String::new() };
    (name, place)
}

/// The same where it stands by itself: as much of both as there is room for.
#[must_use]
pub fn whole(label: &Label, width: usize) -> [Span<'static>; 2] {
    spans(label, width, width)
}

/// The name to the left, and the place to the right.
fn laid(label: &Label, name: &str, place: String, width: usize) -> [Span<'static>; 2] {
    let gap = width.saturating_sub(text::width(name) + text::width(&place));
    let name = format!("{name}{}", " ".repeat(gap));
    let name = if label.named { Span::raw(name) } else { name.dim() };
    [name, place.dim()]
}

/// A place's file and line.
fn file(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or_default()
}

/// What is shown of name and place in `width` columns.
fn shortened(label: &Label, width: usize) -> (String, String) {
    let function = text::name(&label.function);
    let location = text::clean(&label.location);
    let (name_wants, file) = (text::width(&function), file(&location));
    let place = if width >= WIDE {
        // The name has precedence, but the file is always to be seen.
        let least = text::width(file).min(width * 2 / 5);
        let room = width.saturating_sub(name_wants + GAP).max(least);
        text::keep_path(&location, room).into_owned()
    } else if name_wants + GAP + text::width(file) <= width {
        file.to_owned()
    } else {
        String::new()
    };
    let taken = if place.is_empty() { 0 } else { text::width(&place) + GAP };
    let name = text::keep_label(&function, width.saturating_sub(taken)).into_owned();
    (name, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(function: &str, location: &str, width: usize) -> String {
        let label = Label { function: function.into(), location: location.into(), named: true };
        whole(&label, width).iter().map(|s| s.content.as_ref()).collect()
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
            let lines = callsites(all.iter(), width, width);
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
        // Where there is more room they are shortened as there, and all have their places.
        let roomy =
            callsites(all.iter(), 40, 24).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            roomy,
            [
                " …::into_nfa                  nfa.rs:1341",
                " orders::…::fill_cache        cache.rs:88",
                " …::into_nfa                    nfa.rs:12",
                " regex::…::into_nfa                      ",
            ]
        );
        // Without room for both the name stays.
        assert_eq!(at(16)[0], " …::into_nfa");
    }

    #[test]
    fn files_of_one_directory_look_different() {
        let files = ["tui/src/bin/heaptop-demo/main.rs", "tui/src/bin/heaptop-demo/work.rs"];
        let shown = files.map(|file| shown(file, "", 24).trim_end().to_owned());
        assert_eq!(shown, ["…/heaptop-demo/main.rs", "…/heaptop-demo/work.rs"]);
        // What divides, and a function of a trait for such a thing, are no paths.
        assert_eq!(
            text::keep_label("<a/b as orders::Name>::of", 12),
            text::keep_name("<a/b as orders::Name>::of", 12)
        );
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
