//! One callsite, looked at closely.
//!
//! Made of one pass over the blocks of the callsite, the living and those that are over:
//! sizes, threads, ages, who frees, how blocks grow by realloc. What it is made of is as of
//! the moment or the range that is asked about; the living are those at its end.
//!
//! **In use = rate × lifetime × size.** Over a stretch of time, births a second times the
//! time that a block stays times its bytes is what is in use (Little's law). Taken over the
//! older and the newer half of the time, the factor that moved says what kind of growth it
//! is: more work, blocks that stay longer, or larger ones. A factor has moved if its two
//! intervals do not touch.

mod blocks;
mod verdicts;

use super::filter::{Selection, thread_name};
use super::grown::{Grown, grown};
use super::numbers::{Numbers, Part};
use super::{Figures, Label, NodeKey, Question, When};
use crate::session::Session;
use crate::session::estimate::{self, family, survival};
use crate::session::figures::{Change, Estimate, Ratio};
use crate::session::then::only::Seen;
use blocks::blocks;
use heaptop_protocol::ids::BlockId;
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use verdicts::{factors, hints};

/// Most callstacks of frees and of allocations that are told.
const MOST_FREES: usize = 4;
const MOST_STACKS: usize = 8;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// Which.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// Its figures, as in the table.
    pub figures: Figures,
    /// Its callstacks, the largest in use first, and how many there are.
    pub stacks: Vec<DetailStack>,
    /// How many callstacks there are.
    pub stacks_len: usize,
    /// Bytes in use and allocated by size, the smallest first: above the first number of
    /// bytes, up to the second.
    pub sizes: Vec<SizeRow>,
    /// The threads that allocate most.
    pub threads: Vec<ThreadPart>,
    /// Deaths by age: nanoseconds up to which, and their share of all.
    pub ages: Vec<(f64, f64)>,
    /// Deaths behind them.
    pub deaths: u64,
    /// Bytes freed by another thread than the one that allocated, of all freed.
    pub freed_elsewhere: Ratio,
    /// Who frees: the callstacks of frees, the largest first; `None` while they are not
    /// captured.
    pub frees: Option<Vec<FreeStack>>,
    /// Blocks that grew or shrank by realloc, of all bytes allocated.
    pub by_realloc: Ratio,
    /// How they did; `None` where none was seen to.
    pub grown: Option<Grown>,
    /// The live sampled blocks, the oldest first.
    pub blocks: Vec<LiveBlockRow>,
    /// How many live sampled blocks there are.
    pub blocks_len: usize,
    /// The two halves of the time.
    pub factors: Option<Factors>,
    /// From when on growth is counted, in nanoseconds since the agent's start,
    pub growth_from_ns: u64,
    /// and the name of the mark there; `None` where there is none.
    pub growth_mark: Option<String>,
    /// What to do, and what that is based on.
    pub hints: Vec<Hint>,
    /// Of which moment or range they are.
    pub when: When,
    /// From when on blocks were heard of, or the range, in nanoseconds since the agent's
    /// start.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
}

/// A callstack.
#[derive(Debug, Clone, PartialEq)]
pub struct DetailStack {
    /// Innermost first.
    pub frames: Vec<Label>,
    /// Bytes in use.
    pub in_use_bytes: Estimate,
}

/// A callstack that frees.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeStack {
    /// Innermost first.
    pub frames: Vec<Label>,
    /// Its share of the bytes freed since they are captured.
    pub share: Ratio,
}

/// Blocks of about the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeRow {
    /// Above so many bytes.
    pub above: u64,
    /// Up to so many.
    pub to: u64,
    /// In use.
    pub in_use_bytes: Estimate,
    /// Allocated since heaptop came, or in the range.
    pub allocated_bytes: Estimate,
}

/// What one thread allocates here.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPart {
    /// Its name, or its number.
    pub name: String,
    /// Its share of the bytes allocated here.
    pub share: Ratio,
}

/// A block that lives.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveBlockRow {
    /// Which.
    pub id: BlockId,
    /// Where it lies.
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Its age in nanoseconds.
    pub age_ns: u64,
    /// Who allocated it.
    pub thread: String,
}

