//! Reads a source file for the screen: where the debug information says it is, in the
//! target's own root or in ours; a relative path from where heaptop was started.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::app::source::Text;

/// Larger files are not shown.
const MOST_BYTES: u64 = 16 << 20;

/// Reads `file` for the target `pid`, or says why it cannot be read.
pub fn read(file: &str, pid: Option<u32>) -> Result<Text, String> {
    let path = Path::new(file);
    let mut ways = Vec::new();
    if let (true, Some(pid)) = (path.is_absolute(), pid) {
        let inside = path.strip_prefix("/").unwrap_or(path);
        ways.push(PathBuf::from(format!("/proc/{pid}/root")).join(inside));
    }
    ways.push(path.to_path_buf());
    let mut why = None;
    for way in ways {
        match open(&way) {
            Ok((text, changed_unix_ns)) => {
                let lines = text.lines().map(str::to_owned).collect();
                return Ok(Text { path: way, lines, changed_unix_ns });
            }
            // Of the last way: that is the one that can be set right here.
            Err(error) => why = Some(error),
        }
    }
    let why = why.unwrap_or_default();
    Err(format!("{file} cannot be read here: {why}"))
}

fn open(path: &Path) -> Result<(String, Option<u64>), String> {
    let plain = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    // Whoever waits at the other end of a pipe is not waited for.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(plain)?;
    let meta = file.metadata().map_err(plain)?;
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if meta.len() > MOST_BYTES {
        return Err(format!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(plain)?;
    let changed = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = changed.and_then(|since| u64::try_from(since.as_nanos()).ok());
    Ok((String::from_utf8_lossy(&bytes).into_owned(), changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_everything_else_is_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.rs");
        std::fs::write(&file, b"fn main() {\n\tbad \xff byte\r\n}").unwrap();
        for pid in [None, Some(std::process::id())] {
            let text = read(file.to_str().unwrap(), pid).unwrap();
            assert_eq!(text.lines, ["fn main() {", "\tbad \u{fffd} byte", "}"]);
            assert!(text.changed_unix_ns.unwrap() > 1 << 60);
        }
        let missing = dir.path().join("b.rs");
        let why = read(missing.to_str().unwrap(), None).unwrap_err();
        assert!(why.ends_with("b.rs cannot be read here: there is no such file"), "{why}");
        let why = read(dir.path().to_str().unwrap(), Some(std::process::id())).unwrap_err();
        assert!(why.ends_with("it is no regular file"), "{why}");
        let large = dir.path().join("c.rs");
        std::fs::File::create(&large).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert!(read(large.to_str().unwrap(), None).unwrap_err().contains("larger than 16 MiB"));
    }
}
