//! The atomics of the engine, by way of which `loom` can be put in their place.
//!
//! Normally these are std's own and cost nothing. Under `cfg(loom)` they are
//! loom's, and the models of `tests/loom` run the engine's own files through every
//! interleaving, and through every value that a relaxed load may see, up to a
//! bound of preemptions. Three things differ there, all of them here or in
//! `region`:
//!
//! - loom's atomics have no `const` constructor: statics are made by `shared!`,
//!   anew for each interleaving;
//! - nor are they valid when zero: a slice of a region is made of defaults;
//! - loom's threads share one thread of the system: `per_thread!` is loom's.
//!
//! Sizes of tables are a few there, so that what takes thousands of blocks in
//! life, a bucket or a cache slot that is shared, happens with two: `scaled`.

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard};

/// `usual`, or `modelled` where loom runs.
pub const fn scaled(usual: usize, modelled: usize) -> usize {
    if cfg!(loom) { modelled } else { usual }
}

/// Statics of atomics: one, or an array of equal ones.
macro_rules! shared {
    () => {};
    ($(#[$doc:meta])* static $name:ident: [$type:ty; $n:expr] = $first:expr; $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$doc])* static $name: [$type; $n] = [const { $first }; $n];
        #[cfg(loom)]
        loom::lazy_static! {
            static ref $name: [$type; $n] = std::array::from_fn(|_| $first);
        }
        $crate::engine::sync::shared! { $($rest)* }
    };
    ($(#[$doc:meta])* static $name:ident: $type:ty = $first:expr; $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$doc])* static $name: $type = $first;
        #[cfg(loom)]
        loom::lazy_static! {
            static ref $name: $type = $first;
        }
        $crate::engine::sync::shared! { $($rest)* }
    };
}
pub(crate) use shared;

/// What a thread-local may be of.
///
/// # Safety
///
/// All zeros are a value of the type, and the one that a thread begins with.
pub unsafe trait StartsAsZeros {
    /// Where nothing asks for it, too, it is to be true.
    const TOLD: () = ();
}

/// A thread-local that is made by a constant expression, of a type for which all zeros
/// mean the same as that expression ([`StartsAsZeros`]).
///
/// In an executable std's own is best: its place is known when it is linked. In a
/// shared object each access of those is a call of `__tls_get_addr`, which may itself
/// allocate. There, with the feature `initial-exec`, the variable
/// lies in the part of each thread's storage that the loader sets up with the thread,
/// and is found by an offset from a register. Stable Rust knows no such thread-locals,
/// so it is declared and addressed in assembly.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $first:expr;) => {
        const _: () = <$type as $crate::engine::sync::StartsAsZeros>::TOLD;
        #[cfg(not(any(loom, all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))))]
        std::thread_local! { static $name: $type = const { $first }; }
        #[cfg(loom)]
        loom::thread_local! { static $name: $type = $first; }

        #[cfg(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))]
        std::arch::global_asm!(
            concat!(".pushsection .tbss.heaptop_", stringify!($name), ",\"awT\",@nobits"),
            ".p2align 6",
            concat!(".globl heaptop_", stringify!($name)),
            concat!(".hidden heaptop_", stringify!($name)),
            concat!(".type heaptop_", stringify!($name), ",@object"),
            concat!(".size heaptop_", stringify!($name), ",{size}"),
            concat!("heaptop_", stringify!($name), ":"),
            ".zero {size}",
            ".popsection",
            size = const size_of::<$type>(),
        );
        #[cfg(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))]
        struct $name;
        // Not made by it here; it is to be right all the same.
        #[cfg(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))]
        const _: fn() -> $type = || $first;
        #[cfg(all(feature = "initial-exec", not(loom), target_arch = "x86_64", target_os = "linux"))]
        impl $name {
            // As std's is called.
            #[allow(clippy::unused_self)]
            #[inline(always)]
            fn with<T>(&self, f: impl FnOnce(&$type) -> T) -> T {
                let at: *const $type;
                // SAFETY: computes the address of the calling thread's own variable,
                // aligned to 64 bytes, as large as the type, and of zeros at first,
                // which are a value of it. Only this thread refers to it.
                unsafe {
                    std::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + heaptop_", stringify!($name), "@GOTTPOFF]"),
                        "add {0}, qword ptr fs:[0]",
                        out(reg) at,
                        options(pure, nomem, nostack),
                    );
                    f(&*at)
                }
            }
        }
    };
}
pub(crate) use per_thread;
