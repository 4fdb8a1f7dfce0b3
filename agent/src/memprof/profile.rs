//! Profiles as the program holds them: start, stop, discard, and who samples for whom.
//!
//! What touches the engine runs "outside": the calling thread is in the engine and its
//! countdown stands still, so nothing that is allocated here is sampled, and no callback
//! can come between two steps. The same holds if the caller is a callback: then the
//! thread was in the engine already.

use super::config::{Config, Scope, StartError};
use super::erased::{Erased, Tracker};
use super::stats::Stats;
use crate::engine::Engine;
use crate::engine::domain::{self, Domain};
use crate::engine::profiles::{Callbacks, Core, Phase, Profiles, Token};
use crate::engine::sync::Ordering::{AcqRel, Acquire, Relaxed};
use std::any::Any;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two polls of a profile's own thread.
const POLL: Duration = Duration::from_millis(20);

/// Why a profile was not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopError {
    /// It was stopped before.
    NotSampling,
    /// This is a forked child, and the profile its parent's.
    Forked,
}

/// Why a profile was not discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscardError {
    /// It samples: stop it first.
    StillSampling,
    /// It was discarded before.
    AlreadyDiscarded,
    /// This is a forked child, and the profile its parent's.
    Forked,
}

/// Why the thread did not join a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// A profile samples here already.
    AlreadySampling,
    /// The profile samples no more.
    NotSampling,
    /// This is a forked child, and the profile its parent's.
    Forked,
}

/// Why the thread did not leave its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveError {
    /// No profile samples here.
    NotSampling,
}

macro_rules! sentences {
    ($($error:ident { $($variant:ident: $sentence:literal,)* })*) => {$(
        impl std::fmt::Display for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $sentence,)* })
            }
        }
        impl std::error::Error for $error {}
    )*};
}

sentences! {
    StopError {
        NotSampling: "the profile samples no more: it was stopped before",
        Forked: "this is a forked child: the profile is its parent's",
    }
    DiscardError {
        StillSampling: "the profile still samples: stop it before it is discarded",
        AlreadyDiscarded: "the profile was discarded before",
        Forked: "this is a forked child: the profile is its parent's",
    }
    JoinError {
        AlreadySampling: "a profile samples on this thread already: leave it first",
        NotSampling: "the profile samples no more: it was stopped",
        Forked: "this is a forked child: the profile is its parent's",
    }
    LeaveError {
        NotSampling: "no profile samples on this thread",
    }
}

/// How far a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Blocks are sampled.
    Sampling,
    /// None more are; promotions and deaths are told.
    Stopped,
    /// Nothing more is told.
    Discarded,
}

/// A handle of a profile. Clones are handles of the same; when the last is dropped the
/// profile is stopped and discarded. (One that is forgotten by [`std::mem::forget`] goes
/// on to the program's end.)
#[must_use = "a profile that is dropped is over"]
pub struct Profile {
    engine: &'static Engine,
    token: Token,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Profile").field(&self.token.0).field(&self.status()).finish()
    }
}

fn outside<T>(engine: &Engine, f: impl FnOnce(&Domain) -> T) -> T {
    domain::here(|d| d.outside(engine, || f(d)))
}

/// Whether a callback runs on this thread.
pub(crate) fn is_in_callback() -> bool {
    domain::here(Domain::is_busy)
}

/// Starts a profile. The caller's own countdown begins anew with its next allocation;
/// other threads follow within 64 KiB of theirs.
pub fn start<T: Tracker>(config: Config, tracker: T) -> Result<Profile, StartError> {
    let Some(engine) = Engine::running() else {
        return Err(StartError::NoAgent(crate::why_off()));
    };
    outside(engine, |d| {
        engine.begin_domain(d);
        let profiles = engine.profiles_or_new().ok_or(StartError::NoMemory)?;
        if profiles.of_domain(d).is_some() {
            return Err(StartError::AlreadySampling);
        }
        let callbacks: Arc<dyn Callbacks> = Arc::new(Erased(tracker));
        let token = profiles.make(engine, config.terms(), callbacks).ok_or(StartError::TooMany)?;
        // From here on what is not returned is stopped and discarded.
        let profile = Profile { engine, token };
        match config.scope {
            Scope::Process if !profiles.take_process(token) => {
                return Err(StartError::AlreadySampling);
            }
            Scope::Process => {}
            Scope::Thread => d.set_token(token.0),
        }
        engine.profiles_changed();
        d.restart();
        if config.own_thread && !polls_by_itself(engine, token) {
            return Err(StartError::NoThread);
        }
        Ok(profile)
    })
}

