//! The lowest lines: the filter, and the keys that work here.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Stylize};
use ratatui::text::{Line, Span};

use super::{format, text};
use crate::app::keys::Action;
use crate::app::typed::CLEAR;
use crate::app::{App, Screen, Typed, Wanted};
use crate::export;
use crate::query::filter;

/// Columns between a key and the next.
const GAP: usize = 2;
/// What is done most: seen on 80 columns, wherever it can be done.
const CHIEF: [Action; 8] = [
    Action::Drill,
    Action::Details,
    Action::Back,
    Action::Filter,
    Action::Export,
    Action::Mark,
    Action::Help,
    Action::Quit,
];

/// The filter, while it is typed or holds.
pub fn filter_line(app: &App, area: Rect, frame: &mut Frame) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let Some((kind, typed, cursor)) = app.prompt() else {
        held(app, area, frame);
        return;
    };
    let (lead, hint) = match kind {
        Typed::Filter(_) => (" / ", ""),
        Typed::Find(_) | Typed::Target(_) => (" find ", ""),
        Typed::Limit => (" limit of bytes in use ", "  such as 2G; nothing: none"),
        Typed::Mark => (" mark as ", ""),
        Typed::Path(_) => (" write to ", ""),
    };
    let room = width.saturating_sub(lead.len() + 2);
    let (shown, hidden) = text::window(&text::clean(typed), room, cursor);
    let mut line = Line::from(vec![lead.bold(), shown.clone().bold()]);
    let wrong = app.wrong_filter();
    let hint = match wrong {
        Some(wrong) => format!("  {}", text::clean(&wrong.says)),
        None => hint.to_owned(),
    };
    let left = width.saturating_sub(text::width(&shown) + lead.len() + 1);
    if text::width(&hint) < left {
        line.push_span(Span::raw(hint).dim());
    } else if wrong.is_some() && left > 12 {
        line.push_span(Span::raw(text::keep_start(&hint, left).into_owned()).dim());
    }
    frame.render_widget(line, area);
    if let Some(wrong) = wrong {
        mark(wrong.at, lead.len(), hidden, app, area, frame);
    }
    let column = lead.len() + cursor.saturating_sub(hidden).min(room);
    if column < width {
        frame.set_cursor_position(Position::new(area.x + column as u16, area.y));
    }
}

/// What the rows are of, and the filter that holds.
fn held(app: &App, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let mut line = Line::default();
    if let Some((kind, name)) = app.class() {
        line.push_span(format!(" of the {kind} ").dim());
        let name = text::clean(name);
        let room = width.saturating_sub(line.width() + 2);
        line.push_span(text::keep_name(&name, room).into_owned().bold());
        line.push_span(" ");
    }
    let filter = text::clean(app.filter()).into_owned();
    if !filter.is_empty() && line.width() + 16 < width {
        line.push_span(" filter ".dim());
        let room = width.saturating_sub(line.width() + 1);
        line.push_span(text::keep_start(&filter, room).into_owned().bold());
        let table =
            matches!(app.screen(), Screen::Callsites(_) | Screen::Promotion(_) | Screen::Leaks(_));
        let parsed = filter::parse(&app.question().filter).ok();
        let hides = parsed.as_ref().is_some_and(filter::Filter::hides);
        let trees = "  hide: is for trees and flamegraphs";
        if table && hides && line.width() + text::width(trees) < width {
            line.push_span(trees.dim());
        }
        let of_blocks = parsed.is_some_and(|filter| filter.is_of_blocks());
        let came = app.came();
        let since = format!("  of single blocks: what was over before {came} is in no figure");
        if !app.choosing() && of_blocks && line.width() + text::width(&since) < width {
            line.push_span(since.dim());
        }
    }
    frame.render_widget(line, area);
}

/// Turns the colours of the character round that is wrong; behind the last that of the
/// space there.
fn mark(at: usize, lead: usize, hidden: usize, app: &App, area: Rect, frame: &mut Frame) {
    let before: String =
        app.prompt().map(|(_, typed, _)| typed.chars().take(at).collect()).unwrap_or_default();
    let Some(column) = text::width(&text::clean(&before)).checked_sub(hidden) else { return };
    let x = (lead + column).min(usize::from(area.width) - 1) as u16;
    if let Some(cell) = frame.buffer_mut().cell_mut(Position::new(area.x + x, area.y)) {
        cell.modifier.insert(Modifier::REVERSED);
    }
}

