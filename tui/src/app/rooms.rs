//! How many lines each part of the screen gets. Pure arithmetic over the size:
//! the state needs the page's length for its keys, the view draws with it.
//!
//! The order in which parts get room as the screen grows: body, key bar, title,
//! a line that is typed, a sentence that must be read, the time bar where it is not now, heading, figures,
//! filter, curve, total, rules.

/// Most lines of a sentence.
const MOST_SENTENCE: u16 = 3;

/// Lines of each part, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rooms {
    /// Target and screens.
    pub title: u16,
    /// Figures of the target.
    pub figures: u16,
    /// In use over time.
    pub curve: u16,
    /// A sentence: trouble, or what just happened.
    pub sentence: u16,
    /// A rule above the body.
    pub upper_rule: u16,
    /// Where one is in the callers.
    pub crumbs: u16,
    /// Heading of the columns.
    pub heading: u16,
    /// Rows.
    pub body: u16,
    /// The sum of the rows.
    pub total: u16,
    /// What is said of the selected row: a plot.
    pub panel: u16,
    /// A rule below the body.
    pub lower_rule: u16,
    /// The filter.
    pub filter: u16,
    /// Keys.
    pub bar: u16,
}

impl Rooms {
    /// Lines above the body.
    #[must_use]
    pub const fn above_body(&self) -> u16 {
        self.title
            + self.figures
            + self.curve
            + self.sentence
            + self.upper_rule
            + self.crumbs
            + self.heading
    }
}

/// What wants room.
#[expect(clippy::struct_excessive_bools, reason = "each is one part that is there or not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wishes {
    /// Lines of the sentence; 0: there is none.
    pub sentence: u16,
    /// What is shown is of no target: there are no figures of one, and no time.
    pub bare: bool,
    /// What is shown is not now: the time bar must say of when it is.
    pub past: bool,
    /// There is a time bar.
    pub curve: bool,
    /// There is a filter.
    pub filter: bool,
    /// A line is being typed, which stands in the filter's place.
    pub typed: bool,
    /// The body is a list with a heading.
    pub list: bool,
    /// The list has a sum.
    pub total: bool,
    /// The list is of a focus.
    pub crumbs: bool,
    /// There is a plot of the selected row.
    pub panel: bool,
}

/// Divides a screen of `width` × `height`. The lines always add up to `height`.
#[must_use]
pub fn divide(width: u16, height: u16, wishes: Wishes) -> Rooms {
    let mut rooms = Rooms { body: height.min(1), ..Rooms::default() };
    let mut left = height - rooms.body;
    let mut give = |wanted: bool, lines: u16, from_height: u16| {
        let given = if wanted && height >= from_height { lines.min(left) } else { 0 };
        left -= given;
        given
    };
    rooms.bar = give(true, 1, 2);
    rooms.title = give(true, 1, 3);
    rooms.filter = give(wishes.typed, 1, 4);
    rooms.sentence = give(wishes.sentence > 0, 1, 4);
    let curve = wishes.curve && !wishes.bare;
    rooms.curve = give(wishes.past && curve, 1, 5);
    rooms.heading = give(wishes.list, 1, 4);
    rooms.figures = give(!wishes.bare, 1, 5);
    rooms.filter += give(wishes.filter && !wishes.typed, 1, 6);
    rooms.crumbs = give(wishes.crumbs, 1, 7);
    // From here on the body has more than one row: a screen is for its rows.
    let figures = if width >= 200 {
        1
    } else if width >= 76 {
        2
    } else {
        3
    };
    rooms.curve += give(!wishes.past && curve, 1, 10);
    rooms.total = give(wishes.total, 1, 12);
    rooms.figures += give(!wishes.bare, figures - 1, 14);
    rooms.sentence += give(wishes.sentence > 1, wishes.sentence.clamp(1, MOST_SENTENCE) - 1, 16);
    rooms.upper_rule = give(true, 1, 18);
    rooms.lower_rule = give(true, 1, 18);
    rooms.panel = give(wishes.panel, if height < 24 { 8 } else { 10 }, 20);
    rooms.panel += give(wishes.panel, height.saturating_sub(30) / 3, 30);
    rooms.curve += give(curve, 2, 40);
    rooms.body += left;
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_add_up_at_every_size() {
        for height in 0..200 {
            for width in [0, 1, 20, 80, 160, 300] {
                for bits in 0..1024 {
                    let wishes = Wishes {
                        sentence: (bits & 1) * 5,
                        filter: bits & 2 > 0,
                        list: bits & 4 > 0,
                        total: bits & 8 > 0,
                        crumbs: bits & 16 > 0,
                        past: bits & 32 > 0,
                        curve: bits & 64 > 0,
                        panel: bits & 128 > 0,
                        bare: bits & 256 > 0,
                        typed: bits & 512 > 0,
                    };
                    let r = divide(width, height, wishes);
                    let sum = r.title
                        + r.figures
                        + r.curve
                        + r.sentence
                        + r.upper_rule
                        + r.crumbs
                        + r.heading
                        + r.body
                        + r.total
                        + r.panel
                        + r.lower_rule
                        + r.filter
                        + r.bar;
                    assert_eq!(sum, height, "{width}×{height} {wishes:?}");
                    assert!(r.body > 0 || height == 0);
                    assert!(r.filter == 1 || !wishes.typed || height < 4, "it is seen");
                }
            }
        }
    }

    #[test]
    fn the_body_never_shrinks_as_the_screen_grows() {
        let wishes = Wishes { list: true, total: true, curve: true, ..Wishes::default() };
        let body = |h| divide(80, h, wishes).body;
        assert_eq!(body(5), 1);
        assert!(body(24) >= 13, "{}", body(24));
        assert!(body(50) >= 30);
    }
}
