//! The plot below the promotion screen's rows: how much allocation the selected
//! callsite's minor blocks live through, and what other nurseries would promote.
//!
//! ```text
//! ── parse_header: bytes that outlive so much allocation, over 34 s ──────────────
//! 100 % ██████████▓▓░░            nursery [ ] 16 MiB, what if
//!       ████████████████░░        64 KiB ──────┼───█──────── 1 GiB
//!       ████████████████████····  promotes  callsite    all
//!       █████████████████████···  2 MiB     4.1 % ±0.4  12 % ±1      as measured
//!   0 % ██████████████████████··  if 16 MiB 0.6 % ±0.2  1.9 % ±0.4   by lives
//!       |1 KiB   |1 MiB   |1 GiB  dies at ▁▁▂█▄▁
//! ```
//!
//! Full up to the lower end of the interval, shaded up to its upper end. Beyond the
//! longest follow-up there are bounds alone: dotted. All of it is of the stretch of time that
//! the title says; the table above is of the time since the target's start, and says so.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;

use super::format::{self, Rounding};
use super::{spark, text};
use crate::app::App;
use crate::app::keys::Action;
use crate::app::promotion::Promotion;
use crate::query::{LEAST_NURSERY, MOST_NURSERY, Survival};
use crate::session::figures::Followed;

/// Columns before the curve.
const LEFT: u16 = 6;
/// Columns of the words beside it, where there is room for both.
const WORDS: u16 = 40;
/// Ages of the curve, as powers of two.
const AGES: (f64, f64) = (10.0, 32.0);

/// Draws it.
pub fn draw(app: &App, promotion: &Promotion, area: Rect, frame: &mut Frame) {
    if area.height < 4 {
        return;
    }
    let row = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
    let width = usize::from(area.width);
    let (Some((of, all)), Some(selected)) = (promotion.lives(), promotion.selected()) else {
        frame.render_widget(Line::from("─".repeat(width)).dim(), row(0, 1));
        if let Some(why) = promotion.why_no_lives().filter(|_| promotion.selected().is_some()) {
            super::sentence(why.into(), row(1, area.height - 1), frame);
        }
        return;
    };
    let name = text::name(&selected.label.function).into_owned();
    let over = of.over_ns.map_or_else(String::new, |(from, to)| {
        let over = format::duration(to.saturating_sub(from) as f64, 2, Rounding::Nearest);
        format!(", over {over}")
    });
    let outlive = if width < 72 { ": outlive" } else { ": bytes that outlive so much allocation" };
    let says = format!("{outlive}{over} ");
    let name = text::keep_name(&name, width.saturating_sub(says.len() + 5)).into_owned();
    let gap = width.saturating_sub(3 + text::width(&name) + says.len());
    let title = Line::from(vec!["── ".dim(), name.bold(), says.into(), "─".repeat(gap).dim()]);
    frame.render_widget(title, row(0, 1));

    let words = if area.width >= 74 { WORDS + area.width.saturating_sub(120) / 4 } else { 0 };
    let plot = Rect {
        x: area.x + LEFT,
        width: area.width.saturating_sub(LEFT + words + 1),
        ..row(1, area.height - 2)
    };
    let nursery = promotion.nursery.unwrap_or(of.own_bytes);
    curve(app, of, plot, frame);
    axis(plot, frame);
    let at = plot.x + column((nursery as f64).log2(), plot.width);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.buffer_mut().set_style(Rect { x: at, width: 1, ..plot }, style);
    if words > 0 {
        let area = Rect { x: plot.right() + 1, width: words, ..row(1, area.height - 1) };
        let keys = [false, true].map(|larger| app.key_for(Action::Nursery { larger }));
        let keys: Vec<String> = keys.into_iter().flatten().collect();
        said(&keys, promotion.nursery, [of, all], nursery, area, frame);
    }
}

/// The column of a power of two.
fn column(log2: f64, width: u16) -> u16 {
    let part = ((log2 - AGES.0) / (AGES.1 - AGES.0)).clamp(0.0, 1.0);
    ((part * f64::from(width)) as u16).min(width.saturating_sub(1))
}

fn curve(app: &App, of: &Survival, area: Rect, frame: &mut Frame) {
    let labels = [(area.y, "100 %"), (area.bottom() - 1, "  0 %")];
    for (y, label) in labels {
        let at = Rect { x: area.x - LEFT, y, width: LEFT, height: 1 };
        frame.render_widget(Line::from(label).dim(), at);
    }
    let rows = f64::from(area.height);
    let ascii = app.options().ascii;
    let buffer = frame.buffer_mut();
    for x in area.x..area.right() {
        let part = (f64::from(x - area.x) + 0.5) / f64::from(area.width.max(1));
        let log2 = (AGES.1 - AGES.0).mul_add(part, AGES.0);
        let after = of.curve.partition_point(|(age, _)| age.log2() < log2);
        let Some((_, share)) = of.curve.get(after.min(of.curve.len().saturating_sub(1))) else {
            return;
        };
        let (low, value, high, sure) = match *share {
            Followed::Unknown => continue,
            Followed::Interval { value, low, high, .. } => (low, value, high, true),
            Followed::Bounds { low, high, .. } => (low, high, high, false),
        };
        for (row, y) in (area.y..area.bottom()).rev().enumerate() {
            let middle = (row as f64 + 0.5) / rows;
            let symbol = if middle < low {
                '█'
            } else if middle >= high {
                continue;
            } else if !sure {
                '·'
            } else if middle < value {
                '▓'
            } else {
                '░'
            };
            let symbol = match symbol {
                '▓' if ascii => '%',
                other => other,
            };
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_char(symbol);
            }
        }
    }
}