/// In use as a product, in the older and in the newer half.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// Births a second.
    pub rate: [Estimate; 2],
    /// Nanoseconds that a block stays: what is in use over what comes.
    pub stay_ns: [Estimate; 2],
    /// Bytes a block.
    pub size: [Estimate; 2],
    /// Which of them moved for sure, the one that moved most first.
    pub moved: Vec<Factor>,
    /// The middle of the time, in nanoseconds since the agent's start.
    pub middle_ns: u64,
}

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// More or fewer are born.
    Rate,
    /// They stay longer or shorter.
    Stay,
    /// They are larger or smaller.
    Size,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Hint {
    /// Much is born and dies young: reuse it, or use an arena.
    DiesYoung {
        /// Share of the bytes that die young.
        share: Ratio,
        /// Bytes a second.
        rate: Estimate,
        /// Samples behind it.
        samples: u64,
    },
    /// Blocks grow step by step: ask for what is needed at once.
    Ladder {
        /// Share of the bytes that come by realloc.
        share: Ratio,
        /// Steps of each chain.
        each: Estimate,
        /// The largest block that was seen to come so, in bytes.
        largest: u64,
        /// Whether blocks were seen to grow: both before and after are sampled.
        seen: bool,
        /// Samples behind it.
        samples: u64,
    },
    /// It grows, with evidence.
    Grows {
        /// By how much over the time.
        growth: Change,
        /// Whether there is evidence of it in the later half of the time as well: what has
        /// filled, as a cache, grows no more.
        goes_on: bool,
        /// Samples behind it.
        samples: u64,
    },
    /// Others free it.
    FreedElsewhere {
        /// Their share.
        share: Ratio,
        /// Samples behind it.
        samples: u64,
    },
}

/// One callsite closely, as far as `filter` takes it; `None` where it has no callstacks, or
/// nothing is known of the moment. Growth is from `growth_from_ns` on, or from when heaptop
/// came, or over the range that is asked about.
#[must_use]
pub fn details(
    session: &Session,
    when: When,
    key: NodeKey,
    filter: &str,
    growth_from_ns: Option<u64>,
) -> Option<Details> {
    let selection = Selection::of(session, filter);
    let book = session.book();
    let group = book.groups().at(book.node(key)?)?;
    let node = &book.nodes()[book.groups().group(group).callsite() as usize];
    let (since, now) = session.span().filter(|_| session.knows_in_use())?;
    let (from, to) = match when.until(now) {
        When::Now => (since, now),
        When::At(at) => (since, at),
        When::Range { from_ns, to_ns } => (from_ns, to_ns),
        When::Peak => return None,
    };
    if to < since {
        return None;
    }
    let growth_from = match when {
        When::Range { .. } => from,
        _ => growth_from_ns.map_or(from, |of| of.clamp(from, to)),
    };
    let question = Question { when, growth_from_ns: Some(growth_from), ..Question::default() };
    let numbers = Numbers::ask(session, &question, &selection);
    let mut table = survival::Table::default();
    let row = super::rows::Rows::of(session, super::Grouping::Callsite);
    let lived = numbers.lived(&row, group, true, &mut table);
    let mut of_row = numbers.of_rows(&row, &[group]);
    let mut sums_of_row = of_row.pop()?;
    sums_of_row.grew = match numbers.growth_sight() {
        Some(sight) => {
            family::grew([(&sums_of_row.gained, &sums_of_row.lost)].into_iter(), sight.both())[0]
        }
        None => false,
    };
    let figures = sums_of_row.figures(&numbers, lived);

    let middle = from.midpoint(to);
    let members: Vec<bool> = {
        let mut members = vec![false; book.stacks().len()];
        for &stack in book.groups().group(group).stacks() {
            members[stack as usize] = selection.takes(stack);
        }
        members
    };
    let times = [from / 1000, middle / 1000, to / 1000];
    let later = growth_from.midpoint(to) / 1000;
    let only = numbers.only();
    let at = session.bounds(when);
    let chosen = |one: &Seen| only.as_ref().is_none_or(|only| only.takes(one, &at));
    let (sums, living, blocks_len) =
        blocks(session, group, &members, (times, later), (&at, &chosen));
    // Of blocks that are over by choice nothing is in use, and how they were sampled is known.
    let sight = numbers.sight(Part::InUse).or_else(|| numbers.sight(Part::Allocated));
    let sight = sight.or_else(|| numbers.sight(Part::Rates))?;
    // What is told of survivors alone says nothing of all that were born.
    let lives = session.knows_lives();
    let share = |part, whole| if lives { estimate::share(part, whole) } else { Ratio::Unknown };
    let grown = (lives && sums.by_realloc.n > 0).then(|| {
        let mine = |stack: u32| members.get(stack as usize).is_some_and(|mine| *mine);
        let born = [&sums.by_realloc, &sums.otherwise];
        grown(session, mine, [times[0], times[2]], born, sight)
    });
    let goes_on = numbers.growth_sight().is_some_and(|sight| {
        family::grew([(&sums.later[0], &sums.later[1])].into_iter(), sight.both())[0]
    });
    let hints = if lives {
        hints(session, (&figures, goes_on), &sums, grown.as_ref(), sight)
    } else {
        Vec::new()
    };
    let marks = session.marks().iter().rev();
    let mark = marks.filter(|_| growth_from > from).find(|mark| mark.at.time_ns == growth_from);
    Some(Details {
        key,
        label: node.label.clone(),
        stacks: stacks(session, &numbers, group, &selection),
        stacks_len: members.iter().filter(|mine| **mine).count(),
        sizes: sums.sizes(sight),
        threads: sums.threads(session),
        ages: if lives { sums.ages() } else { Vec::new() },
        deaths: if lives { sums.deaths } else { 0 },
        freed_elsewhere: share(&sums.elsewhere, &sums.freed),
        frees: frees(session, &members),
        by_realloc: share(&sums.by_realloc, &sums.born),
        grown,
        blocks: living
            .into_iter()
            .map(|(id, block)| LiveBlockRow {
                id,
                address: block.address,
                size: block.size,
                age_ns: to.saturating_sub(block.born_ns),
                thread: thread_name(session, block.thread),
            })
            .collect(),
        blocks_len,
        factors: factors(&sums, sight, [from, middle, to]),
        hints,
        figures,
        growth_from_ns: growth_from,
        growth_mark: mark.map(|mark| mark.label.clone()),
        when,
        from_ns: from,
        to_ns: to,
    })
}

