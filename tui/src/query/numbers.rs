//! Where the numbers of an answer come from: the present as the session keeps it, or
//! another moment, or those of some blocks alone, made when they are asked for. The one
//! place that knows the difference.
//!
//! Where a filter chooses callstacks and no blocks, the present stays what the session keeps:
//! of a callsite that it takes some callstacks of these are added up ([`Part`]).

use super::Question;
use super::filter::{Selection, Share};
use super::rows::Rows;
use super::sums::Sums;
use crate::session::Session;
use crate::session::estimate::curve::Curve;
use crate::session::estimate::survival::Table;
use crate::session::estimate::{GrowthSight, Sight};
use crate::session::figures::{Followed, Lifetime};
use crate::session::partition::Partition;
use crate::session::then::Then;
use crate::session::then::by::{By, Cut};
use crate::session::then::only::Only;
use crate::session::when::When;
use heaptop_protocol::totals::{Total, Totals};
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock};

/// Rows of so many callstacks are looked at one by one.
const FEW: usize = 256;

static NOTHING: LazyLock<Totals> = LazyLock::new(Totals::default);

/// The numbers at one moment, or over a stretch of time.
#[derive(Debug, Clone)]
pub struct Numbers<'a> {
    session: &'a Session,
    /// Of the present there are none.
    then: Option<Arc<Then>>,
    /// Where growth comes from, if it is asked for.
    growth: Option<Arc<Then>>,
    /// At present, the groups that are not taken whole; `None`: all are.
    pieces: Option<FxHashMap<u32, Piece>>,
}

/// What is taken of a group at present.
#[derive(Debug, Clone, Default)]
struct Piece {
    stacks: Vec<u32>,
    totals: Totals,
}

/// How long blocks live.
#[derive(Debug, Clone, Copy)]
pub struct Lived {
    pub median: Lifetime,
    pub mean: Followed,
}

impl Lived {
    pub const UNKNOWN: Self = Self { median: Lifetime::Unknown, mean: Followed::Unknown };

    fn of(table: &Table) -> Self {
        Self { median: table.median(), mean: Curve::of(table).mean() }
    }
}

/// What an estimate speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What lives.
    InUse,
    /// What was allocated.
    Allocated,
    /// What was promoted.
    Promoted,
    /// What was born young, and what share of it survived.
    Minor,
    /// What was allocated in the window of rates.
    Rates,
}

impl<'a> Numbers<'a> {
    pub fn of(session: &'a Session, when: When) -> Self {
        Self::cut(session, when, &Cut::default())
    }

    /// Where a filter's callstacks are counted one by one: all have their numbers here.
    pub fn by_stack(session: &'a Session, when: When, selection: &Selection) -> Self {
        Self::cut(session, when, &selection.by_stack())
    }

    /// Where its callsites are counted.
    pub fn by_group(session: &'a Session, when: When, selection: &Selection) -> Self {
        let mut numbers = Self::cut(session, when, &selection.by_group());
        numbers.take_pieces(selection, false);
        numbers
    }

    fn cut(session: &'a Session, when: When, cut: &Cut) -> Self {
        let then = match when {
            // Of single blocks the present is a pass as well.
            When::Now if cut.is_of_blocks() => Some(session.lately(None, cut)),
            when => session.then_by(when, cut),
        };
        let growth = then.clone().filter(|_| matches!(when, When::Range { .. }));
        Self { session, then, growth, pieces: None }
    }

    /// `every`: groups of which nothing is taken have no numbers either.
    fn take_pieces(&mut self, selection: &Selection, every: bool) {
        if self.then.is_some() || !selection.chooses_stacks() {
            return;
        }
        let numbers = self.session.numbers();
        let mut pieces = FxHashMap::default();
        for (at, group) in self.session.book().groups().iter() {
            match selection.share(at) {
                Share::All => continue,
                Share::None if !every => continue,
                Share::None | Share::Some => {}
            }
            let mut piece = Piece::default();
            for &stack in group.stacks().iter().filter(|stack| selection.takes(**stack)) {
                piece.stacks.push(stack);
                piece.totals.merge(&numbers[stack as usize].totals);
            }
            pieces.insert(at, piece);
        }
        self.pieces = (!pieces.is_empty()).then_some(pieces);
    }

