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
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

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

/// A thread-local that is made by a constant expression.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $first:expr;) => {
        #[cfg(not(loom))]
        std::thread_local! { static $name: $type = const { $first }; }
        #[cfg(loom)]
        loom::thread_local! { static $name: $type = $first; }
    };
}
pub(crate) use per_thread;
