//! A block's birth and death against a profile's stop and discard, a poller, the turn of a
//! cycle and the books; two blocks in one place; the end of a profile.

use super::super::models::explore;
use super::*;
use crate::config::{Builder, Settings};
use crate::engine::domain;
use crate::engine::domain::Hit;
use crate::engine::tracker::{Birth as Born, Cause, Death, Returned};
use heaptop_protocol::estimate::Interval;
use loom::thread;
use std::sync::{Arc, Mutex};

/// What a profile was told, in order: of which block, and what.
type Told = Arc<Mutex<Vec<(u64, &'static str)>>>;

/// Tracks everything; the data is the block's number, in a box.
struct Records(Told);

impl Records {
    fn data(id: u64) -> Answer {
        Answer::Track(Data::new(Box::into_raw(Box::new(id)).cast()).unwrap())
    }

    fn undo(data: Data) -> u64 {
        // SAFETY: `data` made it, and the engine gives each once: a second time is what a
        // model would find, as an id that is told twice.
        *unsafe { Box::from_raw(data.as_ptr().cast::<u64>()) }
    }

    fn tell(&self, id: u64, what: &'static str) {
        self.0.lock().unwrap().push((id, what));
    }
}

impl Callbacks for Records {
    fn alloc(&self, birth: &Birth<'_>, _: bool) -> Answer {
        assert_eq!(birth.size, birth.id + 100, "one block's claim and entry");
        assert_eq!(birth.n_samples, 7);
        self.tell(birth.id, "alloc");
        Self::data(birth.id)
    }
    fn promote(&self, data: Data) -> Answer {
        let id = Self::undo(data);
        self.tell(id, "promote");
        Self::data(id)
    }
    fn dealloc(&self, data: Data, major: bool) {
        self.tell(Self::undo(data), if major { "dealloc major" } else { "dealloc minor" });
    }
    fn forget(&self, data: Data, _: bool) {
        self.tell(Self::undo(data), "forget");
    }
}

/// An engine with a profile.
struct Scene {
    engine: &'static Engine,
    token: Token,
    told: Told,
}

const N: u64 = 1000;

impl Scene {
    /// λ = 1.
    fn new(prompt: bool) -> Arc<Self> {
        let settings = Settings::from_builder(&Builder {
            interval_bytes: Some(1),
            memory_bytes: 8 << 10,
            nursery_bytes: N,
            phase_bytes: Some(0),
            seed: Some(1),
            ..Builder::DEFAULT
        });
        let settings = Settings { memory_bytes: 8 << 10, ..settings };
        let engine: &'static Engine = Box::leak(Box::new(Engine::with(&settings).unwrap()));
        let profiles = engine.profiles_or_new().unwrap();
        let told = Told::default();
        let terms = Terms { lambda: 1.0, depth: 0, prompt, unwinding: false, what: What::All };
        let token = profiles.make(engine, terms, Arc::new(Records(told.clone()))).unwrap();
        assert!(profiles.take_process(token));
        Arc::new(Self { engine, token, told })
    }

    fn profiles(&self) -> &'static Profiles {
        self.engine.profiles().unwrap()
    }

    fn core(&self) -> &'static Core {
        self.profiles().core(self.token).unwrap()
    }

    fn inside<T>(f: impl FnOnce(&Domain) -> T) -> T {
        domain::here(|d| {
            assert!(d.enter());
            let result = f(d);
            d.leave();
            result
        })
    }

    /// As the hook does; whether the profile has the block.
    fn birth(&self, id: u64, address: usize, streams: bool) -> bool {
        Self::inside(|d| {
            let hit = Hit { n_samples: 7, interval: Interval::EXACT };
            let shares = Shares::of(self.engine, d, hit);
            let birth = Born {
                stack: 0,
                id,
                address,
                size: id + 100,
                n_samples: if streams { 7 } else { 0 },
                ns: 0,
                clock: self.engine.header.clock.load(Relaxed),
                interval: 1,
                thread: 0,
                cause: Cause::Malloc,
                young: true,
                replaces: 0,
            };
            let Some(share) = &shares.profile else { return false };
            self.profiles().birth(self.engine, d, share, &birth, streams);
            true
        })
    }

    /// As the hook does.
    fn death(&self, address: usize) {
        let Some(taken) = self.engine.tracker.take(address) else { return };
        let clock = self.engine.header.clock.load(Relaxed);
        let seq = taken.id + 1000;
        domain::here(|d| {
            let when = || Death { seq, ns: 0, clock, thread: 0, stack: None };
            self.profiles().death(self.engine, d, taken, false, when);
        });
    }

    fn poll(&self) {
        Self::inside(|d| self.profiles().poll(self.engine, d, self.core()));
    }

    /// As `Profile::stop` and `Profile::discard`.
    fn stop(&self) {
        assert!(self.core().move_on(Phase::Sampling, Phase::Stopped));
        self.profiles().leave_process(self.token);
    }

    fn discard(&self) {
        assert!(self.core().move_on(Phase::Stopped, Phase::Discarded));
        Self::inside(|d| self.profiles().discard(self.engine, d, self.token));
    }

    /// As the drop of the last handle, when all threads are done: whether the profile has
    /// ended and everything is given back.
    fn end(&self) {
        let (core, profiles) = (self.core(), self.profiles());
        if core.phase() == Phase::Sampling {
            self.stop();
        }
        if core.phase() == Phase::Stopped {
            self.discard();
        }
        profiles.let_go(self.engine, self.token);
        // What other threads were at when it was discarded is worked off by stops.
        Self::inside(|d| profiles.at_stop(self.engine, d));
        let states: Vec<_> = profiles.claims.iter().map(|c| c.state.load(Relaxed)).collect();
        assert!(
            !profiles.exist(),
            "its place is given back: {:?}, {} holders, claims {states:x?}",
            profiles.cores.first().map(Core::phase),
            profiles.cores.first().map_or(0, Core::holders),
        );
        assert_eq!(profiles.only.load(Relaxed), 0);
        for claim in profiles.claims {
            assert_eq!(claim.state.load(Relaxed) & claim::CLAIMED, 0);
        }
    }

    /// What was told of a block is a life: each once, in order, and its data has ended.
    fn life(&self, id: u64) -> Vec<&'static str> {
        let told = self.told.lock().unwrap();
        let life: Vec<_> = told.iter().filter(|(of, _)| *of == id).map(|(_, what)| *what).collect();
        let whole = matches!(
            life[..],
            [] | ["alloc", "dealloc minor" | "forget"]
                | ["alloc", "promote", "dealloc major" | "forget"]
        );
        assert!(whole, "block {id}: {life:?}");
        life
    }
}

