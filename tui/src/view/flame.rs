//! Screen 3: the flamegraph. A frame's width is its share of the zoom.
//!
//! Frames are inverse video with a gap at their end, every other one dim, so that they
//! are told apart without colours. The selected one is plain and bold; of what is looked
//! for, frames are underlined.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::format::{self, Unit};
use super::{Parts, text, theme};
use crate::app::App;
use crate::app::flame::{Bar, Flame};
use crate::app::keys::Action;
use crate::export;
use crate::query::{Metric, NodeKey};

/// Draws the way to the zoom, the frames, and what is to be said of the selected one.
pub fn draw(app: &App, flame: &Flame, parts: &Parts, frame: &mut Frame) {
    crumbs(app, flame, parts.crumbs, frame);
    let Some(answer) = &flame.answer else {
        if flame.zoom.is_empty() {
            return super::empty(app, parts.body, frame);
        }
        let said = "no callstack goes through the frame that was zoomed into, at this moment \
                    and under this filter";
        return super::sentence(app.with_key(said, Action::Back, "zooms out"), parts.body, frame);
    };
    if flame.bars.is_empty() || answer.root.children.is_empty() && flame.zoom.is_empty() {
        return super::empty(app, parts.body, frame);
    }
    let page = usize::from(parts.body.height);
    let at = flame.at();
    let mut order = 0;
    for (i, bar) in flame.bars.iter().enumerate() {
        order = if i > 0 && flame.bars[i - 1].row == bar.row { order + 1 } else { bar.row };
        let Some(line) = flame.line(bar.row, page) else { continue };
        let area = Rect { x: bar.x, y: parts.body.y + line as u16, width: bar.width, height: 1 };
        one(bar, order % 2 == 1, i == at, area.intersection(parts.body), frame);
    }
    selected(app, flame, parts.total, frame);
}

fn one(bar: &Bar, dim: bool, selected: bool, area: Rect, frame: &mut Frame) {
    if area.is_empty() {
        return;
    }
    // The gap behind it is the last of its columns, where it has more than one.
    let room = usize::from(area.width.max(2) - 1);
    let name = text::name(&bar.label.function);
    // Who has no colours must see it too.
    let name = match bar.grown {
        Some(grown) if grown.grew => format!("▲{name}"),
        _ => name.into_owned(),
    };
    let name = if room < 3 { String::new() } else { text::keep_name(&name, room).into_owned() };
    let sign = if selected && room < 3 { "▸".to_owned() } else { name };
    let mut style = Style::new();
    if selected {
        style = style.add_modifier(Modifier::BOLD);
    } else {
        style = theme::FRAME[usize::from(dim && !bar.found)];
    }
    if bar.grown.is_some_and(|grown| grown.grew) {
        style = style.patch(theme::GROWTH);
    }
    if bar.found {
        style = style.add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
    }
    let text = text::left(&text::left(&sign, room), room);
    frame.render_widget(Span::styled(text, style), Rect { width: room as u16, ..area });
}

/// The way to the zoom at the left; what is counted at the right.
fn crumbs(app: &App, flame: &Flame, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let mut right = String::new();
    if let Some(answer) = &flame.answer {
        if !flame.search.is_empty()
            && let Some(matched) = answer.matched
        {
            let text = text::clean(&flame.search).into_owned();
            let text = text::keep_start(&text, 20).into_owned();
            let _ = write!(right, "“{text}” in {} · ", format::cost(matched));
        }
        if !flame.zoom.is_empty() {
            let _ = write!(right, "{} of all · ", format::cost(answer.share));
        }
    }
    if flame.frozen.is_some() {
        right += "FROZEN · ";
    }
    // What frames grew by is in use, whatever their widths count.
    if flame.compared && app.metric() != Metric::InUseBytes && !flame.gained {
        right += "growth in bytes in use · ";
    }
    if flame.compared || flame.gained {
        let _ = write!(right, "{} · ", app.grown_since(flame.base.as_deref(), 16));
    }
    right += if flame.gained { "growth: bytes gained" } else { export::metric(app.metric()) };
    right += " ";
    let right = text::keep_end(&right, width.saturating_sub(8)).into_owned();
    let room = width.saturating_sub(text::width(&right) + 2);
    let mut way: Vec<String> = Vec::new();
    if let Some(answer) = &flame.answer {
        let above = answer.above.iter().map(|above| &above.label);
        way.extend(
            above
                .chain(std::iter::once(&answer.root.label))
                .map(|label| text::name(&label.function).into_owned()),
        );
    }
    let way = text::keep_end(&way.join(" › "), room).into_owned();
    let gap = width.saturating_sub(1 + text::width(&way) + text::width(&right));
    let line = vec![" ".into(), way.bold(), " ".repeat(gap).into(), right.dim()];
    frame.render_widget(Line::from(line), area);
}

/// The selected frame in figures.
fn selected(app: &App, flame: &Flame, area: Rect, frame: &mut Frame) {
    let Some(bar) = flame.selected().filter(|_| !area.is_empty()) else { return };
    let unit = if flame.gained { Unit::Bytes } else { export::unit(app.metric()) };
    let width = usize::from(area.width);
    let figures = figures(bar, flame, unit);
    let room = width.saturating_sub(text::width(&figures) + 3);
    let mut line = Line::from(" ");
    if bar.key == NodeKey::SMALLER {
        line.push_span(bar.label.function.to_string());
    } else {
        for span in super::names::whole(&bar.label, room) {
            line.push_span(span);
        }
    }
    let gap = width.saturating_sub(line.width() + text::width(&figures) + 1);
    line.push_span(" ".repeat(gap));
    line.push_span(Span::raw(figures));
    frame.render_widget(line.bold(), area);
}

fn figures(bar: &Bar, flame: &Flame, unit: Unit) -> String {
    let flat = match format::estimate(&bar.flat, unit) {
        flat if flat.value == format::UNKNOWN => String::new(),
        flat => format!(" · flat {flat}"),
    };
    let share =
        if bar.row > 0 { format!(" · {}", format::cost(bar.share)) } else { String::new() };
    let of = if bar.row > 0 && !flame.zoom.is_empty() { " of the zoom" } else { "" };
    let grown = bar.grown.map_or_else(String::new, |grown| {
        format!(" · {}{}", if grown.grew { "▲ " } else { "" }, format::change(grown.change))
    });
    format!("{}{flat}{share}{of}{grown}", format::estimate(&bar.cum, unit))
}
