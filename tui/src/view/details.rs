//! The details of a callsite: sections of lines, one below the other, in two columns where
//! there is room.
//!
//! What is not known yet is `–`. What is only known from when heaptop came says so.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::format::{self, Rounding, Unit};
use super::{names, text};
use crate::app::details::Details;
use crate::query::When;
use crate::query::details::{Details as Answer, Factor, Factors, Hint};
use crate::query::grown::Grown;
use crate::session::figures::{Estimate, Ratio};

/// From so many columns on there are two.
const WIDE: u16 = 150;
/// Between them.
const GAP: usize = 3;
/// Most frames of a callstack.
const MOST_FRAMES: usize = 40;

/// Draws the lines from the offset on.
pub(super) fn draw(details: &Details, area: Rect, frame: &mut Frame) {
    let lines = lines(details, area.width);
    for (y, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(details.offset)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// All lines.
#[must_use]
pub fn lines(details: &Details, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let Some(answer) = &details.answer else {
        let name = text::name(&details.label.function).into_owned();
        let why = "nothing is known of this moment";
        return vec![Line::from(format!(" {name}")).bold(), Line::from(format!(" {why}"))];
    };
    let mut all = vec![title(answer, width), when(answer, width)];
    if let Some([through, here]) = &details.calls {
        // Else a frame that carries a leak would seem to be fine.
        let said = format!(
            "at this very line alone, {} of the {} that go through it: callers show the rest",
            bytes(here),
            bytes(through)
        );
        all.extend(wrapped(&said, width).into_iter().map(|line| Line::from(line).bold()));
    }
    if width < usize::from(WIDE) {
        all.extend(about(answer, width));
        all.extend(whence(answer, width));
        return all;
    }
    let left = (width - GAP) / 2;
    let right = width - GAP - left;
    let (mut one, mut other) = (about(answer, left), whence(answer, right));
    let height = one.len().max(other.len());
    one.resize(height, Line::default());
    other.resize(height, Line::default());
    for (mut line, beside) in one.into_iter().zip(other) {
        let missing = (left + GAP).saturating_sub(line.width());
        line.push_span(Span::raw(" ".repeat(missing)));
        line.spans.extend(beside.spans);
        all.push(line);
    }
    all
}

pub(super) fn title(answer: &Answer, width: usize) -> Line<'static> {
    let mut line = Line::from(" ");
    for span in names::whole(&answer.label, width.saturating_sub(2)) {
        line.push_span(span.bold());
    }
    line
}

pub(super) fn when(answer: &Answer, width: usize) -> Line<'static> {
    let over = ago(answer.to_ns.saturating_sub(answer.from_ns));
    let said = match answer.when {
        When::Now => format!(" over the last {over}; in use as of now"),
        When::At(_) | When::Peak => format!(" over the {over} until then; in use as of then"),
        When::Range { .. } => format!(" over the range, {over}; in use as of its end"),
    };
    Line::from(text::keep_start(&said, width).into_owned()).dim()
}

fn ago(ns: u64) -> String {
    format::duration(ns as f64, 2, Rounding::Nearest)
}

/// A heading.
fn head(said: &str, width: usize) -> Line<'static> {
    Line::from(text::keep_start(&format!(" {said}"), width).into_owned()).bold()
}

/// A line of a section, cut to its room.
fn plain(said: &str, width: usize) -> Line<'static> {
    Line::from(text::keep_start(&format!("   {said}"), width).into_owned())
}

/// Figures one behind the other, in as many lines as they need: none is broken.
fn listed(figures: &[String], width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        let comma = if at + 1 < figures.len() { "," } else { "" };
        match lines.last_mut() {
            Some(line)
                if 3 + text::width(line) + 1 + text::width(figure) + comma.len() <= width =>
            {
                line.extend([" ", figure, comma]);
            }
            _ => lines.push(format!("{figure}{comma}")),
        }
    }
    lines.iter().map(|line| plain(line, width)).collect()
}

fn bytes(estimate: &Estimate) -> String {
    format::estimate(estimate, Unit::Bytes).to_string()
}

/// Figures, hints, factors, sizes, lives, threads, ends.
fn about(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let sections = [figures, hints, moved, lives, sizes, threads, ends];
    sections.iter().flat_map(|section| section(answer, width)).collect()
}

