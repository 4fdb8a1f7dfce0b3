//! The target over time: as a whole, and by its largest callsites.

use super::filter::Selection;
use super::numbers::{Numbers, Part};
use super::{Label, NodeKey, When};
use crate::session::book::Stack;
use crate::session::figures::Estimate;
use crate::session::strata::Layers;
use crate::session::{PeakView, Session, estimate};
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;

/// Steps of a curve that is made of single blocks, where there is no history.
const STEPS: usize = 512;

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Nanoseconds since the agent's start.
    pub time_ns: u64,
    /// Bytes in use; not a number where that is not told.
    pub in_use_bytes: f64,
    /// Bytes ever allocated, if known.
    pub allocated_bytes: Option<f64>,
    /// Bytes ever promoted, if known.
    pub promoted_bytes: Option<f64>,
    /// Resident memory, if known.
    pub rss_bytes: Option<u64>,
    /// Before the span: the curve is known, and nothing behind it.
    pub before: bool,
}

/// The curve since the target's start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// In order of time.
    pub points: Vec<Point>,
    /// Named moments: nanoseconds since the agent's start, and the name.
    pub marks: Vec<(u64, String)>,
    /// The highest moment.
    pub peak: Option<PeakView>,
    /// From when to when any moment can be asked about: [`Session::span`].
    pub span: Option<(u64, u64)>,
    /// From when to when events were lost; sums of what was born then are known from
    /// below alone.
    pub blind: Vec<(u64, u64)>,
}

/// In use over time: the agent's own curve, or where it told none, one made of the blocks
/// that were heard of.
#[must_use]
pub fn curve(session: &Session) -> Curve {
    let span = session.span();
    let before = |time_ns: u64| span.is_none_or(|(from, _)| time_ns < from);
    let mut points: Vec<Point> = session
        .history()
        .iter()
        .map(|p| Point {
            time_ns: p.time_ns,
            in_use_bytes: if session.knows_in_use() { p.in_use_bytes } else { f64::NAN },
            allocated_bytes: session.knows_allocated().then_some(p.allocated_bytes),
            promoted_bytes: session.knows_in_use().then_some(p.promoted_bytes),
            rss_bytes: p.rss_bytes,
            before: before(p.time_ns),
        })
        .collect();
    if let Some((from, to)) = span.filter(|_| session.knows_in_use())
        && points.last().is_none_or(|last| last.before)
    {
        let values = session.in_use_over_time(from, to, STEPS);
        let step = u128::from(to - from);
        let time = |i: usize| from + (step * (i as u128 + 1) / STEPS as u128) as u64;
        points.extend(values.iter().enumerate().map(|(i, &in_use_bytes)| Point {
            time_ns: time(i),
            in_use_bytes,
            allocated_bytes: None,
            promoted_bytes: None,
            rss_bytes: None,
            before: false,
        }));
    }
    Curve {
        points,
        marks: session.marks().iter().map(|m| (m.at.time_ns, m.label.clone())).collect(),
        peak: session.peak(),
        span,
        blind: session.blind().collect(),
    }
}

/// One callsite over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// How many of the others were larger than this one since the viewer came: it stands on
    /// them, whatever the moment.
    pub layer: usize,
    /// Bytes in use at the moment that was asked about.
    pub in_use: Estimate,
    /// Bytes in use by column; NaN where it is not told apart.
    pub values: Vec<f64>,
}

/// The target over time, in columns of equal length. What is not known of a column is NaN.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// When the first column begins, in nanoseconds since the agent's start.
    pub from_ns: u64,
    /// When the last one ends.
    pub to_ns: u64,
    /// Most bytes in use in each column.
    pub in_use: Vec<f64>,
    /// Bytes allocated per second.
    pub allocated: Vec<f64>,
    /// Bytes promoted per second.
    pub promoted: Vec<f64>,
    /// Resident memory in bytes.
    pub rss: Vec<f64>,
    /// The largest callsites since the viewer came: first what has most in use at the moment
    /// that was asked about.
    pub series: Vec<Series>,
    /// From this column on callsites are told apart; `None`: in none, as where a filter is of
    /// single blocks, which nobody followed over time.
    pub told_from: Option<usize>,
    /// Bytes in use of all others that the filter takes, at the moment that was asked about.
    pub others: Estimate,
    /// How many others there are.
    pub other_callsites: usize,
    /// Bytes in use of all that is in no series, in the filter or not: what is on top of them.
    /// `None` where the filter takes all: then it is the others.
    pub rest: Option<Estimate>,
    /// Named moments: nanoseconds since the agent's start, and the name.
    pub marks: Vec<(u64, String)>,
    /// What the program says that it does: from when to when, and the phase's name.
    pub phases: Vec<(u64, u64, String)>,
    /// The highest moment.
    pub peak: Option<PeakView>,
    /// From and to when any moment can be asked about.
    pub span: Option<(u64, u64)>,
}

