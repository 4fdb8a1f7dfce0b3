//! Which columns of a list fit, and how wide they are. Pure.
//!
//! A list has one flexible column at the left (a name) and figures behind it. A
//! figure can be shown tight or roomy; the names get at least [`LEAST_NAME`],
//! and more where there are many figures.
//! Columns are taken in the order of their worth while they fit tight, then
//! made roomy in the same order while names keep [`COMFORTABLE_NAME`], and names
//! get what is left. The worthiest is there before any other: for it names may become as short
//! as [`SHORT_NAME`], and where it does not fit even so it is shown without its interval.

use ratatui::text::{Line, Span};

use super::format::Figure;
use super::{paint, text};

/// Columns of the marker of the selected row.
pub const MARKER: u16 = 1;
const LEAST_NAME: u16 = 24;
/// The worthiest column leaves less, rather than that another stands in its place.
const SHORT_NAME: u16 = 18;
/// With this many figures, more of them are worth less than readable names.
const ENOUGH: usize = 5;
const READABLE_NAME: u16 = 36;
const COMFORTABLE_NAME: u16 = 44;

/// Room for a value and, behind a space, for its interval (0: none).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields(pub u16, pub u16);

impl Fields {
    const fn width(self) -> u16 {
        if self.1 == 0 { self.0 } else { self.0 + 1 + self.1 }
    }
}

/// What a column wants.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Tight.
    pub tight: Fields,
    /// Roomy.
    pub roomy: Fields,
    /// Worth: the least goes first.
    pub worth: u8,
}

impl Wanted {
    /// The same, as wide at least as its heading with the sign of what rows are sorted by.
    #[must_use]
    pub fn headed(self, title: &str, mark: &str) -> Self {
        let heading = (text::width(title) + text::width(mark)) as u16;
        let wide = |Fields(value, interval): Fields| {
            let missing = heading.saturating_sub(Fields(value, interval).width());
            Fields(value + missing, interval)
        };
        Self { tight: wide(self.tight), roomy: wide(self.roomy), ..self }
    }
}

/// Where a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Which, by its place in what was wanted.
    pub index: usize,
    /// First terminal column, from the list's left edge.
    pub x: u16,
    /// Its fields.
    pub fields: Fields,
}

impl Placed {
    /// Terminal columns.
    #[must_use]
    pub const fn width(&self) -> u16 {
        self.fields.width()
    }
}

/// The width of the names, and the columns that fit, from left to right.
#[must_use]
pub fn place(width: u16, wanted: &[Wanted]) -> (u16, Vec<Placed>) {
    let gap = if width < 110 { 1 } else { 2 };
    let room = width.saturating_sub(MARKER);
    let mut order: Vec<usize> = (0..wanted.len()).filter(|&i| wanted[i].worth > 0).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(wanted[i].worth));

    let mut fields: Vec<Option<Fields>> = vec![None; wanted.len()];
    let mut left = room;
    for (taken, &i) in order.iter().enumerate() {
        let tight = wanted[i].tight;
        let name = match fields.iter().flatten().count() {
            0 => SHORT_NAME,
            1..ENOUGH => LEAST_NAME,
            _ => READABLE_NAME,
        };
        let bare = Fields(tight.0, 0);
        let fits = if left >= name + gap + tight.width() {
            tight
        } else if taken == 0 && room / 2 >= bare.width() {
            bare
        } else {
            continue;
        };
        fields[i] = Some(fits);
        left -= gap + fits.width();
    }
    for &i in &order {
        let more = wanted[i].roomy.width().saturating_sub(wanted[i].tight.width());
        if fields[i] == Some(wanted[i].tight) && left >= COMFORTABLE_NAME + more {
            fields[i] = Some(wanted[i].roomy);
            left -= more;
        }
    }
    let name = left;
    let mut x = MARKER + name;
    let mut placed = Vec::new();
    for (index, fields) in fields.into_iter().enumerate() {
        if let Some(fields) = fields {
            placed.push(Placed { index, x: x + gap, fields });
            x += gap + fields.width();
        }
    }
    (name, placed)
}

/// Which column is at `x` of the list, by its place in what was wanted.
#[must_use]
pub fn at(placed: &[Placed], x: u16) -> Option<usize> {
    placed.iter().find(|p| (p.x..p.x + p.width()).contains(&x)).map(|p| p.index)
}

/// The sign of the column that rows are sorted by.
#[must_use]
pub const fn mark(sorted: bool, first: bool) -> &'static str {
    match (sorted, first) {
        (false, _) => "",
        (true, true) => "▼",
        (true, false) => "▲",
    }
}

