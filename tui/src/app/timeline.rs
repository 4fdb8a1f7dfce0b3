//! The timeline: what it remembers, what it asks, and where its parts are.
//!
//! Where the chart is must be known here too: the mouse sets the time cursor on it.

use ratatui::layout::Rect;

use super::App;
use super::cursor::Cursor;
use super::screens::Screen;
use crate::query::{self, NodeKey, Series, Timeline as Answer};
use crate::session::Session;

/// Most callsites that are told apart: as many as there are fillings.
pub const MOST_SERIES: usize = 7;
/// With this many columns there is room for names beside the curves.
const NAMED_FROM: u16 = 60;
/// With this many the legend stands beside the chart, else below it.
const BESIDE_FROM: u16 = 110;
/// Columns of the names of curves, and of the amounts at the axis.
const LEFT: u16 = 12;
/// Columns behind the chart, for what the highest of a curve is.
const RIGHT: u16 = 14;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The target over time; `None` before the first answer.
    pub answer: Option<Answer>,
    /// The selected callsite of the legend.
    pub cursor: Cursor,
    /// Where the mouse was pressed, in nanoseconds since the agent's start.
    pressed_ns: Option<u64>,
}

/// Where the parts of the timeline are, on the whole screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// A line that says what is shown, and of when.
    pub caption: Rect,
    /// Bytes in use, by callsite.
    pub chart: Rect,
    /// Allocated and promoted per second, and resident memory: the same columns.
    pub strips: [Rect; 3],
    /// Marks, peak, and where the viewer came.
    pub events: Rect,
    /// Times.
    pub axis: Rect,
    /// The callsites.
    pub legend: Rect,
    /// Columns for names at the left of all charts.
    pub left: u16,
    /// Columns behind all charts.
    pub right: u16,
}

impl Layout {
    /// Divides the body of the screen.
    #[must_use]
    pub fn of(body: Rect) -> Self {
        let (width, height) = (body.width, body.height);
        if height == 0 {
            return Self::default();
        }
        let beside = width >= BESIDE_FROM && height >= 10;
        let named = width >= NAMED_FROM;
        let legend_width = if beside { (width / 3).clamp(50, 80) } else { 0 };
        let left = if named { LEFT } else { 0 };
        let right = if named { RIGHT } else { 0 };
        let columns = width - legend_width - left - right;

        // The body's first line is the chart's; the rest go by their worth.
        let mut free = height.saturating_sub(1);
        let mut give = |wanted: bool, lines: u16, from: u16| {
            let given = if wanted && height >= from { lines.min(free) } else { 0 };
            free -= given;
            given
        };
        let caption = give(true, 1, 2);
        let axis = give(true, 1, 4);
        let strips = give(named, 3, 8) / 3;
        let events = give(true, 1, 9);
        // One for the heading, one for the others.
        let legend = match height {
            _ if beside => 0,
            0..12 => give(named, 2, 10),
            12..17 => give(named, 4, 12),
            17..30 => give(named, 6, 17),
            _ => give(true, 9, 30),
        };
        let strips = if height >= 60 {
            strips + give(named, 12, 60) / 3
        } else {
            strips + give(named, 3, 26) / 3
        };
        let chart = 1 + free;

        let mut y = body.y;
        let mut next = |x: u16, width: u16, height: u16| {
            let rect = Rect { x: body.x + x, y, width, height };
            y += height;
            rect
        };
        let across = left + columns + right;
        let caption = next(0, across, caption);
        let chart = next(left, columns, chart);
        let strips = [(); 3].map(|()| next(left, columns, strips));
        let events = next(left, columns, events);
        let axis = next(left, columns, axis);
        let legend = if beside {
            Rect { x: body.x + across, width: legend_width, ..body }
        } else {
            next(0, width, legend)
        };
        Self { caption, chart, strips, events, axis, legend, left, right }
    }

    /// How many callsites have room.
    #[must_use]
    pub fn series(&self) -> usize {
        usize::from(self.legend.height).saturating_sub(2).min(MOST_SERIES)
    }

    /// The column of the charts that a place on the screen is in.
    pub(super) fn column_at(&self, x: u16, y: u16) -> Option<u16> {
        let rows = self.chart.y..self.axis.bottom().max(self.chart.bottom());
        let columns = self.chart.x..self.chart.right();
        (rows.contains(&y) && columns.contains(&x)).then(|| x - self.chart.x)
    }
}

