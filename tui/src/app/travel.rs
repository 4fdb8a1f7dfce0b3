//! To other moments, and ranges between two; and standing still.

use super::keys::{Action, TimeKey};
use super::time::{Set, Span, Times};
use super::{App, Screen};
use crate::query::When;
use crate::session::{Connection, Session};
use crate::view::format::{self, Rounding};
use crate::view::timebar;

impl App {
    pub(super) fn go_to_peak(&mut self, session: &Session) {
        let when = session.peak_when();
        self.times.to_peak(when);
        if when == When::Now {
            self.say("the highest moment is now".into());
        }
        self.dirty = true;
        self.look(session);
    }

    /// To another moment, by the user's own doing: a paused screen goes there too.
    pub(super) fn travel(&mut self, session: &Session, go: impl FnOnce(&mut Times, Span)) {
        let Some(span) = session.span() else {
            return self.say("no moment but now is known yet".into());
        };
        go(&mut self.times, span);
        self.dirty = true;
        self.look(session);
    }

    /// Plays, or stops to.
    pub(super) fn play(&mut self, session: &Session) {
        let Some(span) = session.span().filter(|(first, last)| first < last) else {
            return self.say("there is nothing to play yet: no moment but now is known".into());
        };
        self.travel(session, |times, span| times.act(TimeKey::Play, span));
        let key = Action::Time(TimeKey::Play);
        let Some((what_ns, takes_ns)) = self.times.to_be_played(span) else {
            let said = self.with_key("playing has stopped", key, "goes on");
            return self.say(self.with_key(&said, Action::Time(TimeKey::Now), self.end()));
        };
        let [what, takes] =
            [what_ns, takes_ns].map(|ns| format::duration(ns.max(1) as f64, 2, Rounding::Nearest));
        let said = if what == takes {
            format!("playing {what} of what was")
        } else {
            format!("playing {what} of what was, in {takes}")
        };
        self.say(self.with_key(&said, key, "stops"));
    }

    /// What the last moment is called.
    pub(super) const fn end(&self) -> &'static str {
        let ended = matches!(self.live.connection, Connection::Ended(_));
        if self.file.is_some() || ended { "is the end" } else { "is now" }
    }

    /// Time has passed while it plays.
    pub(super) fn play_on(&mut self, ns: u64, session: &Session) {
        if !self.playing() {
            return;
        }
        self.travel(session, |times, span| times.pass(ns, span));
        if !self.playing() {
            self.say(format!("all was played: this {}", self.end()));
        }
    }

    pub(super) fn pause(&mut self, session: &Session) {
        self.paused = !self.paused;
        if self.paused && self.playing() {
            self.times.stop();
            let key = Action::Time(TimeKey::Play);
            self.say(self.with_key("paused, and playing has stopped", key, "plays on"));
        }
        self.export = None;
        // Either way the figures of this moment: those that are held, or the next.
        self.look(session);
        if self.paused {
            self.forget();
            if matches!(self.shown(), Screen::Callers(_)) {
                // It lies under the tree, and is held with it.
                self.ask_lowest(session);
            }
        }
    }

    /// The range begins, or ends, where the cursor stands; what it is then, is said.
    pub(super) fn set_end(&mut self, key: TimeKey, session: &Session) {
        let Some(span) = session.span() else {
            return self.travel(session, |_, _| {});
        };
        let set = self.times.set_end(key == TimeKey::Begin, span);
        self.travel(session, |_, _| {});
        let span_ns = span.1 - span.0;
        let moment = |at| format::moment(at, span_ns);
        let range = match self.times.when(Some(span)) {
            when @ When::Range { .. } => Some(timebar::words(when, span_ns)),
            _ => None,
        };
        let said = match (set, range) {
            (Set::Nothing(at), _) => {
                let said = format!("a range that begins and ends at {} is none", moment(at));
                let key = Action::Time(TimeKey::Earlier);
                return self.say(self.with_key(&said, key, "moves the cursor"));
            }
            (Set::Without(other, at), Some(range)) if key == TimeKey::End => {
                let [other, at] = [other, at].map(moment);
                format!("{at} is before {other}, where the range began: it is {range} now")
            }
            (Set::Without(other, at), _) => {
                let [other, at] = [other, at].map(moment);
                format!("a new range begins at {at}: the one before ended at {other}")
            }
            // The title says which.
            (Set::Whole, Some(_)) => return,
            (Set::Whole, None) => "a range begins here".to_owned(),
        };
        let open = key == TimeKey::Begin && !self.times.is_closed();
        if !open {
            return self.say(said);
        }
        // At the last moment of a file there is nothing behind it.
        let said = if self.times.ends_now() && self.file.is_some() {
            self.with_key(
                "a range begins here, at the end",
                Action::Time(TimeKey::Earlier),
                "moves the cursor",
            )
        } else {
            said
        };
        self.say(self.with_key(&said, Action::Time(TimeKey::End), "ends it at the cursor"));
    }

    /// A moment that was pointed at. Before heaptop came the curve alone is known: then it is
    /// the first moment of which all is, and that is said.
    pub(super) fn point_at(&mut self, at: u64, session: &Session) {
        self.travel(session, |times, span| times.set(at, span));
        if let Some((first, last)) = session.span().filter(|(first, _)| at < *first) {
            let first = format::moment(first, last - first);
            self.say(format!("before {first} the curve alone is known: this is {first}"));
        }
    }
}
