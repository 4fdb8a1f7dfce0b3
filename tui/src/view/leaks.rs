//! Screen 7: what is old and lives, what grew, when that comes to a limit, and what resident
//! memory is made of.
//!
//! ```text
//! growth        +3.8 MiB ±1.0 MiB since heaptop came, 30 s ago ▲ 130 KiB/s
//! reaches       cgroup memory.max 2.00 GiB in 3 h (2 h to 5 h), if RSS grows as in use does
//! RSS           100 MiB: in use 12 MiB ±14 %, slack –, files …, agent …, unexplained …
//! born          the generations' times, as far as they are no names of marks
//! heading       callsite, and the order where it has two parts    growth  old  age  …
//! rows
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::callsites::name_columns;
use super::format::{self, Rounding, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names, text, theme};
use crate::app::keys::{Action, TimeKey};
use crate::app::leaks::Leaks;
use crate::app::{App, Reading};
use crate::query::{Generation, LeakColumn, LeakFigures, Leaks as Answer};
use crate::query::{NoForecast, Reached, Sorted, When};
use crate::session::estimate::forecast::Forecast;
use crate::session::figures::Change;

const BYTES: (Fields, Fields) = (Fields(8, 5), Fields(9, 6));
const GROWTH: (Fields, Fields) = (Fields(9, 9), Fields(9, 9));
const COUNT: (Fields, Fields) = (Fields(6, 5), Fields(8, 6));
const TIME: (Fields, Fields) = (Fields(8, 0), Fields(8, 6));
/// Longer than this nobody waits: it is said as it is.
const LONGEST_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;

struct Spec {
    title: String,
    what: LeakColumn,
    wanted: Wanted,
}

