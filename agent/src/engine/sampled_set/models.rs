//! Keys of one home bucket, put in, found and taken out at the same time. A bucket
//! has one slot here, and a key finds room in its home or in the next.

use super::*;
use crate::engine::models::explore;
use crate::engine::sync::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;

/// Two buckets.
fn set() -> Arc<SampledSet> {
    let mut region = Region::new(1 << 16).unwrap();
    let set = SampledSet::new(&mut region, 5).unwrap();
    assert_eq!(set.buckets.len(), 2);
    Arc::new(set)
}

/// Addresses of one home and one byte of the filter.
fn crowd(set: &SampledSet) -> impl Iterator<Item = usize> {
    let of = |a: usize| (set.home(hash(a)), hash(a) >> (64 - FILTER_BITS));
    (1usize..).map(|i| i * 16).filter(move |&a| of(a) == of(16))
}

fn empty(set: &SampledSet) {
    for bucket in set.buckets {
        assert_eq!(bucket.passed.load(Relaxed), 0);
        assert!(bucket.slots.iter().all(|s| s.load(Relaxed) == 0));
    }
    assert!(FILTER.iter().all(|byte| byte.load(Relaxed) == 0));
}

/// A block's life: whatever the others do, it is found. It may be refused where
/// another key moves from the bucket ahead into the one that was just left.
fn live(set: &SampledSet, address: usize, index: u32) {
    if set.insert(address, index) {
        assert!(may_hold(address));
        assert_eq!(set.remove(address, |i| i == index), Some(index));
    }
}

#[test]
fn a_key_that_is_in_is_found() {
    explore("sampled_set: two keys that come and go", 2, || {
        let set = set();
        let mut crowd = crowd(&set);
        let (a, b) = (crowd.next().unwrap(), crowd.next().unwrap());
        let other = {
            let set = set.clone();
            thread::spawn(move || {
                live(&set, b, 1);
                live(&set, b, 2);
            })
        };
        live(&set, a, 0);
        live(&set, a, 3);
        other.join().unwrap();
        empty(&set);
    });
}

#[test]
fn a_key_from_another_thread_is_found() {
    explore("sampled_set: freed by another thread", 3, || {
        let set = set();
        let mut crowd = crowd(&set);
        let (a, b) = (crowd.next().unwrap(), crowd.next().unwrap());
        let handed = Arc::new(AtomicBool::new(false));
        let home = {
            let set = set.clone();
            thread::spawn(move || live(&set, b, 1))
        };
        let owner = {
            let (set, handed) = (set.clone(), handed.clone());
            thread::spawn(move || {
                assert!(set.insert(a, 0));
                // The program's own synchronisation.
                handed.store(true, Ordering::Release);
            })
        };
        let handed = handed.load(Ordering::Acquire);
        if handed {
            assert!(may_hold(a));
            assert_eq!(set.remove(a, |i| i == 0), Some(0));
        }
        home.join().unwrap();
        owner.join().unwrap();
        if !handed {
            assert_eq!(set.remove(a, |i| i == 0), Some(0));
        }
        empty(&set);
    });
}

#[test]
fn a_refused_key_leaves_nothing_behind() {
    explore("sampled_set: three keys, room for two", 3, || {
        let set = set();
        let keys: Vec<usize> = crowd(&set).take(3).collect();
        let others: Vec<_> = [1, 2]
            .map(|i| {
                let (set, key) = (set.clone(), keys[i]);
                thread::spawn(move || set.insert(key, i as u32))
            })
            .into_iter()
            .collect();
        let mut is_in = vec![set.insert(keys[0], 0)];
        is_in.extend(others.into_iter().map(|o| o.join().unwrap()));
        assert_eq!(is_in.iter().filter(|&&is_in| is_in).count(), 2);
        for (i, is_in) in (0u32..).zip(is_in) {
            assert_eq!(set.remove(keys[i as usize], |x| x == i), is_in.then_some(i));
        }
        empty(&set);
    });
}

#[test]
fn a_free_and_the_agents_thread_do_not_both_get_it() {
    explore("sampled_set: freed while it is thinned", 3, || {
        let set = set();
        let mut crowd = crowd(&set);
        let (a, b) = (crowd.next().unwrap(), crowd.next().unwrap());
        assert!(set.insert(b, 1) && set.insert(a, 0));
        let agent = {
            let set = set.clone();
            thread::spawn(move || set.remove(a, |i| i == 0).is_some())
        };
        let freed = set.remove(a, |i| i == 0).is_some();
        assert!(freed != agent.join().unwrap());
        assert_eq!(set.remove(b, |i| i == 1), Some(1));
        empty(&set);
    });
}
