//! The header: the target, its figures, in use over time.

use heaptop_protocol::message::Track;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::format::{self, Figure, Rounding, Unit};
use super::{text, theme, timebar};
use crate::app::keymap::Keymap;
use crate::app::keys::{Action, Place, TABS, TimeKey};
use crate::app::summary::Summary;
use crate::app::{App, Reading};
use crate::query::When;
use crate::session::Connection;

/// In less room it is only said that what is shown is not now.
const WORDY: usize = 60;
const TERSE: usize = 40;
/// To so many columns a name is cut where room is short: as little as will do.
const NAMES: [usize; 3] = [32, 20, 12];

/// What the first line shows.
struct Title {
    brand: &'static str,
    target: String,
    states: Vec<Span<'static>>,
    tabs: Vec<(Option<Place>, Span<'static>)>,
}

/// The screen whose name, or number, is at `x` of the first line.
#[must_use]
pub fn tab_at(app: &App, x: u16, width: u16) -> Option<Place> {
    let title = titled(app, usize::from(width));
    let all: usize = title.tabs.iter().map(|(_, span)| span.width()).sum();
    let mut from = usize::from(width).saturating_sub(all);
    title.tabs.iter().find_map(|(place, span)| {
        let columns = from..from + span.width();
        from = columns.end;
        place.filter(|_| columns.contains(&usize::from(x)))
    })
}

/// The target at the left, screens and states at the right.
pub fn title(app: &App, area: Rect, frame: &mut Frame) {
    let width = usize::from(area.width);
    let Title { brand, target, states, tabs } = titled(app, width);
    let tabs: Vec<Span> = tabs.into_iter().map(|(_, span)| span).collect();
    let right_width = columns(&states) + columns(&tabs);
    let gap = width.saturating_sub(brand.len() + text::width(&target) + right_width);
    let mut spans = vec![brand.bold(), target.bold(), Span::raw(" ".repeat(gap))];
    spans.extend(states);
    spans.extend(tabs);
    frame.render_widget(Line::from(spans), area);
}

fn titled(app: &App, width: usize) -> Title {
    if app.choosing() {
        // No target is meant, and the screens of one are none to go to.
        let target =
            text::keep_start("targets of this user", width.saturating_sub(10)).into_owned();
        return Title { brand: " heaptop  ", target, states: Vec::new(), tabs: Vec::new() };
    }
    let mut states: Vec<Span> = Vec::new();
    let badge = |word: &'static str| format!(" {word} ").reversed().bold();
    match app.live().connection {
        _ if app.file().is_some() => {}
        Connection::Connecting => states.push(" connecting… ".bold()),
        Connection::Lost(_) => states.push(badge("LOST")),
        Connection::Ended(_) => states.push(badge("ENDED")),
        Connection::Connected => {}
    }
    match app.file() {
        Some(Reading::Percent(percent)) => {
            states.push(format!(" READING {percent} % ").reversed().bold());
        }
        Some(Reading::Done) => states.push(badge("FILE")),
        None => {}
    }
    if app.paused() {
        states.push(badge("PAUSED"));
    }
    if app.playing() {
        states.push(badge("PLAYING"));
    }
    if app.order_held() {
        states.push(badge("ORDER HELD"));
    }
    let summary = app.summary();
    states.extend(moment(app, width).map(|said| format!(" {said} ").reversed().bold()));
    let name = text::clean(&summary.target).into_owned();
    let pid = summary.pid.map(|pid| format!("pid {pid}"));
    let up = summary.uptime_minutes.map(|m| format!("up {}", format::uptime(m)));
    let joined = |name: &str, more: &[&Option<String>]| {
        let more = more.iter().filter_map(|more| more.as_deref());
        std::iter::once(name).chain(more).collect::<Vec<_>>().join(" · ")
    };
    // A long name is cut before anything else has to go.
    let [long, medium, least] = NAMES.map(|columns| text::keep_start(&name, columns));
    // Where one is says more than the end of a name.
    let hint = |columns| text::keep_start(&name, columns).into_owned();
    let wordy = |name: &str| joined(name, &[&pid, &up]);
    let short = |name: &str| joined(name, &[&pid]);
    let states_width = columns(&states);
    let place = app.screen().place();
    let [named, numbers, here] =
        [Tabs::Named, Tabs::Numbers, Tabs::Here].map(|t| tabs(t, place, app.keymap()));
    let brand = " heaptop  ";
    // The longest of these that leaves room for what must be seen.
    let choices = [
        (brand, wordy(&name), &named),
        (" ", wordy(&name), &named),
        (brand, wordy(&long), &named),
        (" ", wordy(&long), &named),
        (" ", wordy(&medium), &named),
        (" ", short(&medium), &named),
        (" ", short(&least), &named),
        (" ", short(&medium), &numbers),
        (" ", short(&least), &numbers),
        (" ", least.clone().into_owned(), &numbers),
        (" ", short(&long), &here),
        (" ", short(&least), &here),
        (" ", least.clone().into_owned(), &here),
        (" ", hint(8), &here),
        (" ", hint(5), &here),
        (" ", short(&long), &Vec::new()),
        (" ", short(&least), &Vec::new()),
        (" ", long.clone().into_owned(), &Vec::new()),
    ];
    let tabs_width = |tabs: &[(_, Span)]| tabs.iter().map(|(_, span)| span.width()).sum::<usize>();
    let fits = |(brand, target, tabs): &(&str, String, &Vec<(_, Span)>)| {
        brand.len() + text::width(target) + states_width + tabs_width(tabs) < width
    };
    let shortest = choices.len() - 1;
    let chosen = choices.iter().position(fits).unwrap_or(shortest);
    let (brand, ref target, tabs) = choices[chosen];
    let room = width.saturating_sub(states_width + tabs_width(tabs) + brand.len() + 1);
    let target = text::keep_start(target, room).into_owned();
    let tabs = tabs.clone();
    Title { brand, target, states, tabs }
}

/// What is shown where it is not now, and the key that leads back.
fn moment(app: &App, width: usize) -> Option<String> {
    let Summary { when, span, now_ns, .. } = app.summary();
    if *when == When::Now {
        return None;
    }
    if width < WORDY {
        // In the least room the time bar says it alone.
        return (width >= TERSE).then(|| "PAST".into());
    }
    let (since, now) = span.unwrap_or((0, *now_ns));
    let said = timebar::words(*when, now.saturating_sub(since));
    let (key, does) = match app.file() {
        _ if app.playing() => (TimeKey::Play, "stops"),
        Some(_) => (TimeKey::Now, "end"),
        // Nothing lives there any more.
        None if matches!(app.live().connection, Connection::Ended(_)) => (TimeKey::Now, "end"),
        None => (TimeKey::Now, "live"),
    };
    Some(match app.key_for(Action::Time(key)) {
        Some(key) => format!("{said} · {key} {does}"),
        None => said,
    })
}

/// How the screens are told.
#[derive(Clone, Copy, PartialEq)]
enum Tabs {
    /// All by number and name.
    Named,
    /// The others by their numbers alone.
    Numbers,
    /// This one alone.
    Here,
}

/// The screens that there are, this one marked.
fn tabs(how: Tabs, here: Place, keymap: &Keymap) -> Vec<(Option<Place>, Span<'static>)> {
    let mut spans = vec![(None, Span::raw(" "))];
    for tab in TABS {
        let key = keymap.key_of(Action::Go(tab.place), here).unwrap_or_default();
        let named = format!("{key} {}", tab.name);
        let span = if tab.place == here {
            named.reversed()
        } else if how == Tabs::Named {
            Span::raw(named)
        } else if how == Tabs::Numbers {
            Span::raw(key)
        } else {
            continue;
        };
        spans.push((Some(tab.place), span));
        spans.push((None, Span::raw(" ")));
    }
    spans
}

/// A figure of the target, and its worth: where room is short the least goes.
struct Item {
    label: &'static str,
    value: String,
    /// Columns that are kept for the value, whatever it is: items stay where they are while
    /// figures become longer and shorter. One that is longer still takes what it needs.
    kept: usize,
    dim: bool,
    loss: bool,
    worth: u8,
}

impl Item {
    fn label(&self) -> usize {
        let label = text::width(self.label);
        label + usize::from(label > 0)
    }

