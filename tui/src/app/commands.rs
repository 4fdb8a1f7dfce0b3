//! What the viewer asks of the agent: another R, sampling off and on, marks.
//!
//! R and sampling are the target's, and so every viewer's: both are asked about
//! first. What came of it is told by [`outcome`](super::outcome).

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{FromViewer, Sampling, SetInterval, SetMark, SetSampling};

use super::keys::Action;
use super::{App, Effect};
use crate::session::{Connection, Session};
use crate::view::format;

/// Nobody samples more coarsely, in bytes.
const COARSEST_BYTES: u32 = 1 << 30;

/// A question to be answered before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Another R, and the one that was in force when it was asked.
    Interval {
        /// The other one.
        to: Interval,
        /// The one in force.
        from: Interval,
        /// Whether the agent's governor chose that one.
        governed: bool,
    },
    /// R by the agent's governor again.
    Governor,
    /// Sampling on or off.
    Sampling(bool),
}

impl Wanted {
    /// As a question, in full and in short.
    #[must_use]
    pub fn question(self) -> [String; 2] {
        match self {
            Self::Interval { to, from, governed } => {
                let [to, from] = [to, from].map(|r| format::interval(r.bytes()));
                let cost = if to == "every byte" { " (slow)" } else { "" };
                let auto = if governed { " auto" } else { "" };
                [
                    format!("sample {to}{cost} instead of {from}{auto}, for all viewers?"),
                    format!("sample {to}?"),
                ]
            }
            Self::Governor => ["let the agent choose R, for all viewers?".into(), "R auto?".into()],
            Self::Sampling(false) => [
                "stop sampling, for all viewers? What is born meanwhile is not seen".into(),
                "stop sampling?".into(),
            ],
            Self::Sampling(true) => {
                ["sample again, for all viewers?".into(), "sample again?".into()]
            }
        }
    }

    fn command(self) -> FromViewer {
        match self {
            Self::Interval { to, .. } => SetInterval { interval: Some(to) }.into(),
            Self::Governor => SetInterval { interval: None }.into(),
            Self::Sampling(on) => SetSampling { on }.into(),
        }
    }
}

/// Half of R, or twice R, within bounds.
fn step(interval: Interval, finer: bool) -> Interval {
    let bytes = interval.bytes();
    let next =
        if finer { bytes / 2 } else { bytes.saturating_mul(2).min(COARSEST_BYTES.max(bytes)) };
    Interval::new(u64::from(next)).unwrap_or(Interval::EXACT)
}

impl App {
    /// The question that waits for its answer.
    #[must_use]
    pub const fn wanted(&self) -> Option<Wanted> {
        self.wanted
    }

    /// Whether there is an agent that can be told something; else it is said.
    pub(super) fn can_tell(&mut self, session: &Session) -> bool {
        if self.file.is_some() {
            self.say("this is a recording: there is no target that could be told something".into());
            return false;
        }
        let there = *session.connection() == Connection::Connected && session.status().is_some();
        if !there {
            self.say(
                "there is no connection to the target now, so nothing can be asked of it".into(),
            );
        }
        there
    }

    pub(super) fn want_interval(&mut self, finer: bool, session: &Session) {
        if !self.can_tell(session) {
            return;
        }
        let Some(from) = session.status().map(|status| status.interval) else { return };
        // Pressed again it goes on from what it asks for.
        let at = match self.wanted {
            Some(Wanted::Interval { to, .. }) => to,
            _ => from,
        };
        let to = step(at, finer);
        if to == at {
            let most = if finer { "finer than every byte" } else { "coarser than 1 in 1 GiB" };
            self.say(format!("R cannot be {most}"));
        }
        let governed = session.status().is_some_and(|status| status.governed);
        self.wanted = (to != from).then_some(Wanted::Interval { to, from, governed });
    }

    pub(super) fn want_sampling(&mut self, session: &Session) {
        if !self.can_tell(session) {
            return;
        }
        match session.status().map(|status| status.sampling) {
            Some(Sampling::On) => self.wanted = Some(Wanted::Sampling(false)),
            Some(Sampling::Paused) => self.wanted = Some(Wanted::Sampling(true)),
            Some(Sampling::Stopped) => {
                self.say(
                    "sampling has stopped for good: restart the target to sample again".into(),
                );
            }
            None => {}
        }
    }

    /// A key while a question waits: `y` says yes, `+` and `-` go on, `a` asks for the agent's
    /// own R instead, all others say no. Enter too: who presses it out of habit stops nothing.
    pub(super) fn answer(&mut self, key: &KeyEvent, session: &Session) -> Vec<Effect> {
        let Some(wanted) = self.wanted.take() else { return Vec::new() };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let action = self.keymap().action(key, self.screen().place());
        match (key.code, action) {
            (KeyCode::Char('c'), _) if control => return vec![Effect::Quit],
            (KeyCode::Char('z'), _) if control => {
                self.wanted = Some(wanted);
                return vec![Effect::Suspend];
            }
            (KeyCode::Char('y' | 'Y'), _) if !control => {
                if self.can_tell(session) {
                    return vec![self.sent(wanted.command(), session)];
                }
            }
            (KeyCode::Char('a'), _)
                if matches!(wanted, Wanted::Interval { governed: false, .. }) =>
            {
                self.wanted = Some(Wanted::Governor);
            }
            (_, Some(action @ (Action::Finer | Action::Coarser)))
                if matches!(wanted, Wanted::Interval { .. }) =>
            {
                self.wanted = Some(wanted);
                self.want_interval(action == Action::Finer, session);
            }
            _ => self.say("nothing was changed".into()),
        }
        Vec::new()
    }

