//! Leaks and growth: what is old and lives, what grew, and since when.
//!
//! Four looks at the same blocks, a callsite a row: *old*, alive and born before the youngest
//! tenth of the time that is known; *growth* from a moment on, with evidence or without;
//! *in use* at the end; and *generations*, what lives by when it was born, cut at the marks.
//! Those that grew with evidence come first, by how much; then those with most that is old.
//!
//! Of many callsites figures are made for those that are shown, as in [`super::table`]. The
//! present is made anew once a second.

use super::filter::Selection;
use super::{Label, NodeKey, Sorted, When, sorted};
use crate::session::estimate::{change, family, survival::Table};
use crate::session::figures::{Change, Estimate, Lifetime};
use crate::session::then::Then;
use crate::session::then::by::Cut;
use crate::session::{Session, estimate};
use heaptop_protocol::message::Mark;
use heaptop_protocol::totals::Total;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Most generations that are told apart; what is born before is one.
pub const MOST_GENERATIONS: usize = 8;
/// Without marks the time is cut into so many equal parts.
const PARTS: u64 = 4;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeakColumn {
    /// Growth with evidence, then what is old.
    #[default]
    Growth,
    /// Bytes that are old.
    Old,
    /// Their median age.
    Age,
    /// Bytes in use.
    InUse,
    /// Objects that are old.
    Objects,
    /// Bytes in use of a generation, by its place.
    Generation(usize),
    /// The callsite.
    Name,
}

impl Sorted<LeakColumn> {
    /// The column behind it, where there are so many generations.
    #[must_use]
    pub const fn next(self, generations: usize) -> LeakColumn {
        match self.column {
            LeakColumn::Growth => LeakColumn::Old,
            LeakColumn::Old => LeakColumn::Age,
            LeakColumn::Age => LeakColumn::InUse,
            LeakColumn::InUse => LeakColumn::Objects,
            LeakColumn::Objects if generations > 0 => LeakColumn::Generation(0),
            LeakColumn::Generation(at) if at + 1 < generations => LeakColumn::Generation(at + 1),
            LeakColumn::Objects | LeakColumn::Generation(_) => LeakColumn::Name,
            LeakColumn::Name => LeakColumn::Growth,
        }
    }

    /// Whether rows are ordered by growth, where there is evidence of it, and else by what is
    /// old.
    #[must_use]
    pub fn is_two_part(self) -> bool {
        self.column == LeakColumn::Growth
    }
}

/// When the blocks of a generation were born.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// After this, in nanoseconds since the agent's start; 0 of the first.
    pub from_ns: u64,
    /// Until this.
    pub to_ns: u64,
    /// The mark that it begins at; `None` where it begins at none.
    pub mark: Option<String>,
}

/// A callsite.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakRow {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Its figures.
    pub figures: LeakFigures,
}

/// Figures of a callsite, or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakFigures {
    /// Bytes that live and are old.
    pub old_bytes: Estimate,
    /// How many.
    pub old_objects: Estimate,
    /// Their median age; unknown of all together.
    pub median_age: Lifetime,
    /// By how many bytes it grew.
    pub growth: Change,
    /// Whether that is growth with evidence: of all callsites together in 95 % of cases.
    pub grew: bool,
    /// Bytes in use.
    pub in_use_bytes: Estimate,
    /// Bytes in use by generation, the oldest first.
    pub generations: Vec<Estimate>,
}

/// Some of the rows, and the sum of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaks {
    /// The place of the first of `rows`.
    pub first: usize,
    /// The rows.
    pub rows: Vec<LeakRow>,
    /// Of all rows.
    pub total: LeakFigures,
    /// How many rows there are.
    pub len: usize,
    /// The generations, the oldest first.
    pub generations: Vec<Generation>,
    /// Growth is from here on, in nanoseconds since the agent's start,
    pub from_ns: u64,
    /// until here, where all else is of.
    pub to_ns: u64,
    /// What is old is at least so old, in nanoseconds.
    pub older_than_ns: u64,
    /// Growth of all rows in the later part of the time: what goes on is in it as well. `None`
    /// of the past.
    pub later: Option<Later>,
}

/// From so many seconds on there is a forecast: before, a few requests look like a trend.
const LEAST_SECONDS: f64 = 10.0;

/// See [`Leaks::no_forecast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoForecast {
    /// There is no evidence of growth.
    NoEvidence,
    /// It is over too short a time.
    TooSoon,
    /// There is no evidence that it goes on.
    Quiet,
}