impl Timeline {
    /// Whether another answer says the same. (Values that are not known are not equal to
    /// themselves.)
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let bare = |t: &Self| Self {
            in_use: Vec::new(),
            allocated: Vec::new(),
            promoted: Vec::new(),
            rss: Vec::new(),
            series: t.series.iter().map(|s| Series { values: Vec::new(), ..s.clone() }).collect(),
            ..t.clone()
        };
        let bits = |t: &Self| -> Vec<u64> {
            let whole = [&t.in_use, &t.allocated, &t.promoted, &t.rss];
            let all = whole.into_iter().chain(t.series.iter().map(|series| &series.values));
            all.flatten().map(|value| value.to_bits()).collect()
        };
        bare(self) == bare(other) && bits(self) == bits(other)
    }

    /// The column of a moment.
    #[must_use]
    pub fn column(&self, at_ns: u64) -> usize {
        column(self.from_ns, self.to_ns, self.in_use.len(), at_ns)
    }
}

/// The column of a moment, of `columns` between two moments.
#[must_use]
pub fn column(from_ns: u64, to_ns: u64, columns: usize, at_ns: u64) -> usize {
    let span = u128::from(to_ns.saturating_sub(from_ns)).max(1);
    let at = u128::from(at_ns.clamp(from_ns, to_ns.max(from_ns)) - from_ns);
    ((at * columns as u128 / span) as usize).min(columns.saturating_sub(1))
}

/// The target since its start in at most `columns` columns, with at most `most` callsites
/// of those that `filter` takes, and what they have in use at `when`. Costs a look at
/// each point of the curve and, for the figure of the others, at each callsite.
#[must_use]
pub fn timeline(
    session: &Session,
    filter: &str,
    when: When,
    columns: usize,
    most: usize,
) -> Timeline {
    let Curve { points, marks, peak, span, .. } = curve(session);
    let layers = session.strata().layers();
    let ends = points.first().zip(points.last()).map(|(a, b)| (a.time_ns, b.time_ns));
    let from_ns = ends.map_or(0, |ends| ends.0);
    let to_ns = ends.map_or(0, |ends| ends.1).max(session.now_ns()).max(from_ns);
    let at = |ns: u64| column(from_ns, to_ns, columns, ns);
    let known: Vec<(u64, f64)> = points.iter().map(|p| (p.time_ns, p.in_use_bytes)).collect();
    let mut in_use = highest(&known, columns, at);
    // The agent keeps the highest moment, and of others one a second or fewer.
    if let Some(peak) = peak.filter(|_| !known.is_empty())
        && let Some(highest) = peak.in_use.point()
        && let Some(cell) = in_use.get_mut(at(peak.time_ns))
    {
        *cell = cell.max(highest);
    }
    let rss: Vec<(u64, f64)> =
        points.iter().filter_map(|p| Some((p.time_ns, p.rss_bytes? as f64))).collect();
    let sums = |of: fn(&Point) -> Option<f64>| -> Vec<(u64, f64)> {
        points.iter().filter_map(|p| Some((p.time_ns, of(p)?))).collect()
    };
    let Layered { series, told_from, others, other_callsites, rest } =
        told(session, filter, when, layers, columns, most, at);
    Timeline {
        from_ns,
        to_ns,
        allocated: speeds(&sums(|p| p.allocated_bytes), columns, from_ns, to_ns),
        promoted: speeds(&sums(|p| p.promoted_bytes), columns, from_ns, to_ns),
        rss: highest(&rss, columns, at),
        in_use,
        series,
        told_from,
        others,
        other_callsites,
        rest,
        phases: session
            .phases()
            .into_iter()
            .map(|phase| (phase.from_ns, phase.to_ns.unwrap_or(u64::MAX), phase.name))
            .collect(),
        marks,
        peak,
        span,
    }
}

