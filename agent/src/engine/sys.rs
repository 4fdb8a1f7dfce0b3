//! The few calls into the system that the engine makes on the target's own
//! threads. None allocates, none blocks; `errno` is kept by [`Errno`].

/// Keeps `errno` over its life: what the engine does must not be seen.
pub struct Errno(i32);

impl Errno {
    /// Remembers the thread's `errno`.
    pub fn keep() -> Self {
        // SAFETY: the location is the calling thread's own and always valid.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above; an `Errno` does not leave its thread.
        unsafe { *libc::__errno_location() = self.0 }
    }
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing. The vDSO answers without a system call
    // for the monotonic and the real-time clock.
    unsafe { libc::clock_gettime(id, &raw mut t) };
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Has the cache lines of `what`, two at most, fetched: a hint, which costs nothing
/// where it is wrong.
#[inline(always)]
pub fn prefetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::from_ref(what).cast::<i8>();
        // SAFETY: a hint, for which any address will do.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at);
            if size_of::<T>() > 64 {
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The kernel's number of the calling thread.
pub fn tid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether the calling thread is the process's first.
pub fn is_first_thread() -> bool {
    tid() == std::process::id()
}

/// Sleeps so long, about. For the agent's thread.
pub fn sleep_ms(ms: u32) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(ms.min(999)) * 1_000_000 };
    // SAFETY: the time is live, and nobody wants to know what was left of it.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Most bytes that the process may ever map, by its limits on address space and
/// on data; `u64::MAX` without a limit.
pub fn most_address_space() -> u64 {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA]
        .into_iter()
        .map(|what| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `limit` is valid for writing.
            let known = unsafe { libc::getrlimit(what, &raw mut limit) } == 0;
            if known { limit.rlim_cur } else { u64::MAX }
        })
        .fold(u64::MAX, u64::min)
}

/// Maps fresh memory, of zeros; `None` when the system refuses. What is not touched
/// costs address space only.
pub fn map(bytes: usize) -> Option<usize> {
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (at != libc::MAP_FAILED).then_some(at as usize)
}

/// A word that cannot be guessed from outside, made when the process was.
pub fn random_seed() -> u64 {
    // SAFETY: AT_RANDOM, where present, points to 16 bytes that live as long as
    // the process.
    let bytes = unsafe {
        let at = libc::getauxval(libc::AT_RANDOM) as *const u64;
        if at.is_null() { 0 } else { at.read_unaligned() }
    };
    bytes ^ monotonic_ns()
}

/// The value of an environment variable, as bytes; empty where it is not set.
///
/// # Safety
///
/// The bytes are the environment's own: the caller must be done with them
/// before the program changes its environment. The engine reads it once, in the
/// first allocation of the process or in the constructor, before `main`.
pub unsafe fn environment(name: &std::ffi::CStr) -> &'static [u8] {
    // SAFETY: `name` ends with a zero byte; getenv returns null or a string.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() { &[] } else { std::ffi::CStr::from_ptr(value).to_bytes() }
    }
}
