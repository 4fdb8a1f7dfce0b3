//! Which moment, or which stretch of time, a question is about.

/// Times are nanoseconds since the agent's start; those after the present mean the
/// present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum When {
    /// As the agent's absolute totals say.
    #[default]
    Now,
    /// At a moment of the past, exact to the end of its microsecond.
    At(u64),
    /// From a moment to a later one: what was in use at its end, what was allocated and
    /// what lived in it, and by how much it grew.
    Range {
        /// Its beginning, not included.
        from_ns: u64,
        /// Its end, included.
        to_ns: u64,
    },
    /// The highest moment, as the agent kept it: what was in use, and nothing else.
    Peak,
}

impl When {
    /// The same with no time after `now_ns`, and with ranges that run forwards.
    #[must_use]
    pub fn until(self, now_ns: u64) -> Self {
        match self {
            Self::Now | Self::Peak => self,
            Self::At(at) => Self::At(at.min(now_ns)),
            Self::Range { from_ns, to_ns } => {
                let (from, to) = (from_ns.min(to_ns), from_ns.max(to_ns));
                Self::Range { from_ns: from.min(now_ns), to_ns: to.min(now_ns) }
            }
        }
    }

    /// Its end, where the present is at `now_ns`; of the peak, nothing of whose time is known,
    /// the present.
    #[must_use]
    pub fn end_ns(self, now_ns: u64) -> u64 {
        match self.until(now_ns) {
            Self::Now | Self::Peak => now_ns,
            Self::At(at_ns) | Self::Range { to_ns: at_ns, .. } => at_ns,
        }
    }
}
