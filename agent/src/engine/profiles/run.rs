//! Events of a claim, and the callbacks they bring.
//!
//! Whoever notices an event sets its bit and in the same step becomes the runner, or has
//! the claim queued. Who finds it running leaves: the runner does not give up its bit
//! while anything is due, for it does so by a compare-and-swap on a word without due
//! bits. Behind that step a claim is touched by its runner, and by who takes it off a
//! list, alone: it may have ended, and its place be another block's.
//!
//! A runner is in the engine, and its countdown is suspended while a callback runs: what
//! a callback allocates is neither sampled nor counted off the gap, which would make the
//! next gap shorter than it may be.
//!
//! A callback may fork. Then the child comes back here too, with a copy of the claims and
//! perhaps of a lock that a thread held which the child has not. So behind each callback
//! the fork mark is looked at before anything else is: the child runs no further callback,
//! takes no lock, and leaves entries as they are.

use super::claim::{
    BORN, CLAIMED, CLOSED, Claim, DEATH, DISCARD, DUE, DYING, FREED, HELD, LEDGER, LOST, MAJOR,
    ONLY, PROMOTE, PROMOTED, QUEUED, RUNNING, VERSIONS, YOUNG,
};
use super::core::{Answer, Birth, Core, Data, Phase, What, lock};
use super::{Profiles, Token};
use crate::engine::Engine;
use crate::engine::domain::Domain;
use crate::engine::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::engine::tracker::{Death, Taken};

/// So many that wait are seen to at one stop.
const A_STOP: usize = 16;

impl Profiles {
    fn core_of(&self, claim: &Claim) -> Option<&Core> {
        self.core_at(claim.place.load(Relaxed))
    }

    /// A tracked block is being freed, or is lost from sight. `d` is the calling
    /// thread's domain.
    pub fn death(
        &self,
        engine: &Engine,
        d: &Domain,
        taken: Taken,
        lost: bool,
        when: impl FnOnce() -> Death,
    ) {
        let index = taken.index();
        let before = self.claim(index).map_or(0, |claim| claim.state.fetch_or(DYING, AcqRel));
        let Some(claim) = self.claim(index).filter(|_| before & CLAIMED != 0) else {
            if let Some(claim) = self.claim(index) {
                // The stream's alone: its word is to be as the stream's books know it.
                claim.state.fetch_and(!DYING, Relaxed);
            }
            engine.tracker.death(taken, when);
            return;
        };
        let Some(core) = self.core_of(claim) else { return };
        let born = engine.tracker.birth_of(index);
        let died = engine.tracker.die(taken, before & ONLY == 0, when);
        let survived = born.zip(died).is_some_and(|(b, died)| {
            b.young && engine.nursery.cycle(died.clock) > engine.nursery.cycle(b.clock)
        });
        let promoted = if survived && before & PROMOTED == 0 { PROMOTE | PROMOTED } else { 0 };
        let how = if lost { LOST } else { DEATH };
        if before & YOUNG != 0 {
            core.young_dead.fetch_add(1, Relaxed);
        }
        let here = core.terms().prompt && may_run(d);
        self.raise(engine, d, index, claim, here, |state| Some(state | how | FREED | promoted));
    }

