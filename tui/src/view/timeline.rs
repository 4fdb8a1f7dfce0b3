//! Screen 4: the target over time.
//!
//! ```text
//!  in use by callsite …                                       at 12 m 31 s
//!   12.2 MiB  ▁▂▃···        callsites stand on each other, each with a filling of
//!             ████▓▓▓▓      its own; what is left is dotted; where nobody told them
//!          0  ''████▓▓      apart, as before the viewer came, there are strokes
//!  alloc/s    ▂▂▃▄▅▂▂▃                                            to 1.2 GiB/s
//!  promoted/s …
//!  RSS        …
//!             ┆heaptop came ▲peak ◆mark ├phase┤
//!             |0       |10 s     |20 s
//!  █ cache::fill_cache  src/cache.rs:88                        8.1 MiB ±4 %
//! ```
//!
//! Fillings tell callsites apart, not colours: they are seen on every terminal.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::format::{self, Rounding, Unit};
use super::{Parts, callsites, list_row, names, spark, text, timebar};
use crate::app::App;
use crate::app::timeline::{Layout, MOST_SERIES, Timeline};
use crate::query::{self, When};
use crate::session::figures::Estimate;

/// What callsites are filled with, and in ASCII.
const FILLINGS: [(char, char); MOST_SERIES] =
    [('█', '#'), ('▓', '%'), ('▒', '='), ('░', ':'), ('▞', 'x'), ('╱', '/'), ('○', 'o')];
/// What is left of callsites that are told apart.
const REST: char = '·';
/// What nobody told apart.
const WHOLE: char = '\'';
/// Eighths of a cell; a full one has the filling of its callsite.
const EIGHTHS: [char; 8] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// Draws it.
pub fn draw(app: &App, timeline: &Timeline, parts: &Parts, frame: &mut Frame) {
    let Some(answer) =
        timeline.answer.as_ref().filter(|answer| answer.in_use.iter().any(|v| v.is_finite()))
    else {
        return super::empty(app, parts.body, frame);
    };
    let layout = Layout::of(parts.body);
    caption(app, answer, layout.caption, frame);
    let highest = answer.in_use.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    amounts(highest, &layout, frame);
    chart(app, answer, highest, layout.chart, frame.buffer_mut());
    let strips = [
        ("alloc/s", &answer.allocated, Unit::BytesPerSecond),
        ("promoted/s", &answer.promoted, Unit::BytesPerSecond),
        ("RSS", &answer.rss, Unit::Bytes),
    ];
    for ((name, values, unit), area) in strips.into_iter().zip(layout.strips) {
        strip(name, values, unit, area, &layout, frame);
    }
    events(app, answer, layout.events, frame);
    axis(answer, layout.axis, frame);
    mark_time(app, answer, &layout, frame.buffer_mut());
    legend(app, timeline, answer, layout.legend, frame);
}

/// What is shown, and of when the figures are.
fn caption(app: &App, answer: &query::Timeline, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let span_ns = answer.to_ns.saturating_sub(answer.from_ns);
    let when = match app.summary().when {
        When::Now if app.file().is_some() => "at the end".to_owned(),
        When::Now => "now".to_owned(),
        When::At(at) if answer.peak.is_some_and(|peak| peak.time_ns == at) => {
            format!("at {}, the peak", format::moment(at, span_ns))
        }
        when => timebar::words(when, span_ns),
    };
    let said: &[&str] = match (answer.told_from, app.file()) {
        // What the chart shows is then not what the legend lists.
        (None, _) if answer.rest.is_some() => &[
            " ' in use, all blocks: the filter's are not known over time",
            " ' in use, all blocks, not the filter's alone",
            " ' in use, not of the filter",
            " ' in use, of all",
        ],
        (_, None) => &[
            " in use since the start, by callsite since heaptop came",
            " in use since the start, by callsite",
            " in use, by callsite",
            " in use",
        ],
        // A file has nobody who came.
        (_, Some(_)) => {
            &[" in use since the start, by callsite", " in use, by callsite", " in use"]
        }
    };
    let figure = format::estimate(&app.summary().in_use, Unit::Bytes);
    let behind = format!("{figure} {when} ");
    let fits = |said: &&&str| text::width(said) + text::width(&behind) + 2 <= width;
    let said = said.iter().find(fits).copied().unwrap_or("");
    let gap = width.saturating_sub(text::width(said) + text::width(&behind));
    let behind = text::keep_start(&behind, width).into_owned();
    let line = Line::from(vec![said.into(), " ".repeat(gap).into(), behind.bold()]);
    frame.render_widget(line, area);
}