    fn piece(&self, group: u32) -> Option<&Piece> {
        self.pieces.as_ref()?.get(&group)
    }

    /// Whether groups are taken whole, as far as they are.
    pub const fn are_whole(&self) -> bool {
        self.pieces.is_none()
    }

    /// Whether blocks are told apart one by one: what had happened before heaptop came has
    /// no part in it.
    pub fn is_of_blocks(&self) -> bool {
        self.then.as_ref().is_some_and(|then| then.cut().is_of_blocks())
    }

    /// Which blocks alone they are of.
    pub fn only(&self) -> Option<Arc<Only>> {
        self.then.as_ref().and_then(|then| then.cut().only.clone())
    }

    /// How long blocks live is told of blocks that are not chosen by it.
    fn knows_lives(&self) -> bool {
        let by_fate = |then: &Arc<Then>| then.cut().only.as_ref().is_some_and(|o| o.by_fate());
        self.session.knows_lives() && !self.then.as_ref().is_some_and(by_fate)
    }

    /// Makes ahead what a question needs of the past, with `most` lives and blocks gone
    /// through at most. How far it is, in percent; `None`: asking takes no more than that.
    pub fn make_ahead(session: &Session, question: &Question, most: usize) -> Option<u8> {
        let (when, selection) = (question.when, Selection::of(session, &question.filter));
        let (cut, _) = Self::cut_of(question, &selection);
        // The header is of all.
        let header = Cut::default();
        let range = match (when, question.growth_from_ns) {
            (When::At(to_ns), Some(from_ns)) if from_ns < to_ns => When::Range { from_ns, to_ns },
            _ => when,
        };
        // Rows are counted before the filter too.
        let (every, _) = Self::cut_of(&question.of_all(), &Selection::default());
        let all = [(when, &header), (when, &every), (when, &cut), (range, &cut)];
        let mut all = all.into_iter();
        all.find_map(|(when, cut)| session.make_ahead(when, cut, most))
    }

    /// Which blocks a question is about, and whether rows are of whole groups.
    fn cut_of(question: &Question, selection: &Selection) -> (Cut, bool) {
        let by = question.group.by();
        let whole = by == By::Group && question.group.together().is_none();
        (if whole { selection.by_group() } else { selection.by(by) }, whole)
    }

    /// What a question needs.
    pub fn ask(session: &'a Session, question: &Question, selection: &Selection) -> Self {
        let (cut, whole) = Self::cut_of(question, selection);
        let mut numbers = Self::cut(session, question.when, &cut);
        let growth = match (question.when, question.growth_from_ns) {
            (When::Range { .. }, _) => numbers.then.clone(),
            (When::Now, Some(from_ns)) => Some(session.lately(Some(from_ns), &cut)),
            (When::At(to_ns), Some(from_ns)) if from_ns < to_ns => {
                session.then_by(When::Range { from_ns, to_ns }, &cut)
            }
            (When::Now | When::At(_) | When::Peak, _) => None,
        };
        numbers.growth = growth;
        numbers.take_pieces(selection, !whole);
        numbers
    }

    /// How many groups there are, or other classes of blocks.
    pub fn classes(&self) -> usize {
        let groups = || self.session.book().groups().numbers();
        self.then.as_ref().map_or_else(groups, |then| then.classes())
    }

    /// What a group gained and lost, where that is asked for and known.
    pub fn growth_of(&self, group: u32) -> Option<(&Total, &Total)> {
        self.growth.as_ref()?.group_growth(group)
    }

    /// By group, whether evidence of its growth holds among all of them.
    pub fn holding(&self) -> &[bool] {
        self.growth.as_ref().map_or(&[], |growth| growth.holding())
    }

