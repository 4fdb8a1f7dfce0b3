//! How long a callsite's minor blocks live on the allocation clock, and what of them other
//! nurseries would promote.

use super::filter::Selection;
use super::{NodeKey, When};
use crate::session::estimate::what_if::{what_if, what_if_ocaml};
use crate::session::figures::{Followed, Ratio};
use crate::session::minor::Minor;
use crate::session::then::by::{By, Cut};
use crate::session::{Session, estimate};
use heaptop_protocol::message::AgentKind;

/// The least nursery that can be asked about, in bytes.
pub const LEAST_NURSERY: u64 = 64 << 10;
/// The largest.
pub const MOST_NURSERY: u64 = 1 << 30;
/// Ages of the curve in powers of two, from 1 KiB of allocation to 4 GiB.
const AGES: std::ops::RangeInclusive<u32> = 10..=32;
/// Points of the curve an octave.
const STEPS: u32 = 8;

/// See the module.
#[derive(Debug, Clone)]
pub struct Survival {
    minor: Minor,
    /// The nursery that the agent, or the runtime, has, in bytes.
    pub own_bytes: u64,
    /// The promotion rate that was measured with it, over the same stretch as lives are
    /// of: since heaptop came, or the range that is asked about. (A table's is since the
    /// target's start.)
    pub own: Ratio,
    /// The beginning of that stretch and its end, in nanoseconds since the agent's start;
    /// `None` where nothing is known of it.
    pub over_ns: Option<(u64, u64)>,
    /// Whether it is a runtime's, and no virtual one.
    pub ocaml: bool,
    /// The share that lives so many bytes of allocation, in order.
    pub curve: Vec<(f64, Followed)>,
    /// The share of bytes that dies at ages up to these, from the one before on: whole
    /// octaves, the first with all that is below it. The last ends where follow-up does, and is infinite where all are dead.
    pub deaths: Vec<(f64, f64)>,
}

impl Survival {
    /// The promotion rate that a nursery of so many bytes would give, by lives alone: at
    /// the configured one it is to agree with what was measured. Of an OCaml program
    /// lives do not tell it, and what the runtime did stands.
    #[must_use]
    pub fn at(&self, bytes: u64) -> Followed {
        if self.ocaml {
            what_if_ocaml(self.own, self.own_bytes, &self.minor.crossings, bytes)
        } else {
            what_if(&self.minor.curve, bytes, self.minor.blur)
        }
    }

    /// Up to which age in bytes of allocation blocks were followed; infinite when all are
    /// dead.
    #[must_use]
    pub const fn followed(&self) -> f64 {
        self.minor.curve.followed()
    }
}

/// Why nothing can be said of how long blocks live, in a sentence; `None` where something can.
#[must_use]
pub fn why_no_lives(session: &Session, filter: &str) -> Option<&'static str> {
    if !session.knows_lives() {
        return Some("the target does not tell how long all blocks live");
    }
    let cut = Selection::of(session, filter).by(By::Group);
    let chosen = cut.only.as_ref().is_some_and(|only| only.by_fate());
    chosen.then_some(
        "the filter chooses blocks by what becomes of them: how long they live is not known",
    )
}