/// Starts a profile's own thread, in which all signals are blocked; whether it could.
fn polls_by_itself(engine: &'static Engine, token: Token) -> bool {
    let polls = move || {
        domain::here(Domain::enter);
        while engine.is_here()
            && let Some(profiles) = engine.profiles()
            && let Some(core) = profiles.hold(token)
        {
            let phase = core.phase();
            if phase != Phase::Discarded {
                outside(engine, |d| profiles.poll(engine, d, core));
            }
            profiles.let_go(engine, token);
            if phase == Phase::Discarded {
                break;
            }
            std::thread::park_timeout(POLL);
        }
        engine.profiles_changed();
    };
    let thread = std::thread::Builder::new().name("heaptop-profile".into());
    // SAFETY: plain libc calls on local values; the mask is restored whatever happens.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = thread.spawn(polls).is_ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}

impl Profile {
    /// The engine's part; `None` in a forked child, where nothing of it may be touched.
    fn parts(&self) -> Option<(&'static Profiles, &'static Core)> {
        if !self.engine.is_here() {
            return None;
        }
        let profiles = self.engine.profiles()?;
        Some((profiles, profiles.core(self.token)?))
    }

    /// Ends the sampling, in all threads: blocks that were sampled are told of on.
    pub fn stop(&self) -> Result<(), StopError> {
        let (profiles, core) = self.parts().ok_or(StopError::Forked)?;
        if !core.move_on(Phase::Sampling, Phase::Stopped) {
            return Err(StopError::NotSampling);
        }
        profiles.leave_process(self.token);
        self.engine.profiles_changed();
        Ok(())
    }

    /// Ends all callbacks; what they returned is dropped, here. A callback that is just
    /// running on another thread comes to its end.
    pub fn discard(&self) -> Result<(), DiscardError> {
        let (profiles, core) = self.parts().ok_or(DiscardError::Forked)?;
        if !core.move_on(Phase::Stopped, Phase::Discarded) {
            return Err(match core.phase() {
                Phase::Sampling => DiscardError::StillSampling,
                _ => DiscardError::AlreadyDiscarded,
            });
        }
        outside(self.engine, |d| profiles.discard(self.engine, d, self.token));
        Ok(())
    }

    /// The calling thread samples for this profile from now on, as do those that it
    /// starts by [`crate::spawn`].
    pub fn join(&self) -> Result<(), JoinError> {
        let (profiles, core) = self.parts().ok_or(JoinError::Forked)?;
        outside(self.engine, |d| {
            self.engine.begin_domain(d);
            if core.phase() != Phase::Sampling {
                return Err(JoinError::NotSampling);
            }
            if profiles.of_domain(d).is_some() {
                return Err(JoinError::AlreadySampling);
            }
            d.set_token(self.token.0);
            d.restart();
            Ok(())
        })
    }

    /// Runs the callbacks that are due, in their order, on the calling thread; for how
    /// many blocks. Those of other threads' blocks whose events are not complete yet come
    /// with a later call. Several threads may poll: each takes what none has taken, and
    /// does not wait for what another one is at. In a callback it does nothing, and gives 0:
    /// there the next block's would run on top of the present one's, and so on.
    #[expect(clippy::must_use_candidate, reason = "it is called for its callbacks")]
    pub fn poll(&self) -> usize {
        let Some((profiles, core)) = self.parts() else { return 0 };
        if core.phase() == Phase::Discarded || is_in_callback() {
            return 0;
        }
        outside(self.engine, |d| profiles.poll(self.engine, d, core))
    }

    /// How far it is. In a forked child it is over.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.parts().map(|(_, core)| core.phase()) {
            Some(Phase::Sampling) => Status::Sampling,
            Some(Phase::Stopped) => Status::Stopped,
            _ => Status::Discarded,
        }
    }

    /// What it has counted; zeros in a forked child.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.parts().map_or_else(Stats::default, |(profiles, core)| {
            Stats::of(core, profiles.bytes(self.engine))
        })
    }

    /// What callbacks panicked with since the last call, oldest first. Of very many the
    /// first 64 are kept; [`Stats::panics`] counts all.
    #[must_use]
    pub fn take_panics(&self) -> Vec<Box<dyn Any + Send>> {
        let Some((_, core)) = self.parts() else { return Vec::new() };
        outside(self.engine, |_| core.take_panics())
    }
}