pub(super) fn figures(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let f = &answer.figures;
    let mut lines = listed(
        &[
            format!("in use {}", bytes(&f.in_use_bytes)),
            format!("objects {}", format::estimate(&f.in_use_objects, Unit::Objects)),
            format!("alloc/s {}", format::estimate(&f.allocated_rate, Unit::BytesPerSecond)),
        ],
        width,
    );
    let growth = format::change(f.growth);
    lines.extend(listed(
        &[
            format!("promoted {}", format::ratio(&f.promoted)),
            format!("dies young {}", format::ratio(&f.short_lived)),
            format!(
                "growth {growth}{}{}",
                if f.grew { " ▲" } else { ", no evidence" },
                match &answer.growth_mark {
                    Some(mark) => format!(" since “{}”", text::keep_start(&text::clean(mark), 12)),
                    None => String::new(),
                }
            ),
        ],
        width,
    ));
    lines
}

/// What to do.
pub(super) fn hints(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("what to do", width)];
    let over = ago(answer.to_ns.saturating_sub(answer.from_ns));
    for hint in &answer.hints {
        let [what, why] = hint_text(hint, answer, &over);
        lines.extend(wrapped(&what, width).into_iter().map(Line::from));
        lines.extend(wrapped(&why, width).into_iter().map(|line| Line::from(line).dim()));
    }
    if answer.hints.is_empty() {
        lines.push(plain("nothing stands out: no hint has enough samples behind it", width).dim());
    }
    lines
}

/// In use as a product, and which factor moved.
pub(super) fn moved(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("in use = births/s × stay × size", width)];
    match &answer.factors {
        Some(factors) => lines.extend(factors_lines(factors, answer, width)),
        None => lines.push(plain(format::UNKNOWN, width)),
    }
    lines
}

pub(super) fn lives(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let f = &answer.figures;
    let mut lines = vec![head("lifetimes", width)];
    lines.extend(listed(
        &[
            format!("median {}", format::lifetime(&f.lifetime)),
            format!("mean {}", format::mean_life(&f.mean)),
        ],
        width,
    ));
    if answer.ages.is_empty() {
        lines.push(plain("no death was seen", width).dim());
    } else {
        lines.push(plain(&format!("{} deaths seen, by age:", answer.deaths), width).dim());
    }
    for (to, share) in &answer.ages {
        let to = format::duration(*to, 2, Rounding::Nearest);
        lines.push(plain(&format!("{:>10} {}", format!("≤ {to}"), bar(*share, width)), width));
    }
    lines
}

pub(super) fn sizes(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("sizes: in use, allocated", width)];
    let all = || answer.sizes.iter().filter_map(|row| row.in_use_bytes.point());
    let (most, sum) = (all().fold(0.0, f64::max), all().sum::<f64>());
    for row in &answer.sizes {
        let to = format::bytes(row.to as f64, 3, Rounding::Nearest);
        let part = |of: f64| row.in_use_bytes.point().filter(|_| of > 0.0).map_or(0.0, |b| b / of);
        let said = format!(
            "{:>10} {:>15} {:>15} {}",
            format!("≤ {}", to.replacen(".00", "", 1).replacen(".0 ", " ", 1)),
            bytes(&row.in_use_bytes),
            bytes(&row.allocated_bytes),
            bar_of(part(sum), part(most), width.saturating_sub(32))
        );
        lines.push(plain(&said, width));
    }
    lines
}

pub(super) fn threads(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("threads that allocate here", width)];
    for thread in &answer.threads {
        let name = text::clean(&thread.name).into_owned();
        lines.push(plain(&format!("{} {name}", format::ratio(&thread.share)), width));
    }
    lines
}

/// Who frees blocks, and how they grow.
fn ends(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = elsewhere(answer, width);
    match &answer.frees {
        Some(frees) => {
            for stack in frees {
                lines.push(plain(
                    &format!("{} of the bytes freed, by", format::ratio(&stack.share)),
                    width,
                ));
                lines.extend(frames(&stack.frames, width));
            }
        }
        None => lines.push(plain("callstacks of frees: –", width).dim()),
    }
    lines.extend(reallocs(answer, width));
    lines
}

/// How much other threads free.
pub(super) fn elsewhere(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let by_another =
        format!("by another thread: {} of the bytes freed", format::ratio(&answer.freed_elsewhere));
    vec![head("who frees it", width), plain(&by_another, width)]
}

