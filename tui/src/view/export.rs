//! The export menu: what can be written, and where it goes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::{list_row, text};
use crate::app::App;
use crate::app::export::Menu;
use crate::app::keys::Action;

/// Columns of a format's name.
const NAME: usize = 8;

/// Most lines that the path has.
const MOST_LINES: usize = 3;

/// How many of so many formats are seen in so many lines: the path comes first.
#[must_use]
pub fn rows(formats: usize, lines: usize) -> usize {
    formats.min(lines.saturating_sub(1).max(1))
}

/// Draws the formats, and the path below them.
pub(super) fn draw(app: &App, menu: &Menu, area: Rect, frame: &mut Frame) {
    let line = |y: usize| {
        let y = area.y.saturating_add(y as u16);
        Rect { y, height: 1, ..area }.intersection(area)
    };
    let formats = menu.formats();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let listed = rows(formats.len(), height);
    // The screen may be smaller by now than when the selection was moved.
    let first = menu.cursor.offset().max((menu.cursor.index() + 1).saturating_sub(listed));
    for (y, (at, format)) in (0..listed).zip(formats.iter().enumerate().skip(first)) {
        let name = text::left(&format!(" {}", format.extension()), NAME + 1);
        let says = text::keep_start(format.says(), width.saturating_sub(NAME + 1)).into_owned();
        let says = Line::from(vec![Span::raw(name).bold(), says.into()]);
        list_row(says, at == menu.cursor.index(), line(y), frame);
    }
    let (columns, most) = (width.saturating_sub(1).max(1), height.saturating_sub(listed));
    let said = writes(app, menu, columns, most.min(MOST_LINES));
    let gap = usize::from(most > said.len());
    let y = area.y.saturating_add((listed + gap) as u16);
    let height = most.saturating_sub(gap).min(MOST_LINES) as u16;
    let place = Rect { x: area.x + 1, y, width: area.width - 1, height }.intersection(area);
    super::lines(said, place, frame.buffer_mut(), Stylize::dim);
}

/// Where what is selected goes, in at most so many lines; or why it goes nowhere.
fn writes(app: &App, menu: &Menu, columns: usize, most: usize) -> Vec<String> {
    let Some(proposal) = menu.path() else {
        let why = match &menu.paths {
            Some(Err(why)) => app.with_key(why, Action::Path, "chooses another path"),
            _ => "where it goes is being found out…".into(),
        };
        return text::wrapped(&text::clean(&why), columns);
    };
    let path = proposal.path.display().to_string();
    let path = text::clean(&path).into_owned();
    let (lead, path) = match app.key_for(Action::Write) {
        _ if menu.writing.is_some() => ("writing ".to_owned(), format!("{path}…")),
        // Without a key for it nothing is written, and the path is still the right one.
        None => (String::new(), path),
        Some(key) => (format!("{key} writes "), path),
    };
    let fits = |said: &str| {
        let may = text::width(said) <= columns * most;
        may.then(|| text::wrapped(said, columns)).filter(|lines| lines.len() <= most)
    };
    let taken = proposal.taken.as_ref().map(|taken| {
        let taken = text::clean(taken);
        format!("{lead}{path}: {taken} is there already")
    });
    // Of a path the end tells most: the file's name.
    let cut = |kept| fits(&format!("{lead}{}", text::keep_end(&path, kept)));
    let longest = || {
        let (mut least, mut most) = (0, columns * most);
        while least < most {
            let kept = (least + most).div_ceil(2);
            (least, most) = if cut(kept).is_some() { (kept, most) } else { (least, kept - 1) };
        }
        cut(least)
    };
    taken
        .and_then(|said| fits(&said))
        .or_else(|| fits(&format!("{lead}{path}")))
        .or_else(longest)
        .unwrap_or_default()
}
