//! Births, deaths, and what threads may do at once.

use super::*;

fn tracker(entries: usize) -> Tracker {
    let mut region = Region::new(Tracker::bytes(entries)).unwrap();
    Tracker::new(&mut region, entries).unwrap()
}

fn birth(id: u64, address: usize) -> Birth {
    Birth {
        id,
        address,
        size: 10 + id,
        n_samples: 1,
        ns: id,
        clock: id * 100,
        stack: 3,
        interval: 7,
        thread: 2,
        cause: Cause::Calloc,
        young: true,
        replaces: 0,
    }
}

fn death(seq: u64) -> Death {
    Death { seq, ns: seq, clock: seq * 100, thread: 5, stack: None }
}

type Collected = (Vec<(u32, Birth)>, Vec<(u32, Death)>);

fn collect(t: &Tracker) -> Collected {
    let (mut births, mut deaths) = (Vec::new(), Vec::new());
    t.collect(|i, _| births.push(i), |i, _| deaths.push(i));
    let mut births: Vec<_> = births.into_iter().map(|i| (i, t.birth_of(i).unwrap())).collect();
    let mut deaths: Vec<_> = deaths.into_iter().map(|i| (i, t.death_of(i).unwrap())).collect();
    births.sort_by_key(|(_, b)| b.id);
    deaths.sort_by_key(|(_, d)| d.seq);
    (births, deaths)
}

#[test]
fn births_and_deaths_arrive_whole() {
    let t = tracker(10);
    assert!(t.birth(&birth(1, 0x1000)) && t.birth(&birth(2, 0x2000)));
    let (births, deaths) = collect(&t);
    assert_eq!(
        births.iter().map(|x| x.1).collect::<Vec<_>>(),
        [birth(1, 0x1000), birth(2, 0x2000)]
    );
    assert!(deaths.is_empty());
    assert!(t.take(0x3000).is_none());
    let taken = t.take(0x1000).unwrap();
    assert_eq!(taken.id, 1);
    t.death(taken, || death(3));
    assert!(t.take(0x1000).is_none());
    let (births, deaths) = collect(&t);
    assert!(births.is_empty());
    assert_eq!(deaths, [(0, death(3))]);
    assert_eq!(t.live(), 2, "not given back yet");
    t.release(0);
    assert_eq!(t.live(), 1);
}

#[test]
fn a_full_slab_loses_births_and_says_so() {
    let t = tracker(2);
    assert!(t.birth(&birth(1, 0x10)) && t.birth(&birth(2, 0x20)));
    assert!(!t.birth(&birth(3, 0x30)));
    assert_eq!((t.lost(), t.live()), (1, 0), "nothing was taken up");
    let taken = t.take(0x10).unwrap();
    t.death(taken, || death(4));
    assert!(!t.birth(&birth(5, 0x50)), "not before the death was taken up");
    let (_, deaths) = collect(&t);
    assert_eq!(t.live(), 2);
    t.release(deaths[0].0);
    assert!(t.birth(&birth(6, 0x60)));
}

#[test]
fn hints_leave_what_they_stand_beside() {
    let t = tracker(100);
    for id in 1..=60 {
        let (address, young) = (id as usize * 16, id % 2 == 0);
        assert!(t.birth(&Birth { young, ..birth(id, address) }));
        if id % 3 == 0 {
            let taken = t.take(address).unwrap();
            t.death(taken, || death(1000 + id));
        }
    }
    let (births, deaths) = collect(&t);
    assert_eq!((births.len(), deaths.len()), (60, 20));
    for (index, b) in births {
        assert_eq!(b, Birth { young: b.id % 2 == 0, ..birth(b.id, b.id as usize * 16) });
        if b.id % 3 == 0 {
            assert_eq!(t.died_major(index), b.id % 2 == 1, "major from birth, {}", b.id);
        } else {
            assert!(t.known_live(index).is_none(), "not taken up yet, {}", b.id);
        }
    }
}

