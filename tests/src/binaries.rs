//! Where the programs under test lie.
//!
//! `cargo test --workspace` builds no binaries of other packages, so they must
//! have been built before, with the same profile. A missing one is a failure:
//! a skipped test would look like a passed one.

use std::path::{Path, PathBuf};

/// The directory `target/PROFILE` that this test was built into.
///
/// # Panics
///
/// When the running executable is not below such a directory.
#[must_use]
pub fn directory() -> PathBuf {
    let exe = std::env::current_exe().expect("the running executable has a path");
    let parent = exe.parent().expect("an executable lies in a directory");
    // Tests and benchmarks lie in `deps` below it; binaries in it.
    let in_deps = parent.file_name().is_some_and(|name| name == "deps");
    if in_deps { parent.parent().expect("deps lies in a directory") } else { parent }.to_owned()
}

/// The binary `name` of this workspace.
///
/// # Panics
///
/// When it has not been built.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    in_directory(&directory(), name).unwrap_or_else(|message| panic!("{message}"))
}

fn in_directory(directory: &Path, name: &str) -> Result<PathBuf, String> {
    let path = directory.join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "{} does not exist: build the workspace first, with `cargo build --workspace --all-targets`",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_says_what_to_do() {
        let message = in_directory(&directory(), "no-such-binary").unwrap_err();
        assert!(message.contains("no-such-binary does not exist"), "{message}");
        assert!(message.contains("cargo build --workspace"), "{message}");
    }

    #[test]
    fn a_directory_is_no_binary() {
        assert!(in_directory(&directory(), "deps").is_err());
    }
}
