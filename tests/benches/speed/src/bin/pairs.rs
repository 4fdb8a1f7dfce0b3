//! Two allocators side by side in one process, on one heap: the system's, and
//! heaptop around it. Each loop runs by turns with the one and with the other, and
//! what is compared is the CPU time of the thread that allocates. The agent's thread
//! is there for both, and its time is in neither.
//!
//! `pairs LOOP DEPTH ROUNDS`, R as the environment says.

use heaptop_agent::Heaptop;
use heaptop_speed::loops::below;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::{Barrier, Mutex};

#[global_allocator]
static HEAPTOP: Heaptop = Heaptop::system();
static BARE: System = System;

/// xorshift64: the same numbers for both; and the alignment of what they make, which no
/// compiler knows. `__rust_alloc` does not know it either, and what it calls looks at it.
/// A bare allocator without that look is a single jump: a program has no such thing, and
/// on some machines one `nop` before it makes the million 10 % slower.
#[derive(Clone)]
struct Numbers(u64, usize);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed, black_box(8))
    }

    #[inline]
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize
    }

    /// 16 to 256 bytes, 136 in the mean.
    #[inline]
    fn layout(&mut self) -> Layout {
        let size = 16 + self.next() % 241;
        self.bytes(size)
    }

    #[inline]
    fn bytes(&self, size: usize) -> Layout {
        Layout::from_size_align(size, self.1).expect("a size that is a size")
    }
}

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

type Slot = (*mut u8, Layout);

/// A call of the allocator as a program's is: `__rust_alloc` is not inlined.
///
/// # Safety
///
/// As [`GlobalAlloc::alloc`].
#[inline(never)]
unsafe fn alloc<A: GlobalAlloc>(a: &'static A, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's contract is passed on.
    unsafe { a.alloc(layout) }
}

/// # Safety
///
/// As [`GlobalAlloc::dealloc`].
#[inline(never)]
unsafe fn dealloc<A: GlobalAlloc>(a: &'static A, block: *mut u8, layout: Layout) {
    // SAFETY: as above.
    unsafe { a.dealloc(block, layout) }
}

/// A loop's own state, kept over its turns.
struct State {
    slots: Vec<Slot>,
    numbers: Numbers,
}

