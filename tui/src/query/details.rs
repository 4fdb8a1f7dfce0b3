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

use super::filter::{Selection, thread_name};
use super::grown::{Grown, grown};
use super::numbers::{Numbers, Part};
use super::{Figures, Label, NodeKey, Question, When};
use crate::session::blocks::Block;
use crate::session::estimate::{self, Sight, family};
use crate::session::figures::{Change, Estimate, Ratio};
use crate::session::lives::{End, Life};
use crate::session::then::bounds::Bounds;
use crate::session::then::by::size_class;
use crate::session::then::only::Seen;
use crate::session::{Session, estimate::survival};
use heaptop_protocol::estimate::Weight;
use heaptop_protocol::event::Cause;
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::totals::Total;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Most callstacks, threads and live blocks that are told.
const MOST_FREES: usize = 4;
const MOST_STACKS: usize = 8;
const MOST_THREADS: usize = 8;
const MOST_BLOCKS: usize = 200;

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
    /// What to do, and what that is based on.
    pub hints: Vec<Hint>,
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
    /// Which of them moved for sure, the one that moved most.
    pub moved: Option<Factor>,
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
        /// Samples behind it.
        samples: u64,
    },
    /// It grows, with evidence.
    Grows {
        /// By how much over the time.
        growth: Change,
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

/// Sums over the callsite's blocks.
#[derive(Debug, Default)]
struct Sums {
    sizes: FxHashMap<u32, (Total, Total)>,
    threads: FxHashMap<ThreadId, Total>,
    born: Total,
    by_realloc: Total,
    otherwise: Total,
    freed: Total,
    elsewhere: Total,
    /// By half: born in it, and in use at its end.
    halves: [(Total, Total); 2],
    ages: FxHashMap<u16, f64>,
    deaths: u64,
}

/// One callsite closely, as far as `filter` takes it; `None` where it has no callstacks, or
/// nothing is known of the moment.
#[must_use]
pub fn details(session: &Session, when: When, key: NodeKey, filter: &str) -> Option<Details> {
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
    let question = Question { when, growth_from_ns: Some(from), ..Question::default() };
    let numbers = Numbers::ask(session, &question, &selection);
    let mut table = survival::Table::default();
    let row = super::rows::Rows::of(session, super::Grouping::Callsite);
    let lived = numbers.lived(&row, group, true, &mut table);
    let mut of_row = numbers.of_rows(&row, &[group]);
    let mut sums_of_row = of_row.pop()?;
    sums_of_row.grew = match numbers.growth_sight() {
        Some(sight) => {
            family::grew([(&sums_of_row.gained, &sums_of_row.lost)].into_iter(), sight)[0]
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
    let only = numbers.only();
    let at = session.bounds(when);
    let chosen = |one: &Seen| only.as_ref().is_none_or(|only| only.takes(one, &at));
    let (sums, living, blocks_len) = blocks(session, group, &members, times, (&at, &chosen));
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
    let hints =
        if lives { hints(session, &figures, &sums, grown.as_ref(), sight) } else { Vec::new() };
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
        from_ns: from,
        to_ns: to,
    })
}

/// One pass over the callsite's blocks: sums, the living, the oldest first, and how many
/// there are.
fn blocks<'a>(
    session: &'a Session,
    group: u32,
    members: &[bool],
    times: [u64; 3],
    (at, chosen): (&Bounds, &impl Fn(&Seen) -> bool),
) -> (Sums, Vec<(BlockId, &'a Block)>, usize) {
    let mine = |stack: u32| members.get(stack as usize).is_some_and(|mine| *mine);
    let mut sums = Sums::default();
    let mut add = |life: &Life| {
        if !mine(life.stack) || !chosen(&Seen::life(life)) {
            return;
        }
        let w = life.weight();
        let one = One {
            born_us: life.born_us,
            ended_us: life.ended_us,
            size: life.size,
            thread: life.thread,
            cause: life.cause,
        };
        sums.add(&one, &w, times);
        if life.ended_us <= times[2] && life.end.is_death() {
            *sums.ages.entry(life.age / 8).or_default() += w.objects;
            sums.deaths += 1;
            if matches!(life.end, End::Freed | End::FreedElsewhere) {
                sums.freed.add(&w);
                if life.end == End::FreedElsewhere {
                    sums.elsewhere.add(&w);
                }
            }
        }
    };
    if let Some(lives) = session.lives_of(group) {
        let within = |l: &&Life| l.ended_us > times[0] && l.born_us <= times[2];
        lives.iter().filter(within).for_each(add);
    } else {
        let lives = session.lives_over().of_within(0, times[0], times[2], mine);
        lives.for_each(|life| add(&life));
    }
    let mut living: Vec<(BlockId, &Block)> = Vec::new();
    for (id, block) in session.live_blocks_of(mine) {
        let born_us = block.born_ns / 1000;
        if born_us > times[2] || !chosen(&Seen::living(block, at)) {
            continue;
        }
        let one = One {
            born_us,
            ended_us: u64::MAX,
            size: block.size,
            thread: block.thread,
            cause: block.cause,
        };
        sums.add(&one, &block.weight(), times);
        living.push((id, block));
    }
    let blocks_len = living.len();
    living.sort_unstable_by_key(|(id, block)| (block.born_ns, *id));
    living.truncate(MOST_BLOCKS);
    (sums, living, blocks_len)
}

/// A block, dead or alive.
struct One {
    born_us: u64,
    ended_us: u64,
    size: u64,
    thread: ThreadId,
    cause: Cause,
}

impl Sums {
    fn add(&mut self, one: &One, w: &Weight, [from, middle, to]: [u64; 3]) {
        let sizes = self.sizes.entry(size_class(one.size)).or_default();
        let alive = |at: u64| one.born_us <= at && at < one.ended_us;
        if alive(to) {
            sizes.0.add(w);
            self.halves[1].1.add(w);
        }
        if alive(middle) {
            self.halves[0].1.add(w);
        }
        if one.born_us > from && one.born_us <= to {
            sizes.1.add(w);
            self.born.add(w);
            self.threads.entry(one.thread).or_default().add(w);
            let by = if one.cause == Cause::Realloc {
                &mut self.by_realloc
            } else {
                &mut self.otherwise
            };
            by.add(w);
            self.halves[usize::from(one.born_us > middle)].0.add(w);
        }
    }

    fn sizes(&self, sight: Sight) -> Vec<SizeRow> {
        let mut classes: Vec<_> = self.sizes.iter().collect();
        classes.sort_unstable_by_key(|(class, _)| **class);
        classes
            .into_iter()
            .map(|(&class, (in_use, born))| SizeRow {
                above: if class == 0 { 0 } else { 1u64 << (class - 1) },
                to: 1u64.checked_shl(class).unwrap_or(u64::MAX),
                in_use_bytes: estimate::bytes(in_use, sight),
                allocated_bytes: estimate::bytes(born, sight),
            })
            .collect()
    }

    fn threads(&self, session: &Session) -> Vec<ThreadPart> {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_unstable_by_key(|(id, total)| (Reverse(total.bytes.sum.to_bits()), **id));
        threads.truncate(MOST_THREADS);
        let of = |(id, total): (&ThreadId, &Total)| ThreadPart {
            name: thread_name(session, *id),
            share: estimate::share(total, &self.born),
        };
        threads.into_iter().map(of).collect()
    }

    /// By octave.
    fn ages(&self) -> Vec<(f64, f64)> {
        let mut ages: Vec<_> = self.ages.iter().collect();
        ages.sort_unstable_by_key(|(octave, _)| **octave);
        let all: f64 = ages.iter().map(|(_, w)| **w).sum();
        ages.into_iter()
            .map(|(&octave, w)| (survival::begins((usize::from(octave) + 1) * 8), w / all))
            .collect()
    }
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

fn factors(sums: &Sums, sight: Sight, [from, middle, to]: [u64; 3]) -> Option<Factors> {
    let seconds = [(middle - from) as f64 / 1e9, (to - middle) as f64 / 1e9];
    if seconds.iter().any(|s| *s <= 0.0) {
        return None;
    }
    let of = |half: usize| {
        let (born, in_use) = &sums.halves[half];
        let rate = estimate::per_second(estimate::objects(born, sight), seconds[half]);
        let living = estimate::objects(in_use, sight);
        let bytes = estimate::bytes(in_use, sight);
        let stay = match estimate::quotient(living, rate, in_use.n.min(born.n)) {
            Estimate::Interval { value, low, high, samples } => {
                Estimate::Interval { value: value * 1e9, low: low * 1e9, high: high * 1e9, samples }
            }
            Estimate::Exact { value } => Estimate::Exact { value: value * 1e9 },
            other => other,
        };
        (rate, stay, mean_size(in_use, bytes))
    };
    let (a, b) = (of(0), of(1));
    let moved = [(Factor::Rate, a.0, b.0), (Factor::Stay, a.1, b.1), (Factor::Size, a.2, b.2)]
        .into_iter()
        .filter_map(|(factor, a, b)| {
            let ((la, va, ha), (lb, vb, hb)) = (estimate::ends(a)?, estimate::ends(b)?);
            let apart = hb < la || ha < lb;
            (apart && va > 0.0 && vb > 0.0).then(|| (factor, (vb / va).ln().abs()))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(factor, _)| factor);
    Some(Factors {
        rate: [a.0, b.0],
        stay_ns: [a.1, b.1],
        size: [a.2, b.2],
        moved,
        middle_ns: middle,
    })
}

/// Bytes a block of what is in use. Both come from the same samples: the interval is that of
/// bytes at most.
fn mean_size(in_use: &Total, bytes: Estimate) -> Estimate {
    if in_use.n == 0 || in_use.objects.sum <= 0.0 {
        return Estimate::Unknown;
    }
    let value = in_use.bytes.sum / in_use.objects.sum;
    match bytes {
        Estimate::Exact { .. } => Estimate::Exact { value },
        Estimate::Interval { value: b, low, high, samples } if b > 0.0 => {
            Estimate::Interval { value, low: value * low / b, high: value * high / b, samples }
        }
        _ => Estimate::Unknown,
    }
}

/// From this share on that is sure a hint is given.
const MOST_DIE_YOUNG: f64 = 0.9;
const MUCH_REALLOC: f64 = 0.25;
const HALF: f64 = 0.5;
/// Of fewer samples nothing is said.
const LEAST_SAMPLES: u64 = 5;
/// Less churn than this part of the target's is not worth a word.
const WORTH: f64 = 0.02;

fn hints(
    session: &Session,
    figures: &Figures,
    sums: &Sums,
    grown: Option<&Grown>,
    sight: Sight,
) -> Vec<Hint> {
    let mut hints = Vec::new();
    if figures.grew {
        let growth = figures.growth;
        let samples = match growth {
            Change::Interval { samples, .. }
            | Change::AtLeast { samples, .. }
            | Change::AtMost { samples, .. } => samples,
            Change::Unknown | Change::Exact { .. } => sums.born.n,
        };
        hints.push(Hint::Grows { growth, samples });
    }
    let of_all = session.allocated_rate().point().unwrap_or(0.0);
    let churns = figures.allocated_rate.point().is_some_and(|rate| rate > of_all * WORTH);
    if let Ratio::Interval { low, samples, .. } = figures.short_lived
        && low >= MOST_DIE_YOUNG
        && churns
    {
        let (share, rate) = (figures.short_lived, figures.allocated_rate);
        hints.push(Hint::DiesYoung { share, rate, samples });
    }
    let realloc = estimate::share(&sums.by_realloc, &sums.born);
    if let Ratio::Interval { low, samples, .. } = realloc
        && low >= MUCH_REALLOC
        && let Some(grown) = grown
    {
        let (each, largest) = (grown.each, grown.largest);
        hints.push(Hint::Ladder { share: realloc, each, largest, samples });
    }
    let elsewhere = estimate::share(&sums.elsewhere, &sums.freed);
    if let Ratio::Interval { low, samples, .. } = elsewhere
        && low >= HALF
    {
        hints.push(Hint::FreedElsewhere { share: elsewhere, samples });
    }
    hints.retain(|hint| match *hint {
        Hint::Grows { samples, .. }
        | Hint::DiesYoung { samples, .. }
        | Hint::Ladder { samples, .. }
        | Hint::FreedElsewhere { samples, .. } => samples >= LEAST_SAMPLES,
    });
    // Births that were lost may have been others.
    if sight.lost { Vec::new() } else { hints }
}
