//! What was said of the program's course, kept for viewers that come later.
//!
//! Numbered through from the first on; of very many the oldest go, but for the last
//! context, which is what the program is.

use crate::notes::{Kind, Note};
use heaptop_protocol::event::Moment;
use heaptop_protocol::message::{Context, FromAgent, Mark, Phase};
use std::collections::VecDeque;

/// So many are kept.
const MOST: usize = 400;

/// All that was said.
#[derive(Default)]
pub struct Said {
    kept: VecDeque<FromAgent>,
    /// The number of the first that is kept.
    first: u64,
    /// The last context that is not kept any more.
    context: Option<Context>,
}

impl Said {
    /// Takes up a note of the program's. `since_start` makes times of monotonic ones.
    pub fn note(&mut self, note: &Note, since_start: impl Fn(u64) -> u64) {
        let at = Moment { seq: note.seq, time_ns: since_start(note.ns), clock: note.clock };
        let label = note.label().to_owned();
        self.say(match note.kind {
            Kind::Phase => Phase { at, name: label }.into(),
            Kind::Mark => Mark { at, label }.into(),
            Kind::Context => Context { at, label }.into(),
        });
    }

    /// Takes up one that is made.
    pub fn say(&mut self, said: FromAgent) {
        self.kept.push_back(said);
        if self.kept.len() > MOST {
            if let Some(FromAgent::Context(context)) = self.kept.pop_front() {
                self.context = Some(context);
            }
            self.first += 1;
        }
    }

    /// The number that the next will have.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// What is to be told to who was told all below `from`.
    pub fn since(&self, from: u64) -> impl Iterator<Item = FromAgent> + '_ {
        let context = self.context.clone().filter(|_| from < self.first).map(FromAgent::from);
        let skip = from.saturating_sub(self.first) as usize;
        context.into_iter().chain(self.kept.iter().skip(skip).cloned())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(seq: u64) -> Moment {
        Moment { seq, time_ns: seq, clock: 0 }
    }

    #[test]
    fn who_comes_late_is_told_what_is_kept_and_who_was_there_the_rest() {
        let mut said = Said::default();
        said.say(Context { at: at(0), label: "shard 7".into() }.into());
        for i in 1..=MOST as u64 {
            said.say(Mark { at: at(i), label: i.to_string() }.into());
        }
        assert_eq!(said.next(), MOST as u64 + 1);
        let late: Vec<_> = said.since(0).collect();
        assert_eq!(late.len(), MOST + 1);
        assert!(matches!(&late[0], FromAgent::Context(c) if c.label == "shard 7"));
        let last: Vec<_> = said.since(said.next() - 1).collect();
        assert!(matches!(&last[..], [FromAgent::Mark(m)] if m.label == MOST.to_string()));
        assert_eq!(said.since(said.next()).count(), 0);
    }
}
