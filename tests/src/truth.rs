//! What targets print about themselves: one JSON object a function, behind a
//! line that says how many.

use crate::target::Target;
use serde::Deserialize;
use std::collections::HashMap;

/// A function's own counters. A target leaves out what it cannot know.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Truth {
    /// Its name.
    pub function: String,
    /// Bytes asked for, ever.
    pub allocated_bytes: u64,
    /// Blocks asked for, ever.
    pub allocated_objects: u64,
    /// Bytes of those that were freed.
    pub freed_bytes: u64,
    /// Blocks that were freed.
    pub freed_objects: u64,
    /// Bytes that live.
    pub in_use_bytes: u64,
    /// Blocks that live.
    pub in_use_objects: u64,
    /// Bytes born young in completed cycles.
    pub minor_bytes: Option<u64>,
    /// Blocks born young in completed cycles.
    pub minor_objects: Option<u64>,
    /// Bytes of those that were promoted.
    pub promoted_bytes: Option<u64>,
    /// Blocks of those that were promoted.
    pub promoted_objects: Option<u64>,
    /// What can be expected to have been promoted, where it cannot be known.
    pub promoted_expected_bytes: Option<u64>,
    /// Ages of the freed blocks, in nanoseconds together.
    pub ages_ns: Option<u64>,
    /// Blocks that came by realloc.
    pub reallocs: Option<u64>,
    /// Bytes that blocks held which lay elsewhere after that.
    pub copied_bytes: Option<u64>,
}

/// The line in front of the truths.
#[derive(Debug, Deserialize)]
struct Head {
    at_s: f64,
    functions: usize,
}

/// All of a target's truths at one moment.
#[derive(Debug, Clone)]
pub struct Truths {
    /// Seconds since the target's start.
    pub at_s: f64,
    /// By function.
    pub by_function: HashMap<String, Truth>,
}

impl Truths {
    /// Reads the next truths that a target prints.
    ///
    /// # Panics
    ///
    /// When none come, or they are not sound.
    pub fn read(target: &mut Target) -> Self {
        let head = target.wait_for_line("truths", |line| line.starts_with("{\"truth\""));
        let head: Head = serde_json::from_str(&head).expect("a head");
        let lines = (0..head.functions).map(|_| target.wait_for_line("a truth", |_| true));
        let by_function = lines
            .map(|line| serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}")))
            .map(|truth: Truth| (truth.function.clone(), truth))
            .collect();
        Self { at_s: head.at_s, by_function }
    }

    /// Asks by SIGUSR1 and reads the answer.
    pub fn ask(target: &mut Target) -> Self {
        target.signal(libc::SIGUSR1);
        Self::read(target)
    }
}

impl std::ops::Index<&str> for Truths {
    type Output = Truth;

    fn index(&self, function: &str) -> &Truth {
        &self.by_function[function]
    }
}
