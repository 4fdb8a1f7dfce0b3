//! What is known of one callstack, and of all together.

use super::lifetimes::Lifetimes;
use super::window::{BySteps, Changes, Lately};
use heaptop_protocol::totals::{Total, Totals};

/// What is known of one callstack.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub totals: Totals,
    /// Whether totals ever came.
    pub counted: bool,
    /// Former values of `totals.allocated`, by [`Course::rate_steps`](super::course::Course::rate_steps).
    pub allocated: Changes<Total>,
    /// Former values of `totals.promoted`, by [`Course::rate_steps`](super::course::Course::rate_steps).
    pub promoted: Changes<Total>,
    /// Former values of `totals.in_use.bytes.sum`, by [`Course::trend_steps`](super::course::Course::trend_steps).
    pub in_use: Changes<f64>,
    pub lifetimes: Lifetimes,
}

/// What is known of all callstacks together.
#[derive(Debug, Default)]
pub(crate) struct Everything {
    /// Callstacks by the last step in which they allocated.
    pub allocated: Lately,
    /// What was allocated, by [`Course::rate_steps`](super::course::Course::rate_steps).
    pub born: BySteps<Total>,
    /// Callstacks by the last step in which some of their blocks were promoted.
    pub promoted: Lately,
    /// What was promoted, by [`Course::rate_steps`](super::course::Course::rate_steps).
    pub survived: BySteps<Total>,
    /// Callstacks by the last step in which their bytes in use changed.
    pub in_use: Lately,
    /// By how much bytes in use grew, by [`Course::trend_steps`](super::course::Course::trend_steps).
    pub growth: BySteps<f64>,
    pub lifetimes: Lifetimes,
    /// Events of blocks so far, and by callstack how many they were at its last.
    /// Beside each other: an event touches little memory, and one look tells whether
    /// something happened to some callstacks.
    pub events: u64,
    pub lived: Vec<u64>,
    /// Changes of callstacks' totals so far, and by callstack how many they were at its last.
    pub counts: u64,
    pub counted: Vec<u64>,
}

impl Everything {
    /// The totals of a callstack are others.
    pub fn count(&mut self, stack: u32) {
        let at = stack as usize;
        if self.counted.len() <= at {
            self.counted.resize(at + 1, 0);
        }
        self.counts += 1;
        self.counted[at] = self.counts;
    }
}
