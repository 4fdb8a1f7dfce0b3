//! What growth is counted from: the last mark that somebody made, the time when heaptop
//! came, or a mark that was chosen.

use super::{App, Screen};
use crate::export;
use crate::query::{self, Column, Metric, When};
use crate::session::Session;
use crate::view::{self, format, text};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrowthBase {
    /// The last mark that has a name of somebody's, else when heaptop came.
    #[default]
    Last,
    /// When heaptop came.
    Came,
    /// The mark of this time, in nanoseconds since the agent's start.
    Mark(u64),
}

impl GrowthBase {
    /// The moment, as far as growth since then can be known, and the mark's name. Of a past
    /// that is before the mark it is the last one that there was by then.
    #[must_use]
    pub fn moment(self, session: &Session, when: When) -> Option<(u64, Option<String>)> {
        let (from, now) = session.span()?;
        let until = when.end_ns(now);
        let found = match self {
            Self::Last => query::last_mark(session, until),
            Self::Came => None,
            Self::Mark(at) => {
                let known = (from..=until).contains(&at);
                let mut marks = session.marks().iter().filter(|_| known);
                let chosen = marks.find(|mark| mark.at.time_ns == at);
                chosen.or_else(|| query::last_mark(session, until))
            }
        };
        Some(found.map_or((from, None), |mark| (mark.at.time_ns, Some(mark.label.clone()))))
    }

    /// The next one to choose: marks from the last to the first, then when heaptop came.
    #[must_use]
    pub fn next(self, session: &Session) -> Self {
        let Some((from, _)) = session.span() else { return Self::Last };
        let at = self.moment(session, When::Now).map_or(u64::MAX, |(at, name)| match name {
            Some(_) => at,
            None => from,
        });
        let marks = || session.marks().iter().rev().map(|mark| mark.at.time_ns);
        let chosen = match self {
            Self::Came => marks().find(|&mark| mark >= from),
            Self::Last | Self::Mark(_) => marks().find(|&mark| mark >= from && mark < at),
        };
        chosen.map_or(Self::Came, Self::Mark)
    }
}

impl App {
    /// What happened when that began of which anything is known.
    #[must_use]
    pub const fn came(&self) -> &'static str {
        if self.file.is_some() { "the recording began" } else { "heaptop came" }
    }

    /// What growth is counted from, in so many columns where a mark has a long name.
    #[must_use]
    pub fn grown_since(&self, mark: Option<&str>, columns: usize) -> String {
        match mark {
            _ if matches!(self.question.when, When::Range { .. }) => "in the range".to_owned(),
            Some(mark) => format!("since “{}”", text::keep_start(&text::clean(mark), columns)),
            None => format!("since {}", self.came()),
        }
    }

    /// Counts growth from another mark.
    pub(super) fn next_growth_base(&mut self, session: &Session) {
        self.growth_base = self.growth_base.next(session);
        let Some((at, name)) = self.growth_base.moment(session, self.question.when) else {
            return self.say("no moment but now is known yet".into());
        };
        self.say_base(at, name, session);
        self.look(session);
    }

    pub(super) fn say_base(&mut self, at: u64, name: Option<String>, session: &Session) {
        let ago = session.now_ns().saturating_sub(at);
        let ago = format::duration(ago as f64, 2, format::Rounding::Nearest);
        let said = match name {
            _ if matches!(self.question.when, When::Range { .. }) => {
                "growth is counted over the range that is chosen".to_owned()
            }
            Some(name) => format!("growth is counted from “{name}” on, {ago} ago"),
            None if self.file.is_some() => {
                format!("growth is counted from when {} on", self.came())
            }
            None => format!("growth is counted from when {}, {ago} ago", self.came()),
        };
        // What frames grew by is in use, whatever their widths count.
        self.say(match self.screen() {
            Screen::Flame(flame) if self.metric != Metric::InUseBytes && !flame.gained => {
                format!("{said}, in bytes in use; widths count {}", export::metric(self.metric))
            }
            _ => said,
        });
    }

    /// From when on growth is wanted; `None` where nobody sees it.
    pub(super) fn growth_from(&self, session: &Session) -> Option<u64> {
        let wanted = self.paused
            || self.question.sort == Column::Growth
            || view::callsites::shows(self, Column::Growth, self.list_columns());
        if wanted { self.growth_moment(session) } else { None }
    }

    /// From when on growth is counted of what is asked about.
    pub(super) fn growth_moment(&self, session: &Session) -> Option<u64> {
        self.growth_base.moment(session, self.question.when).map(|(at, _)| at)
    }
}
