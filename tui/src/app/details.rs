//! The details of one callsite: what they remember, and what they ask.

use super::base::GrowthBase;
use super::keys::{Action, Place};
use super::screens::Screen;
use super::{App, Effect};
use crate::query::{self, Label, NodeKey};
use crate::session::figures::Estimate;
use crate::session::{Connection, Session};
use heaptop_protocol::message::WantFreeStacks;

/// See the module.
#[derive(Debug, Clone)]
pub struct Details {
    /// Which callsite.
    pub key: NodeKey,
    /// Its name, as known when it was opened.
    pub label: Label,
    /// Of a frame that calls who allocates: what goes through it, and what of that is allocated
    /// at it itself, which is all that these are of.
    pub calls: Option<[Estimate; 2]>,
    /// What is known of it; `None` where nothing is of the moment.
    pub answer: Option<Box<query::Details>>,
    /// First line that is shown.
    pub offset: usize,
    /// The time of the target at the last answer, in nanoseconds since the agent's start.
    asked_ns: Option<u64>,
    /// Which moment is asked about.
    when: query::When,
    /// What that is called while its end moves on with the present, and the filter: details
    /// of the same are made anew only now and then.
    was: About,
    /// Those that the answer is of.
    answered: Option<About>,
}

/// What is asked about: the moment, the filter, and what growth is counted from.
type About = (query::When, String, GrowthBase);

/// They cost a pass over what happened: made anew so often, in nanoseconds.
const AGAIN_NS: u64 = 1_000_000_000;

impl Details {
    /// Those of a callsite; nothing is asked yet.
    pub(super) fn of(key: NodeKey, label: Label) -> Self {
        Self {
            key,
            label,
            calls: None,
            answer: None,
            offset: 0,
            asked_ns: None,
            when: query::When::Now,
            was: <_>::default(),
            answered: None,
        }
    }

    /// Whether they were asked for, whatever the answer was.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.asked_ns.is_some()
    }

    /// Whether it is time to ask again, at this time of the target.
    pub(super) fn is_old(&self, now_ns: u64) -> bool {
        let asked = self.asked_ns.unwrap_or(0);
        self.was.0 == query::When::Now && now_ns >= asked.saturating_add(AGAIN_NS)
    }

    /// What was answered may be old, whatever the target's clock says.
    pub(super) const fn forget(&mut self) {
        self.asked_ns = None;
    }

    /// What is to be asked about. Whether it is the same as before, but for an end that
    /// moves on with the present.
    pub(super) fn about(&mut self, when: query::When, was: &About) -> bool {
        self.when = when;
        let same = self.was == *was;
        if !same {
            self.was.clone_from(was);
        }
        same
    }

    /// Asks, unless that was done a moment ago. Whether the answer is another one.
    pub(super) fn ask(&mut self, session: &Session) -> bool {
        let now = session.now_ns();
        let fresh = |asked: u64| (asked..asked.saturating_add(AGAIN_NS)).contains(&now);
        let same = self.asked_ns.is_some_and(fresh) && self.answered.as_ref() == Some(&self.was);
        if same && self.answer.is_some() {
            return false;
        }
        let first = self.asked_ns.is_none();
        self.asked_ns = Some(now);
        self.answered = Some(self.was.clone());
        let (_, filter, base) = &self.was;
        let from = base.moment(session, self.when).map(|(at, _)| at);
        let answer = query::details(session, self.when, self.key, filter, from).map(Box::new);
        if let Some(answer) = &answer {
            self.label = answer.label.clone();
        }
        let changed = first || self.answer != answer;
        self.answer = answer;
        changed
    }
}

impl App {
    /// Callstacks of frees cost the target something: they are wanted while details are
    /// shown, and no longer.
    pub(super) fn ask_for_frees(&mut self, session: &Session) -> Option<Effect> {
        let connected = *session.connection() == Connection::Connected && self.file.is_none();
        if !connected {
            // Whoever comes back has to be asked again.
            self.frees_wanted = false;
            return None;
        }
        let on = self.stack.iter().any(|screen| matches!(screen, Screen::Details(_)));
        let changed = std::mem::replace(&mut self.frees_wanted, on) != on;
        changed.then(|| Effect::Send(WantFreeStacks { on }.into()))
    }

    /// Opens the details of what is selected.
    pub(super) fn open_details(&mut self, session: &Session) {
        let selected = match self.screen() {
            Screen::Callers(c) => c.rows.get(c.cursor.index()).map(|r| (r.key, r.label.clone())),
            Screen::Flame(f) => f.selected().map(|bar| (bar.key, bar.label.clone())),
            Screen::Source(s) => s.figures(s.line).map(|line| (line.key, line.label.clone())),
            _ => self.selected(),
        };
        let Some((key, label)) = selected else {
            let list = Action::Go(Place::Callsites);
            return self.say(self.with_key("details are of a callsite", list, "lists them"));
        };
        let book = session.book();
        if book.node(key).and_then(|node| book.groups().at(node)).is_none() {
            let said = match self.screen() {
                Screen::Flame(_) => {
                    "this frame allocates nothing itself, what it calls does: details are of callsites"
                }
                _ => "nothing is allocated right there: details are of callsites",
            };
            return self.say(said.into());
        }
        // Of a frame that calls who allocates, the screen has little to say.
        let calls = match self.screen() {
            Screen::Flame(f) => f.selected().map(|bar| [bar.cum, bar.flat]),
            _ => None,
        };
        let of = |estimate: &Estimate| estimate.point().unwrap_or(0.0);
        let mut details = Details::of(key, label);
        details.calls = calls.filter(|[cum, flat]| of(flat) < of(cum) / 2.0);
        self.stack.push(Screen::Details(Box::new(details)));
        self.ask(session);
    }

    /// The moment that details are of, with an end that moves on as the end of all, and what
    /// else they depend on.
    pub(super) fn asked_about(&self) -> About {
        let when = match self.question.when {
            query::When::Range { from_ns, .. } if self.times.ends_now() => {
                query::When::Range { from_ns, to_ns: u64::MAX }
            }
            when => when,
        };
        (when, self.question.filter.clone(), self.growth_base)
    }

    pub(super) fn ask_details(&mut self, session: &Session) {
        let (when, was) = (self.question.when, self.asked_about());
        let shown = self.stack.iter_mut().rev().find(|screen| screen.is_list());
        if let Some(Screen::Details(details)) = shown {
            details.about(when, &was);
            self.dirty |= details.ask(session);
        }
    }
}