/// The amounts at the axis of the chart.
fn amounts(highest: f64, layout: &Layout, frame: &mut Frame) {
    if layout.left == 0 {
        return;
    }
    let (chart, width) = (layout.chart, layout.left);
    let mut put = |y: u16, value: f64| {
        let amount = match value {
            v if v > 0.0 => format::bytes(v, 3, Rounding::Nearest),
            _ => "0".into(),
        };
        let label = format!("{} ", text::right(&amount, usize::from(width) - 1));
        let area = Rect { x: chart.x - width, y, width, height: 1 };
        frame.render_widget(Line::from(label).dim(), area);
    };
    put(chart.y, highest);
    if chart.height >= 7 {
        put(chart.y + chart.height / 2, highest / 2.0);
    }
    if chart.height >= 3 {
        put(chart.bottom() - 1, 0.0);
    }
}

/// Bytes in use: callsites on each other, and the rest on top.
fn chart(app: &App, answer: &query::Timeline, highest: f64, area: Rect, buffer: &mut Buffer) {
    let ascii = app.options().ascii;
    let rows = f64::from(area.height);
    let mut layers: Vec<&query::Series> = answer.series.iter().collect();
    layers.sort_by_key(|series| series.layer);
    for (column, x) in (area.x..area.right()).enumerate() {
        let total = answer.in_use.get(column).copied().unwrap_or(f64::NAN);
        if !total.is_finite() || highest <= 0.0 {
            continue;
        }
        let height = |bytes: f64| bytes / highest * rows;
        // Layers and the whole are not of the same instant.
        let told: f64 = answer.series.iter().map(|s| known(&s.values, column)).sum();
        let scale = if told > total { total / told } else { 1.0 };
        let apart = answer.told_from.is_some_and(|from| from <= column);
        for (row, y) in (area.y..area.bottom()).rev().enumerate() {
            let (floor, middle) = (row as f64, row as f64 + 0.5);
            let top = height(total);
            if top <= floor && row > 0 {
                continue;
            }
            let eighths = ((top - floor) * 8.0).round() as usize;
            let symbol = if let Some(part) = EIGHTHS.get(eighths.max(usize::from(row == 0))) {
                *part
            } else {
                let mut under = 0.0;
                let of = layers.iter().position(|series| {
                    under += height(known(&series.values, column) * scale);
                    middle < under
                });
                match of.and_then(|of| FILLINGS.get(of)) {
                    Some((_, plain)) if ascii => *plain,
                    Some((rich, _)) => *rich,
                    None if apart => REST,
                    None => WHOLE,
                }
            };
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_char(symbol);
            }
        }
    }
}

/// A value, or 0 where there is none.
fn known(values: &[f64], column: usize) -> f64 {
    values.get(column).copied().filter(|v| v.is_finite()).unwrap_or(0.0)
}

/// A curve with its name before it and its highest behind.
fn strip(
    name: &'static str,
    values: &[f64],
    unit: Unit,
    area: Rect,
    layout: &Layout,
    frame: &mut Frame,
) {
    if area.is_empty() {
        return;
    }
    let lines = spark::lines(values, usize::from(area.width), usize::from(area.height));
    for (y, line) in (area.y..).zip(lines) {
        frame.render_widget(Line::from(line), Rect { y, height: 1, ..area });
    }
    let y = area.bottom() - 1;
    let at = |x: u16, width: u16| Rect { x, y, width, height: 1 };
    frame.render_widget(Line::from(format!(" {name}")), at(area.x - layout.left, layout.left));
    let highest = values.iter().copied().filter(|v| v.is_finite()).fold(f64::NAN, f64::max);
    let said = if highest.is_nan() {
        format!(" {}", format::UNKNOWN)
    } else {
        format!(" to {}", format::amount(highest, unit, 3, Rounding::Nearest))
    };
    frame.render_widget(Line::from(said).dim(), at(area.right(), layout.right));
}

