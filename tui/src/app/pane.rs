//! The details of the selected row, in a pane beside the rows where there is room.
//!
//! They follow the selection. What they ask costs a pass over what happened, which no frame
//! may wait for: nothing is asked while the selection, the time cursor or the filter moves,
//! only once they have stood for a moment ([`Message::Still`](super::Message::Still)), and
//! then once a second, as on the details' own screen. The terminal loop, which has a clock,
//! makes those moments longer where the pass is. **Callstacks of frees are not asked for**: they cost the target
//! something, and nobody has opened the pane. The screen of the details asks for them.

use super::details::Details;
use super::{App, Screen};
use crate::query::Grouping;
use crate::session::Session;

/// A terminal with fewer columns has room for the rows alone.
pub const WIDE: u16 = 160;
/// The pane's columns: so many eighths of the terminal's, within bounds. The widest terminals
/// have room for all columns of the callsites beside it.
const EIGHTHS: u16 = 3;
const LEAST: u16 = 60;
const MOST: u16 = 88;

impl App {
    /// The columns of the pane, the line at its left among them; 0: there is none.
    #[must_use]
    pub fn pane_columns(&self) -> u16 {
        let has_details = match self.shown() {
            Screen::Callsites(_) => self.question.group == Grouping::Callsite,
            Screen::Leaks(_) => true,
            _ => false,
        };
        if has_details { self.possible_pane() } else { 0 }
    }

    /// The same where rows are callsites.
    fn possible_pane(&self) -> u16 {
        let (columns, _) = self.size;
        if !self.settings.pane || columns < WIDE {
            return 0;
        }
        (columns / 8 * EIGHTHS).clamp(LEAST, MOST)
    }

    /// The terminal's columns and rows.
    #[must_use]
    pub const fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The columns that the list of callsites has, whatever is shown.
    #[must_use]
    pub fn callsites_columns(&self) -> u16 {
        self.size.0 - self.possible_pane()
    }

    /// The columns that are left for the rows.
    #[must_use]
    pub fn list_columns(&self) -> u16 {
        self.size.0 - self.pane_columns()
    }

    /// What the pane shows.
    #[must_use]
    pub fn pane(&self) -> Option<&Details> {
        self.pane.as_deref()
    }

    /// The number of what the pane is to show, while it is not asked yet or what it shows is
    /// old: once it has been the same for a moment, [`Message::Still`](super::Message::Still)
    /// asks.
    #[must_use]
    pub fn awaited_pane(&self) -> Option<u64> {
        // On a paused screen the time of the figures stands still, and so do these.
        let old = |pane: &Details| pane.is_old(self.summary.now_ns);
        self.pane.as_ref().filter(|pane| !pane.is_asked() || old(pane)).map(|_| self.panes)
    }

    /// The selection may be another one, or the moment, or the filter.
    pub(super) fn follow_pane(&mut self) {
        let selected = match self.shown() {
            _ if self.pane_columns() == 0 => None,
            Screen::Callsites(cursor) => {
                let row = self.table.as_ref().and_then(|table| table.row(cursor.index()));
                row.map(|row| (row.key, row.label.clone()))
            }
            Screen::Leaks(leaks) => leaks.selected().map(|row| (row.key, row.label.clone())),
            _ => None,
        };
        let (when, was) = (self.question.when, self.asked_about());
        let same = match (&selected, &mut self.pane) {
            (None, None) => true,
            (Some((key, _)), Some(pane)) => pane.about(when, &was) && pane.key == *key,
            _ => false,
        };
        if !same {
            self.pane = selected.map(|(key, label)| {
                let mut pane = Details::of(key, label);
                pane.about(when, &was);
                Box::new(pane)
            });
            self.panes += 1;
            self.dirty = true;
        }
    }

    /// Details that were asked are asked anew.
    pub(super) fn forget_details(&mut self) {
        for screen in &mut self.stack {
            if let Screen::Details(details) = screen {
                details.forget();
            }
        }
        if let Some(pane) = &mut self.pane {
            pane.forget();
            self.panes += 1;
        }
    }

