//! Names in lists: the function, and where it is.

use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::text;
use crate::query::Label;

/// From this width on a location is shown with its directories.
const WIDE: usize = 36;
/// Columns between a name and its location.
const GAP: usize = 2;

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
