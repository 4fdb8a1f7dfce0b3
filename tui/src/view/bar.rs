//! The lowest lines: the filter, and the keys that work here.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Stylize};
use ratatui::text::{Line, Span};

use super::{format, text};
use crate::app::keys::Action;
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
        Typed::Filter(_) => (" / ", "  Enter keeps it, Esc takes it back"),
        Typed::Find(_) | Typed::Target(_) => (" find ", "  Enter keeps it, Esc takes it back"),
        Typed::Limit => (" limit of bytes in use ", "  such as 2G; nothing: none"),
        Typed::Mark => (" mark as ", "  Enter marks this moment, Esc does not"),
        Typed::Path(_) => (" write to ", "  Enter takes it, Esc does not"),
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
        let since = "  of single blocks: what was over before heaptop came is in no figure";
        if !app.choosing() && of_blocks && line.width() + text::width(since) < width {
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
    let place = app.screen().place();
    let mut here: Vec<(&str, &str, Action)> = Vec::new();
    for (binding, keys) in app.keymap().lines() {
        // What two keys do is said of one.
        let known = here.iter().any(|(.., action)| *action == binding.action);
        if binding.places.contains(&place) && !binding.short.is_empty() && !known {
            here.push((key(keys), binding.short, binding.action));
        }
    }
    // Help and quit come last, and must be seen before any other.
    let must = |short: &str| matches!(short, "help" | "quit");
    let size = |key: &str, short: &str| text::width(key) + 1 + text::width(short) + GAP;
    let chief = here.iter().filter(|(.., action)| CHIEF.contains(action));
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
    for wanted in [true, false] {
        for (fits, (key, short, _)) in fits.iter_mut().zip(&here) {
            let size = size(key, short);
            if must(short) == wanted && size <= left {
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
    let of = |shown: usize, of: usize, many: &str| {
        let short = format!("{shown}/{of} ");
        let (shown, of) = (format::grouped(shown), format::grouped(of));
        if shown == of {
            vec![format!("{of} {many} "), format!("{of} rows "), format!("{of} ")]
        } else {
            vec![format!("{shown} of {of} {many} "), format!("{shown} of {of} "), short]
        }
    };
    match (app.screen(), app.table()) {
        (Screen::Callsites(_), Some(table)) => {
            let [_, many] = app.question().group.names();
            of(table.len, table.of, many)
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
            len.map_or_else(Vec::new, |len| of(len, len, "callsites"))
        }
        (Screen::Leaks(leaks), _) => {
            let len = leaks.answer.as_ref().map(|answer| answer.len);
            len.map_or_else(Vec::new, |len| of(len, len, "callsites"))
        }
        (Screen::Targets(targets), _) => match targets.counts() {
            (1, 1) => vec!["1 target ".into()],
            (shown, all) => of(shown, all, "targets"),
        },
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
