//! Whose block a hit is: the stream's, a profile's, both's, nobody's.

use super::Profiles;
use super::claim::{BORN, CLAIMED, Frames, HELD, LEDGER, MAJOR, ONLY, QUEUED, RUNNING, YOUNG};
use super::core::{Core, Phase, What};
use crate::engine::domain::{Domain, Hit};
use crate::engine::sync::Ordering::{Relaxed, Release};
use crate::engine::tracker::Birth;
use crate::engine::unwind::{Captured, End};
use crate::engine::{Engine, floats};
use heaptop_protocol::estimate::Interval;
use std::cell::Cell;

/// What falls to whom.
pub struct Shares<'a> {
    /// Samples of the stream's, with the R that they stand for.
    pub stream: Option<(u64, Interval)>,
    /// The profile's.
    pub profile: Option<Share<'a>>,
}

/// A profile's share.
pub struct Share<'a> {
    core: &'a Core,
    place: u32,
    generation: u32,
    n_samples: u64,
    lambda: f64,
    depth: usize,
    frames: Cell<Option<Frames>>,
}

impl<'a> Shares<'a> {
    /// All is the stream's.
    pub const fn stream(hit: Hit) -> Self {
        Self { stream: Some((hit.n_samples, hit.interval)), profile: None }
    }

    /// Divides a hit of domain `d`.
    #[cold]
    #[inline(never)]
    pub fn of(engine: &'a Engine, d: &Domain, hit: Hit) -> Self {
        floats::apart(|| Self::divide(engine, d, hit))
    }

    fn divide(engine: &'a Engine, d: &Domain, hit: Hit) -> Self {
        // λ of the countdown may be below what a client wants by now, for the domain has
        // not looked since: then the client has all, at that λ.
        let r = f64::from(hit.interval.bytes());
        let stream = engine.rate().interval.and_then(|own| {
            if own <= hit.interval {
                return Some((hit.n_samples, hit.interval));
            }
            let n = d.thin(hit.n_samples, r / f64::from(own.bytes()));
            (n > 0).then_some((n, own))
        });
        Self { stream, profile: engine.profiles().and_then(|p| p.share(d, hit, r)) }
    }

    /// Most frames that anybody wants.
    pub fn depth(&self, streams: usize) -> usize {
        let profiles = self.profile.as_ref().map_or(0, |share| share.depth);
        self.stream.map_or(0, |_| streams).max(profiles)
    }

    /// Keeps what the profile wants of the callstack, on the thread of domain `d`.
    pub fn keep(&self, engine: &Engine, d: &Domain, stack: &Captured<'_>) {
        if let Some(share) = &self.profile {
            // What is allocated for it must not be counted off the gap that the block's
            // stop has just drawn.
            d.outside(engine, || share.keep(stack));
        }
    }
}

impl Profiles {
    fn share(&self, d: &Domain, hit: Hit, r: f64) -> Option<Share<'_>> {
        if d.is_suspended() {
            return None;
        }
        let token = self.of_domain(d)?;
        let core = self.core(token)?;
        let terms = core.terms();
        let n_samples = d.thin(hit.n_samples, terms.lambda * r);
        if n_samples == 0 || !core.hold(token.generation()) {
            return None;
        }
        let place = token.place()? as u32;
        if core.phase() != Phase::Sampling {
            self.release(place);
            return None;
        }
        let lambda = terms.lambda.min(hit.interval.lambda());
        let (generation, depth) = (token.generation(), terms.depth);
        Some(Share { core, place, generation, n_samples, lambda, depth, frames: Cell::new(None) })
    }

    /// Tracks a block of a profile's, and of the stream's if `streams`, and has its
    /// allocation callback run, or wait. The calling thread is in the engine, and `d`
    /// its domain.
    pub fn birth(
        &self,
        engine: &Engine,
        d: &Domain,
        share: &Share<'_>,
        birth: &Birth,
        streams: bool,
    ) {
        let core = share.core;
        let (terms, generation) = (core.terms(), share.generation);
        let held = terms.what == What::Major && birth.young;
        if !held {
            core.counts.sampled.fetch_add(1, Relaxed);
        }
        let here = !terms.prompt || held || terms.unwinding || !std::thread::panicking();
        let room = streams || self.only.load(Relaxed) < self.most_only;
        let index = if room && here {
            let first = match (held, terms.prompt) {
                (true, _) => HELD,
                (_, true) => BORN | RUNNING,
                (_, false) => BORN | QUEUED,
            };
            engine.tracker.birth_with(
                birth,
                streams,
                |index| self.fill(index, share, birth, streams, first),
                |index| self.empty(index, streams),
            )
        } else if streams {
            // A callback that cannot run where it must is dropped; the stream's block is
            // not.
            engine.tracker.birth(birth);
            None
        } else {
            None
        };
        let Some(index) = index else {
            if !held {
                core.counts.dropped.fetch_add(1, Relaxed);
            }
            self.release(share.place);
            return;
        };
        if birth.young {
            self.push_young(core, index);
        }
        let Some(claim) = self.claim(index) else { return };
        // Marked as what it is from the beginning on. It holds the core.
        if held {
            self.settle(engine, index);
        } else if terms.prompt {
            self.run_out(engine, d, index, claim);
        } else {
            self.queue(index, claim);
        }
        // A discard that came meanwhile has not seen it.
        if engine.is_here() && core.hold(generation) {
            if core.phase_now() == Phase::Discarded {
                self.discard_claim(engine, d, index, share.place);
                self.drain(engine, d, core);
            }
            self.release(share.place);
        }
    }

    fn fill(&self, index: u32, share: &Share<'_>, birth: &Birth, streams: bool, first: u32) {
        let Some(claim) = self.claim(index) else { return };
        self.only.fetch_add(u32::from(!streams), Relaxed);
        claim.place.store(share.place, Relaxed);
        claim.data.store(std::ptr::null_mut(), Relaxed);
        claim.lambda.store(share.lambda.to_bits(), Relaxed);
        claim.n_samples.store(share.n_samples, Relaxed);
        claim.set_frames(share.frames.take());
        let state = CLAIMED
            | first
            | if streams { LEDGER } else { ONLY }
            | if birth.young { YOUNG } else { MAJOR };
        // Partner: the Acquire loads of who runs it.
        claim.state.store(state | claim.next_version(), Release);
    }

    /// The block found no room.
    fn empty(&self, index: u32, streams: bool) {
        let Some(claim) = self.claim(index) else { return };
        claim.drop_frames();
        claim.state.store(claim.next_version(), Relaxed);
        self.only.fetch_sub(u32::from(!streams), Relaxed);
    }
}

impl Share<'_> {
    fn keep(&self, stack: &Captured<'_>) {
        let len = stack.len().min(self.depth);
        let mut frames: Vec<usize> = Vec::new();
        // The program's memory may be at its end: then the stack is not known.
        if len == 0 || frames.try_reserve_exact(len).is_err() {
            return;
        }
        frames.extend(stack.frames().take(len).map(|pc| pc as usize));
        frames.reverse();
        let end = match stack.end {
            _ if len < stack.len() => 1,
            End::Truncated => 1,
            End::NoUnwindInfo => 2,
            End::Complete => 0,
        };
        self.frames.set(Some(Frames { frames: frames.into_boxed_slice(), end }));
    }
}
