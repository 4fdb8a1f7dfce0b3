//! What a profile is asked for, and why it may not be had.

use crate::engine::floats;
use crate::engine::profiles::{MOST, Terms, What};
use crate::engine::unwind::MAX_DEPTH;

/// Where and when callbacks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// In [`Profile::poll`](super::Profile::poll), on whatever thread calls it, or on a
    /// thread that the profile owns, with [`Config::own_thread`]. Events of a block come
    /// in their order; blocks come in the order in which something happened to them
    /// first.
    #[default]
    Deferred,
    /// Where and when it happens: allocations inside the allocation, on its thread;
    /// deaths in the free; promotions at some thread's next stop (64 KiB of allocation
    /// away at most) or in the free. See the module on locks.
    Prompt,
}

/// Whose allocations are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All threads', present and future.
    #[default]
    Process,
    /// The calling thread's, and those of threads that it starts from now on by
    /// [`crate::spawn`] or [`super::inherit`], and so on.
    Thread,
}

/// Of which blocks callbacks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Track {
    /// Of all.
    #[default]
    All,
    /// Of major blocks, and of young ones once they are promoted: `alloc_major` runs
    /// then, with the callstack of the allocation. Blocks that die young cost nothing
    /// and are in no count.
    PromotedAndMajor,
    /// Of allocations alone: what the callbacks return is dropped at once.
    Allocations,
}

impl Track {
    /// The same for the live stream.
    pub(crate) const fn of_stream(self) -> heaptop_protocol::message::Track {
        use heaptop_protocol::message::Track;
        match self {
            Self::All => Track::All,
            Self::PromotedAndMajor => Track::Promoted,
            Self::Allocations => Track::Allocations,
        }
    }
}

/// A configuration that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ConfigError {
    /// λ is no number from 0 to 1.
    Lambda(f64),
    /// An interval of 0 bytes.
    Interval,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lambda(lambda) => {
                write!(f, "the sampling rate is {lambda} per byte: it must be from 0 to 1")
            }
            Self::Interval => {
                f.write_str("the sampling interval is 0 bytes: 1 records every block")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// What is asked for: λ, and the rest by methods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    pub(super) lambda: f64,
    callstack_size: usize,
    pub(super) scope: Scope,
    pub(super) delivery: Delivery,
    track: Track,
    pub(super) own_thread: bool,
    unwinding: bool,
}

impl Config {
    /// Samples each byte with this probability, from 0 to 1.
    pub fn lambda(lambda: f64) -> Result<Self, ConfigError> {
        // Not a number is in no range.
        if !(0.0..=1.0).contains(&lambda) {
            return Err(ConfigError::Lambda(lambda));
        }
        // Of -0 this makes 0.
        Ok(Self { lambda: lambda + 0.0, ..Self::exact() })
    }

    /// Samples every byte, so every block: λ = 1.
    #[must_use]
    pub fn exact() -> Self {
        Self {
            lambda: 1.0,
            callstack_size: 32,
            scope: Scope::default(),
            delivery: Delivery::default(),
            track: Track::default(),
            own_thread: false,
            unwinding: false,
        }
    }

    /// The same by the mean number of bytes between samples: 1/λ.
    pub fn interval_bytes(bytes: u64) -> Result<Self, ConfigError> {
        if bytes == 0 {
            return Err(ConfigError::Interval);
        }
        Self::lambda(floats::apart(|| 1.0 / bytes as f64))
    }

    /// Most frames of a callstack: 32 by default, 0 for none, 128 at most.
    #[must_use]
    pub const fn callstack_size(mut self, frames: usize) -> Self {
        self.callstack_size = if frames > MAX_DEPTH { MAX_DEPTH } else { frames };
        self
    }

    /// Whose allocations are sampled.
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Where and when callbacks run.
    #[must_use]
    pub const fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Of which blocks callbacks are told.
    #[must_use]
    pub const fn track(mut self, track: Track) -> Self {
        self.track = track;
        self
    }

    /// Deferred callbacks run on a thread that the profile owns, some 20 ms after the
    /// event, and in [`Profile::poll`](super::Profile::poll) as well. The thread ends
    /// with the profile.
    #[must_use]
    pub const fn own_thread(mut self) -> Self {
        self.own_thread = true;
        self
    }

    /// Prompt callbacks run while the thread unwinds too: for who never panics in one.
    #[must_use]
    pub(crate) const fn unwinding(mut self) -> Self {
        self.unwinding = true;
        self
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            lambda: self.lambda,
            depth: self.callstack_size,
            prompt: self.delivery == Delivery::Prompt,
            unwinding: self.unwinding,
            what: match self.track {
                Track::All => What::All,
                Track::PromotedAndMajor => What::Major,
                Track::Allocations => What::Births,
            },
        }
    }
}

/// Why no profile was started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StartError {
    /// There is no agent: the sentence says why.
    NoAgent(crate::Off),
    /// A profile samples here already.
    AlreadySampling,
    /// 256 profiles exist already, those that are discarded and have a handle among them.
    TooMany,
    /// This is a callback of a tracker's: what it allocates is never sampled.
    InCallback,
    /// The system has no memory for it.
    NoMemory,
    /// The system refused the profile's own thread.
    NoThread,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoAgent(why) => write!(f, "no profile can be started: {why}"),
            Self::AlreadySampling => {
                f.write_str("a profile samples here already: stop it, or leave it, first")
            }
            Self::TooMany => {
                write!(
                    f,
                    "{MOST} profiles exist already: discard those that are not needed, and drop their handles"
                )
            }
            Self::InCallback => f.write_str("what a tracker's callback allocates is never sampled"),
            Self::NoMemory => f.write_str("there is no memory for a profile"),
            Self::NoThread => f.write_str("the system refused a thread for the profile"),
        }
    }
}

impl std::error::Error for StartError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use heaptop_protocol::estimate::Interval;

    #[test]
    fn lambda_is_a_probability() {
        for bad in [-0.1, 1.000_001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Config::lambda(bad).unwrap_err();
            assert!(error.to_string().contains("from 0 to 1"), "{error}");
        }
        assert_eq!(Config::interval_bytes(0), Err(ConfigError::Interval));
        assert_eq!(Config::lambda(-0.0).map(|c| c.lambda.to_bits()), Ok(0));
        assert!(Config::lambda(0.0).is_ok() && Config::lambda(1.0).is_ok());
        let interval =
            |lambda: f64| Config::lambda(lambda).unwrap().terms().interval().map(Interval::bytes);
        assert_eq!([0.0, 1.0, 0.3, 1e-300].map(interval), [None, Some(1), Some(3), Some(u32::MAX)]);
        assert_eq!(
            Config::interval_bytes(80_000).unwrap().terms().interval().unwrap().bytes(),
            80_000
        );
    }
}
