//! Screen 7: what is old and lives, what grew, when that comes to a limit, and what resident
//! memory is made of.
//!
//! ```text
//! growth        +3.8 MiB ±1.0 MiB since heaptop came, 30 s ago ▲ 130 KiB/s
//! reaches       cgroup memory.max 2.00 GiB in 3 h (2 h to 5 h), if RSS grows as in use does
//! RSS           100 MiB: in use 12 MiB ±14 %, slack –, files …, agent …, unexplained …
//! born          the generations' times, as far as they are no names of marks
//! heading       callsite    old  age  growth  in use  generations…
//! rows
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::format::{self, Rounding, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names, text};
use crate::app::leaks::{Leaks, Reached};
use crate::app::{App, Reading};
use crate::query::{Generation, LeakFigures, Leaks as Answer, When};
use crate::session::estimate::forecast::Forecast;
use crate::session::figures::Change;

const BYTES: (Fields, Fields) = (Fields(8, 5), Fields(9, 6));
const GROWTH: (Fields, Fields) = (Fields(9, 9), Fields(9, 9));
const COUNT: (Fields, Fields) = (Fields(6, 5), Fields(8, 6));
const TIME: (Fields, Fields) = (Fields(8, 0), Fields(8, 6));
/// Longer than this nobody waits: it is said as it is.
const LONGEST_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;

/// What a column shows.
#[derive(Debug, Clone, Copy)]
enum What {
    Old,
    Objects,
    Age,
    Growth,
    InUse,
    Generation(usize),
}

struct Spec {
    title: String,
    what: What,
    wanted: Wanted,
}

fn columns(answer: Option<&Answer>) -> Vec<Spec> {
    let spec = |title: &str, what, (tight, roomy): (Fields, Fields), worth| Spec {
        title: title.to_owned(),
        what,
        wanted: Wanted { tight, roomy, worth },
    };
    let mut columns = vec![
        spec("growth", What::Growth, GROWTH, 100),
        spec("old", What::Old, BYTES, 95),
        spec("age", What::Age, TIME, 80),
        spec("in use", What::InUse, BYTES, 60),
        spec("old objects", What::Objects, COUNT, 20),
    ];
    let generations = answer.map_or(&[][..], |answer| &answer.generations);
    // The newest are worth most: there leaks begin.
    for (at, generation) in generations.iter().enumerate() {
        let worth = 50 - (generations.len() - at).min(20) as u8;
        columns.push(spec(&title(generation, at), What::Generation(at), BYTES, worth));
    }
    columns
}

/// What a generation is called: by its mark, or by its number.
fn title(generation: &Generation, at: usize) -> String {
    match &generation.mark {
        Some(mark) => format!("≥ {}", text::keep_start(&text::clean(mark), 12)),
        None if at == 0 => "born before".to_owned(),
        None => format!("born {at}"),
    }
}

/// Draws it all.
pub(super) fn draw(app: &App, leaks: &Leaks, parts: &Parts, frame: &mut Frame) {
    let rooms = app.leaks_rooms();
    let answer = leaks.answer.as_ref();
    let area = parts.body;
    let line = |y: usize| Rect { y: area.y + y as u16, height: 1, ..area };
    let said = summary(app, leaks, usize::from(area.width));
    for (y, said) in said.into_iter().take(rooms.summary).enumerate() {
        frame.render_widget(said, line(y));
    }
    let specs = columns(answer);
    let wanted: Vec<Wanted> = specs.iter().map(|spec| spec.wanted).collect();
    let (name, placed) = layout::place(area.width, &wanted);
    if rooms.heading > 0 {
        let mut heading = names::plain("callsite", name);
        for p in &placed {
            pad_to(&mut heading, p.x);
            heading.push_span(Span::raw(layout::heading(&specs[p.index].title, "", p.fields)));
        }
        frame.render_widget(heading.dim(), line(rooms.summary));
    }
    let top = rooms.summary + rooms.heading;
    let body = Rect { y: area.y + top as u16, height: rooms.rows as u16, ..area };
    let Some(answer) = answer else {
        return super::sentence(why_nothing(app), body, frame);
    };
    if answer.len == 0 {
        return super::empty(app, body, frame);
    }
    let places = leaks.cursor.offset()..leaks.cursor.offset() + rooms.rows;
    let shown = places.filter_map(|place| Some((place, answer.row(place)?)));
    for (y, (place, row)) in (body.y..body.bottom()).zip(shown) {
        let mut line = names::callsite(&row.label, name);
        cells(&row.figures, &specs, &placed, &mut line);
        list_row(line, place == leaks.cursor.index(), Rect { y, height: 1, ..body }, frame);
    }
    let mut total = names::plain("all of them", name);
    cells(&answer.total, &specs, &placed, &mut total);
    frame.render_widget(total.bold(), parts.total);
}