/// The largest value in each column; where there is none the one before stands.
fn highest(points: &[(u64, f64)], columns: usize, at: impl Fn(u64) -> usize) -> Vec<f64> {
    let mut values = vec![f64::NAN; columns];
    for &(time_ns, value) in points.iter().filter(|(_, value)| value.is_finite()) {
        if let Some(cell) = values.get_mut(at(time_ns)) {
            *cell = cell.max(value);
        }
    }
    let mut before = f64::NAN;
    for value in &mut values {
        if value.is_nan() {
            *value = before;
        }
        before = *value;
    }
    values
}

/// By how much a sum grew in each column, per second.
fn speeds(points: &[(u64, f64)], columns: usize, from_ns: u64, to_ns: u64) -> Vec<f64> {
    let length = to_ns.saturating_sub(from_ns) as f64 / columns.max(1) as f64;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return vec![f64::NAN; columns];
    };
    let mut next = 0;
    // The sum at a moment, between two points; moments come in order.
    let mut sum = |ns: f64| {
        while points.get(next).is_some_and(|point| (point.0 as f64) <= ns) {
            next += 1;
        }
        match (next.checked_sub(1).map(|at| points[at]), points.get(next)) {
            (Some((t0, v0)), Some(&(t1, v1))) => {
                v0 + (v1 - v0) * (ns - t0 as f64) / (t1.saturating_sub(t0) as f64).max(1.0)
            }
            (Some((_, value)), None) => value,
            (None, _) => first.1,
        }
    };
    let mut before = sum(from_ns as f64);
    (1..=columns)
        .map(|i| {
            let begin = length.mul_add((i - 1) as f64, from_ns as f64);
            let end = length.mul_add(i as f64, from_ns as f64).min(last.0 as f64);
            let now = sum(end);
            let grown = now - std::mem::replace(&mut before, now);
            let seconds = (end - begin) / 1e9;
            // A column that the last point hardly reaches says nothing of a speed.
            if seconds > length / 1e9 / 4.0 { (grown / seconds).max(0.0) } else { f64::NAN }
        })
        .collect()
}

/// What is told apart, and what is not.
struct Layered {
    series: Vec<Series>,
    told_from: Option<usize>,
    others: Estimate,
    other_callsites: usize,
    rest: Option<Estimate>,
}

