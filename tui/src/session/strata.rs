//! What the largest callsites had in use over time, since the viewer came: the layers of
//! the timeline.
//!
//! At a status, at most every so often, the [`TOP`] groups of callstacks with most bytes in
//! use are noted. So it costs a look at each group a few hundred times in a session, and
//! no pass over blocks; a callsite that was smaller at a moment is among the rest of that
//! moment. When there are [`MOST`] notes every second one goes and they are made half as
//! often.
//!
//! A group is told by one of its callstacks: groups change when names arrive, and a
//! callstack always is in the one that it belongs to by then.

use super::Session;

/// Most notes.
const MOST: usize = 512;
/// So many groups a note.
const TOP: usize = 24;

/// One moment.
#[derive(Debug, Clone)]
pub struct Layers {
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// A callstack of each group, and the group's bytes in use, the largest first.
    pub top: Vec<(u32, f64)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Strata {
    step_ns: u64,
    layers: Vec<Layers>,
}

impl Strata {
    /// The notes, in order of time.
    #[must_use]
    pub fn layers(&self) -> &[Layers] {
        &self.layers
    }

    fn is_due(&self, time_ns: u64) -> bool {
        let last = self.layers.last();
        last.is_none_or(|last| time_ns > last.time_ns && time_ns - last.time_ns >= self.step_ns)
    }

    fn note(&mut self, layers: Layers) {
        if self.layers.len() >= MOST {
            let span = layers.time_ns.saturating_sub(self.layers[0].time_ns);
            self.step_ns = (span / (MOST as u64 / 2)).max(self.step_ns);
            let mut last: Option<u64> = None;
            let step = self.step_ns;
            self.layers.retain(|layers| {
                let keep = last.is_none_or(|last| layers.time_ns - last >= step);
                if keep {
                    last = Some(layers.time_ns);
                }
                keep
            });
            if self.layers.len() >= MOST {
                // Times that cannot be: a broken peer's.
                self.layers.drain(..MOST / 2);
            }
        }
        self.layers.push(layers);
    }
}

impl Session {
    /// What the largest callsites had in use over time.
    #[must_use]
    pub const fn strata(&self) -> &Strata {
        &self.strata
    }

    /// Notes this moment, if it is time to.
    pub(super) fn note_layers(&mut self, time_ns: u64) {
        if !self.synced || !self.strata.is_due(time_ns) {
            return;
        }
        let groups = self.book.groups();
        let mut top: Vec<(u32, f64)> = groups
            .iter()
            .filter_map(|(at, group)| {
                let bytes = self.group_totals(at).in_use.bytes.sum;
                let stack = *group.stacks().first()?;
                (bytes > 0.0).then_some((stack, bytes))
            })
            .collect();
        let by = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if top.len() > TOP {
            top.select_nth_unstable_by(TOP, by);
            top.truncate(TOP);
        }
        top.sort_unstable_by(by);
        self.strata.note(Layers { time_ns, top });
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn the_largest_are_noted_and_notes_are_bounded() {
        let mut f = Fixture::new(1);
        let stacks: Vec<_> = (0..40).map(|i| f.stack(&["main", &format!("site{i}")])).collect();
        for (i, stack) in stacks.iter().enumerate() {
            f.alloc(*stack, 100 + i as u64);
        }
        for _ in 0..3 * MOST {
            f.pass(1.0);
        }
        let layers = f.session.strata().layers();
        assert!((MOST / 2..=MOST).contains(&layers.len()), "{}", layers.len());
        assert!(layers.is_sorted_by_key(|layers| layers.time_ns));
        let last = layers.last().unwrap();
        assert!(last.time_ns + 10_000_000_000 > f.time_ns, "to the present");
        let bytes: Vec<f64> = last.top.iter().map(|(_, bytes)| *bytes).collect();
        let want: Vec<f64> = (0..TOP).map(|i| f64::from(139 - i as u32)).collect();
        assert_eq!(bytes, want);
        // Times that run backwards, or all at once.
        let mut strata = Strata::default();
        for time_ns in [5, 3, u64::MAX, 0, u64::MAX] {
            if strata.is_due(time_ns) {
                strata.note(Layers { time_ns, top: Vec::new() });
            }
        }
        assert_eq!(strata.layers().len(), 2);
    }
}