/// Amounts of allocation below the curve.
fn axis(plot: Rect, frame: &mut Frame) {
    let y = plot.bottom();
    let every: usize = if plot.width < 36 { 10 } else { 5 };
    let mut free = plot.x;
    for log2 in (AGES.0 as u32..AGES.1 as u32).step_by(every) {
        let bytes = format::bytes(f64::from(log2).exp2(), 3, Rounding::Nearest);
        let bytes = bytes.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1);
        let label = format!("|{bytes}");
        let x = plot.x + column(f64::from(log2), plot.width);
        let width = label.len() as u16;
        if x >= free && x + width <= plot.right() {
            free = x + width + 1;
            frame.render_widget(Line::from(label).dim(), Rect { x, y, width, height: 1 });
        }
    }
}

/// What the nursery promotes, the slider with its keys, and when blocks die.
fn said(
    keys: &[String],
    chosen: Option<u64>,
    [of, all]: [&Survival; 2],
    nursery: u64,
    area: Rect,
    frame: &mut Frame,
) {
    const LABEL: usize = 12;
    const CELL: usize = 13;
    let width = usize::from(area.width);
    let short = |bytes: u64| {
        let bytes = format::bytes(bytes as f64, 3, Rounding::Nearest);
        bytes.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1)
    };
    let row = |label: &str, cells: [String; 2]| {
        let [this, all] = cells.map(|cell| text::left(&cell, CELL));
        format!("{}{this} {all}", text::left(label, LABEL))
    };
    let mut lines: Vec<Line> = Vec::new();
    let kind = match (of.ocaml, chosen) {
        (true, None) => "the runtime's",
        (false, None) => "as configured",
        (_, Some(_)) => "what if",
    };
    lines.push(Line::from(vec![
        format!("{} ", [&["nursery".to_owned()], keys].concat().join(" ")).into(),
        format!("{}, {kind}", short(nursery)).bold(),
    ]));
    lines.push(slider(of, nursery, width));
    lines.push(Line::from(row("promotes", ["callsite".into(), "all".into()])).dim());
    let own = |survival: &Survival| format::ratio(&survival.own).to_string();
    lines.push(Line::from(row("measured", [own(of), own(all)])));
    let rates = [of, all].map(|survival| followed(&survival.at(nursery)));
    lines.push(Line::from(row(&format!("if {}", short(nursery)), rates)));
    let shares: Vec<f64> = of.deaths.iter().map(|(_, share)| share.max(0.0)).collect();
    let most = (0..shares.len()).max_by(|a, b| shares[*a].total_cmp(&shares[*b]));
    if let Some(most) = most.filter(|most| shares[*most] > 0.0) {
        let age = |at: usize| short(of.deaths[at].0 as u64);
        let percent = format::cost(shares[most]);
        // It is the octave with the most, which may be fewer than half.
        lines.push(Line::from(match most.checked_sub(1) {
            Some(before) => format!("most deaths at {}–{}: {percent}", age(before), age(most)),
            None => format!("most deaths below {}: {percent}", age(most)),
        }));
        lines.push(Line::from(vec!["dies at  ".dim(), spark::line(&shares, shares.len()).into()]));
    } else {
        lines.push(Line::from("no death was seen yet").dim());
    }
    if of.followed().is_finite() && of.followed() > 0.0 {
        let followed = short(of.followed() as u64);
        lines.push(Line::from(format!("followed for {followed}: then bounds")).dim());
    }
    // Why the two are not the same at the same nursery.
    lines.push(Line::from("measured: as cycles fell; if: by lives").dim());
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// A share that rests on how long blocks could be followed.
fn followed(share: &Followed) -> String {
    use crate::session::figures::Ratio;
    match *share {
        Followed::Unknown => format::UNKNOWN.into(),
        Followed::Interval { value, low, high, samples } => {
            format::ratio(&Ratio::Interval { value, low, high, samples }).to_string()
        }
        Followed::Bounds { low, high, .. } => {
            let percent = |share: f64| format!("{:.1}", share * 100.0);
            format!("{} to {} %", percent(low), percent(high))
        }
    }
}

/// Where the nursery is between the least and the largest, and where the configured one.
fn slider(of: &Survival, nursery: u64, width: usize) -> Line<'static> {
    let (least, most) = ("64 KiB ", " 1 GiB");
    let room = width.saturating_sub(least.len() + most.len() + 1).max(2);
    let [from, to] = [LEAST_NURSERY, MOST_NURSERY].map(|n| (n as f64).log2());
    let place = |bytes: u64| {
        let part = (((bytes.max(1)) as f64).log2() - from) / (to - from);
        (part.clamp(0.0, 1.0) * (room - 1) as f64).round() as usize
    };
    let (own, at) = (place(of.own_bytes), place(nursery));
    let rail: String = (0..room)
        .map(|i| match i {
            _ if i == at => '█',
            _ if i == own => '┼',
            _ => '─',
        })
        .collect();
    Line::from(vec![least.dim(), rail.into(), most.dim()])
}
