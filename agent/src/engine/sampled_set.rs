//! Which pointers are sampled blocks: a filter for every free, and an exact
//! table behind it.
//!
//! 1. **Filter.** One byte a hash value counts the sampled blocks with that
//!    hash. A free loads it and goes on if it is 0. A count that reaches 255
//!    stays there: such a byte lets everything through, which costs time and
//!    nothing else.
//! 2. **Table.** Buckets of a cache line: seven slots, and a count of the keys
//!    that started here and found no room (`passed`). A slot holds an entry's
//!    index and some bits of the address's hash; whether it is the right entry
//!    is decided by the address in the entry itself. A key goes to the first
//!    free slot from its home bucket on, and adds 1 to `passed` of each full
//!    bucket on the way *before* it settles behind it. So a search stops at the
//!    first bucket whose `passed` is 0: no tombstones, and nothing to clean up.
//!
//! Who may do what at the same time: any thread may insert, remove and search.
//! One address is never inserted and freed at once: a block's birth comes
//! before its death by the program's own order, the death is taken out before
//! the memory goes back to the allocator, and only then can a new block have
//! that address. So relaxed orderings are enough for a key's own slot: the
//! program's own synchronisation, by which the pointer travelled from the
//! thread that allocated to the one that frees, makes the insertion visible.
//! Slots of other keys may be seen in any state; they are told apart by the
//! entry's address, which only the key's owner can match.
//!
//! Nothing here blocks, loops without bound, or allocates.

use super::region::{Region, Zeroable};
use super::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, scaled, shared};

const FILTER_BITS: u32 = scaled(18, 1) as u32;
const SLOTS: usize = scaled(7, 1);
/// Most buckets that a key may be away from home. At the table's greatest load
/// the chance of more is beyond reckoning; an insertion that meets it fails.
const REACH: usize = scaled(64, 2);
const INDEX_BITS: u32 = 24;
/// Entries that a table can tell apart.
pub const MAX_ENTRIES: usize = (1 << INDEX_BITS) - 1;

shared! { static FILTER: [AtomicU8; 1 << FILTER_BITS] = AtomicU8::new(0); }

/// A multiplicative hash of an address: the upper bits are good ones.
#[inline(always)]
fn hash(address: usize) -> u64 {
    // Blocks are mostly 16 bytes apart; the low bits are kept for those that are not.
    (address as u64).rotate_right(4).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The filter's byte of an address: a straight line of slope 1.618/64, wrapped. Blocks
/// beside each other have bytes beside each other, or the same one: what a program
/// works on, of some hundred kibibytes say, takes a fortieth of that of its cache. What
/// is a power of two apart is not the same byte. A neighbour of a sampled block goes the
/// slow way once it is freed, which is rare as sampled blocks are.
#[inline(always)]
fn place(address: usize) -> usize {
    const SLOPE: u64 = 0x19E_3779_B97F << (18 - FILTER_BITS);
    // In bounds by the shift; the compiler sees that.
    ((address as u64).wrapping_mul(SLOPE) >> (64 - FILTER_BITS)) as usize
}

/// Whether `address` may be that of a sampled block. Never wrongly false.
#[inline(always)]
pub fn may_hold(address: usize) -> bool {
    FILTER[place(address)].load(Relaxed) != 0
}

/// Makes [`may_hold`] true for `address`, once more.
pub fn filter_add(address: usize) {
    let byte = &FILTER[place(address)];
    let _ = byte.fetch_update(Relaxed, Relaxed, |n| n.checked_add(1));
}

/// Takes back one [`filter_add`].
pub fn filter_sub(address: usize) {
    let byte = &FILTER[place(address)];
    let _ = byte.fetch_update(Relaxed, Relaxed, |n| (n != u8::MAX).then(|| n.wrapping_sub(1)));
}

/// Forgets all of them: in a forked child, whose blocks these are not.
pub fn forget_filter() {
    for byte in &FILTER[..] {
        byte.store(0, Relaxed);
    }
}

/// A cache line of the table.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Bucket {
    /// 0, or `tag << INDEX_BITS | index + 1`.
    slots: [AtomicU64; SLOTS],
    /// Keys of this home or passing through it that lie in later buckets.
    passed: AtomicU32,
}

// SAFETY: zero bytes are empty slots and a count of 0.
unsafe impl Zeroable for Bucket {}

/// The exact table.
pub struct SampledSet {
    buckets: &'static [Bucket],
}

impl SampledSet {
    /// Bytes of a region that a set for `entries` entries takes.
    pub const fn bytes(entries: usize) -> usize {
        Self::bucket_count(entries) * size_of::<Bucket>()
    }

    /// A power of two, for a load of at most five of seven slots.
    const fn bucket_count(entries: usize) -> usize {
        (entries / 5 + 1).next_power_of_two()
    }

    /// An empty set for at most `entries` entries.
    pub fn new(region: &mut Region, entries: usize) -> Option<Self> {
        Some(Self { buckets: region.slice(Self::bucket_count(entries))? })
    }

    fn home(&self, hash: u64) -> usize {
        // Bits that the filter and the tag do not share wholly.
        (hash >> 20) as usize & (self.buckets.len() - 1)
    }

    fn bucket(&self, home: usize, step: usize) -> &Bucket {
        &self.buckets[(home + step) & (self.buckets.len() - 1)]
    }