fn columns(answer: Option<&Answer>) -> Vec<Spec> {
    let spec = |title: &str, what, (tight, roomy): (Fields, Fields), worth| Spec {
        title: title.to_owned(),
        what,
        wanted: Wanted { tight, roomy, worth },
    };
    let mut columns = vec![
        spec("growth", LeakColumn::Growth, GROWTH, 100),
        spec("old", LeakColumn::Old, BYTES, 95),
        spec("age", LeakColumn::Age, TIME, 80),
        spec("in use", LeakColumn::InUse, BYTES, 60),
        spec("old objects", LeakColumn::Objects, COUNT, 20),
    ];
    let generations = answer.map_or(&[][..], |answer| &answer.generations);
    // The newest are worth most: there leaks begin.
    for (at, generation) in generations.iter().enumerate() {
        let worth = 50 - (generations.len() - at).min(20) as u8;
        columns.push(spec(&title(generation, at), LeakColumn::Generation(at), BYTES, worth));
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

fn place(specs: &[Spec], width: u16) -> (u16, Vec<Placed>) {
    let wanted: Vec<Wanted> = specs.iter().map(|spec| spec.wanted).collect();
    layout::place(width, &wanted)
}

/// The column at `x`, names among them.
#[must_use]
pub fn column_at(answer: Option<&Answer>, x: u16, width: u16) -> Option<LeakColumn> {
    let specs = columns(answer);
    let (name, placed) = place(&specs, width);
    if x <= name {
        return Some(LeakColumn::Name);
    }
    layout::at(&placed, x).map(|index| specs[index].what)
}

/// The columns that are seen on so many of the terminal's, names last.
#[must_use]
pub fn columns_seen(answer: Option<&Answer>, width: u16) -> Vec<LeakColumn> {
    let specs = columns(answer);
    let (_, placed) = place(&specs, width);
    placed.iter().map(|p| specs[p.index].what).chain([LeakColumn::Name]).collect()
}

/// Draws it all.
pub(super) fn draw(app: &App, leaks: &Leaks, parts: &Parts, frame: &mut Frame) {
    let rooms = app.leaks_rooms();
    let answer = leaks.answer.as_ref();
    let area = parts.body;
    let line = |y: usize| Rect { y: area.y + y as u16, height: 1, ..area };
    let said = summary(app, leaks, usize::from(area.width), rooms.summary);
    for (y, said) in said.into_iter().take(rooms.summary).enumerate() {
        frame.render_widget(said, line(y));
    }
    let specs = columns(answer);
    let (name, placed) = place(&specs, area.width);
    let order = leaks.order;
    let mark = |column| {
        let second = order.is_two_part() && column == LeakColumn::Old;
        layout::mark(order.column == column || second, order.first)
    };
    if rooms.heading > 0 {
        let mut heading = names::plain(&callsite(order), name);
        for p in &placed {
            layout::pad_to(&mut heading, p.x);
            let Spec { title, what, .. } = &specs[p.index];
            heading.push_span(Span::raw(layout::heading(title, mark(*what), p.fields)));
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
    let shown: Vec<_> = places.filter_map(|place| Some((place, answer.row(place)?))).collect();
    let names =
        names::callsites(shown.iter().map(|(_, row)| &row.label), name, name_columns(app, name));
    for ((y, mut line), &(place, row)) in (body.y..body.bottom()).zip(names).zip(&shown) {
        cells(&row.figures, &specs, &placed, &mut line);
        list_row(line, place == leaks.cursor.index(), Rect { y, height: 1, ..body }, frame);
    }
    let mut total = names::plain("all of them", name);
    cells(&answer.total, &specs, &placed, &mut total);
    frame.render_widget(total.bold(), parts.total);
}

/// The heading of the names. Two marks do not tell which column comes first.
fn callsite(order: Sorted<LeakColumn>) -> String {
    match (order.is_two_part(), order.first) {
        (true, true) => "callsite, grown first".to_owned(),
        (true, false) => "callsite, grown last".to_owned(),
        (false, first) => {
            let mark = layout::mark(order.column == LeakColumn::Name, first);
            format!("callsite {mark}").trim_end().to_owned()
        }
    }
}

fn why_nothing(app: &App) -> String {
    match app.question().when {
        _ if matches!(app.file(), Some(Reading::Percent(_))) => {
            "the recording is being read…".into()
        }
        _ if app.under_way().is_some() => "what lives is being added up…".into(),
        When::Peak => {
            let said = "of the peak nothing is known but what was in use";
            app.with_key(said, Action::Time(TimeKey::Now), "goes back to now")
        }
        _ => "nothing is known of this moment: the first snapshot is not complete".into(),
    }
}

fn cells(figures: &LeakFigures, specs: &[Spec], placed: &[Placed], line: &mut Line<'static>) {
    for p in placed {
        layout::pad_to(line, p.x);
        let bytes = |estimate| format::estimate(estimate, Unit::Bytes);
        let figure = match specs[p.index].what {
            LeakColumn::Growth => {
                line.push_span(growth(figures, p.fields));
                continue;
            }
            LeakColumn::Old => bytes(&figures.old_bytes),
            LeakColumn::Objects => format::estimate(&figures.old_objects, Unit::Objects),
            LeakColumn::Age => format::lifetime(&figures.median_age),
            LeakColumn::InUse => bytes(&figures.in_use_bytes),
            LeakColumn::Generation(at) => {
                figures.generations.get(at).map(bytes).unwrap_or_default()
            }
            // Names are no figures.
            LeakColumn::Name => continue,
        };
        let text = layout::figure(&figure, p.fields);
        line.push_span(if figure.dim { text.dim() } else { text.into() });
    }
}

/// Growth with evidence has a sign and a colour; without, it is dim.
fn growth(figures: &LeakFigures, fields: Fields) -> Span<'static> {
    let text = layout::figure(&format::change(figures.growth), fields);
    if figures.grew {
        Span::styled(text.replacen(" +", "▲+", 1), theme::GROWTH)
    } else {
        text.dim()
    }
}

/// The lines above the rows, the most telling first where there is room for few: each in
/// the longest of its forms that fits, or, where lines are left, in two.
fn summary(app: &App, leaks: &Leaks, width: usize, lines: usize) -> Vec<Line<'static>> {
    let Some(answer) = &leaks.answer else { return Vec::new() };
    let limits = app.limits();
    let filter = app.question().filter.as_str();
    let said = [
        grown(app, leaks, answer),
        reaches(app, answer, &limits),
        resident(app),
        born(app, answer),
    ];
    let room = width.saturating_sub(NAME);
    // Where lines are left, those have two first that say least in one.
    let mut spare = lines.saturating_sub(said.len());
    let mut broken: [Option<(String, String)>; 4] = Default::default();
    for at in [2, 1, 0, 3] {
        let whole = &said[at].forms[0];
        if spare > 0 && text::width(whole) > room {
            broken[at] = in_two(whole, room);
            spare -= usize::from(broken[at].is_some());
        }
    }
    let mut shown = Vec::new();
    for (said, broken) in said.iter().zip(broken) {
        if let Some((first, second)) = broken {
            shown.push(said.line(&first));
            shown.push(Line::from(format!("{}{second}", " ".repeat(NAME))));
        } else {
            shown.push(said.fitted(room));
        }
    }
    let others = limits.iter().skip(1).filter(|limit| limit.forecast.is_some());
    shown.extend(others.take(1).map(|limit| Said::of("or", limit_of(limit, filter)).fitted(room)));
    shown
}

/// Columns of a line's name.
const NAME: usize = 10;

/// What a line says.
struct Said {
    name: &'static str,
    /// The longest first.
    forms: Vec<String>,
    /// A figure at its beginning, and how it looks.
    figure: String,
    with_evidence: Option<bool>,
}

impl Said {
    fn of(name: &'static str, forms: Vec<String>) -> Self {
        Self { name, forms, figure: String::new(), with_evidence: None }
    }

    /// The longest form that `room` columns hold.
    fn fitted(&self, room: usize) -> Line<'static> {
        let fits = |form: &&String| text::width(form) <= room;
        let form = self.forms.iter().find(fits).or(self.forms.last());
        self.line(&form.map(|form| text::keep_start(form, room)).unwrap_or_default())
    }

    fn line(&self, form: &str) -> Line<'static> {
        let mut line = Line::from(format!(" {:<9}", self.name).dim());
        let rest = form.strip_prefix(self.figure.as_str());
        if let (Some(evidence), Some(rest)) = (self.with_evidence, rest) {
            let figure = self.figure.clone();
            line.push_span(if evidence {
                Span::styled(figure, theme::GROWTH)
            } else {
                figure.dim()
            });
            line.push_span(Span::raw(rest.to_owned()));
        } else {
            line.push_span(Span::raw(form.to_owned()));
        }
        line
    }
}