#[test]
fn promotion_and_death_exclude_each_other() {
    let t = tracker(4);
    t.birth(&birth(1, 0x10));
    t.birth(&birth(2, 0x20));
    let index = |id| collect(&t).0.iter().find(|(_, b)| b.id == id).map(|x| x.0);
    let first = index(1).unwrap();
    assert_eq!(t.life(first, 1), Life::Young);
    assert!(t.promote(first, 1));
    assert!(!t.promote(first, 1));
    assert_eq!(t.life(first, 1), Life::Major);
    let taken = t.take(0x10).unwrap();
    t.death(taken, || death(9));
    assert!(t.died_major(first));
    let second = 1 - first;
    let taken = t.take(0x20).unwrap();
    t.death(taken, || death(10));
    assert!(!t.promote(second, 2), "a dying block is not promoted");
    assert!(!t.died_major(second));
    assert_eq!(t.life(second, 2), Life::Dying);
    t.release(second);
    assert_eq!(t.life(second, 2), Life::Gone);
}

#[test]
fn a_block_that_comes_back_is_found_again() {
    let t = tracker(4);
    t.birth(&birth(1, 0x10));
    let taken = t.take(0x10).unwrap();
    assert!(t.take(0x10).is_none());
    assert!(t.put_back(taken).is_ok());
    assert_eq!(t.take(0x10).unwrap().id, 1);
}

#[test]
fn a_dropped_block_is_an_unknown_one() {
    let t = tracker(4);
    t.birth(&birth(1, 0x10));
    t.birth(&birth(2, 0x20));
    let (births, _) = collect(&t);
    let index = births[0].0;
    assert!(t.drop_block(index));
    assert!(!t.drop_block(index));
    assert!(t.take(0x10).is_none());
    assert_eq!((t.live(), t.life(index, 1)), (1, Life::Gone));
    let taken = t.take(0x20).unwrap();
    assert!(!t.drop_block(births[1].0), "a block that is being freed is left to it");
    t.death(taken, || death(3));
    assert_eq!(collect(&t).1.len(), 1);
}

#[test]
fn entries_given_back_together_come_back_each() {
    let t = tracker(200);
    let taken: Vec<u32> = std::iter::from_fn(|| t.take_free()).collect();
    assert_eq!(taken.len(), 200);
    let mut returned = Returned::default();
    // More than one batch, and a rest.
    for index in &taken[..150] {
        t.give_back_later(&mut returned, *index);
    }
    let mut again: Vec<u32> = std::iter::from_fn(|| t.take_free()).collect();
    assert_eq!(again.len(), 128, "whole batches are back");
    t.give_back_all(&mut returned);
    again.extend(std::iter::from_fn(|| t.take_free()));
    again.sort_unstable();
    assert_eq!(again, (0..150).collect::<Vec<_>>());
    t.give_back_all(&mut returned);
    assert_eq!(t.take_free(), None, "nothing comes back twice");
}

#[test]
fn nothing_is_lost_between_threads() {
    let t = tracker(3000);
    let done = std::sync::atomic::AtomicBool::new(false);
    let (mut births, mut deaths) = (0u64, 0u64);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|w| {
                let t = &t;
                scope.spawn(move || {
                    let mut made = 0u64;
                    for i in 0..20_000u64 {
                        let id = 1 + i * 3 + w;
                        let address = (0x100_0000 * (w as usize + 1)) + (i as usize % 50) * 16;
                        if let Some(taken) = t.take(address) {
                            t.death(taken, || death(id));
                        }
                        made += u64::from(t.birth(&birth(id, address)));
                    }
                    made
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let (mut b, mut d) = (0, 0);
            let mut returned = Returned::default();
            loop {
                let last = done.load(Acquire);
                let mut dead = vec![];
                t.collect(
                    |_, _| b += 1,
                    |i, _| {
                        d += 1;
                        dead.push(i);
                    },
                );
                for i in dead {
                    t.forget(i);
                    t.give_back_later(&mut returned, i);
                }
                t.give_back_all(&mut returned);
                if last {
                    return (b, d);
                }
            }
        });
        let made: u64 = workers.into_iter().map(|w| w.join().unwrap()).sum();
        done.store(true, Release);
        (births, deaths) = reader.join().unwrap();
        assert_eq!(births, made);
    });
    assert_eq!(births + t.lost(), 60_000);
    assert_eq!(u64::from(t.live()), births - deaths);
}
