//! The life of sampled blocks: birth, promotion, death.
//!
//! On the wire events travel in batches, as differences to the batch's base:
//! the codec's varints take nine bytes for numbers of 2³² and more. Births and
//! deaths are numbered through and stand in that order in a batch; a batch may
//! reach back a little behind the one before it. Promotions bear the number that
//! was next when they were noticed. A block's own events keep their order.

use crate::codec::{Decode, Encode};
use crate::estimate::Interval;
use crate::ids::{BlockId, StackId, ThreadId};

/// How a block came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Cause {
    /// malloc, `alloc`, and memory outside the heap that the program reports.
    Malloc,
    /// calloc, `alloc_zeroed`.
    Calloc,
    /// realloc, in place or not.
    Realloc,
    /// An alignment above the allocator's own.
    Aligned,
}

/// A moment: on the events' order, in time and on the allocation clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Moment {
    /// Process-wide sequence number. A number that never comes is a lost event.
    pub seq: u64,
    /// Nanoseconds since the agent started. Agents tell it in steps of 256.
    pub time_ns: u64,
    /// G: bytes allocated by the process, exact to 64 KiB a thread.
    pub clock: u64,
}

/// The birth of a sampled block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alloc {
    /// When. `at.seq` is the block's identity; `at.clock` is G before the block.
    pub at: Moment,
    /// The thread that allocated.
    pub thread: ThreadId,
    /// Where.
    pub stack: StackId,
    /// Bytes asked for.
    pub size: u64,
    /// Samples in the block, at least 1.
    pub n_samples: u64,
    /// R at that moment.
    pub interval: Interval,
    /// How.
    pub cause: Cause,
    /// Where it lies.
    pub address: u64,
    /// Whether it was born in the nursery.
    pub young: bool,
    /// The sampled block that this one replaces, for [`Cause::Realloc`].
    pub replaces: Option<BlockId>,
}

impl Alloc {
    /// The block's identity.
    #[must_use]
    pub const fn id(&self) -> BlockId {
        BlockId(self.at.seq)
    }
}

/// A young block survived its minor cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promote {
    /// When it was noticed.
    pub at: Moment,
    /// Which.
    pub id: BlockId,
}

/// The death of a sampled block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealloc {
    /// When; exact on the clock for the thread that frees.
    pub at: Moment,
    /// Which.
    pub id: BlockId,
    /// The thread that freed it.
    pub thread: ThreadId,
    /// Whether it died young, before promotion.
    pub young: bool,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A birth, minor or major.
    Alloc(Alloc),
    /// A promotion.
    Promote(Promote),
    /// A death, minor or major.
    Dealloc(Dealloc),
}

impl Event {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> Moment {
        match self {
            Self::Alloc(e) => e.at,
            Self::Promote(e) => e.at,
            Self::Dealloc(e) => e.at,
        }
    }
}

/// Events on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Batch {
    base: Moment,
    events: Vec<Delta>,
}

/// A moment as differences to the batch's base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
struct Since(i64, i64, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
enum Delta {
    Alloc {
        at: Since,
        thread: ThreadId,
        stack: StackId,
        size: u64,
        n_samples: u64,
        interval: Interval,
        cause: Cause,
        address: u64,
        young: bool,
        replaces: Option<i64>,
    },
    Promote {
        at: Since,
        id: i64,
    },
    Dealloc {
        at: Since,
        id: i64,
        thread: ThreadId,
        young: bool,
    },
}

impl Batch {
    /// Most events that a batch should hold: its frame stays far below the bound.
    pub const MOST: usize = 4096;

    /// Packs `events`.
    #[must_use]
    pub fn pack(events: &[Event]) -> Self {
        let base = events.first().map_or(Moment { seq: 0, time_ns: 0, clock: 0 }, Event::at);
        let since = |at: Moment| {
            Since(
                at.seq.wrapping_sub(base.seq).cast_signed(),
                at.time_ns.wrapping_sub(base.time_ns).cast_signed(),
                at.clock.wrapping_sub(base.clock).cast_signed(),
            )
        };
        let relative = |id: BlockId| id.0.wrapping_sub(base.seq).cast_signed();
        let events = events
            .iter()
            .map(|event| match *event {
                Event::Alloc(e) => Delta::Alloc {
                    at: since(e.at),
                    thread: e.thread,
                    stack: e.stack,
                    size: e.size,
                    n_samples: e.n_samples,
                    interval: e.interval,
                    cause: e.cause,
                    address: e.address,
                    young: e.young,
                    replaces: e.replaces.map(relative),
                },
                Event::Promote(e) => Delta::Promote { at: since(e.at), id: relative(e.id) },
                Event::Dealloc(e) => Delta::Dealloc {
                    at: since(e.at),
                    id: relative(e.id),
                    thread: e.thread,
                    young: e.young,
                },
            })
            .collect();
        Self { base, events }
    }

    /// The events, in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        let base = self.base;
        let moment = move |Since(seq, time, clock): Since| Moment {
            seq: base.seq.wrapping_add_signed(seq),
            time_ns: base.time_ns.wrapping_add_signed(time),
            clock: base.clock.wrapping_add_signed(clock),
        };
        let absolute = move |id: i64| BlockId(base.seq.wrapping_add_signed(id));
        self.events.iter().map(move |delta| match *delta {
            Delta::Alloc {
                at,
                thread,
                stack,
                size,
                n_samples,
                interval,
                cause,
                address,
                young,
                replaces,
            } => Event::Alloc(Alloc {
                at: moment(at),
                thread,
                stack,
                size,
                n_samples,
                interval,
                cause,
                address,
                young,
                replaces: replaces.map(absolute),
            }),
            Delta::Promote { at, id } => {
                Event::Promote(Promote { at: moment(at), id: absolute(id) })
            }
            Delta::Dealloc { at, id, thread, young } => {
                Event::Dealloc(Dealloc { at: moment(at), id: absolute(id), thread, young })
            }
        })
    }

    /// How many events it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments() -> impl Strategy<Value = Moment> {
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(seq, time_ns, clock)| Moment {
            seq,
            time_ns,
            clock,
        })
    }

    pub(crate) fn events() -> impl Strategy<Value = Event> {
        let alloc = (
            moments(),
            any::<(u32, u32, u64, u64, u64, bool)>(),
            proptest::option::of(any::<u64>()),
            1u64..1 << 32,
        )
            .prop_map(|(at, (t, s, size, n, address, young), replaces, r)| {
                Event::Alloc(Alloc {
                    at,
                    thread: ThreadId(t),
                    stack: StackId(s),
                    size,
                    n_samples: n,
                    interval: Interval::new(r).unwrap(),
                    cause: Cause::Realloc,
                    address,
                    young,
                    replaces: replaces.map(BlockId),
                })
            });
        let promote = (moments(), any::<u64>())
            .prop_map(|(at, id)| Event::Promote(Promote { at, id: BlockId(id) }));
        let dealloc = (moments(), any::<u64>(), any::<u32>(), any::<bool>()).prop_map(
            |(at, id, thread, young)| {
                Event::Dealloc(Dealloc { at, id: BlockId(id), thread: ThreadId(thread), young })
            },
        );
        prop_oneof![alloc, promote, dealloc]
    }

    proptest! {
        #[test]
        fn batches_give_back_what_was_packed(
            events in proptest::collection::vec(events(), 0..40)
        ) {
            let batch = Batch::pack(&events);
            prop_assert_eq!(batch.len(), events.len());
            prop_assert_eq!(batch.iter().collect::<Vec<_>>(), events);
        }
    }
}