fn stopped_and_discarded(prompt: bool, dies: bool) {
    explore(&format!("profiles: stop and discard, prompt {prompt}, dies {dies}"), 2, move || {
        let scene = Scene::new(prompt);
        let of = scene.clone();
        let program = thread::spawn(move || {
            let has = of.birth(1, 0x10, false);
            if dies {
                of.death(0x10);
            }
            has
        });
        scene.stop();
        scene.discard();
        program.join().unwrap();
        scene.end();
        scene.life(1);
        assert!(scene.engine.tracker.take(0x10).is_none(), "it is no tracked block any more");
    });
}

#[test]
fn a_block_that_dies_while_its_profile_ends() {
    stopped_and_discarded(true, true);
    stopped_and_discarded(false, true);
}

#[test]
fn a_block_that_is_born_while_its_profile_ends() {
    stopped_and_discarded(true, false);
    stopped_and_discarded(false, false);
}

#[test]
fn a_poller_meets_a_block_that_dies() {
    explore("profiles: a poller and a death", 2, || {
        let scene = Scene::new(false);
        let of = scene.clone();
        let poller = thread::spawn(move || of.poll());
        scene.birth(1, 0x10, false);
        scene.death(0x10);
        poller.join().unwrap();
        scene.poll();
        assert_eq!(scene.life(1), ["alloc", "dealloc minor"]);
        scene.end();
    });
}

#[test]
fn two_blocks_follow_each_other_in_one_place() {
    explore("profiles: places are used anew", 1, || {
        let scene = Scene::new(true);
        let of = scene.clone();
        let other = thread::spawn(move || {
            of.birth(1, 0x10, false);
            of.death(0x10);
        });
        scene.birth(2, 0x20, false);
        scene.death(0x20);
        other.join().unwrap();
        scene.birth(3, 0x30, false);
        scene.death(0x30);
        for id in 1..4 {
            assert_eq!(scene.life(id).len(), 2);
        }
        scene.end();
    });
}

#[test]
fn a_cycle_turns_while_a_block_is_freed() {
    explore("profiles: a turn and a free", 2, || {
        let scene = Scene::new(true);
        scene.birth(1, 0x10, false);
        scene.engine.header.clock.store(N, Relaxed);
        let of = scene.clone();
        let turns = thread::spawn(move || {
            Scene::inside(|d| of.profiles().at_stop(of.engine, d));
        });
        scene.death(0x10);
        turns.join().unwrap();
        scene.poll();
        assert_eq!(scene.life(1), ["alloc", "promote", "dealloc major"], "it had survived");
        scene.end();
    });
}

#[test]
fn the_books_and_a_profile_are_done_with_an_entry() {
    explore("profiles: the books and a profile", 2, || {
        let scene = Scene::new(true);
        let of = scene.clone();
        let program = thread::spawn(move || {
            of.birth(1, 0x10, true);
            of.death(0x10);
        });
        let mut births = 0;
        let mut pass = || {
            let (mut born, mut dead) = (vec![], vec![]);
            scene.engine.tracker.collect(|i, _| born.push(i), |i, _| dead.push(i));
            births += born.len();
            for index in dead {
                let birth = scene.engine.tracker.born(index).unwrap();
                let mut returned = Returned::default();
                scene.engine.release(index, &birth, &mut returned);
                scene.engine.tracker.give_back_all(&mut returned);
            }
        };
        pass();
        program.join().unwrap();
        pass();
        assert_eq!(births, 1);
        assert_eq!(scene.life(1), ["alloc", "dealloc minor"]);
        // It is free, and free once: two births have two places.
        scene.birth(2, 0x20, false);
        scene.birth(3, 0x30, false);
        scene.death(0x20);
        scene.death(0x30);
        assert_eq!((scene.life(2).len(), scene.life(3).len()), (2, 2));
        scene.end();
    });
}
