//! The tracker's types, on their way through the engine, which knows none.

use crate::engine::profiles::{Answer, Birth, Callbacks, Data};
use crate::engine::{floats, kinds, tracker};
use std::alloc::{Layout, alloc};
use std::time::Duration;

/// How a block came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// `alloc`.
    Malloc,
    /// `alloc_zeroed`.
    Calloc,
    /// `realloc`.
    Realloc,
    /// An alignment above 16.
    Aligned,
    /// Memory outside the heap: [`crate::external`].
    External,
}

impl From<tracker::Cause> for Cause {
    fn from(cause: tracker::Cause) -> Self {
        match cause {
            tracker::Cause::Malloc => Self::Malloc,
            tracker::Cause::Calloc => Self::Calloc,
            tracker::Cause::Realloc => Self::Realloc,
            tracker::Cause::Aligned => Self::Aligned,
            tracker::Cause::External => Self::External,
        }
    }
}

/// A sampled allocation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Allocation<'a> {
    /// The block's identity: never used twice in a process, and the viewer's too.
    pub id: u64,
    /// Samples in it, at least 1. At λ = 1 its size.
    pub n_samples: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Where it lies.
    pub address: usize,
    /// How it came to be.
    pub cause: Cause,
    /// The sampled block that it replaces, for [`Cause::Realloc`].
    pub replaces: Option<u64>,
    /// λ that was in force, per byte.
    pub lambda: f64,
    /// The domain: a number for each thread that has allocated, from 0 on; those from the
    /// 16,384th on share 16,383.
    pub domain: u32,
    /// The kernel's number of the thread; 0 from the 16,384th thread of the process on.
    pub thread: u32,
    /// Bytes that the process had allocated before, exact to 64 KiB a thread.
    pub clock_bytes: u64,
    /// Since the agent's start.
    pub time: Duration,
    /// Whether it was born young. In `alloc_major` only where promoted blocks alone are
    /// tracked.
    pub born_young: bool,
    /// Return addresses at the allocation, root first, the allocator's own left out; of a
    /// program that is built without optimisation the wrapper's function is the last.
    /// Look an address up at one byte before it, as one does with return addresses;
    /// [`super::Names`] does.
    pub callstack: &'a [usize],
    /// Whether the callstack was cut at the root end.
    pub is_cut: bool,
}

impl Allocation<'_> {
    /// The kind of memory outside the heap that [`crate::external::alloc`] was told;
    /// `None` for a block of the heap. It stands innermost in the callstack, as an address
    /// without code.
    #[must_use]
    pub fn external_kind(&self) -> Option<&'static str> {
        let outside = matches!(self.cause, Cause::External);
        self.callstack.last().filter(|_| outside).and_then(|at| kinds::name(*at as u64))
    }

    /// Bytes that this block stands for: size / (1 − (1 − λ)^size).
    #[must_use]
    pub fn weight_bytes(&self) -> f64 {
        floats::apart(|| self.size as f64 * self.objects())
    }

    /// Blocks that this block stands for, itself included: 1 / (1 − (1 − λ)^size).
    #[must_use]
    pub fn weight_objects(&self) -> f64 {
        floats::apart(|| self.objects())
    }

    fn objects(&self) -> f64 {
        if self.lambda >= 1.0 {
            return 1.0;
        }
        let miss = (-self.lambda).ln_1p() * self.size as f64;
        let p = -miss.exp_m1();
        if p > 0.0 { 1.0 / p } else { 1.0 }
    }
}

/// What to do at births, promotions and deaths. See the module's table.
///
/// Callbacks of one block never run at once; those of two blocks may.
pub trait Tracker: Send + Sync + 'static {
    /// What is kept of a young block.
    type Minor: Send + 'static;
    /// What is kept of a major block.
    type Major: Send + 'static;

    /// A young block was sampled. `None`, as by default: it is not tracked.
    fn alloc_minor(&self, block: &Allocation<'_>) -> Option<Self::Minor> {
        let _ = block;
        None
    }

    /// A major block was sampled. `None`, as by default: it is not tracked.
    fn alloc_major(&self, block: &Allocation<'_>) -> Option<Self::Major> {
        let _ = block;
        None
    }

    /// A young block has survived its minor cycle. `None`, as by default: it is not
    /// tracked any more.
    fn promote(&self, block: Self::Minor) -> Option<Self::Major> {
        drop(block);
        None
    }

    /// A young block was freed.
    fn dealloc_minor(&self, block: Self::Minor) {
        drop(block);
    }

    /// A major block was freed.
    fn dealloc_major(&self, block: Self::Major) {
        drop(block);
    }
}

/// A tracker whose types nobody needs to know.
pub struct Erased<T>(pub T);

/// Boxes a value; `None` where there is no memory: a box would end the program.
fn boxed<T>(value: T) -> Option<Data> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        // Lives nowhere: a box of it is any pointer, and is dropped like any box.
        return Data::new(Box::into_raw(Box::new(value)).cast());
    }
    // SAFETY: the layout has a size.
    let at = Data::new(unsafe { alloc(layout) }.cast())?;
    // SAFETY: the block is of the value's layout, and this thread's alone.
    unsafe { at.as_ptr().cast::<T>().write(value) };
    Some(at)
}

/// Takes the value back.
///
/// # Safety
///
/// `data` must come from [`boxed`] for this type, and is used up.
unsafe fn unboxed<T>(data: Data) -> T {
    // SAFETY: the global allocator gave the block with this layout, as for any box.
    *unsafe { Box::from_raw(data.as_ptr().cast::<T>()) }
}

fn answer<T>(value: Option<T>) -> Answer {
    match value {
        None => Answer::Refuse,
        Some(value) => boxed(value).map_or(Answer::NoRoom, Answer::Track),
    }
}

impl<T: Tracker> Callbacks for Erased<T> {
    fn alloc(&self, b: &Birth<'_>, major: bool) -> Answer {
        let block = Allocation {
            id: b.id,
            n_samples: b.n_samples,
            size: b.size,
            address: b.address,
            cause: b.cause.into(),
            replaces: (b.replaces != 0).then_some(b.replaces),
            lambda: b.lambda,
            domain: b.domain,
            thread: b.thread,
            clock_bytes: b.clock,
            time: Duration::from_nanos(b.time_ns),
            born_young: b.born_young,
            callstack: b.frames,
            is_cut: b.is_cut,
        };
        if major { answer(self.0.alloc_major(&block)) } else { answer(self.0.alloc_minor(&block)) }
    }

    fn promote(&self, data: Data) -> Answer {
        // SAFETY: the engine gives a young block's data, which `alloc` made, and once.
        answer(self.0.promote(unsafe { unboxed(data) }))
    }

    fn dealloc(&self, data: Data, major: bool) {
        // SAFETY: as above; `major` says which kind it is.
        unsafe {
            if major {
                self.0.dealloc_major(unboxed(data));
            } else {
                self.0.dealloc_minor(unboxed(data));
            }
        }
    }

    fn forget(&self, data: Data, major: bool) {
        // SAFETY: as above.
        unsafe {
            if major {
                drop(unboxed::<T::Major>(data));
            } else {
                drop(unboxed::<T::Minor>(data));
            }
        }
    }
}