/// Growth in the later part of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Later {
    /// Where it begins, in nanoseconds since the agent's start.
    pub from_ns: u64,
    /// By how many bytes all rows grew.
    pub growth: Change,
    /// Whether that is growth with evidence.
    pub grew: bool,
}

impl Leaks {
    /// The row at a place, if it is here.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<&LeakRow> {
        self.rows.get(place.checked_sub(self.first)?)
    }

    /// Whether of `places` every row is here that there is.
    #[must_use]
    pub fn covers(&self, places: &Range<usize>) -> bool {
        let end = places.end.min(self.len);
        places.start >= end || self.first <= places.start && end <= self.first + self.rows.len()
    }

    /// Seconds that growth is over.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// Why there is no forecast; `None` where there is one, if there is a limit.
    #[must_use]
    pub fn no_forecast(&self) -> Option<NoForecast> {
        if !self.total.grew {
            Some(NoForecast::NoEvidence)
        } else if self.seconds() < LEAST_SECONDS {
            Some(NoForecast::TooSoon)
        } else {
            self.quiet_ns().map(|_| NoForecast::Quiet)
        }
    }

    /// How long the later part is, in nanoseconds, if what grew has not gone on in it as far
    /// as is known.
    #[must_use]
    pub fn quiet_ns(&self) -> Option<u64> {
        let later = self.later.filter(|later| self.total.grew && !later.grew)?;
        Some(self.to_ns.saturating_sub(later.from_ns))
    }
}

/// All rows, before they are put in order and figures are made.
#[derive(Debug)]
pub struct LeakList<'a> {
    session: &'a Session,
    then: Arc<Then>,
    generations: Vec<Generation>,
    older_than_ns: u64,
    range: (u64, u64),
    by: Sorted<LeakColumn>,
    entries: Vec<Entry>,
    /// Where the later part begins, and of which blocks it is.
    later: Option<(u64, Cut)>,
}

/// One row in the order.
#[derive(Debug, Clone, Copy)]
struct Entry {
    figure: Option<f64>,
    /// Bytes that are old: they decide where figures are the same.
    old: f64,
    group: u32,
}

impl<'a> LeakList<'a> {
    /// Asks for the callsites that `filter` takes; growth is from `from_ns` on, or from when
    /// heaptop came, or over the range that is asked about. `None` where nothing is known of
    /// the moment.
    #[must_use]
    pub fn ask(
        session: &'a Session,
        when: When,
        from_ns: Option<u64>,
        filter: &str,
    ) -> Option<Self> {
        Self::sorted(session, when, from_ns, filter, Sorted::default())
    }

    /// Makes ahead one part of what an answer about the present needs, if more than so many
    /// blocks live. How far that is, in percent; `None`: asking takes no longer than a part.
    #[must_use]
    pub fn make_ahead(
        session: &Session,
        from_ns: Option<u64>,
        filter: &str,
        many: usize,
    ) -> Option<u8> {
        let (since, now) = session.span().filter(|_| session.knows_in_use())?;
        if session.live_block_count() <= many {
            return None;
        }
        let from = from_ns.unwrap_or(since).max(since);
        let ends = ends(&generations(session, since, now));
        let cut = Selection::of(session, filter).by_group();
        session.look_at_living(from, now - (now - since) / 10, &ends, &cut)
    }

