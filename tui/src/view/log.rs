//! Screen 9: what agent, connection and heaptop had to say.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::{format, text, theme};
use crate::app::log::Log;
use crate::session::log::Kind;

/// Columns of the time, and of what a line is about.
const TIME: usize = 15;
const ABOUT: usize = 12;
/// Narrower screens have the text alone behind the time,
const WIDE: u16 = 60;
/// and still narrower ones the text alone.
const MEDIUM: u16 = 40;

/// A row of the screen: the head of a line, or where its text goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    head: Option<(String, Kind)>,
    text: String,
    kind: Kind,
}

/// The rows that the log has in so many columns.
#[must_use]
pub fn rows(log: &Log, width: u16) -> Vec<Row> {
    let room = usize::from(width).saturating_sub(lead(width) + 1).max(8);
    let mut rows = Vec::new();
    for line in log.lines.iter().flatten() {
        let said = text::clean(&line.text).into_owned();
        let mut head = Some((format::moment(line.at_ns, u64::MAX), line.kind));
        for part in text::wrapped(&said, room) {
            rows.push(Row { head: head.take(), text: part, kind: line.kind });
        }
    }
    for (module, frames) in &log.unnamed {
        let module = text::clean(module).into_owned();
        let frames =
            if *frames == 1 { "1 frame has".into() } else { format!("{frames} frames have") };
        let said =
            format!("{frames} no name: {module} is stripped there, or its file is not to be read");
        let mut head = Some(("now".to_owned(), Kind::Viewer));
        for part in text::wrapped(&said, room) {
            rows.push(Row { head: head.take(), text: part, kind: Kind::Viewer });
        }
    }
    rows
}

/// Columns before the text.
const fn lead(width: u16) -> usize {
    match width {
        WIDE.. => 1 + TIME + ABOUT,
        MEDIUM.. => 1 + TIME,
        _ => 1,
    }
}

/// Draws what is in sight.
pub fn draw(log: &Log, area: Rect, frame: &mut Frame) {
    let rows = rows(log, area.width);
    if rows.is_empty() {
        return super::sentence("nothing was said yet".into(), area, frame);
    }
    let page = usize::from(area.height);
    let first = log.first(rows.len(), page);
    let about = area.width >= WIDE;
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(first)) {
        let mut line = Line::from(" ");
        let (time, kind) = match &row.head {
            Some((time, kind)) => (time.as_str(), kind.name()),
            None => ("", ""),
        };
        if area.width >= MEDIUM {
            line.push_span(text::left(time, TIME).dim());
        }
        if about {
            line.push_span(text::left(kind, ABOUT).dim());
        }
        let said = Span::raw(row.text.clone());
        line.push_span(if row.kind == Kind::Loss { said.style(theme::LOSS) } else { said });
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{App, Screen};
    use crate::session::names::Named;
    use crate::session::{Connection, Input};
    use crate::view::testing::{drawn, orders, press, run, screen, text};

    fn first(app: &App, size: (u16, u16)) -> usize {
        let Screen::Log(log) = app.screen() else { panic!("{:?}", app.screen()) };
        log.first(rows(log, size.0).len(), usize::from(app.rooms().body))
    }

    fn eventful() -> crate::session::fixture::Fixture {
        let mut f = orders();
        f.losses.births = 3;
        f.report();
        let why = "the agent closed the connection\x1b[2J";
        f.session.apply(Input::Connection(Connection::Lost(why.into())));
        f.pass(2.0);
        f.session.apply(Input::Connection(Connection::Connected));
        let frame = f.frame("no name");
        f.session.apply(Input::Names(vec![Named { frame, symbols: vec![] }]));
        f
    }

    #[test]
    fn what_happened_is_told_at_every_size() {
        let f = eventful();
        for size in [(20, 5), (80, 24), (120, 40), (300, 80)] {
            let name = format!("log_{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, screen(&f.session, size, "9"));
        }
    }

    #[test]
    fn it_follows_the_last_line_until_one_scrolls() {
        let mut f = eventful();
        let size = (80, 14);
        let mut app = run(&f.session, size, "9");
        let lost = |f: &mut crate::session::fixture::Fixture| {
            f.session.apply(Input::Connection(Connection::Lost("again and again".into())));
            f.session.apply(Input::Connection(Connection::Connected));
        };
        (0..20).for_each(|_| lost(&mut f));
        app.update(crate::app::Message::Refresh, &f.session);
        let end = first(&app, size);
        assert!(end > 10, "{end}");
        press(&mut app, &f.session, "kk");
        assert_eq!(first(&app, size), end - 2);
        (0..5).for_each(|_| lost(&mut f));
        app.update(crate::app::Message::Refresh, &f.session);
        assert_eq!(first(&app, size), end - 2, "it stands");
        press(&mut app, &f.session, "G");
        assert_eq!(first(&app, size), end + 10);
        press(&mut app, &f.session, "g");
        assert_eq!(first(&app, size), 0);
    }

    #[test]
    fn a_mark_is_one_line() {
        let mut f = orders();
        let mut app = run(&f.session, (100, 30), "Mone⏎");
        let at = f.now();
        f.say(heaptop_protocol::message::Mark { at, label: "one".into() });
        app.update(crate::app::Message::Refresh, &f.session);
        assert!(app.note().is_some_and(|note| note.starts_with("marked “one”")));
        press(&mut app, &f.session, "9");
        let shown = text(&drawn(&app, (100, 30)));
        let lines: Vec<&str> = shown.lines().filter(|line| line.contains("“one”")).collect();
        let [line] = lines[..] else { panic!("{shown}") };
        assert!(line.contains("moment      mark “one”"), "{shown}");
    }

    #[test]
    fn what_heaptop_did_is_in_it() {
        let f = orders();
        let mut app = run(&f.session, (100, 30), "m");
        press(&mut app, &f.session, "9");
        let shown = text(&drawn(&app, (100, 30)));
        assert!(shown.contains("viewer      counting in use, objects"), "{shown}");
    }
}
