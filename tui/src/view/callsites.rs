//! Screen 1: the live table of callsites.
//!
//! A column is one value of [`COLUMNS`]: its title, its room, its cell and what
//! it is sorted by stand together.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::format::{self, Figure, Unit};
use super::layout::{self, Fields, Placed, Wanted};
use super::{Parts, list_row, names, spark, theme};
use crate::app::App;
use crate::app::cursor::Cursor;
use crate::query::{Column, Figures, Grouping};

/// A column of figures.
pub struct Spec {
    /// What it is sorted by.
    pub column: Column,
    /// Its heading.
    pub title: &'static str,
    /// Its room and worth.
    pub wanted: Wanted,
    /// Its content.
    pub cell: Cell,
}

/// How a cell is made.
pub enum Cell {
    /// A number with its interval.
    Figure(fn(&Figures) -> Figure),
    /// A curve.
    Curve(fn(&Figures) -> &[f64]),
    /// Growth, which is nothing without evidence.
    Growth,
}

const BYTES: (Fields, Fields) = (Fields(8, 5), Fields(9, 6));
const RATE: (Fields, Fields) = (Fields(10, 5), Fields(11, 6));
const COUNT: (Fields, Fields) = (Fields(6, 5), Fields(8, 6));
const COUNT_RATE: (Fields, Fields) = (Fields(8, 5), Fields(10, 6));
const SHARE: (Fields, Fields) = (Fields(6, 5), Fields(6, 6));
const TIME: (Fields, Fields) = (Fields(8, 0), Fields(8, 6));
const GROWTH: (Fields, Fields) = (Fields(9, 9), Fields(9, 9));
const CURVE: (Fields, Fields) = (Fields(8, 0), Fields(30, 0));

const fn spec(
    column: Column,
    title: &'static str,
    (tight, roomy): (Fields, Fields),
    worth: u8,
    cell: Cell,
) -> Spec {
    Spec { column, title, wanted: Wanted { tight, roomy, worth }, cell }
}

/// All columns of figures.
pub const COLUMNS: [Spec; 13] = [
    spec(
        Column::InUseBytes,
        "in use",
        BYTES,
        100,
        Cell::Figure(|f| format::estimate(&f.in_use_bytes, Unit::Bytes)),
    ),
    spec(Column::Cum, "cum", BYTES, 95, Cell::Figure(|f| format::estimate(&f.cum, Unit::Bytes))),
    spec(Column::Growth, "growth", GROWTH, 35, Cell::Growth),
    spec(
        Column::InUseObjects,
        "objects",
        COUNT,
        50,
        Cell::Figure(|f| format::estimate(&f.in_use_objects, Unit::Objects)),
    ),
    spec(
        Column::AllocatedBytes,
        "allocated",
        BYTES,
        30,
        Cell::Figure(|f| format::estimate(&f.allocated_bytes, Unit::Bytes)),
    ),
    spec(
        Column::AllocatedObjects,
        "births",
        COUNT,
        10,
        Cell::Figure(|f| format::estimate(&f.allocated_objects, Unit::Objects)),
    ),
    spec(
        Column::AllocatedRate,
        "alloc/s",
        RATE,
        90,
        Cell::Figure(|f| format::estimate(&f.allocated_rate, Unit::BytesPerSecond)),
    ),
    spec(
        Column::ObjectRate,
        "births/s",
        COUNT_RATE,
        20,
        Cell::Figure(|f| format::estimate(&f.object_rate, Unit::ObjectsPerSecond)),
    ),
    spec(Column::Promoted, "promoted", SHARE, 80, Cell::Figure(|f| format::ratio(&f.promoted))),
    spec(
        Column::ShortLived,
        "dies young",
        SHARE,
        40,
        Cell::Figure(|f| format::ratio(&f.short_lived)),
    ),
    spec(Column::Lifetime, "lifetime", TIME, 70, Cell::Figure(|f| format::lifetime(&f.lifetime))),
    spec(Column::MeanLifetime, "mean life", TIME, 8, Cell::Figure(|f| format::mean_life(&f.mean))),
    spec(Column::Trend, "trend", CURVE, 60, Cell::Curve(|f| &f.trend)),
];

/// A worth above all others: what rows are sorted by must be seen.
const SORTED_BY: u8 = 200;