/// Keys at the left, as many as fit, in the order of the table; at the right how many rows
/// there are, in fewer words where the keys that are used most have no room otherwise.
pub fn keys(app: &App, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    if let Some(wanted) = app.wanted() {
        return question(app, wanted, area, frame);
    }
    let here = match app.prompt() {
        Some((typed, ..)) => {
            let keys = typed.keys().iter();
            let worth = |key| if key == CLEAR { Worth::Other } else { Worth::Chief };
            keys.map(|&(key, short)| (key, short, worth(key))).collect()
        }
        None => of_screen(app),
    };
    let size = |key: &str, short: &str| text::width(key) + 1 + text::width(short) + GAP;
    let chief = here.iter().filter(|(.., worth)| *worth != Worth::Other);
    let chief: usize = chief.map(|(key, short, _)| size(key, short)).sum();
    let counts = counts(app);
    let fits = |count: &&String| text::width(count) + chief <= width;
    // Where there is no room for all of those keys anyhow, words are worth more.
    let otherwise = if chief > width { counts.first() } else { counts.last() };
    let count = counts.iter().find(fits).or(otherwise).cloned().unwrap_or_default();
    let count = if text::width(&count) + 20 > width { String::new() } else { count };
    // Behind the last key there is no other.
    let mut left = width.saturating_sub(text::width(&count));
    let mut fits: Vec<bool> = vec![false; here.len()];
    for wanted in [Some(Worth::Must), Some(Worth::Purpose), None] {
        for (fits, (key, short, worth)) in fits.iter_mut().zip(&here) {
            let size = size(key, short);
            let first = matches!(worth, Worth::Must | Worth::Purpose).then_some(*worth);
            if first == wanted && size <= left {
                *fits = true;
                left -= size;
            }
        }
    }
    let mut line = Line::from(" ");
    for ((key, short, _), _) in here.iter().zip(&fits).filter(|(_, fits)| **fits) {
        line.push_span(key.bold());
        line.push_span(format!(" {short}  ").dim());
    }
    frame.render_widget(line, area);
    let (count, columns) = (Line::from(count.as_str()), text::width(&count).min(width) as u16);
    let area = Rect { x: area.right() - columns, width: columns, ..area };
    frame.render_widget(count, area);
}

/// Which keys are shown before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Before all: help and quit, and what goes on again.
    Must,
    /// What the screen is there for.
    Purpose,
    /// Of [`CHIEF`].
    Chief,
    Other,
}

/// The keys of the screen that do something now, each with what it does.
fn of_screen(app: &App) -> Vec<(&str, &str, Worth)> {
    let place = app.screen().place();
    let mut here: Vec<(&str, &str, Worth)> = Vec::new();
    let mut known: Vec<Action> = Vec::new();
    for (binding, keys) in app.keymap().lines() {
        let action = binding.action;
        // What two keys do is said of one.
        let new = !binding.short.is_empty() && !known.contains(&action);
        if !new || !binding.places.contains(&place) {
            continue;
        }
        known.push(action);
        let worth = match action {
            Action::Help | Action::Quit => Worth::Must,
            Action::Pause if app.paused() => Worth::Must,
            Action::ToggleColumn => Worth::Purpose,
            _ if CHIEF.contains(&action) => Worth::Chief,
            _ => Worth::Other,
        };
        if let Some(short) = app.offered(action, binding.short) {
            here.push((key(keys), short, worth));
        }
    }
    here
}

/// A question in place of the keys: its answers are the keys that work now.
fn question(app: &App, wanted: Wanted, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let mut long = "  y yes  n no".to_owned();
    if let Wanted::Interval { governed, .. } = wanted {
        for (action, short) in [(Action::Finer, "finer"), (Action::Coarser, "coarser")] {
            if let Some(key) = app.key_for(action) {
                long.extend(["  ", &key, " ", short]);
            }
        }
        if !governed {
            long += "  a auto";
        }
    }
    let answers = [long.as_str(), " y/n"];
    let [long, short] = wanted.question();
    let forms = [(&long, answers[0]), (&short, answers[0]), (&short, answers[1])];
    let fits = |(asked, answers): &(&String, &str)| 1 + text::width(asked) + answers.len() <= width;
    let (asked, answers) = forms.into_iter().find(fits).unwrap_or(forms[2]);
    let asked = text::keep_start(asked, width.saturating_sub(1 + answers.len()));
    let line = Line::from(vec![" ".into(), asked.into_owned().bold(), Span::raw(answers)]);
    frame.render_widget(line, area);
}

/// The first of a binding's keys.
fn key(shown: &str) -> &str {
    shown.split_once(", ").map_or(shown, |(first, _)| first)
}

