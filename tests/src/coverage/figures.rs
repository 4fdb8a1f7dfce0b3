//! The figures that are judged: what the viewer claims, and what is true.
//!
//! Those of the allocation clock and of shares are read ten seconds after the start,
//! over all that happened; those of a window, of the heap and of growth at the end.

use super::claim::Claim;
use super::program::{MAX_YOUNG_BYTES, Program, SECOND_NS, SECONDS, WINDOW};
use heaptop::query::{self, Figures, Question, When};
use heaptop::session::Session;
use heaptop::session::estimate::forecast::forecast;
use heaptop_agent::simulate::Target;

/// The rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Bytes allocated in the window of rates.
    AllocatedBytes,
    /// Objects allocated in it.
    AllocatedObjects,
    /// Bytes in use.
    InUseBytes,
    /// Objects in use.
    InUseObjects,
    /// Bytes in use after R was doubled and all blocks were thinned.
    Thinned,
    /// Bytes in use two seconds before the end, asked about at the end.
    InUseThen,
    /// Growth in bytes over 22 seconds.
    Growth,
    /// The same over other 22 seconds, which have passed.
    GrowthThen,
    /// How long growth goes on until it has come to a limit.
    Forecast,
    /// Bytes in use less those of another recording.
    Difference,
    /// Promoted share of minor bytes.
    Promoted,
    /// The rest of them.
    ShortLived,
    /// Median lifetime in time, by objects.
    Median,
    /// Share of minor bytes that live 4 N of allocation.
    Survival,
    /// Mean life of a minor byte on the allocation clock, 8 N at most.
    MeanLife,
    /// Promotion rate at half of the nursery.
    HalfNursery,
    /// At four times the nursery.
    FourNurseries,
    /// At sixteen times: longer than anybody was followed.
    SixteenNurseries,
}

impl Figure {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 18] = [
        Self::AllocatedBytes,
        Self::AllocatedObjects,
        Self::InUseBytes,
        Self::InUseObjects,
        Self::Thinned,
        Self::InUseThen,
        Self::Growth,
        Self::GrowthThen,
        Self::Forecast,
        Self::Difference,
        Self::Promoted,
        Self::ShortLived,
        Self::Median,
        Self::Survival,
        Self::MeanLife,
        Self::HalfNursery,
        Self::FourNurseries,
        Self::SixteenNurseries,
    ];

    /// Whether it is widened by the blur of the allocation clock.
    #[must_use]
    pub const fn is_blurred(self) -> bool {
        matches!(self, Self::HalfNursery | Self::FourNurseries | Self::SixteenNurseries)
    }

    /// What the table calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllocatedBytes => "allocated, bytes",
            Self::AllocatedObjects => "allocated, objects",
            Self::InUseBytes => "in use, bytes",
            Self::InUseObjects => "in use, objects",
            Self::Thinned => "in use, thinned",
            Self::InUseThen => "in use at a cursor",
            Self::Growth => "growth",
            Self::GrowthThen => "growth of a range",
            Self::Forecast => "forecast",
            Self::Difference => "difference",
            Self::Promoted => "promoted",
            Self::ShortLived => "short-lived",
            Self::Median => "median lifetime",
            Self::Survival => "survival to 4 N",
            Self::MeanLife => "mean life to 8 N",
            Self::HalfNursery => "what if N/2",
            Self::FourNurseries => "what if 4 N",
            Self::SixteenNurseries => "what if 16 N",
        }
    }
}

/// A claim beside the truth.
pub type Judged = (Figure, Option<Claim>, f64);

/// The figures of the one callsite that there is.
#[must_use]
pub fn shown(session: &Session) -> Option<Figures> {
    let table = query::callsites(session, &Question::default());
    table.rows.into_iter().next().map(|row| row.figures)
}

/// The figures of the one callsite at another moment, or over a stretch of time.
#[must_use]
pub fn shown_of(session: &Session, when: When) -> Option<Figures> {
    let table = query::callsites(session, &Question { when, ..Question::default() });
    table.rows.into_iter().next().map(|row| row.figures)
}

/// When growth begins, in seconds.
const GROWS_FROM: usize = 4;
/// Where the cursor stands.
const CURSOR: usize = SECONDS - 2;