impl Clone for Profile {
    fn clone(&self) -> Self {
        if let Some((_, core)) = self.parts() {
            core.handles.fetch_add(1, Relaxed);
        }
        Self { engine: self.engine, token: self.token }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let Some((profiles, core)) = self.parts() else { return };
        if core.handles.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let _ = self.stop();
        let _ = self.discard();
        outside(self.engine, |_| profiles.let_go(self.engine, self.token));
        self.engine.profiles_changed();
    }
}

/// The profile that samples on the calling thread: a handle more of it.
#[must_use]
pub fn current() -> Option<Profile> {
    let engine = Engine::running()?;
    let profiles = engine.profiles()?;
    let token = domain::here(|d| profiles.of_domain(d))?;
    let core = profiles.hold(token)?;
    // With the last handle the profile is over, whatever comes after.
    let more = |n: u32| (n > 0).then_some(n + 1);
    let lives = core.handles.fetch_update(AcqRel, Acquire, more).is_ok();
    outside(engine, |_| profiles.let_go(engine, token));
    lives.then_some(Profile { engine, token })
}

/// The calling thread samples for no profile any more.
pub fn leave() -> Result<(), LeaveError> {
    let engine = Engine::running().ok_or(LeaveError::NotSampling)?;
    let profiles = engine.profiles().ok_or(LeaveError::NotSampling)?;
    outside(engine, |d| {
        engine.begin_domain(d);
        let token = profiles.of_domain(d).ok_or(LeaveError::NotSampling)?;
        if d.token() == token.0 {
            d.set_token(0);
        }
        // Of a process's profile it stays apart until that is over.
        d.set_apart(token.0);
        d.restart();
        Ok(())
    })
}

/// Runs `f`; what the calling thread allocates in it no profile samples. The live stream
/// goes on, and so do deaths and promotions.
pub fn suspended<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            domain::here(|d| d.suspend(self.0));
        }
    }
    let _restore = Restore(domain::here(|d| d.suspend(true)));
    f()
}

/// `f`, for another thread, which samples for the profile of this thread's while it runs
/// it: for thread pools, scoped threads and builders.
///
/// ```
/// use heaptop_agent::memprof::inherit;
/// let work = inherit(|| vec![0u8; 10].len());
/// let thread = std::thread::Builder::new().name("worker".into()).spawn(work);
/// assert_eq!(thread.unwrap().join().unwrap(), 10);
/// ```
pub fn inherit<T>(f: impl FnOnce() -> T) -> impl FnOnce() -> T {
    struct Restore(&'static Engine, u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            take_up(self.0, self.1);
        }
    }
    let token = domain::here(Domain::token);
    let engine = Engine::running().filter(|_| token != 0);
    move || {
        let _restore = engine.and_then(|e| Some(Restore(e, take_up(e, token)?)));
        f()
    }
}

/// Has the calling thread sample for this profile; for which it did. `None` in a forked
/// child, to whose engine such a token says nothing.
fn take_up(engine: &'static Engine, token: u64) -> Option<u64> {
    engine.is_here().then(|| {
        outside(engine, |d| {
            engine.begin_domain(d);
            let before = d.token();
            d.set_token(token);
            d.restart();
            before
        })
    })
}

/// [`std::thread::spawn`] for a thread that samples for the profile of this one's.
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::spawn(inherit(f))
}
