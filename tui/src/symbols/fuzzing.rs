//! What fuzz targets reach that programs do not.

use super::{demangle, perf_map};

/// See `demangle`.
#[must_use]
pub fn demangle(raw: &str) -> String {
    demangle::demangle(raw)
}

/// The demangled names of a perf map.
#[must_use]
pub fn perf_map(text: &str) -> Vec<String> {
    perf_map::parse(text).iter().map(|(_, _, name)| demangle(name)).collect()
}