    /// The same in another order.
    #[must_use]
    pub fn sorted(
        session: &'a Session,
        when: When,
        from_ns: Option<u64>,
        filter: &str,
        by: Sorted<LeakColumn>,
    ) -> Option<Self> {
        let (since, _) = session.span().filter(|_| session.knows_in_use())?;
        let from = from_ns.unwrap_or(since).max(since);
        let selection = Selection::of(session, filter);
        let cut = selection.by_group();
        let then = match when.until(session.now_ns()) {
            When::Now => session.lately(Some(from), &cut),
            When::At(at) => {
                session.then_by(When::Range { from_ns: from.min(at), to_ns: at }, &cut)?
            }
            range @ When::Range { .. } => session.then_by(range, &cut)?,
            When::Peak => return None,
        };
        let (from, to) = then.range()?;
        if to < since {
            return None;
        }
        let older_than_ns = (to - since) / 10;
        let generations = generations(session, since, to);
        let book = session.book();
        let (old, grew) = (then.old(session, to - older_than_ns), then.grew());
        let ends = ends(&generations);
        let all: Vec<u32> = (0..book.groups().numbers() as u32).collect();
        let born = match by.column {
            LeakColumn::Generation(_) => then.generations(session, &ends, all.chunks(1)),
            _ => Vec::new(),
        };
        let of_ages = if by.column == LeakColumn::Age { &all[..] } else { &[] };
        let ages = then.old_ages(session, to - older_than_ns, of_ages);
        let mut table = Table::default();
        let entries = book
            .groups()
            .iter()
            .filter_map(|(at, _)| {
                let of_old = old.get(at as usize);
                let old = of_old.map_or(0.0, |old| old.bytes.sum);
                let (gained, lost) = then.group_growth(at).map_or((0.0, 0.0), |(g, l)| {
                    let of = |t: &Total| if t.n == 0 { 0.0 } else { t.bytes.sum };
                    (of(g), of(l))
                });
                let grew = grew.get(at as usize).is_some_and(|grew| *grew);
                let any = then.group_in_use(at).n > 0 || gained + lost > 0.0;
                let taken = any && selection.takes_any_of(at);
                let in_use = then.group_in_use(at).bytes.sum;
                let figure = match by.column {
                    LeakColumn::Growth => Some(if grew { (gained - lost).max(0.0) } else { 0.0 }),
                    LeakColumn::Old => Some(old),
                    LeakColumn::InUse => Some(in_use),
                    LeakColumn::Objects => of_old.map(|old| old.objects.sum),
                    LeakColumn::Age => ages.get(at as usize).and_then(|ages| {
                        table.clear();
                        ages.add_to(&mut table);
                        table.median().shown_ns()
                    }),
                    LeakColumn::Generation(place) => {
                        let of = born.get(at as usize).and_then(|born| born.get(place));
                        Some(of.map_or(0.0, |total| total.bytes.sum))
                    }
                    LeakColumn::Name => None,
                };
                taken.then_some(Entry { figure, old, group: at })
            })
            .collect();
        let range = (from, to);
        let later = (when == When::Now).then(|| session.later_part(from, to, &cut)).flatten();
        let later = later.map(|later| (later, cut));
        Some(Self { session, then, generations, older_than_ns, range, by, entries, later })
    }

    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        let book = self.session.book();
        // Names lie far from each other: they are read where nothing else decides.
        let names = || {
            let node = |group: u32| &book.nodes()[book.groups().group(group).callsite() as usize];
            let name = |entry: &Entry| (&node(entry.group).label.function, entry.group);
            name(a).cmp(&name(b))
        };
        if self.by.column == LeakColumn::Name {
            return self.by.turned(names());
        }
        let old = b.old.total_cmp(&a.old);
        // What is old is the second part of that order, and is turned with the first.
        let old = if self.by.is_two_part() { self.by.turned(old) } else { old };
        self.by.figures(a.figure, b.figure).then(old).then_with(names)
    }

    /// How many rows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The place of a row.
    #[must_use]
    pub fn position(&self, key: NodeKey) -> Option<usize> {
        let book = self.session.book();
        let group = book.groups().at(book.node(key)?)?;
        let entry = self.entries.iter().find(|entry| entry.group == group)?;
        Some(self.entries.iter().filter(|other| self.compare(other, entry).is_lt()).count())
    }

    /// The rows at `range`, as far as there are, and the sum of all.
    #[must_use]
    pub fn rows(&self, range: Range<usize>) -> Leaks {
        let len = self.entries.len();
        let range = range.start.min(len)..range.end.min(len).max(range.start.min(len));
        let book = self.session.book();
        let mut table = Table::default();
        let mut entries = self.entries.clone();
        let part = sorted::part(&mut entries, &range, |a, b| self.compare(a, b));
        let picked: Vec<u32> = part.iter().map(|entry| entry.group).collect();
        // In one order, whatever is shown: sums of floats differ by their order.
        let all = self.groups();
        let ages = self.then.old_ages(self.session, self.range.1 - self.older_than_ns, &picked);
        let ends = ends(&self.generations);
        let sets = picked.chunks(1).chain([&all[..]]);
        let mut born = self.then.generations(self.session, &ends, sets);
        let of_all = born.pop().unwrap_or_default();
        let rows = picked
            .iter()
            .zip(ages.iter().zip(&born))
            .map(|(&group, (ages, born))| {
                let node = &book.nodes()[book.groups().group(group).callsite() as usize];
                table.clear();
                ages.add_to(&mut table);
                let figures = LeakFigures {
                    median_age: table.median(),
                    ..self.figures(std::slice::from_ref(&group), born, true)
                };
                LeakRow { key: node.key, label: node.label.clone(), figures }
            })
            .collect();
        Leaks {
            first: range.start,
            rows,
            total: self.figures(&all, &of_all, false),
            len,
            generations: self.generations.clone(),
            from_ns: self.range.0,
            to_ns: self.range.1,
            older_than_ns: self.older_than_ns,
            later: self.later(),
        }
    }

    fn groups(&self) -> Vec<u32> {
        self.entries.iter().map(|entry| entry.group).collect()
    }

    /// What all of them together did in the later part until now.
    #[must_use]
    pub fn later(&self) -> Option<Later> {
        let (from_ns, cut) = self.later.as_ref()?;
        let ([gained, lost], sight) = self.session.grown_since(*from_ns, cut, &self.groups())?;
        let grew = family::grew([(&gained, &lost)].into_iter(), sight.both())[0];
        let growth = change::growth(&gained, &lost, sight);
        Some(Later { from_ns: *from_ns, growth, grew })
    }

    /// The same without what is made of the later part: when it is asked for the first time
    /// all else has to be made, and [`Self::later`] is for afterwards.
    #[must_use]
    pub fn without_later(self) -> Self {
        Self { later: None, ..self }
    }

    /// All but the median age.
    fn figures(&self, groups: &[u32], born: &[Total], one: bool) -> LeakFigures {
        let (then, sight) = (&self.then, self.then.sight_of_in_use());
        // Blocks that are over by choice are in use nowhere.
        let known = then.knows_in_use();
        let if_known = |estimate| if known { estimate } else { Estimate::Unknown };
        let old_of = then.old(self.session, self.range.1 - self.older_than_ns);
        let (mut old, mut in_use) = (Total::default(), Total::default());
        let (mut gained, mut lost) = (Total::default(), Total::default());
        for &group in groups {
            in_use.merge(then.group_in_use(group));
            if let Some(of) = old_of.get(group as usize) {
                old.merge(of);
            }
            if let Some((g, l)) = then.group_growth(group) {
                gained.merge(g);
                lost.merge(l);
            }
        }
        let grows = then.growth().is_some();
        let growth_sight = then.sight_of_growth();
        let grew = match groups {
            [group] if one => then.grew().get(*group as usize).is_some_and(|grew| *grew),
            _ => grows && family::grew([(&gained, &lost)].into_iter(), growth_sight.both())[0],
        };
        LeakFigures {
            old_bytes: if_known(estimate::bytes(&old, sight)),
            old_objects: if_known(estimate::objects(&old, sight)),
            median_age: Lifetime::Unknown,
            growth: if grows {
                change::growth(&gained, &lost, growth_sight)
            } else {
                Change::Unknown
            },
            grew,
            in_use_bytes: if_known(estimate::bytes(&in_use, sight)),
            generations: born.iter().map(|born| if_known(estimate::bytes(born, sight))).collect(),
        }
    }
}