/// A figure in its fields: the value to the right, the interval behind it.
#[must_use]
pub fn figure(figure: &Figure, fields: Fields) -> String {
    if fields.1 == 0 || figure.interval.is_empty() {
        // What is longer than its field goes on where the interval would be.
        let too_long = text::width(&figure.value) > usize::from(fields.width());
        let shorter = lower(&figure.value).filter(|_| too_long);
        return text::right(shorter.as_ref().unwrap_or(&figure.value), usize::from(fields.0));
    }
    // A long interval takes its room from the value, which is then short; if that is not, it
    // has no decimals: it is rounded up.
    let taken = text::width(&figure.value);
    let room = usize::from(fields.width()).saturating_sub(taken + 1);
    let too_long = text::width(&figure.interval) > room;
    let shorter = if too_long { whole(&figure.interval) } else { None };
    let interval = shorter.as_ref().unwrap_or(&figure.interval);
    let longer = text::width(interval).saturating_sub(usize::from(fields.1));
    let missing = usize::from(fields.0).saturating_sub(longer + taken);
    format!("{:missing$}{} {interval}", "", figure.value)
}

/// `> 4.2 min` as `> 4 min`: what something is above may be told less exactly.
fn lower(value: &str) -> Option<String> {
    let bound = value.starts_with(['>', '≥']);
    let (whole, rest) = value.split_once('.').filter(|_| bound)?;
    let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    Some(format!("{whole}{unit}"))
}

/// `±0.8 %` as `±1 %`.
fn whole(interval: &str) -> Option<String> {
    let number = interval.strip_prefix('±')?.strip_suffix(" %")?;
    let (whole, tenths) = number.split_once('.')?;
    let (whole, tenths): (u64, u64) = (whole.parse().ok()?, tenths.parse().ok()?);
    Some(format!("±{} %", whole + u64::from(tenths > 0)))
}

/// Goes on at column `x` of the list.
pub fn pad_to(line: &mut Line<'static>, x: u16) {
    let width = line.spans.iter().map(paint::width).sum();
    line.push_span(paint::gap(usize::from(x).saturating_sub(width)));
}

/// A line that is made cell by cell: it knows how far it is.
pub struct Cells<'l> {
    line: &'l mut Line<'static>,
    width: usize,
}

impl<'l> Cells<'l> {
    /// Goes on behind what is there.
    pub fn behind(line: &'l mut Line<'static>) -> Self {
        let width = line.spans.iter().map(paint::width).sum();
        Self { line, width }
    }

    /// A cell at column `x` of the list.
    pub fn put(&mut self, x: u16, cell: Span<'static>) {
        let missing = usize::from(x).saturating_sub(self.width);
        self.width += missing + paint::width(&cell);
        self.line.push_span(paint::gap(missing));
        self.line.push_span(cell);
    }
}

/// A heading over its fields, with a mark where rows are sorted by it: to the
/// right, over the values, where it fits there. The mark is never cut.
#[must_use]
pub fn heading(title: &str, mark: &str, fields: Fields) -> String {
    let (value, width) = (usize::from(fields.0), usize::from(fields.width()));
    let loose = if mark.is_empty() { title.to_owned() } else { format!("{title} {mark}") };
    if text::width(&loose) <= value {
        text::right(&loose, value)
    } else if text::width(&loose) <= width {
        loose
    } else {
        let kept: String = title.chars().take(width.saturating_sub(text::width(mark))).collect();
        kept + mark
    }
}

/// Puts such a heading at `x` of the list. Where title and mark are a column wider than their
/// fields, they begin one before them if that leaves a gap.
pub fn put_heading(
    line: &mut Line<'static>,
    x: u16,
    title: &'static str,
    mark: &str,
    fields: Fields,
) {
    let taken: usize = line.spans.iter().map(paint::width).sum();
    let taken = taken - line.spans.last().map_or(0, |span| trailing(&span.content));
    let tight = text::width(title) + text::width(mark);
    if !mark.is_empty() && tight == usize::from(fields.width()) + 1 && taken + 2 <= x.into() {
        cut_to(line, usize::from(x) - 1);
        pad_to(line, x - 1);
        line.push_span(format!("{title}{mark}"));
    } else {
        pad_to(line, x);
        line.push_span(heading(title, mark, fields));
    }
}

/// Columns of the spaces at the end.
fn trailing(text: &str) -> usize {
    text.len() - text.trim_end_matches(' ').len()
}