    /// Marks this moment.
    pub(super) fn mark(&mut self, label: &str, session: &Session) -> Vec<Effect> {
        if !self.can_tell(session) {
            return Vec::new();
        }
        let label = match label.trim() {
            "" => "mark",
            label => label,
        };
        vec![self.sent(SetMark { label: label.into() }.into(), session)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::{press, refresh, started};
    use crate::session::Input;
    use crate::session::fixture::Fixture;
    use heaptop_protocol::event::Moment;
    use heaptop_protocol::message::Mark;

    fn interval(bytes: u64) -> Effect {
        Effect::Send(SetInterval { interval: Interval::new(bytes) }.into())
    }

    #[test]
    fn another_interval_is_asked_about_and_sent() {
        let f = Fixture::new(64 << 10);
        let mut app = started(&f);
        assert_eq!(press(&mut app, &f.session, "+"), []);
        let [question, _] = app.wanted().unwrap().question();
        assert_eq!(question, "sample 1 in 32 KiB instead of 1 in 64 KiB, for all viewers?");
        assert_eq!(press(&mut app, &f.session, "y"), [interval(32 << 10)]);
        assert_eq!(app.wanted(), None);
        // On and on, and back: what is in force is no wish.
        assert_eq!(press(&mut app, &f.session, "---y"), [interval(512 << 10)]);
        assert_eq!(press(&mut app, &f.session, "+-y"), []);
        // Back to the agent's own.
        let auto = Effect::Send(SetInterval { interval: None }.into());
        assert_eq!(press(&mut app, &f.session, "+ay"), [auto]);
        assert_eq!(press(&mut app, &f.session, "+an"), []);
        for no in ["+n", "+⎋", "+q", "-j", "+⏎", "x⏎"] {
            assert_eq!(press(&mut app, &f.session, no), [], "{no}");
            assert_eq!((app.wanted(), app.note()), (None, Some("nothing was changed")), "{no}");
        }
        assert_eq!(press(&mut app, &f.session, "++++++++++++++++++y"), [interval(1)]);
    }

    #[test]
    fn sampling_is_stopped_and_started_again() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        let set = |on| Effect::Send(SetSampling { on }.into());
        assert_eq!(press(&mut app, &f.session, "xy"), [set(false)]);
        assert_eq!(press(&mut app, &f.session, "x+"), [], "only an interval goes on");
        f.sampling = Sampling::Paused;
        f.report();
        refresh(&mut app, &f);
        press(&mut app, &f.session, "⎋");
        assert!(app.sentence().unwrap().contains("x starts it again"), "{:?}", app.sentence());
        assert_eq!(press(&mut app, &f.session, "xy"), [set(true)]);
        f.sampling = Sampling::Stopped;
        f.report();
        assert_eq!(press(&mut app, &f.session, "xy"), []);
    }

    #[test]
    fn a_mark_has_a_name_and_is_told_when_it_comes() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        let mark = |label: &str| Effect::Send(SetMark { label: label.into() }.into());
        assert_eq!(press(&mut app, &f.session, "M before q⏎"), [mark("before q")]);
        assert_eq!(press(&mut app, &f.session, "M⏎"), [mark("mark")]);
        assert_eq!(press(&mut app, &f.session, "Mx⎋"), []);
        assert_eq!(app.question().filter, "", "what was typed is no filter");
        let at = f.now();
        f.say(Mark { at, label: "evil\x1b[2J".into() });
        refresh(&mut app, &f);
        assert_eq!(app.note(), Some("marked “evil\u{fffd}[2J”, up < 1 m"));
        press(&mut app, &f.session, "j");
        refresh(&mut app, &f);
        assert_eq!(app.note(), None, "once");
    }

    #[test]
    fn a_mark_from_before_heaptop_came_is_no_news_and_is_logged_as_of_then() {
        let mut f = Fixture::unattached(64 << 10);
        f.pass(600.0);
        f.attach();
        let mut app = started(&f);
        let before = f.session.hello().unwrap().uptime_ns;
        assert!(before > 599_000_000_000);
        let at = Moment { time_ns: 37_000_000_000, clock: 0, seq: 1 };
        f.say(Mark { at, label: "old".into() });
        refresh(&mut app, &f);
        assert_eq!(app.note(), None);
        let at =
            |part: &str| f.session.log().lines().find(|l| l.text.contains(part)).unwrap().at_ns;
        assert_eq!(at("mark “old”"), 37_000_000_000);
        assert_eq!([at("connected"), at("agent 0.1.0")], [before, before]);
    }

    #[test]
    fn nothing_is_asked_of_a_target_that_is_gone() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        press(&mut app, &f.session, "+");
        f.session.apply(Input::Connection(Connection::Ended("gone".into())));
        refresh(&mut app, &f);
        assert_eq!(press(&mut app, &f.session, "y+y-yxyM⏎"), []);
        assert!(app.note().is_some() || app.wanted().is_none());
    }

    #[test]
    fn steps_halve_and_double_within_bounds() {
        let r = |bytes: u64| Interval::new(bytes).unwrap();
        assert_eq!(step(r(512 << 10), true), r(256 << 10));
        assert_eq!(step(r(512 << 10), false), r(1 << 20));
        assert_eq!((step(r(2), true), step(r(1), true)), (r(1), r(1)));
        assert_eq!(step(r(1 << 30), false), r(1 << 30));
        assert_eq!(step(r(3 << 30), false), r(3 << 30), "one that is coarser stays");
    }
}