/// Judges shares and lives, ten seconds after the start at G = `start`.
pub fn lives(program: &Program, session: &Session, target: &Target, start: u64) -> Vec<Judged> {
    let shown = shown(session);
    let born = 0..program.at_second(WINDOW);
    let n = program.nursery_bytes();
    let minor = |size: u32| u64::from(size) <= MAX_YOUNG_BYTES;

    // Cycles by the program's own clock. A block is judged when its cycle is over.
    let nursery = target.nursery();
    let now = nursery.cycle(start + program.clock[born.end]);
    let cycle_at =
        |block: usize| nursery.cycle(start + program.clock[block.min(program.blocks.len())]);
    let completed = |i: usize, size: u32| minor(size) && cycle_at(i) < now;
    let whole = program
        .sum(born.clone(), |i, b| if completed(i, b.size) { f64::from(b.size) } else { 0.0 });
    let promoted = program.sum(born.clone(), |i, b| {
        let survived = cycle_at(b.dies_before as usize) > cycle_at(i);
        if completed(i, b.size) && survived { f64::from(b.size) } else { 0.0 }
    });
    let promoted = promoted / whole;

    let mut ages: Vec<u64> =
        program.blocks[born.clone()].iter().map(|b| b.dies_ns - b.born_ns).collect();
    let middle = ages.len() / 2;
    let median = if ages.is_empty() { 0 } else { *ages.select_nth_unstable(middle).1 };

    let bytes =
        program.sum(born.clone(), |_, b| if minor(b.size) { f64::from(b.size) } else { 0.0 });
    let mean = |of: &dyn Fn(f64) -> f64| {
        program.sum(born.clone(), |i, b| {
            if minor(b.size) { f64::from(b.size) * of(program.life_bytes(i) as f64) } else { 0.0 }
        }) / bytes
    };
    let at = |times: f64| {
        let n = n as f64 * times;
        mean(&move |life: f64| (life / n).min(1.0))
    };
    let lives = session.minor_lives(|_| true);
    let if_n = |times: f64| Claim::of_followed(lives.at((n as f64 * times) as u64));
    let (four, eight) = (n as f64 * 4.0, n as f64 * 8.0);
    let ratio = |of: fn(&Figures) -> heaptop::session::figures::Ratio| {
        shown.as_ref().and_then(|figures| Claim::of_ratio(of(figures)))
    };
    vec![
        (Figure::Promoted, ratio(|f| f.promoted), promoted),
        (Figure::ShortLived, ratio(|f| f.short_lived), 1.0 - promoted),
        (
            Figure::Median,
            shown.as_ref().and_then(|f| Claim::of_lifetime(f.lifetime)),
            median as f64,
        ),
        (
            Figure::Survival,
            Claim::of_followed(lives.curve.survival(four)),
            mean(&move |life: f64| if life > four { 1.0 } else { 0.0 }),
        ),
        (
            Figure::MeanLife,
            Claim::of_followed(lives.curve.restricted_mean(eight)),
            mean(&move |life: f64| life.min(eight)),
        ),
        (Figure::HalfNursery, if_n(0.5), at(0.5)),
        (Figure::FourNurseries, if_n(4.0), at(4.0)),
        (Figure::SixteenNurseries, if_n(16.0), at(16.0)),
    ]
}

/// Judges the heap, the window and growth, at the end.
pub fn heap(program: &Program, session: &Session, thinned: &Session) -> Vec<Judged> {
    let end_ns = SECONDS as u64 * SECOND_NS;
    let shown = shown(session);
    let claim = |of: fn(&Figures) -> heaptop::session::figures::Estimate| {
        shown.as_ref().and_then(|figures| Claim::of_estimate(of(figures)))
    };
    let course = session.course();
    let window = course.rate_steps().since_ns().map_or(0, |since| (since / SECOND_NS) as usize);
    let seconds = (SECONDS - window) as f64;
    let window = program.at_second(window)..program.blocks.len();
    let all = 0..program.blocks.len();
    let size = |b: &super::program::Block| f64::from(b.size);
    let alive = |b: &super::program::Block, ns: u64| b.born_ns <= ns && ns < b.dies_ns;
    let in_use = in_use(program);
    let from_ns = GROWS_FROM as u64 * SECOND_NS;
    let in_use_at =
        |ns: u64| program.sum(all.clone(), |_, b| size(b) * f64::from(u8::from(alive(b, ns))));
    let grown = in_use_at(end_ns) - in_use_at(from_ns);
    let then_ns = CURSOR as u64 * SECOND_NS;
    let before_ns = from_ns - (end_ns - then_ns);
    let then = shown_of(session, When::At(then_ns));
    // A limit that is as far away as the heap is large: what is left is no estimate.
    let (left, growing) = (in_use, (SECONDS - GROWS_FROM) as f64);
    let soon = forecast(session.growth(from_ns, end_ns, |_| true), growing, left);
    let range = shown_of(session, When::Range { from_ns: before_ns, to_ns: then_ns });
    vec![
        (
            Figure::AllocatedBytes,
            claim(|f| f.allocated_rate).map(|claim| claim.times(seconds)),
            program.sum(window.clone(), |_, b| size(b)),
        ),
        (
            Figure::AllocatedObjects,
            claim(|f| f.object_rate).map(|claim| claim.times(seconds)),
            window.len() as f64,
        ),
        (Figure::InUseBytes, claim(|f| f.in_use_bytes), in_use),
        (
            Figure::InUseObjects,
            claim(|f| f.in_use_objects),
            program.sum(all.clone(), |_, b| f64::from(u8::from(alive(b, end_ns)))),
        ),
        (
            Figure::Thinned,
            self::shown(thinned).and_then(|f| Claim::of_estimate(f.in_use_bytes)),
            in_use,
        ),
        (
            Figure::InUseThen,
            then.and_then(|f| Claim::of_estimate(f.in_use_bytes)),
            in_use_at(then_ns),
        ),
        (Figure::Growth, Claim::of_change(session.growth(from_ns, end_ns, |_| true)), grown),
        (Figure::Forecast, Some(Claim::of_forecast(soon)), left * growing / grown.max(0.0)),
        (
            Figure::GrowthThen,
            range.and_then(|f| Claim::of_change(f.growth)),
            in_use_at(then_ns) - in_use_at(before_ns),
        ),
    ]
}

/// Bytes in use at the end.
#[must_use]
pub fn in_use(program: &Program) -> f64 {
    let end_ns = SECONDS as u64 * SECOND_NS;
    program.sum(
        0..program.blocks.len(),
        |_, b| {
            if end_ns < b.dies_ns { f64::from(b.size) } else { 0.0 }
        },
    )
}
