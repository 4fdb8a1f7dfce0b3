//! Lines that are drawn by the thousand: cells of lists.
//!
//! What is drawn is mostly ASCII, block characters and the few signs of figures: each takes
//! one column, and none joins with another of them. Of spans of these alone no graphemes are
//! looked for; all others go the way of the library. What is seen is the same.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

/// Whether a character takes one column, and joins with none like it.
const fn is_plain(c: char) -> bool {
    matches!(
        c,
        ' '..='~'
            | '±' | 'µ' | '–' | '…' | '·' | '≤' | '≥' | '▲' | '▼' | '▸'
            | '\u{2500}'..='\u{257F}' // lines
            | '\u{2580}'..='\u{259F}' // blocks
    )
}

/// The columns that `text` takes, if that is plain to see.
#[must_use]
pub fn plain_width(text: &str) -> Option<usize> {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Some(text.len());
    }
    let mut width = 0;
    for c in text.chars() {
        if !is_plain(c) {
            return None;
        }
        width += 1;
    }
    Some(width)
}

/// The columns that a span takes.
#[must_use]
pub fn width(span: &Span<'_>) -> usize {
    plain_width(&span.content).unwrap_or_else(|| span.width())
}

/// So many columns of nothing.
#[must_use]
pub fn gap(columns: usize) -> Span<'static> {
    const SPACES: &str = "                                                                ";
    match SPACES.get(..columns) {
        Some(spaces) => Span::raw(spaces),
        None => Span::raw(" ".repeat(columns)),
    }
}

/// Draws a line as the library would.
pub fn line(line: &Line<'_>, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if line.alignment.is_some() {
        return line.render(area, buffer);
    }
    if area.is_empty() || line.spans.iter().all(|span| width(span) == 0) {
        return;
    }
    let mut rest = Rect { height: 1, ..area };
    buffer.set_style(rest, line.style);
    for span in &line.spans {
        if rest.is_empty() {
            break;
        }
        let columns = plain_width(&span.content);
        let taken = columns.unwrap_or_else(|| span.width());
        if columns.is_some() {
            plain(span, rest, buffer);
        } else if taken > 0 {
            span.render(rest, buffer);
        }
        let taken = taken.min(usize::from(rest.width)) as u16;
        rest = Rect { x: rest.x + taken, width: rest.width - taken, ..rest };
    }
}

/// A span of plain characters, as far as there is room.
fn plain(span: &Span<'_>, area: Rect, buffer: &mut Buffer) {
    let first = buffer.index_of(area.x, area.y);
    let cells = &mut buffer.content[first..first + usize::from(area.width)];
    for (cell, c) in cells.iter_mut().zip(span.content.chars()) {
        cell.set_char(c).set_style(span.style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Stylize;
    use unicode_segmentation::UnicodeSegmentation;
    use unicode_width::UnicodeWidthChar;

    #[test]
    fn plain_characters_take_a_column_each_and_join_with_none() {
        let all: Vec<char> =
            (0..=0xffff).filter_map(char::from_u32).filter(|c| is_plain(*c)).collect();
        assert!(all.len() > 200);
        for &a in &all {
            assert_eq!(a.width(), Some(1), "{a:?}");
            for &b in &all {
                assert_eq!(format!("{a}{b}").graphemes(true).count(), 2, "{a:?} {b:?}");
            }
        }
        assert_eq!(
            [plain_width("±9 %"), plain_width("名"), plain_width("e\u{301}")],
            [Some(4), None, None]
        );
        assert_eq!(
            [gap(0).width(), gap(64).width(), gap(65).width(), gap(300).width()],
            [0, 64, 65, 300]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn lines_look_as_the_library_draws_them(
            texts in proptest::collection::vec("([ -~±▁█…–]{0,9}|[名a\u{301}\u{200d}\u{fe0f}▲é]{0,4})", 0..6),
            (x, width, columns) in (0u16..9, 0u16..30, 1u16..30),
            styled in any::<[bool; 3]>(),
        ) {
            let spans = texts.iter().enumerate().map(|(i, text)| {
                let span = Span::raw(text.clone());
                if styled[i % 2] && i % 3 > 0 { span.dim() } else { span }
            });
            let mut text: Line<'_> = spans.collect::<Vec<_>>().into();
            if styled[2] {
                text = text.reversed();
            }
            let whole = Rect { x: 0, y: 0, width: columns, height: 2 };
            let area = Rect { x, y: 1, width, height: 1 };
            let before = || {
                let mut buffer = Buffer::empty(whole);
                buffer.set_string(0, 1, "名名名xyz名名", ratatui::style::Style::new().bold());
                buffer
            };
            let (mut ours, mut theirs) = (before(), before());
            line(&text, area, &mut ours);
            (&text).render(area, &mut theirs);
            prop_assert_eq!(ours, theirs);
        }
    }
}
