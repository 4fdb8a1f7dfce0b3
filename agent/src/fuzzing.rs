//! What fuzz targets reach that programs do not.

use crate::config::{self, Builder, Settings};
use crate::engine::unwind;
use std::cell::Cell;

pub use crate::stream::fuzzing::listen;

/// A size in bytes, if the text is one.
#[must_use]
pub fn size(text: &[u8]) -> Option<u64> {
    config::size(text)
}

/// Reads the settings with `value` in the variable of that number.
pub fn settings(variable: usize, value: &[u8]) {
    // SAFETY: the settings, which may keep a name, do not outlive this function.
    let value: &'static [u8] = unsafe { std::mem::transmute(value) };
    let asked = Cell::new(0);
    let settings = Settings::read(&Builder::DEFAULT, |_| {
        if asked.replace(asked.get() + 1) == variable { value } else { &[] }
    });
    assert!(settings.depth <= unwind::MAX_DEPTH);
    assert!(settings.nursery_bytes > 0 && settings.memory_bytes >= 1 << 20);
    for sentence in settings.notices.sentences() {
        assert!(sentence.ends_with('.'));
    }
}