/// The lives of a callsite's minor blocks, or of all. `None` where the callsite is not
/// known, or lives are not told whole. Costs a pass over all lives, but of all callsites at
/// present.
#[must_use]
pub fn survival(
    session: &Session,
    key: Option<NodeKey>,
    when: When,
    filter: &str,
) -> Option<Survival> {
    let book = session.book();
    let selection = Selection::of(session, filter);
    let cut = selection.by(By::Group);
    // Blocks that are chosen by how long they live say nothing of it.
    if cut.only.as_ref().is_some_and(|only| only.by_fate()) {
        return None;
    }
    let only = cut.only.as_ref();
    let hello = session.hello().filter(|_| session.knows_lives())?;
    let group = match key {
        Some(key) => Some(book.groups().at(book.node(key)?)?),
        None => None,
    };
    let group_of = book.group_of();
    let minor = match group {
        Some(group) => {
            let of_group = |stack: u32| group_of.get(stack as usize) == Some(&group);
            session.minor_lives_of(when, only, of_group)
        }
        None => session.all_minor_lives_at(when, only),
    };
    let (own, over_ns) = measured(session, group, when, &cut);
    let curve = &minor.curve;
    let ocaml = hello.kind == AgentKind::Ocaml;
    // A runtime tells of a minor death at its collection: of the life of a young block it
    // is known that it lies within a cycle, and no more.
    let cycle = if ocaml { hello.nursery_bytes as f64 } else { 0.0 };
    let at = |age: f64| match curve.survival(cycle.max(age)) {
        Followed::Interval { low, samples, .. } | Followed::Bounds { low, samples, .. }
            if age < cycle =>
        {
            Followed::Bounds { low, high: 1.0, samples }
        }
        known => known,
    };
    let ages = (AGES.start() * STEPS..=AGES.end() * STEPS)
        .map(|step| (f64::from(step) / f64::from(STEPS)).exp2());
    let points = ages.map(|age| (age, at(age))).collect();
    let value = |age: f64| match curve.survival(age) {
        Followed::Interval { value, .. } => Some(value),
        Followed::Unknown | Followed::Bounds { .. } => None,
    };
    let (mut deaths, mut before) = (Vec::new(), 1.0);
    for octave in AGES {
        let age = f64::from(octave).exp2();
        if age < cycle {
            continue;
        }
        if let Some(living) = value(age) {
            deaths.push((age, before - living));
            before = living;
            continue;
        }
        // The last octave is as long as somebody was followed.
        let followed = curve.followed();
        if let Some(living) = value(followed).filter(|_| followed.is_finite()) {
            deaths.push((followed, before - living));
        }
        break;
    }
    let own_bytes = hello.nursery_bytes;
    Some(Survival { own_bytes, own, over_ns, ocaml, curve: points, deaths, minor })
}

/// What was promoted since heaptop came, until the moment that is asked about, or in the
/// range, which is given as well: what lives are known of. What is measured over another
/// stretch cannot be compared.
fn measured(
    session: &Session,
    group: Option<u32>,
    when: When,
    cut: &Cut,
) -> (Ratio, Option<(u64, u64)>) {
    const UNKNOWN: (Ratio, Option<(u64, u64)>) = (Ratio::Unknown, None);
    let Some((since, now)) = session.span() else { return UNKNOWN };
    let when = when.until(now);
    let to_ns = match when {
        When::Now => now,
        When::At(to_ns) | When::Range { to_ns, .. } => to_ns,
        When::Peak => return UNKNOWN,
    };
    let came = session.came_ns() == Some(since);
    if when == When::Now
        && came
        && let Some(totals) = session.counted_since_came(cut, group)
    {
        let share = estimate::share(&totals.promoted, &totals.minor);
        return (share, Some((since, to_ns)));
    }
    let (then, range) = match when {
        // Single blocks alone.
        When::Now if came => (Some(session.lately(None, cut)), None),
        When::At(_) if came => (session.then_by(when, cut), None),
        When::Range { from_ns, .. } => (session.then_by(when, cut), Some(from_ns)),
        // The oldest lives had to go.
        _ => {
            let from_ns = since.min(to_ns);
            (session.then_by(When::Range { from_ns, to_ns }, cut), Some(from_ns))
        }
    };
    let Some(then) = then.filter(|then| then.knows_allocated()) else { return UNKNOWN };
    let totals = match range {
        None => session.since_came(&then, group),
        Some(_) => *group.map_or_else(|| then.whole(), |group| then.group_totals(group)),
    };
    let share = estimate::share(&totals.promoted, &totals.minor);
    (share, Some((range.unwrap_or(since), to_ns)))
}