fn why_nothing(app: &App) -> String {
    match app.question().when {
        _ if matches!(app.file(), Some(Reading::Percent(_))) => "the recording is being read…",
        When::Peak => "of the peak nothing is known but what was in use: \\ goes back to now",
        _ => "nothing is known of this moment: the first snapshot is not complete",
    }
    .into()
}

fn cells(figures: &LeakFigures, specs: &[Spec], placed: &[Placed], line: &mut Line<'static>) {
    for p in placed {
        pad_to(line, p.x);
        let bytes = |estimate| format::estimate(estimate, Unit::Bytes);
        let figure = match specs[p.index].what {
            What::Growth => {
                line.push_span(growth(figures, p.fields));
                continue;
            }
            What::Old => bytes(&figures.old_bytes),
            What::Objects => format::estimate(&figures.old_objects, Unit::Objects),
            What::Age => format::lifetime(&figures.median_age),
            What::InUse => bytes(&figures.in_use_bytes),
            What::Generation(at) => figures.generations.get(at).map(bytes).unwrap_or_default(),
        };
        let text = layout::figure(&figure, p.fields);
        line.push_span(if figure.dim { text.dim() } else { text.into() });
    }
}

/// Growth with evidence has a sign and a colour; without, it is dim.
fn growth(figures: &LeakFigures, fields: Fields) -> Span<'static> {
    let text = layout::figure(&format::change(figures.growth), fields);
    if figures.grew { text.replacen(" +", "▲+", 1).yellow().bold() } else { text.dim() }
}

/// The lines above the rows, the most telling first where there is room for few.
fn summary(app: &App, leaks: &Leaks, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(answer) = &leaks.answer {
        lines.push(grown(leaks, answer));
        let limits = app.limits();
        lines.push(reaches(answer, &limits));
        lines.push(resident(app, width));
        lines.push(born(app, answer));
        let others = limits.iter().skip(1).filter(|limit| limit.forecast.is_some());
        lines.extend(others.take(1).map(|limit| Line::from(said("or", &limit_of(limit)))));
    }
    lines
        .into_iter()
        .map(|line| {
            let whole: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            if text::width(&whole) <= width {
                line
            } else {
                Line::from(text::keep_start(&whole, width).into_owned())
            }
        })
        .collect()
}

/// A line with its name.
fn said(name: &str, what: &str) -> Vec<Span<'static>> {
    vec![format!(" {name:<9}").dim(), Span::raw(what.to_owned())]
}

fn ago(ns: u64) -> String {
    format::duration(ns as f64, 2, Rounding::Nearest)
}