pub(super) fn reallocs(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![head("realloc", width)];
    lines.push(plain(
        &format!("{} of the bytes allocated come by realloc", format::ratio(&answer.by_realloc)),
        width,
    ));
    if let Some(grown) = &answer.grown {
        lines.extend(grown_lines(grown, width));
    }
    lines
}

/// Callstacks and blocks.
fn whence(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let mut lines = stacks(answer, MOST_FRAMES, width);
    lines.extend(blocks(answer, width));
    lines
}

/// Callstacks, each of so many frames at most.
pub(super) fn stacks(answer: &Answer, most: usize, width: usize) -> Vec<Line<'static>> {
    let shown = answer.stacks.len();
    let mut lines = vec![head(&format!("callstacks: {shown} of {}", answer.stacks_len), width)];
    for stack in &answer.stacks {
        lines.push(plain(&format!("{} in use", bytes(&stack.in_use_bytes)), width).bold());
        lines.extend(some_frames(&stack.frames, most, width));
    }
    lines
}

fn blocks(answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let shown = answer.blocks.len();
    let said = format!("live sampled blocks, the oldest first: {shown} of {}", answer.blocks_len);
    let mut lines = vec![head(&said, width)];
    if shown > 0 {
        let names = format!("{:>12} {:>18} {:>10} {:>9}  thread", "id", "address", "size", "age");
        lines.push(plain(&names, width).dim());
    }
    for block in &answer.blocks {
        // Of a trace nobody knows it.
        let address = match block.address {
            0 => format::UNKNOWN.to_owned(),
            address => format!("{address:#x}"),
        };
        let said = format!(
            "{:>12} {:>18} {:>10} {:>9}  {}",
            block.id.0,
            address,
            format::bytes(block.size as f64, 3, Rounding::Nearest),
            ago(block.age_ns),
            text::clean(&block.thread)
        );
        lines.push(plain(&said, width));
    }
    lines
}

fn frames(frames: &[crate::query::Label], width: usize) -> Vec<Line<'static>> {
    some_frames(frames, MOST_FRAMES, width)
}

fn some_frames(frames: &[crate::query::Label], most: usize, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line> = frames
        .iter()
        .take(most)
        .map(|label| {
            let mut line = Line::from("     ");
            line.spans.extend(names::whole(label, width.saturating_sub(6)));
            line
        })
        .collect();
    if frames.len() > most {
        let more = format!("  … {} more", frames.len() - most);
        lines.push(plain(&more, width).dim());
    }
    lines
}

/// A share, and a bar of as much of what room there is.
fn bar(share: f64, width: usize) -> String {
    bar_of(share, share, width)
}

/// A share, and a bar of another part of what room there is.
fn bar_of(share: f64, part: f64, width: usize) -> String {
    let room = width.saturating_sub(22).min(30);
    let [share, part] =
        [share, part].map(|of| if of.is_finite() { of.clamp(0.0, 1.0) } else { 0.0 });
    let length = (part * room as f64).round() as usize;
    let percent = format::cost(share);
    format!("{percent:>7} {}", "█".repeat(length))
}

fn factors_lines(factors: &Factors, answer: &Answer, width: usize) -> Vec<Line<'static>> {
    let [before, after] = [
        ago(factors.middle_ns.saturating_sub(answer.from_ns)),
        ago(answer.to_ns.saturating_sub(factors.middle_ns)),
    ];
    let stay = |estimate: &Estimate| match *estimate {
        Estimate::Interval { value, low, high, .. } => format!(
            "{} ({} to {})",
            format::duration(value, 2, Rounding::Nearest),
            format::duration(low, 2, Rounding::Down),
            format::duration(high, 2, Rounding::Up)
        ),
        Estimate::Exact { value } => format::duration(value, 3, Rounding::Nearest),
        _ => format::UNKNOWN.into(),
    };
    let rate = |e: &Estimate| format::estimate(e, Unit::ObjectsPerSecond).to_string();
    let rows = [
        ("births/s", Factor::Rate, factors.rate.each_ref().map(rate)),
        ("stay", Factor::Stay, factors.stay_ns.each_ref().map(stay)),
        ("size", Factor::Size, factors.size.each_ref().map(bytes)),
    ];
    // Below each other where they do not fit beside.
    let mark = "  ← moved";
    let beside = rows.iter().all(|(_, _, [a, b])| {
        3 + 9 + 1 + text::width(a) + 3 + text::width(b) + text::width(mark) <= width
    });
    let mut lines = vec![plain(&format!("{:<9} first {before} → last {after}", ""), width).dim()];
    for (name, factor, [a, b]) in rows {
        let moved = if factors.moved.contains(&factor) { mark } else { "" };
        let said = if beside {
            vec![format!("{name:<9} {a} → {b}{moved}")]
        } else {
            vec![format!("{name:<9} {a}"), format!("{:<9} → {b}{moved}", "")]
        };
        let shown = said.iter().map(|said| plain(said, width));
        lines.extend(shown.map(|line| if moved.is_empty() { line } else { line.bold() }));
    }
    if answer.deaths == 0 {
        lines.push(plain("how long blocks stay is not known: no death was seen", width).dim());
    }
    if factors.moved.is_empty() {
        lines.push(plain("none of them moved for sure", width).dim());
    }
    lines
}

