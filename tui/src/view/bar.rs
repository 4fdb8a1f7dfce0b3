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

/// Keys at the left, as many as fit; at the right how many rows there are.
pub fn keys(app: &App, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    if let Some(wanted) = app.wanted() {
        return question(app, wanted, area, frame);
    }
    let count = count(app);
    let count = if text::width(&count) + 20 > width { String::new() } else { count };
    let room = width.saturating_sub(text::width(&count) + 1);
    let place = app.screen().place();
    let here: Vec<_> = app
        .keymap()
        .lines()
        .filter(|(b, _)| b.places.contains(&place) && !b.short.is_empty())
        .map(|(b, keys)| (key(keys), b.short))
        .collect();
    // Help and quit come last, and must be seen before any other.
    let must = |short: &str| matches!(short, "help" | "quit");
    let size = |key: &str, short: &str| text::width(key) + 1 + text::width(short) + 2;
    let mut left = room;
    let mut fits: Vec<bool> = vec![false; here.len()];
    for wanted in [true, false] {
        for (fits, (key, short)) in fits.iter_mut().zip(&here) {
            let size = size(key, short);
            if must(short) == wanted && size <= left {
                *fits = true;
                left -= size;
            }
        }
    }
    let mut line = Line::from(" ");
    for ((key, short), _) in here.iter().zip(&fits).filter(|(_, fits)| **fits) {
        line.push_span(key.bold());
        line.push_span(format!(" {short}  ").dim());
    }
    let gap = width.saturating_sub(line.width() + text::width(&count));
    line.push_span(Span::raw(" ".repeat(gap)));
    line.push_span(Span::raw(count));
    frame.render_widget(line, area);
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

fn count(app: &App) -> String {
    match (app.screen(), app.table()) {
        (Screen::Callsites(_), Some(table)) => {
            let (shown, of) = (table.len, table.of);
            let [_, many] = app.question().group.names();
            if shown == of {
                format!("{} {many} ", format::grouped(of))
            } else {
                format!("{} of {} {many} ", format::grouped(shown), format::grouped(of))
            }
        }
        (Screen::Help { offset }, _) => {
            let lines = app.help().map_or(0, |help| help.lines.len());
            let last = (offset + usize::from(app.rooms().body)).min(lines);
            format!("lines {} to {last} of {lines} ", offset + 1)
        }
        // Else it stands with the crumbs.
        (Screen::Callers(_), _) if app.rooms().crumbs == 0 => {
            format!("{} ", export::metric(app.metric()))
        }
        (Screen::Promotion(promotion), _) => match &promotion.answer {
            Some(answer) => format!("{} callsites ", format::grouped(answer.len)),
            None => String::new(),
        },
        (Screen::Leaks(leaks), _) => match &leaks.answer {
            Some(answer) => format!("{} callsites ", format::grouped(answer.len)),
            None => String::new(),
        },
        (Screen::Targets(targets), _) => match targets.counts() {
            (1, 1) => "1 target ".into(),
            (shown, of) if shown == of => format!("{} targets ", format::grouped(of)),
            (shown, of) => {
                format!("{} of {} targets ", format::grouped(shown), format::grouped(of))
            }
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
        | (Screen::Callsites(_), None) => String::new(),
    }
}
