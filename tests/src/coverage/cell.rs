//! One cell: many runs of one shape, each seen by two agents.
//!
//! The second agent samples twice as finely and is thinned at the end, so that its
//! figures rest on as many samples as the first's.

use super::Shape;
use super::claim::Claim;
use super::figures::{self, Figure, Judged};
use super::program::{MAX_YOUNG_BYTES, Program, SECOND_NS, SECONDS, WINDOW, interval};
use super::random::Random;
use heaptop::session::estimate::{Sight, change};
use heaptop::session::{Input, Session};
use heaptop_agent::simulate::{Plan, Target, Thread};
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::totals::Total;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How the claims of one figure did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs in which something was claimed.
    pub claims: u32,
    /// Those in which it was right.
    pub right: u32,
    /// Those in which it was a bound.
    pub bounds: u32,
    /// Those in which the truth lay below the lower end.
    pub below: u32,
}

impl Tally {
    fn count(&mut self, claim: Option<Claim>, truth: f64) {
        let Some(claim) = claim else { return };
        self.claims += 1;
        self.right += u32::from(claim.holds(truth));
        self.bounds += u32::from(claim.bound);
        self.below += u32::from(!claim.holds(truth) && truth < claim.low);
    }

    /// The share of claims that were right; `None` where hardly any was made.
    #[must_use]
    pub fn coverage(&self, runs: u32) -> Option<f64> {
        (self.claims * 10 >= runs).then(|| f64::from(self.right) / f64::from(self.claims))
    }

    /// Whether most claims were bounds.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        self.bounds * 2 > self.claims
    }
}

/// What came out of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Of what.
    pub shape: Shape,
    /// By figure, in the order of [`Figure::ALL`].
    pub tallies: Vec<Tally>,
    /// Runs made.
    pub runs: u32,
}

/// An agent that watches, with what it has to free and the viewer that hears it.
struct Watch {
    target: Target,
    threads: [Thread; 4],
    /// Sampled blocks: before which block they die, which they are, where they lie.
    living: BinaryHeap<Reverse<(u32, u32, usize)>>,
    finer: u64,
    session: Box<Session>,
}

impl Watch {
    fn new(shape: Shape, program: &Program, finer: u64, seed: u64) -> Option<Self> {
        let target = Target::new(&Plan {
            seed,
            interval: interval(finer),
            nursery_bytes: program.nursery_bytes(),
            max_young_bytes: MAX_YOUNG_BYTES,
        })?;
        let watch = Self {
            target,
            threads: [const { Thread::new() }; 4],
            living: BinaryHeap::new(),
            finer,
            session: Box::new(Session::new()),
        };
        watch.target.set_interval(interval(finer * shape.condition.finer(0)));
        Some(watch)
    }

    fn hear(&mut self, messages: Vec<FromAgent>) {
        for message in messages {
            self.session.apply(Input::Agent(message));
        }
    }

    fn begin(&mut self, shape: Shape, random: &mut Random) {
        self.target.set_interval(interval(self.finer * shape.condition.finer(0)));
        // Runs begin anywhere in a cycle.
        self.target.pass_by((random.unit() * self.target.nursery().bytes as f64) as u64);
        *self.session = Session::new();
        let greeting = self.target.greeting(0);
        self.hear(greeting);
        self.report(0);
    }

    /// Frees what dies before block number `next`.
    fn free(&mut self, program: &Program, next: u32) {
        while let Some(&Reverse((before, block, address))) = self.living.peek() {
            if before > next {
                break;
            }
            self.living.pop();
            let block = &program.blocks[block as usize];
            let thread = &self.threads[usize::from(block.freed_by)];
            self.target.free(thread, address, block.dies_ns);
        }
    }

    #[inline]
    fn alloc(&mut self, program: &Program, at: usize) {
        let block = &program.blocks[at];
        let thread = &self.threads[usize::from(block.by)];
        if let Some(address) = self.target.alloc(thread, block.size as usize, block.born_ns) {
            self.living.push(Reverse((block.dies_before, at as u32, address)));
        }
    }

    fn report(&mut self, second: usize) {
        let messages = self.target.report(second as u64 * SECOND_NS);
        self.hear(messages);
    }

    fn end(&mut self, program: &Program) {
        self.free(program, u32::MAX);
        self.target.discard();
    }
}

/// What of a run is compared with the next one.
#[derive(Clone, Copy)]
struct Recording {
    in_use: Total,
    sight: Sight,
    truth: f64,
}

/// Runs a cell; `None` where the system has no memory for its agents.
#[must_use]
pub fn run(shape: Shape, runs: u32, seed: u64) -> Option<Outcome> {
    run_bent(shape, runs, seed, |claim| claim)
}

/// Runs a cell whose claims are `bent` before they are judged: what must miss.
#[must_use]
pub fn run_bent(
    shape: Shape,
    runs: u32,
    seed: u64,
    bent: impl Fn(Claim) -> Claim,
) -> Option<Outcome> {
    let seed = shape.seed(seed);
    let mut random = Random(seed);
    let mut program = Program::new(shape);
    let mut watches =
        [Watch::new(shape, &program, 1, seed)?, Watch::new(shape, &program, 2, !seed)?];
    let mut outcome = Outcome { shape, tallies: vec![Tally::default(); Figure::ALL.len()], runs };
    let mut last = None;
    for _ in 0..runs {
        program.draw(&mut random);
        let (judged, recording) = once(shape, &program, &mut watches, &mut random);
        let difference = last.map(|last| differ(&recording, &last));
        last = Some(recording);
        for (figure, claim, truth) in judged.into_iter().chain(difference) {
            // A share of nothing has no truth.
            if truth.is_finite() {
                outcome.tallies[figure as usize].count(claim.map(&bent), truth);
            }
        }
    }
    Some(outcome)
}

/// One run.
fn once(
    shape: Shape,
    program: &Program,
    watches: &mut [Watch; 2],
    random: &mut Random,
) -> (Vec<Judged>, Recording) {
    for watch in &mut *watches {
        watch.begin(shape, random);
    }
    let start = watches[0].target.clock();
    let mut judged = Vec::new();
    for second in 0..SECONDS {
        let blocks = program.at_second(second)..program.at_second(second + 1);
        for watch in &mut *watches {
            watch.target.set_interval(interval(watch.finer * shape.condition.finer(second)));
            for at in blocks.clone() {
                watch.free(program, at as u32);
                watch.alloc(program, at);
            }
            watch.free(program, blocks.end as u32);
            if second + 1 == SECONDS && watch.finer > 1 {
                watch.report(second + 1);
                watch.target.thin(interval(shape.condition.thinned_to()));
            }
            watch.report(second + 1);
        }
        if second + 1 == WINDOW {
            let [watch, _] = &*watches;
            judged.extend(figures::lives(program, &watch.session, &watch.target, start));
        }
    }
    let [watch, thinned] = watches;
    judged.extend(figures::heap(program, &watch.session, &thinned.session));
    let recording = Recording {
        in_use: watch.session.status().map_or(Total::default(), |status| status.totals.in_use),
        sight: watch.session.course().sight(),
        truth: figures::in_use(program),
    };
    watch.end(program);
    thinned.end(program);
    (judged, recording)
}

fn differ(now: &Recording, before: &Recording) -> Judged {
    let change = change::difference((&now.in_use, now.sight), (&before.in_use, before.sight));
    (Figure::Difference, Claim::of_change(change), now.truth - before.truth)
}
