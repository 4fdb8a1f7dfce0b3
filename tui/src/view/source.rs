//! Screen 8: a source file, with bytes beside its lines.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::format::{self, Unit};
use super::layout::{self, Fields};
use super::{Parts, list_row, text};
use crate::app::App;
use crate::app::keys::{Action, Place};
use crate::app::source::Source;
use crate::export;
use crate::query::SourceLine;

/// Columns of a figure.
const FIGURE: Fields = Fields(9, 6);
const CLOSE: Fields = Fields(8, 5);
const TIGHT: Fields = Fields(8, 0);
/// With so many columns both figures have room, and their intervals,
const ROOMY: u16 = 110;
/// with so many they have tight room,
const NARROW: u16 = 72;
/// and with so many they stand without their intervals.
const MEDIUM: u16 = 40;
/// Columns of a line's number.
const NUMBER: usize = 5;

/// What is counted: not what the callers of one callsite are told of.
const COUNTED: [&str; 2] = [
    "cum: of all callsites reached through the line; flat: allocated right at it",
    "cum: all through the line; flat: at it",
];

/// Draws the file's name, headings and lines.
pub(super) fn draw(app: &App, source: &Source, parts: &Parts, frame: &mut Frame) {
    let Some(file) = &source.file else {
        let said = "no callsite with a source file was selected yet: select one on another screen";
        let here = Action::Go(Place::Source);
        return super::sentence(app.with_key(said, here, "comes back"), parts.body, frame);
    };
    crumbs(app, file, source, parts.crumbs, frame);
    let fields = fields(parts.body.width);
    let mut heading = Line::from(" ");
    for (title, field) in ["cum", "flat"].iter().zip(&fields) {
        heading.push_span(Span::raw(layout::heading(title, "", *field)));
        heading.push_span(Span::raw(gap(*field)));
    }
    heading.push_span(Span::raw(text::right("line", NUMBER)));
    let room = usize::from(parts.heading.width).saturating_sub(heading.width() + 2);
    let says = COUNTED.iter().find(|says| text::width(says) <= room);
    heading.push_span(says.map_or_else(String::new, |says| format!("  {says}")));
    frame.render_widget(heading.dim(), parts.heading);
    let unit = export::unit(app.metric());
    let page = usize::from(parts.body.height);
    let places = source.offset..(source.offset + page).min(source.len());
    for (y, place) in (parts.body.y..).zip(places) {
        let (number, said) = match (&source.text, &source.lines) {
            (Some(Ok(read)), _) => {
                let said = read.lines[place].replace('\t', "    ");
                (place as u32 + 1, text::clean(&said).into_owned())
            }
            (_, Some(lines)) => {
                (lines[place].number, text::name(&lines[place].label.function).into_owned())
            }
            (_, None) => break,
        };
        let figures = source.figures(number);
        let mut line = Line::from(" ");
        for (i, field) in fields.iter().enumerate() {
            line.push_span(figure(figures, i == 0, unit, *field));
            line.push_span(Span::raw(gap(*field)));
        }
        line.push_span(text::right(&number.to_string(), NUMBER).dim());
        let room = usize::from(parts.body.width).saturating_sub(line.width() + 1);
        let said = text::keep_start(&said, room).into_owned();
        let said = if figures.is_some() { said.bold() } else { Span::raw(said) };
        line.push_span(" ");
        line.push_span(said);
        let area = Rect { y, height: 1, ..parts.body };
        list_row(line, number == source.line, area, frame);
    }
    if let (Some(Err(why)), 0) = (&source.text, source.len()) {
        super::sentence(why.clone(), parts.body, frame);
    }
}

/// The figures that have room.
fn fields(width: u16) -> Vec<Fields> {
    match width {
        ROOMY.. => vec![FIGURE, FIGURE],
        NARROW.. => vec![CLOSE, CLOSE],
        MEDIUM.. => vec![TIGHT, TIGHT],
        _ => vec![TIGHT],
    }
}

/// Behind a figure; one that has an interval fills its field and needs more.
const fn gap(field: Fields) -> &'static str {
    if field.0 < FIGURE.0 { " " } else { "  " }
}

fn figure(line: Option<&SourceLine>, cum: bool, unit: Unit, field: Fields) -> Span<'static> {
    let width = usize::from(field.0) + if field.1 == 0 { 0 } else { usize::from(field.1) + 1 };
    let blank = || Span::raw(" ".repeat(width));
    let Some(line) = line else { return blank() };
    let figure = format::estimate(if cum { &line.cum } else { &line.flat }, unit);
    // Where no callsite is, nothing is allocated: that is no lack of knowledge.
    if !cum && figure.value == format::UNKNOWN {
        return blank();
    }
    let shown = text::left(&layout::figure(&figure, field), width);
    if figure.dim { shown.dim() } else { shown.into() }
}

/// The file at the left; at the right what is counted, or what is wrong with the text.
fn crumbs(app: &App, file: &str, source: &Source, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let started = app.summary().started_unix_ns;
    let trouble = match &source.text {
        None => Some("reading…".to_owned()),
        Some(Err(why)) => Some(why.clone()),
        Some(Ok(read)) => match (read.changed_unix_ns, started) {
            (Some(changed), Some(started)) if changed > started => {
                Some("changed since the program started: lines may be others".to_owned())
            }
            _ => None,
        },
    };
    let right = trouble.unwrap_or_else(|| export::metric(app.metric()).to_owned());
    let right = text::keep_start(&text::clean(&right), (width * 3 / 4).max(8)).into_owned();
    let room = width.saturating_sub(text::width(&right) + 3);
    let file = text::clean(file).into_owned();
    let file = text::keep_path(&file, room).into_owned();
    let gap = width.saturating_sub(2 + text::width(&file) + text::width(&right));
    let line = vec![" ".into(), file.bold(), " ".repeat(gap).into(), right.dim()];
    frame.render_widget(Line::from(line), area);
}
