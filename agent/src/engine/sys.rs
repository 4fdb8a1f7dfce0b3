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

/// Signals that a thread is sent for what it does itself. Blocked, they end the program
/// at once instead of waiting.
const OF_ITS_OWN: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// No handler of the program's runs on this thread while this lives, but one for what the
/// thread does itself.
pub struct Undisturbed(libc::sigset_t);

impl Undisturbed {
    /// From here on; `None` where the system refuses.
    pub fn begin() -> Option<Self> {
        // SAFETY: plain calls on local values; zero bytes are a set of signals.
        unsafe {
            let (mut most, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut most);
            for signal in OF_ITS_OWN {
                libc::sigdelset(&raw mut most, signal);
            }
            let refused = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const most, &raw mut before);
            (refused == 0).then_some(Self(before))
        }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        // SAFETY: the set is what the thread had; it does not leave its thread.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
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

/// Whether the program was given rights that whoever started it has not.
pub fn is_privileged() -> bool {
    // SAFETY: no memory involved.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The program's headers, and how much is to be added to their addresses. Nothing is
/// allocated, and nobody asked: this may be the program's own thread.
pub fn program_headers() -> (&'static [libc::Elf64_Phdr], usize) {
    // SAFETY: no memory involved.
    let [at, count, size] = [libc::AT_PHDR, libc::AT_PHNUM, libc::AT_PHENT]
        .map(|what| unsafe { libc::getauxval(what) } as usize);
    if at == 0 || size != size_of::<libc::Elf64_Phdr>() {
        return (&[], 0);
    }
    // SAFETY: the kernel says that so many headers lie there; they stay as they are.
    let all = unsafe { std::slice::from_raw_parts(at as *const libc::Elf64_Phdr, count) };
    let own = all.iter().find(|h| h.p_type == libc::PT_PHDR);
    if let Some(own) = own {
        return (all, at.wrapping_sub(own.p_vaddr as usize));
    }
    // Linkers leave it out where there is no loader. The headers stand where the segment with
    // the beginning of the file has them, behind the file's header.
    let first = all.iter().find(|h| h.p_type == libc::PT_LOAD && h.p_offset == 0);
    let behind = size_of::<libc::Elf64_Ehdr>();
    (all, first.map_or(0, |first| at.wrapping_sub(behind).wrapping_sub(first.p_vaddr as usize)))
}

/// Whether an address lies in the program itself, and in no shared object. Asks nobody.
pub fn is_of_the_program(address: usize) -> bool {
    let (all, bias) = program_headers();
    all.iter().filter(|h| h.p_type == libc::PT_LOAD).any(|h| {
        let offset = address.wrapping_sub(bias).wrapping_sub(h.p_vaddr as usize);
        offset < h.p_memsz as usize
    })
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_programs_own_is_told_from_what_is_loaded() {
        let own = what_is_the_programs_own_is_told_from_what_is_loaded as fn() as usize;
        assert!(is_of_the_program(own));
        let on_stack = 0;
        // One that no sanitizer puts its own in place of.
        let loaded = libc::getauxval as *const () as usize;
        assert!(!is_of_the_program(&raw const on_stack as usize));
        assert!(cfg!(target_feature = "crt-static") || !is_of_the_program(loaded));
    }

    #[test]
    fn who_is_undisturbed_has_the_signals_that_it_had_again() {
        let blocked = |signal: i32| {
            // SAFETY: plain calls on local values.
            unsafe {
                let mut now = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut now);
                libc::sigismember(&raw const now, signal) == 1
            }
        };
        let outer = Undisturbed::begin();
        {
            let _inner = Undisturbed::begin();
            assert!(blocked(libc::SIGALRM) && blocked(libc::SIGTERM) && blocked(libc::SIGPROF));
            assert!(!OF_ITS_OWN.into_iter().any(blocked));
        }
        assert!(blocked(libc::SIGALRM), "as before the inner one");
        drop(outer);
        assert!(!blocked(libc::SIGALRM));
    }
}
