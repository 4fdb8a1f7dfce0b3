//! Phases of the program, as it tells of them itself.
//!
//! A phase is a name and a moment, and lasts until the next one begins: of one that
//! comes several times each time is a stretch of its own. A phase without a name is the
//! end of the one before.

use super::{MOST_NOTICES, Session, sane};
use heaptop_protocol::message::{Context, Phase};

/// One time that a phase lasted, in nanoseconds since the agent's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The phase's name.
    pub name: String,
    /// When it began.
    pub from_ns: u64,
    /// G then.
    pub from_clock: u64,
    /// When the next one began; `None`: it goes on.
    pub to_ns: Option<u64>,
}

impl Session {
    /// The phases, one for each time that one began, in order. Those that are told again
    /// to who comes late are here once.
    #[must_use]
    pub fn phases(&self) -> Vec<Stretch> {
        let ends = self.phases.iter().skip(1).map(|next| Some(next.at.time_ns));
        self.phases
            .iter()
            .zip(ends.chain([None]))
            .filter(|(phase, _)| !phase.name.is_empty())
            .map(|(phase, to_ns)| Stretch {
                name: phase.name.clone(),
                from_ns: phase.at.time_ns,
                from_clock: phase.at.clock,
                to_ns,
            })
            .collect()
    }

    /// The last time that the phase of this name began.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<Stretch> {
        self.phases().into_iter().rev().find(|stretch| stretch.name == name)
    }

    /// What the program says of itself.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.context.as_ref().map(|context: &Context| &*context.label)
    }

    pub(super) fn phase_is(&mut self, phase: &Phase) {
        let name = sane::text(&phase.name).into_owned();
        self.see(phase.at);
        // In order of time, whatever order they are told in.
        let at = self.phases.partition_point(|known| known.at.time_ns <= phase.at.time_ns);
        let known = at.checked_sub(1).and_then(|before| self.phases.get(before));
        if known.is_some_and(|known| known.at == phase.at && known.name == name) {
            return;
        }
        self.phases.insert(at, Phase { name, at: phase.at });
        if self.phases.len() > MOST_NOTICES {
            self.phases.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;
    use heaptop_protocol::event::Moment;

    fn phase(time_ns: u64, name: &str) -> Phase {
        Phase { at: Moment { seq: 1, time_ns, clock: 0 }, name: name.into() }
    }

    #[test]
    fn a_phase_lasts_until_the_next() {
        let mut f = Fixture::new(1);
        for (at, name) in [(10, "startup"), (20, "work"), (30, ""), (40, "work\x1b[2J")] {
            f.say(phase(at, name));
        }
        f.say(phase(20, "work"));
        let told = f.session.phases();
        let told: Vec<_> = told.iter().map(|s| (&*s.name, s.from_ns, s.to_ns)).collect();
        assert_eq!(told[..2], [("startup", 10, Some(20)), ("work", 20, Some(30))]);
        assert_eq!((told.len(), told[2].1, told[2].2), (3, 40, None));
        assert!(!told[2].0.contains('\x1b'), "{told:?}");
        assert_eq!(f.session.phase("startup").map(|s| s.from_ns), Some(10));
        assert_eq!(f.session.phase("nothing"), None);
    }

    #[test]
    fn phases_are_bounded_and_the_last_context_holds() {
        let mut f = Fixture::new(1);
        for i in 0..1000 {
            f.say(phase(i, "p"));
        }
        assert_eq!(f.session.phases().len(), MOST_NOTICES);
        let at = Moment { seq: 1, time_ns: 1, clock: 0 };
        f.say(Context { at, label: "shard 7".into() });
        assert_eq!(f.session.context(), Some("shard 7"));
        f.say(Context { at, label: String::new() });
        assert_eq!(f.session.context(), None);
    }
}
