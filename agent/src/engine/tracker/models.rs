//! Births and deaths on two threads, while the agent's thread collects, promotes,
//! thins and gives entries back.

use super::*;
use crate::engine::models::explore;
use loom::thread;
use std::collections::BTreeMap;
use std::sync::Arc;

fn tracker(entries: usize) -> Arc<Tracker> {
    let mut region = Region::new(1 << 16).unwrap();
    Arc::new(Tracker::new(&mut region, entries).unwrap())
}

/// Every field tells the block's id.
fn birth(id: u64, address: usize) -> Birth {
    Birth {
        id,
        address,
        size: id + 100,
        n_samples: id + 200,
        ns: id + 300,
        clock: id + 400,
        stack: id as u32 + 500,
        interval: id as u32 + 600,
        thread: id as u32 + 700,
        cause: Cause::Realloc,
        young: true,
        replaces: id + 800,
    }
}

fn death(id: u64) -> Death {
    let (clock, thread) = (id + 1200, id as u32 + 1300);
    Death { seq: id + 1000, ns: id + 1100, clock, thread, stack: None }
}

/// A block's life; false if its birth was lost.
fn live(t: &Tracker, id: u64, address: usize) -> bool {
    if !t.birth(&birth(id, address)) {
        return false;
    }
    let taken = t.take(address).expect("what was born is found");
    assert_eq!(taken.id, id);
    t.death(taken, || death(id));
    true
}

/// The agent's books.
#[derive(Default)]
struct Books {
    born: BTreeMap<u64, u32>,
    died: Vec<u64>,
}