/// How blocks grow: how often, and from which sizes to which.
fn grown_lines(grown: &Grown, width: usize) -> Vec<Line<'static>> {
    let count = |e: &Estimate| format::estimate(e, Unit::Objects).to_string();
    let mut lines = listed(
        &[
            format!("reallocs {}", count(&grown.steps)),
            format!("steps a chain {}", count(&grown.each)),
            format!("copied {}", bytes(&grown.copied)),
        ],
        width,
    );
    if grown.sizes.is_empty() {
        lines.push(plain("from which sizes is not known: no pair was sampled", width).dim());
    }
    let power = |bytes: u64| {
        let bytes = format::bytes(bytes as f64, 3, Rounding::Nearest);
        bytes.replacen(".00", "", 1).replacen(".0 ", " ", 1)
    };
    for step in &grown.sizes {
        let sizes = format!("{:>8} → ≤ {}", format!("≤ {}", power(step.from)), power(step.to));
        let said = format!(
            "{} {:>12} {:>12} copied",
            text::left(&sizes, 22),
            count(&step.steps),
            bytes(&step.copied)
        );
        lines.push(plain(&said, width));
    }
    lines
}

/// What to do, and what it is based on.
fn hint_text(hint: &Hint, answer: &Answer, over: &str) -> [String; 2] {
    let based = |samples: u64| format!("based on {samples} samples over {over}");
    match hint {
        Hint::Grows { growth, goes_on, samples } => {
            let span = answer.to_ns.saturating_sub(answer.growth_from_ns);
            let says = if *goes_on {
                "it grows: look at who should free it, or bound what holds it".to_owned()
            } else {
                let last = ago(span / 2);
                format!("it grew, but not for sure in the last {last}: it may have filled")
            };
            let grew = format::change(*growth);
            [says, format!("grew by {grew}, based on {samples} samples over {}", ago(span))]
        }
        Hint::DiesYoung { share, rate, samples } => [
            "churn that dies young: reuse a buffer, or take an arena for the request".into(),
            format!(
                "{} dies young, at {}, {}",
                format::ratio(share),
                format::estimate(rate, Unit::BytesPerSecond),
                based(*samples)
            ),
        ],
        Hint::Ladder { share, each, largest, seen, samples } => {
            let steps = match each {
                Estimate::Unknown => String::new(),
                each => format!("each grows {} times, ", format::estimate(each, Unit::Objects)),
            };
            let largest = format::bytes(*largest as f64, 3, Rounding::Nearest);
            let says = if *seen {
                "a ladder of reallocs: ask for the size at once (with_capacity, reserve)"
            } else {
                "much comes by realloc: if it grows in steps, ask for the size at once"
            };
            [
                says.into(),
                format!(
                    "{steps}up to {largest}; {} of its bytes come by realloc, {}",
                    ratio(share),
                    based(*samples)
                ),
            ]
        }
        Hint::FreedElsewhere { share, samples } => [
            "other threads free it: pass it back, or free it where it is made".into(),
            format!("{} of the bytes freed were, {}", ratio(share), based(*samples)),
        ],
    }
}

fn ratio(ratio: &Ratio) -> String {
    format::ratio(ratio).to_string()
}

/// A sentence in lines of a section.
fn wrapped(said: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::from("  ")];
    for word in said.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if text::width(line) + 1 + text::width(word) > width && line.len() > 2 {
            lines.push(format!("   {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.iter().map(|line| text::keep_start(line, width).into_owned()).collect()
}