impl Timeline {
    /// The selected callsite, where there is a legend.
    #[must_use]
    pub fn selected(&self) -> Option<&Series> {
        self.answer.as_ref()?.series.get(self.cursor.index())
    }

    /// Moves the selection.
    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize) {
        let Some(answer) = &self.answer else { return };
        let series = &answer.series;
        let page = series.len();
        self.cursor.select(to(self.cursor.index()), page, |i| series[i].key.0, page);
    }

    /// Size or callsites have changed.
    pub(super) fn settle(&mut self) {
        let len = self.answer.as_ref().map_or(0, |answer| answer.series.len());
        self.cursor.place(len, len);
    }

    /// The middle of a column.
    fn time_at(&self, column: u16) -> Option<u64> {
        let answer = self.answer.as_ref()?;
        let columns = answer.in_use.len().max(1) as u128;
        let span = u128::from(answer.to_ns - answer.from_ns);
        Some(answer.from_ns + (span * (2 * u128::from(column) + 1) / (2 * columns)) as u64)
    }
}

impl App {
    /// Where the parts of the timeline are.
    #[must_use]
    pub fn timeline_layout(&self) -> Layout {
        let rooms = self.rooms();
        let y = rooms.above_body();
        Layout::of(Rect { x: 0, y, width: self.size.0, height: rooms.body })
    }

    pub(super) fn ask_timeline(&mut self, session: &Session) {
        let layout = self.timeline_layout();
        let columns = usize::from(layout.chart.width);
        let (filter, when) = (&self.question.filter, self.question.when);
        let Some(Screen::Timeline(timeline)) = self.stack.first_mut() else { return };
        let answer = query::timeline(session, filter, when, columns, layout.series());
        let series = &answer.series;
        let find = |id| series.iter().position(|series| series.key == NodeKey(id));
        timeline.cursor.settle(series.len(), find, series.len());
        if timeline.answer.as_ref().is_none_or(|held| !held.is_same(&answer)) {
            timeline.answer = Some(answer);
            self.dirty = true;
        }
    }

    /// The mouse is pressed, or dragged, on the timeline: the time cursor goes there, or
    /// there is a range from where it was pressed. Whether it is on a chart.
    pub(super) fn point_at_time(&mut self, (x, y): (u16, u16), drag: bool, session: &Session) {
        let layout = self.timeline_layout();
        let Some(Screen::Timeline(timeline)) = self.stack.last_mut() else { return };
        // Who drags beyond the chart means its end.
        let (x, y) = if drag && layout.chart.width > 0 {
            (x.clamp(layout.chart.x, layout.chart.right() - 1), layout.chart.y)
        } else {
            (x, y)
        };
        let Some(at) = layout.column_at(x, y).and_then(|column| timeline.time_at(column)) else {
            if !drag {
                timeline.pressed_ns = None;
            }
            return;
        };
        if drag {
            let Some(from) = timeline.pressed_ns else { return };
            self.travel(session, |times, span| times.set_range(from, at, span));
        } else {
            timeline.pressed_ns = Some(at);
            self.point_at(at, session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_the_body_and_beside_each_other() {
        for width in [0, 1, 20, 40, 59, 60, 80, 109, 110, 120, 300, 500] {
            for height in 0..90 {
                let body = Rect { x: 0, y: 4, width, height };
                let l = Layout::of(body);
                let parts = [l.caption, l.chart, l.events, l.axis, l.legend];
                let parts: Vec<Rect> = parts.into_iter().chain(l.strips).collect();
                for (i, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                    assert_eq!(part.intersection(body), *part, "{width}×{height}: {l:?}");
                    for other in &parts[i + 1..] {
                        assert!(!part.intersects(*other), "{width}×{height}: {l:?}");
                    }
                }
                assert!(height == 0 || l.chart.height > 0, "{width}×{height}: {l:?}");
                assert!(height < 17 || width < 60 || l.series() >= 4, "{width}×{height}: {l:?}");
            }
        }
    }

    #[test]
    fn the_chart_has_most_of_the_room() {
        let l = Layout::of(Rect { x: 0, y: 4, width: 80, height: 18 });
        assert!(l.chart.height >= 6 && l.chart.width >= 50, "{l:?}");
        let l = Layout::of(Rect { x: 0, y: 4, width: 300, height: 70 });
        assert!(l.chart.height >= 40 && l.chart.width >= 190, "{l:?}");
    }
}
