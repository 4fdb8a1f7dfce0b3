//! What of a file could not be read.
//!
//! Where something in between is missing, nobody knows which blocks died there: all that
//! lived are lost sight of, as if a connection had broken, and who asks what lived later is
//! told a lower bound. What was told of totals is right again with the next that is told.

use super::blocks::Shown;
use super::lives::{End, Life};
use super::then::standing::One;
use super::{MOST_NOTICES, Session, log, sane};
use heaptop_protocol::event::Moment;

/// A damaged place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// A sentence: where, and what is wrong.
    pub how: String,
    /// What is missing for it.
    pub missing: Missing,
}

/// What of a file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nothing: it could be set right.
    Nothing,
    /// What comes behind it is told.
    Between,
    /// Its end.
    End,
}

impl Session {
    /// Damaged places of the file that was told, in its order.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Takes in that a file is damaged here.
    pub(super) fn harmed(&mut self, damage: &Damage) {
        let how = sane::text(&damage.how).into_owned();
        self.say(log::Kind::Loss, how.clone());
        if damage.missing == Missing::Between {
            self.lose_sight();
        }
        if self.damage.len() < MOST_NOTICES {
            self.damage.push(Damage { how, missing: damage.missing });
        }
    }

    /// Whoever lives may be dead from here on.
    fn lose_sight(&mut self) {
        if self.blind_from_ns.is_none() {
            self.blind_from_ns = Some(self.now_ns);
            self.blind_from_clock = self.now_clock;
        }
        // A snapshot that lists nobody, of whatever was born before it.
        let at = Moment { seq: u64::MAX, time_ns: self.now_ns, clock: self.now_clock };
        self.blocks.begin(at);
        let Some(Shown { gone, .. }) = self.blocks.end(0) else { return };
        for block in gone {
            self.then.standing().end(&One::of(&block, &block.weight()));
            let clock = at.clock.max(block.born_clock);
            self.lives.add(&Life::ended(&block, at.time_ns, clock, End::Lost));
            let w = block.weight_as_heard();
            self.live(block.stack, |lives| lives.lose(block.born_ns, at.time_ns, w));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{self, Question, When};
    use crate::session::Input;
    use crate::session::figures::Estimate;
    use crate::session::fixture::Fixture;

    fn damaged(f: &mut Fixture, missing: Missing) {
        f.session.apply(Input::Damage(Damage { how: "it is damaged here".into(), missing }));
    }

    fn in_use_at(f: &Fixture, ns: u64) -> Estimate {
        let question = Question { when: When::At(ns), ..Question::default() };
        query::callsites(&f.session, &question).total.in_use_bytes
    }

    #[test]
    fn who_lived_where_something_is_missing_is_not_said_to_live_on() {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        f.alloc(stack, 1000);
        f.pass(1.0);
        let before = f.time_ns;
        damaged(&mut f, Missing::Between);
        f.pass(1.0);
        f.alloc(stack, 30);
        f.pass(1.0);
        // One death may be missing, or none.
        assert_eq!(in_use_at(&f, before - 1000), Estimate::Exact { value: 1000.0 });
        assert_eq!(in_use_at(&f, f.time_ns), Estimate::AtLeast { low: 30.0, samples: 1 });
        let said: Vec<&str> = f.session.log().lines().map(|line| &*line.text).collect();
        assert!(said.contains(&"it is damaged here"), "{said:?}");
    }

    #[test]
    fn what_is_set_right_or_is_the_end_changes_no_figure() {
        for missing in [Missing::Nothing, Missing::End] {
            let mut f = Fixture::new(1);
            let stack = f.stack(&["main", "work"]);
            f.alloc(stack, 1000);
            f.pass(1.0);
            damaged(&mut f, missing);
            assert_eq!(in_use_at(&f, f.time_ns), Estimate::Exact { value: 1000.0 });
            assert_eq!(f.session.damage().len(), 1);
            // It is the file's, whoever greets in it.
            let hello = f.hello();
            f.say(hello);
            assert_eq!(f.session.damage()[0].missing, missing);
        }
    }
}
