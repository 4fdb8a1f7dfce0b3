//! Draws the state. Nothing here sorts, asks or mutates; what is drawn is in
//! [`App`].
//!
//! ```text
//! ┌ title ────── target · pid · up ────── states ── 1 Callsites 2 Callers … ┐ header
//! │ figures      in use ±  peak  RSS  alloc  promoted  1 in R … dropped     │ header
//! │ curve        in use since the target's start, and the time cursor       │ timebar
//! │ sentence     trouble, or what just happened                             │ here
//! │ rule ────────────────────────────────────────────────────────────────── │ here
//! │ crumbs       focus ‹ of what (callers)                                  │ callers
//! │ heading      names        columns                                       │ callsites, callers
//! │ body         rows; only those that are seen are made                    │ callsites, callers, help
//! │              where there is room, the details of the selected one       │ pane
//! │ total        the sum of the rows (callsites, promotion)                 │ callsites, promotion
//! │ plot         of the selected row (promotion)                            │ survival
//! │ rule ────────────────────────────────────────────────────────────────── │ here
//! │ filter       / text                                                     │ bar
//! └ bar          keys ─────────────────────────────────────────── how many ─┘ bar
//! ```
//!
//! How many lines each part gets is in [`crate::app::rooms`]; which columns fit,
//! in [`layout`]; how numbers look, in [`format`]; how long text is cut, in [`text`].
//! Colour has two meanings, loss and growth with evidence; all else is weight and place.
//! [`theme`] has the colours.

mod bar;
pub(crate) mod callers;

pub mod callsites;
pub(crate) mod columns;
pub mod details;
pub(crate) mod export;
mod flame;
pub mod format;
pub(crate) mod header;
pub(crate) mod help;
mod layout;
pub(crate) mod leaks;
pub mod log;
mod names;
mod paint;
mod pane;
mod plain;
pub(crate) mod promotion;
pub(crate) mod source;
mod spark;
mod survival;
mod targets;
#[cfg(test)]
mod testing;
pub mod text;
pub mod theme;
pub mod threads;
pub(crate) mod timebar;
mod timeline;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget, Wrap};

use crate::app::keys::{Action, TimeKey};
use crate::app::{App, Reading, Screen};
use crate::query::When;
use crate::session::Connection;

/// More lines than any sentence is given.
const MOST_LINES: usize = 4;

/// The smallest screen that is drawn, in columns and rows.
const LEAST: (u16, u16) = (20, 5);

/// Where the parts of the screen are.
#[derive(Clone, Copy)]
struct Parts {
    title: Rect,
    figures: Rect,
    curve: Rect,
    sentence: Rect,
    upper_rule: Rect,
    crumbs: Rect,
    heading: Rect,
    body: Rect,
    total: Rect,
    panel: Rect,
    lower_rule: Rect,
    filter: Rect,
    bar: Rect,
}

impl Parts {
    fn of(app: &App, area: Rect) -> Self {
        let rooms = app.rooms();
        let mut y = area.y;
        let mut next = |height: u16| {
            let part = Rect { x: area.x, y, width: area.width, height };
            y = y.saturating_add(height);
            // The terminal may be smaller by now than the state knows.
            part.intersection(area)
        };
        Self {
            title: next(rooms.title),
            figures: next(rooms.figures),
            curve: next(rooms.curve),
            sentence: next(rooms.sentence),
            upper_rule: next(rooms.upper_rule),
            crumbs: next(rooms.crumbs),
            heading: next(rooms.heading),
            body: next(rooms.body),
            total: next(rooms.total),
            panel: next(rooms.panel),
            lower_rule: next(rooms.lower_rule),
            filter: next(rooms.filter),
            bar: next(rooms.bar),
        }
    }
}

