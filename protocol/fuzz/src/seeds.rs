//! Inputs to begin with, made by heaptop's own encoders: written where `tests/fuzz`
//! says.

/// Writes `inputs` into the directory `FUZZ_SEEDS`, if that is set.
pub fn write(inputs: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(directory) = std::env::var_os("FUZZ_SEEDS") else { return };
    for (i, input) in inputs().into_iter().enumerate() {
        let path = std::path::Path::new(&directory).join(format!("seed-{i:02}"));
        std::fs::write(&path, input).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}