    /// Something has happened to a claim, as `event` says of its word; `None`: it has not
    /// after all. Its callbacks run here, or wait for who comes for them. False for
    /// `None`.
    ///
    /// In one step with the event the claim becomes running or queued, if it is neither:
    /// so it cannot end, and be another block's, before it is seen to.
    pub fn raise(
        &self,
        engine: &Engine,
        d: &Domain,
        index: u32,
        claim: &Claim,
        here: bool,
        event: impl Fn(u32) -> Option<u32>,
    ) -> bool {
        let mut state = claim.state.load(Acquire);
        loop {
            let Some(next) = event(state) else { return false };
            let next = next | if here { RUNNING } else { QUEUED };
            match claim.state.compare_exchange_weak(state, next, AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if here && state & RUNNING == 0 {
            self.run_out(engine, d, index, claim);
        } else if !here && state & QUEUED == 0 {
            self.queue(index, claim);
        }
        true
    }

    /// Puts a claim that is marked so where it is waited for.
    pub fn queue(&self, index: u32, claim: &Claim) {
        if let Some(core) = self.core_of(claim) {
            core.waiting.push(index, |i| self.claim(i).map(|c| &c.next_waiting));
        }
    }

    /// A claim that was queued is seen to, here.
    fn take_up(&self, engine: &Engine, d: &Domain, index: u32) {
        if let Some(claim) = self.claim(index) {
            self.raise(engine, d, index, claim, true, |state| Some(state & !QUEUED));
        }
    }

    /// Runs a claim that this thread has marked as running.
    pub fn run_out(&self, engine: &Engine, d: &Domain, index: u32, claim: &Claim) {
        d.outside(engine, || self.run(engine, index, claim));
        self.settle(engine, index);
    }

    fn run(&self, engine: &Engine, index: u32, claim: &Claim) {
        let Some(core) = self.core_of(claim) else { return };
        while engine.is_here() {
            let state = claim.state.load(Acquire);
            if state & DUE == 0 {
                let idle = state & !RUNNING;
                if claim.state.compare_exchange(state, idle, AcqRel, Relaxed).is_ok() {
                    return;
                }
            } else if state & CLOSED != 0 {
                // Once more: it may have been closed before its block was in the set.
                close(engine, index, claim);
            } else if core.phase() == Phase::Discarded {
                forget(engine, index, claim, core, false);
            } else if state & DISCARD != 0 {
                // It was meant for the block that was here before.
                claim.state.fetch_and(!DISCARD, AcqRel);
            } else if state & HELD != 0 {
                run_held(engine, index, claim, core, state);
            } else if state & BORN != 0 {
                run_alloc(engine, index, claim, core, state & MAJOR != 0);
                claim.state.fetch_and(!BORN, AcqRel);
            } else if state & LOST != 0 {
                forget(engine, index, claim, core, true);
            } else if state & PROMOTE != 0 {
                run_promote(engine, index, claim, core);
                claim.state.fetch_and(!PROMOTE, AcqRel);
            } else {
                if let Some(data) = take(claim) {
                    let major = state & MAJOR != 0;
                    core.counts.deallocated.fetch_add(1, Relaxed);
                    core.call(engine, |c| c.dealloc(data, major));
                }
                close(engine, index, claim);
            }
        }
    }

    /// Ends a claim that is done with.
    pub fn settle(&self, engine: &Engine, index: u32) {
        let Some(claim) = self.claim(index).filter(|_| engine.is_here()) else { return };
        loop {
            let state = claim.state.load(Acquire);
            let busy = state & (RUNNING | QUEUED | YOUNG | DUE) != 0;
            if state & CLAIMED == 0 || state & CLOSED == 0 || busy {
                return;
            }
            // Somebody is just freeing it, or is about to find that it is not tracked.
            if state & FREED == 0 && state & (DYING | ONLY) != 0 {
                return;
            }
            let place = claim.place.load(Relaxed);
            let left = state & (LEDGER | VERSIONS);
            if claim.state.compare_exchange(state, left, AcqRel, Relaxed).is_ok() {
                if state & ONLY != 0 {
                    self.only.fetch_sub(1, Relaxed);
                }
                if left & LEDGER == 0 {
                    engine.tracker.give_back(index);
                }
                self.release(place);
                return;
            }
        }
    }

    /// The stream's books are done with an entry: whether it can be given back. For the
    /// agent's thread.
    pub fn books_done(&self, engine: &Engine, index: u32) -> bool {
        let Some(claim) = self.claim(index) else { return true };
        if claim.state.fetch_and(!LEDGER, AcqRel) & CLAIMED == 0 {
            return true;
        }
        self.settle(engine, index);
        false
    }

    /// Whether a profile has the block in this entry.
    pub fn has(&self, index: u32) -> bool {
        self.claim(index).is_some_and(|claim| claim.state.load(Acquire) & CLAIMED != 0)
    }

    /// Discards a claim of the profile in `place`.
    pub fn discard_claim(&self, engine: &Engine, d: &Domain, index: u32, place: u32) {
        let Some(claim) = self.claim(index) else { return };
        self.raise(engine, d, index, claim, true, |state| {
            let its = state & CLAIMED != 0 && claim.place.load(Relaxed) == place;
            its.then_some(state | DISCARD)
        });
    }

    /// Ends all claims of a discarded profile. The calling thread is in the engine.
    pub fn discard(&self, engine: &Engine, d: &Domain, token: Token) {
        let (Some(place), Some(core)) = (token.place(), self.core(token)) else { return };
        let (_, used) = engine.tracker.room();
        for index in 0..used as u32 {
            // Nobody but the handles holds it: there are no more.
            if core.holders() <= 1 || !engine.is_here() {
                break;
            }
            self.discard_claim(engine, d, index, place as u32);
        }
        self.drain(engine, d, core);
    }

    /// Takes the lists of a discarded profile apart.
    pub(super) fn drain(&self, engine: &Engine, d: &Domain, core: &Core) {
        let young = |i| self.claim(i).map(|c| &c.next_young);
        for list in [&core.young, &core.old] {
            while let Some(index) = list.pop(young) {
                self.off_young(engine, core, index);
            }
        }
        let waiting = |i| self.claim(i).map(|c| &c.next_waiting);
        while engine.is_here()
            && let Some(index) = core.waiting.pop(waiting).or_else(|| lock(&core.queue).pop_front())
        {
            // Its birth may have been too late for who looked for the profile's claims.
            self.take_up(engine, d, index);
        }
    }

    /// At a stop of domain `d`, which is in the engine: promotions, and what waits, of its
    /// own profile and of one other.
    #[cold]
    #[inline(never)]
    pub fn at_stop(&self, engine: &Engine, d: &Domain) {
        if std::thread::panicking() {
            return;
        }
        let used = self.used.load(Relaxed).max(1);
        let turn = self.turn.fetch_add(1, Relaxed) % used;
        let own = self.of_domain(d).and_then(Token::place);
        for place in [Some(turn), own.filter(|own| *own != turn)].into_iter().flatten() {
            let Some(core) = self.cores.get(place) else { continue };
            let Some(token) = core.hold_any().map(|generation| Token::of(place, generation)) else {
                continue;
            };
            let discarded = core.phase() == Phase::Discarded;
            if discarded {
                self.drain(engine, d, core);
            } else {
                self.sweep(engine, d, core, super::sweep::A_STOP);
                if core.terms().prompt {
                    self.see_to_waiting(engine, d, core, A_STOP);
                }
            }
            if !engine.is_here() {
                return;
            }
            if let Some(place) = token.place() {
                self.release(place as u32);
            }
        }
        d.outside(engine, || self.reap(engine));
        if engine.is_here() && !self.exist() {
            engine.profiles_changed();
        }
    }

    /// Runs what waits of a prompt profile, at most so much of it.
    fn see_to_waiting(&self, engine: &Engine, d: &Domain, core: &Core, most: usize) {
        for _ in 0..most {
            if !engine.is_here() {
                return;
            }
            let next = core.waiting.pop(|i| self.claim(i).map(|c| &c.next_waiting));
            let Some(index) = next else { return };
            self.take_up(engine, d, index);
        }
    }

    /// Runs all that was due when it was called, in the order in which it came up; how
    /// many blocks that was. The calling thread is in the engine.
    pub fn poll(&self, engine: &Engine, d: &Domain, core: &Core) -> usize {
        self.sweep(engine, d, core, usize::MAX);
        let mut seen = 0;
        let mut left = if engine.is_here() { self.line_up(core) } else { 0 };
        while left > 0 && engine.is_here() {
            left -= 1;
            let Some(index) = lock(&core.queue).pop_front() else { break };
            self.take_up(engine, d, index);
            seen += 1;
        }
        seen
    }

    /// Puts what waits into the queue, in order; how much is in it.
    fn line_up(&self, core: &Core) -> usize {
        let mut queue = lock(&core.queue);
        let mut link = core.waiting.take();
        let first = queue.len();
        while let Some(index) = link.checked_sub(1) {
            // Read before it is in the queue, where another poller may take it.
            link = self.claim(index).map_or(0, |claim| claim.next_waiting.load(Relaxed));
            queue.push_back(index);
        }
        // The list has the last first.
        queue.make_contiguous().get_mut(first..).unwrap_or_default().reverse();
        queue.len()
    }
}

/// Whether callbacks can run here: not within another one, nor where a panic is under
/// way, which a second one would make fatal.
fn may_run(d: &Domain) -> bool {
    !d.is_busy() && !std::thread::panicking()
}

/// A young block of which nothing is told unless it is promoted.
fn run_held(engine: &Engine, index: u32, claim: &Claim, core: &Core, state: u32) {
    if state & PROMOTE == 0 {
        close(engine, index, claim);
        return;
    }
    core.counts.sampled.fetch_add(1, Relaxed);
    claim.state.fetch_or(MAJOR, AcqRel);
    run_alloc(engine, index, claim, core, true);
    claim.state.fetch_and(!(HELD | PROMOTE), AcqRel);
}

fn run_alloc(engine: &Engine, index: u32, claim: &Claim, core: &Core, major: bool) {
    let Some(b) = engine.tracker.birth_of(index) else { return };
    let frames = claim.take_frames();
    let birth = Birth {
        id: b.id,
        n_samples: claim.n_samples.load(Relaxed),
        size: b.size,
        address: b.address,
        cause: b.cause,
        lambda: f64::from_bits(claim.lambda.load(Relaxed)),
        domain: b.thread,
        thread: engine.tid(b.thread),
        clock: b.clock,
        time_ns: b.ns.saturating_sub(engine.started_ns),
        replaces: b.replaces,
        born_young: b.young,
        frames: frames.as_ref().map_or(&[], |f| &f.frames),
        is_cut: frames.as_ref().is_some_and(|f| f.end == 1),
    };
    let counts = &core.counts;
    match core.call(engine, |c| c.alloc(&birth, major)) {
        Some(Answer::Track(data)) if core.terms().what == What::Births => {
            counts.refused.fetch_add(1, Relaxed);
            core.guarded(engine, |c| c.forget(data, major));
            close(engine, index, claim);
        }
        Some(Answer::Track(data)) => {
            counts.tracked.fetch_add(1, Relaxed);
            claim.data.store(data.as_ptr().cast(), Relaxed);
        }
        Some(Answer::NoRoom) => {
            counts.dropped.fetch_add(1, Relaxed);
            close(engine, index, claim);
        }
        Some(Answer::Refuse) | None => {
            counts.refused.fetch_add(1, Relaxed);
            close(engine, index, claim);
        }
    }
}

fn run_promote(engine: &Engine, index: u32, claim: &Claim, core: &Core) {
    let Some(data) = take(claim) else { return };
    core.counts.promoted.fetch_add(1, Relaxed);
    match core.call(engine, |c| c.promote(data)) {
        Some(Answer::Track(data)) => {
            claim.data.store(data.as_ptr().cast(), Relaxed);
            claim.state.fetch_or(MAJOR, AcqRel);
        }
        Some(Answer::Refuse | Answer::NoRoom) | None => {
            core.counts.refused_at_promotion.fetch_add(1, Relaxed);
            close(engine, index, claim);
        }
    }
}

/// Nothing more is told of the block.
fn forget(engine: &Engine, index: u32, claim: &Claim, core: &Core, lost: bool) {
    let state = claim.state.load(Acquire);
    if let Some(data) = take(claim) {
        let count = if lost { &core.counts.lost } else { &core.counts.discarded };
        count.fetch_add(1, Relaxed);
        core.guarded(engine, |c| c.forget(data, state & MAJOR != 0));
    } else if state & BORN != 0 {
        core.counts.dropped.fetch_add(1, Relaxed);
    }
    close(engine, index, claim);
}

/// By the runner: nothing is due any more, and there is no data.
fn close(engine: &Engine, index: u32, claim: &Claim) {
    if !engine.is_here() {
        return;
    }
    claim.drop_frames();
    let state = claim.state.fetch_or(CLOSED, AcqRel);
    claim.state.fetch_and(!DUE, AcqRel);
    // A block that only the profile had is an unknown one from here on. Where a free has
    // taken it out already, that free is under way.
    if state & ONLY != 0 && state & FREED == 0 && engine.tracker.untrack(index) {
        claim.state.fetch_or(FREED, AcqRel);
    }
}

/// Takes the data. By the runner.
fn take(claim: &Claim) -> Option<Data> {
    Data::new(claim.data.swap(std::ptr::null_mut(), Relaxed).cast())
}

const _: () = assert!(cfg!(loom) || size_of::<Claim>() == 64, "a claim is a cache line");