    /// Asks what the pane shows, unless it was asked a moment ago.
    pub(super) fn ask_pane(&mut self, session: &Session) {
        if let Some(pane) = &mut self.pane {
            self.dirty |= pane.ask(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::app::testing::press;
    use crate::app::{App, Effect, Message, Options, Screen};
    use crate::query::{When, details};
    use crate::session::Session;
    use crate::session::fixture::Fixture;

    fn target() -> Fixture {
        let mut f = Fixture::new(1);
        for (name, size) in [("big", 600), ("small", 100)] {
            let stack = f.stack(&["main", name]);
            let block = f.alloc(stack, size);
            f.promote(block);
        }
        f.pass(1.0);
        f
    }

    fn wide(session: &Session) -> App {
        let mut app = App::new(Options::default());
        app.update(Message::Resize(160, 45), session);
        app.update(Message::Refresh, session);
        app
    }

    fn shown(app: &App) -> Option<(String, bool)> {
        app.pane().map(|pane| (pane.label.function.to_string(), pane.answer.is_some()))
    }

    #[test]
    fn it_follows_the_selection_and_asks_once_that_stands_still() {
        let f = target();
        let mut app = wide(&f.session);
        assert_eq!(shown(&app), Some(("big".into(), false)));
        app.update(Message::Still, &f.session);
        assert_eq!(shown(&app), Some(("big".into(), true)));
        assert_eq!(app.awaited_pane(), None);
        press(&mut app, &f.session, "↓");
        assert_eq!(shown(&app), Some(("small".into(), false)));
        let awaited = app.awaited_pane();
        assert!(awaited.is_some());
        app.update(Message::Refresh, &f.session);
        assert_eq!(app.awaited_pane(), awaited, "it is the same that is awaited");
        app.update(Message::Still, &f.session);
        let pane = app.pane().unwrap();
        let truth = details(&f.session, When::Now, pane.key, "", None);
        assert_eq!(pane.answer.as_deref(), truth.as_ref(), "what the screen of details shows");
    }

    #[test]
    fn it_is_made_anew_as_time_goes_on_and_held_while_paused() {
        let mut f = target();
        let mut app = wide(&f.session);
        app.update(Message::Still, &f.session);
        let to = |app: &App| app.pane().unwrap().answer.as_ref().unwrap().to_ns;
        let before = to(&app);
        f.pass(0.5);
        app.update(Message::Refresh, &f.session);
        assert_eq!(app.awaited_pane(), None, "it was asked a moment ago");
        f.pass(2.0);
        app.update(Message::Refresh, &f.session);
        assert!(app.awaited_pane().is_some() && to(&app) == before, "no frame waits for it");
        app.update(Message::Still, &f.session);
        assert!(to(&app) > before);
        press(&mut app, &f.session, " ");
        let held = to(&app);
        f.pass(2.0);
        app.update(Message::Refresh, &f.session);
        assert_eq!((app.awaited_pane(), to(&app)), (None, held));
        press(&mut app, &f.session, " ,");
        assert!(app.awaited_pane().is_some(), "it is another moment");
        app.update(Message::Still, &f.session);
        assert!(to(&app) < held + 2_000_000_000);
    }

    #[test]
    fn it_does_not_ask_the_target_for_more() {
        let f = target();
        let mut app = wide(&f.session);
        app.update(Message::Still, &f.session);
        assert_eq!(app.update(Message::Refresh, &f.session), []);
        press(&mut app, &f.session, "d");
        let effects = app.update(Message::Refresh, &f.session);
        assert!(
            matches!(effects[..], [Effect::Send(_)]),
            "the screen of details does: {effects:?}"
        );
    }

    #[test]
    fn it_is_there_where_rows_have_details_and_room() {
        let f = target();
        let mut app = wide(&f.session);
        for (keys, there) in
            [("", true), ("t", false), ("r", true), ("7", true), ("5", false), ("1", true)]
        {
            press(&mut app, &f.session, keys);
            app.update(Message::Refresh, &f.session);
            assert_eq!(app.pane_columns() > 0, there, "{keys:?}");
            assert_eq!(app.pane().is_some(), there, "{keys:?}");
            assert_eq!(app.list_columns() + app.pane_columns(), 160);
        }
        press(&mut app, &f.session, "?⎋");
        assert!(app.pane().is_some() && matches!(app.screen(), Screen::Callsites(_)));
        app.update(Message::Resize(159, 45), &f.session);
        assert_eq!((app.pane_columns(), shown(&app)), (0, None));
        let settings = crate::app::settings::Settings { pane: false, ..Default::default() };
        let mut app = App::new(Options::default()).configured(settings);
        app.update(Message::Resize(300, 80), &f.session);
        app.update(Message::Refresh, &f.session);
        assert_eq!((app.pane_columns(), shown(&app)), (0, None));
    }
}