/// The next smaller or larger nursery that can be asked about: powers of two, and the one
/// that is configured.
#[must_use]
pub fn nursery_beside(bytes: u64, own_bytes: u64, larger: bool) -> u64 {
    let powers = (0..).map(|i| LEAST_NURSERY << i).take_while(|n| *n <= MOST_NURSERY);
    let all = powers.chain([own_bytes]);
    if larger {
        all.filter(|n| *n > bytes).min().unwrap_or(bytes)
    } else {
        all.filter(|n| *n < bytes && *n > 0).max().unwrap_or(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;

    #[test]
    fn the_configured_nursery_has_its_own_place() {
        let way = |from: u64, larger| nursery_beside(from, 300 << 10, larger) >> 10;
        assert_eq!(
            [way(64 << 10, true), way(256 << 10, true), way(300 << 10, true)],
            [128, 300, 512]
        );
        assert_eq!([way(512 << 10, false), way(300 << 10, false)], [300, 256]);
        assert_eq!([way(LEAST_NURSERY, false), way(MOST_NURSERY, true)], [64, 1 << 20]);
        assert_eq!(nursery_beside(1 << 30, 2 << 30, true), 2 << 30);
    }

    /// Half of the bytes of one callsite live 256 KiB of allocation, the other's all die.
    #[test]
    fn a_callsite_has_a_curve_of_its_own() {
        let mut f = Fixture::new(1);
        let (slow, quick) = (f.stack(&["main", "slow"]), f.stack(&["main", "quick"]));
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..2048 {
            let id = f.alloc(quick, 1 << 10);
            f.free(id);
            waiting.push_back(f.alloc(slow, 1 << 10));
            if waiting.len() > 128 {
                let id = waiting.pop_front().unwrap();
                f.free(id);
            }
        }
        f.pass(1.0);
        let key = |name: &str| {
            let table = crate::query::callsites(&f.session, &crate::query::Question::default());
            table.rows.iter().find(|row| &*row.label.function == name).unwrap().key
        };
        let of = |key| survival(&f.session, key, When::Now, "").unwrap();
        let rate = |survival: &Survival, n: u64| match survival.at(n) {
            Followed::Interval { value, .. } => value,
            other => panic!("{other:?}"),
        };
        let (slow, quick, all) = (of(Some(key("slow"))), of(Some(key("quick"))), of(None));
        assert!(rate(&slow, 64 << 10) > 0.98);
        assert!((rate(&slow, 512 << 10) - 0.5).abs() < 0.05, "{}", rate(&slow, 512 << 10));
        assert!(rate(&quick, 512 << 10) < 0.01);
        assert!((rate(&all, 512 << 10) - 0.25).abs() < 0.03);
        let dead: f64 = slow.deaths.iter().map(|(_, share)| share).sum();
        let most = slow.deaths.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!(dead > 0.9 && most.0 >= f64::from(1 << 18), "{:?}", slow.deaths);
        assert!(survival(&f.session, Some(NodeKey(77)), When::Now, "").is_none());
    }

    /// Before the viewer came all was promoted, since then nothing is: the totals since the
    /// start are no measure of what lives are known of.
    #[test]
    fn the_measured_rate_is_of_the_stretch_that_lives_are_of() {
        let mut f = Fixture::unattached(1);
        let stack = f.stack(&["main", "work"]);
        for _ in 0..50 {
            let id = f.birth(stack, 1 << 10).id();
            f.promote(id);
        }
        f.time_ns += 1_000_000_000;
        // As the agent does it: totals come before the snapshot has ended.
        let hello = f.hello();
        f.say(hello);
        f.define_again();
        f.report();
        f.snapshot();
        let came = f.time_ns;
        // The cycle goes by in which the viewer came, and the last one as well.
        f.clock += 2 << 20;
        f.pass(1.0);
        for _ in 0..50 {
            let id = f.alloc(stack, 1 << 10);
            f.free(id);
        }
        f.clock += 2 << 20;
        f.pass(5.0);
        let rate = |ratio| match ratio {
            Ratio::Interval { value, .. } => value,
            Ratio::Unknown => panic!("cycles are over"),
        };
        let table = crate::query::promotion(&f.session, "", When::Now, 9);
        assert_eq!(rate(table.total.promoted), 0.5, "since the start");
        for when in [When::Now, When::At(f.time_ns)] {
            let all = survival(&f.session, None, when, "").unwrap();
            assert_eq!(rate(all.own), 0.0, "{when:?}");
            assert_eq!(all.over_ns, Some((came, f.time_ns)), "{when:?}");
        }
    }
}