/// Cut behind a comma, or another sign, so that both parts fit.
fn in_two(text: &str, room: usize) -> Option<(String, String)> {
    let ends = text.match_indices([',', ';', ':']).map(|(at, _)| at + 1);
    let mut cuts = ends.filter(|at| text[*at..].starts_with(' ')).map(|at| text.split_at(at));
    let fits = |part: &str| text::width(part) <= room;
    let (first, second) = cuts.rfind(|(first, second)| fits(first) && fits(second.trim_start()))?;
    Some((first.to_owned(), second.trim_start().to_owned()))
}

fn ago(ns: u64) -> String {
    if ns == 0 {
        return "no time".into();
    }
    format::duration(ns as f64, 2, Rounding::Nearest)
}

fn grown(app: &App, leaks: &Leaks, answer: &Answer) -> Said {
    let range = matches!(app.question().when, When::Range { .. });
    let since = |columns| app.grown_since(leaks.base.as_deref(), columns);
    let over = if range { "," } else { ", over" };
    let over = format!("{over} {}", ago(answer.to_ns.saturating_sub(answer.from_ns)));
    let change = format::change(answer.total.growth);
    let grew = answer.total.grew;
    let figure = if grew { format!("▲{change}") } else { change.to_string() };
    let [why, short] = match (answer.quiet_ns(), grew, answer.total.growth) {
        (Some(quiet), ..) => {
            let last = ago(quiet);
            [
                format!("with evidence, but none in the last {last}"),
                format!("none in the last {last}"),
            ]
        }
        // A speed over a moment is none.
        (_, true, _) if answer.seconds() < 1.0 => ["with evidence".into(), "with evidence".into()],
        (_, true, Change::Interval { value, .. } | Change::Exact { value }) => {
            let speed = value / answer.seconds().max(1e-9);
            let speed = format::bytes(speed, 2, Rounding::Nearest);
            [format!("{speed}/s, with evidence"), format!("{speed}/s")]
        }
        (_, true, _) => ["with evidence".into(), "with evidence".into()],
        (_, false, Change::Unknown) => ["not known".into(), "not known".into()],
        (_, false, _) => ["no evidence of growth".into(), "no evidence".into()],
    };
    // Else it would seem to be the growth of the in use that stands in the header.
    let what = if app.question().filter.is_empty() { "" } else { TAKEN };
    let forms = vec![
        format!("{figure}{what} {}{over}: {why}", since(200)),
        format!("{figure}{what} {}{over}: {short}", since(24)),
        format!("{figure} {}{over}: {short}", since(24)),
        format!("{figure} {}{over}: {short}", since(12)),
        format!("{figure}{over}: {short}"),
        format!("{figure}{over}"),
        figure.clone(),
    ];
    Said { name: "growth", forms, figure, with_evidence: Some(grew) }
}