/// The largest callsites over time, and what they and the others have in use.
fn told(
    session: &Session,
    filter: &str,
    when: When,
    layers: &[Layers],
    columns: usize,
    most: usize,
    at: impl Fn(u64) -> usize,
) -> Layered {
    let book = session.book();
    let selection = Selection::of(session, filter);
    let numbers = Numbers::by_group(session, when, &selection);
    let group_of = |stack: u32| book.stacks().get(stack as usize).map(Stack::group);
    // Who was large for long.
    let mut areas: FxHashMap<u32, f64> = FxHashMap::default();
    let taken = |layer: &(u32, f64)| {
        let group = group_of(layer.0).filter(|_| selection.takes(layer.0))?;
        Some((group, layer.1))
    };
    for pair in layers.windows(2) {
        let length = pair[1].time_ns.saturating_sub(pair[0].time_ns) as f64;
        for (group, bytes) in pair[1].top.iter().filter_map(taken) {
            *areas.entry(group).or_default() += bytes * length;
        }
    }
    if let [only] = layers {
        for (group, bytes) in only.top.iter().filter_map(taken) {
            *areas.entry(group).or_default() += bytes;
        }
    }
    if selection.has_tests() {
        // Layers are of all blocks: here the largest are those of this moment.
        let groups = book.groups().iter().filter(|(group, _)| selection.takes_any_of(*group));
        let in_use = groups.map(|(group, _)| (group, numbers.group(group).in_use.bytes.sum));
        areas = in_use.filter(|(_, bytes)| *bytes > 0.0).collect();
    }
    let mut largest: Vec<(u32, f64)> = areas.into_iter().collect();
    largest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    largest.truncate(most);
    let place: FxHashMap<u32, usize> =
        largest.iter().enumerate().map(|(i, (group, _))| (*group, i)).collect();

    // By column the fullest of its moments.
    let mut fullest: Vec<Option<(f64, usize)>> = vec![None; columns];
    for (i, layer) in layers.iter().enumerate() {
        let sum = layer.top.iter().map(|(_, bytes)| bytes).sum::<f64>();
        if let Some(cell) = fullest.get_mut(at(layer.time_ns))
            && cell.is_none_or(|(most, _)| sum >= most)
        {
            *cell = Some((sum, i));
        }
    }
    let mut values = vec![vec![f64::NAN; columns]; largest.len()];
    let mut shown: Option<usize> = None;
    let mut told_from = None;
    for (column, fullest) in fullest.iter().enumerate() {
        shown = fullest.map(|(_, i)| i).or(shown);
        let Some(layer) = shown.map(|i| &layers[i]).filter(|_| !selection.has_tests()) else {
            continue;
        };
        told_from = told_from.or(Some(column));
        for values in &mut values {
            values[column] = 0.0;
        }
        for (group, bytes) in layer.top.iter().filter_map(taken) {
            if let Some(&i) = place.get(&group) {
                values[i][column] += bytes;
            }
        }
    }
    let sight = numbers.sight(Part::InUse);
    let bytes =
        |total: &Total| sight.map_or(Estimate::Unknown, |sight| estimate::bytes(total, sight));
    let mut others = Total::default();
    let mut other_callsites = 0;
    let others_of = |group: &u32| !place.contains_key(group) && selection.takes_any_of(*group);
    for (group, _) in book.groups().iter().filter(|(group, _)| others_of(group)) {
        let in_use = &numbers.group(group).in_use;
        other_callsites += usize::from(in_use.n > 0);
        others.merge(in_use);
    }
    let rest = (!selection.takes_all()).then(|| {
        let all = Numbers::of(session, when);
        let mut rest = Total::default();
        for (group, _) in book.groups().iter() {
            let whole = all.group(group).in_use;
            rest.merge(&match place.get(&group) {
                Some(_) => whole.since(&numbers.group(group).in_use),
                None => whole,
            });
        }
        all.sight(Part::InUse).map_or(Estimate::Unknown, |sight| estimate::bytes(&rest, sight))
    });
    let mut series: Vec<Series> = largest
        .iter()
        .zip(values)
        .enumerate()
        .map(|(layer, (&(group, _), values))| {
            let node = &book.nodes()[book.groups().group(group).callsite() as usize];
            let in_use = bytes(&numbers.group(group).in_use);
            Series { key: node.key, label: node.label.clone(), layer, in_use, values }
        })
        .collect();
    // What is known from above alone may be nothing.
    let point = |series: &Series| series.in_use.point().unwrap_or(0.0);
    series.sort_by(|a, b| point(b).total_cmp(&point(a)));
    Layered { series, told_from, others: bytes(&others), other_callsites, rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fixture::Fixture;

    #[test]
    fn layers_are_of_callsites_and_the_rest_is_named() {
        let mut f = Fixture::new(1);
        let stacks: Vec<_> = (1..=4).map(|i| f.stack(&["main", &format!("site{i}")])).collect();
        f.pass(10.0);
        for (i, stack) in stacks.iter().enumerate() {
            f.alloc(*stack, 1000 * (i as u64 + 1));
        }
        for _ in 0..10 {
            f.pass(1.0);
        }
        let t = timeline(&f.session, "", When::Now, 20, 2);
        let names: Vec<&str> = t.series.iter().map(|s| &*s.label.function).collect();
        assert_eq!(names, ["site4", "site3"]);
        assert_eq!(t.series[0].in_use, Estimate::Exact { value: 4000.0 });
        assert_eq!((t.others, t.other_callsites), (Estimate::Exact { value: 3000.0 }, 2));
        let last: Vec<f64> = t.series.iter().map(|s| s.values[19]).collect();
        assert_eq!(last, [4000.0, 3000.0]);
        assert_eq!(t.series[0].values[5], 0.0, "nothing yet");
        assert_eq!(t.in_use[19], 10_000.0);
        assert!(t.is_same(&timeline(&f.session, "", When::Now, 20, 2)));
        assert!(!t.is_same(&timeline(&f.session, "", When::Now, 21, 2)));
        // What was the largest for long is the lowest layer, and not always the first row.
        f.alloc(stacks[2], 2000);
        f.pass(1.0);
        let now = timeline(&f.session, "", When::Now, 20, 2);
        let rows: Vec<(&str, usize)> =
            now.series.iter().map(|s| (&*s.label.function, s.layer)).collect();
        assert_eq!(rows, [("site3", 1), ("site4", 0)]);
        // Before it was there.
        let then = When::At(f.time_ns - 16_000_000_000);
        let t = timeline(&f.session, "site4", then, 20, 2);
        assert_eq!(t.series.len(), 1);
        assert_eq!(t.series[0].in_use.point(), Some(0.0));
    }

    /// What the filter leaves out is on the chart as well, and has its figure.
    #[test]
    fn what_a_filter_leaves_out_is_counted_beside_it() {
        let mut f = Fixture::new(1);
        let stacks: Vec<_> = (1..=3).map(|i| f.stack(&["main", &format!("site{i}")])).collect();
        f.pass(10.0);
        for (i, stack) in stacks.iter().enumerate() {
            f.alloc(*stack, 1000 * (i as u64 + 1));
            f.alloc(*stack, 10);
        }
        (0..10).for_each(|_| f.pass(1.0));
        let exact = |value| Some(Estimate::Exact { value });
        let t = timeline(&f.session, "", When::Now, 20, 2);
        assert_eq!((t.rest, t.told_from.is_some()), (None, true));
        let t = timeline(&f.session, "site3", When::Now, 20, 2);
        assert_eq!((t.other_callsites, t.rest), (0, exact(3020.0)));
        assert_eq!((t.series[0].values[19], t.told_from.is_some()), (3010.0, true));
        let t = timeline(&f.session, "!site3", When::Now, 20, 1);
        assert_eq!((t.other_callsites, t.rest), (1, exact(4020.0)));
        // Nobody followed single blocks over time.
        let t = timeline(&f.session, "size<600", When::Now, 20, 7);
        assert_eq!((t.series.len(), t.told_from, t.rest), (3, None, exact(6000.0)));
        let t = timeline(&f.session, "nowhere", When::Now, 20, 7);
        assert_eq!((t.series.len(), t.told_from.is_some(), t.rest), (0, true, exact(6030.0)));
    }

    #[test]
    fn before_the_viewer_came_the_whole_is_known_and_no_callsite() {
        let mut f = Fixture::unattached(1);
        let stack = f.stack(&["main", "site"]);
        f.alloc(stack, 500);
        f.time_ns += 50_000_000_000;
        f.attach();
        for _ in 0..50 {
            f.pass(1.0);
        }
        let t = timeline(&f.session, "", When::Now, 10, 2);
        let told: Vec<bool> = t.series[0].values.iter().map(|v| v.is_finite()).collect();
        assert!(told[9], "{t:?}");
        assert_eq!(
            told.iter().filter(|told| !**told).count() > 0,
            t.from_ns + 5_000_000_000 < t.span.unwrap().0
        );
    }

    #[test]
    fn speeds_are_per_second_whatever_the_points_are() {
        let second = 1_000_000_000;
        let points: Vec<(u64, f64)> =
            [0, 1, 2, 7, 10].map(|s| (s * second, 100.0 * s as f64)).into();
        for columns in [1, 3, 10, 64] {
            for speed in speeds(&points, columns, 0, 10 * second) {
                assert!((speed - 100.0).abs() < 1e-6, "{columns}: {speed}");
            }
        }
        assert!(speeds(&[], 3, 0, 10).iter().all(|speed| speed.is_nan()));
        assert_eq!(speeds(&points, 0, 0, 10).len(), 0);
        // After the last point nothing is known.
        let late = speeds(&points, 2, 0, 20 * second);
        assert!(late[1].is_nan() && (late[0] - 100.0).abs() < 1e-6, "{late:?}");
        assert_eq!(column(0, 0, 0, 5), 0);
        assert_eq!([0, 49, 50, 99, 100, 900].map(|at| column(0, 100, 2, at)), [0, 0, 1, 1, 1, 1]);
    }
}