    fn slot_value(hash: u64, index: u32) -> u64 {
        (hash & !((1 << INDEX_BITS) - 1)) | (u64::from(index) + 1)
    }

    fn leave(&self, home: usize, steps: usize) {
        for step in 0..steps {
            self.bucket(home, step).passed.fetch_sub(1, Relaxed);
        }
    }

    /// `address` will be put in soon: its bucket may be far.
    #[inline]
    pub fn will_insert(&self, address: usize) {
        super::sys::prefetch(self.bucket(self.home(hash(address)), 0));
    }

    /// Puts `address` in, with its entry's `index` below [`MAX_ENTRIES`]; false,
    /// and nothing changed, if there is no room within reach.
    pub fn insert(&self, address: usize, index: u32) -> bool {
        let hash = hash(address);
        let (home, value) = (self.home(hash), Self::slot_value(hash, index));
        for step in 0..REACH {
            let bucket = self.bucket(home, step);
            for slot in &bucket.slots {
                if slot.load(Relaxed) == 0
                    && slot.compare_exchange(0, value, Relaxed, Relaxed).is_ok()
                {
                    filter_add(address);
                    return true;
                }
            }
            bucket.passed.fetch_add(1, Relaxed);
        }
        self.leave(home, REACH);
        false
    }

    /// Takes `address` out and gives its entry's index. `is_it` tells whether an
    /// entry of this index is the block at `address`.
    pub fn remove(&self, address: usize, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let hash = hash(address);
        let home = self.home(hash);
        for step in 0..REACH {
            let bucket = self.bucket(home, step);
            for slot in &bucket.slots {
                let value = slot.load(Relaxed);
                if value == 0 || (value ^ hash) >> INDEX_BITS != 0 {
                    continue;
                }
                let index = (value as u32 & ((1 << INDEX_BITS) - 1)).wrapping_sub(1);
                // The exchange decides between a free and the agent's thread, which
                // thins: one of them has the entry, the other finds nothing.
                if is_it(index) && slot.compare_exchange(value, 0, Relaxed, Relaxed).is_ok() {
                    self.leave(home, step);
                    filter_sub(address);
                    return Some(index);
                }
            }
            if bucket.passed.load(Relaxed) == 0 {
                return None;
            }
        }
        None
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn set(entries: usize) -> SampledSet {
        let mut region = Region::new(SampledSet::bytes(entries) + 64).unwrap();
        SampledSet::new(&mut region, entries).unwrap()
    }

    #[test]
    fn what_goes_in_comes_out_once() {
        let set = set(5000);
        let mut model = HashMap::new();
        let mut x = 1u64;
        for round in 0..200_000u32 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let address = 0x7f00_0000_0000 + (x >> 51) as usize * 16;
            let index = round % 5000;
            if let Some(known) = model.remove(&address) {
                assert!(may_hold(address));
                assert_eq!(set.remove(address, |i| i == known), Some(known));
                assert_eq!(set.remove(address, |_| false), None);
            } else if model.len() < 5000 && !model.values().any(|&i| i == index) {
                assert!(set.insert(address, index));
                model.insert(address, index);
            }
        }
        for (address, index) in model {
            assert_eq!(set.remove(address, |i| i == index), Some(index));
        }
        for bucket in set.buckets {
            assert_eq!(bucket.passed.load(Relaxed), 0);
            assert!(bucket.slots.iter().all(|s| s.load(Relaxed) == 0));
        }
    }

    #[test]
    fn a_crowded_bucket_overflows_and_empties() {
        let set = set(1000);
        let home = |a: usize| set.home(hash(a));
        let crowd: Vec<usize> =
            (1usize..).map(|i| i * 16).filter(|&a| home(a) == home(16)).take(40).collect();
        for (i, &address) in crowd.iter().enumerate() {
            assert!(set.insert(address, i as u32));
        }
        for (i, &address) in crowd.iter().enumerate() {
            assert_eq!(set.remove(address, |x| x == i as u32), Some(i as u32));
        }
        assert!(set.buckets.iter().all(|b| b.passed.load(Relaxed) == 0));
    }

    #[test]
    fn a_full_table_refuses_and_stays_sound() {
        let set = set(4);
        let room = set.buckets.len() * SLOTS;
        let mut put = 0;
        for i in 0..room + 10 {
            put += usize::from(set.insert(0x1000 + i * 16, i as u32));
        }
        assert!(put <= room && put > 0);
        let before: u32 = set.buckets.iter().map(|b| b.passed.load(Relaxed)).sum();
        assert!(!set.insert(0x9999_0000, 3));
        assert_eq!(before, set.buckets.iter().map(|b| b.passed.load(Relaxed)).sum());
    }

    #[test]
    fn threads_with_addresses_of_their_own_do_not_disturb_each_other() {
        let set = set(4000);
        std::thread::scope(|scope| {
            for t in 0..4usize {
                let set = &set;
                scope.spawn(move || {
                    for round in 0..300 {
                        for i in 0..200usize {
                            let index = (t * 200 + i) as u32;
                            assert!(set.insert((0x10_0000 * (t + 1)) + i * 16, index));
                        }
                        for i in 0..200usize {
                            let index = (t * 200 + i) as u32;
                            let address = (0x10_0000 * (t + 1)) + i * 16;
                            assert_eq!(
                                set.remove(address, |x| x == index),
                                Some(index),
                                "round {round}"
                            );
                        }
                    }
                });
            }
        });
    }
}