/// Of what figures are while there is a filter.
const TAKEN: &str = " of what the filter takes";

/// How long, with its interval, and without.
fn time(forecast: &Forecast) -> [String; 2] {
    let of = |seconds: f64| {
        if seconds > LONGEST_SECONDS {
            "> 10 years".to_owned()
        } else {
            format::duration(seconds * 1e9, 2, Rounding::Nearest)
        }
    };
    let value = of(forecast.seconds);
    if forecast.seconds == forecast.low && forecast.low == forecast.high {
        return [value.clone(), value];
    }
    [format!("{value} ({} to {})", of(forecast.low), of(forecast.high)), value]
}

/// A limit, and when it is reached, in words, the longest first. With a `filter` it is growth
/// of what that takes, which says so.
#[must_use]
pub fn limit_of(limit: &Reached, filter: &str) -> Vec<String> {
    let [name, of] = limit.bound.names();
    let (what, grower) =
        if filter.is_empty() { ("", "in use") } else { (TAKEN, "what the filter takes") };
    let most = format::bytes(limit.most as f64, 3, Rounding::Nearest);
    let Some(forecast) = &limit.forecast else {
        return vec![format!("{name}, {most}: –"), format!("{name}: –"), "–".into()];
    };
    if forecast.seconds <= 0.0 {
        return vec![
            format!("{name}, {most} {of}{}, is passed", if of == "in use" { what } else { "" }),
            format!("{name} is passed"),
            "passed".into(),
        ];
    }
    let [long, short] = time(forecast);
    let pace = limit.pace.map_or_else(Default::default, |pace| {
        let speed = format::bytes(pace.bytes_per_s, 2, Rounding::Nearest);
        format!(" at {speed}/s as in the last {}", ago(pace.last_ns))
    });
    let mut forms = if of == "in use" {
        vec![format!("{name}, {most} in use{what}, in {long}{pace}")]
    } else {
        vec![
            format!("{name}, {most}, in {long}{pace}, if {of} grows as {grower} does"),
            format!("{name}, {most}, in {long}{pace}, if {of} grows alike"),
        ]
    };
    forms.extend([
        format!("{name} in {long}{pace}"),
        format!("{name} in {short}{pace}"),
        format!("{name} in {long}"),
        format!("{name} in {short}"),
        format!("limit in {short}"),
    ]);
    forms
}

/// Why there is no forecast, the longest first.
#[must_use]
pub const fn no_forecast(why: NoForecast) -> [&'static str; 3] {
    match why {
        NoForecast::NoEvidence => {
            ["– no forecast without evidence of growth", "– no evidence of growth", "–"]
        }
        NoForecast::TooSoon => {
            ["– no forecast from less than ten seconds of growth", "– not yet", "–"]
        }
        NoForecast::Quiet => [
            "– no forecast: there is no evidence that it goes on",
            "– no evidence that it goes on",
            "–",
        ],
    }
}

fn reaches(app: &App, answer: &Answer, limits: &[Reached]) -> Said {
    let of = |forms: &[&str]| forms.iter().map(|&form| form.to_owned()).collect();
    let forms = match (answer.no_forecast(), limits.first()) {
        (Some(why), _) => of(&no_forecast(why)),
        (None, Some(nearest)) => limit_of(nearest, &app.question().filter),
        (None, None) => match app.key_for(Action::Limit) {
            Some(key) => vec![
                format!("– no limit is known: {key} sets one"),
                format!("– {key} sets a limit"),
                "–".to_owned(),
            ],
            None => of(&["– no limit is known", "–"]),
        },
    };
    Said::of("reaches", forms)
}

