//! A fixed amount of work with known truth, for `heaptop demo --prove`.
//!
//! 1. **The same in every run.** Two threads work in turns, a tick each, and a
//!    baton says whose turn it is; sizes come from fixed sequences. So two runs
//!    allocate the same blocks in the same order, whatever R is, and what an
//!    exact run counts is the truth for a sampled one.
//! 2. **Bounded.** It is births that are bounded, by [`TICKS`], and not time:
//!    an agent at R = 1 has room for all of them at once, and loses none however
//!    slow the machine is.
//! 3. **Of all kinds**: what dies at once, what waits in a queue for half a
//!    nursery, what stays for a while or for ever, blocks far larger than R, tiny
//!    ones, and blocks that another thread frees. Within a function sizes lie
//!    within 16:1, so that object counts have intervals.
//! 4. At the end it rests with all that lives, so that the truth stands still.

use std::hint::black_box;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::service::Sizes;
use crate::truth::{self, Block, Counters};

/// Turns of each thread. About 200 births and 110 KiB a turn: 160 MiB in all,
/// 80 cycles of the nursery.
const TICKS: usize = 1500;

/// A function for each line: it allocates one block, of a size between the two.
/// It asks for it by itself and is kept whole, so that it is the callsite.
macro_rules! callsites {
    ($($(#[$doc:meta])* $function:ident $counters:ident $low:literal $high:literal;)*) => {
        $(
            static $counters: Counters = Counters::new(stringify!($function), true);

            $(#[$doc])*
            #[inline(never)]
            fn $function(sizes: &mut Sizes) -> Block {
                let size = sizes.between($low, $high);
                black_box(Block::counted(black_box(vec![0; size].into_boxed_slice()), &$counters))
            }
        )*

        /// All of them.
        const CALLSITES: &[&Counters] = &[$(&$counters),*];
    };
}

callsites! {
    /// Dies a turn later.
    serve_request SERVE_REQUEST 64 1000;
    /// Dies at once.
    parse_header PARSE_HEADER 16 128;
    /// Lives for half a nursery.
    queue_job QUEUE_JOB 100 800;
    /// Freed by the other thread.
    send_batch SEND_BATCH 1000 2048;
    /// Never freed.
    forget_session FORGET_SESSION 128 896;
    /// Stays until the cache comes round.
    fill_cache FILL_CACHE 128 2048;
    /// Stays until chance takes its place.
    keep_log KEEP_LOG 100 300;
    /// Larger than any young block, and often than R.
    read_body READ_BODY 16_384 245_760;
}

/// Places that are filled one after the other, and the first again after the last.
struct Ring {
    places: Vec<Option<Block>>,
    next: usize,
    counters: &'static Counters,
}

impl Ring {
    fn new(places: usize, counters: &'static Counters) -> Self {
        let mut ring = Self { places: Vec::with_capacity(places), next: 0, counters };
        ring.places.resize_with(places, || None);
        ring
    }

    /// Puts a block into the next place.
    fn put(&mut self, block: Block) {
        let place = self.next;
        self.next = (self.next + 1) % self.places.len();
        self.put_at(place, block);
    }

    fn put_at(&mut self, place: usize, block: Block) {
        if let Some(old) = self.places[place].replace(block) {
            old.free(self.counters);
        }
    }

    fn clear(&mut self) {
        self.places.iter_mut().filter_map(Option::take).for_each(|block| block.free(self.counters));
    }
}

/// What one thread hands to the other, and whose turn it is.
struct Desk {
    turn: usize,
    batches: Ring,
}

struct Baton {
    desk: Mutex<Desk>,
    passed: Condvar,
}

impl Baton {
    /// One turn of thread `who` (0 or 1), once it is its turn.
    fn turn(&self, who: usize, work: impl FnOnce(&mut Ring)) {
        let desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.passed.wait_while(desk, |desk| desk.turn != who);
        let mut desk = waited.unwrap_or_else(PoisonError::into_inner);
        work(&mut desk.batches);
        desk.turn = 1 - who;
        self.passed.notify_one();
    }
}

/// The thread of requests.
fn front(baton: &Baton) -> [Ring; 3] {
    let mut sizes = Sizes::new(101);
    let mut requests = Ring::new(40, &SERVE_REQUEST);
    let mut headers = Ring::new(20, &PARSE_HEADER);
    let mut jobs = Ring::new(640, &QUEUE_JOB);
    for _ in 0..TICKS {
        baton.turn(0, |batches| {
            (0..60).for_each(|_| headers.put(parse_header(&mut sizes)));
            (0..40).for_each(|_| requests.put(serve_request(&mut sizes)));
            (0..64).for_each(|_| jobs.put(queue_job(&mut sizes)));
            (0..8).for_each(|_| batches.put(send_batch(&mut sizes)));
            (0..4).for_each(|_| forget_session(&mut sizes).forget());
        });
    }
    [requests, headers, jobs]
}

/// The thread of what stays.
fn back(baton: &Baton) -> [Ring; 3] {
    let mut sizes = Sizes::new(202);
    let mut pages = Ring::new(4000, &FILL_CACHE);
    let mut lines = Ring::new(8192, &KEEP_LOG);
    let mut bodies = Ring::new(8, &READ_BODY);
    for tick in 0..TICKS {
        baton.turn(1, |batches| {
            if tick + 1 < TICKS {
                batches.clear();
            }
            (0..10).for_each(|_| pages.put(fill_cache(&mut sizes)));
            for _ in 0..20 {
                let place = sizes.between(0, lines.places.len() - 1);
                lines.put_at(place, keep_log(&mut sizes));
            }
            if tick % 4 == 0 {
                bodies.put(read_body(&mut sizes));
            }
        });
    }
    [pages, lines, bodies]
}

/// Does the work, prints the truth, and rests until standard input ends.
pub fn run() -> std::io::Result<()> {
    let started = Instant::now();
    let desk = Desk { turn: 0, batches: Ring::new(16, &SEND_BATCH) };
    let baton = Baton { desk: Mutex::new(desk), passed: Condvar::new() };
    let baton = &baton;
    let kept = std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("back".into());
        let other = other.spawn_scoped(scope, || back(baton))?;
        let kept = front(baton);
        // Joined for what it holds: that lives on until all is counted.
        Ok::<_, std::io::Error>((kept, other.join()))
    })?;
    truth::print("proof", started.elapsed(), CALLSITES);
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    drop(kept);
    Ok(())
}
