//! Fixtures that are crates of their own, outside the workspace: built by the test that
//! needs them, otherwise than the workspace's.

use crate::binaries;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command prints, which must succeed.
///
/// # Panics
///
/// When it does not: with what it said.
#[must_use]
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Builds the crate `fixtures/NAME`, optimised, in a directory of its own beside the
/// workspace's, with these flags of the compiler; gives the directory of what came out.
///
/// # Panics
///
/// When it does not build.
#[must_use]
pub fn release(name: &str, rustflags: impl AsRef<OsStr>) -> PathBuf {
    let manifest =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name).join("Cargo.toml");
    let target = binaries::directory().with_file_name(name);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(&target).env("RUSTFLAGS", rustflags);
    let _ = output(cargo.env_remove("CARGO_ENCODED_RUSTFLAGS"));
    target.join("release")
}