fn grown(leaks: &Leaks, answer: &Answer) -> Line<'static> {
    let since = match &leaks.base {
        Some(mark) => format!("since “{}”", text::clean(mark)),
        None => "since heaptop came".to_owned(),
    };
    let over = ago(answer.to_ns.saturating_sub(answer.from_ns));
    let change = format::change(answer.total.growth);
    let mut spans = said("growth", "");
    let value = if answer.total.grew {
        format!("▲{change}").yellow().bold()
    } else {
        Span::raw(change.to_string()).dim()
    };
    spans.push(value);
    spans.push(Span::raw(format!(" {since}, over {over}: ")));
    spans.push(match (answer.total.grew, answer.total.growth) {
        (true, Change::Interval { value, .. } | Change::Exact { value }) => {
            let speed = value / answer.seconds().max(1e-9);
            Span::raw(format!("{}/s, with evidence", format::bytes(speed, 2, Rounding::Nearest)))
        }
        (true, _) => Span::raw("with evidence"),
        (false, Change::Unknown) => Span::raw("not known").dim(),
        (false, _) => Span::raw("no evidence of growth").dim(),
    });
    Line::from(spans)
}

/// How long, with its interval.
fn time(forecast: &Forecast) -> String {
    let of = |seconds: f64| {
        if seconds > LONGEST_SECONDS {
            "> 10 years".to_owned()
        } else {
            format::duration(seconds * 1e9, 2, Rounding::Nearest)
        }
    };
    if forecast.seconds == forecast.low && forecast.low == forecast.high {
        return of(forecast.seconds);
    }
    format!("{} ({} to {})", of(forecast.seconds), of(forecast.low), of(forecast.high))
}

fn limit_of(limit: &Reached) -> String {
    let [name, of] = limit.bound.names();
    let most = format::bytes(limit.most as f64, 3, Rounding::Nearest);
    match &limit.forecast {
        Some(forecast) if of == "in use" => format!("{name}, {most} in use, in {}", time(forecast)),
        Some(forecast) => {
            format!("{name}, {most}, in {}, if {of} grows as in use does", time(forecast))
        }
        None => format!("{name}, {most}: –"),
    }
}

fn reaches(answer: &Answer, limits: &[Reached]) -> Line<'static> {
    if !answer.total.grew {
        return Line::from(said("reaches", "– no forecast without evidence of growth"));
    }
    match limits.first() {
        Some(nearest) => Line::from(said("reaches", &limit_of(nearest))),
        None => Line::from(said("reaches", "– no limit is known: L sets one")),
    }
}

fn resident(app: &App, width: usize) -> Line<'static> {
    let of = app.resident();
    let bytes = |value: Option<u64>| {
        value.map_or(format::UNKNOWN.to_owned(), |v| format::bytes(v as f64, 3, Rounding::Nearest))
    };
    let slack = if width >= 110 { "allocator slack –" } else { "slack –" };
    let unexplained = format::change(of.unexplained).to_string();
    let parts = format!(
        "{}: in use {}, {slack}, files {}, agent {}, unexplained {}",
        bytes(of.rss),
        format::estimate(&of.in_use, Unit::Bytes),
        bytes(of.files),
        bytes(of.agent),
        unexplained.trim_start_matches('+'),
    );
    Line::from(said("RSS", &parts))
}

/// When generations were born, for those without a mark's name; and how marks are made.
fn born(app: &App, answer: &Answer) -> Line<'static> {
    let now = answer.to_ns;
    let marked = answer.generations.iter().any(|generation| generation.mark.is_some());
    let what = if marked {
        "≥ mark: after it, until the next".to_owned()
    } else {
        let last = answer.generations.last();
        let part = last.map_or(0, |last| now.saturating_sub(last.from_ns));
        format!("1 to {}: {} each; M marks", answer.generations.len().saturating_sub(1), ago(part))
    };
    let every = match app.marks_every() {
        Some(1) => "a mark every minute".to_owned(),
        Some(minutes) => format!("a mark every {minutes} minutes"),
        None => "A marks by itself".to_owned(),
    };
    let what = format!("{what}; {every}; old: over {}", ago(answer.older_than_ns));
    Line::from(said("born", &what))
}

/// Goes on at column `x` of the list.
fn pad_to(line: &mut Line<'static>, x: u16) {
    let missing = usize::from(x).saturating_sub(line.width());
    line.push_span(Span::raw(" ".repeat(missing)));
}