/// One turn of a loop: nanoseconds an operation.
type Turn<A> = fn(&'static A, &mut State) -> f64;

/// Pairs of malloc and free, nothing between.
#[inline(never)]
fn tight<A: GlobalAlloc>(a: &'static A, s: &mut State) -> f64 {
    const PAIRS: u32 = 400_000;
    let begin = cpu_ns();
    for _ in 0..PAIRS {
        let layout = s.numbers.layout();
        // SAFETY: the size is not 0; the block is freed with its layout.
        unsafe {
            let block = black_box(alloc(a, layout));
            block.write(1);
            dealloc(a, block, layout);
        }
    }
    (cpu_ns() - begin) / f64::from(PAIRS)
}

/// A million live blocks; each step frees a random one and makes another. They are
/// the same blocks for both, so that neither has the better place. What the agent has
/// sampled and the bare allocator frees, it takes for alive until the address is freed
/// through it; that costs it a little.
#[inline(never)]
fn million<A: GlobalAlloc>(a: &'static A, s: &mut State) -> f64 {
    const STEPS: u32 = 200_000;
    while s.slots.len() < 1_000_000 {
        let layout = s.numbers.layout();
        // SAFETY: the size is not 0.
        s.slots.push((unsafe { alloc(a, layout) }, layout));
    }
    let begin = cpu_ns();
    for _ in 0..STEPS {
        let at = s.numbers.next() % s.slots.len();
        let layout = s.numbers.layout();
        // SAFETY: the slot holds a live block of this allocator and its layout.
        unsafe {
            let (old, of) = s.slots[at];
            dealloc(a, old, of);
            let new = alloc(a, layout);
            new.write(1);
            s.slots[at] = (new, layout);
        }
    }
    (cpu_ns() - begin) / f64::from(STEPS)
}

/// A pointer that goes to another thread, which frees it.
struct Parcel(Vec<Slot>);
// SAFETY: blocks of an allocator may be freed by any thread.
unsafe impl Send for Parcel {}

/// Two threads, each of which frees what the other has made; the same two for both
/// allocators, since it matters which of malloc's arenas a thread has.
struct Crossing {
    posts: [Mutex<Parcel>; 2],
    barrier: Barrier,
}

impl Crossing {
    const PARCEL: usize = 4096;

    fn new() -> Self {
        let parcel = || Mutex::new(Parcel(vec![(null_mut(), Layout::new::<u64>()); Self::PARCEL]));
        Self { posts: [parcel(), parcel()], barrier: Barrier::new(2) }
    }

    /// One thread's part of a turn: nanoseconds an operation.
    fn turn<A: GlobalAlloc>(&self, a: &'static A, me: usize, numbers: &mut Numbers) -> f64 {
        const PARCELS: usize = 25;
        let begin = cpu_ns();
        for _ in 0..PARCELS {
            for slot in &mut self.posts[me].lock().expect("nobody panics").0 {
                let layout = numbers.layout();
                // SAFETY: the size is not 0.
                *slot = (unsafe { alloc(a, layout) }, layout);
                // SAFETY: it has a byte.
                unsafe { slot.0.write(1) };
            }
            self.barrier.wait();
            for &(block, layout) in &self.posts[1 - me].lock().expect("nobody panics").0 {
                // SAFETY: made with that layout, freed here alone.
                unsafe { dealloc(a, block, layout) };
            }
            self.barrier.wait();
        }
        (cpu_ns() - begin) / (Self::PARCEL * PARCELS) as f64
    }

    fn turns(&self, me: usize, rounds: usize) -> Vec<(f64, f64)> {
        let mut numbers = Numbers::new(88_172_645_463_325_252 + me as u64);
        (0..=rounds)
            .map(|round| {
                if round % 2 == 0 {
                    let b = self.turn(&BARE, me, &mut numbers);
                    (b, self.turn(&HEAPTOP, me, &mut numbers))
                } else {
                    let w = self.turn(&HEAPTOP, me, &mut numbers);
                    (self.turn(&BARE, me, &mut numbers), w)
                }
            })
            .skip(1)
            .collect()
    }

    fn run(rounds: usize) {
        let crossing = Self::new();
        std::thread::scope(|scope| {
            let [one, other] = [0, 1].map(|me| {
                let crossing = &crossing;
                scope.spawn(move || crossing.turns(me, rounds))
            });
            let both = one.join().expect("it ends").into_iter().zip(other.join().expect("it ends"));
            for ((b, w), (more_b, more_w)) in both {
                println!("{} {}", b + more_b, w + more_w);
            }
        });
    }
}

/// Blocks of one size, each of their pages written once, until there are 32 MiB of
/// them; then all are freed.
#[inline(never)]
fn written<A: GlobalAlloc, const BYTES: usize>(a: &'static A, s: &mut State) -> f64 {
    let blocks = (32 << 20) / BYTES;
    let layout = s.numbers.bytes(BYTES);
    s.slots.clear();
    s.slots.reserve(blocks);
    let begin = cpu_ns();
    for _ in 0..blocks {
        // SAFETY: what is written lies in the block.
        unsafe {
            let block = black_box(alloc(a, layout));
            for page in (0..BYTES).step_by(4096) {
                block.add(page).write(1);
            }
            s.slots.push((block, layout));
        }
    }
    for &(block, layout) in &s.slots {
        // SAFETY: made with that layout, and freed once.
        unsafe { dealloc(a, block, layout) };
    }
    (cpu_ns() - begin) / blocks as f64
}

fn turns<A: GlobalAlloc>(name: &str) -> Option<Turn<A>> {
    Some(match name {
        "tight" => tight,
        "million" => million,
        "4K" => written::<A, { 4 << 10 }>,
        "64K" => written::<A, { 64 << 10 }>,
        "1M" => written::<A, { 1 << 20 }>,
        "4M" => written::<A, { 4 << 20 }>,
        _ => return None,
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let mut number = || arguments.next().and_then(|a| a.parse().ok());
    let (depth, rounds): (usize, usize) = (number().unwrap_or(0), number().unwrap_or(21));
    if name == "crossing" {
        return Crossing::run(rounds);
    }
    let (Some(bare), Some(wrapped)) = (turns(&name), turns(&name)) else {
        eprintln!("there is no loop {name:?}");
        std::process::exit(2);
    };
    let mut state = State { slots: Vec::new(), numbers: Numbers::new(88_172_645_463_325_252) };
    below(depth as u32, &mut || {
        // Once for warm caches, and for the blocks that live.
        bare(&BARE, &mut state);
        wrapped(&HEAPTOP, &mut state);
        for round in 0..rounds {
            let (b, w) = if round % 2 == 0 {
                let b = bare(&BARE, &mut state);
                (b, wrapped(&HEAPTOP, &mut state))
            } else {
                let w = wrapped(&HEAPTOP, &mut state);
                (bare(&BARE, &mut state), w)
            };
            println!("{b} {w}");
        }
    });
}