/// Named moments below the charts: the peak first, then the later marks and phases.
fn events(app: &App, answer: &query::Timeline, area: Rect, frame: &mut Frame) {
    if area.is_empty() {
        return;
    }
    let mut events: Vec<(u64, String)> = Vec::new();
    if let Some(peak) = answer.peak {
        events.push((peak.time_ns, "▲peak".into()));
    }
    if let Some((from, _)) = answer.span.filter(|(from, _)| answer.column(*from) > 0) {
        events.push((from, format!("┆{}", app.came())));
    }
    let marks = answer.marks.iter().rev();
    events.extend(marks.map(|(ns, label)| (*ns, format!("◆{}", text::clean(label)))));
    for (from_ns, to_ns, name) in answer.phases.iter().rev() {
        events.push((*from_ns, format!("├{}", text::clean(name))));
        events.push((*to_ns, "┤".into()));
    }
    // Each has its sign; names as far as the next sign lets them.
    let mut shown: Vec<(usize, String)> = Vec::new();
    for (at, label) in events {
        let column = answer.column(at).min(usize::from(area.width) - 1);
        let free = shown.iter().all(|(other, _)| *other != column);
        if free && (answer.from_ns..=answer.to_ns).contains(&at) {
            shown.push((column, label));
        }
    }
    shown.sort_unstable_by_key(|(column, _)| *column);
    let next = shown.iter().skip(1).map(|(column, _)| column.saturating_sub(1));
    let ends: Vec<usize> = next.chain([usize::from(area.width)]).collect();
    for ((column, label), end) in shown.iter().zip(ends) {
        let room = end.saturating_sub(*column).clamp(1, 24);
        let sign: String = label.chars().take(1).collect();
        let kept = if room < 5 { sign } else { text::keep_start(label, room).into_owned() };
        let (x, width) = (area.x + *column as u16, text::width(&kept) as u16);
        frame.render_widget(Line::from(kept), Rect { x, width, ..area });
    }
}

/// Times, as far apart as they can be read.
fn axis(answer: &query::Timeline, area: Rect, frame: &mut Frame) {
    const APART: u64 = 11;
    let columns = u64::from(area.width).max(1);
    let span = answer.to_ns.saturating_sub(answer.from_ns);
    let step = step(span / columns * APART.min(columns));
    let mut at = answer.from_ns.div_ceil(step).saturating_mul(step);
    let mut free = 0;
    while at <= answer.to_ns && !area.is_empty() {
        let column = answer.column(at);
        let label = format!("|{}", tick(at));
        if column >= free && column + label.len() <= usize::from(area.width) {
            let x = area.x + column as u16;
            let width = label.len() as u16;
            free = column + label.len() + 1;
            frame.render_widget(Line::from(label).dim(), Rect { x, width, ..area });
        }
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
}

/// The least round time of at least so many nanoseconds.
fn step(least_ns: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const ROUND: [u64; 18] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200,
        86_400,
    ];
    if least_ns > 86_400 * SECOND {
        return least_ns.div_ceil(86_400 * SECOND).saturating_mul(86_400 * SECOND);
    }
    if let Some(seconds) = ROUND.iter().find(|seconds| **seconds * SECOND >= least_ns)
        && least_ns > SECOND / 2
    {
        return seconds * SECOND;
    }
    let mut ten = 1;
    while ten * 10 < least_ns {
        ten *= 10;
    }
    [1, 2, 5, 10].iter().map(|n| n * ten).find(|ns| *ns >= least_ns).unwrap_or(ten * 10).max(1)
}

/// A round time in as few signs as it takes.
fn tick(ns: u64) -> String {
    if ns == 0 {
        return "0".into();
    }
    if !ns.is_multiple_of(1_000_000_000) {
        let exact = format::duration(ns as f64, 3, Rounding::Nearest).replace('µ', "u");
        return exact.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1);
    }
    let seconds = ns / 1_000_000_000;
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let said = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n} {unit}"));
    said.collect::<Vec<_>>().join(" ")
}

/// The cursor's column, and the range's: what is outside of it is dim.
fn mark_time(app: &App, answer: &query::Timeline, layout: &Layout, buffer: &mut Buffer) {
    let column = |ns: u64| layout.chart.x + answer.column(ns) as u16;
    let cursor = match app.summary().when {
        When::At(at) => Some(column(at)),
        When::Peak => answer.peak.map(|peak| column(peak.time_ns)),
        When::Now | When::Range { .. } => app.times().cursor().map(column),
    };
    let range = match app.summary().when {
        When::Range { from_ns, to_ns } => Some(column(from_ns)..=column(to_ns)),
        _ => None,
    };
    for part in std::iter::once(layout.chart).chain(layout.strips) {
        for x in part.x..part.right() {
            let modifier = match &range {
                _ if cursor == Some(x) => Modifier::REVERSED,
                Some(range) if !range.contains(&x) => Modifier::DIM,
                _ => continue,
            };
            buffer.set_style(Rect { x, width: 1, ..part }, Style::new().add_modifier(modifier));
        }
    }
    if let Some(range) = range {
        let (x, width) = (*range.start(), range.end() - range.start() + 1);
        let style = Style::new().add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
        buffer.set_style(Rect { x, width, ..layout.axis }, style);
    }
}