/// How many rows there are, the most words first.
fn counts(app: &App) -> Vec<String> {
    let of = |shown: usize, of: usize, [one, many]: [&str; 2]| {
        let short = format!("{shown}/{of} ");
        let (what, rows) = if of == 1 { (one, "row") } else { (many, "rows") };
        let (shown, of) = (format::grouped(shown), format::grouped(of));
        if shown == of {
            vec![format!("{of} {what} "), format!("{of} {rows} "), format!("{of} ")]
        } else {
            vec![format!("{shown} of {of} {what} "), format!("{shown} of {of} "), short]
        }
    };
    match (app.screen(), app.table()) {
        (Screen::Callsites(_), Some(table)) => {
            of(table.len, table.of, app.question().group.names())
        }
        (Screen::Help { offset }, _) => {
            let lines = app.help().map_or(0, |help| help.lines.len());
            let last = (offset + usize::from(app.rooms().body)).min(lines);
            vec![format!("lines {} to {last} of {lines} ", offset + 1)]
        }
        // Else it stands with the crumbs.
        (Screen::Callers(_), _) if app.rooms().crumbs == 0 => {
            vec![format!("{} ", export::metric(app.metric()))]
        }
        (Screen::Promotion(promotion), _) => {
            let len = promotion.answer.as_ref().map(|answer| answer.len);
            len.map_or_else(Vec::new, |len| of(len, len, ["callsite", "callsites"]))
        }
        (Screen::Leaks(leaks), _) => {
            let len = leaks.answer.as_ref().map(|answer| answer.len);
            len.map_or_else(Vec::new, |len| of(len, len, ["callsite", "callsites"]))
        }
        (Screen::Targets(targets), _) => {
            let (shown, all) = targets.counts();
            of(shown, all, ["target", "targets"])
        }
        (
            Screen::Callers(_)
            | Screen::Flame(_)
            | Screen::Threads(_)
            | Screen::Source(_)
            | Screen::Log(_)
            | Screen::Details(_)
            | Screen::Timeline(_)
            | Screen::Columns { .. }
            | Screen::Export(_),
            _,
        )
        | (Screen::Callsites(_), None) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::session::fixture::Fixture;
    use crate::session::{Connection, Input};
    use crate::view::testing::{orders, screen};

    fn bar(f: &Fixture, width: u16, keys: &str) -> String {
        screen(&f.session, (width, 24), keys).lines().last().unwrap().to_owned()
    }

    #[test]
    fn narrow_screens_name_the_key_that_they_are_there_for() {
        let f = orders();
        for width in [36, 40, 300] {
            let bar = bar(&f, width, "c");
            for key in ["Space show or hide", "? help", "q quit"] {
                assert!(bar.contains(key), "{width}: {bar}");
            }
        }
        assert!(bar(&f, 20, "c").contains("? help"));
    }

    #[test]
    fn a_line_that_is_typed_has_keys_of_its_own() {
        let f = orders();
        for (keys, wanted) in [
            ("/cache", " Enter keeps it  Esc takes it back  Up, Down those before  ^U clears"),
            ("Mx", " Enter marks now  Esc does not  ^U clears the line"),
            ("7L", " Enter sets it  Esc does not  ^U clears the line"),
            ("3f", " Enter keeps it  Esc takes it back  ^U clears the line"),
        ] {
            let bar = bar(&f, 100, keys);
            assert!(bar.starts_with(wanted) && !bar.contains(" quit"), "{keys}: {bar}");
        }
        assert!(bar(&f, 80, "/cache").contains(" of 5 "), "rows are counted as it is typed");
    }

    #[test]
    fn what_would_be_refused_is_not_offered() {
        let mut f = orders();
        let shown = bar(&f, 300, "");
        for key in [" callers ", " details ", " mark ", " finer ", " pause "] {
            assert!(shown.contains(key), "{key}: {shown}");
        }
        let files = bar(&f, 300, "tt");
        assert!(files.contains("Enter callsites  ") && !files.contains(" details "), "{files}");
        let sizes = bar(&f, 300, "tttt");
        assert!(!sizes.contains("Enter ") && !sizes.contains(" details "), "{sizes}");
        assert!(bar(&f, 80, " ").contains("Space go on  "), "that is seen before others");
        f.session.apply(Input::Connection(Connection::Ended("gone".into())));
        let ended = bar(&f, 300, "");
        assert!(!ended.contains(" mark ") && !ended.contains(" finer "), "{ended}");
        let title = screen(&f.session, (120, 24), "((").lines().next().unwrap().to_owned();
        assert!(title.contains("\\ end ") && !title.contains(" live "), "{title}");
    }

    #[test]
    fn one_is_no_many() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "site"]);
        f.alloc(stack, 100);
        f.pass(1.0);
        for (width, keys, wanted) in
            [(140, "", "1 callsite"), (140, "ttttt", "1 thread"), (140, "/x", "0 of 1 callsite")]
        {
            let bar = bar(&f, width, keys);
            assert!(bar.ends_with(wanted), "{bar}");
        }
        let rows = (40..140).map(|width| bar(&f, width, "")).find(|bar| bar.contains(" row"));
        assert!(rows.as_ref().is_none_or(|bar| bar.ends_with("1 row")), "{rows:?}");
    }
}