fn resident(app: &App) -> Said {
    let of = app.resident();
    let bytes = |value: Option<u64>, digits| {
        let of = |v| format::bytes(v as f64, digits, Rounding::Nearest);
        value.map_or(format::UNKNOWN.to_owned(), of)
    };
    let change = format::change(of.unexplained);
    let unexplained = change.to_string().trim_start_matches('+').to_owned();
    let short = change.value.trim_start().trim_start_matches('+').to_owned();
    if app.file().is_some() {
        // What the system knew of it is in no file, but for RSS.
        let in_use = format::estimate(&of.in_use, Unit::Bytes);
        let rss = bytes(of.rss, 3);
        let what = "files, agent and slack are not recorded";
        let forms =
            vec![format!("{rss}: in use {in_use}; {what}"), format!("{rss}: in use {in_use}"), rss];
        return Said::of("RSS", forms);
    }
    let (rss, in_use) = (bytes(of.rss, 3), format::estimate(&of.in_use, Unit::Bytes));
    let begin = format!("{rss}: in use {in_use}");
    let parts = format!("files {}, agent {}", bytes(of.files, 3), bytes(of.agent, 3));
    let both = of.files.zip(of.agent).map(|(files, agent)| files + agent);
    let forms = vec![
        format!("{begin}, allocator slack –, {parts}, unexplained {unexplained}"),
        format!("{begin}, slack –, {parts}, unexplained {unexplained}"),
        format!("{begin}, files and agent {}, unexplained {unexplained}", bytes(both, 2)),
        format!("{begin}, files+agent {}, unexplained {short}", bytes(both, 2)),
        format!("{begin}, unexplained {short}"),
        begin,
        rss,
    ];
    Said::of("RSS", forms)
}

/// When generations were born, for those without a mark's name; and how marks are made.
fn born(app: &App, answer: &Answer) -> Said {
    let now = answer.to_ns;
    let marked = answer.generations.iter().any(|generation| generation.mark.is_some());
    // Of a file nobody marks anything any more.
    let file = app.file().is_some();
    let marks = match app.key_for(Action::Mark) {
        Some(key) if !file => format!("; {key} marks"),
        _ => String::new(),
    };
    let [what, short] = if marked {
        ["≥ mark: after it, until the next".to_owned(), "≥ mark: after it".to_owned()]
    } else {
        let last = answer.generations.last();
        let part = ago(last.map_or(0, |last| now.saturating_sub(last.from_ns)));
        let parts = answer.generations.len().saturating_sub(1);
        [format!("1 to {parts}: {part} each{marks}"), format!("1 to {parts}: {part} each")]
    };
    let specs = columns(Some(answer));
    let generations = |p: &Placed| matches!(specs[p.index].what, LeakColumn::Generation(_));
    let (_, placed) = place(&specs, app.list_columns());
    let any = answer.generations.len() > 1 && placed.iter().any(generations);
    // Of columns that nobody sees nothing is said but that they are there.
    let [what, short] = match (any, answer.generations.len() > 1) {
        (true, _) => [what, short],
        (false, true) => [format!("columns with more room{marks}"), "with more room".into()],
        (false, false) => ["–".to_owned(), "–".to_owned()],
    };
    let every = match app.marks_every() {
        _ if file => String::new(),
        Some(1) => "a mark every minute".to_owned(),
        Some(minutes) => format!("a mark every {minutes} minutes"),
        None => match app.key_for(Action::Automatic) {
            Some(key) => format!("{key} marks by itself"),
            None => String::new(),
        },
    };
    let old = match answer.older_than_ns {
        0 => "old: of any age".to_owned(),
        ns => format!("old: over {}", ago(ns)),
    };
    let every = if every.is_empty() { every } else { format!("; {every}") };
    let forms = vec![
        format!("{what}{every}; {old}"),
        format!("{short}{every}; {old}"),
        format!("{short}; {old}"),
        old,
    ];
    Said::of("born", forms)
}