    /// The least it takes.
    fn needs(&self) -> usize {
        self.label() + text::width(&self.value)
    }

    /// What it takes of a line of so many columns.
    fn width(&self, room: usize) -> usize {
        (self.label() + self.kept).min(room).max(self.needs())
    }

    fn spans(&self) -> Vec<Span<'static>> {
        let mut style = Style::new();
        if self.dim {
            style = style.add_modifier(Modifier::DIM);
        }
        if self.loss {
            style = style.patch(theme::LOSS);
        } else if self.worth == IN_USE {
            style = style.add_modifier(Modifier::BOLD);
        }
        let label = match self.label {
            "" => Span::raw(""),
            label if self.loss => Span::styled(format!("{label} "), style),
            label => format!("{label} ").dim(),
        };
        vec![label, Span::styled(self.value.clone(), style)]
    }
}

const IN_USE: u8 = 100;
/// With fewer columns items stand closer, in another order, and say less.
const NARROW: u16 = 100;
/// The longest values that are usual: `12.3 MiB ±0.8 %` and the like.
const BYTES: usize = 15;
const SPEED: usize = 17;
const SHARE: usize = 12;
const PLAIN_BYTES: usize = 8;

/// The target's figures, in as many lines as the area has.
pub fn figures(app: &App, area: Rect, frame: &mut Frame) {
    let gap = if area.width < NARROW { 2 } else { 3 };
    let room = usize::from(area.width.saturating_sub(2));
    let items = items(app, area.width < NARROW, room + 1);
    for (y, line) in (area.y..).zip(flow(items, room, gap, usize::from(area.height))) {
        let mut spans = vec![Span::raw(" ")];
        for item in &line {
            spans.extend(item.spans());
            let blank = item.width(room) - item.needs() + gap;
            spans.push(Span::raw(" ".repeat(blank)));
        }
        frame.render_widget(Line::from(spans), Rect { y, height: 1, ..area });
    }
}

