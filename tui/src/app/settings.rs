//! What the user has chosen for good: how it is at the start, and again after a reset.

use super::keymap::Keymap;
use super::keys::Place;
use super::{App, Screen};
use crate::query::{Column, Grouping, Metric, Question};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The first screen: one of [`Settings::SCREENS`].
    pub screen: Place,
    /// What callsites are sorted by.
    pub sort: Column,
    /// The largest first.
    pub descending: bool,
    /// What a row of the callsites is.
    pub group: Grouping,
    /// What is counted where one metric is.
    pub metric: Metric,
    /// The callsites' columns in order, their names first.
    pub columns: Vec<Column>,
    /// A limit of bytes in use, for forecasts.
    pub limit: Option<u64>,
    /// Minutes between automatic marks; 0: there are none.
    pub marks_minutes: u64,
    /// Which keys do what.
    pub keymap: Keymap,
}

impl Settings {
    /// What can be the first screen: those that need nothing to be selected.
    pub const SCREENS: [Place; 7] = [
        Place::Callsites,
        Place::Flame,
        Place::Timeline,
        Place::Promotion,
        Place::Threads,
        Place::Leaks,
        Place::Log,
    ];

    pub(super) fn question(&self) -> Question {
        let (sort, descending, group) = (self.sort, self.descending, self.group);
        Question { sort, descending, group, ..Question::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let Question { sort, descending, group, .. } = Question::default();
        Self {
            screen: Place::Callsites,
            sort,
            descending,
            group,
            metric: Metric::InUseBytes,
            columns: Column::ALL.to_vec(),
            limit: None,
            marks_minutes: 0,
            keymap: Keymap::default(),
        }
    }
}

impl App {
    /// The same, as the user has chosen that it begins.
    #[must_use]
    pub fn configured(mut self, settings: Settings) -> Self {
        self.question = settings.question();
        self.metric = settings.metric;
        self.limit = settings.limit;
        self.automatic = super::leaks::Automatic::every(settings.marks_minutes);
        let first = |screen: &&mut Screen| screen.place() == settings.screen;
        if let (Some(wanted), Some(shown)) =
            (self.lowest.iter_mut().find(first), self.stack.first_mut())
        {
            std::mem::swap(wanted, shown);
        }
        self.settings = settings;
        self.reset_columns();
        self
    }

    /// Which keys do what.
    #[must_use]
    pub const fn keymap(&self) -> &Keymap {
        &self.settings.keymap
    }
}
