//! The export menu: what can be written, and where it goes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{list_row, text};
use crate::app::App;
use crate::app::export::Menu;
use crate::app::keys::Action;

/// Columns of a format's name.
const NAME: usize = 8;

/// Draws the formats, and the path below them.
pub fn draw(app: &App, menu: &Menu, area: Rect, frame: &mut Frame) {
    let line = |y: u16, height: u16| {
        Rect { y: area.y.saturating_add(y), height, ..area }.intersection(area)
    };
    let formats = menu.formats();
    for (y, (at, format)) in (0..area.height).zip(formats.iter().enumerate()) {
        let name = text::left(&format!(" {}", format.extension()), NAME + 1);
        let says = Line::from(vec![Span::raw(name).bold(), format.says().into()]);
        list_row(says, at == menu.cursor.index(), line(y, 1), frame);
    }
    let below = formats.len() as u16;
    let writes = match (&menu.paths, menu.path()) {
        (_, Some(proposal)) => {
            let path = proposal.path.display();
            let writes = match app.key_for(Action::Write) {
                _ if menu.writing.is_some() => format!("writing {path}…"),
                // Without a key for it nothing is written, and the path is still the right one.
                None => path.to_string(),
                Some(key) => format!("{key} writes {path}"),
            };
            match &proposal.taken {
                Some(taken) => format!("{writes}: {taken} is there already"),
                None => writes,
            }
        }
        (Some(Err(why)), None) => app.with_key(why, Action::Path, "chooses another path"),
        _ => "where it goes is being found out…".into(),
    };
    let room = usize::from(area.width).saturating_sub(1) * 3;
    let writes = text::keep_end(&text::clean(&writes), room).into_owned();
    let place = if area.height > below + 1 { below + 1 } else { below };
    let place = Rect { x: area.x + 1, width: area.width - 1, ..line(place, area.height) };
    frame.render_widget(Paragraph::new(writes).wrap(Wrap { trim: true }).dim(), place);
}