/// All items, from the first to the last. On a narrow screen those that are about as long
/// stand together: so they fit into two lines of 80 columns. In `room` columns an interval that
/// does not fit as a whole is left out: cut it would be another.
fn items(app: &App, narrow: bool, room: usize) -> Vec<Item> {
    let s = app.summary();
    let mut items = Vec::new();
    let mut push = |label, figure: Figure, kept, worth| {
        let dim = figure.dim;
        let mut item = Item { label, value: figure.to_string(), kept, dim, loss: false, worth };
        if item.needs() > room {
            item.value = figure.value;
        }
        items.push(item);
    };
    let known = |value: String| Figure { value, interval: String::new(), dim: false };
    let bytes = |v: f64| known(format::bytes(v, 3, Rounding::Nearest));
    let or_unknown = |figure: Option<Figure>| {
        figure.unwrap_or(Figure {
            value: format::UNKNOWN.into(),
            interval: String::new(),
            dim: true,
        })
    };
    match s.track {
        Track::All => {}
        Track::Promoted => push("", known("promoted and major only".into()), 0, 95),
        Track::Allocations => push("", known("allocations only".into()), 0, 95),
    }
    push("in use", format::estimate(&s.in_use, Unit::Bytes), BYTES, IN_USE);
    if let Some((peak, when)) = &s.peak {
        let peak = format::estimate(peak, Unit::Bytes);
        let when = match when {
            None => "now".into(),
            Some(0) => "at <1 m".into(),
            Some(minutes) => format!("at {}", format::uptime(*minutes)),
        };
        // "at 59 m", and longer in the first minute of an hour.
        push("peak", known(format!("{peak} {when}")), BYTES + 8, 45);
    }
    let rss = or_unknown(s.rss_bytes.map(|b| bytes(b as f64)));
    if !narrow {
        push("RSS", rss.clone(), PLAIN_BYTES, 75);
    }
    push("alloc", format::estimate(&s.allocated_rate, Unit::BytesPerSecond), SPEED, 90);
    push("promoted", format::ratio(&s.promotion), SHARE, 85);
    if narrow {
        push("RSS", rss, PLAIN_BYTES, 75);
    }
    if let Some(r) = s.interval_bytes {
        let thinned = match app.live().losses.thinned {
            0 => String::new(),
            n => format!(", thinned {n}×"),
        };
        // The agent moves it between such.
        let (auto, kept) = if s.governed { (" auto", 17) } else { ("", 0) };
        push("", known(format!("{}{auto}{thinned}", format::interval(r))), kept, 80);
    }
    if let Some(rate) = s.samples_per_second {
        let rate = format::count(rate, 3, Rounding::Nearest);
        push("", known(format!("{rate} samples/s")), 14, 60);
    }
    let of = if narrow { "" } else { " of a core" };
    let cost = s.agent_cost.map(|c| known(format!("{}{of}", format::cost(c))));
    push("cost", or_unknown(cost), 7 + of.len(), 50);
    let loss = app.live().lost() > 0;
    let worth = if loss { 99 } else { 48 };
    items.push(Item { label: "dropped", value: dropped(app), kept: 0, dim: !loss, loss, worth });
    items
}

/// What was lost, by kind.
fn dropped(app: &App) -> String {
    let l = &app.live().losses;
    let kinds = [(l.births, "births"), (l.stacks, "stacks"), (l.unsent, "unsent")];
    let said: Vec<String> = kinds
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, kind)| format!("{} {kind}", format::count(*n as f64, 3, Rounding::Nearest)))
        .collect();
    if said.is_empty() { "0".into() } else { said.join(", ") }
}

/// Breaks items into at most `lines` lines of `room` columns. They are taken in the
/// order of their worth, each that still finds room; the worthiest always does.
fn flow(items: Vec<Item>, room: usize, gap: usize, lines: usize) -> Vec<Vec<Item>> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(items[i].worth));
    let mut taken = vec![false; items.len()];
    for (rank, &i) in order.iter().enumerate() {
        taken[i] = true;
        let widths = items.iter().zip(&taken).filter(|(_, taken)| **taken);
        let fits = items[i].needs() <= room
            && breaks(widths.map(|(item, _)| item.width(room)), room, gap).len() <= lines;
        taken[i] = rank == 0 || fits;
    }
    let mut kept = taken.into_iter();
    let mut items: Vec<Item> = items.into_iter().filter(|_| kept.next() == Some(true)).collect();
    let mut out = Vec::new();
    for at in breaks(items.iter().map(|item| item.width(room)), room, gap).into_iter().rev() {
        out.push(items.split_off(at));
    }
    out.reverse();
    out
}

/// Where lines begin, when each is filled as far as it goes.
fn breaks(widths: impl Iterator<Item = usize>, room: usize, gap: usize) -> Vec<usize> {
    let mut breaks = Vec::new();
    let mut used = 0;
    for (i, width) in widths.enumerate() {
        used = if i == 0 || used + gap + width > room {
            breaks.push(i);
            width
        } else {
            used + gap + width
        };
    }
    breaks
}

fn columns(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}