/// The columns that are shown in `width`, in the user's order.
fn columns(app: &App, width: u16) -> (u16, Vec<(&'static Spec, Placed)>) {
    let (chosen, passed_over) = app.columns();
    let own_order = app.columns_are_chosen();
    let question = app.question();
    let specs: Vec<&'static Spec> = chosen
        .iter()
        .filter(|&&c| c != Column::Cum || question.group == Grouping::Function)
        .filter_map(|&c| COLUMNS.iter().find(|s| s.column == c))
        .collect();
    let wanted: Vec<Wanted> = specs
        .iter()
        .enumerate()
        .map(|(i, spec)| {
            let worth = if spec.column == question.sort {
                SORTED_BY
            } else if passed_over == 0 && !own_order {
                spec.wanted.worth
            } else if i >= passed_over {
                // Those that come next, from left to right.
                SORTED_BY - 1 - (i - passed_over).min(100) as u8
            } else {
                1 + (i as u8).min(40)
            };
            let mark = layout::mark(spec.column == question.sort, question.descending);
            Wanted { worth, ..spec.wanted }.headed(spec.title, mark)
        })
        .collect();
    let (name, placed) = layout::place(width, &wanted);
    (name, placed.into_iter().map(|p| (specs[p.index], p)).collect())
}

/// From so many columns on nearly all names are whole wherever they stand.
const WHOLE_NAMES: u16 = 200;

/// The columns that names have on this screen, now or when it is shown again: as there they
/// are shortened on all. On the widest terminals each goes by the columns of its `own`.
#[must_use]
pub fn name_columns(app: &App, own: u16) -> u16 {
    if app.size().0 >= WHOLE_NAMES { own } else { columns(app, app.callsites_columns()).0 }
}

/// A column's heading.
#[must_use]
pub fn title(column: Column) -> &'static str {
    COLUMNS.iter().find(|spec| spec.column == column).map_or("callsite", |spec| spec.title)
}

/// The column at `x`, names among them.
#[must_use]
pub fn column_at(app: &App, x: u16, width: u16) -> Option<Column> {
    let (name, columns) = columns(app, width);
    if x <= name {
        return Some(Column::Callsite);
    }
    let at = |(spec, placed): &(&Spec, Placed)| {
        (placed.x..placed.x + placed.width()).contains(&x).then_some(spec.column)
    };
    columns.iter().find_map(at)
}

/// Whether a column finds room.
#[must_use]
pub fn shows(app: &App, column: Column, width: u16) -> bool {
    columns(app, width).1.iter().any(|(spec, _)| spec.column == column)
}

/// Draws heading, rows and total.
pub(super) fn draw(app: &App, cursor: &Cursor, parts: &Parts, frame: &mut Frame) {
    let (name_width, columns) = columns(app, parts.body.width);
    heading(app, name_width, &columns, parts.heading, frame);
    let Some(table) = app.table() else { return super::empty(app, parts.body, frame) };
    if table.len == 0 {
        return super::empty(app, parts.body, frame);
    }
    let page = usize::from(parts.body.height);
    let places = cursor.offset()..cursor.offset() + page;
    let shown: Vec<_> = places.filter_map(|place| Some((place, table.row(place)?))).collect();
    let names = names::callsites(shown.iter().map(|(_, row)| &row.label), name_width, name_width);
    for ((y, mut line), &(index, row)) in (parts.body.y..).zip(names).zip(&shown) {
        cells(&row.figures, &columns, &mut line);
        let area = Rect { y, height: 1, ..parts.body };
        list_row(line, index == cursor.index(), area, frame);
    }
    let [_, many] = app.question().group.names();
    let of = if table.len == table.of { "all" } else { "matching" };
    let mut line = names::plain(&format!("{of} {many}"), name_width);
    cells(&table.total, &columns, &mut line);
    frame.render_widget(line.bold(), parts.total);
}

fn heading(app: &App, name: u16, columns: &[(&Spec, Placed)], area: Rect, frame: &mut Frame) {
    let mark = |column| layout::mark(app.question().sort == column, app.question().descending);
    let mut line = names::plain(
        &format!("{} {}", app.question().group.names()[0], mark(Column::Callsite)),
        name,
    );
    for (spec, placed) in columns {
        layout::put_heading(&mut line, placed.x, spec.title, mark(spec.column), placed.fields);
    }
    frame.render_widget(line.dim(), area);
}