/// The name of marks that are made by the clock.
pub const AUTOMATIC: &str = "auto";

/// The last mark that somebody made by himself since all is known: growth is counted from
/// it, where nothing else is asked for. Until a moment, in nanoseconds since the agent's start.
#[must_use]
pub fn last_mark(session: &Session, until_ns: u64) -> Option<&Mark> {
    let (from, _) = session.span()?;
    let within = |mark: &&Mark| (from..=until_ns).contains(&mark.at.time_ns);
    let mut marks = session.marks().iter().rev().filter(within);
    marks.find(|mark| mark.label != AUTOMATIC)
}

/// Where generations end, but for the last, in nanoseconds since the agent's start.
fn ends(generations: &[Generation]) -> Vec<u64> {
    generations.iter().skip(1).map(|g| g.from_ns).collect()
}

/// Cuts the time until `to_ns` at the last marks; where there are none since heaptop came,
/// into equal parts.
fn generations(session: &Session, since_ns: u64, to_ns: u64) -> Vec<Generation> {
    let within = |at: u64| since_ns < at && at < to_ns;
    let mut cuts: Vec<(u64, Option<String>)> = session
        .marks()
        .iter()
        .filter(|mark| within(mark.at.time_ns))
        .map(|mark| (mark.at.time_ns, Some(mark.label.clone())))
        .collect();
    cuts.sort_by_key(|(at, _)| *at);
    cuts.dedup_by_key(|(at, _)| *at);
    if cuts.is_empty() {
        let part = (to_ns - since_ns) / PARTS;
        cuts.extend((0..PARTS).filter(|_| part > 0).map(|n| (since_ns + n * part, None)));
    }
    cuts.drain(..cuts.len().saturating_sub(MOST_GENERATIONS - 1));
    let ends = cuts.iter().map(|(at, _)| *at).chain([to_ns]);
    let begins = std::iter::once((0, None)).chain(cuts.iter().cloned());
    begins.zip(ends).map(|((from_ns, mark), to_ns)| Generation { from_ns, to_ns, mark }).collect()
}
