//! Where the configuration is, and reading it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::{Config, Trouble, parse};

/// Bytes of the largest file that is taken for a configuration.
pub const LARGEST: u64 = 1 << 20;

/// A configuration that was looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it says.
    pub config: Config,
    /// What of it is wrong, a sentence each that names file and line.
    pub troubles: Vec<String>,
}

/// Where it is, unless another is named; `variable` reads the environment. `None` where
/// there is no home.
pub fn default_path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // Relative ones are to be passed over, says the specification.
    let base = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("heaptop").join("config.toml"))
}

/// Reads one. What is wrong *in* it is no error; that it cannot be read is.
pub fn read(path: &Path) -> io::Result<Found> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is no UTF-8 text"))?;
    let (config, troubles) = parse(&text);
    let said = |trouble: &Trouble| format!("{}:{}: {}", path.display(), trouble.line, trouble.what);
    Ok(Found { config, troubles: troubles.iter().map(said).collect() })
}