    /// By class of groups put together, the same.
    pub fn holding_together(&self, partition: &Partition) -> Arc<Vec<bool>> {
        let grown = self.growth.as_ref();
        grown.map_or_else(Arc::default, |growth| growth.holding_together(partition))
    }

    /// How both ends of the range of growth were sampled.
    pub fn growth_sight(&self) -> Option<GrowthSight> {
        let then = self.growth.as_ref().filter(|_| self.session.knows_in_use())?;
        then.growth().map(|_| then.sight_of_growth())
    }

    fn with_growth(&self, groups: &[u32], mut sums: Sums) -> Sums {
        (sums.gained, sums.lost) = <_>::default();
        for (gained, lost) in groups.iter().filter_map(|&group| self.growth_of(group)) {
            sums.gained.merge(gained);
            sums.lost.merge(lost);
        }
        sums
    }

    /// The sums of some rows.
    pub fn of_rows(&self, rows: &Rows<'_>, wanted: &[u32]) -> Vec<Sums> {
        let small = |row: &u32| {
            self.then.is_some() || rows.are_groups() || self.is_small(rows.members(row))
        };
        let large: Vec<u32> = wanted.iter().copied().filter(|row| !small(row)).collect();
        let mut of_large = self.of_large_rows(rows, &large).into_iter();
        let sums = wanted.iter().map(|row| {
            let sums = if small(row) {
                let mut sums = Sums::default();
                for &group in rows.members(row) {
                    sums.merge(&self.of_group(group));
                }
                sums
            } else {
                of_large.next().unwrap_or_default()
            };
            self.with_growth(rows.members(row), sums)
        });
        sums.collect()
    }

    /// Whether there is anything to look at, and little.
    fn is_small(&self, members: &[u32]) -> bool {
        let groups = self.session.book().groups();
        let mut left = FEW;
        let fits = |group: &u32| {
            let stacks = groups.group(*group).stacks().len();
            let fits = stacks <= left;
            left = left.saturating_sub(stacks);
            fits
        };
        !members.is_empty() && members.iter().all(fits)
    }

    /// The sums of rows with many callstacks, at present: one look at all that changed lately.
    fn of_large_rows(&self, rows: &Rows<'_>, wanted: &[u32]) -> Vec<Sums> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut row_of = vec![None; self.session.book().groups().numbers()];
        let mut pieces = Vec::new();
        for (place, row) in (0..).zip(wanted) {
            for &group in rows.members(row) {
                match self.piece(group) {
                    Some(piece) => pieces.push((place as usize, piece)),
                    None => row_of[group as usize] = Some(place),
                }
            }
        }
        let mut sums = Sums::live_of_rows(self.session, &row_of, wanted.len());
        for (place, piece) in pieces.into_iter().filter(|(_, piece)| !piece.stacks.is_empty()) {
            sums[place].merge(&Sums::live_of_stacks(self.session, &piece.stacks));
        }
        sums
    }

    /// How long blocks of a row live, the mean where it is wanted; `table` is room to work
    /// in.
    pub fn lived(&self, rows: &Rows<'_>, row: u32, mean: bool, table: &mut Table) -> Lived {
        if !self.knows_lives() {
            return Lived::UNKNOWN;
        }
        let members = rows.members(&row);
        if let Some(then) = &self.then {
            let (median, mean) = then.lived(self.session, rows.key(row).0, members, table, mean);
            return Lived { median, mean };
        }
        if members.iter().any(|&group| self.piece(group).is_some()) {
            return self.lived_of_pieces(members.iter().copied(), table);
        }
        let (median, mean) = if rows.are_groups() {
            self.session.group_lifetime(row, table, mean)
        } else {
            self.session.class_lifetime(rows.key(row).0, members, table)
        };
        Lived { median, mean }
    }

