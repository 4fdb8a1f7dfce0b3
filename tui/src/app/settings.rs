//! What the user has chosen for good: how it is at the start, and again after a reset.

use super::keymap::Keymap;
use super::keys::{Action, Place};
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
    /// On wide terminals the details of the selected row stand beside the rows.
    pub pane: bool,
    /// Minutes between automatic marks; 0: there are none.
    pub marks_minutes: u64,
    /// The directory that exports go to, as it is written; empty: the working one.
    pub export_directory: String,
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
            pane: true,
            marks_minutes: 0,
            export_directory: String::new(),
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
        self.directory.clone_from(&settings.export_directory);
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

    /// It is the first screen of who looks at it: says what to press.
    pub const fn is_first(&mut self) {
        self.first = true;
    }

    /// What to press next, for who sees this for the first time; by the first key it is gone.
    #[must_use]
    pub fn first_hint(&self) -> Option<String> {
        let place = self.screen().place();
        let keys: Vec<String> = [
            (Action::Drill, "who calls the row"),
            (Action::Details, "look at it closely"),
            (Action::Go(Place::Timeline), "over time"),
            (Action::Help, "all keys"),
        ]
        .into_iter()
        .filter_map(|(action, says)| {
            Some(format!("{} {says}", self.keymap().key_of(action, place)?))
        })
        .collect();
        (self.first && !keys.is_empty()).then(|| format!("new here? {}", keys.join(" · ")))
    }

    /// What is to be said before anything is shown: the last stays until the first key, and
    /// says how many more are in the log.
    pub fn tell(&mut self, said: Vec<String>) {
        let more = said.len().saturating_sub(1);
        for sentence in said {
            self.say(sentence);
        }
        if let (Some(last), 1..) = (&self.note, more) {
            let key = self.key_for(Action::Go(Place::Log));
            let key = key.map_or_else(String::new, |key| format!(" ({key})"));
            self.note = Some(format!("{last}; and {more} more: see Log{key}"));
        }
    }

    /// The first key that does this on the screen that is shown, as people read it.
    #[must_use]
    pub fn key_for(&self, action: Action) -> Option<String> {
        self.keymap().key_of(action, self.screen().place())
    }

    /// A sentence, and behind it what to press for what it `does`; without that where no key
    /// does it here.
    #[must_use]
    pub fn with_key(&self, said: &str, action: Action, does: &str) -> String {
        match self.key_for(action) {
            Some(key) => format!("{said}; {key} {does}"),
            None => said.to_owned(),
        }
    }

    /// Which keys do what.
    #[must_use]
    pub const fn keymap(&self) -> &Keymap {
        &self.settings.keymap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Effect, Message, Options};
    use crate::session::Session;
    use crate::session::fixture::Fixture;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn press(app: &mut App, session: &Session, codes: &[KeyCode]) {
        for &code in codes {
            app.update(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)), session);
        }
    }

    fn c(character: char) -> KeyCode {
        KeyCode::Char(character)
    }

    #[test]
    fn a_session_begins_and_begins_anew_as_it_is_configured() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "leaf"]);
        f.alloc(stack, 100);
        f.pass(1.0);
        let settings = Settings {
            screen: Place::Leaks,
            sort: Column::Growth,
            descending: false,
            group: Grouping::Crate,
            metric: Metric::AllocatedObjects,
            columns: vec![Column::Callsite, Column::Growth],
            limit: Some(5),
            marks_minutes: 15,
            ..Settings::default()
        };
        let mut app = App::new(Options::default()).configured(settings);
        app.update(Message::Resize(80, 24), &f.session);
        app.update(Message::Refresh, &f.session);
        let as_configured = |app: &App| {
            let q = app.question();
            assert_eq!((q.sort, q.descending, q.group), (Column::Growth, false, Grouping::Crate));
            assert_eq!(app.metric(), Metric::AllocatedObjects);
            assert_eq!(app.columns().0, [Column::Callsite, Column::Growth]);
            assert!(app.columns_are_chosen());
        };
        as_configured(&app);
        assert_eq!(app.screen().place(), Place::Leaks);
        assert_eq!((app.limit, app.marks_every()), (Some(5), Some(15)));
        press(&mut app, &f.session, &[c('1'), c('s'), c('t'), c('m'), c('c'), c(' '), c('c')]);
        assert_eq!(app.screen().place(), Place::Callsites);
        assert_ne!((app.question().group, app.columns().0.len()), (Grouping::Crate, 2));
        press(&mut app, &f.session, &[c('r')]);
        as_configured(&app);
    }

    #[test]
    fn marks_by_the_clock_count_from_when_a_target_is_seen() {
        let mut f = Fixture::new(1);
        f.pass(1.0);
        let settings = Settings { marks_minutes: 1, ..Settings::default() };
        let mut app = App::new(Options::default()).configured(settings);
        assert_eq!(app.update(Message::Refresh, &f.session), []);
        f.pass(59.0);
        assert_eq!(app.update(Message::Refresh, &f.session), []);
        f.pass(2.0);
        assert!(matches!(app.update(Message::Refresh, &f.session)[..], [Effect::Send(_)]));
    }

    #[test]
    fn of_many_mistakes_it_is_said_that_there_are_more() {
        let told = |said: &[&str]| {
            let mut app = App::new(Options::default());
            app.tell(said.iter().map(|said| (*said).to_owned()).collect());
            app.note().map(str::to_owned)
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["a"]).as_deref(), Some("a"));
        assert_eq!(told(&["a", "b", "c"]).as_deref(), Some("c; and 2 more: see Log (9)"));
    }

    #[test]
    fn who_is_new_here_is_told_what_to_press_until_the_first_key() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "leaf"]);
        f.alloc(stack, 100);
        f.pass(1.0);
        let mut app = App::new(Options::default());
        app.is_first();
        app.update(Message::Resize(80, 24), &f.session);
        app.update(Message::Refresh, &f.session);
        assert!(app.first_hint().unwrap().contains("Enter who calls the row"));
        press(&mut app, &f.session, &[KeyCode::Down]);
        assert_eq!(app.first_hint(), None);
    }
}
