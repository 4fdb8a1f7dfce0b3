//! What has come of the commands that were sent to the agent.
//!
//! The agent answers none of them: its statuses and marks show what it did, to all
//! viewers. So each command is remembered until the session shows its effect, and that
//! is said; also when the connection goes first, and, told by the clock of the terminal
//! loop, when nothing is heard for [`PATIENCE`]. A command that is late is still waited
//! for: a target that was stopped obeys once it goes on.

use std::time::Duration;

use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{FromViewer, Sampling};

use super::keys::Action;
use super::{App, Effect};
use crate::session::{Connection, Session, sane};
use crate::view::format;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// A status as of so many nanoseconds after a command was told after the agent read it,
/// unless the agent reads nothing.
const SETTLED_NS: u64 = 1_000_000_000;
/// Most commands that are remembered.
const MOST: usize = 16;

/// What shall be seen of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// This R.
    Interval(Interval),
    /// R by the governor.
    Governor,
    /// Sampling on or off.
    Sampling(bool),
    /// A mark of this name.
    Mark(String),
}

/// A command that was sent.
#[derive(Debug)]
pub(super) struct Asked {
    told: Told,
    number: u64,
    /// Time of the session then, in nanoseconds since the agent's start.
    at_ns: u64,
    /// That it is late was said.
    late: bool,
}

/// What a session shows of a command.
enum Seen {
    Done(String),
    /// Sampling is off, and can be started again.
    Off,
    Refused(String),
    Nothing,
}

impl Told {
    /// `None`: nothing is to be seen of it, or nobody waits.
    fn of(command: &FromViewer) -> Option<Self> {
        match command {
            FromViewer::SetInterval(c) => Some(c.interval.map_or(Self::Governor, Self::Interval)),
            FromViewer::SetSampling(c) => Some(Self::Sampling(c.on)),
            FromViewer::SetMark(c) => Some(Self::Mark(sane::text(&c.label).into_owned())),
            _ => None,
        }
    }

    /// Whether the later one of both says all: R and sampling have one value each.
    fn replaces(&self, before: &Self) -> bool {
        let of_r = |told: &Self| matches!(told, Self::Interval(_) | Self::Governor);
        let sampling = |told: &Self| matches!(told, Self::Sampling(_));
        of_r(self) && of_r(before) || sampling(self) && sampling(before)
    }

    /// What was asked, behind "the target has not answered: ".
    fn wish(&self) -> String {
        match self {
            Self::Interval(to) => format!("R shall be {}", format::interval(to.bytes())),
            Self::Governor => "the agent shall choose R".into(),
            Self::Sampling(true) => "sampling shall go on".into(),
            Self::Sampling(false) => "sampling shall stop".into(),
            Self::Mark(label) => format!("mark “{label}”"),
        }
    }

    fn seen(&self, session: &Session) -> Seen {
        let Some(status) = session.status() else { return Seen::Nothing };
        let r = format::interval(status.interval.bytes());
        match (self, status.sampling) {
            (Self::Interval(to), _) if !status.governed && status.interval == *to => {
                Seen::Done(format!("R is {r} now"))
            }
            (Self::Governor, _) if status.governed => {
                Seen::Done(format!("the agent chooses R now: {r}"))
            }
            (Self::Sampling(true), Sampling::On) => Seen::Done("sampling is on now".into()),
            (Self::Sampling(false), Sampling::Paused | Sampling::Stopped) => Seen::Off,
            (Self::Sampling(true), Sampling::Stopped) => {
                let why = session.stopped().unwrap_or("it has stopped for good");
                Seen::Refused(format!("the target does not sample again: {why}"))
            }
            _ => Seen::Nothing,
        }
    }
}

impl App {
    /// The number of the last command whose answer is awaited and not late yet: the
    /// terminal loop sends [`Message::NoAnswer`](super::Message::NoAnswer) once it has been
    /// the same for [`PATIENCE`].
    #[must_use]
    pub fn awaited_answer(&self) -> Option<u64> {
        self.asked.iter().filter(|asked| !asked.late).map(|asked| asked.number).max()
    }

    /// The command goes out.
    pub(super) fn sent(&mut self, command: FromViewer, session: &Session) -> Effect {
        if let Some(told) = Told::of(&command) {
            self.asked.retain(|asked| !told.replaces(&asked.told));
            self.asked.truncate(MOST - 1);
            self.last_asked += 1;
            let (number, at_ns) = (self.last_asked, session.now_ns());
            self.asked.push(Asked { told, number, at_ns, late: false });
        }
        Effect::Send(command)
    }

    /// Whether a mark of this name, which the agent may have cut, was asked for here; it
    /// is not any more.
    pub(super) fn awaited_mark(&mut self, label: &str) -> bool {
        let is = |asked: &Asked| matches!(&asked.told, Told::Mark(l) if l.starts_with(label));
        let found = self.asked.iter().position(is);
        found.map(|at| self.asked.remove(at)).is_some()
    }

