//! The log: what agent, connection and heaptop itself had to say.

use super::App;
use super::screens::Screen;
use crate::session::Session;
use crate::session::log::{Kind, Line};
use crate::view;

/// Most lines of our own that are kept.
const MOST_OWN: usize = 500;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The lines, the oldest first; `None` before the first answer.
    pub lines: Option<Vec<Line>>,
    /// Modules whose frames have no names: path and how many frames.
    pub unnamed: Vec<(String, usize)>,
    /// Rows above the first that is shown; `None`: the last one is at the bottom, and new
    /// ones push it up.
    pub offset: Option<usize>,
}

impl Log {
    /// The first row that is shown, of so many and with so many on a page.
    #[must_use]
    pub fn first(&self, rows: usize, page: usize) -> usize {
        let last = rows.saturating_sub(page);
        self.offset.map_or(last, |offset| offset.min(last))
    }

    pub(super) fn scroll(&mut self, to: impl Fn(usize) -> usize, width: u16, page: usize) {
        let rows = view::log::rows(self, width).len();
        let next = to(self.first(rows, page));
        self.offset = (next < rows.saturating_sub(page)).then_some(next);
    }
}

impl App {
    /// Keeps what is said for the log.
    pub(super) fn keep_said(&mut self, text: &str) {
        if self.said.len() >= MOST_OWN {
            self.said.pop_front();
        }
        let number = self.said.back().map_or(0, |line| line.number + 1);
        let (at_ns, kind, text) = (self.summary.now_ns, Kind::Viewer, text.to_owned());
        self.said.push_back(Line { number, at_ns, kind, text });
    }

    pub(super) fn ask_log(&mut self, session: &Session) {
        let mut lines: Vec<Line> = session.log().lines().cloned().collect();
        lines.extend(self.said.iter().cloned());
        // Of one moment what the agent says comes first: heaptop answers.
        lines.sort_by_key(|line| (line.at_ns, line.kind == Kind::Viewer));
        let unnamed = session.book().unnamed();
        let Some(Screen::Log(log)) = self.stack.first_mut() else { return };
        if log.lines.as_ref() != Some(&lines) || log.unnamed != unnamed {
            (log.lines, log.unnamed) = (Some(lines), unnamed);
            self.dirty = true;
        }
    }
}