fn stacks(
    session: &Session,
    numbers: &Numbers<'_>,
    group: u32,
    selection: &Selection,
) -> Vec<DetailStack> {
    let sight = numbers.sight(Part::InUse);
    let book = session.book();
    let mut stacks: Vec<u32> = book.groups().group(group).stacks().to_vec();
    stacks.retain(|&stack| selection.takes(stack));
    let size = |stack: u32| numbers.stack(stack).in_use.bytes.sum.max(0.0).to_bits();
    stacks.sort_unstable_by_key(|&stack| (Reverse(size(stack)), stack));
    stacks.truncate(MOST_STACKS);
    let label = |node: &u32| book.nodes()[*node as usize].label.clone();
    stacks
        .into_iter()
        .map(|stack| DetailStack {
            frames: book.stacks()[stack as usize].path.iter().rev().map(label).collect(),
            in_use_bytes: sight.map_or(Estimate::Unknown, |sight| {
                estimate::bytes(&numbers.stack(stack).in_use, sight)
            }),
        })
        .collect()
}

/// Who frees blocks of these callstacks, put together by the whole path; `None` while nothing
/// was told of it.
fn frees(session: &Session, members: &[bool]) -> Option<Vec<FreeStack>> {
    let book = session.book();
    let mine = |stack: u32| members.get(stack as usize).is_some_and(|mine| *mine);
    let (mut whole, mut by_path) = (Total::default(), FxHashMap::<&[u32], Total>::default());
    for (_, freed, total) in session.frees().iter().filter(|(allocated, ..)| mine(*allocated)) {
        whole.merge(total);
        if let Some(stack) = book.stacks().get(freed as usize) {
            by_path.entry(&stack.path).or_default().merge(total);
        }
    }
    let mut stacks: Vec<_> = by_path.into_iter().collect();
    stacks.sort_unstable_by_key(|(path, total)| (Reverse(total.bytes.sum.to_bits()), *path));
    stacks.truncate(MOST_FREES);
    let label = |node: &u32| book.nodes()[*node as usize].label.clone();
    let of = |(path, total): (&[u32], Total)| FreeStack {
        frames: path.iter().rev().map(label).collect(),
        share: estimate::share(&total, &whole),
    };
    (whole.n > 0).then(|| stacks.into_iter().map(of).collect())
}
