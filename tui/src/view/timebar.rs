//! The time bar: bytes in use since the target's start, and what of it the screens
//! show, where that is not now.
//!
//! The moment is said in words beside the curve, and marked on it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::format::{self, Rounding};
use super::{spark, text};
use crate::app::App;
use crate::query::When;

const LABEL: &str = " in use ";
/// In less room there is the curve alone.
const WORDY: usize = 60;

/// What is said behind the curve, and how many columns that has; `None`: there is no curve.
fn divided(app: &App, room: usize) -> (String, Option<usize>) {
    let summary = app.summary();
    let largest = summary.curve.iter().map(|(_, v)| *v);
    let largest = largest.filter(|v| v.is_finite()).fold(0.0, f64::max);
    let note = match summary.when {
        _ if app.under_way().is_some() => {
            let percent = app.under_way().unwrap_or_default();
            format!(" adding up, {percent} % ")
        }
        When::Now if largest <= 0.0 || room < WORDY => String::new(),
        When::Now => {
            let top = format::bytes(largest, 3, Rounding::Nearest);
            let since = summary.uptime_minutes.map(|m| format!(" in {}", format::uptime(m)));
            format!(" 0 to {top}{} ", since.unwrap_or_default())
        }
        when => {
            let (since, now) = summary.span.unwrap_or((0, summary.now_ns));
            let span_ns = now.saturating_sub(since);
            format!(" {} of {} ", words(when, span_ns), format::moment(now, span_ns))
        }
    };
    // Of when it is must be said, before all else.
    let now = summary.when == When::Now && app.under_way().is_none();
    let columns =
        (room >= WORDY || now).then(|| room.saturating_sub(LABEL.len() + text::width(&note)));
    (note, columns)
}

/// The columns of the curve, on a screen of `width`.
pub fn columns(app: &App, width: u16) -> std::ops::Range<u16> {
    let columns = divided(app, usize::from(width)).1.unwrap_or(0) as u16;
    LABEL.len() as u16..LABEL.len() as u16 + columns
}

/// The moment in the middle of the column at `x`; `None` beside the curve.
pub fn time_at(app: &App, x: u16, width: u16) -> Option<u64> {
    let columns = columns(app, width);
    let axis = Axis::of(&app.summary().curve, columns.len());
    let known = columns.contains(&x) && axis.first < axis.last;
    known.then(|| axis.time(usize::from(x - columns.start)))
}

/// Draws it, in as many lines as the area has.
pub fn draw(app: &App, area: Rect, frame: &mut Frame) {
    let summary = app.summary();
    let curve = &summary.curve;
    let room = usize::from(area.width);
    let (note, columns) = divided(app, room);
    let Some(columns) = columns else {
        let note = text::keep_start(&note, room).into_owned();
        return frame.render_widget(Line::from(note.bold()), area);
    };
    let axis = Axis::of(curve, columns);
    let values = axis.values(curve);
    let lines = spark::lines(&values, columns, usize::from(area.height));
    let last = lines.len().saturating_sub(1);
    let marked = axis.marked(app.times().cursor(), summary.when);
    for (i, curve) in lines.into_iter().enumerate() {
        let mut line = Line::from(if i == last { LABEL } else { "        " }.dim());
        for (column, cell) in curve.chars().enumerate() {
            let style = marked.style(column);
            line.push_span(Span::styled(cell.to_string(), style));
        }
        if i == last {
            line.push_span(note.clone().bold());
        }
        let y = area.y + i as u16;
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// A moment or range of the past in words; the present has none.
pub fn words(when: When, span_ns: u64) -> String {
    let moment = |ns| format::moment(ns, span_ns);
    match when {
        When::Now => String::new(),
        When::Peak => "the peak".into(),
        When::At(ns) => format!("at {}", moment(ns)),
        When::Range { from_ns, to_ns } => {
            format!("{} to {}", moment(from_ns), moment(to_ns))
        }
    }
}

/// Columns over time.
struct Axis {
    first: u64,
    last: u64,
    columns: usize,
}

impl Axis {
    fn of(curve: &[(u64, f64)], columns: usize) -> Self {
        let ends = curve.first().zip(curve.last());
        let (first, last) = ends.map_or((0, 0), |(first, last)| (first.0, last.0));
        Self { first, last, columns }
    }

    fn column(&self, at: u64) -> usize {
        let span = u128::from(self.last.saturating_sub(self.first)).max(1);
        let at = u128::from(at.clamp(self.first, self.last) - self.first);
        let last = self.columns.saturating_sub(1);
        ((at * self.columns as u128 / span) as usize).min(last)
    }

    /// The middle of a column.
    fn time(&self, column: usize) -> u64 {
        let span = u128::from(self.last.saturating_sub(self.first));
        let part = span * (2 * column as u128 + 1) / (2 * self.columns.max(1) as u128);
        self.first + part as u64
    }

    /// The largest value in each column; where there is none the one before stands.
    fn values(&self, curve: &[(u64, f64)]) -> Vec<f64> {
        if curve.is_empty() || self.columns == 0 {
            return Vec::new();
        }
        let mut values = vec![f64::NAN; self.columns];
        for &(at, value) in curve {
            let cell = &mut values[self.column(at)];
            *cell = cell.max(value);
        }
        let mut before = f64::NAN;
        for value in &mut values {
            if value.is_nan() {
                *value = before;
            }
            before = *value;
        }
        values
    }

    fn marked(&self, cursor: Option<u64>, when: When) -> Marked {
        Marked {
            cursor: cursor.map(|at| self.column(at)),
            range: match when {
                When::Range { from_ns, to_ns } => Some((self.column(from_ns), self.column(to_ns))),
                _ => None,
            },
        }
    }
}

/// Which columns are marked.
struct Marked {
    cursor: Option<usize>,
    range: Option<(usize, usize)>,
}

impl Marked {
    fn style(&self, column: usize) -> Style {
        let style = Style::new();
        if self.cursor == Some(column) {
            style.add_modifier(Modifier::REVERSED)
        } else if self.range.is_some_and(|(from, to)| (from..=to).contains(&column)) {
            style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else if self.range.is_some() {
            style.add_modifier(Modifier::DIM)
        } else {
            style
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_times_whatever_the_points_are() {
        let curve = [(100, 1.0), (110, 5.0), (190, 2.0), (200, 3.0)];
        let axis = Axis::of(&curve, 10);
        assert_eq!(axis.values(&curve), [1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 3.0]);
        assert_eq!([0, 100, 149, 150, 200, 900].map(|at| axis.column(at)), [0, 0, 4, 5, 9, 9]);
        assert!((0..10).all(|column| axis.column(axis.time(column)) == column));
        assert!(Axis::of(&[], 10).values(&[]).is_empty());
        assert!(Axis::of(&curve, 0).values(&curve).is_empty());
        assert_eq!(Axis::of(&curve[..1], 3).values(&curve[..1]), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_cursor_is_seen_within_its_range() {
        let axis = Axis { first: 0, last: 100, columns: 10 };
        let marked = axis.marked(Some(55), When::Range { from_ns: 40, to_ns: 70 });
        let has = |column| marked.style(column).add_modifier;
        assert_eq!(has(5), Modifier::REVERSED);
        assert_eq!([4, 7].map(has), [Modifier::BOLD | Modifier::UNDERLINED; 2]);
        assert_eq!([3, 8].map(has), [Modifier::DIM; 2]);
        assert_eq!(axis.marked(None, When::Now).style(9).add_modifier, Modifier::empty());
    }
}
