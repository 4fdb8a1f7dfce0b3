//! A life in 27 bytes.
//!
//! ```text
//! ended   i32   µs, from the chunk's base            thread    u16  65,535: any other
//! age     u40   µs, so that birth = end − age        samples   u8   255: that many or more
//! size    u32   bytes, or a place in the side list   interval  u8   place in the list of R
//! clock   i32   4 KiB units, from the chunk's base
//! bits    u48   callstack 21, bucket of age 9, of age on the clock 9, end 2, cause 2,
//!               born young, promoted, listed, large
//! ```

use super::{End, Life};
use heaptop_protocol::event::Cause;

/// Bytes of a unit of the allocation clock, as a power of two.
pub const CLOCK_SHIFT: u32 = 12;
/// Largest age that is kept.
const OLDEST_US: u64 = (1 << 40) - 1;
/// Samples from which on they are not counted.
pub const MANY_SAMPLES: u8 = u8::MAX;
const STACK_BITS: u32 = 21;
const BUCKET_BITS: u32 = 9;
const _: () = assert!(crate::session::estimate::survival::BUCKETS <= 1 << BUCKET_BITS);
// One more is for `(other stacks)`, which always finds room.
const _: () = assert!(crate::session::book::MOST_STACKS < 1 << STACK_BITS);

/// Where the numbers of a chunk count from.
#[derive(Debug, Clone, Copy)]
pub struct Base {
    pub us: u64,
    /// In units.
    pub clock: u64,
}

impl Base {
    /// Whether a life's end can be told from here.
    pub const fn reaches(self, life: &Life) -> bool {
        let away = life.ended_us.wrapping_sub(self.us).cast_signed();
        let units = (life.born_clock >> CLOCK_SHIFT).wrapping_sub(self.clock).cast_signed();
        away == away as i32 as i64 && units <= i32::MAX as i64
    }
}

/// See the module.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed)]
pub struct Packed {
    ended: i32,
    age_low: u32,
    size: u32,
    clock: i32,
    bits_low: u32,
    bits_high: u16,
    thread: u16,
    age_high: u8,
    pub samples: u8,
    pub interval: u8,
}

const _: () = assert!(size_of::<Packed>() == 27);

impl Packed {
    /// Packs a life that `base` reaches. `size` is that of the life, or with `large` its
    /// place in the side list.
    pub fn new(life: &Life, base: Base, interval: u8, size: u32, large: bool) -> Self {
        let age = life.ended_us.saturating_sub(life.born_us).min(OLDEST_US);
        let units = (life.born_clock >> CLOCK_SHIFT).wrapping_sub(base.clock).cast_signed();
        let mut bits = 0u64;
        let mut put = |value: u64, width: u32| bits = bits << width | value & ((1 << width) - 1);
        put(u64::from(large), 1);
        put(u64::from(life.listed), 1);
        put(u64::from(life.promoted), 1);
        put(u64::from(life.born_young), 1);
        put(life.cause as u64, 2);
        put(life.end as u64, 2);
        put(u64::from(life.clock_age), BUCKET_BITS);
        put(u64::from(life.age), BUCKET_BITS);
        put(u64::from(life.stack), STACK_BITS);
        Self {
            ended: life.ended_us.wrapping_sub(base.us) as i32,
            age_low: age as u32,
            age_high: (age >> 32) as u8,
            size,
            clock: units.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            bits_low: bits as u32,
            bits_high: (bits >> 32) as u16,
            thread: life.thread.0.min(u32::from(u16::MAX)) as u16,
            samples: life.n_samples.min(u64::from(MANY_SAMPLES)) as u8,
            interval,
        }
    }

    /// The place in the side list, of a large life.
    #[inline]
    pub const fn large(&self) -> Option<usize> {
        let (high, size) = (self.bits_high, self.size);
        if high >> (47 - 1 - 32) & 1 == 1 { Some(size as usize) } else { None }
    }

    /// Its bytes, of one that is not large.
    #[inline]
    pub const fn size(&self) -> u64 {
        self.size as u64
    }

    /// Its callstack's place in the session: it is at the low end of the bits.
    #[inline]
    pub const fn stack(&self) -> u32 {
        self.bits_low & ((1 << STACK_BITS) - 1)
    }

    /// When it ended.
    #[inline]
    pub const fn ended_us(&self, base: Base) -> u64 {
        base.us.wrapping_add_signed(self.ended as i64)
    }

    /// When it was born.
    #[inline]
    pub const fn born_us(&self, base: Base) -> u64 {
        let age = (self.age_high as u64) << 32 | self.age_low as u64;
        self.ended_us(base).saturating_sub(age)
    }

    /// The life, all but R, samples and a large size.
    #[inline]
    pub fn life(&self, base: Base) -> Life {
        let mut bits = u64::from(self.bits_high) << 32 | u64::from(self.bits_low);
        let mut take = |width: u32| {
            let value = bits & ((1 << width) - 1);
            bits >>= width;
            value
        };
        let stack = take(STACK_BITS) as u32;
        let age = take(BUCKET_BITS) as u16;
        let clock_age = take(BUCKET_BITS) as u16;
        let end = match take(2) {
            0 => End::Freed,
            1 => End::FreedElsewhere,
            2 => End::Unseen,
            _ => End::Lost,
        };
        let cause = match take(2) {
            0 => Cause::Malloc,
            1 => Cause::Calloc,
            2 => Cause::Realloc,
            _ => Cause::Aligned,
        };
        let (born_young, promoted, listed) = (take(1) == 1, take(1) == 1, take(1) == 1);
        let clock = base.clock.saturating_add_signed(i64::from(self.clock));
        Life {
            born_us: self.born_us(base),
            ended_us: self.ended_us(base),
            age,
            born_clock: clock << CLOCK_SHIFT,
            clock_age,
            size: self.size(),
            n_samples: u64::from(self.samples),
            interval: heaptop_protocol::estimate::Interval::EXACT,
            stack,
            thread: heaptop_protocol::ids::ThreadId(u32::from(self.thread)),
            cause,
            born_young,
            promoted,
            listed,
            end,
        }
    }
}
