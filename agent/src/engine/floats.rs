//! Calculations of ours, apart from those of the program.
//!
//! A thread has one word that says how its floating-point operations round, which
//! exceptions are signals, and which have come up so far. It is the program's. With it as
//! it is, a gap of ours would be SIGFPE in a program that asks for the signal, and in
//! another one, which asks what has come up, an answer about us. So [`apart`] puts the usual
//! word in its place, under which nothing is a signal, and afterwards the program's back as
//! it was. Nor do our figures depend on how the program rounds, or on whether it takes
//! what is very small for 0.
//!
//! Whoever calculates on a thread of the program's does it in here: the draws of a
//! [`super::domain`], what profiles want of a hit, and what is set up once. Of what runs
//! in here nothing is the program's: neither its allocator nor a callback of its.
//!
//! The compiler counts on the usual word everywhere, and so may calculate before it is set
//! or after it was: what it can see. Hence the call into which it does not.

/// Runs `f` under the usual word. `f` must not unwind.
#[inline(always)]
pub fn apart<T>(f: impl FnOnce() -> T) -> T {
    let theirs = word::set_usual();
    let result = word::out_of_line(f);
    word::put_back(theirs);
    result
}

/// From here on, on the calling thread, which is the agent's: it begins with what the
/// thread had that made it.
pub fn apart_for_good() {
    word::set_usual();
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod word {
    use std::arch::asm;

    #[inline(never)]
    pub fn out_of_line<T>(f: impl FnOnce() -> T) -> T {
        // SAFETY: no instruction. For all that the compiler knows it may do anything, so the
        // call stays where it is.
        unsafe { asm!("", options(nostack, preserves_flags)) };
        f()
    }

    /// MXCSR: nothing is a signal, to the nearest, nothing is taken for 0. No code of Rust's
    /// uses the older unit, which has words of its own.
    #[cfg(target_arch = "x86_64")]
    const USUAL: u32 = 0x1f80;
    /// What of it says what has come up.
    #[cfg(target_arch = "x86_64")]
    const COME_UP: u32 = 0x3f;

    /// Sees to it that the word is the usual one but for what has come up; what was there.
    /// A word that changes takes as long as a hundred instructions: it seldom must.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn set_usual() -> u32 {
        let theirs = read();
        if theirs & !COME_UP != USUAL {
            write(USUAL);
        }
        theirs
    }

    /// What has come up before is no signal when it is put back.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn put_back(theirs: u32) {
        if read() != theirs {
            write(theirs);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn read() -> u32 {
        let mut word = 0;
        // SAFETY: a live word.
        unsafe {
            asm!("stmxcsr dword ptr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags));
        }
        word
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn write(word: u32) {
        // SAFETY: a live word: the usual one, on which the compiler counts, or the one that
        // the thread had.
        unsafe {
            asm!("ldmxcsr dword ptr [{}]", in(reg) &raw const word, options(nostack, preserves_flags));
        }
    }

    /// FPCR, of which zeros are the usual one, and FPSR, which says what has come up.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn set_usual() -> (u64, u64) {
        let (control, status): (u64, u64);
        // SAFETY: no memory is involved; the usual word is what the compiler counts on.
        unsafe {
            asm!(
                "mrs {control}, fpcr",
                "mrs {status}, fpsr",
                "msr fpcr, xzr",
                control = out(reg) control,
                status = out(reg) status,
                options(nostack, preserves_flags),
            );
        }
        (control, status)
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn put_back((control, status): (u64, u64)) {
        // SAFETY: no memory is involved; the thread had them before.
        unsafe {
            asm!(
                "msr fpsr, {status}",
                "msr fpcr, {control}",
                control = in(reg) control,
                status = in(reg) status,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// On other machines calculations run under the program's word.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod word {
    pub const fn set_usual() {}
    pub fn out_of_line<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    pub const fn put_back((): ()) {}
}

#[cfg(all(test, not(loom), target_arch = "x86_64"))]
mod tests;