fn cells(figures: &Figures, columns: &[(&Spec, Placed)], line: &mut Line<'static>) {
    let mut cells = layout::Cells::behind(line);
    for (spec, placed) in columns {
        let cell = match spec.cell {
            Cell::Figure(make) => {
                let figure = make(figures);
                let text = layout::figure(&figure, placed.fields);
                if figure.dim { text.dim() } else { text.into() }
            }
            Cell::Growth => growth(figures, placed.fields),
            Cell::Curve(values) => {
                Span::raw(spark::line(values(figures), usize::from(placed.width())))
            }
        };
        cells.put(placed.x, cell);
    }
}

/// Growth with evidence has a sign and a colour; without, it is dim.
fn growth(figures: &Figures, fields: Fields) -> Span<'static> {
    let figure = format::change(figures.growth);
    if figures.grew {
        let figure = layout::figure(&figure, fields).replacen(" +", "▲+", 1);
        return Span::styled(figure, theme::GROWTH);
    }
    layout::figure(&figure, fields).dim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::figures::{Change, Estimate, Followed, Lifetime, Ratio};

    fn about(value: f64, samples: u64) -> Estimate {
        Estimate::Interval { value, low: value * 0.9, high: value * 1.2, samples }
    }

    fn figures() -> Figures {
        Figures {
            in_use_bytes: about(9.41 * 1_048_576.0, 40),
            in_use_objects: about(61_200.0, 40),
            allocated_bytes: about(2.5 * 1_073_741_824.0, 900),
            allocated_objects: Estimate::AtLeast { low: 1.21e6, samples: 900 },
            allocated_rate: about(510.0 * 1_048_576.0, 3),
            object_rate: about(5_000.0, 200),
            promoted: Ratio::Interval { value: 0.001, low: 0.0005, high: 0.002, samples: 700 },
            short_lived: Ratio::Interval { value: 0.999, low: 0.998, high: 0.9995, samples: 700 },
            lifetime: Lifetime::Median { ns: 4e5, low_ns: 3.8e5, high_ns: 4.1e5, samples: 80 },
            mean: Followed::Interval { value: 6e5, low: 5e5, high: 7e5, samples: 80 },
            cum: about(12.0 * 1_048_576.0, 40),
            growth: Change::Interval { value: 2e6, low: 1e6, high: 3e6, samples: 50 },
            grew: true,
            trend: vec![1.0, 2.0, 4.0, 8.0],
        }
    }

    /// A column's cell, tight and roomy, and whether it is dim.
    fn cell(column: Column) -> (String, String, bool) {
        let spec = COLUMNS.iter().find(|s| s.column == column).expect("every column has a spec");
        let make = |fields| {
            let placed = Placed { index: 0, x: 0, fields };
            let mut line = Line::default();
            cells(&figures(), &[(spec, placed)], &mut line);
            let dim = line.spans.iter().any(|s| s.style == ratatui::style::Style::new().dim());
            (line.to_string(), dim)
        };
        let (tight, dim) = make(spec.wanted.tight);
        (tight, make(spec.wanted.roomy).0, dim)
    }

    #[test]
    fn every_column_says_its_own_figure() {
        let expected = [
            (Column::InUseBytes, " 9.4 MiB ±20 %", "  9.4 MiB ±20 %", false),
            (Column::InUseObjects, "  61 k ±20 %", "    61 k ±20 %", false),
            (Column::AllocatedBytes, " 2.5 GiB ±20 %", "  2.5 GiB ±20 %", false),
            (Column::AllocatedObjects, "≥ 1.2 M", " ≥ 1.2 M", false),
            (Column::AllocatedRate, " 510 MiB/s ±20 %", "  510 MiB/s ±20 %", true),
            (Column::ObjectRate, " 5.0 k/s ±20 %", "   5.0 k/s ±20 %", false),
            (Column::Promoted, " 0.1 % ±0.1", " 0.1 % ±0.1", false),
            (Column::ShortLived, "99.9 % ±0.1", "99.9 % ±0.1", false),
            (Column::Lifetime, "  0.4 ms", "  0.4 ms ±5 %", false),
            (Column::MeanLifetime, "  0.6 ms", "  0.6 ms ±17 %", false),
            (Column::Cum, "  12 MiB ±20 %", "   12 MiB ±20 %", false),
            (Column::Growth, "▲+1.9 MiB ±980 KiB", "▲+1.9 MiB ±980 KiB", false),
            (Column::Trend, "▁▁▂▂▄▄██", "▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▄▄▄▄▄▄▄▄███████", false),
        ];
        assert_eq!(expected.len(), COLUMNS.len());
        for (column, tight, roomy, dim) in expected {
            assert_eq!(cell(column), (tight.into(), roomy.into(), dim), "{column:?}");
        }
    }
}