    /// Says what the session shows of the commands by now.
    pub(super) fn see_outcomes(&mut self, session: &Session) {
        if self.asked.is_empty() {
            return;
        }
        if let Connection::Lost(_) | Connection::Ended(_) = session.connection() {
            let wishes: Vec<String> = self.asked.drain(..).map(|a| a.told.wish()).collect();
            let wishes = wishes.join("; ");
            return self.say(format!("the connection went before the target answered: {wishes}"));
        }
        let off = self.with_key("sampling is off now", Action::Sampling, "starts it again");
        let mut said = Vec::new();
        self.asked.retain(|asked| match asked.told.seen(session) {
            Seen::Done(sentence) | Seen::Refused(sentence) => {
                said.push(sentence);
                false
            }
            Seen::Off => {
                said.push(off.clone());
                false
            }
            Seen::Nothing => true,
        });
        for sentence in said {
            self.say(sentence);
        }
    }

    /// Nothing was seen of some commands for [`PATIENCE`].
    pub(super) fn no_answer(&mut self, session: &Session) {
        let mut said = Vec::new();
        self.asked.retain_mut(|asked| {
            if std::mem::replace(&mut asked.late, true) {
                return true;
            }
            let wish = asked.told.wish();
            let status = session.status().filter(|s| s.at.time_ns > asked.at_ns + SETTLED_NS);
            match status {
                // It speaks, and does something else.
                Some(status) if matches!(asked.told, Told::Interval(_) | Told::Governor) => {
                    let auto = if status.governed { " auto" } else { "" };
                    let r = format::interval(status.interval.bytes());
                    said.push(format!("asked was that {wish}, but it is {r}{auto}"));
                    false
                }
                _ => {
                    said.push(format!("the target has not answered: {wish}"));
                    true
                }
            }
        });
        for sentence in said {
            self.say(sentence);
        }
    }

    /// The command could not be sent.
    pub(super) fn not_sent(&mut self, command: &FromViewer) {
        let told = Told::of(command);
        self.asked.retain(|asked| Some(&asked.told) != told.as_ref());
        self.say("the target takes no commands now: try again once it answers".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Message;
    use crate::app::testing::{press, refresh, started};
    use crate::session::Input;
    use crate::session::fixture::Fixture;
    use heaptop_protocol::message::{Mark, SetSampling};

    #[test]
    fn an_interval_is_told_once_a_status_shows_it() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        press(&mut app, &f.session, "+y");
        assert!(app.awaited_answer().is_some());
        f.report();
        refresh(&mut app, &f);
        assert_eq!(app.note(), None, "that one was on its way");
        f.interval = Interval::new(32 << 10).unwrap();
        f.report();
        refresh(&mut app, &f);
        assert_eq!(app.note(), Some("R is 1 in 32 KiB now"));
        assert_eq!(app.awaited_answer(), None);
    }

    #[test]
    fn silence_is_told_and_a_late_answer_too() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        press(&mut app, &f.session, "xy");
        app.update(Message::NoAnswer, &f.session);
        assert_eq!(app.note(), Some("the target has not answered: sampling shall stop"));
        assert_eq!(app.awaited_answer(), None, "said once");
        press(&mut app, &f.session, "j");
        app.update(Message::NoAnswer, &f.session);
        assert_eq!(app.note(), None);
        f.sampling = Sampling::Paused;
        f.report();
        refresh(&mut app, &f);
        assert_eq!(app.note(), Some("sampling is off now; x starts it again"));
    }

    #[test]
    fn what_is_refused_or_done_otherwise_is_told() {
        let mut f = Fixture::new(64 << 10);
        f.sampling = Sampling::Paused;
        f.report();
        let mut app = started(&f);
        press(&mut app, &f.session, "xy");
        f.sampling = Sampling::Stopped;
        f.report();
        refresh(&mut app, &f);
        let refused = "the target does not sample again: it has stopped for good";
        assert_eq!(app.note(), Some(refused));
        press(&mut app, &f.session, "+y");
        f.pass(2.0);
        f.report();
        refresh(&mut app, &f);
        app.update(Message::NoAnswer, &f.session);
        let other = "asked was that R shall be 1 in 32 KiB, but it is 1 in 64 KiB";
        assert_eq!(app.note(), Some(other));
    }

    #[test]
    fn a_connection_that_goes_takes_the_answer_along() {
        let mut f = Fixture::new(64 << 10);
        let mut app = started(&f);
        press(&mut app, &f.session, "+yMa⏎");
        f.session.apply(Input::Connection(Connection::Lost("gone".into())));
        refresh(&mut app, &f);
        let gone =
            "the connection went before the target answered: R shall be 1 in 32 KiB; mark “a”";
        assert_eq!(app.note(), Some(gone));
        assert_eq!(app.awaited_answer(), None);
    }

    #[test]
    fn a_mark_is_told_where_it_was_asked_for_even_beside_trouble() {
        let mut f = Fixture::new(64 << 10);
        f.sampling = Sampling::Paused;
        f.report();
        let mut app = started(&f);
        press(&mut app, &f.session, "Ma⏎");
        let at = f.now();
        f.say(Mark { at, label: "a".into() });
        refresh(&mut app, &f);
        assert!(app.note().unwrap().starts_with("marked “a”"), "{:?}", app.note());
        assert_eq!(app.awaited_answer(), None);
    }

    #[test]
    fn a_command_that_was_not_sent_is_not_awaited() {
        let f = Fixture::new(64 << 10);
        let mut app = started(&f);
        press(&mut app, &f.session, "xy");
        app.update(Message::NotSent(SetSampling { on: false }.into()), &f.session);
        assert_eq!(app.awaited_answer(), None);
        assert!(app.note().unwrap().contains("takes no commands now"));
    }
}