/// Draws the whole screen.
pub fn draw(app: &App, frame: &mut Frame) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(app, area, frame);
    }
    let parts = Parts::of(app, area);
    header::title(app, parts.title, frame);
    if !app.choosing() {
        header::figures(app, parts.figures, frame);
        timebar::draw(app, parts.curve, frame);
    }
    if let Some(sentence) = app.sentence() {
        let place = Rect { x: area.x + 1, width: area.width - 1, ..parts.sentence };
        lines(sentence_lines(&sentence, area.width), place, frame.buffer_mut(), Stylize::bold);
    }
    for rule in [parts.upper_rule, parts.lower_rule] {
        frame.render_widget(Line::from("─".repeat(usize::from(rule.width))).dim(), rule);
    }
    match app.first_hint() {
        Some(first) => first_hint(&first, parts.lower_rule, frame),
        None => hint(app, parts.lower_rule, frame),
    }
    recording(app, parts.lower_rule, frame);
    match app.screen() {
        Screen::Callsites(cursor) => {
            callsites::draw(app, cursor, &pane::beside(app, &parts, frame), frame);
        }
        Screen::Callers(callers) => callers::draw(app, callers, &parts, frame),
        Screen::Flame(flame) => flame::draw(app, flame, &parts, frame),
        Screen::Timeline(timeline) => timeline::draw(app, timeline, &parts, frame),
        Screen::Promotion(promotion) => promotion::draw(app, promotion, &parts, frame),
        Screen::Leaks(leaks) => leaks::draw(app, leaks, &pane::beside(app, &parts, frame), frame),
        Screen::Threads(threads) => threads::draw(app, threads, &parts, frame),
        Screen::Source(source) => source::draw(app, source, &parts, frame),
        Screen::Log(log) => log::draw(log, parts.body, frame),
        Screen::Details(details) => details::draw(details, parts.body, frame),
        Screen::Columns { cursor } => columns::draw(app, cursor, &parts, frame),
        Screen::Targets(list) => targets::draw(app, list, &parts, frame),
        Screen::Export(menu) => export::draw(app, menu, parts.body, frame),
        Screen::Help { offset } => {
            if let Some(help) = app.help() {
                help::draw(help, *offset, parts.body, frame);
            }
        }
    }
    bar::filter_line(app, parts.filter, frame);
    bar::keys(app, parts.bar, frame);
    app.options().theme.paint(frame.buffer_mut());
    if app.options().ascii {
        plain::ascii(frame.buffer_mut());
    }
}

/// The lines that a sentence above the rows has on a screen of so many columns.
#[must_use]
pub fn sentence_lines(sentence: &str, width: u16) -> Vec<String> {
    let columns = usize::from(width).saturating_sub(1).max(1);
    // Somebody else may have written it: no more of it is looked at than can be seen.
    let seen: String = sentence.chars().take(columns * MOST_LINES).collect();
    text::wrapped(&text::clean(&seen), columns)
}