/// The callsites with their fillings, and what they had in use.
fn legend(app: &App, timeline: &Timeline, answer: &query::Timeline, area: Rect, frame: &mut Frame) {
    const FIGURE: usize = 16;
    if area.height < 2 {
        return;
    }
    let ascii = app.options().ascii;
    let line_at = |i: usize| Rect { y: area.y + i as u16, height: 1, ..area };
    let name_width = usize::from(area.width).saturating_sub(FIGURE + 5);
    let span_ns = answer.to_ns.saturating_sub(answer.from_ns);
    let when = match app.summary().when {
        When::Now if app.file().is_some() => "at the end".to_owned(),
        When::Now => "in use now".to_owned(),
        When::Range { to_ns, .. } => format!("at {}", format::moment(to_ns, span_ns)),
        when => timebar::words(when, span_ns),
    };
    let heading =
        format!("   {}{}", text::left("callsite", name_width + 1), text::right(&when, FIGURE));
    frame.render_widget(Line::from(heading).dim(), line_at(0));
    let shown = usize::from(area.height) - 2;
    let series = answer.series.iter().take(shown.min(MOST_SERIES));
    let columns = u16::try_from(name_width).unwrap_or(u16::MAX);
    let usual = callsites::name_columns(app, columns);
    let names = names::callsites(series.clone().map(|series| &series.label), columns, usual);
    for (i, (series, name)) in series.zip(names).enumerate() {
        let filling = match FILLINGS[series.layer] {
            // None of the chart's is this row's.
            _ if answer.told_from.is_none() => ' ',
            (_, plain) if ascii => plain,
            (rich, _) => rich,
        };
        let mut line = Line::from(format!(" {filling}"));
        line.extend(name);
        pad(&mut line, 4 + name_width);
        let figure = format::estimate(&series.in_use, Unit::Bytes);
        let said = text::right(&figure.to_string(), FIGURE);
        line.push_span(if figure.dim { said.dim() } else { said.into() });
        list_row(line, i == timeline.cursor.index(), line_at(i + 1), frame);
    }
    let Some((said, figure)) = rest(answer) else { return };
    let sign = if answer.told_from.is_some() { REST } else { ' ' };
    let mut line = Line::from(format!(" {sign} "));
    line.push_span(text::keep_start(&said, name_width).into_owned());
    pad(&mut line, 4 + name_width);
    let figure = format::estimate(&figure, Unit::Bytes);
    line.push_span(text::right(&figure.to_string(), FIGURE));
    frame.render_widget(line, line_at(1 + answer.series.len().min(shown)));
}

/// What stands on top of the callsites, and what that had in use; `None`: nothing does. Where
/// the chart is not of the filter, the others that it takes.
fn rest(answer: &query::Timeline) -> Option<(String, Estimate)> {
    let others = match answer.other_callsites {
        1 => "1 other".to_owned(),
        n => format!("{} others", format::grouped(n)),
    };
    Some(match answer.rest.filter(|_| answer.told_from.is_some()) {
        None if answer.other_callsites > 0 => (others, answer.others),
        None if answer.rest.is_some() && answer.series.is_empty() => {
            ("nothing fits the filter".into(), answer.others)
        }
        None => return None,
        Some(rest) if answer.other_callsites == 0 => ("not in the filter".into(), rest),
        Some(rest) => (format!("not in the filter, and {others} that are"), rest),
    })
}

fn pad(line: &mut Line<'static>, to: usize) {
    let missing = to.saturating_sub(line.width());
    line.push_span(Span::raw(" ".repeat(missing)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        const S: u64 = 1_000_000_000;
        let shown = |least: u64| tick(step(least));
        assert_eq!(shown(3 * S), "5 s");
        assert_eq!(shown(61 * S), "2 m");
        assert_eq!(shown(3500 * S), "1 h");
        assert_eq!(shown(30 * 3600 * S), "2 d");
        assert_eq!(shown(70_000_000), "100 ms");
        assert_eq!(shown(0), "1 ns");
        assert_eq!(tick(5400 * S), "1 h 30 m");
        for least in [1, 999, S, S + 1, 7 * S, 86_400 * S, u64::MAX / 2] {
            assert!(step(least) >= least);
        }
    }
}