impl Books {
    /// One pass: what comes must be whole, and come once.
    fn pass(&mut self, t: &Tracker) {
        let (mut births, mut deaths) = (vec![], vec![]);
        t.collect(|i, id| births.push((i, id)), |i, seq| deaths.push((i, seq)));
        for (index, id) in births {
            let born = t.birth_of(index).unwrap();
            assert_eq!(born, birth(id, born.address));
            t.set_known(index);
            assert_eq!(self.born.insert(id, index), None, "{id} was born twice");
        }
        for (index, seq) in deaths {
            let id = seq - 1000;
            assert_eq!(t.death_of(index), Some(death(id)));
            assert_eq!(self.born.get(&id), Some(&index), "{id} died before it was born");
            assert!(!self.died.contains(&id), "{id} died twice");
            self.died.push(id);
            t.release(index);
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    explore("tracker: two threads and the agent", 2, || {
        // Two entries for three blocks: they are used again.
        let t = tracker(2);
        let other = {
            let t = t.clone();
            thread::spawn(move || usize::from(live(&t, 2, 0x20)))
        };
        let third = {
            let t = t.clone();
            thread::spawn(move || usize::from(live(&t, 1, 0x10)) + usize::from(live(&t, 3, 0x10)))
        };
        let mut books = Books::default();
        books.pass(&t);
        let made = other.join().unwrap() + third.join().unwrap();
        books.pass(&t);
        assert_eq!((books.born.len(), books.died.len()), (made, made));
        assert_eq!((made as u64 + t.lost(), t.live()), (3, 0));
    });
}

#[test]
fn entries_that_are_given_back_are_handed_out_once() {
    explore("tracker: the free list", 3, || {
        let t = tracker(2);
        let (first, second) = (t.take_free().unwrap(), t.take_free().unwrap());
        t.give_back(second);
        t.give_back(first);
        // One that looks at the head of the list, while another takes both entries
        // and gives the first of them back.
        let other = {
            let t = t.clone();
            thread::spawn(move || {
                let mine = t.take_free();
                let kept = t.take_free();
                if let Some(mine) = mine {
                    t.give_back(mine);
                }
                kept
            })
        };
        let mine = t.take_free();
        let kept = other.join().unwrap();
        let mut all: Vec<u32> = [mine, kept].into_iter().flatten().collect();
        while let Some(index) = t.take_free() {
            all.push(index);
        }
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}

#[test]
fn entries_that_are_given_back_together_are_handed_out_once() {
    explore("tracker: the free list, in batches", 3, || {
        let t = tracker(3);
        let [first, second, third] = [(); 3].map(|()| t.take_free().unwrap());
        // A thread of the target's has one on the list, and takes what it can.
        t.give_back(third);
        let other = {
            let t = t.clone();
            thread::spawn(move || [t.take_free(), t.take_free()])
        };
        // Two are a batch here.
        let mut returned = Returned::default();
        t.give_back_later(&mut returned, first);
        t.give_back_later(&mut returned, second);
        let taken = other.join().unwrap();
        let mut all: Vec<u32> = taken.into_iter().flatten().collect();
        while let Some(index) = t.take_free() {
            all.push(index);
        }
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn a_block_is_promoted_once_or_not_at_all_and_the_clock_agrees() {
    explore("tracker: promoted while it is freed", 3, || {
        let t = tracker(5);
        let clock = Arc::new(AtomicU64::new(0));
        assert!(t.birth(&birth(1, 0x10)));
        let mut index = None;
        t.collect(|i, _| index = Some(i), |_, _| {});
        let index = index.unwrap();
        let freeing = {
            let (t, clock) = (t.clone(), clock.clone());
            thread::spawn(move || {
                let taken = t.take(0x10).unwrap();
                t.death(taken, || Death { clock: clock.load(Relaxed), ..death(1) });
            })
        };
        let turning = {
            let clock = clock.clone();
            thread::spawn(move || clock.store(1, Relaxed))
        };
        // The agent's thread: promotes what was born in a cycle that is over.
        let seen = clock.load(Relaxed);
        let promoted = seen > 0 && t.promote(index, 1);
        assert!(!(promoted && t.promote(index, 1)));
        freeing.join().unwrap();
        turning.join().unwrap();
        let mut died = false;
        t.collect(|_, _| panic!("it was born before"), |i, _| died = i == index);
        assert!(died);
        assert_eq!(t.died_major(index), promoted);
        assert!(!t.promote(index, 1), "a dead block is not promoted");
        if promoted {
            assert!(t.death_of(index).unwrap().clock >= seen, "promoted, and died before");
        }
    });
}

#[test]
fn a_block_is_thinned_or_freed() {
    explore("tracker: thinned while it is freed", 3, || {
        let t = tracker(5);
        assert!(t.birth(&birth(1, 0x10)));
        let mut books = Books::default();
        books.pass(&t);
        let index = books.born[&1];
        let freeing = {
            let t = t.clone();
            thread::spawn(move || {
                let taken = t.take(0x10);
                let was_tracked = taken.is_some();
                if let Some(taken) = taken {
                    assert_eq!(taken.id, 1);
                    t.death(taken, || death(1));
                }
                // Its entry may be another's from now on.
                assert!(live(&t, 2, 0x10));
                was_tracked
            })
        };
        let dropped = t.drop_block(index);
        books.pass(&t);
        assert!(freeing.join().unwrap() != dropped);
        books.pass(&t);
        assert_eq!((books.born.len(), books.died.len()), (2, 2 - usize::from(dropped)));
        assert_eq!(t.live(), 0);
    });
}

#[test]
fn a_failed_realloc_puts_the_block_back_or_counts_it_as_lost() {
    explore("tracker: put back while another is born", 3, || {
        // Room for one address: the other one may take it meanwhile.
        let t = tracker(2);
        assert!(t.birth(&birth(1, 0x10)));
        let other = {
            let t = t.clone();
            thread::spawn(move || live(&t, 2, 0x20))
        };
        let taken = t.take(0x10).unwrap();
        if let Err(taken) = t.put_back(taken) {
            t.death(taken, || death(1));
        }
        if let Some(taken) = t.take(0x10) {
            t.death(taken, || death(1));
        }
        let made = 1 + usize::from(other.join().unwrap());
        let mut books = Books::default();
        books.pass(&t);
        assert_eq!((books.born.len(), books.died.len()), (made, made));
        assert!(t.lost() <= 1 && t.live() == 0);
    });
}