/// Draws lines; where there are more than find room, the last one that does ends with a sign.
fn lines(
    mut lines: Vec<String>,
    area: Rect,
    buffer: &mut Buffer,
    style: impl Fn(Line<'static>) -> Line<'static>,
) {
    let (room, most) = (usize::from(area.width), usize::from(area.height));
    if let Some(last) = most.checked_sub(1).filter(|_| lines.len() > most) {
        let rest = lines.split_off(last).join(" ");
        lines.push(text::keep_start(&rest, room).into_owned());
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        style(Line::from(line)).render(Rect { y, height: 1, ..area }, buffer);
    }
}

/// Says why nothing is drawn, as far as it fits; keys work all the same.
fn too_small(app: &App, area: Rect, frame: &mut Frame) {
    let (columns, rows) = LEAST;
    let size = format!("{columns}x{rows}");
    let quits = app.key_for(Action::Quit).map_or_else(String::new, |key| format!(", {key} quits"));
    let sentences = [format!("heaptop needs {size}{quits}"), format!("needs {size}"), "…".into()];
    let room = usize::from(area.width);
    // Words are not broken: a sentence of several lines may need one more.
    let lines =
        |s: &String| text::width(s).div_ceil(room.max(1)) + usize::from(text::width(s) > room);
    let fits = |s: &&String| {
        lines(s) <= usize::from(area.height) && s.split(' ').all(|word| word.len() <= room)
    };
    let sentence = sentences.iter().find(fits).unwrap_or(&sentences[2]);
    frame.render_widget(Paragraph::new(sentence.as_str()).wrap(Wrap { trim: true }), area);
}

/// What a finer R would give the selected row, in the rule below the rows.
fn hint(app: &App, rule: Rect, frame: &mut Frame) {
    let Some(hint) = app.hint().filter(|_| rule.height > 0) else { return };
    let hint = format!(" selected row: {hint} ");
    let width = text::width(&hint) as u16;
    if width + 4 <= rule.width {
        let x = rule.right() - width - 2;
        frame.render_widget(Line::from(hint), Rect { x, width, ..rule });
    }
}

/// What to press, for who is here for the first time: in the same place, as much as fits.
fn first_hint(said: &str, rule: Rect, frame: &mut Frame) {
    let room = usize::from(rule.width).saturating_sub(6);
    let mut said = said;
    while text::width(said) > room {
        match said.rsplit_once(" · ") {
            Some((less, _)) => said = less,
            None => return,
        }
    }
    if rule.height > 0 {
        let said = format!(" {said} ");
        let width = text::width(&said) as u16;
        let x = rule.right() - width - 2;
        frame.render_widget(Line::from(said).dim(), Rect { x, width, ..rule });
    }
}

/// What is being recorded, at the other end of that rule.
fn recording(app: &App, rule: Rect, frame: &mut Frame) {
    let Some((name, bytes)) = app.recording().filter(|_| rule.height > 0) else { return };
    // The hint is worth more room than the file's name, which is told when it ends.
    let taken = app.hint().map_or(0, |hint| text::width(hint) + 20);
    let room = usize::from(rule.width).saturating_sub(taken + 6);
    let long = format!(" rec {} {bytes} ", text::clean(name));
    let said = if text::width(&long) <= room { long } else { format!(" rec {bytes} ") };
    let width = (text::width(&said) as u16).min(rule.width.saturating_sub(2));
    frame.render_widget(Line::from(said).bold(), Rect { x: rule.x + 2, width, ..rule });
}

/// A row of a list, marked when it is the selected one.
fn list_row(mut line: Line<'static>, selected: bool, area: Rect, frame: &mut Frame) {
    if selected {
        if let Some(first) = line.spans.first_mut() {
            first.content = first.content.replacen(' ', "▸", 1).into();
        }
        line = line.reversed();
    }
    if area.height > 0 {
        paint::line(&line, area, frame.buffer_mut());
        if selected {
            frame.buffer_mut().set_style(area, ratatui::style::Style::new().reversed());
        }
    }
}

/// Says why there are no rows.
fn empty(app: &App, area: Rect, frame: &mut Frame) {
    sentence(why_empty(app), area, frame);
}

/// A sentence in place of rows.
fn sentence(sentence: String, area: Rect, frame: &mut Frame) {
    let top = area.height.saturating_sub(1) / 3;
    let area = Rect { y: area.y + top, height: area.height - top, ..area };
    let paragraph = Paragraph::new(sentence).wrap(Wrap { trim: true }).alignment(Alignment::Center);
    frame.render_widget(paragraph, area);
}

fn why_empty(app: &App) -> String {
    let filter = &app.question().filter;
    let summary = app.summary();
    // A trace tells of blocks, and not how many samples there were.
    let any = summary.samples.is_some_and(|n| n > 0) || app.table().is_some_and(|t| t.of > 0);
    if !filter.is_empty() && any {
        let said = format!("nothing fits “{}”", text::clean(filter));
        return app.with_key(&said, Action::Back, "takes the filter away");
    }
    if matches!(app.screen(), Screen::Callers(_)) {
        let said = "nothing of this metric goes through the focus";
        let said = app.with_key(said, Action::Metric, "counts another");
        return app.with_key(&said, Action::Back, "goes back");
    }
    if matches!(app.screen(), Screen::Promotion(_)) && summary.samples.is_some_and(|n| n > 0) {
        let now = Action::Time(TimeKey::Now);
        return match summary.when {
            When::Now => {
                "no cycle of the nursery is over yet in which blocks were born young".into()
            }
            When::Peak => app.with_key(
                "of the peak it is known what was in use, and nothing else",
                now,
                "is now",
            ),
            When::At(_) | When::Range { .. } => {
                app.with_key("no blocks born young are known of this time", now, "is now")
            }
        };
    }
    match (&app.live().connection, summary.interval_bytes, summary.clock_bytes) {
        _ if matches!(app.file(), Some(Reading::Percent(_))) => {
            "the recording is being read…".into()
        }
        _ if summary.samples.is_some_and(|n| n > 0) || summary.when != When::Now => {
            "nothing was in use then, as far as is known".into()
        }
        _ if app.file().is_some() => "no samples are in the recording".into(),
        (Connection::Connecting, ..) => "waiting for the target's greeting…".into(),
        (Connection::Lost(_) | Connection::Ended(_), ..) => {
            "no samples came before the connection ended".into()
        }
        (Connection::Connected, Some(r), Some(clock)) => {
            let bytes = |v| format::bytes(v, 3, format::Rounding::Nearest);
            format!(
                "no samples yet: the target has allocated {}, and about one sample comes every {}",
                bytes(clock as f64),
                bytes(f64::from(r))
            )
        }
        (Connection::Connected, ..) => "no samples yet: the target has not said how it is".into(),
    }
}

#[cfg(test)]
mod flame_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod keys_tests;
#[cfg(test)]
mod mouse_tests;
#[cfg(test)]
mod narrow_tests;
#[cfg(test)]
mod pane_tests;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod targets_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod theme_tests;
#[cfg(test)]
mod threads_tests;
#[cfg(test)]
mod timeline_tests;