/// Takes spaces from the end, so that it is no wider than so many columns.
fn cut_to(line: &mut Line<'static>, columns: usize) {
    let width: usize = line.spans.iter().map(paint::width).sum();
    if let Some(last) = line.spans.last_mut() {
        let kept = last.content.len().saturating_sub(width.saturating_sub(columns));
        last.content = last.content[..kept].to_owned().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Wanted = Wanted { tight: Fields(8, 5), roomy: Fields(9, 6), worth: 9 };
    const SHARE: Wanted = Wanted { tight: Fields(6, 5), roomy: Fields(6, 5), worth: 5 };

    #[test]
    fn nothing_overlaps_and_nothing_leaves_the_screen() {
        for width in 0..400 {
            let (name, placed) = place(width, &[SHARE, BYTES, SHARE]);
            let mut x = MARKER + name;
            for p in &placed {
                assert!(p.x > x, "{width}");
                x = p.x + p.width();
            }
            assert!(placed.is_empty() || x <= width, "{width}");
        }
    }

    #[test]
    fn a_figure_never_runs_into_the_next() {
        let of = |value: &str, interval: &str, fields| {
            let (value, interval) = (value.into(), interval.into());
            figure(&Figure { value, interval, dim: false }, fields)
        };
        assert_eq!(of("36.4 MiB/s", "±0.8 %", Fields(10, 5)), "36.4 MiB/s ±1 %");
        assert_eq!(of("175 MiB/s", "±0.8 %", Fields(10, 5)), "175 MiB/s ±0.8 %");
        assert_eq!(of("36.4 MiB/s", "±1.0 %", Fields(11, 6)), " 36.4 MiB/s ±1.0 %");
        assert_eq!(of("50.3 MiB", "±0.8 %", Fields(8, 5)), "50.3 MiB ±1 %");
        assert_eq!(of("> 4.2 min", "", Fields(8, 0)), " > 4 min");
        assert_eq!(of("≥ 1.9 min", "", Fields(8, 6)), "≥ 1.9 min");
        assert_eq!(of("> 4.2 min", "", Fields(9, 0)), "> 4.2 min");
        assert_eq!(of("> 850 ms", "", Fields(8, 0)), "> 850 ms");
        assert_eq!(of("< 1.55 MiB", "", Fields(8, 0)), "< 1.55 MiB", "it may be above 1 MiB");
    }

    #[test]
    fn headings_keep_their_mark() {
        assert_eq!(heading("in use", "▼", Fields(8, 5)), "in use ▼");
        assert_eq!(heading("cum", "", Fields(8, 5)), "     cum");
        assert_eq!(heading("dies young", "▲", Fields(6, 5)), "dies young ▲");
        assert_eq!(heading("lifetime", "▼", Fields(8, 0)), "lifetim▼");
        // But where there is room before it, no letter is.
        let placed = |before: &'static str| {
            let mut line = Line::from(before);
            put_heading(&mut line, 10, "lifetime", "▼", Fields(8, 0));
            line.to_string()
        };
        assert_eq!(placed("birth/s"), "birth/s  lifetime▼");
        assert_eq!(placed("births/s"), "births/s lifetime▼");
        assert_eq!(placed("   births"), "   births lifetim▼", "a gap before all else");
        assert_eq!(placed("births    "), "births   lifetime▼");
    }

    #[test]
    fn the_worthiest_stay_longest() {
        let shown =
            |width| place(width, &[SHARE, BYTES]).1.iter().map(|p| p.index).collect::<Vec<_>>();
        assert_eq!(shown(10), [0; 0]);
        assert_eq!(shown(20), [1]);
        assert_eq!(shown(45), [1]);
        assert_eq!(shown(60), [0, 1]);
        // One that would fit into the same room is not in the place of the worthiest.
        let wide = Wanted { tight: Fields(9, 9), ..BYTES };
        let placed = |width| place(width, &[SHARE, wide]);
        let fields =
            |width| placed(width).1.iter().map(|p| (p.index, p.fields)).collect::<Vec<_>>();
        assert_eq!(fields(40), [(1, Fields(9, 9))]);
        assert_eq!(placed(40).0, 19);
        assert_eq!(fields(38), [(1, Fields(9, 0))]);
    }

    #[test]
    fn a_column_is_as_wide_as_its_heading() {
        let time = Wanted { tight: Fields(8, 0), roomy: Fields(8, 6), worth: 1 };
        let headed = time.headed("mean life", "▼");
        assert_eq!((headed.tight, headed.roomy), (Fields(10, 0), time.roomy));
        assert_eq!(heading("mean life", "▼", headed.tight), "mean life▼");
        assert_eq!(BYTES.headed("in use", "▼").tight, BYTES.tight);
    }
}
