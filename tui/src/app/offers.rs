//! What keys do on this screen as it stands, as the key bar says it, and where those work that
//! do nothing here.

use super::keys::{Action, Place, TABS};
use super::{App, Screen};
use crate::query::Grouping;
use crate::session::Connection;
use crossterm::event::KeyEvent;

/// So many screens are named.
const NAMED: usize = 3;

impl App {
    /// What the key bar says of a key of this screen, `short` in the table; `None`: now it would
    /// be refused.
    #[must_use]
    pub fn offered(&self, action: Action, short: &'static str) -> Option<&'static str> {
        let group = match self.screen() {
            Screen::Callsites(_) => self.question.group,
            _ => Grouping::Callsite,
        };
        let targets = match self.screen() {
            Screen::Targets(targets) => Some(targets.counts()),
            _ => None,
        };
        let offered = match action {
            Action::Mark
            | Action::Automatic
            | Action::Finer
            | Action::Coarser
            | Action::Sampling => {
                self.file.is_none() && self.live.connection == Connection::Connected
            }
            Action::Drill if group != Grouping::Callsite => {
                return group.together().map(|_| "callsites");
            }
            Action::Details => group == Grouping::Callsite,
            Action::Attach => targets.is_none_or(|(listed, _)| listed > 0),
            Action::Filter => targets.is_none_or(|(_, all)| all > 0),
            Action::Pause if self.paused => return Some("go on"),
            _ => true,
        };
        offered.then_some(short)
    }

    /// Says of a key of the table that does nothing here where it works.
    pub(super) fn say_where(&mut self, key: &KeyEvent) {
        // Without a target there are no screens to go to.
        if self.unattached {
            return;
        }
        let Some((shown, mut places)) = self.keymap().places(key) else { return };
        let is_screen =
            |place: &Place| *place == Place::Details || TABS.iter().any(|tab| tab.place == *place);
        if places.iter().any(is_screen) {
            places.retain(is_screen);
        }
        let mut titles: Vec<&str> = places.iter().map(|place| place.title()).collect();
        if titles.len() > NAMED {
            titles.truncate(NAMED);
            titles.push("others");
        }
        let Some((last, before)) = titles.split_last() else { return };
        let before = before.join(", ");
        let and = if before.is_empty() { "" } else { " and " };
        self.say(format!("{shown} works on {before}{and}{last}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::targets::Look;
    use crate::app::testing::{press, refresh, started, target};
    use crate::app::{Message, Options};
    use crate::session::Input;
    use crate::session::fixture::Fixture;

    #[test]
    fn a_key_that_does_nothing_here_says_where_it_works() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "site"]);
        f.alloc(stack, 100);
        f.pass(1.0);
        for (keys, said) in [
            ("4t", "t works on Callsites"),
            ("4[", "[ works on Promotion"),
            ("5D", "D works on Callsites, Flame and Leaks"),
            ("9/", "/ works on Callsites, Callers, Flame and others"),
            ("9A", "A works on Leaks"),
            ("d⏎", "Enter works on Callsites, Callers, Flame and others"),
            ("?z", "z works on Flame"),
            ("4p?w", ""),
        ] {
            let mut app = started(&f);
            press(&mut app, &f.session, keys);
            let note = app.note().filter(|note| note.contains(" works on "));
            assert_eq!(note.unwrap_or_default(), said, "{keys}");
        }
        // Who goes back where there is no way back wants to know nothing.
        let mut app = started(&f);
        press(&mut app, &f.session, "9⎋");
        assert_eq!(app.note(), None);
    }

    #[test]
    fn only_what_would_be_done_is_offered() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "site@a.rs:1"]);
        f.alloc(stack, 100);
        f.pass(1.0);
        let mut app = started(&f);
        let enter = |app: &App| app.offered(Action::Drill, "callers");
        assert_eq!(
            (enter(&app), app.offered(Action::Mark, "mark")),
            (Some("callers"), Some("mark"))
        );
        let mut seen = Vec::new();
        for _ in Grouping::ALL {
            seen.push((app.question().group, enter(&app), app.offered(Action::Details, "details")));
            press(&mut app, &f.session, "t");
        }
        for (group, enter, details) in seen {
            let callsites = group == Grouping::Callsite;
            let wanted =
                if callsites { Some("callers") } else { group.together().map(|_| "callsites") };
            assert_eq!((enter, details.is_some()), (wanted, callsites), "{group:?}");
        }
        press(&mut app, &f.session, " ");
        assert_eq!(app.offered(Action::Pause, "pause"), Some("go on"));
        f.session.apply(Input::Connection(Connection::Ended("gone".into())));
        refresh(&mut app, &f);
        let file = App::of_file(Options::default());
        for action in [Action::Mark, Action::Finer, Action::Sampling, Action::Automatic] {
            for app in [&app, &file] {
                assert_eq!(app.offered(action, "x"), None, "{action:?}");
            }
        }
        // Where no target runs there is none to attach to, and none to look for.
        let mut app = App::without_target(Options::default());
        app.update(Message::Targets(Look::default()), &f.session);
        for action in [Action::Attach, Action::Filter] {
            assert_eq!(app.offered(action, "x"), None, "{action:?}");
        }
        let targets = vec![target(1, None, "orders")];
        app.update(Message::Targets(Look { targets, ..Look::default() }), &f.session);
        assert_eq!(app.offered(Action::Attach, "attach"), Some("attach"));
    }
}