    fn lived_of_pieces(&self, groups: impl Iterator<Item = u32>, table: &mut Table) -> Lived {
        let all = self.session.book().groups();
        table.clear();
        for group in groups {
            let stacks = match self.piece(group) {
                Some(piece) => &piece.stacks,
                None => all.group(group).stacks(),
            };
            for &stack in stacks {
                let lifetimes = &self.session.numbers()[stack as usize].lifetimes;
                lifetimes.add_to(table, self.session.now_ns());
            }
        }
        Lived::of(table)
    }

    pub const fn session(&self) -> &'a Session {
        self.session
    }

    /// The moment that they are of; `None` for the present.
    pub const fn past(&self) -> Option<&Arc<Then>> {
        self.then.as_ref()
    }

    /// The totals of a callstack.
    pub fn stack(&self, stack: u32) -> &Totals {
        match &self.then {
            None => &self.session.numbers()[stack as usize].totals,
            Some(then) => then.stack_totals(stack),
        }
    }

    /// The totals of a group.
    pub fn group(&self, group: u32) -> &Totals {
        match &self.then {
            None => match self.piece(group) {
                Some(piece) => &piece.totals,
                None if group as usize >= self.session.book().groups().numbers() => &NOTHING,
                None => self.session.group_totals(group),
            },
            Some(then) => then.group_totals(group),
        }
    }

    /// How the blocks of a sum were sampled; `None` where nothing is known of it.
    pub fn sight(&self, part: Part) -> Option<Sight> {
        let told = match part {
            Part::InUse | Part::Promoted => self.session.knows_in_use(),
            Part::Allocated | Part::Rates => self.session.knows_allocated(),
            Part::Minor => self.session.knows_lives(),
        };
        if !told {
            return None;
        }
        let course = self.session.course();
        let (known, sight) = match (&self.then, part) {
            (None, Part::Rates) => (true, course.rate_sight()),
            (None, _) => (true, course.sight()),
            (Some(then), Part::InUse) => (then.knows_in_use(), then.sight_of_in_use()),
            (Some(then), Part::Allocated | Part::Promoted | Part::Minor) => {
                (then.knows_allocated(), then.sight_of_allocated())
            }
            (Some(then), Part::Rates) => (then.knows_in_use(), then.sight_of_rates()),
        };
        known.then_some(sight)
    }

    /// Seconds that rates are over; `None` where none are known.
    pub fn rate_seconds(&self) -> Option<f64> {
        match &self.then {
            None => self.session.rate_seconds(),
            Some(then) => then.rate_seconds(),
        }
    }

    /// The sums of everything.
    pub fn whole(&self) -> Sums {
        match &self.then {
            None => {
                let mut sums = Sums::live_whole(self.session);
                if let Some((gained, lost)) = self.growth.as_ref().and_then(|then| then.growth()) {
                    (sums.gained, sums.lost) = (*gained, *lost);
                }
                sums
            }
            Some(then) => {
                let growth = self.growth.as_ref().and_then(|growth| growth.growth());
                self.sums_then(then, None, then.whole(), then.windows(None), growth)
            }
        }
    }

    /// Of some groups: by number, whether it is one of them.
    pub fn of_groups(&self, taken: &[bool]) -> Sums {
        let Some(then) = &self.then else {
            let Some(pieces) = &self.pieces else {
                return Sums::live_of_groups(self.session, taken);
            };
            let mut whole = taken.to_vec();
            for group in pieces.keys() {
                whole[*group as usize] = false;
            }
            let mut sums = Sums::live_of_groups(self.session, &whole);
            for (_, piece) in pieces.iter().filter(|(group, _)| taken[**group as usize]) {
                sums.merge(&Sums::live_of_stacks(self.session, &piece.stacks));
            }
            return sums;
        };
        let mut sums = Sums::default();
        for (group, _) in taken.iter().enumerate().filter(|(_, taken)| **taken) {
            sums.merge(&self.of_group_then(then, group as u32));
        }
        sums
    }

    /// Of one group.
    pub fn of_group(&self, group: u32) -> Sums {
        match &self.then {
            None => match self.piece(group) {
                Some(piece) => Sums::live_of_stacks(self.session, &piece.stacks),
                None => Sums::live_of_group(self.session, group),
            },
            Some(then) => self.of_group_then(then, group),
        }
    }

    fn of_group_then(&self, then: &Then, group: u32) -> Sums {
        let (totals, windows) = (then.group_totals(group), then.windows(Some(group)));
        self.sums_then(then, Some(group), totals, windows, self.growth_of(group))
    }

    fn sums_then(
        &self,
        then: &Then,
        group: Option<u32>,
        totals: &Totals,
        (window, promoted): (Total, Total),
        grown: Option<(&Total, &Total)>,
    ) -> Sums {
        Sums {
            totals: *totals,
            window,
            promoted,
            steps: then.trend(self.session, group),
            gained: grown.map(|(gained, _)| *gained).unwrap_or_default(),
            lost: grown.map(|(_, lost)| *lost).unwrap_or_default(),
            ..Sums::default()
        }
    }

    /// By group, what was allocated in the window of rates.
    pub fn windows(&self) -> Vec<Total> {
        if let Some(then) = &self.then {
            return (0..then.classes() as u32).map(|group| *then.group_window(group)).collect();
        }
        let groups = self.session.book().groups().numbers();
        let mut windows = vec![Total::default(); groups];
        self.session.born_by_group(|group, born| windows[group as usize].merge(born));
        for (group, piece) in self.pieces.iter().flatten() {
            windows[*group as usize] = Sums::live_of_stacks(self.session, &piece.stacks).window;
        }
        windows
    }

    /// By group, by how much more is in use than when the trend begins; `None` where
    /// there is no trend.
    pub fn trends(&self) -> Option<Vec<f64>> {
        if let Some(then) = &self.then {
            let groups = then.classes();
            let grown = |group| then.trend(self.session, Some(group)).iter().sum();
            return (then.trend_steps(self.session) > 0)
                .then(|| (0..groups as u32).map(grown).collect());
        }
        let groups = self.session.book().groups().numbers();
        let mut trends = vec![0.0; groups];
        self.session.grown_by_group(|_, group, by| trends[group as usize] += by);
        for (group, piece) in self.pieces.iter().flatten() {
            let steps = Sums::live_of_stacks(self.session, &piece.stacks).steps;
            trends[*group as usize] = steps.iter().sum();
        }
        (self.session.course().trend_steps().count() > 0).then_some(trends)
    }

    /// The median lifetime of a group; `table` is room to work in.
    pub fn lifetime(&self, group: u32, table: &mut Table) -> Lifetime {
        match &self.then {
            _ if !self.knows_lives() => Lifetime::Unknown,
            None if self.piece(group).is_some() => {
                self.lived_of_pieces(std::iter::once(group), table).median
            }
            None => self.session.group_lifetime(group, table, false).0,
            Some(then) => then.lifetime(self.session, std::iter::once(group), table),
        }
    }

    /// The median lifetime of some groups together, or of all.
    pub fn lifetime_of(&self, groups: Option<&mut dyn Iterator<Item = u32>>) -> Lifetime {
        self.lived_of(groups).median
    }

    /// How long blocks of some groups together live, or of all.
    pub fn lived_of(&self, groups: Option<&mut dyn Iterator<Item = u32>>) -> Lived {
        if !self.knows_lives() {
            return Lived::UNKNOWN;
        }
        let mut table = Table::default();
        let session = self.session;
        match (&self.then, groups) {
            (None, None) => {
                session.everything().lifetimes.add_to(&mut table, session.now_ns());
                Lived::of(&table)
            }
            (None, Some(groups)) => self.lived_of_pieces(groups, &mut table),
            (Some(then), None) => {
                let (median, mean) = then.all_lived(session, &mut table);
                Lived { median, mean }
            }
            (Some(then), Some(groups)) => {
                then.ages_of(session, groups, &mut table);
                Lived::of(&table)
            }
        }
    }
}
